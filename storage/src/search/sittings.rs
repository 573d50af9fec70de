//! What was said in a session on one day: the document of which the units around a unit are part.
//!
//! A session may last for months, and says little about what one of its units is about. Days are
//! those of UTC, so that the same units are the same sittings in whatever order they come.

use std::collections::HashMap;

use crate::search::index::Entry;

/// The sittings of all sessions.
#[derive(Debug, Default)]
pub(crate) struct Sittings {
    /// By place of the session and day.
    numbers: HashMap<(u32, Option<i64>), u32>,
    /// Terms in all units of each.
    lengths: Vec<u64>,
}

impl Sittings {
    /// The number of the sitting of a unit of so many terms, which is thereby in it.
    pub(crate) fn join(&mut self, unit: &Entry, length: u32) -> u32 {
        let day = unit.at_ms().map(|at_ms| at_ms.div_euclid(DAY_MS));
        let next = self.lengths.len() as u32;
        let number = *self.numbers.entry((unit.session, day)).or_insert(next);
        match self.lengths.get_mut(number as usize) {
            Some(sum) => *sum += u64::from(length),
            None => self.lengths.push(u64::from(length)),
        }
        number
    }

    /// Counts there are.
    pub(crate) fn len(&self) -> usize {
        self.lengths.len()
    }

    /// Terms in one.
    pub(crate) fn length(&self, number: u32) -> u64 {
        self.lengths.get(number as usize).copied().unwrap_or(0)
    }

    /// Terms in all.
    pub(crate) fn total(&self) -> u64 {
        self.lengths.iter().sum()
    }
}

/// The sitting of what isn't in a session.
pub(crate) const NO_SITTING: u32 = u32::MAX;

const DAY_MS: i64 = 86_400_000;
