//! What share of the places each sort of hit may have.
//!
//! Facts are short, many say nearly the same, and what was inferred is less sure than what was
//! said. So that they can't push out the messages that answer, facts have at most one place in
//! [`FACTS`], and those that were inferred one in [`INFERRED`], rounded up; more only where there
//! is nothing likely to answer for the other places.

use crate::facts::FactKind;
use crate::search::rank::{
    Features, Scale, UNLIKELY, UNLIKELY_WITH_VECTORS, USUAL, WEIGHTS, WEIGHTS_WITH_VECTORS, blend,
};
use crate::search::top::Top;
use crate::search::unit::Ranked;

/// One place in so many is for facts at most, as long as messages answer; rounded up.
pub const FACTS: usize = 2;
/// One place in so many is for facts that were inferred at most, as long as anything else answers;
/// rounded up.
pub const INFERRED: usize = 4;

/// Possible answers, before it is known how likely they are.
#[derive(Debug)]
pub(crate) struct Sorts {
    with_vectors: bool,
    k: usize,
    /// By the sum of their features.
    messages: Top<Ranked>,
    facts: Vec<(Ranked, FactKind)>,
    /// The greatest of each feature.
    most: Features,
}

/// The best of each sort, the best first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Best {
    messages: Vec<Ranked>,
    said: Vec<Ranked>,
    inferred: Vec<Ranked>,
    /// Relevance below which nothing holds a place against others.
    least: f32,
}

impl Sorts {
    /// Room for `k` of each.
    pub(crate) fn new(with_vectors: bool, k: usize) -> Self {
        Self {
            with_vectors,
            k,
            messages: Top::new(k),
            facts: Vec::new(),
            most: Features::default(),
        }
    }

    /// Takes a message, or a fact of this kind, with its features.
    pub(crate) fn offer(&mut self, mut unit: Ranked, kind: Option<FactKind>) {
        self.most.iter_mut().zip(unit.parts).for_each(|(most, part)| *most = most.max(part));
        let weights = if self.with_vectors { &WEIGHTS_WITH_VECTORS } else { &WEIGHTS };
        unit.score = blend(&unit.parts, weights);
        unit.parts.iter_mut().zip(weights).for_each(|(part, weight)| *part *= weight);
        match kind {
            None => self.messages.offer(unit),
            Some(kind) => self.facts.push((unit, kind)),
        }
    }

    /// The best, out of `units`; none where even they are unlikely to answer.
    pub(crate) fn into_best(self, units: usize) -> Best {
        let scale = Scale::new(self.with_vectors, units, &self.most);
        let scored = |mut unit: Ranked| {
            unit.relevance = scale.relevance(unit.score);
            unit.scored();
            unit
        };
        let (mut said, mut inferred) = (Top::new(self.k), Top::new(self.k));
        for (fact, kind) in self.facts {
            let sort = if kind == FactKind::Derives { &mut inferred } else { &mut said };
            sort.offer(scored(fact));
        }
        let messages = self.messages.into_vec().into_iter().map(scored).collect();
        let least = match self.with_vectors {
            _ if units < USUAL => 0.0,
            true => UNLIKELY_WITH_VECTORS,
            false => UNLIKELY,
        };
        let best = Best { messages, said: said.into_vec(), inferred: inferred.into_vec(), least };
        if best.likely() { best } else { Best::default() }
    }
}

impl Best {
    /// Tells whether anything may answer.
    fn likely(&self) -> bool {
        let mut all = self.messages.iter().chain(&self.said).chain(&self.inferred);
        all.any(|one| one.relevance >= self.least)
    }

    /// Those of this kind of fact, or the messages.
    pub(crate) fn of(&mut self, kind: Option<FactKind>) -> &mut Vec<Ranked> {
        match kind {
            None => &mut self.messages,
            Some(FactKind::Derives) => &mut self.inferred,
            Some(_) => &mut self.said,
        }
    }

    /// The best `k` of all, each sort within its share.
    pub(crate) fn mixed(self, k: usize) -> Vec<Ranked> {
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A unit whose features sum up to this without vectors.
    fn unit(number: u64, sum: f32, fact: bool) -> Ranked {
        let mut parts = Features::default();
        parts[0] = sum / WEIGHTS[0];
        Ranked {
            session: 1,
            turn: number,
            fact: fact.then_some(number),
            speaker: 0,
            at_ms: None,
            relevance: 0.0,
            recency: 0.5,
            importance: 0.5,
            score: 0.0,
            parts,
            through: None,
        }
    }

    /// Counts of each sort have a place among `k`, of twenty with the same sum.
    fn mixed(sums: [f32; 3], k: usize) -> [usize; 3] {
        let mut sorts = Sorts::new(false, k);
        for number in 0..20 {
            sorts.offer(unit(number, sums[0], false), None);
            sorts.offer(unit(100 + number, sums[1], true), Some(FactKind::Asserts));
            sorts.offer(unit(200 + number, sums[2], true), Some(FactKind::Derives));
        }
        let found = sorts.into_best(60).mixed(k);
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
        assert_eq!(mixed([12.0, 14.0, 15.0], 12), [6, 3, 3]);
        assert_eq!(mixed([15.0, 14.0, 12.0], 12), [12, 0, 0], "a share is no reservation");
        assert_eq!(mixed([12.0, 14.0, 15.0], 1), [0, 0, 1], "the best one is never shut out");
    }

    #[test]
    fn what_does_not_answer_holds_no_place() {
        assert_eq!(mixed([0.0, 14.0, 15.0], 12), [0, 9, 3]);
        assert_eq!(mixed([0.0, 0.0, 15.0], 12), [0, 0, 12]);
        assert_eq!(mixed([0.0; 3], 12), [0; 3]);
    }

    proptest! {
        #[test]
        fn places_are_filled_in_order(
            sums in prop::collection::vec((5.0_f32..20.0, 0_usize..3), 0..20),
            k in 0..20_usize,
        ) {
            let mut sorts = Sorts::new(false, k);
            for (number, (sum, sort)) in (0..).zip(&sums) {
                let kind = [None, Some(FactKind::Asserts), Some(FactKind::Derives)][*sort];
                sorts.offer(unit(number, *sum, kind.is_some()), kind);
            }
            let found = sorts.into_best(USUAL - 1).mixed(k);
            prop_assert_eq!(found.len(), sums.len().min(k));
            prop_assert!(found.is_sorted_by(|a, b| a.score >= b.score));
        }
    }
}
