//! Which facts were of use: those that a reply was given with.
//!
//! That keeps them fresh, so they are found before others of the same relevance. It is written down
//! for many turns at once and never on the way to a reply: in idle time, when the agent ends, or
//! after a turn when [`MOST`] wait. What waits when the process is killed is lost, which makes a fact
//! look less used than it was.

use std::sync::Arc;

use garret_core::time::{Confidence, WallTime};
use garret_storage::{FactId, Store};

/// Facts that were recalled and aren't marked as used yet.
#[derive(Debug)]
pub(super) struct Uses {
    store: Arc<Store>,
    /// Each with the moment in milliseconds since 1970.
    waiting: Vec<(FactId, i64)>,
}

/// Uses that wait at most.
const MOST: usize = 64;

impl Uses {
    pub(super) const fn new(store: Arc<Store>) -> Self {
        Self { store, waiting: Vec::new() }
    }

    /// Notes the facts among the hits of these ids, unless the clock is known to be wrong.
    pub(super) fn note(&mut self, ids: &[String], at: WallTime) {
        if at.confidence == Confidence::Wrong {
            return;
        }
        let facts = ids.iter().filter_map(|id| id.parse().ok());
        self.waiting.extend(facts.map(|fact: FactId| (fact, at.unix_ms)));
        if self.waiting.len() >= MOST {
            self.store();
        }
    }

    /// Writes down what waits. A failure loses no more than counts.
    pub(super) fn store(&mut self) {
        let waiting = std::mem::take(&mut self.waiting);
        if waiting.is_empty() {
            return;
        }
        if let Err(error) = self.store.touch(&waiting) {
            tracing::debug!(%error, "what was recalled isn't counted");
        }
    }
}

impl Drop for Uses {
    fn drop(&mut self) {
        self.store();
    }
}
