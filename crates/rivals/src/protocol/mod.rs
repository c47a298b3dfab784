//! The lines that go over standard input and output, one JSON object each.
//!
//! | line in | line out |
//! |---|---|
//! | (at start) | [`Hello`] |
//! | `{"op":"tx_snapshot_64","count":20000,"threads":1}` | [`Timed`] |
//! | `{"op":"count_fences","of":"tx_snapshot_64"}`, or of `list_insert` and the like | [`Counted`] |
//! | `{"op":"phases","structure":"list","n":100000,"seed":1}` | [`Phased`] |
//! | `{"op":"defrag","structure":"avl","n":100000,"seed":1}` | [`Defragmented`] |
//! | `{"op":"two_threads","structure":"list","n":100000}` | [`SharedByTwo`] |
//! | `{"op":"durable_insert","count":300,"batch":1,"threads":1}` | [`Inserted`] |
//! | `{"op":"durable_reopen"}` | [`Reopened`] |
//! | `{"op":"durable_volume","n":200000,"batch":100,"seed":1}` | [`Volume`] |
//! | `{"op":"quit"}` | (the process ends) |
//! | anything else | [`Complaint`], and the next line is read |

mod answers;
mod request;

pub use answers::{
    Answer, Changes, Complaint, Counted, Defragmented, Fences, Hello, Inserted, Phased, Reopened,
    SharedByTwo, Timed, Volume,
};
pub use request::{Insertions, Line, Request};
