//! What libpmemobj does where its manual is short: the same program says the same with either library.

use std::path::Path;

use crate::built;
use crate::support::{AT_SAFEPOINTS, BESIDE};
use crate::support::{command, compile_with_libpmemobj, here};

/// What the program says, at the end of which it is content.
fn said(program: &Path, collects: Option<&str>) -> String {
    let pools = tempfile::tempdir().unwrap();
    let mut command = command(program);
    command.arg(pools.path());
    command.env_remove("FIRN_COLLECT");
    command.env("FIRN_ASSUME_PERSISTENT", "adr");
    command.env("PMEM_IS_PMEM_FORCE", "1");
    command.envs(collects.map(|of| ("FIRN_COLLECT", of)));
    let output = command.output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {told}", program.display());
    String::from_utf8(output.stdout).unwrap()
}

fn says(name: &str, expected: &str, collects: &[Option<&str>]) {
    let folder = tempfile::tempdir().unwrap();
    for program in built(name, &["-O2"], folder.path()) {
        for &collects in collects {
            assert_eq!(said(&program, collects), expected, "{collects:?}");
        }
    }
    let source = here("tests/pmemobj").join(name);
    if let Some(theirs) = compile_with_libpmemobj(&source, &["-O2"], folder.path()) {
        assert_eq!(said(&theirs, None), expected, "libpmemobj");
    }
}

/// Stages that a callback is told of; objects of the open transaction; flags, sizes and layouts; handles; copied locks;
/// more threads than lanes.
#[test]
fn the_fine_print_is_that_of_libpmemobj() {
    let expected = include_str!("fine_print.txt");
    let while_moving = [None, Some(BESIDE), Some(AT_SAFEPOINTS)];
    says("fine_print.c", expected, &while_moving);
}

#[test]
fn what_libpmemobj_stops_is_stopped() {
    says("stopped.c", include_str!("stopped.txt"), &[None]);
}
