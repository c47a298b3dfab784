//! A structure whose layout a pool can hold.

use proc_macro2::{Group, TokenStream, TokenTree};
use quote::{ToTokens, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{Attribute, Data, DeriveInput, Error, Fields, Ident, Result, Token, Visibility};

use crate::attributes::{self, MAX_NAME_BYTES, Naming};
use crate::refusals;

/// Maximum size of a structure in bytes. It passes through the stack; larger content belongs in arrays.
const MAX_BYTES: usize = 1 << 20;

/// A structure with `#[repr(C)]` and named fields.
pub(crate) struct Structure<'a> {
    pub(crate) ident: &'a Ident,
    pub(crate) naming: Naming,
    pub(crate) fields: Vec<Field<'a>>,
}

/// A field of a [`Structure`].
pub(crate) struct Field<'a> {
    pub(crate) ident: &'a Ident,
    pub(crate) visibility: &'a Visibility,
    pub(crate) docs: Vec<&'a Attribute>,
    /// The type, with `Self` written out.
    pub(crate) ty: TokenStream,
    /// Whether the type is written `Ref<T>`, or as an array of such references.
    pub(crate) is_reference: bool,
}

impl<'a> Structure<'a> {
    /// The structure for which `trait_name` is derived, or all of its errors.
    pub(crate) fn parse(input: &'a DeriveInput, trait_name: &str) -> Result<Self> {
        let mut errors = Errors::default();
        let fields = named_fields(input, trait_name)?;
        errors.note(check_no_parameters(input, trait_name));
        errors.note(attributes::check_repr(&input.ident, &input.attrs));
        let naming = errors.note(Naming::parse(&input.ident, &input.attrs));
        for field in fields {
            errors.note(attributes::check_field(&field.attrs));
            errors.note(refusals::check(&field.ty));
        }
        let fields: Vec<_> = fields
            .iter()
            .filter_map(|field| {
                Some(Field {
                    ident: field.ident.as_ref()?,
                    visibility: &field.vis,
                    docs: docs(&field.attrs),
                    ty: write_out_self(field.ty.to_token_stream(), &input.ident),
                    is_reference: refusals::target(&field.ty).is_some(),
                })
            })
            .collect();
        errors.note(check_names(&fields));
        errors.end()?;
        match naming {
            Some(naming) => Ok(Self {
                ident: &input.ident,
                naming,
                fields,
            }),
            None => Err(Error::new(input.ident.span(), "the structure has no name")),
        }
    }

    /// Asserts that the compiler laid the fields out as the heap reads them.
    pub(crate) fn layout_asserts(&self) -> TokenStream {
        let ident = self.ident;
        let of_fields = self.fields.iter().map(|Field { ident, ty, .. }| {
            let size = format!("field `{ident}`: the Rust type and `Value` disagree on the size");
            let align =
                format!("field `{ident}`: the Rust type and `Value` disagree on the alignment");
            quote_spanned! {ty.span()=>
                assert!(
                    ::core::mem::size_of::<#ty>() == <#ty as ::firn_heap::Value>::SIZE as usize,
                    #size
                );
                assert!(
                    ::core::mem::align_of::<#ty>() == <#ty as ::firn_heap::Value>::ALIGN as usize,
                    #align
                );
            }
        });
        let limit =
            format!("`{ident}` is larger than the {MAX_BYTES} bytes that a structure may be");
        quote! {
            const _: () = {
                #(#of_fields)*
                assert!(::core::mem::size_of::<#ident>() <= #MAX_BYTES, #limit);
            };
        }
    }
}

impl Field<'_> {
    /// The name without `r#`.
    pub(crate) fn name(&self) -> String {
        plain_name(self.ident)
    }

    /// The name of the field's constant.
    pub(crate) fn constant(&self) -> Ident {
        Ident::new(&self.name().to_uppercase(), self.ident.span())
    }
}

/// An identifier's name, without the `r#` of raw ones.
pub(crate) fn plain_name(ident: &Ident) -> String {
    ident.unraw().to_string()
}

/// Errors, collected so that one build shows them all.
#[derive(Default)]
pub(crate) struct Errors(Option<Error>);

impl Errors {
    /// Records the error of a result, if there is one.
    pub(crate) fn note<T>(&mut self, result: Result<T>) -> Option<T> {
        match (result, &mut self.0) {
            (Ok(value), _) => return Some(value),
            (Err(error), Some(all)) => all.combine(error),
            (Err(error), none) => *none = Some(error),
        }
        None
    }

    /// All errors that were noted, if any.
    pub(crate) fn end(self) -> Result<()> {
        self.0.map_or(Ok(()), Err)
    }
}

fn named_fields<'a>(
    input: &'a DeriveInput,
    trait_name: &str,
) -> Result<&'a Punctuated<syn::Field, Token![,]>> {
    let refuse = |message: String| Err(Error::new(input.ident.span(), message));
    match &input.data {
        Data::Struct(data) => match &data.fields {
            Fields::Named(fields) => Ok(&fields.named),
            Fields::Unnamed(_) | Fields::Unit => refuse(format!(
                "`{trait_name}` needs names for the fields, since the registry of a pool lists \
                 them: write `struct {} {{ name: Type, ... }}`",
                input.ident
            )),
        },
        Data::Enum(_) => refuse(format!(
            "an enum has invalid bit patterns, so it is not `{trait_name}`: put \
             `#[derive(Checkable)]` on it and hold it in a field of type `Checked<{}>`",
            input.ident
        )),
        Data::Union(_) => refuse(format!(
            "a pool has to know which field is meant, so a union is not `{trait_name}`: use a \
             structure with all fields, or an array of bytes"
        )),
    }
}

fn check_no_parameters(input: &DeriveInput, trait_name: &str) -> Result<()> {
    if input.generics.params.is_empty() && input.generics.where_clause.is_none() {
        return Ok(());
    }
    let message = format!(
        "the registry of a pool lists whole types, so a structure that is `{trait_name}` has no \
         parameters: write one structure for each type that is stored"
    );
    Err(Error::new_spanned(&input.generics, message))
}

fn check_names(fields: &[Field<'_>]) -> Result<()> {
    let mut errors = Errors::default();
    for (i, field) in fields.iter().enumerate() {
        let name = field.name();
        if name.len() > MAX_NAME_BYTES {
            let message = format!("the name of a field has at most {MAX_NAME_BYTES} bytes");
            errors.note::<()>(Err(Error::new(field.ident.span(), message)));
        }
        let constant = field.constant();
        if let Some(other) = fields[..i].iter().find(|f| f.constant() == constant) {
            let message = format!(
                "the constant `{constant}` would stand for both `{}` and `{name}`: rename one",
                other.name()
            );
            errors.note::<()>(Err(Error::new(field.ident.span(), message)));
        }
    }
    errors.end()
}

fn docs(attributes: &[Attribute]) -> Vec<&Attribute> {
    attributes
        .iter()
        .filter(|a| a.path().is_ident("doc"))
        .collect()
}

/// Replaces `Self`, which has no meaning in the statics that the macros make.
fn write_out_self(tokens: TokenStream, ident: &Ident) -> TokenStream {
    tokens
        .into_iter()
        .map(|token| match token {
            TokenTree::Ident(i) if i == "Self" => {
                let mut named = ident.clone();
                named.set_span(i.span());
                TokenTree::Ident(named)
            }
            TokenTree::Group(group) => {
                let inner = write_out_self(group.stream(), ident);
                let mut written = Group::new(group.delimiter(), inner);
                written.set_span(group.span());
                TokenTree::Group(written)
            }
            other => other,
        })
        .collect()
}
