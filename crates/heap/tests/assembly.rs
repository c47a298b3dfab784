//! Is a field load through the accessor one `mov` on mapped memory?

use std::process::Command;

/// Disassembles the example, built for release.
fn disassembly() -> String {
    let this = std::env::current_exe().unwrap();
    let target = this.ancestors().nth(3).expect("target/profile/deps/name");
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    let built = Command::new(env!("CARGO"))
        .args(["build", "--release", "--offline", "--quiet"])
        .args(["--example", "field_load", "--manifest-path", manifest])
        .arg("--target-dir")
        .arg(target)
        .env_remove("RUSTFLAGS")
        .status();
    assert!(built.unwrap().success());
    let output = Command::new("objdump")
        .args(["-d", "--no-show-raw-insn", "-M", "intel"])
        .arg(target.join("release/examples/field_load"))
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
fn a_field_load_is_one_mov() {
    let text = disassembly();
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
