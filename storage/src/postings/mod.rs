//! Which documents hold a term, in memory, and how well they answer a query by BM25.
//!
//! Documents are numbered from 0 in the order they are added in. A term has one list of bytes: for
//! each document the distance from the one before, shifted left by one, and in the lowest bit
//! whether the term is there more than once, as a variable-length integer; then, if so, how often.
//! So a posting takes one or two bytes in a common term's list and up to six in a rare one's.
//!
//! The first documents may be in sealed blocks, as they are in a file; the last ones are in a map.
//! Blocks that follow each other become one by writing their lists one after the other.
//!
//! Removing documents rewrites all lists and numbers the rest anew, without a gap: nothing of what
//! was removed stays, and the statistics are those of an index that never had it. That costs a
//! walk over everything (milliseconds for 100,000 short texts), as deletions are rare.

use std::collections::{BTreeMap, HashMap};

pub(crate) mod sealed;

pub(crate) use crate::postings::sealed::Sealed;

/// Documents by their terms.
#[derive(Debug, Default)]
pub(crate) struct Postings {
    /// Blocks that follow each other from the first document on.
    sealed: Vec<Sealed>,
    /// Terms of the documents behind them.
    terms: HashMap<Box<str>, List>,
    /// Length of each document, in terms.
    lengths: Vec<u32>,
    total_length: u64,
}

/// The place where one term is.
#[derive(Debug, Default)]
pub(crate) struct List {
    bytes: Vec<u8>,
    documents: u32,
    last: u32,
}

/// One document in a list: its number and how often the term is in it.
pub(crate) type Posting = (u32, u32);

/// Saturation of a term's count.
pub(crate) const K1: f32 = 1.2;
/// The weight of a document's length.
pub(crate) const B: f32 = 0.75;

impl Postings {
    /// What is in `sealed` alone; the blocks follow each other, and `lengths` are those of all their
    /// documents.
    pub(crate) fn of_sealed(sealed: Vec<Sealed>, lengths: Vec<u32>) -> Self {
        let total_length = lengths.iter().map(|length| u64::from(*length)).sum();
        Self { sealed, terms: HashMap::new(), lengths, total_length }
    }

    /// A block of all documents from that of number `first` on, which begins a block or is the first
    /// one in none; `None` where that isn't so, or there is no room.
    pub(crate) fn seal(&self, first: u32, seed: u64) -> Option<Vec<u8>> {
        let kept = self.sealed_before(first)?;
        let mut all: BTreeMap<&str, List> = BTreeMap::new();
        for (term, postings) in self.sealed.get(kept..)?.iter().flat_map(Sealed::terms) {
            let list = all.entry(term).or_default();
            postings.for_each(|(document, count)| list.push(document.saturating_sub(first), count));
        }
        for (term, postings) in &self.terms {
            let list = all.entry(term).or_default();
            for (document, count) in postings.postings() {
                list.push(document.saturating_sub(first), count);
            }
        }
        let mut writer = sealed::Writer::new(seed);
        all.iter().all(|(term, list)| writer.push(term, list)).then(|| writer.finish())?
    }

    /// Puts a block that [`seal`](Self::seal) made in the place of what it holds.
    pub(crate) fn sealed(&mut self, block: Sealed) {
        if let Some(kept) = self.sealed_before(block.first()) {
            self.sealed.truncate(kept);
            self.sealed.push(block);
            self.terms = HashMap::new();
        }
    }

    /// Counts blocks there are before that of document `first`.
    fn sealed_before(&self, first: u32) -> Option<usize> {
        let kept = self.sealed.partition_point(|block| block.first() < first);
        let begins = self.sealed.get(kept).is_none_or(|block| block.first() == first);
        begins.then_some(kept)
    }

