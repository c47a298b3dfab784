//! Long transactions: the cost of an insertion in a transaction of many, over one in a transaction of few.

use firn_heap::Error;
use firn_mapped::HugePages;
use firn_structures::HashMap;
use firn_tools::Progress;

use super::bars::{Bar, find};
use super::clock::{Moment, Times};
use super::figure::{Figure, Subject};
use super::{BenchError, Options, pools};

/// The name of this part of the bench.
pub(super) const SECTION: &str = "long";
const ROOT: &str = "map";
/// Operations, with their insertions, and the number of these in each transaction.
const OPERATIONS: [(&str, u64, u64); 4] = [
    ("long_1m_by_1000", 1_000_000, 1000),
    ("long_100k", 100_000, 100_000),
    ("long_300k", 300_000, 300_000),
    ("long_1m", 1_000_000, 1_000_000),
];
/// Transactions of each kind at most; their median counts.
const MOST_BLOCKS: usize = 3;
/// Most cost of an insertion in the longest transaction, whose stores no cache holds, over one in a thousand's.
const MOST_TIMES: f64 = 3.0;
const HOW: &str = "insertions into a hash map, keys and values of 8 bytes, in a pool that grows";

/// Names of all operations.
pub(super) fn names() -> impl Iterator<Item = String> {
    OPERATIONS.iter().map(|(name, ..)| (*name).to_owned())
}

/// Inserts `count` entries into a new pool, `together` of them in each transaction.
fn insert(options: &Options, count: u64, together: u64) -> Result<Times, BenchError> {
    let pool = pools::growing(&options.memory_dir, options.domain, HugePages::Ask)?;
    let mut session = pool.session()?;
    session.transaction(|tx| HashMap::create(tx, ROOT).map(drop))?;
    let start = Moment::now();
    for first in (0..count).step_by(together as usize) {
        session.transaction(|tx| {
            let mut map = HashMap::open(tx, ROOT)?;
            for number in first..first + together {
                let key = number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes();
                map.insert(&key, &number.to_le_bytes())?;
            }
            Ok::<_, Error>(())
        })?;
    }
    Ok(start.elapsed() / count as f64)
}

/// Measures the selected operations, in turns.
pub(super) fn measure(
    options: &Options,
    progress: &mut dyn Progress,
) -> Result<Vec<Figure>, BenchError> {
    let wanted = |name: &str| options.wants(SECTION, name);
    let wanted: Vec<_> = OPERATIONS
        .iter()
        .filter(|(name, ..)| wanted(name))
        .collect();
    let mut blocks = vec![Vec::new(); wanted.len()];
    let rounds = options.blocks.min(MOST_BLOCKS);
    progress.begin("long transactions", Some((rounds * wanted.len()) as u64));
    for _ in 0..rounds {
        for ((_, count, together), blocks) in wanted.iter().zip(&mut blocks) {
            blocks.push(insert(options, *count, *together)?);
            progress.advance(1);
        }
    }
    progress.end();
    let figure = |((name, count, _), blocks): (&&(&'static str, u64, u64), &Vec<Times>)| {
        let subject = Subject {
            system: "firn",
            structure: SECTION,
            operation: name,
            n: *count,
            threads: 1,
            how: HOW,
        };
        Figure::of(subject, blocks)
    };
    Ok(wanted.iter().zip(&blocks).map(figure).collect())
}

/// The bars they have to meet.
pub(super) fn bars(figures: &[Figure]) -> Vec<Bar> {
    let [short, long] = ["long_1m_by_1000", "long_1m"]
        .map(|name| find(figures, true, name, 1).map(|f| f.ns_cpu_per_op));
    let (Some(short), Some(long)) = (short, long) else {
        return Vec::new();
    };
    let times = long / short;
    vec![Bar::ours(
        "an insertion in a transaction of a million, over one in transactions of a thousand"
            .to_owned(),
        format!("{times:.2} ({long:.0} over {short:.0} ns)"),
        format!("{MOST_TIMES:.1}"),
        times <= MOST_TIMES,
    )]
}
