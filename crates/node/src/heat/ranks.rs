//! Places in the order of their counts: the buckets of space-saving (Metwally et al.), kept in one
//! array, so that a count is raised by one without a search.

/// Places from 0 on, each with a count, the highest count first.
///
/// Places with one count stand side by side: they are a bucket. A place that is counted once more
/// changes places with the first of its bucket, and the bucket begins one later.
#[derive(Debug, Default)]
pub(super) struct Ranks {
    /// Places, by rank.
    order: Vec<usize>,
    /// By place. Those above the number of ranks are not in use.
    ranked: Vec<Ranked>,
    /// The rank at which a bucket begins, by bucket.
    begins: Vec<usize>,
    /// Buckets without places.
    free: Vec<usize>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Ranked {
    count: u32,
    rank: usize,
    bucket: usize,
}

impl Ranks {
    /// How many places have a rank.
    pub(super) fn len(&self) -> usize {
        self.order.len()
    }

    /// Forgets all places.
    pub(super) fn clear(&mut self) {
        self.order.clear();
        self.begins.clear();
        self.free.clear();
    }

    /// The place with the lowest count.
    pub(super) fn last(&self) -> Option<usize> {
        self.order.last().copied()
    }

    /// All places, the highest count first.
    pub(super) fn iter(&self) -> impl Iterator<Item = usize> {
        self.order.iter().copied()
    }

    /// The count of a place that has a rank.
    pub(super) fn count(&self, place: usize) -> u32 {
        self.ranked.get(place).map_or(0, |it| it.count)
    }

    /// Gives the next place a rank, with a count of 0.
    pub(super) fn push(&mut self) -> usize {
        let place = self.order.len();
        self.order.push(place);
        if self.ranked.len() == place {
            self.ranked.push(Ranked::default());
        }
        self.put(place, Ranked { count: 0, rank: place, bucket: 0 });
        self.join(place);
        place
    }

    /// Raises a count by one. Takes the same time however many places there are.
    pub(super) fn bump(&mut self, place: usize) {
        let it = self.of(place);
        let first = self.begin(it.bucket);
        self.order.swap(first, it.rank);
        if let Some(&other) = self.order.get(it.rank) {
            self.put(other, Ranked { rank: it.rank, ..self.of(other) });
        }
        self.put(place, Ranked { count: it.count + 1, rank: first, ..it });
        self.leave(it.bucket, first);
        self.join(place);
    }

    /// Raises a count by so many. Its place goes before all with less; all between move.
    pub(super) fn raise(&mut self, place: usize, by: u32) {
        if by == 0 {
            return;
        }
        let it = self.of(place);
        self.leave(it.bucket, it.rank);
        let count = it.count + by;
        let higher = self.order.get(..it.rank).unwrap_or_default();
        let first = higher.partition_point(|other| self.count(*other) >= count);
        if let Some(between) = self.order.get_mut(first..=it.rank) {
            between.rotate_right(1);
        }
        self.put(place, Ranked { count, rank: first, ..it });
        // From the end: so no bucket meets its second place where it begins only now.
        for rank in ((first + 1)..=it.rank).rev() {
            let Some(&other) = self.order.get(rank) else { break };
            let moved = self.of(other);
            if self.begin(moved.bucket) == moved.rank {
                self.begin_at(moved.bucket, rank);
            }
            self.put(other, Ranked { rank, ..moved });
        }
        self.join(place);
    }

    /// The place at this rank leaves its bucket. If that was the first of it, the bucket begins
    /// with the next rank, or nobody is left in it.
    fn leave(&mut self, bucket: usize, rank: usize) {
        if self.begin(bucket) != rank {
            return;
        }
        match self.order.get(rank + 1).map(|next| self.of(*next).bucket) {
            Some(next) if next == bucket => self.begin_at(bucket, rank + 1),
            _ => self.free.push(bucket),
        }
    }

    /// Puts a place, by its count and rank, into the bucket of the place before it, or one that
    /// begins with it.
    fn join(&mut self, place: usize) {
        let it = self.of(place);
        let before = it.rank.checked_sub(1).and_then(|rank| self.order.get(rank));
        let bucket = match before.map(|before| self.of(*before)) {
            Some(before) if before.count == it.count => before.bucket,
            _ => {
                let bucket = self.free.pop().unwrap_or_else(|| {
                    self.begins.push(0);
                    self.begins.len() - 1
                });
                self.begin_at(bucket, it.rank);
                bucket
            }
        };
        self.put(place, Ranked { bucket, ..it });
    }

    fn of(&self, place: usize) -> Ranked {
        self.ranked.get(place).copied().expect("the place has a rank")
    }

    fn put(&mut self, place: usize, ranked: Ranked) {
        *self.ranked.get_mut(place).expect("the place has a rank") = ranked;
    }

    fn begin(&self, bucket: usize) -> usize {
        self.begins.get(bucket).copied().expect("the bucket has places")
    }

    fn begin_at(&mut self, bucket: usize, rank: usize) {
        *self.begins.get_mut(bucket).expect("the bucket has places") = rank;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The order as it is meant: an array that is searched.
    #[derive(Default)]
    struct Searched(Vec<(usize, u32)>);

    impl Searched {
        fn bump(&mut self, place: usize) {
            let rank = self.0.iter().position(|it| it.0 == place).unwrap();
            let count = self.0[rank].1;
            let first = self.0.iter().position(|it| it.1 == count).unwrap();
            self.0.swap(first, rank);
            self.0[first].1 += 1;
        }

        fn raise(&mut self, place: usize, by: u32) {
            let rank = self.0.iter().position(|it| it.0 == place).unwrap();
            let count = self.0.remove(rank).1 + by;
            let first = self.0.iter().position(|it| it.1 < count).unwrap_or(self.0.len());
            self.0.insert(first.min(rank), (place, count));
        }
    }

    proptest! {
        #[test]
        fn the_order_is_that_of_an_array_that_is_searched(
            rounds in proptest::collection::vec(
                proptest::collection::vec((0usize..40, 0u32..6), 0..400), 1..3,
            ),
        ) {
            let mut ranks = Ranks::default();
            for steps in rounds {
                ranks.clear();
                let mut searched = Searched::default();
                for (place, by) in steps {
                    if place >= ranks.len() {
                        searched.0.push((ranks.push(), 0));
                    } else if by == 1 {
                        ranks.bump(place);
                        searched.bump(place);
                    } else {
                        ranks.raise(place, by);
                        searched.raise(place, by);
                    }
                    let order: Vec<_> = ranks.iter().map(|it| (it, ranks.count(it))).collect();
                    prop_assert_eq!(&order, &searched.0);
                    let counts = order.iter().map(|it| it.1);
                    let used = counts.collect::<std::collections::BTreeSet<_>>().len();
                    prop_assert_eq!(ranks.begins.len() - ranks.free.len(), used, "none is lost");
                }
            }
        }
    }
}
