//! `impl Stored`.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{DeriveInput, Result};

use crate::structure::{Field, Structure};

pub(crate) fn expand(input: &DeriveInput) -> Result<TokenStream> {
    let structure = Structure::parse(input, "Stored")?;
    let constants = constants(&structure);
    let implementation = implementation(&structure);
    let asserts = structure.layout_asserts();
    Ok(quote! {
        #constants
        #implementation
        #asserts
    })
}

/// A constant for each field.
fn constants(structure: &Structure<'_>) -> TokenStream {
    let owner = structure.ident;
    let constants = structure.fields.iter().map(|field| {
        let Field {
            ident,
            visibility,
            docs,
            ty,
            ..
        } = field;
        let constant = field.constant();
        let doc = format!("The field `{}` of a `{owner}` in a pool.", field.name());
        let gap = (!docs.is_empty()).then(|| quote!(#[doc = ""]));
        quote_spanned! {ty.span()=>
            #[doc = #doc]
            #gap
            #(#docs)*
            #[allow(dead_code)]
            #visibility const #constant: ::firn_heap::Field<#owner, #ty> =
                ::firn_heap::Field::at_offset(::core::mem::offset_of!(#owner, #ident) as u32);
        }
    });
    quote! {
        #[automatically_derived]
        impl #owner {
            #(#constants)*
        }
    }
}

fn implementation(structure: &Structure<'_>) -> TokenStream {
    let owner = structure.ident;
    let (name, version) = (&structure.naming.name, structure.naming.version);
    let descriptors = structure.fields.iter().map(|field| {
        let (ident, ty, name) = (field.ident, &field.ty, field.name());
        quote_spanned! {ty.span()=>
            ::firn_heap::FieldDescriptor {
                name: #name,
                kind: <#ty as ::firn_heap::Value>::KIND,
                offset: ::core::mem::offset_of!(#owner, #ident) as u32,
                size: <#ty as ::firn_heap::Value>::ELEMENT_SIZE,
                count: <#ty as ::firn_heap::Value>::COUNT,
                target: <#ty as ::firn_heap::Value>::TARGET,
                layout: <#ty as ::firn_heap::Value>::LAYOUT,
                leads_to: <#ty as ::firn_heap::Value>::leads_to,
            }
        }
    });
    let encode = encode(structure);
    let decode = decode(structure);
    quote! {
        #[automatically_derived]
        impl ::firn_heap::Stored for #owner {
            const TYPE_NAME: &'static str = #name;

            const DESCRIPTOR: &'static ::firn_heap::TypeDescriptor = &::firn_heap::TypeDescriptor {
                name: #name,
                version: #version,
                size: ::core::mem::size_of::<#owner>().next_multiple_of(8) as u32,
                fields: &[#(#descriptors),*],
                with: &[],
            };

            #[inline]
            fn encode<__S: ::firn_heap::Sink + ?Sized>(&self, sink: &mut __S) {
                let at = 0;
                #encode
            }

            #[inline]
            fn decode<__S: ::firn_heap::Source + ?Sized>(source: &__S) -> Self {
                let at = 0;
                #decode
            }
        }
    }
}

/// Statements that write the fields of `self` to `sink`, from byte `at` on.
pub(crate) fn encode(structure: &Structure<'_>) -> TokenStream {
    let owner = structure.ident;
    let fields = structure.fields.iter().map(|Field { ident, ty, .. }| {
        quote_spanned! {ty.span()=>
            <#ty as ::firn_heap::Value>::encode(
                &self.#ident, sink, at + ::core::mem::offset_of!(#owner, #ident) as u32,
            );
        }
    });
    quote!(let _ = (&sink, at); #(#fields)*)
}

/// An expression that reads the fields from `source`, from byte `at` on.
pub(crate) fn decode(structure: &Structure<'_>) -> TokenStream {
    let owner = structure.ident;
    let fields = structure.fields.iter().map(|Field { ident, ty, .. }| {
        quote_spanned! {ty.span()=>
            #ident: <#ty as ::firn_heap::Value>::decode(
                source, at + ::core::mem::offset_of!(#owner, #ident) as u32,
            )
        }
    });
    quote!(let _ = (source, at); Self { #(#fields),* })
}
