//! A disk that loses power, and every content that it may be left with.
//!
//! A disk writes a sector as a whole. Of what was written to a sector since the last sync any content may be left, whatever
//! the other sectors are left with.
//!
//! A block has its space once it was written and synced. Until then a write to it may be refused, as others fill the disk at
//! any moment.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;

use firn_format::log::{BLOCK_BYTES, Block, HEAD_BLOCKS};

const SECTOR: usize = 512;
const LEN: usize = BLOCK_BYTES as usize;
const SECTORS: usize = LEN / SECTOR;

pub type Bytes = [u8; LEN];

/// A block's content, by the number that [`Contents`] gave it.
pub type Id = u32;

/// The block of zeros.
pub const ZEROS: Id = 0;

/// What a block is for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Use {
    Log,
    Head,
    Home,
}

/// The contents that a crash may leave of a block.
pub struct Left {
    /// Those that recovery tells apart.
    pub ids: Vec<Id>,
    /// All: one for each choice of a content for each sector.
    pub subsets: u128,
}

/// All contents of blocks, each once.
pub struct Contents {
    blocks: Vec<Box<Bytes>>,
    /// By a hash of the content.
    ids: HashMap<u64, Vec<Id>>,
    left: HashMap<(Use, Vec<Id>), Rc<Left>>,
}

impl Contents {
    pub fn new() -> Self {
        let mut contents = Self {
            blocks: Vec::new(),
            ids: HashMap::new(),
            left: HashMap::new(),
        };
        assert_eq!(contents.id(&[0; LEN]), ZEROS);
        contents
    }

    pub fn id(&mut self, bytes: &Bytes) -> Id {
        let (words, _) = bytes.as_chunks::<8>();
        let hash = words.iter().fold(0u64, |hash, word| {
            (hash.rotate_left(5) ^ u64::from_le_bytes(*word)).wrapping_mul(0x517c_c1b7_2722_0a95)
        });
        let known = self.ids.entry(hash).or_default();
        let found = known
            .iter()
            .find(|&&id| *self.blocks[id as usize] == *bytes);
        if let Some(&found) = found {
            return found;
        }
        let id = self.blocks.len() as Id;
        known.push(id);
        self.blocks.push(Box::new(*bytes));
        id
    }

    pub fn bytes(&self, id: Id) -> &Bytes {
        &self.blocks[id as usize]
    }

    /// What a crash may leave of a block that held these contents one after the other, the durable one first.
    pub fn left(&mut self, used: Use, held: &[Id]) -> Rc<Left> {
        if let Some(known) = self.left.get(&(used, held.to_vec())) {
            return Rc::clone(known);
        }
        let left = Rc::new(self.mixtures(used, held));
        self.left.insert((used, held.to_vec()), Rc::clone(&left));
        left
    }

    /// Tries every choice of a content for each sector.
    ///
    /// Recovery looks at a block of the log only through [`Block::decode`], and a block that is not whole is none to it,
    /// whatever it holds. So of the mixtures that are not whole one stands for all. Later writes replace every sector of
    /// it, so mixtures with these are whole in the same cases. Of the heads and of home all mixtures are told apart.
    fn mixtures(&mut self, used: Use, held: &[Id]) -> Left {
        let choices: Vec<Vec<Id>> = (0..SECTORS)
            .map(|sector| {
                let mut distinct: Vec<Id> = Vec::new();
                for &id in held {
                    let is_new =
                        |other: &Id| self.sector(*other, sector) != self.sector(id, sector);
                    if distinct.iter().all(is_new) {
                        distinct.push(id);
                    }
                }
                distinct
            })
            .collect();
        let (mut ids, mut is_torn) = (vec![held[0]], false);
        let mut chosen = [0; SECTORS];
        loop {
            let mut mixture = [0; LEN];
            for (sector, into) in mixture.chunks_exact_mut(SECTOR).enumerate() {
                into.copy_from_slice(self.sector(choices[sector][chosen[sector]], sector));
            }
            let is_held = held.iter().any(|&id| *self.bytes(id) == mixture);
            let is_told_apart = match used {
                Use::Log if !is_held && Block::decode(&mixture).is_none() => {
                    !std::mem::replace(&mut is_torn, true)
                }
                _ => true,
            };
            if is_told_apart {
                let id = self.id(&mixture);
                if !ids.contains(&id) {
                    ids.push(id);
                }
            }
            let next = (0..SECTORS).find(|&sector| {
                chosen[sector] = (chosen[sector] + 1) % choices[sector].len();
                chosen[sector] != 0
            });
            if next.is_none() {
                break;
            }
        }
        let subsets = choices
            .iter()
            .map(|choices| choices.len() as u128)
            .product();
        Left { ids, subsets }
    }

    fn sector(&self, id: Id, sector: usize) -> &[u8] {
        &self.bytes(id)[sector * SECTOR..][..SECTOR]
    }
}

