//! Which units could answer a query, and their features.

use std::cmp::Ordering;

use crate::search::index::{Entry, Index, Wanted};
use crate::search::meaning::Closeness;
use crate::search::query::Query;
use crate::search::rank::{Features, WEIGHTS_WITH_VECTORS, blend};
use crate::search::score::{MASKED, Scores, Scratch};
use crate::search::top::Ordered;

/// Scores of a query, and the units worth a closer look.
pub(crate) struct Candidates<'a> {
    index: &'a Index,
    query: &'a Query,
    scratch: &'a Scratch,
    scores: Scores,
    close: Option<&'a dyn Closeness>,
    /// The speaker whom the query names.
    named: Option<u16>,
    /// Best BM25 of a unit in scope.
    best: f32,
    /// Words that count for `near`, and the weight of all of them.
    telling: (u32, f32),
    /// Words that name somebody or something, and the weight of all of them.
    entities: (u32, f32),
    /// Largest share of the named that is spoken of beside a unit in scope.
    most_named: f32,
}

/// Most units that are looked at closely for their words, and for their meaning.
const BY_WORDS: usize = 1_000;
const BY_MEANING: usize = 200;

impl<'a> Candidates<'a> {
    pub(crate) fn find(index: &'a Index, wanted: &Wanted<'a>, scratch: &'a mut Scratch) -> Self {
        let query = wanted.query;
        let scores = scratch.score(index, query, wanted.filter);
        let in_scope = |document: u32| {
            let unit = index.units.get(document as usize);
            unit.is_some_and(|unit| wanted.filter.passes(index, unit))
        };
        let best = choose_by_words(index, scratch, &in_scope);
        if let Some(close) = wanted.close {
            close.each(index, BY_MEANING, &in_scope, &mut |document| scratch.choose(document));
        }
        let named = index.names.named(query);
        let telling = telling(index, query, &scores.weights);
        let entities = entities(index, query, &scores.weights);
        let (close, most_named) = (wanted.close, 0.0);
        let mut found = Self {
            index,
            query,
            scratch,
            scores,
            close,
            named,
            best,
            telling,
            entities,
            most_named,
        };
        let units = found.documents().iter().filter_map(|document| {
            index.units.get(*document as usize).map(|unit| found.spoken_of(*document, unit))
        });
        found.most_named = units.fold(0.0, f32::max);
        found
    }

    /// The numbers of the units.
    pub(crate) fn documents(&self) -> &'a [u32] {
        &self.scratch.chosen
    }

    /// The units and their features. Where closeness is known roughly, a first order by that finds
    /// the best `k` and as many more, which are looked at once again.
    pub(crate) fn all(&self, k: usize) -> Vec<(&'a Entry, Features)> {
        let units = self.documents().iter().filter_map(|document| {
            let unit = self.index.units.get(*document as usize)?;
            Some((*document, unit, self.features(*document, unit)))
        });
        let mut units: Vec<_> = units.collect();
        if let Some(close) = self.close {
            let best = k.saturating_mul(LOOKED).min(units.len());
            if best < units.len() {
                let sum = |parts: &Features| Ordered(blend(parts, &WEIGHTS_WITH_VECTORS));
                units.select_nth_unstable_by(best, |a, b| sum(&b.2).cmp(&sum(&a.2)));
            }
            let around = units[..best]
                .iter()
                .flat_map(|(document, unit, _)| self.around(*document, unit).into_iter().flatten());
            if close.look(self.index, &mut { around }) {
                for (document, unit, parts) in &mut units[..best] {
                    *parts = self.features(*document, unit);
                }
            }
        }
        units.into_iter().map(|(_, unit, parts)| (unit, parts)).collect()
    }

    /// The features of a unit, in the order of [`NAMES`](super::NAMES).
    pub(crate) fn features(&self, document: u32, unit: &Entry) -> Features {
        let around = self.around(document, unit);
        let share = |by: usize| self.share(around[SIDE + by]);
        let back = |by: usize| self.share(around[SIDE - by]);
        let before = around[SIDE - 1].and_then(|before| self.index.units.get(before as usize));
        let near = self.near(&around);
        let meaning = self.meaning(Some(document));
        let beside = around.iter().filter(|other| **other != Some(document));
        [
            share(0) * share(0),
            back(1),
            back(2),
            share(1),
            if before.is_some_and(Entry::is_question) { back(1) } else { 0.0 },
            // A unit by itself is its own sitting.
            self.scores.sittings.get(unit.sitting as usize).copied().unwrap_or(share(0)),
            near,
            self.length(document, unit),
            flag(unit.is_question()),
            flag(self.query.asks_when && unit.tells_time()),
            unit.at_ms().map_or(0.0, |at_ms| self.query.asked.fits(at_ms)),
            flag(self.named == Some(unit.speaker)),
            self.entity(document, unit),
            self.most_named - self.spoken_of(document, unit),
            meaning,
            meaning * near,
            self.meaning(around[SIDE - 1]),
            beside.map(|other| self.meaning(*other)).fold(0.0, f32::max),
        ]
    }

    /// The unit amid those around it in its session.
    fn around(&self, document: u32, unit: &Entry) -> Around {
        let session = self.index.sessions.get(unit.session as usize);
        let units = session.map_or(&[][..], |session| &session.units);
        std::array::from_fn(|at| {
            if at == SIDE {
                return Some(document);
            }
            let place = (unit.place as usize + at).checked_sub(SIDE);
            place.and_then(|place| units.get(place)).copied()
        })
    }

    fn length(&self, document: u32, unit: &Entry) -> f32 {
        let length = self.index.postings.length(document).min(LENGTH_THAT_COUNTS);
        // A fact is short because it is to the point.
        let short = self.index.fact_of(unit).is_some();
        (length.max(if short { LENGTH_OF_MESSAGES } else { 0 }) as f32).ln_1p() / 4.0
    }

    /// BM25 of a unit, relative to the best.
    fn share(&self, document: Option<u32>) -> f32 {
        let score = document.map_or(0.0, |document| self.scratch.cell(document).score);
        if self.best > 0.0 { score / self.best } else { 0.0 }
    }

    fn meaning(&self, document: Option<u32>) -> f32 {
        let close = self.close.zip(document);
        close.and_then(|(close, document)| close.of(self.index, document)).unwrap_or(0.0)
    }

    /// Says how much of the query stands in a unit or close by.
    fn near(&self, around: &Around) -> f32 {
        let (mut left, all) = self.telling;
        let mut sum = 0.0;
        for (distance, counts) in NEAR.iter().enumerate() {
            let both = [around[SIDE - distance], around[SIDE + distance]];
            let words = both.into_iter().flatten().map(|unit| self.scratch.cell(unit).words);
            let found = words.fold(0, |all, words| all | words) & left;
            left &= !found;
            sum += counts * self.weight_of(found);
        }
        if all > 0.0 { sum / all } else { 0.0 }
    }

    /// Says how much of what the query names a fact is about.
    fn entity(&self, document: u32, unit: &Entry) -> f32 {
        let (named, all) = self.entities;
        if all <= 0.0 || self.index.fact_of(unit).is_none() {
            return 0.0;
        }
        self.weight_of(self.scratch.cell(document).words & named) / all
    }

    /// Counts of those whom or what the query names are spoken of, or speak, on the day of a unit;
    /// in a fact, which has no day, itself.
    fn spoken_of(&self, document: u32, unit: &Entry) -> f32 {
        let (named, _) = self.entities;
        let day = self.scores.held.get(unit.sitting as usize).copied();
        let words = day.unwrap_or_else(|| self.scratch.cell(document).words);
        (words & named).count_ones() as f32 / named.count_ones().max(1) as f32
    }

    /// Returns what the words of a mask weigh together.
    fn weight_of(&self, mut words: u32) -> f32 {
        let mut sum = 0.0;
        while words != 0 {
            let word = words.trailing_zeros() as usize;
            sum += self.scores.weights.get(word).copied().unwrap_or(0.0);
            words &= words - 1;
        }
        sum
    }
}

