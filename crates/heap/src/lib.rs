//! The heap: typed objects in a pool that survive crashes, with transactions of one fence.
//!
//! A [`Pool`] lives on a medium. A thread opens a [`Session`] on it and works in *operations*: a
//! [`Guard`] to read, a transaction ([`Session::transaction`]) to change. Objects are read through a
//! [`View`] and cannot outlive their operation; between operations a thread is quiescent, which is
//! when the phases of the collector change.
//!
//! ```text
//! pool      create, open, close, options           recovery   opening after a crash
//! session   a thread's lane, slots and counters    trace      which objects are reachable
//! tx        transactions, redo and undo logs       check      whether every invariant holds
//! alloc     frames and slots                       types      the registry
//! view, unbarriered    how objects are read, with and without the read barrier
//! untyped   objects of types that are described at run time
//! work      how many instructions all this takes, for media that count
//! ```
#![deny(unsafe_code)]

mod alloc;
mod check;
mod clone;
mod close;
pub mod collector;
mod copy;
mod descend;
mod digest;
mod error;
mod exchange;
mod finding;
mod handles;
mod inner;
mod layout;
mod locks;
mod migrate;
mod object;
mod occupancy;
mod operation;
mod options;
mod order;
mod pool;
mod recovery;
mod registration;
mod relocation;
mod room;
mod roots;
mod safepoint;
mod salvage;
mod session;
mod shape;
mod stat_shard;
mod statistics;
pub mod steps;
mod stops;
mod stored;
mod superblock;
mod trace;
mod tx;
mod type_cache;
mod types;
mod unbarriered;
mod untyped;
mod value;
mod view;
mod walk;
mod work;

pub use check::Traced;
pub use copy::{CopyError, CopyIdentity, CopyProgress};
pub use error::{Error, OpenError};
pub use finding::Finding;
pub use handles::Handle;
pub use locks::ReadLock;
pub use object::{KnownType, Obj};
pub use occupancy::{FrameContent, FrameOccupancy, Occupancy};
pub use options::PoolOptions;
pub use pool::Pool;
pub use roots::{RootHandle, RootKey, RootName};
pub use salvage::Salvaged;
pub use session::{Guard, Session};
pub use statistics::{ClassStatistics, CollectorStatistics, Statistics, TypeStatistics};
pub use stored::{Bytes, FieldDescriptor, Raw, Ref, Refs, Stored, Target, TypeDescriptor};
pub use superblock::{stored_layout, stored_limit};
pub use tx::gather::{Gathering, Moved};
pub use tx::raw::{OpenRawTx, RawTx};
pub use tx::raw_guard::RawGuard;
pub use tx::{OpenTransaction, Savepoint, Tx};
pub use unbarriered::{Unbarriered, UnbarrieredGuard, UnbarrieredReading};
pub use untyped::{Layout, Untyped};
pub use value::{Checkable, Checked, Field, Plain, Sink, Source, Value};
pub use view::{Reading, View};

pub use firn_heap_derive::{Checkable, Plain, Stored};

pub use firn_format::header::TypeId;
pub use firn_format::registry::{FieldKind, FieldRecord, TypeRecord};
pub use firn_format::superblock::{LogKind, PoolKind};
