//! `impl Checkable`.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Data, DeriveInput, Error, Fields, Result};

use crate::structure::Errors;

pub(crate) fn expand(input: &DeriveInput) -> Result<TokenStream> {
    let owner = &input.ident;
    let refuse = |message: &str| Err(Error::new(owner.span(), message));
    let Data::Enum(data) = &input.data else {
        return refuse(
            "`Checkable` is for enums; a structure is `#[derive(Stored)]` or `#[derive(Plain)]`",
        );
    };
    if data.variants.is_empty() {
        return refuse("an enum without variants has no value that could be stored");
    }
    if !input.generics.params.is_empty() {
        return Err(Error::new_spanned(
            &input.generics,
            "a stored enum is a number and cannot have parameters",
        ));
    }
    let mut errors = Errors::default();
    for variant in &data.variants {
        if !matches!(variant.fields, Fields::Unit) {
            errors.note::<()>(Err(Error::new_spanned(
                variant,
                "a stored enum is a number, so its variants hold nothing: store what this one \
                 holds in fields beside it",
            )));
        }
    }
    errors.end()?;
    let variants: Vec<_> = data.variants.iter().map(|v| &v.ident).collect();
    let limit = format!(
        "the numbers of `{owner}` have to lie between 0 and {}",
        u32::MAX
    );
    Ok(quote! {
        #[automatically_derived]
        impl ::firn_heap::Checkable for #owner {
            #[inline]
            fn to_bits(self) -> u32 {
                self as u32
            }

            #[inline]
            fn from_bits(bits: u32) -> ::core::option::Option<Self> {
                #(if bits == #owner::#variants as u32 {
                    return ::core::option::Option::Some(#owner::#variants);
                })*
                ::core::option::Option::None
            }
        }

        const _: () = {
            #(assert!(
                #owner::#variants as i128 >= 0 && #owner::#variants as i128 <= u32::MAX as i128,
                #limit
            );)*
        };
    })
}
