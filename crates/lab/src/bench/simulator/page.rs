//! The page about how fast the machine is simulated, with the bars that it has to meet.

use core::fmt::Write as _;

use super::rate::Rate;
use super::{SimulatorOptions, mechanisms};
use crate::bench::bars::{Bar, NONE};
use crate::bench::document::{misses, table};
use crate::bench::machine::Machine;

const HEAD: &str = "\
# How fast machines are simulated

Written by `firn bench --machine --write`; do not edit it, measure again:

```sh
cargo build --release -p firn
target/release/firn bench --machine --write docs/machine-performance.md
```

Figures are millions of memory operations (loads, stores, write-backs, fences; requests where stated) that the
simulated machine executes in a second of one core of the host.
";

const NOTES: &str = "\
## How to read it

- Time is CPU time of the thread, the median over blocks. Every round runs a block of each pattern, and a
  mechanism's share is computed round by round. The host is virtual and shared: a neighbour on the other hyperthread of
  a core makes everything slower by a half and more. Before and after each block the host runs the same chains of
  operations in registers; a block is *undisturbed* if they took at most a tenth longer than the fastest. If there are
  at least three such blocks, the bar applies to their median, else to that of all blocks.
- One access of four is a store; loads depend on each other (`Overlap::Chain`). Drawing a random address is part of
  the time.
- *The mix* draws 95, 4, 0.9 and 0.1 percent of its addresses from working sets of 16 KiB, 128 KiB, 1 MiB and 512
  MiB. FFCCD's machine has two levels of cache.
- *With data images*, memory has content, twice: what the program sees, and what a power failure leaves. Patterns
  without them simulate time alone.
- *Requests* go straight to the memory controller, as a trace's do, alternating between both devices, 32 in flight at
  a time; a quarter are writes. `misses`, among all figures, is a core whose accesses all miss, so that each request
  comes after translation and all caches.
- *Lines moved*: every 32nd access copies a line and writes it back, with `relocate` if the mechanism has it, otherwise
  with loads and stores. If there is `checklookup`, every eighth access calls it. *The heap with a list* is
  `firn simulate` as a whole, with a program that compacts its pool as it runs (`--driver program`); it includes the
  heap's own computation.
";

const PEERS_NOTE: &str = "\
## Published figures of others

**Not directly comparable.** These simulators execute programs and model out-of-order cores. Firn's machine has
in-order cores and gets memory operations from the heap, with the number of instructions between them. The others
count instructions, of which about a third access memory, and ran on other hosts. Compare orders of magnitude only.
";

/// Name, what is modelled, how fast, and the source.
const PEERS: [[&str; 4]; 6] = [
    [
        "gem5",
        "a full system, out-of-order cores",
        "0.1 to 0.2 M instructions/s",
        "Sandberg, Hagersten, Black-Schaffer, IISWC 2015: about 0.1 for typical full-system simulators of such cores; \
         up to 0.2 is commonly reported of gem5",
    ],
    [
        "Sniper",
        "out-of-order cores, by intervals between misses",
        "several M instructions/s",
        "its authors: \"up to several MIPS\", all host cores together",
    ],
    [
        "zsim, simple cores",
        "an instruction a cycle, caches, memory",
        "94 M instructions/s a host core",
        "Sanchez and Kozyrakis, ISCA 2013: up to 1,500 on 16 host cores",
    ],
    [
        "zsim, out-of-order cores",
        "the same with detailed cores",
        "19 M instructions/s a host core",
        "Sanchez and Kozyrakis, ISCA 2013: up to 300 on 16 host cores",
    ],
    [
        "ChampSim",
        "out-of-order cores, driven by traces",
        "0.03 to 0.05 M instructions/s",
        "its users' logs, such as ChampSim issue 176: four cores, 400 M instructions in 2 h 6 min",
    ],
    [
        "ramulator2",
        "a DRAM controller with every command's timing",
        "0.4 to 0.7 M requests/s",
        "measured by us, once, on another virtual machine",
    ],
];

const NEIGHBOURS: &str = "a neighbour shared the core nearly all the time, see *undisturbed*";
const SIMULATION: &str =
    "what limits it is in docs/decisions/simulated-machine.md, under *What limits the bars*";

