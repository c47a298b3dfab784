//! Is a field load through the accessor one `mov` on mapped memory?

#[path = "../../mapped/tests/support/disassembly.rs"]
mod disassembly;

use disassembly::instructions;

#[test]
fn a_field_load_is_one_mov() {
    let text = disassembly::of_example(env!("CARGO_MANIFEST_DIR"), "field_load");
    let load = instructions(&text, "probe_load");
    assert_eq!(load.len(), 2, "{load:?}");
    assert!(load[0].starts_with("mov rax,QWORD PTR [r"), "{load:?}");
    assert_eq!(load[1], "ret", "{load:?}");

    // Following a reference: load it, test for null, mask, add the base, load the field.
    let follow = instructions(&text, "probe_follow");
    println!("{follow:#?}");
    let loads = follow
        .iter()
        .filter(|code| code.contains("QWORD PTR") || code.contains("PTR ["))
        .count();
    assert!(follow.len() <= 14 && loads <= 5, "{follow:?}");
}
