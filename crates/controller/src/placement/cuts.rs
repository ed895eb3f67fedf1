//! Where to cut a partition, from match values that each stand for the same share of it.

use cluster::Match;

/// How a partition is to be cut.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    /// Into about so many parts of the same size; at least 2.
    pub(super) parts: usize,
    /// Points in each part at least. What has fewer is not worth a part of its own, or there by
    /// chance.
    pub(super) least: usize,
}

/// Where to cut a partition with these bounds; nowhere if no cut leaves enough on both sides.
///
/// One key that has more than a part should have is cut out, if enough lies beside it: then what
/// lies beside it can go elsewhere.
pub(super) fn cuts(
    points: &[Match],
    (first, last): (Match, Match),
    Wanted { parts, least }: Wanted,
) -> Vec<Match> {
    let (all, least) = (points.len(), least.max(1));
    let mut cuts: Vec<Match> = Vec::new();
    let (mut come, mut left) = (0, all);
    for equal in points.chunk_by(|one, next| one == next) {
        let &[at, ..] = equal else { continue };
        let more = equal.len();
        let has_room = cuts.len() + 1 < PARTS_MAX;
        // Nearer to the same size without these than with them?
        let near = (2 * come + more) * parts >= 2 * all;
        if has_room && near && come >= least && left >= least && first < at {
            cuts.push(at);
            come = 0;
        }
        (come, left) = (come + more, left - more);
        let has_room = cuts.len() + 1 < PARTS_MAX;
        if has_room && come * parts >= all && come >= least && left >= least && at < last {
            cuts.push(Match(at.0 + 1));
            come = 0;
        }
    }
    cuts
}

/// Parts at most. What belongs to clients is noted in each part while the partition is closed.
pub(super) const PARTS_MAX: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: (Match, Match) = (Match::MIN, Match::MAX);

    fn points(counts: &[(u128, usize)]) -> Vec<Match> {
        let points = counts.iter().flat_map(|(at, count)| vec![Match(*at); *count]);
        points.collect()
    }

    fn into(parts: usize, points: &[Match]) -> Vec<u128> {
        let wanted = Wanted { parts, least: points.len() / 20 };
        cuts(points, ALL, wanted).iter().map(|it| it.0).collect()
    }

    #[test]
    fn what_is_spread_evenly_is_cut_evenly() {
        let spread = points(&(0..64).map(|at| (at * 10, 1)).collect::<Vec<_>>());
        assert_eq!(into(2, &spread), [311]);
        assert_eq!(into(4, &spread), [151, 311, 471]);
        assert_eq!(into(16, &spread).len(), 15);
        assert_eq!(into(60, &spread).len(), 15, "no more than there may be");
    }

    #[test]
    fn a_key_that_has_most_is_cut_out() {
        assert_eq!(into(2, &points(&[(1, 10), (5, 44), (9, 10)])), [5, 6]);
        assert_eq!(into(8, &points(&[(5, 40), (6, 20), (7, 4)])), [6, 7]);
        assert_eq!(into(8, &points(&[(5, 40), (100, 12), (200, 12)])), [6, 101]);
    }

    #[test]
    fn one_key_cannot_be_cut_nor_what_leaves_too_little() {
        assert_eq!(into(8, &points(&[(5, 64)])), [0_u128; 0]);
        assert_eq!(into(8, &points(&[(5, 63), (7, 1)])), [0_u128; 0]);
        assert_eq!(into(8, &points(&[(1, 1), (5, 62), (7, 1)])), [0_u128; 0]);
        assert_eq!(into(8, &[]), [0_u128; 0]);
    }

    #[test]
    fn cuts_lie_inside_the_bounds() {
        let ends = points(&[(0, 32), (u128::MAX, 32)]);
        assert_eq!(into(2, &ends), [1]);
        let inside =
            cuts(&points(&[(7, 32), (8, 32)]), (Match(7), Match(8)), Wanted { parts: 2, least: 1 });
        assert_eq!(inside, [Match(8)]);
        let one = cuts(&points(&[(7, 64)]), (Match(7), Match(7)), Wanted { parts: 2, least: 1 });
        assert!(one.is_empty());
    }
}