    /// Takes what is in blocks into the map.
    fn unseal(&mut self) {
        if self.sealed.is_empty() {
            return;
        }
        let mut terms: HashMap<Box<str>, List> = HashMap::new();
        let mut add = |term: &str, postings: &mut dyn Iterator<Item = Posting>| {
            let list = match terms.get_mut(term) {
                Some(list) => list,
                None => terms.entry(term.into()).or_default(),
            };
            postings.for_each(|(document, count)| list.push(document, count));
        };
        for (term, mut postings) in self.sealed.iter().flat_map(Sealed::terms) {
            add(term, &mut postings);
        }
        for (term, list) in &self.terms {
            add(term, &mut list.postings());
        }
        (self.sealed, self.terms) = (Vec::new(), terms);
    }

    /// Number of documents.
    pub(crate) fn len(&self) -> u32 {
        // A document has a number of 32 bits: `add` saw to it.
        u32::try_from(self.lengths.len()).unwrap_or(u32::MAX)
    }

    /// Adds a document of `length` terms, which holds each of `counts` so many times, and gives
    /// its number; `None` when there are too many.
    pub(crate) fn add(&mut self, counts: &HashMap<String, u32>, length: u32) -> Option<u32> {
        let document = u32::try_from(self.lengths.len()).ok().filter(|number| *number < MOST)?;
        self.lengths.push(length);
        self.total_length += u64::from(length);
        for (term, count) in counts {
            match self.terms.get_mut(term.as_str()) {
                Some(list) => list.push(document, *count),
                None => {
                    let mut list = List::default();
                    list.push(document, *count);
                    self.terms.insert(term.as_str().into(), list);
                }
            }
        }
        Some(document)
    }

    /// Removes the documents that `keep` doesn't want. Gives the new number of each old one.
    pub(crate) fn retain(&mut self, keep: impl Fn(u32) -> bool) -> Vec<Option<u32>> {
        self.unseal();
        let mut next = 0;
        let numbers: Vec<Option<u32>> = (0..self.len())
            .map(|old| {
                let kept = keep(old).then_some(next);
                next += u32::from(kept.is_some());
                kept
            })
            .collect();
        let new = |old: u32| numbers.get(old as usize).copied().flatten();
        self.terms.retain(|_, list| {
            let mut kept = List::default();
            for (document, count) in list.postings() {
                if let Some(document) = new(document) {
                    kept.push(document, count);
                }
            }
            kept.bytes.shrink_to_fit();
            *list = kept;
            list.documents > 0
        });
        let mut lengths = self.lengths.iter().zip(&numbers);
        self.lengths = lengths.by_ref().filter(|(_, n)| n.is_some()).map(|(l, _)| *l).collect();
        self.total_length = self.lengths.iter().map(|length| u64::from(*length)).sum();
        numbers
    }

    /// Length of a document, in terms.
    pub(crate) fn length(&self, document: u32) -> u32 {
        self.lengths.get(document as usize).copied().unwrap_or(0)
    }

    /// Mean length of a document.
    fn mean_length(&self) -> f32 {
        mean(self.total_length, self.lengths.len())
    }

    /// In how many documents a term is.
    pub(crate) fn documents(&self, term: &str) -> u32 {
        let sealed: u32 = self.sealed.iter().map(|block| block.documents(term)).sum();
        self.terms.get(term).map_or(0, |list| list.documents) + sealed
    }

    /// The documents that hold `term`, in the order of their numbers.
    pub(crate) fn postings(&self, term: &str) -> impl Iterator<Item = Posting> {
        let sealed = self.sealed.iter().flat_map(move |block| block.postings(term));
        sealed.chain(self.terms.get(term).into_iter().flat_map(List::postings))
    }

    /// The weight of each word of a query. A word is found under any of its spellings, which share
    /// one weight.
    pub(crate) fn weights(&self, words: &[Vec<String>]) -> Vec<f32> {
        let holding = |word: &Vec<String>| word.iter().map(|term| self.documents(term)).sum();
        words.iter().map(|word| idf(self.len(), holding(word))).collect()
    }

