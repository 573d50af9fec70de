//! Cosines of one query, made comparable between queries and embedders.

use std::cell::RefCell;

use crate::search::index::Index;
use crate::search::top::{Ordered, Top};
use crate::vectors::{Scores, VectorStore};

/// The closeness of units to a query, in quarters of a standard deviation from the mean of all.
pub(crate) trait Closeness {
    /// Says how close a unit is; `None` without a vector.
    fn of(&self, index: &Index, document: u32) -> Option<f32>;

    /// Finds out exactly how close these units are, where that is known roughly; whether it was for
    /// any.
    fn look(&self, index: &Index, documents: &mut dyn Iterator<Item = u32>) -> bool;

    /// Hands the closest units to `take`: at most `most` of those in scope, none farther than the
    /// mean.
    fn each(
        &self,
        index: &Index,
        most: usize,
        in_scope: &dyn Fn(u32) -> bool,
        take: &mut dyn FnMut(u32),
    );
}

/// From a cosine to how far it is above the mean.
#[derive(Clone, Copy, Debug)]
struct Scale {
    mean: f32,
    /// Four standard deviations.
    unit: f32,
}

impl Scale {
    fn new(mean: f32, deviation: f32, count: usize) -> Self {
        // As if there were a few more, as usual ones are: else two units would have no scale.
        let (count, prior) = (count as f32, PRIOR_UNITS);
        let square = count * deviation * deviation + prior * PRIOR_DEVIATION * PRIOR_DEVIATION;
        Self { mean, unit: 4.0 * (square / (count + prior)).max(1e-6).sqrt() }
    }

    fn of(self, cosine: f32) -> f32 {
        (cosine - self.mean) / self.unit
    }
}

/// Units that a small store is assumed to hold beside its own.
const PRIOR_UNITS: f32 = 8.0;
const PRIOR_DEVIATION: f32 = 0.12;

/// Cosines by the number of the document.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cosines<'a> {
    cosines: &'a [f32],
    scale: Scale,
}

impl<'a> Cosines<'a> {
    /// `None` where there isn't a single vector.
    pub(crate) fn of(cosines: &'a [f32]) -> Option<Self> {
        let (mut sum, mut squares, mut count) = (0.0_f64, 0.0_f64, 0_usize);
        for cosine in cosines.iter().copied().filter(|cosine| cosine.is_finite()) {
            let cosine = f64::from(cosine);
            (sum, squares, count) = (sum + cosine, squares + cosine * cosine, count + 1);
        }
        if count == 0 {
            return None;
        }
        let mean = sum / count as f64;
        let deviation = (squares / count as f64 - mean * mean).max(0.0).sqrt();
        Some(Self { cosines, scale: Scale::new(mean as f32, deviation as f32, count) })
    }
}

impl Closeness for Cosines<'_> {
    fn of(&self, _: &Index, document: u32) -> Option<f32> {
        let cosine = self.cosines.get(document as usize).copied();
        cosine.filter(|cosine| cosine.is_finite()).map(|cosine| self.scale.of(cosine))
    }

    fn look(&self, _: &Index, _: &mut dyn Iterator<Item = u32>) -> bool {
        false
    }

    fn each(
        &self,
        _: &Index,
        most: usize,
        in_scope: &dyn Fn(u32) -> bool,
        take: &mut dyn FnMut(u32),
    ) {
        let mut top = Top::new(most);
        for (document, cosine) in (0..).zip(self.cosines) {
            if *cosine > self.scale.mean && in_scope(document) {
                top.offer((Ordered(*cosine), document));
            }
        }
        top.into_vec().into_iter().for_each(|(_, document)| take(document));
    }
}

/// Closeness by the vectors of a store.
pub(crate) struct Stored<'a> {
    vectors: &'a VectorStore,
    query: &'a [f32],
    scores: RefCell<Scores>,
    scale: Scale,
    /// The place of each document's vector, plus one, once it was looked for, since each is asked for
    /// by all those around it; else [`UNKNOWN`].
    slots: RefCell<Vec<u32>>,
}

const UNKNOWN: u32 = 0;
/// The place of a vector that isn't there. No store has as many.
const NONE: u32 = u32::MAX;

impl<'a> Stored<'a> {
    /// Returns what they say of `query`, for which `scores` were made, about so many documents.
    pub(crate) fn new(
        vectors: &'a VectorStore,
        query: &'a [f32],
        scores: Scores,
        documents: usize,
    ) -> Self {
        let scale = Scale::new(scores.mean, scores.deviation, vectors.len());
        let slots = RefCell::new(vec![UNKNOWN; documents]);
        Self { vectors, query, scores: RefCell::new(scores), scale, slots }
    }

    fn slot(&self, index: &Index, document: u32) -> Option<u32> {
        let mut slots = self.slots.borrow_mut();
        let slot = slots.get_mut(document as usize)?;
        if *slot == UNKNOWN {
            let found = index.key(document).and_then(|key| self.vectors.slot(key));
            *slot = found.map_or(NONE, |found| found + 1);
        }
        (*slot != NONE).then(|| *slot - 1)
    }
}

impl Closeness for Stored<'_> {
    fn of(&self, index: &Index, document: u32) -> Option<f32> {
        let slot = self.slot(index, document)?;
        self.scores.borrow().cosine(slot).map(|cosine| self.scale.of(cosine))
    }

    fn look(&self, index: &Index, documents: &mut dyn Iterator<Item = u32>) -> bool {
        let slots = documents.filter_map(|document| self.slot(index, document));
        let looked = self.vectors.look(self.query, slots, &mut self.scores.borrow_mut());
        let looked = looked.inspect_err(|error| tracing::warn!(%error, "ranked by coarse vectors"));
        looked.unwrap_or(false)
    }

    fn each(
        &self,
        index: &Index,
        most: usize,
        in_scope: &dyn Fn(u32) -> bool,
        take: &mut dyn FnMut(u32),
    ) {
        let scores = self.scores.borrow();
        let close = scores.top.iter().filter(|hit| hit.cosine > self.scale.mean);
        let documents = close.filter_map(|hit| index.document(hit.key));
        documents.filter(|document| in_scope(*document)).take(most).for_each(take);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scale_does_not_depend_on_the_embedder() {
        let cosines: Vec<f32> = (0..1000).map(|unit| (unit as f32).sin() * 0.1).collect();
        let other: Vec<f32> = cosines.iter().map(|cosine| 0.8 + cosine / 4.0).collect();
        let (one, other) = (Cosines::of(&cosines).unwrap(), Cosines::of(&other).unwrap());
        let index = Index::default();
        for unit in 0..1000 {
            let pair = one.of(&index, unit).zip(other.of(&index, unit));
            assert!(pair.is_some_and(|(one, other)| (one - other).abs() < 0.05), "{unit}");
        }
    }

    #[test]
    fn a_unit_without_a_vector_is_neither_close_nor_far() {
        let index = Index::default();
        let cosines = [0.9, f32::NAN, 0.1];
        let close = Cosines::of(&cosines).unwrap();
        assert_eq!((close.of(&index, 1), close.of(&index, 7)), (None, None));
        assert!(close.of(&index, 0) > Some(0.0));
        let mut found = Vec::new();
        close.each(&index, 9, &|_| true, &mut |unit| found.push(unit));
        assert_eq!(found, [0]);
        assert!(Cosines::of(&[f32::NAN]).is_none() && Cosines::of(&[]).is_none());
    }
}
