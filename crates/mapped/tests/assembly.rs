//! Is a field load one `mov`, and resolving an address an `and` and an `add`?

use std::process::Command;

/// Disassembles the probe, built for release, and returns its functions' instructions.
fn disassembly() -> String {
    let this = std::env::current_exe().unwrap();
    let target = this.ancestors().nth(3).expect("target/profile/deps/name");
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    let built = Command::new(env!("CARGO"))
        .args(["build", "--release", "--offline", "--quiet"])
        .args(["--example", "probe", "--manifest-path", manifest])
        .arg("--target-dir")
        .arg(target)
        .env_remove("RUSTFLAGS")
        .status();
    assert!(built.unwrap().success());
    let output = Command::new("objdump")
        .args(["-d", "--no-show-raw-insn", "-M", "intel"])
        .arg(target.join("release/examples/probe"))
        .output()
        .expect("binutils are installed");
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap()
}

/// The instructions of `function`, without padding.
fn instructions(text: &str, function: &str) -> Vec<String> {
    let label = format!("<{function}>:");
    text.lines()
        .skip_while(|line| !line.ends_with(&label))
        .skip(1)
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.split_once(":\t"))
        .map(|(_, code)| code.split_whitespace().collect::<Vec<_>>().join(" "))
        .filter(|code| {
            !["nop", "int3", "cs", "data16", "xchg"]
                .iter()
                .any(|pad| code.starts_with(pad))
        })
        .collect()
}

#[test]
fn the_hot_operations_compile_to_themselves() {
    let text = disassembly();
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

    assert_eq!(instructions(&text, "probe_commit"), ["xor eax,eax", "ret"]);

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

/// Two tests of the domain, a call and a fence, and what a function needs around them.
const MOST_INSTRUCTIONS_OF_A_PERSIST: usize = 24;

/// The mnemonic of an instruction.
fn kind(code: &str) -> &str {
    code.split(' ').next().unwrap_or_default()
}
