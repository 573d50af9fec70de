//! What each document and each sitting has of a query: one walk over the postings of its words.

use crate::postings::{idf, mean, saturated};
use crate::search::filter::Filter;
use crate::search::index::Index;
use crate::search::query::Query;

/// Room to work in, kept from search to search.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    /// By number of the document.
    cells: Vec<Cell>,
    /// Documents that have a word.
    pub(crate) touched: Vec<u32>,
    /// The number of times a word is in each sitting.
    counts: Vec<u32>,
    /// Documents to be looked at closely, each once.
    pub(crate) chosen: Vec<u32>,
}

/// The part of a query that a document has.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cell {
    /// BM25.
    pub(crate) score: f32,
    /// A bit for each of the first [`MASKED`] words; [`CHOSEN`] beside them.
    pub(crate) words: u32,
}

/// Words of a query that are told apart in [`Cell::words`].
pub(crate) const MASKED: usize = 31;
/// The document is among those chosen.
const CHOSEN: u32 = 1 << MASKED;

/// Scores of a query before any unit is looked at.
#[derive(Debug, Default)]
pub(crate) struct Scores {
    /// BM25 of each sitting, relative to the best.
    pub(crate) sittings: Vec<f32>,
    /// A bit for each of the first [`MASKED`] words that a session-day holds.
    pub(crate) held: Vec<u32>,
    /// The weight of each word of the query.
    pub(crate) weights: Vec<f32>,
}

impl Scratch {
    pub(crate) fn cell(&self, document: u32) -> Cell {
        self.cells.get(document as usize).copied().unwrap_or_default()
    }

    /// Marks a document as chosen, if it isn't yet.
    pub(crate) fn choose(&mut self, document: u32) {
        let Some(cell) = self.cells.get_mut(document as usize) else { return };
        if cell.words & CHOSEN == 0 {
            cell.words |= CHOSEN;
            self.chosen.push(document);
        }
    }

    /// Walks over the postings of `query`, without those of a turn that `filter` excepts: that counts
    /// neither for its neighbours nor for its day.
    pub(crate) fn score(&mut self, index: &Index, query: &Query, filter: &Filter) -> Scores {
        self.cells.resize(index.len(), Cell::default());
        let sittings = &index.sittings;
        self.counts.resize(sittings.len(), 0);
        let weights = index.postings.weights(&query.words);
        let mean = mean(sittings.total(), sittings.len());
        let mut scores = vec![0.0_f32; sittings.len()];
        let mut words = vec![0_u32; sittings.len()];
        let mut held = Vec::new();
        for (number, (word, weight)) in query.words.iter().zip(&weights).enumerate() {
            let bit = if number < MASKED { 1 << number } else { 0 };
            index.postings.each(word, *weight, |(document, count), gain| {
                let Some(unit) = index.units.get(document as usize) else { return };
                if filter.is_excepted(index, unit) {
                    return;
                }
                self.add(document, bit, gain);
                if let Some(sum) = self.counts.get_mut(unit.sitting as usize) {
                    if *sum == 0 {
                        held.push(unit.sitting);
                    }
                    *sum = sum.saturating_add(count);
                }
            });
            let idf = idf(sittings.len() as u32, held.len() as u32);
            for number in held.drain(..) {
                let length = u32::try_from(sittings.length(number)).unwrap_or(u32::MAX);
                let count = std::mem::take(&mut self.counts[number as usize]);
                scores[number as usize] += idf * saturated(count, length, mean);
                words[number as usize] |= bit;
            }
        }
        let best = scores.iter().copied().fold(0.0, f32::max);
        if best > 0.0 {
            scores.iter_mut().for_each(|score| *score /= best);
        }
        Scores { sittings: scores, held: words, weights }
    }

    fn add(&mut self, document: u32, bit: u32, gain: f32) {
        let Some(cell) = self.cells.get_mut(document as usize) else { return };
        if cell.score == 0.0 {
            self.touched.push(document);
        }
        cell.score += gain;
        cell.words |= bit;
    }

    /// Makes it as good as new.
    pub(crate) fn clear(&mut self) {
        for document in self.touched.drain(..).chain(self.chosen.drain(..)) {
            if let Some(cell) = self.cells.get_mut(document as usize) {
                *cell = Cell::default();
            }
        }
    }
}
