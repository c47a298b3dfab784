//! `#[repr(...)]` and `#[firn(...)]`.

use proc_macro2::Span;
use quote::ToTokens;
use syn::{Attribute, Error, Expr, Ident, LitInt, LitStr, Result};

/// Longest name that the registry holds, in bytes: `MAX_NAME_BYTES` of the format.
pub(crate) const MAX_NAME_BYTES: usize = 255;
/// Names that the heap gives to its own types.
const BUILT_IN: [&str; 3] = ["Bytes", "Refs", "Raw"];

/// A type's name and version in the registry.
pub(crate) struct Naming {
    pub(crate) name: String,
    pub(crate) version: u32,
}

impl Naming {
    /// The name and version of `ident`, as its attributes say.
    pub(crate) fn parse(ident: &Ident, attributes: &[Attribute]) -> Result<Self> {
        let (mut name, mut version) = (None, None);
        for attribute in attributes.iter().filter(|a| a.path().is_ident("firn")) {
            attribute.parse_nested_meta(|meta| {
                if meta.path.is_ident("name") && name.is_none() {
                    name = Some(meta.value()?.parse::<LitStr>()?);
                    Ok(())
                } else if meta.path.is_ident("version") && version.is_none() {
                    version = Some(meta.value()?.parse::<LitInt>()?);
                    Ok(())
                } else {
                    Err(meta.error("expected `name = \"...\"` or `version = 1`, each at most once"))
                }
            })?;
        }
        let (text, span) = match name {
            Some(name) => (name.value(), name.span()),
            None => (crate::structure::plain_name(ident), ident.span()),
        };
        check_name(&text, span)?;
        let version = match version {
            Some(version) => parse_version(&version)?,
            None => 1,
        };
        Ok(Self {
            name: text,
            version,
        })
    }
}

fn check_name(name: &str, span: Span) -> Result<()> {
    if BUILT_IN.contains(&name) {
        let message = format!(
            "`{name}` is a type of the heap itself: choose a name with `#[firn(name = \"...\")]`"
        );
        return Err(Error::new(span, message));
    }
    if name.is_empty() || name.len() > MAX_NAME_BYTES {
        let message = format!("the name of a type has 1 to {MAX_NAME_BYTES} bytes");
        return Err(Error::new(span, message));
    }
    Ok(())
}

fn parse_version(version: &LitInt) -> Result<u32> {
    match version.base10_parse() {
        Ok(number) if number > 0 && version.suffix().is_empty() => Ok(number),
        _ => Err(Error::new(
            version.span(),
            "a version is a number from 1, without a suffix",
        )),
    }
}

/// Checks that the layout is that of C, neither packed nor aligned beyond its fields.
pub(crate) fn check_repr(ident: &Ident, attributes: &[Attribute]) -> Result<()> {
    let mut is_c = false;
    for attribute in attributes.iter().filter(|a| a.path().is_ident("repr")) {
        attribute.parse_nested_meta(|meta| {
            if meta.path.is_ident("C") {
                is_c = true;
                return Ok(());
            }
            // `align(8)` and `packed(2)` carry an argument that must be skipped.
            if meta.input.peek(syn::token::Paren) {
                let argument;
                syn::parenthesized!(argument in meta.input);
                argument.parse::<Expr>()?;
            }
            let hint = meta.path.to_token_stream();
            Err(meta.error(format!(
                "a pool lays fields out as C does: remove `{hint}`, leave `#[repr(C)]`"
            )))
        })?;
    }
    if is_c {
        return Ok(());
    }
    let message = format!(
        "the layout of `{ident}` has to be fixed, since a pool outlives the program: put \
         `#[repr(C)]` on it"
    );
    Err(Error::new(ident.span(), message))
}

/// Checks that `#[firn]` stands only where the two macros read it.
pub(crate) fn check_field(attributes: &[Attribute]) -> Result<()> {
    match attributes.iter().find(|a| a.path().is_ident("firn")) {
        None => Ok(()),
        Some(a) => Err(Error::new_spanned(
            a,
            "`#[firn]` belongs on the structure; fields have none",
        )),
    }
}
