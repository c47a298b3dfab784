//! Is a field load one `mov`, and resolving an address an `and` and an `add`?

use crate::support::disassembly::{self, instructions};

#[test]
fn the_hot_operations_compile_to_themselves() {
    let text = disassembly::of_example(env!("CARGO_MANIFEST_DIR"), "probe");
    let field = instructions(&text, "probe_field");
    assert_eq!(field, ["mov rax,QWORD PTR [rdi+0x18]", "ret"]);

    let element = instructions(&text, "probe_element");
    assert_eq!(element.len(), 3, "{element:?}");
    assert!(
        element[0].starts_with("movzx"),
        "the index's own widening: {element:?}"
    );
    assert!(
        element[1].starts_with("mov rax,QWORD PTR [rdi+"),
        "{element:?}"
    );

    let place = instructions(&text, "probe_place");
    let kinds: Vec<&str> = place.iter().map(|code| kind(code)).collect();
    assert_eq!(kinds, ["mov", "and", "add", "ret"], "{place:?}");

    // A look at the domain, and nothing without a log.
    let commit = instructions(&text, "probe_commit");
    let kinds: Vec<&str> = commit.iter().map(|code| kind(code)).collect();
    assert_eq!(kinds, ["cmp", "jne", "jmp", "xor", "ret"], "{commit:?}");

    let persist = instructions(&text, "probe_persist");
    let kinds: Vec<&str> = persist.iter().map(|code| kind(code)).collect();
    let call = kinds.iter().position(|&kind| kind == "call");
    let fence = kinds.iter().position(|&kind| kind == "sfence");
    assert!(call.is_some() && call < fence, "{persist:?}");
    assert!(
        persist.len() <= MOST_INSTRUCTIONS_OF_A_PERSIST,
        "{persist:?}"
    );
    for write_back in ["\tclwb ", "\tclflushopt ", "\tclflush "] {
        assert!(text.contains(write_back), "{write_back}");
    }
}

/// Two tests of the domain, which tell a log from a fence, two calls, a fence, and the function's own prologue and
/// epilogues.
const MOST_INSTRUCTIONS_OF_A_PERSIST: usize = 28;

/// The mnemonic of an instruction.
fn kind(code: &str) -> &str {
    code.split(' ').next().unwrap_or_default()
}
