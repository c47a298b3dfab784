//! Lengths of stops, in a limited number of bars.

use crate::StopBucket;

/// These stops in at most `rows` buckets: neighbours are merged as needed.
pub fn few(histogram: &[StopBucket], rows: usize) -> Vec<StopBucket> {
    let neighbours = histogram.len().div_ceil(rows.max(1)).max(1);
    histogram.chunks(neighbours).map(together).collect()
}

fn together(neighbours: &[StopBucket]) -> StopBucket {
    let first = neighbours.first().map_or(0, |bucket| bucket.from_ns);
    let last = neighbours.last().map_or(0, |bucket| bucket.below_ns);
    StopBucket {
        from_ns: first,
        below_ns: last,
        count: neighbours.iter().map(|bucket| bucket.count).sum(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bucket(from_ns: u64, below_ns: u64, count: u64) -> StopBucket {
        StopBucket {
            from_ns,
            below_ns,
            count,
        }
    }

    #[test]
    fn no_stop_is_lost() {
        let all: Vec<StopBucket> = (10..21).map(|i| bucket(1 << i, 2 << i, i)).collect();
        for rows in 0..15 {
            let few = few(&all, rows);
            assert!(few.len() <= rows.max(1));
            let sum = |of: &[StopBucket]| of.iter().map(|bucket| bucket.count).sum::<u64>();
            assert_eq!(sum(&few), sum(&all));
            assert_eq!(
                (few[0].from_ns, few[few.len() - 1].below_ns),
                (1 << 10, 2 << 20)
            );
        }
        assert_eq!(few(&all, 11), all);
        assert_eq!(few(&[], 3), []);
    }
}
