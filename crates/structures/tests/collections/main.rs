//! Do the collections behave like the standard library's, also with threads, in full pools and in damaged ones?

#[path = "../support/mod.rs"]
mod support;

#[path = "../../../mapped/tests/support/small_file_system.rs"]
mod small_file_system;

mod bounded;
mod damage;
mod entries;
mod full_disks;
mod full_pool;
mod list_model;
mod logged;
mod logged_disks;
mod logged_memory;
mod map_model;
mod map_soak;
mod power_cut;
mod shared;
mod standard_models;
mod threads;
mod trees;
