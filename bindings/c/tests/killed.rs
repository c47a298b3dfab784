//! A C program is killed at random moments while its objects move: nothing that it said is lost, nothing is half done.

mod support;

use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::Duration;

use support::{Language, command, compile, here, run};

const KILLS: u64 = 40;

#[test]
fn a_bank_keeps_its_books_through_kills() {
    let folder = tempfile::tempdir().unwrap();
    let source = here("examples/bank.c");
    let flags = ["-O2", "-D_GNU_SOURCE"];
    let program = compile("gcc", Language::C11, &source, &flags, folder.path());
    // The other compiler has no complaint either.
    compile("clang", Language::C11, &source, &flags, folder.path());
    let pool = folder.path().join("bank.firn");
    let mut random = fastrand::Rng::with_seed(7);
    let mut most = 0;
    for kill in 0..KILLS {
        let mut child = command(&program)
            .arg(&pool)
            .args(["run", &kill.to_string()])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = child.stdout.take().unwrap();
        let said = std::thread::spawn(move || {
            let numbers = BufReader::new(output).lines().map_while(Result::ok);
            // The kill may cut the last line.
            numbers.collect::<Vec<String>>()
        });
        std::thread::sleep(Duration::from_micros(random.u64(2_000..60_000)));
        child.kill().unwrap();
        child.wait().unwrap();
        let mut said = said.join().unwrap();
        said.pop();
        let acknowledged = said.last().map_or(0, |line| line.parse().unwrap());
        let found: u64 = run(&program, &[pool.to_str().unwrap(), "audit"])
            .trim()
            .parse()
            .unwrap();
        assert!(
            found >= acknowledged,
            "{found} of {acknowledged} transfers are there"
        );
        assert!(found >= most, "{found} of {most} transfers are there");
        most = found;
    }
    assert!(
        most > 20 * KILLS,
        "{most} transfers are too few to be killed in"
    );
}