    /// Hands every posting of a word of `weight` to `take`, with what it adds to the score of its
    /// document.
    pub(crate) fn each(&self, word: &[String], weight: f32, mut take: impl FnMut(Posting, f32)) {
        let mean = self.mean_length();
        let mut each = |(document, count): Posting| {
            take((document, count), weight * saturated(count, self.length(document), mean));
        };
        for term in word {
            self.sealed.iter().for_each(|block| block.postings(term).for_each(&mut each));
            self.terms
                .get(&**term)
                .into_iter()
                .for_each(|list| list.postings().for_each(&mut each));
        }
    }

    /// Bytes of memory taken, about.
    pub(crate) fn memory(&self) -> usize {
        let terms = self.terms.iter().map(|(term, list)| {
            term.len() + list.bytes.capacity() + size_of::<(Box<str>, List)>() + 1
        });
        let sealed: usize = self.sealed.iter().map(Sealed::memory).sum();
        terms.sum::<usize>() + sealed + self.lengths.capacity() * 4
    }
}

/// Most documents: their distances, shifted, fit in 32 bits.
const MOST: u32 = u32::MAX >> 1;

/// The weight of a word that is in `holding` of `all` documents.
pub(crate) fn idf(all: u32, holding: u32) -> f32 {
    let (all, holding) = (all as f32, (holding.min(all)) as f32);
    (1.0 + (all - holding + 0.5) / (holding + 0.5)).ln()
}

/// Returns what `count` times a word in a document of `length` counts, relative to the word's weight.
pub(crate) fn saturated(count: u32, length: u32, mean_length: f32) -> f32 {
    let (count, length) = (count as f32, length as f32);
    count * (K1 + 1.0) / (count + K1 * (1.0 - B + B * length / mean_length))
}

/// The mean of lengths; 1 where there is none, as it divides.
pub(crate) fn mean(total: u64, documents: usize) -> f32 {
    if total == 0 { 1.0 } else { total as f32 / documents as f32 }
}

impl List {
    fn push(&mut self, document: u32, count: u32) {
        let distance = document.saturating_sub(if self.documents == 0 { 0 } else { self.last });
        write(&mut self.bytes, distance << 1 | u32::from(count > 1));
        if count > 1 {
            write(&mut self.bytes, count);
        }
        self.last = document;
        self.documents += 1;
    }

    fn postings(&self) -> impl Iterator<Item = Posting> + '_ {
        postings(&self.bytes, 0)
    }
}

/// The postings of a list whose numbers count from `first`.
fn postings(bytes: &[u8], first: u32) -> impl Iterator<Item = Posting> + '_ {
    let mut bytes = bytes.iter();
    let mut document = first;
    std::iter::from_fn(move || {
        let head = read(&mut bytes)?;
        document = document.saturating_add(head >> 1);
        let count = if head & 1 == 0 { 1 } else { read(&mut bytes)? };
        Some((document, count))
    })
}

fn write(bytes: &mut Vec<u8>, mut value: u32) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

