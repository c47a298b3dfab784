//! Types that a program in any language describes by their fields.

use firn_format::registry::FieldKind;
use firn_units::WORD_BYTES;

use crate::error::Error;
use crate::stored::{Bytes, REFS, Raw, Target, TypeDescriptor};

/// Whether a type of the heap itself has this name.
fn is_name_of_the_heap(name: &str) -> bool {
    let array = name.strip_prefix(REFS);
    [Bytes::NAME, Raw::NAME].contains(&name)
        || array.is_some_and(|of| of.is_empty() || of.starts_with('<'))
}

/// Errors: the type, or one to which it leads, contradicts itself.
pub(crate) fn check_described(descriptor: &'static TypeDescriptor) -> Result<(), Error> {
    check_descriptor(descriptor)?;
    descriptor
        .with
        .iter()
        .copied()
        .try_for_each(check_descriptor)
}

/// Errors: a name, a size or a field that no type can have.
fn check_descriptor(descriptor: &TypeDescriptor) -> Result<(), Error> {
    let refuse = |what: String| {
        let name = descriptor.name.to_owned();
        Err(Error::BadType { name, what })
    };
    let most = firn_format::registry::MAX_NAME_BYTES;
    if descriptor.name.is_empty() || descriptor.name.len() > most {
        return refuse(format!("its name must have 1 to {most} bytes"));
    }
    for field in descriptor.fields {
        let (name, offset) = (field.name, field.offset);
        let bytes = u64::from(field.size) * u64::from(field.count);
        if name.is_empty() || name.len() > most {
            return refuse(format!("the name of a field must have 1 to {most} bytes"));
        }
        if u64::from(offset) + bytes > u64::from(descriptor.size) {
            return refuse(format!(
                "field `{name}` ends at byte {}, behind the {} that the type has",
                u64::from(offset) + bytes,
                descriptor.size
            ));
        }
        let is_word = field.size == WORD_BYTES as u32 && offset.is_multiple_of(WORD_BYTES as u32);
        if field.kind == FieldKind::Reference && !is_word {
            return refuse(format!(
                "field `{name}` at byte {offset} is no reference: one has 8 bytes at a multiple of 8"
            ));
        }
        // The collector recognises these names.
        if is_name_of_the_heap(field.target) {
            let target = field.target;
            return refuse(format!(
                "field `{name}` leads to `{target}`, which is a name of the heap's own types; choose another"
            ));
        }
    }
    Ok(())
}
