//! The best of many, in one pass and fixed memory.

use std::cmp::Reverse;

use crate::vectors::slots::Slot;

/// Keeps the rows of the highest scores; of equal ones those of lower rows.
#[derive(Debug)]
pub(crate) struct Top<S> {
    /// The best so far and what came since they were last picked out, up to as many again.
    kept: Vec<(S, Reverse<Slot>)>,
    room: usize,
    /// The lowest score of those that were picked out.
    worst: Option<S>,
}

impl<S: Ord + Copy> Top<S> {
    pub(crate) fn new(room: usize) -> Self {
        Self { kept: Vec::with_capacity(room.min(1 << 16) * 2), room, worst: None }
    }

    /// Tells whether a row of this score that is behind all seen so far may be among the best.
    pub(crate) fn wants(&self, score: S) -> bool {
        self.room > 0 && self.worst.is_none_or(|worst| score > worst)
    }

    pub(crate) fn push(&mut self, score: S, slot: Slot) {
        self.kept.push((score, Reverse(slot)));
        if self.kept.len() >= self.room.saturating_mul(2) {
            self.pick();
        }
    }

    /// The lowest of the best scores, if there are as many as are kept.
    pub(crate) fn least(&mut self) -> Option<S> {
        self.pick();
        self.worst
    }

    /// Returns what was kept, best first.
    pub(crate) fn into_best(mut self) -> Vec<(S, Slot)> {
        self.pick();
        self.kept.sort_unstable_by(|a, b| b.cmp(a));
        self.kept.into_iter().map(|(score, Reverse(slot))| (score, slot)).collect()
    }

    /// Drops all but the best, which takes less than to keep them in order all along.
    fn pick(&mut self) {
        let Some(last) = self.room.checked_sub(1) else { return self.kept.clear() };
        if last < self.kept.len() {
            let (_, (worst, _), _) = self.kept.select_nth_unstable_by(last, |a, b| b.cmp(a));
            self.worst = Some(*worst);
            self.kept.truncate(self.room);
        }
    }
}

/// A number that is never NaN, in its natural order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Score(pub(crate) f32);

impl Eq for Score {}

impl PartialOrd for Score {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Score {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

        /// With few different scores, so that many are equal.
        #[test]
        fn the_best_are_those_of_a_sorted_list(
            scores in vec(prop_oneof![-3..3_i32, any::<i32>()], 0..200),
            room in 0..40_usize,
        ) {
            let mut top = Top::new(room);
            for (score, slot) in scores.iter().zip(0..) {
                if top.wants(*score) {
                    top.push(*score, slot);
                }
                if slot % 7 == 3 {
                    let mut before = scores[..=slot as usize].to_vec();
                    before.sort_unstable_by(|a, b| b.cmp(a));
                    let least = room.checked_sub(1).and_then(|last| before.get(last));
                    prop_assert_eq!(top.least(), least.copied());
                }
            }
            let mut expected: Vec<_> = scores.iter().copied().zip(0..).collect();
            expected.sort_by_key(|(score, _)| Reverse(*score));
            expected.truncate(room);
            prop_assert_eq!(top.into_best(), expected);
        }
    }
}
