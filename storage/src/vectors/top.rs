//! The best of many, in one pass and fixed memory.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::slots::Slot;

/// Keeps the rows of the highest scores; of equal ones those of lower rows.
#[derive(Debug)]
pub(super) struct Top<S> {
    heap: BinaryHeap<Reverse<(S, Reverse<Slot>)>>,
    room: usize,
}

impl<S: Ord + Copy> Top<S> {
    pub(super) fn new(room: usize) -> Self {
        Self { heap: BinaryHeap::with_capacity(room.min(1 << 16) + 1), room }
    }

    /// Whether [`push`](Self::push) would keep this score, were its row behind all seen so far.
    pub(super) fn wants(&self, score: S) -> bool {
        self.heap.len() < self.room
            || self.heap.peek().is_some_and(|Reverse((worst, _))| score > *worst)
    }

    pub(super) fn push(&mut self, score: S, slot: Slot) {
        self.heap.push(Reverse((score, Reverse(slot))));
        if self.heap.len() > self.room {
            self.heap.pop();
        }
    }

    /// What was kept, best first.
    pub(super) fn into_best(self) -> Vec<(S, Slot)> {
        let best = self.heap.into_sorted_vec();
        best.into_iter().map(|Reverse((score, Reverse(slot)))| (score, slot)).collect()
    }
}

/// A number that is never NaN, in its natural order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Score(pub(super) f32);

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
