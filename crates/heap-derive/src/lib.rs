//! Derive macros of the heap: stored types, nested structures of numbers, checked enums.
//!
//! The macros describe a type and convert it field by field; they never look at its bytes as a whole, so padding is not
//! stored and no generated code is unsafe. Types that a pool cannot hold are refused where they are written, with an
//! alternative to write instead. Facts that only the compiler knows (which type a name stands for) are left to the
//! bounds of the traits.
//!
//! ```text
//! lib         the macros             attributes  #[repr] and #[firn]
//! structure   a struct, parsed       refusals    types that no pool can hold
//! stored      impl Stored            plain       impl Plain        checkable   impl Checkable
//! ```
#![forbid(unsafe_code)]

mod attributes;
mod checkable;
mod plain;
mod refusals;
mod stored;
mod structure;

use proc_macro::TokenStream;
use syn::{DeriveInput, Error, Result, parse_macro_input};

/// Makes a structure a type of objects: implements `Stored`, and makes a constant for each field.
///
/// The structure has named fields, `#[repr(C)]` and no parameters. A field `next` of a structure `Node` is called
/// `Node::NEXT` where objects are read and changed; the constant has the field's visibility.
///
/// `#[firn(name = "...", version = 2)]` sets the type's name and version in the pool's registry. By default the name is
/// the structure's and the version is 1. Two types of one pool need two names.
#[proc_macro_derive(Stored, attributes(firn))]
pub fn derive_stored(input: TokenStream) -> TokenStream {
    expand(parse_macro_input!(input), stored::expand)
}

/// Makes a structure of numbers a value that fields may hold: implements `Value` and `Plain`.
///
/// The structure has named fields that are `Plain` themselves, `#[repr(C)]` and no parameters. `#[firn(name = "...")]`
/// sets its name in the pool's registry.
#[proc_macro_derive(Plain, attributes(firn))]
pub fn derive_plain(input: TokenStream) -> TokenStream {
    expand(parse_macro_input!(input), plain::expand)
}

/// Lets an enum without fields be stored as `Checked`: implements `Checkable` by discriminants.
///
/// The pool holds the discriminants. Write them out if the enum may change: a variant inserted between two others
/// renumbers those after it.
#[proc_macro_derive(Checkable)]
pub fn derive_checkable(input: TokenStream) -> TokenStream {
    expand(parse_macro_input!(input), checkable::expand)
}

fn expand(
    input: DeriveInput,
    with: fn(&DeriveInput) -> Result<proc_macro2::TokenStream>,
) -> TokenStream {
    with(&input)
        .unwrap_or_else(Error::into_compile_error)
        .into()
}
