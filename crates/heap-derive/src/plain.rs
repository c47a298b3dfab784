//! `impl Plain`, and the `impl Value` that it needs.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{DeriveInput, Error, Result};

use crate::stored::{decode, encode};
use crate::structure::{Errors, Field, Structure};

pub(crate) fn expand(input: &DeriveInput) -> Result<TokenStream> {
    let structure = Structure::parse(input, "Plain")?;
    check_no_references(&structure)?;
    let owner = structure.ident;
    let name = &structure.naming.name;
    let (encode, decode) = (encode(&structure), decode(&structure));
    let asserts = structure.layout_asserts();
    let plain_fields = structure
        .fields
        .iter()
        .map(|Field { ty, .. }| quote_spanned!(ty.span()=> is_plain::<#ty>();));
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
    Ok(quote! {
        #[automatically_derived]
        impl ::firn_heap::Value for #owner {
            const SIZE: u32 = ::core::mem::size_of::<#owner>() as u32;
            const ALIGN: u32 = ::core::mem::align_of::<#owner>() as u32;
            const KIND: ::firn_heap::FieldKind = ::firn_heap::FieldKind::Nested;
            const TARGET: &'static str = #name;
            const LAYOUT: u64 = ::firn_heap::FieldDescriptor::digest(&[#(#descriptors),*]);

            #[inline]
            fn decode<__S: ::firn_heap::Source + ?Sized>(source: &__S, at: u32) -> Self {
                #decode
            }

            #[inline]
            fn encode<__S: ::firn_heap::Sink + ?Sized>(&self, sink: &mut __S, at: u32) {
                #encode
            }
        }

        #[automatically_derived]
        impl ::firn_heap::Plain for #owner {}

        const _: () = {
            const fn is_plain<__T: ::firn_heap::Plain>() {}
            #(#plain_fields)*
        };

        #asserts
    })
}

/// Refuses types that are written `Ref<T>`; the bound on `Plain` refuses other names for them.
fn check_no_references(structure: &Structure<'_>) -> Result<()> {
    let mut errors = Errors::default();
    for field in structure.fields.iter().filter(|f| f.is_reference) {
        errors.note::<()>(Err(Error::new_spanned(
            &field.ty,
            "a nested structure holds no references, since a trace looks for them in the fields of \
             objects alone: put this field into the `Stored` structure itself, or make an object of \
             the nested one",
        )));
    }
    errors.end()
}
