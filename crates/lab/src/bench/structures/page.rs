//! The structures' section of the page with all figures.

use super::super::document::{bar, misses, table};
use super::super::figure::Figure;
use super::bars::bars;

const NOTES: &str = "
- Each operation is one transaction, or one commit of a database, durable on return. Inserting and deleting
  are means over both times that the phases do it. The collector runs in its own thread, whose time is not
  counted; the program's waiting and helping for the collector is.
- The rivals' structures were written for this bench in the style of PMDK's examples: each changed range of a
  node is snapshotted once, and values lie in the nodes. `linked_list` finds its elements by an array of
  references in the pool, the rival's by one in memory, which it need not persist.
- The rival searches without a lock. Firn's figure beside it is for 100 objects found in one guard, by one
  reader of the structure, one after the other. Against databases, which begin a transaction for each object, Firn
  uses one guard for each. In rows *100 at once* Firn looks up the 100 together (`get_each`), so that some of their
  cache misses overlap; the rival's structures still find one at a time.
- Before gets are timed, both empty the processor's caches. Both find each object once and copy its whole value
  out, but compare only its end.
- The mean ratio is over 600 samples of the pool, 60 for the rival: bytes of 2 MiB pages that hold
  an object, over bytes that the program asked for.
- Against databases the file's size counts, so there the collector runs from 1.2 to 1.1
  (`CollectorOptions::trigger`, `CollectOptions::target`), and from 1.5 to 1.25 everywhere else.
- The payload of a file is 8 bytes of key and 128 of value for each remaining entry.
";

/// Adds the section, if there are figures of structures.
pub(in super::super) fn section(page: &mut String, figures: &[Figure]) {
    let bars = bars(figures);
    if bars.is_empty() {
        return;
    }
    page.push_str("## Structures\n\n");
    let columns = ["what", "rival", "Firn", "ratio", "bar", ""];
    table(page, &columns, bars.iter().map(bar));
    misses(page, &bars);
    page.push_str(NOTES);
    page.push('\n');
}
