//! Types of fields that no pool can hold, and alternatives to write instead.
//!
//! A refusal goes by the name in the source. A type behind another name is refused by the bounds of `Value` and
//! `Plain`.

use syn::{Error, GenericArgument, PathArguments, PathSegment, Result, Type};

/// Refuses the type of a field, if its name says that no pool can hold it.
pub(crate) fn check(ty: &Type) -> Result<()> {
    match refusal(ty) {
        None => Ok(()),
        Some((at, message)) => Err(Error::new_spanned(at, message)),
    }
}

fn refusal(ty: &Type) -> Option<(&Type, &'static str)> {
    let message = match ty {
        Type::Array(array) => return refusal(&array.elem),
        Type::Group(group) => return refusal(&group.elem),
        Type::Paren(paren) => return refusal(&paren.elem),
        Type::Path(path) if path.qself.is_none() => match target(ty) {
            Some(target) => return refusal_of_target(target),
            None => of_path(path)?,
        },
        Type::Reference(reference) if is_text(&reference.elem) => TEXT,
        Type::Reference(reference) if matches!(*reference.elem, Type::Slice(_)) => ARRAY,
        Type::Reference(_) => REFERENCE,
        Type::Ptr(_) => "an address does not outlive the program, a pool does: use `Ref<T>`",
        Type::FnPtr(_) => {
            "code does not lie in the pool, so no function can be stored: store a number, or \
             `Checked<T>` of an enum, that says which function is meant"
        }
        Type::Tuple(_) => {
            "the layout of a tuple is not fixed: use a structure with `#[derive(Plain)]` and \
             `#[repr(C)]`"
        }
        Type::Slice(_) => ARRAY,
        Type::TraitObject(_) | Type::ImplTrait(_) => {
            "code does not lie in the pool, so no trait object can be stored: use a type that has \
             `#[derive(Stored)]`, behind `Ref<T>`"
        }
        _ => return None,
    };
    Some((ty, message))
}

/// Types of values that have no object of their own.
const VALUES: [&str; 12] = [
    "u8", "u16", "u32", "u64", "i8", "i16", "i32", "i64", "f32", "f64", "Ref", "Checked",
];
const VALUE: &str = "`Ref` names an object, and this is none: hold it in the field itself, or put it \
                     into a structure with `#[derive(Stored)]`";
const REFERENCE: &str = "a Rust reference does not outlive the program, a pool does: use `Ref<T>`";
const OWNED: &str =
    "what this owns lies in the memory of the program, not in the pool: use `Ref<T>`";
const TEXT: &str = "text lies in an object of its own: use `Ref<Bytes>`";
const ARRAY: &str = "an array without a fixed length lies in an object of its own: use `Ref<Bytes>` \
                     for bytes and numbers, `Ref<Refs<T>>` for references";

/// The refusal of a `T` in `Ref<T>` that looks like an object's type and is none.
fn refusal_of_target(ty: &Type) -> Option<(&Type, &'static str)> {
    let refused = refusal(ty);
    if let Some((_, TEXT | ARRAY | OWNED | REFERENCE)) = refused {
        return refused;
    }
    let is_value = match ty {
        Type::Array(_) | Type::Tuple(_) => true,
        Type::Path(path) if path.qself.is_none() => {
            let last = path.path.segments.last()?;
            VALUES.iter().any(|value| last.ident == value)
        }
        _ => false,
    };
    (is_value || refused.is_some()).then_some((ty, VALUE))
}

/// The `T` of a type that is written `Ref<T>`, or as an array of such references.
pub(crate) fn target(ty: &Type) -> Option<&Type> {
    let path = match ty {
        Type::Array(array) => return target(&array.elem),
        Type::Group(group) => return target(&group.elem),
        Type::Paren(paren) => return target(&paren.elem),
        Type::Path(path) => path.path.segments.last()?,
        _ => return None,
    };
    match &path.arguments {
        PathArguments::AngleBracketed(arguments) if path.ident == "Ref" => {
            match arguments.args.first()? {
                GenericArgument::Type(target) => Some(target),
                _ => None,
            }
        }
        _ => None,
    }
}

fn is_text(ty: &Type) -> bool {
    matches!(ty, Type::Path(path) if path.path.is_ident("str"))
}

fn of_path(path: &syn::TypePath) -> Option<&'static str> {
    let segments = &path.path.segments;
    let root = |s: &PathSegment| ["std", "core", "alloc"].iter().any(|r| s.ident == r);
    if segments.len() > 1 && !segments.first().is_some_and(root) {
        return None;
    }
    let name = segments.last()?.ident.to_string();
    Some(match name.as_str() {
        "Box" | "Rc" | "Arc" | "Weak" | "NonNull" => OWNED,
        "String" | "str" | "OsString" | "CString" | "PathBuf" | "Cow" => TEXT,
        "Vec" | "VecDeque" => ARRAY,
        "bool" | "char" => {
            "not every bit pattern of this type is valid, and a pool may be damaged: use \
             `Checked<bool>` or `Checked<char>`"
        }
        "Option" => {
            "the layout of an `Option` is not fixed: `Ref<T>` may be null already; for values use \
             a field beside it that says whether there is one, such as `Checked<bool>`"
        }
        "usize" | "isize" => {
            "the width must not depend on the machine, since a pool moves between machines: use \
             `u64` or `i64`"
        }
        "u128" | "i128" => {
            "the heap stores words of 64 bits: use two fields of type `u64`, or `[u64; 2]`"
        }
        _ if name.starts_with("NonZero") => {
            "zero is a bit pattern as well, and a pool may be damaged: use the number's own type, \
             such as `u64`"
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::{VALUE, refusal};
    use syn::{Type, parse_str};

    fn message(ty: &str) -> Option<&'static str> {
        let ty: Type = parse_str(ty).expect("a type");
        refusal(&ty).map(|r| r.1)
    }

    #[test]
    fn storable_types_pass() {
        for ty in [
            "u8",
            "f64",
            "[[u16; 3]; N]",
            "Ref<Node>",
            "firn_heap::Ref<Refs<Node>>",
            "Checked<bool>",
            "Point",
        ] {
            assert_eq!(message(ty), None, "{ty}");
        }
    }

    #[test]
    fn a_type_of_the_program_may_have_any_name() {
        assert_eq!(message("crate::Vec<u8>"), None);
        assert_eq!(message("shapes::Box"), None);
        assert!(message("std::vec::Vec<u8>").is_some());
        assert!(message("core::num::NonZeroU8").is_some());
    }

    #[test]
    fn refused_types_are_found_inside_arrays_and_references() {
        assert_eq!(message("[[bool; 2]; 4]"), message("bool"));
        assert_eq!(message("[(usize); 2]"), message("usize"));
        assert_eq!(message("Ref<String>"), message("String"));
        assert_eq!(message("[Ref<Vec<u8>>; 2]"), message("Vec<u8>"));
        assert_eq!(message("Ref<[u8]>"), message("Vec<u8>"));
        assert_eq!(message("&'static str"), message("String"));
    }

    #[test]
    fn references_name_objects() {
        for ty in ["u64", "bool", "[u64; 4]", "Ref<Node>", "Option<Node>"] {
            assert_eq!(message(&format!("Ref<{ty}>")), Some(VALUE), "{ty}");
        }
    }
}
