//! The structures' section of the page that tells all figures.

use super::super::document::{bar, misses, table};
use super::super::figure::Figure;
use super::bars::bars;

const NOTES: &str = "
- Each operation is a transaction, or a commit of a database, durable on return. Inserting and deleting
  are means over both times that the phases do it; the collector runs in a thread of its own, whose time
  is not the program's, and what the program waits or helps for it is.
- The rivals' structures were written for this bench, as PMDK's examples are: each changed range of a
  node is snapshotted once, values lie in the nodes. `linked_list` finds its elements by an array of
  references in the pool, the rival's by one in memory that it need not keep.
- The rival finds without any lock, so Firn's figure beside it is of 100 objects found in one guard, by one
  reader of the structure, one after the other. Against databases, which begin a transaction for each, it is
  a guard each. Where it says so Firn is asked for the 100 at once (`get_each`), so that it waits for
  memory for some of them together; the rival's structures find one at a time, as before.
- Before gets are timed both empty the processor's caches; both find each object once and copy its value out,
  all of it, though no more than its end is compared.
- The mean ratio is taken over 600 looks at the pool, the rival's over 60: bytes of 2 MiB pages that hold
  an object, over bytes that the program asked for.
- Beside databases the file's size counts, so there the collector runs from 1.2 to 1.1
  (`CollectorOptions::trigger`, `CollectOptions::target`), and from 1.5 to 1.25 everywhere else.
- The payload of a file are 8 bytes of key and 128 of value for each entry that is left.
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