fn read(bytes: &mut std::slice::Iter<'_, u8>) -> Option<u32> {
    let mut value = 0;
    for shift in (0..32).step_by(7) {
        let byte = *bytes.next()?;
        value |= u32::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    /// Documents as lists of terms; a query as words with spellings. Terms are digits.
    type Text = Vec<u8>;

    fn term(number: u8) -> String {
        format!("t{number}")
    }

    fn counts(text: &Text) -> HashMap<String, u32> {
        let mut counts = HashMap::new();
        for number in text {
            *counts.entry(term(*number)).or_insert(0) += 1;
        }
        counts
    }

    /// BM25 as the book has it, in f64, without an index.
    fn reference(texts: &[Text], query: &[Vec<u8>]) -> Vec<f64> {
        let all = texts.len() as f64;
        let total: usize = texts.iter().map(Vec::len).sum();
        let mean = if total == 0 { 1.0 } else { total as f64 / all };
        let holding = |number: u8| texts.iter().filter(|text| text.contains(&number)).count();
        let score = |text: &Text| {
            let words = query.iter().map(|word| {
                let df =
                    (word.iter().map(|number| holding(*number)).sum::<usize>() as f64).min(all);
                let idf = (1.0 + (all - df + 0.5) / (df + 0.5)).ln();
                let spellings = word.iter().map(|number| {
                    let tf = text.iter().filter(|other| *other == number).count() as f64;
                    tf * 2.2 / (tf + 1.2 * (0.25 + 0.75 * text.len() as f64 / mean))
                });
                idf * spellings.sum::<f64>()
            });
            words.sum()
        };
        texts.iter().map(score).collect()
    }

    fn texts() -> impl Strategy<Value = Vec<(Text, bool)>> {
        let text = prop::collection::vec(0..12_u8, 0..30);
        prop::collection::vec((text, prop::bool::weighted(0.7)), 0..40)
    }

    fn spelt(query: &[Vec<u8>]) -> Vec<Vec<String>> {
        query.iter().map(|word| word.iter().map(|number| term(*number)).collect()).collect()
    }

    proptest! {
        #[test]
        fn scores_are_those_of_bm25_before_and_after_removing(
            texts in texts(),
            more in prop::collection::vec(prop::collection::vec(0..12_u8, 0..9), 0..5),
            query in prop::collection::vec(prop::collection::hash_set(0..14_u8, 1..3), 0..4),
        ) {
            let query: Vec<Vec<u8>> =
                query.into_iter().map(|word| word.into_iter().collect()).collect();
            let mut postings = Postings::default();
            for (number, (text, _)) in texts.iter().enumerate() {
                let added = postings.add(&counts(text), text.len() as u32);
                prop_assert_eq!(added, Some(number as u32));
            }
            let same = |postings: &Postings, texts: &[Text]| {
                let mut scores = vec![0.0; postings.len() as usize];
                let words = spelt(&query);
                for (word, weight) in words.iter().zip(postings.weights(&words)) {
                    postings.each(word, weight, |(document, _), gain| {
                        scores[document as usize] += gain;
                    });
                }
                let expected = reference(texts, &query);
                prop_assert_eq!(scores.len(), expected.len());
                for (score, expected) in scores.iter().zip(expected) {
                    prop_assert!((f64::from(*score) - expected).abs() < 1e-4 * (1.0 + expected));
                }
                Ok(())
            };
            let all: Vec<Text> = texts.iter().map(|(text, _)| text.clone()).collect();
            same(&postings, &all)?;
            let numbers = postings.retain(|document| texts[document as usize].1);
            let mut left: Vec<Text> =
                texts.iter().filter(|(_, keep)| *keep).map(|(text, _)| text.clone()).collect();
            for (old, new) in numbers.iter().enumerate() {
                prop_assert_eq!(new.is_some(), texts[old].1);
                if let Some(new) = new {
                    prop_assert_eq!(&left[*new as usize], &texts[old].0);
                }
            }
            same(&postings, &left)?;
            for text in more {
                postings.add(&counts(&text), text.len() as u32);
                left.push(text);
            }
            same(&postings, &left)?;
        }

        #[test]
        fn a_list_gives_back_what_it_took(
            list in prop::collection::btree_map(0..MOST, 1..u32::MAX, 0..50),
        ) {
            let mut written = List::default();
            for (document, count) in &list {
                written.push(*document, *count);
            }
            prop_assert_eq!(written.postings().collect::<BTreeMap<_, _>>(), list);
        }
    }

    #[test]
    fn nothing_of_what_was_removed_stays() {
        let mut postings = Postings::default();
        postings.add(&counts(&vec![1, 2]), 2);
        postings.add(&counts(&vec![2, 3]), 2);
        postings.retain(|document| document == 1);
        assert_eq!(postings.terms.len(), 2);
        assert_eq!(postings.documents("t1"), 0);
    }

    #[test]
    fn a_posting_of_a_common_term_takes_a_byte() {
        let mut postings = Postings::default();
        for _ in 0..1000 {
            postings.add(&counts(&vec![7]), 1);
        }
        assert_eq!(postings.terms["t7"].bytes.len(), 1000);
    }
}
