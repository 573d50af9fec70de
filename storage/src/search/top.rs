//! The best few of many, in a heap that never grows beyond them.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// Keeps the `k` greatest of what it is offered.
#[derive(Debug)]
pub(crate) struct Top<T> {
    heap: BinaryHeap<Reverse<T>>,
    k: usize,
}

impl<T: Ord> Top<T> {
    /// Room for `k`.
    pub(crate) fn new(k: usize) -> Self {
        Self { heap: BinaryHeap::new(), k }
    }

    /// Takes `item` if it is among the greatest so far.
    pub(crate) fn offer(&mut self, item: T) {
        if self.heap.len() < self.k {
            self.heap.push(Reverse(item));
        } else if let Some(mut least) = self.heap.peek_mut()
            && item > least.0
        {
            *least = Reverse(item);
        }
    }

    /// Returns what was kept, the greatest first.
    pub(crate) fn into_vec(self) -> Vec<T> {
        self.heap.into_sorted_vec().into_iter().map(|Reverse(item)| item).collect()
    }
}

/// A number in its total order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Ordered(pub(crate) f32);

impl Eq for Ordered {}

impl Ord for Ordered {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl PartialOrd for Ordered {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_greatest_stay_in_order(items in prop::collection::vec(any::<u8>(), 0..50), k in 0..9_usize) {
            let mut top = Top::new(k);
            items.iter().for_each(|item| top.offer(*item));
            let mut sorted = items;
            sorted.sort_unstable_by(|a, b| b.cmp(a));
            sorted.truncate(k);
            prop_assert_eq!(top.into_vec(), sorted);
        }
    }
}
