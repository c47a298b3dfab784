//! Is a field load through the accessor one `mov` on mapped memory?

#[path = "../../mapped/tests/support/disassembly.rs"]
mod disassembly;

use disassembly::instructions;

#[test]
fn a_field_load_is_one_mov() {
    let text = disassembly::of_program(
        concat!(env!("CARGO_MANIFEST_DIR"), "/probe"),
        "firn-heap-probe",
    );
    let load = instructions(&text, "probe_load");
    assert_eq!(load.len(), 2, "{load:?}");
    assert!(load[0].starts_with("mov rax,QWORD PTR [r"), "{load:?}");
    assert_eq!(load[1], "ret", "{load:?}");

    // Following a reference: load it, test for null, test for a cycle, mask, add the base, load the field. The code for
    // an open cycle is behind the second return.
    let follow = instructions(&text, "probe_follow");
    println!("{follow:#?}");
    let ends: Vec<usize> = (0..follow.len()).filter(|&i| follow[i] == "ret").collect();
    let fast = &follow[..=ends[1]];
    let count = |what: &str| fast.iter().filter(|code| code.contains(what)).count();
    assert!(fast.len() <= 17 && count("PTR [") <= 6, "{follow:?}");
    assert_eq!((count("call"), count("test")), (0, 1), "{follow:?}");
}
