//! What writes changed, by number: enough to bring what was made from the records up to date.

use std::collections::{BTreeMap, BTreeSet};

use garret_core::id::TurnSeq;
use serde::{Deserialize, Serialize};

use crate::conversations::import::Place;
use crate::facts::FactOp;
use crate::journal::apply::Outcome;
use crate::journal::op::Op;
use crate::vectors::UnitKey;

/// Changes of some writes. What is there now, the records say: so neither their order counts, nor
/// whether one of them is here twice.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Changes {
    /// Sessions that came into being, got a turn or another name, and that name.
    pub(crate) sessions: BTreeMap<u64, String>,
    /// Turns that were accepted.
    pub(crate) said: Vec<Run>,
    /// Turns that were answered.
    pub(crate) answered: Vec<Run>,
    /// Sessions that were deleted.
    pub(crate) removed: BTreeSet<u64>,
    /// Facts that are new, hold at other times, were of use, or are gone.
    pub(crate) facts: BTreeSet<u64>,
}

/// Turns of a session that follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Run {
    pub(crate) session: u64,
    pub(crate) first: TurnSeq,
    pub(crate) count: u64,
}

impl Changes {
    /// Adds what a write came to. False where that can't be told.
    #[must_use]
    pub(crate) fn add(&mut self, op: &Op<'_>, outcome: &Outcome) -> bool {
        match (op, outcome) {
            (Op::Accept { session, .. }, Outcome::Accepted { number, seq }) => {
                self.session(*number, session);
                push(&mut self.said, *number, *seq);
            }
            (Op::Reply(reply) | Op::TracedReply { reply, .. }, Outcome::Replied { number }) => {
                push(&mut self.answered, *number, reply.seq);
            }
            (Op::Rename { to, .. }, Outcome::Renamed { number }) => self.session(*number, to),
            // None of that is searched.
            (Op::SetTitle { .. } | Op::SetState { .. } | Op::Compact(_), _) => {}
            (Op::Delete { .. }, Outcome::Deleted { numbers }) => self.removed.extend(numbers),
            (Op::Facts(op), Outcome::Facts(effect)) => {
                self.facts.extend(effect.changed.iter().map(|fact| fact.0));
                if let FactOp::Touch(touches) = op {
                    self.facts.extend(touches.iter().map(|(fact, _)| *fact));
                }
            }
            (Op::Import(all), Outcome::Imported(places)) => {
                for (said, place) in all.iter().zip(places) {
                    let Some(Place { number, seq, as_reply }) = *place else { continue };
                    self.session(number, said.session);
                    let runs = if as_reply { &mut self.answered } else { &mut self.said };
                    push(runs, number, seq);
                }
            }
            _ => return false,
        }
        true
    }

    /// Adds all that `other` has.
    pub(crate) fn extend(&mut self, other: &Self) {
        for (number, id) in &other.sessions {
            self.session(*number, id);
        }
        other.said.iter().for_each(|run| append(&mut self.said, *run));
        other.answered.iter().for_each(|run| append(&mut self.answered, *run));
        self.removed.extend(&other.removed);
        self.facts.extend(&other.facts);
    }

    /// Tells whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Messages and facts among them.
    pub(crate) fn units(&self) -> u64 {
        let messages = self.said.iter().chain(&self.answered).map(|run| run.count);
        messages.fold(self.facts.len() as u64, u64::saturating_add)
    }

    /// The messages and facts among them that may be there now.
    pub(crate) fn keys(&self) -> impl Iterator<Item = UnitKey> {
        let said = turns(&self.said).map(|(session, turn)| UnitKey::Words { session, turn });
        let answered = turns(&self.answered);
        let answered = answered.map(|(session, turn)| UnitKey::Reply { session, turn });
        let facts = self.facts.iter().map(|id| UnitKey::Fact { id: *id });
        said.chain(answered).chain(facts)
    }

    /// Entries that it takes.
    pub(crate) fn len(&self) -> usize {
        self.sessions.len()
            + self.said.len()
            + self.answered.len()
            + self.removed.len()
            + self.facts.len()
    }

    fn session(&mut self, number: u64, id: &str) {
        match self.sessions.get_mut(&number) {
            Some(known) if known == id => {}
            Some(known) => id.clone_into(known),
            None => drop(self.sessions.insert(number, id.to_owned())),
        }
    }
}

/// Each turn of some runs, and its session's number.
fn turns(runs: &[Run]) -> impl Iterator<Item = (u64, TurnSeq)> {
    runs.iter().flat_map(|run| {
        let turns = run.first..run.first.saturating_add(run.count);
        turns.map(|turn| (run.session, turn))
    })
}

fn push(runs: &mut Vec<Run>, session: u64, first: TurnSeq) {
    append(runs, Run { session, first, count: 1 });
}

/// Adds turns, to the run that they follow if that is the last one.
fn append(runs: &mut Vec<Run>, run: Run) {
    match runs.last_mut() {
        Some(last)
            if last.session == run.session
                && last.first.checked_add(last.count) == Some(run.first) =>
        {
            last.count = last.count.saturating_add(run.count);
        }
        _ => runs.push(run),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A conversation takes an entry for each side, however long it is.
    #[test]
    fn turns_that_follow_each_other_are_one_entry() {
        let mut changes = Changes::default();
        for turn in 1..=100 {
            push(&mut changes.said, 7, turn);
            push(&mut changes.answered, 7, turn);
        }
        let run = Run { session: 7, first: 1, count: 100 };
        assert_eq!((&*changes.said, &*changes.answered), (&[run][..], &[run][..]));
        push(&mut changes.said, 8, 101);
        assert_eq!((changes.said.len(), changes.units()), (2, 201));
        let mut both = changes.clone();
        both.extend(&changes);
        assert_eq!(both.units(), 402);
    }
}