/// A file of whole blocks.
#[derive(Clone, Default)]
pub struct File {
    durable: Vec<Id>,
    /// Blocks that it has now; a crash may leave fewer, but all that are durable.
    len: usize,
    /// Contents of blocks since the last sync, the oldest first, each with the moment at which it was written.
    written: BTreeMap<usize, Vec<(u32, Id)>>,
    /// Contents that a failed sync has given up: a later one does not reach them.
    given_up: BTreeMap<usize, Vec<Id>>,
    /// Blocks that have their space.
    allocated: BTreeSet<usize>,
    moment: u32,
}

impl File {
    pub fn durable(blocks: Vec<Id>) -> Self {
        Self {
            len: blocks.len(),
            allocated: (0..blocks.len()).collect(),
            durable: blocks,
            ..Self::default()
        }
    }

    /// What the system shows of a block.
    pub fn now(&self, block: usize) -> Id {
        let written = self.written.get(&block).and_then(|written| written.last());
        let given_up = self
            .given_up
            .get(&block)
            .and_then(|given_up| given_up.last());
        let durable = || self.durable.get(block).copied().unwrap_or(ZEROS);
        written.map_or_else(|| given_up.copied().unwrap_or_else(durable), |&(_, id)| id)
    }

    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether a write to a block may be refused for want of space.
    pub fn may_refuse(&self, block: usize) -> bool {
        !self.allocated.contains(&block)
    }

    pub fn write(&mut self, block: usize, content: Id) {
        self.moment += 1;
        self.len = self.len.max(block + 1);
        self.written
            .entry(block)
            .or_default()
            .push((self.moment, content));
    }

    /// The moment up to which a sync that begins now makes everything durable.
    pub fn moment(&self) -> u32 {
        self.moment
    }

    pub fn sync(&mut self) {
        self.sync_until(self.moment, |_| true);
    }

    /// Makes what was written to some blocks until a moment durable.
    pub fn sync_until(&mut self, moment: u32, blocks: impl Fn(usize) -> bool) {
        self.durable.resize(self.len, ZEROS);
        for (&block, written) in self.written.iter_mut().filter(|(block, _)| blocks(**block)) {
            let count = written.partition_point(|(at, _)| *at <= moment);
            if let Some((_, id)) = written.drain(..count).next_back() {
                self.durable[block] = id;
                self.allocated.insert(block);
                self.given_up.remove(&block);
            }
        }
        self.written.retain(|_, written| !written.is_empty());
    }

    /// A sync fails: what was written may or may not be on the disk, and no later sync changes that.
    pub fn fail_sync(&mut self) {
        for (block, written) in std::mem::take(&mut self.written) {
            let ids = written.into_iter().map(|(_, id)| id);
            self.given_up.entry(block).or_default().extend(ids);
        }
    }

    /// What a crash may leave, block by block, and how many choices of sectors that stands for.
    pub fn left(&self, contents: &mut Contents, is_home: bool) -> (Vec<Vec<Id>>, u128) {
        let (mut images, mut subsets) = (Vec::new(), 0);
        for len in self.durable.len()..=self.len {
            let mut of_len: Vec<Vec<Id>> = vec![Vec::with_capacity(len)];
            let mut subsets_of_len = 1;
            for block in 0..len {
                let used = match (is_home, (block as u64) < HEAD_BLOCKS) {
                    (true, _) => Use::Home,
                    (false, true) => Use::Head,
                    (false, false) => Use::Log,
                };
                let mut held = vec![self.durable.get(block).copied().unwrap_or(ZEROS)];
                held.extend(self.given_up.get(&block).into_iter().flatten());
                held.extend(
                    self.written
                        .get(&block)
                        .into_iter()
                        .flatten()
                        .map(|(_, id)| *id),
                );
                let left = contents.left(used, &held);
                subsets_of_len *= left.subsets;
                let longer = |image: &Vec<Id>, id: &Id| [&image[..], &[*id]].concat();
                of_len = of_len
                    .iter()
                    .flat_map(|image| left.ids.iter().map(move |id| longer(image, id)))
                    .collect();
            }
            subsets += subsets_of_len;
            images.extend(of_len);
        }
        (images, subsets)
    }

    /// Identifies its state, apart from when that came to be.
    pub fn key(&self) -> Vec<u32> {
        let mut key = vec![self.len as u32];
        key.extend(&self.durable);
        for (block, written) in &self.written {
            key.extend([u32::MAX, *block as u32]);
            key.extend(written.iter().map(|(_, id)| id));
        }
        for (block, given_up) in &self.given_up {
            key.extend([u32::MAX - 1, *block as u32]);
            key.extend(given_up);
        }
        key.push(u32::MAX - 2);
        key.extend(self.allocated.iter().map(|&block| block as u32));
        key
    }
}
