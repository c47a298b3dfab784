//! Bloom filters over the pages that a cycle empties, and the cache that holds one of them (FFCCD, 4.3.2).
//!
//! Software makes up to [`FILTERS`] filters when it plans a cycle, each over a range of pages; the processor caches one
//! of them, with its range. Where the paper is silent, we assume: ranges do not overlap, all have equally many of the
//! pages, the processor knows all ranges, and a filter hashes [`HASHES`] times. There are only as many filters as give
//! each page a byte, which makes one answer in forty wrong: each further filter would cost a fetch whenever the program
//! goes from one range to another.

use super::{Check, VirtPage};

/// Most filters in memory (Table 2).
pub const FILTERS: usize = 8;
/// Bytes of a filter (Table 2).
pub const BYTES: usize = 1024;
/// Bits that a page sets.
pub const HASHES: u64 = 4;

/// A filter over some pages.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Filter {
    first: VirtPage,
    last: VirtPage,
    words: Vec<u64>,
}

/// The finalizer of splitmix64 (Steele, Lea, Flood, OOPSLA 2014).
const fn mixed(page: u64) -> u64 {
    let mut z = page.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

impl Filter {
    /// A filter of `bytes` bytes, at least eight, over sorted pages; `None` if there are none.
    fn over(pages: &[VirtPage], bytes: usize) -> Option<Self> {
        let (&first, &last) = (pages.first()?, pages.last()?);
        let words = vec![0; (bytes / size_of::<u64>()).max(1)];
        let mut filter = Self { first, last, words };
        for &page in pages {
            for bit in filter.bits_of(page) {
                filter.words[bit as usize / 64] |= 1 << (bit % 64);
            }
        }
        Some(filter)
    }

    /// The bits of a page: two halves of one hash, the second times 0, 1, 2, 3 (Kirsch, Mitzenmacher,
    /// ESA 2006).
    fn bits_of(&self, page: VirtPage) -> [u64; HASHES as usize] {
        let (hash, bits) = (mixed(page.0), self.words.len() as u64 * 64);
        let (start, step) = (hash & u64::from(u32::MAX), hash >> 32 | 1);
        core::array::from_fn(|i| start.wrapping_add(step * i as u64) % bits)
    }

    /// Whether the page is in the filter's range.
    pub fn covers(&self, page: VirtPage) -> bool {
        (self.first..=self.last).contains(&page)
    }

    /// Whether the page may be one of the filter's.
    pub fn may_hold(&self, page: VirtPage) -> bool {
        let is_set = |bit: u64| self.words[bit as usize / 64] >> (bit % 64) & 1 != 0;
        self.bits_of(page).into_iter().all(is_set)
    }
}

/// The filters of a cycle.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Filters(Vec<Filter>);

impl Filters {
    /// At most `filters` filters of `bytes` bytes over these pages.
    pub fn over(pages: impl IntoIterator<Item = VirtPage>, filters: usize, bytes: usize) -> Self {
        let mut pages: Vec<VirtPage> = pages.into_iter().collect();
        pages.sort_unstable();
        pages.dedup();
        let of_each = pages.len().div_ceil(filters.max(1)).max(bytes).max(1);
        let some = pages.chunks(of_each);
        Self(
            some.filter_map(|pages| Filter::over(pages, bytes))
                .collect(),
        )
    }

    /// The filters, by address.
    pub fn all(&self) -> &[Filter] {
        &self.0
    }
}

/// The number of the filter that the processor has cached.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, Default)]
pub struct FilterCache(Option<usize>);

impl FilterCache {
    /// Whether `page` may be one that is moved, and how the filter was found.
    pub fn check(&mut self, page: VirtPage, filters: &Filters) -> (Check, bool) {
        let Some(of_page) = filters.0.iter().position(|filter| filter.covers(page)) else {
            return (Check::OutOfRange, false);
        };
        let check = if self.0 == Some(of_page) {
            Check::Cached
        } else {
            Check::Fetched
        };
        self.0 = Some(of_page);
        (check, filters.0[of_page].may_hold(page))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages(count: u64) -> Vec<VirtPage> {
        (0..count).map(|i| VirtPage(i * 7 + 3)).collect()
    }

    #[test]
    fn a_page_that_is_moved_is_never_denied() {
        for count in [0, 1, 7, 8, 9, 1000, 20_000] {
            let pages = pages(count);
            let filters = Filters::over(pages.iter().copied(), FILTERS, BYTES);
            assert!(filters.all().len() <= FILTERS);
            let mut cache = FilterCache::default();
            assert!(pages.iter().all(|&page| cache.check(page, &filters).1));
        }
    }

    #[test]
    fn there_are_no_more_than_it_takes() {
        for (pages_there, expected) in [(1, 1), (1024, 1), (1025, 2), (8000, 8), (20_000, 8)] {
            let filters = Filters::over(pages(pages_there), FILTERS, BYTES);
            assert_eq!(filters.all().len(), expected, "{pages_there} pages");
        }
    }

    #[test]
    fn ranges_do_not_overlap() {
        let filters = Filters::over(pages(8000), FILTERS, BYTES);
        let ranges = filters.all().windows(2);
        assert!(ranges.clone().count() == FILTERS - 1);
        assert!(ranges.into_iter().all(|two| two[0].last < two[1].first));
    }

    #[test]
    fn wrong_answers_are_as_many_as_the_formula_says() {
        // (1 - e^(-kn/m))^k for k hashes, n pages and m bits.
        let (n, m, k) = (1000.0, BYTES as f64 * 8.0, HASHES as f64);
        let expected = (1.0 - f64::exp(-k * n / m)).powf(k);
        let filter = Filter::over(&pages(1000), BYTES).unwrap();
        let others = (0..100_000).map(|i| VirtPage(i * 7 + 4));
        let wrong = others.filter(|&page| filter.may_hold(page)).count() as f64 / 100_000.0;
        assert!(
            (wrong / expected - 1.0).abs() < 0.15,
            "{wrong} and {expected}"
        );
    }
}
