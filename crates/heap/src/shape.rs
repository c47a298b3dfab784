//! Finding the references of an object, from its header.

use firn_format::header::{FLAG_FORWARDED, HEADER_BYTES, ObjectHeader, TypeId};
use firn_media::Medium;
use firn_units::{VirtAddr, WORD_BYTES};

use crate::types::{ReferenceMap, Types};

/// Size and references of every type that is registered when this is made. Types that are registered later have no
/// objects older than this.
pub(crate) struct Shapes {
    types: Vec<Option<(u32, ReferenceMap)>>,
}

/// Consecutive words of an object that may refer to others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ReferenceRange {
    pub(crate) first: VirtAddr,
    pub(crate) count: u64,
    pub(crate) what: Refers,
}

impl ReferenceRange {
    const fn to_objects(first: VirtAddr, count: u64) -> Self {
        Self {
            first,
            count,
            what: Refers::ToObjects,
        }
    }
}

/// The kind of references in words.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Refers {
    /// Each word is a reference.
    ToObjects,
    /// Each word is a reference to an object that has none.
    ToLeaves,
    /// Any two adjacent words may be a reference: see [`firn_format::registry::FieldKind::Pairs`].
    InPairs,
}

impl Shapes {
    pub(crate) fn new(registry: &Types) -> Self {
        let maps = registry.reference_maps();
        let most = maps.keys().map(|id| id.0 as usize + 1).max().unwrap_or(0);
        let mut types = vec![None; most];
        for (id, map) in maps {
            types[id.0 as usize] = Some(map);
        }
        Self { types }
    }

    /// Whether objects may refer to others in pairs of words.
    pub(crate) fn has_pairs(&self) -> bool {
        let maps = self.types.iter().flatten().flat_map(|(_, map)| map);
        maps.into_iter().any(|field| field.what == Refers::InPairs)
    }

    /// Calls `visit` for each stretch of references of the object at `at`, whose requested length is `requested` bytes.
    ///
    /// Errors: the object's defect, in a sentence; nothing was visited then.
    pub(crate) fn references<M: Medium>(
        &self,
        medium: &M,
        at: VirtAddr,
        header: ObjectHeader,
        requested: u64,
        mut visit: impl FnMut(ReferenceRange),
    ) -> Result<(), String> {
        let body = at + HEADER_BYTES;
        if header.flags() & FLAG_FORWARDED != 0 {
            visit(ReferenceRange::to_objects(body, 1));
            return Ok(());
        }
        match header.type_id() {
            TypeId::NONE => return Err("no object where one should be: the header is empty".into()),
            TypeId::RAW => {}
            TypeId::BYTES => {
                if medium.load_u64(body) > requested.saturating_sub(WORD_BYTES) {
                    return Err("an array of bytes is longer than its object".into());
                }
            }
            TypeId::REFS => {
                let count = medium.load_u64(body);
                if count > requested.saturating_sub(WORD_BYTES) / WORD_BYTES {
                    return Err("an array of references is longer than its object".into());
                }
                visit(ReferenceRange::to_objects(body + WORD_BYTES, count));
            }
            id => match self.types.get(id.0 as usize).and_then(Option::as_ref) {
                None => {
                    let id = id.0;
                    return Err(format!(
                        "an object of type number {id}, which is not registered"
                    ));
                }
                Some((size, _)) if u64::from(*size) > requested => {
                    return Err("the object is smaller than its type".into());
                }
                Some((_, references)) => {
                    for field in references {
                        let count = match field.what {
                            Refers::InPairs => requested / WORD_BYTES,
                            _ => u64::from(field.count),
                        };
                        visit(ReferenceRange {
                            first: body + u64::from(field.offset),
                            count,
                            what: field.what,
                        });
                    }
                }
            },
        }
        Ok(())
    }
}
