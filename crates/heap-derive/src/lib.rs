//! Derive macros of the heap: stored types, nested structures of numbers, checked enums.
//!
//! The macros describe a type and convert it field by field; they never look at its bytes as a
//! whole, so padding is not stored and no generated code is unsafe. What a pool cannot hold is
//! refused where it is written, with what to write instead; what only the compiler can know (which
//! type a name stands for) is left to the bounds of the traits.
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

/// Makes a structure a type of objects: implements `Stored`, and makes one constant a field.
///
/// The structure has named fields, `#[repr(C)]` and no parameters. A field `next` of a structure
/// `Node` is named `Node::NEXT` where objects are read and changed; the constant is visible where
/// the field is.
///
/// `#[firn(name = "...", version = 2)]` says what the registry of the pool calls the type. The name
/// is the structure's and the version 1 if it does not. Two types of one pool need two names.
#[proc_macro_derive(Stored, attributes(firn))]
pub fn derive_stored(input: TokenStream) -> TokenStream {
    expand(parse_macro_input!(input), stored::expand)
}

/// Makes a structure of numbers a value that fields may hold: implements `Value` and `Plain`.
///
/// The structure has named fields that are `Plain` themselves, `#[repr(C)]` and no parameters.
/// `#[firn(name = "...")]` says what the registry of the pool calls it.
#[proc_macro_derive(Plain, attributes(firn))]
pub fn derive_plain(input: TokenStream) -> TokenStream {
    expand(parse_macro_input!(input), plain::expand)
}

/// Lets an enum without fields be stored as `Checked`: implements `Checkable` by discriminants.
///
/// The discriminants are what the pool holds. Write them out if the enum may change: a variant put
/// between two others renumbers those after it.
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