pub(super) fn page(host: &Machine, options: &SimulatorOptions, rates: &[Rate]) -> String {
    let mut page = HEAD.to_owned();
    page.push('\n');
    let rows = [
        (
            "host's processor",
            format!("{}, {} cores, virtual and shared", host.cpu, host.cores),
        ),
        ("kernel", host.kernel.clone()),
        ("commit", format!("`{}`", host.commit)),
        ("date", host.date.clone()),
        ("blocks", options.blocks.to_string()),
        ("simulated machine", format!("`{}`", options.machine)),
    ];
    let rows = rows.map(|(what, value)| vec![what.to_owned(), value]);
    table(&mut page, &["", ""], rows);
    page.push_str("\n## Bars\n\n");
    let bars: Vec<Bar> = rates.iter().filter_map(bar).collect();
    let columns = ["what", "M operations/s", "share", "bar", ""];
    table(&mut page, &columns, bars.iter().map(cells));
    misses(&mut page, &bars);
    page.push('\n');
    page.push_str(NOTES);
    page.push('\n');
    page.push_str(PEERS_NOTE);
    page.push('\n');
    let columns = ["", "what it models", "speed", "source"];
    let peers = PEERS.iter().map(|row| row.map(str::to_owned).to_vec());
    table(&mut page, &columns, peers);
    page.push_str("\n## Mechanisms\n\n");
    for spec in mechanisms() {
        // Writing to a string does not fail.
        let _ = writeln!(page, "- `{}`: {}", spec.name, spec.about);
    }
    page.push_str("\n## All figures\n\n");
    let columns = [
        "pattern",
        "median",
        "min to max",
        "undisturbed",
        "blocks undisturbed",
        "M operations a block",
    ];
    table(&mut page, &columns, rates.iter().map(row));
    page
}

/// The bar of a rate, if it has one.
fn bar(rate: &Rate) -> Option<Bar> {
    let met = rate.met?;
    let figure = format!("{:.1}", rate.decisive());
    let wanted = match (&rate.control, rate.bar) {
        (Some(control), _) => format!("{} of `{}`", control.least, control.name),
        (None, Some(bar)) => bar.to_string(),
        (None, None) => NONE.to_owned(),
    };
    let share = rate
        .control
        .as_ref()
        .map(|control| format!("{:.2}", control.share));
    Some(Bar {
        ratio: share.unwrap_or_else(|| NONE.to_owned()),
        reason: if rate.is_disturbed() {
            NEIGHBOURS
        } else {
            SIMULATION
        },
        ..Bar::ours(
            format!("{} (`{}`)", rate.what, rate.name),
            figure,
            wanted,
            met,
        )
    })
}

fn cells(bar: &Bar) -> Vec<String> {
    let cells = [&bar.what, &bar.firn, &bar.ratio, &bar.bar];
    let mut cells: Vec<String> = cells.map(String::clone).into();
    cells.push(bar.verdict.to_owned());
    cells
}

fn row(rate: &Rate) -> Vec<String> {
    let quiet = rate.undisturbed;
    let of = |text: Option<String>| text.unwrap_or_else(|| NONE.to_owned());
    let spread = rate.millions_per_s;
    vec![
        format!("`{}`", rate.name),
        format!("{:.1}", spread.median),
        format!("{:.1} to {:.1}", spread.min, spread.max),
        of(quiet.map(|quiet| format!("{:.1}", quiet.millions_per_s))),
        format!(
            "{} of {}",
            quiet.map_or(0, |quiet| quiet.blocks),
            rate.blocks
        ),
        format!("{:.2}", rate.operations as f64 / 1e6),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::rate::{Control, Undisturbed};
    use super::*;
    use crate::Spread;
    use crate::bench::bars::MISSED;

    fn rate(name: &str, figure: f64, bar: Option<f64>) -> Rate {
        Rate {
            name: name.to_owned(),
            what: format!("about {name}"),
            millions_per_s: Spread {
                min: figure,
                median: figure,
                max: figure,
            },
            undisturbed: Some(Undisturbed {
                blocks: 5,
                millions_per_s: figure,
            }),
            operations: 1_000_000,
            blocks: 5,
            bar,
            control: None,
            met: bar.map(|bar| figure >= bar),
        }
    }

    #[test]
    fn bars_say_whether_they_are_met_and_why_not() {
        let host = Machine {
            cpu: "a processor".into(),
            cores: 2,
            kernel: "a kernel".into(),
            commit: "1234567".into(),
            date: "a day".into(),
        };
        let options = SimulatorOptions {
            machine: "ffccd".into(),
            only: Vec::new(),
            blocks: 5,
            n: 1,
        };
        let kept = Rate {
            control: Some(Control {
                name: "fast",
                share: 0.75,
                least: 0.5,
            }),
            met: Some(true),
            ..rate("kept", 60.0, None)
        };
        let rates = [
            rate("fast", 80.0, Some(70.0)),
            rate("slow", 6.0, Some(15.0)),
            kept,
            rate("shown", 3.0, None),
        ];
        let page = page(&host, &options, &rates);
        let line = |start: &str| {
            let mut lines = page.lines();
            lines.find(|line| line.starts_with(start)).unwrap()
        };
        assert!(line("| about fast (`fast`) | 80.0 |").ends_with("| 70 | met |"));
        assert!(line("| about slow (`slow`) | 6.0 |").ends_with(&format!("| {MISSED} |")));
        assert!(line("| about kept").contains("| 0.75 | 0.5 of `fast` | met |"));
        assert!(!page.contains("| about shown"), "it has no bar");
        assert!(line("| `shown`").contains("3.0 to 3.0"));
        let missed = page.find("Missed; what limits it").unwrap();
        assert!(page[missed..].contains("- about slow"));
        assert!(page.contains("in-order cores"));
    }
}
