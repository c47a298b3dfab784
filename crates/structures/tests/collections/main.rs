//! Do the collections do what the standard library's do, on threads, in full pools and where a pool is damaged?

#[path = "../support/mod.rs"]
mod support;

mod bounded;
mod damage;
mod entries;
mod full_pool;
mod list_model;
mod map_model;
mod map_soak;
mod shared;
mod standard_models;
mod threads;
mod trees;
