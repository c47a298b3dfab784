//! Types of fields that no pool can hold, and what to write instead.
//!
//! A refusal goes by the name that stands in the source. A type that hides behind another name is
//! refused by the bounds of `Value` and `Plain`.

use syn::{Error, PathSegment, Result, Type};

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
        Type::Path(path) if path.qself.is_none() => of_path(path)?,
        Type::Reference(reference) if is_text(&reference.elem) => TEXT,
        Type::Reference(reference) if matches!(*reference.elem, Type::Slice(_)) => ARRAY,
        Type::Reference(_) => {
            "a Rust reference does not outlive the program, a pool does: use `Ref<T>`"
        }
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

const TEXT: &str = "text lies in an object of its own: use `Ref<Bytes>`";
const ARRAY: &str = "an array without a fixed length lies in an object of its own: use `Ref<Bytes>` \
                     for bytes and numbers, `Ref<Refs<T>>` for references";

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
        "Box" | "Rc" | "Arc" | "Weak" | "NonNull" => {
            "what this owns lies in the memory of the program, not in the pool: use `Ref<T>`"
        }
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
