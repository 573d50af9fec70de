//! What a search may find at all: decided before anything is ranked or cut.

use garret_language::casefold;

use crate::search::index::{Entry, Index};
use crate::search::unit::Kind;

/// A choice of the units that are looked at.
#[derive(Clone, Debug, Default)]
pub(crate) struct Filter {
    /// In this session; a fact that was said there.
    pub(crate) session: Option<u64>,
    /// By one of these speakers, by number; by any where there are none.
    pub(crate) speakers: Vec<u16>,
    /// Of one of these kinds; of any where there are none.
    pub(crate) kinds: Vec<Kind>,
    /// Said by then; a fact that was true then.
    pub(crate) as_of: Option<i64>,
    /// Facts that were replaced, too.
    pub(crate) replaced: bool,
    /// Not in this turn of this session.
    pub(crate) except: Option<(u64, u64)>,
}

impl Filter {
    /// Lets pass what `source` said, by its name; false when nobody of that name said anything.
    pub(crate) fn only(&mut self, index: &Index, source: &str) -> bool {
        self.speakers = index.names.find(&casefold(source));
        !self.speakers.is_empty()
    }

    /// Tells whether every unit passes but facts that were replaced and the one turn.
    pub(crate) fn is_open(&self) -> bool {
        self.session.is_none()
            && self.speakers.is_empty()
            && self.kinds.is_empty()
            && self.as_of.is_none()
    }

    pub(crate) fn passes(&self, index: &Index, unit: &Entry) -> bool {
        let fact = index.fact_of(unit);
        let session = match fact {
            Some(fact) => fact.session,
            None => index.session_of(unit),
        };
        let kind = fact.map_or(Kind::Message, |fact| Kind::Fact(fact.kind));
        let in_time = match (self.as_of, fact) {
            (Some(then), Some(fact)) => {
                unit.at_ms().is_some_and(|at| at <= then)
                    && fact.valid_to.is_none_or(|end| then < end)
            }
            (Some(then), None) => unit.at_ms().is_some_and(|at| at <= then),
            (None, Some(fact)) => fact.latest || self.replaced,
            (None, None) => true,
        };
        in_time
            && !self.is_excepted(index, unit)
            && (self.session.is_none() || session == self.session)
            && (self.speakers.is_empty() || self.speakers.contains(&unit.speaker))
            && (self.kinds.is_empty() || self.kinds.contains(&kind))
    }

    /// Tells whether it is of the one turn that isn't looked at.
    pub(crate) fn is_excepted(&self, index: &Index, unit: &Entry) -> bool {
        let of_turn = |(session, turn)| {
            unit.turn == turn && index.session_of(unit).is_some_and(|number| number == session)
        };
        self.except.is_some_and(of_turn)
    }
}
