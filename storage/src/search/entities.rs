//! Names of what facts are about, so that a query may write them in any way.

use std::collections::HashSet;

use redb::ReadTransaction;

use crate::facts;
use crate::ground::error::Fault;
use crate::search::query::words_of;

/// The names of all entities, read when there are others than before.
#[derive(Debug, Default)]
pub(crate) struct Entities {
    /// Folded, their words with one space between them.
    names: HashSet<String>,
    /// Words of the longest.
    longest: usize,
    /// The number of entities there were, and the number of the last one.
    seen: (u64, u64),
}

impl Entities {
    /// Takes in what there is now.
    pub(crate) fn catch_up(&mut self, transaction: &ReadTransaction) -> Result<(), Fault> {
        let now = facts::entity_extent(transaction)?;
        if now == self.seen {
            return Ok(());
        }
        let (count, last) = self.seen;
        if count.checked_add(self.read(transaction, last)?) != Some(now.0) {
            // Some are gone.
            *self = Self::default();
            self.read(transaction, 0)?;
        }
        self.seen = now;
        Ok(())
    }

    /// Reads those behind a number, and gives how many there are.
    fn read(&mut self, transaction: &ReadTransaction, last: u64) -> Result<u64, Fault> {
        let mut count = 0;
        facts::each_entity(transaction, last.saturating_add(1), &mut |name| {
            count += 1;
            let words = name.map(words_of).unwrap_or_default();
            // A query names these by "I" and "you".
            if words.is_empty() || matches!(name, Some("user" | "assistant")) {
                return;
            }
            self.longest = self.longest.max(words.len());
            self.names.insert(words.join(" "));
        })?;
        Ok(count)
    }

    /// Hands the words of each name that stands among `words` to `take`.
    pub(crate) fn each_in<'w>(&self, words: &'w [String], take: &mut dyn FnMut(&'w [String])) {
        for first in 0..words.len() {
            let rest = words.get(first..).unwrap_or_default();
            for length in 1..=self.longest.min(LONGEST).min(rest.len()) {
                let some = rest.get(..length).unwrap_or_default();
                if self.names.contains(&some.join(" ")) {
                    take(some);
                }
            }
        }
    }
}

/// Words of the longest name that is looked for.
const LONGEST: usize = 6;
