//! Does the child answer as the protocol says? If libpmemobj is not installed, the tests that need it say so and pass;
//! the databases are always there.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};

use serde_json::{Value, json};

const STRUCTURES: [&str; 5] = ["list", "avl", "red_black", "string_swap", "btree"];
const PHASES: [&str; 6] = [
    "insert",
    "delete",
    "reinsert",
    "redelete",
    "get_full",
    "get_after",
];

const OPERATIONS: [&str; 10] = [
    "tx_empty",
    "tx_snapshot_8",
    "tx_snapshot_64",
    "tx_snapshot_64x8",
    "tx_alloc_link_128",
    "tx_alloc_snapshot_128",
    "tx_alloc_64k",
    "tx_alloc_snapshot_64k",
    "alloc_128",
    "free_128",
];

/// A directory of this test's own, in memory if possible.
struct Scratch(PathBuf);

impl Scratch {
    fn new(test: &str) -> Self {
        let shared = Path::new("/dev/shm");
        let parent = if shared.is_dir() {
            shared.to_path_buf()
        } else {
            std::env::temp_dir()
        };
        let dir = parent.join(format!("firn-rivals-{test}-{}", std::process::id()));
        std::fs::create_dir(&dir).expect("a fresh directory");
        Self(dir)
    }

    fn files(&self) -> usize {
        std::fs::read_dir(&self.0).expect("the directory").count()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn command(dir: &Path) -> Command {
    command_of("libpmemobj", dir)
}

fn command_of(rival: &str, dir: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_firn-rivals"));
    command.args([rival, "--dir"]).arg(dir);
    command
}

struct Rival {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    hello: Value,
}

impl Rival {
    /// Starts the child. If its library is not installed, prints the reason and returns `None`.
    fn start(dir: &Path) -> Option<Self> {
        Self::start_of("libpmemobj", dir)
    }

    fn start_of(rival: &str, dir: &Path) -> Option<Self> {
        let mut command = command_of(rival, dir);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("the child starts");
        let to = child.stdin.take().expect("piped");
        let mut from = BufReader::new(child.stdout.take().expect("piped"));
        let mut line = String::new();
        if from.read_line(&mut line).expect("readable") == 0 {
            let status = child.wait().expect("it ended");
            assert_eq!(
                status.code(),
                Some(2),
                "no hello, and not for want of the library"
            );
            println!("skipped: the library of {rival} is not installed");
            return None;
        }
        let hello = serde_json::from_str(&line).expect("JSON");
        Some(Self {
            child,
            to,
            from,
            hello,
        })
    }

    fn tell(&mut self, line: &str) -> Value {
        writeln!(self.to, "{line}").expect("the child reads");
        let mut answer = String::new();
        self.from.read_line(&mut answer).expect("the child answers");
        serde_json::from_str(&answer).expect("JSON")
    }

    fn ask(&mut self, request: Value) -> Value {
        self.tell(&request.to_string())
    }

    fn quit(mut self) {
        writeln!(self.to, r#"{{"op":"quit"}}"#).expect("the child reads");
        assert!(self.child.wait().expect("it ended").success());
    }
}

#[test]
fn every_operation_is_timed() {
    let scratch = Scratch::new("timed");
    let Some(mut rival) = Rival::start(&scratch.0) else {
        return;
    };
    assert_eq!(rival.hello["rival"], "libpmemobj");
    assert_eq!(rival.hello["operations"], json!(OPERATIONS));
    for op in OPERATIONS {
        for threads in [1, 2] {
            let answer = rival.ask(json!({"op": op, "count": 501, "threads": threads}));
            assert_eq!(answer["op"], op, "{answer}");
            assert_eq!(
                (&answer["count"], &answer["threads"]),
                (&json!(501), &json!(threads))
            );
            for time in ["ns_cpu_per_op", "ns_wall_per_op"] {
                let ns = answer[time].as_f64().expect("a number");
                assert!(
                    ns > 10.0 && ns < 1e7,
                    "{op} with {threads} threads: {time} is {ns}"
                );
            }
            assert!(answer["fences_per_op"].is_null(), "not asked for yet");
        }
    }
    rival.quit();
}

#[test]
fn fences_are_counted_and_remembered() {
    let scratch = Scratch::new("fences");
    let Some(mut rival) = Rival::start(&scratch.0) else {
        return;
    };
    let mut fences = Vec::new();
    for op in ["tx_empty", "tx_snapshot_64", "tx_snapshot_64x8"] {
        let counted = rival.ask(json!({"op": "count_fences", "of": op}));
        if let Some(error) = counted["error"].as_str() {
            assert!(error.contains("single-step"), "{error}");
            println!("skipped: {error}");
            return;
        }
        assert_eq!(counted["of"], op);
        assert_eq!(
            counted["system_calls_per_op"], 0.0,
            "it flushes from user space: {counted}"
        );
        assert_eq!(
            counted["fences_least"], counted["fences_most"],
            "a steady state: {counted}"
        );
        let timed = rival.ask(json!({"op": op, "count": 100}));
        assert_eq!(timed["fences_per_op"], counted["fences_per_op"]);
        fences.push(counted["fences_per_op"].as_f64().expect("a number"));
    }
    let [empty, one, eight] = fences[..] else {
        panic!("three answers")
    };
    assert!(empty >= 1.0 && one >= empty + 2.0, "{fences:?}");
    assert!(
        eight - empty >= 8.0,
        "each snapshot is durable before the next: {fences:?}"
    );
    rival.quit();
}

/// The answer to a request for phases, after a check of its times.
fn phases(rival: &mut Rival, structure: &str, n: u64) -> Value {
    let answer = rival.ask(json!({"op": "phases", "structure": structure, "n": n, "seed": 3}));
    assert_eq!(answer["op"], "phases", "{answer}");
    assert_eq!(
        (&answer["structure"], &answer["n"]),
        (&json!(structure), &json!(n))
    );
    for time in ["ns_cpu", "ns_wall"] {
        for phase in PHASES {
            let ns = answer[time][phase].as_f64().expect("a number");
            assert!(ns > 1.0 && ns < 1e8, "{structure}: {time} {phase} is {ns}");
        }
    }
    let file = answer["file_over_payload"].as_f64().expect("a number");
    assert!(file > 1.0, "{answer}");
    answer
}

#[test]
fn every_structure_goes_through_the_phases() {
    let scratch = Scratch::new("phases");
    let Some(mut rival) = Rival::start(&scratch.0) else {
        return;
    };
    assert_eq!(rival.hello["structures"], json!(STRUCTURES));
    for structure in STRUCTURES {
        let answer = phases(&mut rival, structure, 5_000);
        for when in ["mean", "of_means", "after"] {
            let ratio = |pages: &str| answer[format!("{pages}_{when}")].as_f64();
            let (small, large) = (ratio("ratio_4k"), ratio("ratio_2m"));
            let (small, large) = (small.expect("a number"), large.expect("a number"));
            assert!(
                small > 1.0 && small < 10.0 && large >= small,
                "{structure}: {when} {small} and {large}"
            );
        }
        let swap = &answer["ns_cpu"]["swap"];
        assert_eq!(swap.is_number(), structure == "string_swap");
        assert!(answer["fences"].is_null(), "not asked for yet");
        assert_eq!(scratch.files(), 0, "no file has a name");
    }
    rival.quit();
}

#[test]
fn what_stays_is_packed() {
    let scratch = Scratch::new("packed");
    let Some(mut rival) = Rival::start(&scratch.0) else {
        return;
    };
    let packed =
        |structure| json!({"op": "defrag", "structure": structure, "n": 20_000, "seed": 1});
    for structure in ["avl", "string_swap"] {
        let answer = rival.ask(packed(structure));
        let number = |field: &str| answer[field].as_f64().expect("a number");
        // An object that lies well already stays.
        assert!((2000.0..=4000.0).contains(&number("moved")), "{answer}");
        assert!(
            (100.0..1e6).contains(&number("ns_cpu_per_moved")),
            "{answer}"
        );
        assert!((1.0..2.0).contains(&number("ratio_4k")), "{answer}");
    }
    let refused = rival.ask(packed("list"));
    let said = refused["error"].as_str().expect("a sentence");
    assert!(said.contains("'list'") && said.contains("'avl'"), "{said}");
    rival.quit();
}

#[test]
fn two_threads_share_a_structure() {
    let scratch = Scratch::new("shared");
    let Some(mut rival) = Rival::start(&scratch.0) else {
        return;
    };
    for structure in STRUCTURES {
        let answer = rival.ask(json!({"op": "two_threads", "structure": structure, "n": 3001}));
        assert_eq!(answer["structure"], structure, "{answer}");
        for time in ["ns_cpu", "ns_wall"] {
            for change in ["insert", "delete"] {
                let ns = answer[time][change].as_f64().expect("a number");
                assert!(ns > 100.0 && ns < 1e7, "{structure}: {time} {change} {ns}");
            }
        }
    }
    rival.quit();
}

#[test]
fn the_databases_go_through_the_phases() {
    for name in ["lmdb", "redb"] {
        let scratch = Scratch::new(name);
        let mut rival = Rival::start_of(name, &scratch.0).expect("it is built in");
        assert_eq!(rival.hello["rival"], name);
        assert_eq!(rival.hello["structures"], json!(["map"]));
        assert_eq!(
            rival.hello["rivals"],
            json!(["libpmemobj", "lmdb", "redb", "sqlite", "fjall"])
        );
        for n in [5, 2000] {
            let answer = phases(&mut rival, "map", n);
            assert!(answer["ratio_2m_mean"].is_null() && answer["fences"].is_null());
            assert_eq!(scratch.files(), 0, "no file has a name");
        }
        for (request, word) in [
            (
                json!({"op": "phases", "structure": "list", "n": 9, "seed": 1}),
                "'list'",
            ),
            (
                json!({"op": "two_threads", "structure": "map", "n": 9}),
                name,
            ),
            (json!({"op": "tx_empty", "count": 9}), name),
            (json!({"op": "count_fences", "of": "list_insert"}), name),
        ] {
            let answer = rival.ask(request);
            let error = answer["error"].as_str().expect("a complaint");
            assert!(error.contains(word) && error.contains("map"), "{error}");
        }
        rival.quit();
    }
}

#[test]
fn fences_of_a_change_are_counted_and_remembered() {
    let scratch = Scratch::new("changes");
    let Some(mut rival) = Rival::start(&scratch.0) else {
        return;
    };
    let counted = rival.ask(json!({"op": "count_fences", "of": "list_delete"}));
    if let Some(error) = counted["error"].as_str() {
        assert!(error.contains("single-step"), "{error}");
        println!("skipped: {error}");
        return;
    }
    assert_eq!(counted["of"], "list_delete");
    assert_eq!(counted["system_calls_per_op"], 0.0, "{counted}");
    let fences = counted["fences_per_op"].as_f64().expect("a number");
    assert!(
        (7.0..=13.0).contains(&fences),
        "two snapshots and a free: {counted}"
    );
    let answer = phases(&mut rival, "list", 100);
    assert_eq!(answer["fences"], json!({"delete": fences}));
    rival.quit();
}

#[test]
fn a_bad_line_is_named_and_the_next_is_answered() {
    let scratch = Scratch::new("bad");
    let Some(mut rival) = Rival::start(&scratch.0) else {
        return;
    };
    for (number, (line, word)) in [
        ("what?", "not a request"),
        ("", "not a request"),
        (r#"{"op":"dance","count":1}"#, "dance"),
        (r#"{"op":"tx_empty","count":8,"threads":9}"#, "threads"),
        (r#"{"op":"count_fences","of":"dance"}"#, "dance"),
        (
            r#"{"op":"phases","structure":"dance","n":9,"seed":1}"#,
            "dance",
        ),
        (r#"{"op":"phases","structure":"list","n":9}"#, "seed"),
    ]
    .into_iter()
    .enumerate()
    {
        let answer = rival.tell(line);
        assert_eq!(answer["line"], number + 1, "{answer}");
        assert!(
            answer["error"]
                .as_str()
                .is_some_and(|error| error.contains(word)),
            "{answer}"
        );
    }
    assert_eq!(rival.ask(json!({"op": "tx_empty", "count": 8}))["count"], 8);
    rival.quit();
}

#[test]
fn no_pool_file_can_be_left_behind() {
    let scratch = Scratch::new("files");
    let Some(mut rival) = Rival::start(&scratch.0) else {
        return;
    };
    assert_eq!(scratch.files(), 0, "the file has no name while it is used");
    rival.child.kill().expect("it runs");
    rival.child.wait().expect("it ended");
    assert_eq!(scratch.files(), 0);
}

#[test]
fn the_end_of_input_ends_it() {
    let scratch = Scratch::new("end");
    let Some(Rival { mut child, to, .. }) = Rival::start(&scratch.0) else {
        return;
    };
    drop(to);
    assert!(child.wait().expect("it ended").success());
}

#[test]
fn the_databases_commit_to_the_disk_and_are_reopened() {
    for name in ["lmdb", "redb", "sqlite", "fjall"] {
        let scratch = Scratch::new(&format!("durable-{name}"));
        let Some(mut rival) = Rival::start_of(name, &scratch.0) else {
            continue;
        };
        assert_eq!(rival.hello["rival"], name);
        let operations = json!(["durable_insert", "durable_reopen", "durable_volume"]);
        assert_eq!(rival.hello["operations"], operations);
        for (count, batch, threads) in [(7, 1, 1), (250, 100, 1), (24, 1, 8)] {
            let request =
                json!({"op": "durable_insert", "count": count, "batch": batch, "threads": threads});
            let answer = rival.ask(request);
            assert_eq!(answer["count"], count, "{name}: {answer}");
            for time in ["ns_wall_per_op", "ns_median_per_commit"] {
                let ns = answer[time].as_f64().expect("a number");
                assert!(ns > 10.0 && ns < 1e10, "{name}: {time} is {ns}");
            }
        }
        for _ in 0..2 {
            let answer = rival.ask(json!({"op": "durable_reopen"}));
            assert_eq!(answer["entries"], 281, "{name}: {answer}");
        }
        let more = rival.ask(json!({"op": "durable_insert", "count": 1}));
        assert_eq!(more["batch"], 1, "{name}: {more}");
        let answer = rival.ask(json!({"op": "durable_reopen"}));
        assert_eq!(answer["entries"], 282, "{name}: {answer}");
        rival.quit();
        assert_eq!(scratch.files(), 0, "{name}: the files go with the rival");
    }
}

/// The number tells the bench that two systems wrote the same; who changes the entries changes them on both sides.
#[test]
fn every_database_writes_the_same_entries() {
    let mut digests = Vec::new();
    for name in ["lmdb", "redb", "sqlite", "fjall"] {
        let scratch = Scratch::new(&format!("volume-{name}"));
        let Some(mut rival) = Rival::start_of(name, &scratch.0) else {
            continue;
        };
        let request = json!({"op": "durable_volume", "n": 950, "batch": 100, "seed": 1});
        let answer = rival.ask(request);
        digests.push(
            answer["digest"]
                .as_u64()
                .unwrap_or_else(|| panic!("{name}: {answer}")),
        );
        assert_eq!(
            scratch.files(),
            1,
            "{name}: the files stay until the rival ends"
        );
        rival.quit();
    }
    assert!(
        digests.len() >= 3 && digests.iter().all(|digest| *digest == digests[0]),
        "{digests:?}"
    );
}

#[test]
fn a_library_that_is_not_there_is_status_two_and_says_what_to_install() {
    let scratch = Scratch::new("absent");
    let Output {
        status,
        stdout,
        stderr,
    } = command(&scratch.0)
        .args(["--library", "libpmemobj-of-nowhere.so.1"])
        .stdin(Stdio::null())
        .output()
        .expect("the child starts");
    assert_eq!(status.code(), Some(2));
    assert!(stdout.is_empty());
    let said = String::from_utf8_lossy(&stderr);
    assert!(said.starts_with("libpmemobj-of-nowhere.so.1 not found: apt-get install libpmemobj1"));
}

#[test]
fn a_foreign_setting_of_the_pmdk_does_not_reach_the_library() {
    let scratch = Scratch::new("environment");
    let mut command = command(&scratch.0);
    // Each would end the child if it came through: the pool would not be taken for memory, or a setting that does not
    // exist would be refused when the pool is made.
    command
        .env("PMEM_IS_PMEM_FORCE", "0")
        .env("PMEMOBJ_CONF", "no.such.setting=1");
    let output = command
        .stdin(Stdio::null())
        .output()
        .expect("the child starts");
    if output.status.code() == Some(2) {
        println!("skipped: libpmemobj.so.1 is not installed");
        return;
    }
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