/// For each hit that is wanted, so many are looked at once again.
const LOOKED: usize = 2;

/// The distance around a unit that is looked at.
const SIDE: usize = 3;
type Around = [Option<u32>; 2 * SIDE + 1];

/// Weights of a word by its distance: powers of .7.
const NEAR: [f32; SIDE + 1] = [1.0, 0.7, 0.49, 0.343];

/// Terms beyond which a longer text isn't the better answer for it.
const LENGTH_THAT_COUNTS: u32 = 40;
/// Terms in a usual message.
const LENGTH_OF_MESSAGES: u32 = 12;

/// Chooses the units in scope with the most of the query's words, and those that answer them.
/// Gives the best BM25.
fn choose_by_words(index: &Index, scratch: &mut Scratch, in_scope: &impl Fn(u32) -> bool) -> f32 {
    let units = scratch.touched.iter().filter(|document| in_scope(**document));
    let mut best: Vec<_> =
        units.map(|document| (Ordered(scratch.cell(*document).score), *document)).collect();
    if best.len() > BY_WORDS {
        // Of equals the newest: their numbers tell only how the index came about.
        let newer = |a: u32, b: u32| index.in_time(a, b).unwrap_or(Ordering::Equal);
        best.select_nth_unstable_by(BY_WORDS, |a, b| b.0.cmp(&a.0).then_with(|| newer(b.1, a.1)));
        best.truncate(BY_WORDS);
    }
    for (_, document) in &best {
        scratch.choose(*document);
        let Some(unit) = index.units.get(*document as usize).filter(|unit| unit.is_question())
        else {
            continue;
        };
        let session = index.sessions.get(unit.session as usize);
        let answer = session.and_then(|session| session.units.get(unit.place as usize + 1));
        if let Some(answer) = answer.filter(|answer| in_scope(**answer)) {
            scratch.choose(*answer);
        }
    }
    best.iter().map(|(score, _)| score.0).fold(0.0, f32::max)
}

/// The words of a query that tell what it is about: neither a speaker's name nor what stands for
/// words that are there as well, unless there is nothing else.
fn telling(index: &Index, query: &Query, weights: &[f32]) -> (u32, f32) {
    match those(query, weights, &|word| !word.is_empty() && !index.names.has(word)) {
        (0, _) => those(query, weights, &|_| true),
        some => some,
    }
}

/// The words of a query that name somebody or something: those who speak here, too.
fn entities(index: &Index, query: &Query, weights: &[f32]) -> (u32, f32) {
    those(query, weights, &|word| {
        query.entities.iter().any(|name| name == word) || index.names.has(word)
    })
}

/// The mask of some words of a query, and what they weigh together.
fn those(query: &Query, weights: &[f32], which: &dyn Fn(&str) -> bool) -> (u32, f32) {
    let words = query.spelt.iter().zip(weights).enumerate().take(MASKED);
    let some = words.filter(|(_, (word, _))| which(word));
    some.fold((0, 0.0), |(mask, all), (number, (_, weight))| (mask | 1 << number, all + weight))
}

fn flag(yes: bool) -> f32 {
    f32::from(u8::from(yes))
}
