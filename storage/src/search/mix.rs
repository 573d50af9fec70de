//! What share of the places each sort of hit may have.
//!
//! Facts are short, many say nearly the same, and what was inferred is less sure than what was
//! said. So that they can't push out the messages that answer, facts have at most one place in
//! [`FACTS`], and those that were inferred one in [`INFERRED`], rounded up; more only where there
//! is nothing likely to answer for the other places.

use super::rank::{WEIGHTS, WEIGHTS_WITH_VECTORS, blend, relevance};
use super::top::Top;
use super::unit::Ranked;
use crate::facts::FactKind;

/// One place in so many is for facts at most, as long as messages answer.
const FACTS: usize = 2;
/// One place in so many is for facts that were inferred at most, as long as anything else answers.
const INFERRED: usize = 4;

/// The best of each sort so far.
#[derive(Debug)]
pub(super) struct Sorts {
    messages: Top<Ranked>,
    said: Top<Ranked>,
    inferred: Top<Ranked>,
}

/// The best of each sort, the best first.
#[derive(Clone, Debug, Default)]
pub(super) struct Best {
    pub(super) messages: Vec<Ranked>,
    pub(super) said: Vec<Ranked>,
    pub(super) inferred: Vec<Ranked>,
    /// Relevance below which nothing holds a place against others.
    least: f32,
}

impl Sorts {
    /// Room for `k` of each.
    pub(super) fn new(k: usize) -> Self {
        Self { messages: Top::new(k), said: Top::new(k), inferred: Top::new(k) }
    }

    /// Takes a message, or a fact of this kind.
    pub(super) fn offer(&mut self, unit: Ranked, kind: Option<FactKind>) {
        match kind {
            None => self.messages.offer(unit),
            Some(FactKind::Derives) => self.inferred.offer(unit),
            Some(_) => self.said.offer(unit),
        }
    }

    /// What was kept; what is less relevant than `least` holds no place against others.
    pub(super) fn into_best(self, least: f32) -> Best {
        Best {
            messages: self.messages.into_vec(),
            said: self.said.into_vec(),
            inferred: self.inferred.into_vec(),
            least,
        }
    }
}

impl Best {
    /// Those of this kind of fact, or the messages.
    pub(super) fn of(&mut self, kind: Option<FactKind>) -> &mut Vec<Ranked> {
        match kind {
            None => &mut self.messages,
            Some(FactKind::Derives) => &mut self.inferred,
            Some(_) => &mut self.said,
        }
    }

    /// The best `k` of all, each sort within its share.
    pub(super) fn mixed(self, k: usize) -> Vec<Ranked> {
        let Self { messages, mut said, mut inferred, least } = self;
        let likely = |some: &[Ranked]| some.iter().filter(|one| one.relevance >= least).count();
        let left = k.saturating_sub(likely(&messages));
        inferred.truncate(k.div_ceil(INFERRED).max(left.saturating_sub(likely(&said))));
        said.append(&mut inferred);
        said.sort_unstable_by(|a, b| b.cmp(a));
        said.truncate(k.div_ceil(FACTS).max(left));
        let mut all = [messages, said].concat();
        all.sort_unstable_by(|a, b| b.cmp(a));
        all.truncate(k);
        all
    }
}

/// Turns the features of a unit into its parts, its relevance and its score.
pub(super) fn weigh(unit: &mut Ranked, with_vectors: bool) {
    let weights = if with_vectors { &WEIGHTS_WITH_VECTORS } else { &WEIGHTS };
    unit.relevance = relevance(blend(&unit.parts, weights), with_vectors);
    unit.parts.iter_mut().zip(weights).for_each(|(part, weight)| *part *= weight);
    unit.scored();
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::search::Features;

    const LEAST: f32 = 0.1;

    fn unit(number: u64, relevance: f32, fact: bool) -> Ranked {
        let mut unit = Ranked {
            session: 1,
            turn: number,
            fact: fact.then_some(number),
            speaker: 0,
            at_ms: None,
            relevance,
            recency: 0.5,
            importance: 0.5,
            score: 0.0,
            parts: Features::default(),
            through: None,
        };
        unit.scored();
        unit
    }

    /// So many of each sort, all as relevant.
    fn mixed(relevance: [f32; 3], k: usize) -> [usize; 3] {
        let mut sorts = Sorts::new(k);
        for number in 0..20 {
            sorts.offer(unit(number, relevance[0], false), None);
            sorts.offer(unit(100 + number, relevance[1], true), Some(FactKind::Asserts));
            sorts.offer(unit(200 + number, relevance[2], true), Some(FactKind::Derives));
        }
        let found = sorts.into_best(LEAST).mixed(k);
        let count =
            |of: &dyn Fn(Option<u64>) -> bool| found.iter().filter(|one| of(one.fact)).count();
        [
            count(&|fact| fact.is_none()),
            count(&|fact| fact.is_some_and(|id| id < 200)),
            count(&|fact| fact.is_some_and(|id| id >= 200)),
        ]
    }

    #[test]
    fn facts_have_their_share_while_others_answer() {
        assert_eq!(mixed([0.2, 0.8, 0.9], 12), [6, 3, 3]);
        assert_eq!(mixed([0.9, 0.8, 0.2], 12), [12, 0, 0], "a share is no reservation");
        assert_eq!(mixed([0.2, 0.8, 0.9], 1), [0, 0, 1], "the best one is never shut out");
    }

    #[test]
    fn what_does_not_answer_holds_no_place() {
        assert_eq!(mixed([0.05, 0.8, 0.9], 12), [0, 9, 3]);
        assert_eq!(mixed([0.05, 0.05, 0.9], 12), [0, 0, 12]);
    }

    proptest! {
        #[test]
        fn places_are_filled_in_order(
            relevance in prop::collection::vec((0.0_f32..1.0, 0_u8..3), 0..40),
            k in 0..20_usize,
        ) {
            let mut sorts = Sorts::new(k);
            for (number, (relevance, sort)) in (0..).zip(&relevance) {
                let kind = [None, Some(FactKind::Asserts), Some(FactKind::Derives)];
                let kind = kind[usize::from(*sort)];
                sorts.offer(unit(number, *relevance, kind.is_some()), kind);
            }
            let found = sorts.into_best(LEAST).mixed(k);
            prop_assert_eq!(found.len(), relevance.len().min(k));
            prop_assert!(found.is_sorted_by(|a, b| a.score >= b.score));
        }
    }
}
