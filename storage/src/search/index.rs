//! The index of what was said: units, their terms, and the ranking over both.

use std::cmp::Ordering;
use std::collections::HashMap;

use super::dates::{Day, is_time_word};
use super::query::Query;
use super::rank::{Features, WEIGHTS, blend};
use super::top::Top;
use crate::postings::{K1, Postings, idf, mean, saturated};
use crate::text::{Kind, Language, fold, terms, tokens};

/// Something said by one speaker.
#[derive(Clone, Copy, Debug)]
pub struct Unit<'a> {
    /// The session it is in, by number.
    pub session: u64,
    /// The turn of that session.
    pub turn: u64,
    /// Who said it; a turn has at most one unit of a speaker.
    pub speaker: Speaker<'a>,
    /// When, in milliseconds since 1970, where the clock could be trusted.
    pub at_ms: Option<i64>,
    /// What.
    pub text: &'a str,
}

/// Who said something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Speaker<'a> {
    /// Whoever asks; a query names them by "I" or "my".
    User,
    /// Whoever answers; a query names them by "you" or "your".
    Assistant,
    /// Somebody with a name, which belongs to what can be found.
    Named(&'a str),
}

/// A unit found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ranked {
    /// Its session, by number.
    pub session: u64,
    /// Its turn.
    pub turn: u64,
    /// Its speaker, counted in the order of appearance; the user is 0, the assistant 1.
    pub speaker: u16,
    /// When it was said.
    pub at_ms: Option<i64>,
    /// What it is worth for the query.
    pub score: f32,
    /// What that is made of, each feature times its weight.
    pub parts: Features,
}

/// What was said, ready to be searched.
///
/// ```
/// use garret_storage::search::{Index, Speaker, Unit};
///
/// let mut index = Index::default();
/// for (turn, text) in [(1, "My bees swarmed."), (2, "It rained on the garden.")] {
///     index.add(&Unit { session: 1, turn, speaker: Speaker::User, at_ms: None, text });
/// }
/// assert_eq!(index.search("When did the bee swarm?", None, 10)[0].turn, 1);
/// assert!(index.search("zxqv", None, 10).is_empty());
/// ```
#[derive(Debug)]
pub struct Index {
    postings: Postings,
    /// By number of the document.
    units: Vec<Entry>,
    sessions: Vec<Session>,
    by_number: HashMap<u64, u32>,
    /// Folded names; the first two have none.
    speakers: Vec<String>,
    /// Units in each language, in the order of [`Language::ALL`].
    languages: [u32; Language::ALL.len()],
}

#[derive(Debug)]
struct Entry {
    /// Place among the sessions.
    session: u32,
    turn: u64,
    speaker: u16,
    language: u8,
    question: bool,
    tells_time: bool,
    at_ms: Option<i64>,
}

#[derive(Debug)]
struct Session {
    number: u64,
    /// Documents in the order of turns and, in a turn, of speakers.
    units: Vec<u32>,
    /// Terms in all of them.
    length: u64,
}

impl Default for Index {
    fn default() -> Self {
        Self {
            postings: Postings::default(),
            units: Vec::new(),
            sessions: Vec::new(),
            by_number: HashMap::new(),
            speakers: vec![String::new(); 2],
            languages: [0; Language::ALL.len()],
        }
    }
}

impl Index {
    /// Number of units.
    pub fn len(&self) -> usize {
        self.units.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.units.is_empty()
    }

    /// Bytes of memory taken, about.
    pub fn memory(&self) -> usize {
        self.postings.memory() + self.units.capacity() * size_of::<Entry>() + self.units.len() * 4
    }

    /// Adds a unit, unless its session, turn and speaker are there already or there is no room.
    pub fn add(&mut self, unit: &Unit<'_>) {
        let Some(speaker) = self.speaker(unit.speaker) else { return };
        let place = self.session(unit.session);
        let Some(session) = self.sessions.get(place as usize) else { return };
        let key = (unit.turn, speaker);
        let units = &self.units;
        let at = session.units.partition_point(|unit| order(units, *unit) < key);
        if session.units.get(at).is_some_and(|unit| order(units, *unit) == key) {
            return;
        }
        let read = Reading::of(unit);
        let Some(document) = self.postings.add(&read.counts, read.length) else { return };
        self.units.push(Entry {
            session: place,
            turn: unit.turn,
            speaker,
            language: read.language,
            question: read.question,
            tells_time: read.tells_time,
            at_ms: unit.at_ms,
        });
        self.languages[usize::from(read.language)] += 1;
        if let Some(session) = self.sessions.get_mut(place as usize) {
            session.units.insert(at, document);
            session.length += u64::from(read.length);
        }
    }

    /// Removes a session with all its units.
    pub fn remove(&mut self, session: u64) {
        let Some(place) = self.by_number.remove(&session) else { return };
        let units = &self.units;
        let gone = |unit: u32| units.get(unit as usize).is_none_or(|unit| unit.session == place);
        let numbers = self.postings.retain(|document| !gone(document));
        self.units.retain(|unit| {
            if unit.session == place {
                self.languages[usize::from(unit.language)] -= 1;
            }
            unit.session != place
        });
        self.sessions.remove(place as usize);
        for unit in &mut self.units {
            unit.session -= u32::from(unit.session > place);
        }
        for other in self.by_number.values_mut() {
            *other -= u32::from(*other > place);
        }
        for unit in self.sessions.iter_mut().flat_map(|session| &mut session.units) {
            if let Some(new) = numbers.get(*unit as usize).copied().flatten() {
                *unit = new;
            }
        }
    }

    /// The best `k` units for `query`, in one session or in all; the best first, of equals the
    /// newest. What is found shares a word with the query or comes right after a question that does.
    pub fn search(&self, query: &str, session: Option<u64>, k: usize) -> Vec<Ranked> {
        let mut top = Top::new(k);
        self.candidates(query, session, &mut |unit, features| {
            let mut parts = *features;
            parts.iter_mut().zip(&WEIGHTS).for_each(|(part, weight)| *part *= weight);
            top.offer(self.ranked(unit, blend(features, &WEIGHTS), parts));
        });
        top.into_vec()
    }

    /// Hands everything that could answer `query` to `take`, each with its features unweighted
    /// (`parts`) and no score: what weights are fitted on.
    pub fn features(&self, query: &str, session: Option<u64>, take: &mut dyn FnMut(Ranked)) {
        self.candidates(query, session, &mut |unit, features| {
            take(self.ranked(unit, 0.0, *features));
        });
    }

    /// Number of units in a session, or of all.
    pub(super) fn count(&self, session: Option<u64>) -> usize {
        let Some(number) = session else { return self.len() };
        let place = self.by_number.get(&number).map(|place| *place as usize);
        place.and_then(|place| self.sessions.get(place)).map_or(0, |session| session.units.len())
    }

    /// The words of a query, each with the terms it may be indexed under.
    pub(super) fn words(&self, query: &str) -> Vec<Vec<String>> {
        Query::new(query, &self.used_languages()).words
    }

    fn ranked(&self, unit: &Entry, score: f32, parts: Features) -> Ranked {
        let session = self.sessions.get(unit.session as usize).map_or(0, |session| session.number);
        Ranked { session, turn: unit.turn, speaker: unit.speaker, at_ms: unit.at_ms, score, parts }
    }

    fn candidates(
        &self,
        query: &str,
        session: Option<u64>,
        take: &mut dyn FnMut(&Entry, &Features),
    ) {
        let places = match session.map(|number| self.by_number.get(&number)) {
            None => 0..self.sessions.len(),
            Some(Some(place)) => *place as usize..*place as usize + 1,
            Some(None) => return,
        };
        let in_scope = self.sessions.get(places.clone()).unwrap_or(&[]);
        let asked = self.asked(query);
        let units = in_scope.iter().flat_map(|session| &session.units);
        let best = units.map(|unit| score_of(&asked.words, *unit)).fold(0.0, f32::max);
        if best <= 0.0 {
            return;
        }
        for (session, place) in in_scope.iter().zip(places) {
            let shares = session.units.iter().map(|unit| score_of(&asked.words, *unit) / best);
            let shares: Vec<f32> = shares.collect();
            let mut before = None;
            for (at, document) in session.units.iter().enumerate() {
                let Some(unit) = self.units.get(*document as usize) else { continue };
                let answers = before.replace(unit).is_some_and(|before: &Entry| before.question);
                if let Some(near) = Near::of(&shares, at, answers) {
                    let in_session = asked.sessions.get(place).copied().unwrap_or(0.0);
                    take(unit, &self.features_of(&asked, *document, unit, &near, in_session));
                }
            }
        }
    }

    fn asked(&self, query: &str) -> Asking {
        let query = Query::new(query, &self.used_languages());
        let mut words = Vec::new();
        self.postings.score(&query.words, &mut words);
        Asking {
            words,
            sessions: self.session_scores(&query),
            possible: self.possible(&query),
            named: self.named(&query),
            query,
        }
    }

    /// The features of a unit, in the order of [`NAMES`](super::NAMES).
    fn features_of(
        &self,
        asked: &Asking,
        document: u32,
        unit: &Entry,
        near: &Near,
        in_session: f32,
    ) -> Features {
        let length = self.postings.length(document).min(LENGTH_THAT_COUNTS);
        [
            near.own,
            near.own * near.own,
            near.before,
            near.before2,
            near.after,
            near.around,
            if near.answers { near.before } else { 0.0 },
            in_session,
            (length as f32).ln_1p() / 4.0,
            flag(unit.question),
            flag(asked.query.asks_when && unit.tells_time),
            unit.at_ms.map_or(0.0, |at_ms| asked.query.asked.fits(Day::of(at_ms))),
            flag(asked.named == Some(unit.speaker)),
            score_of(&asked.words, document) / asked.possible,
        ]
    }

    /// What a unit that holds every word of the query again and again would be worth.
    fn possible(&self, query: &Query) -> f32 {
        let weights = query.words.iter().map(|word| {
            idf(self.postings.len(), word.iter().map(|term| self.postings.documents(term)).sum())
        });
        weights.sum::<f32>() * (K1 + 1.0)
    }

    /// BM25 of each session as one document, relative to the best.
    fn session_scores(&self, query: &Query) -> Vec<f32> {
        let mut scores = vec![0.0_f32; self.sessions.len()];
        let total = self.sessions.iter().map(|session| session.length).sum();
        let mean = mean(total, self.sessions.len());
        let mut counts = vec![0_u32; self.sessions.len()];
        for word in &query.words {
            let mut touched = Vec::new();
            for (document, count) in word.iter().flat_map(|term| self.postings.postings(term)) {
                let place = self.units.get(document as usize).map_or(0, |unit| unit.session);
                if let Some(sum) = counts.get_mut(place as usize) {
                    if *sum == 0 {
                        touched.push(place);
                    }
                    *sum = sum.saturating_add(count);
                }
            }
            let idf = idf(self.sessions.len() as u32, touched.len() as u32);
            for place in touched {
                let place = place as usize;
                let length = u32::try_from(self.sessions[place].length).unwrap_or(u32::MAX);
                scores[place] += idf * saturated(std::mem::take(&mut counts[place]), length, mean);
            }
        }
        let best = scores.iter().copied().fold(0.0, f32::max);
        if best > 0.0 {
            scores.iter_mut().for_each(|score| *score /= best);
        }
        scores
    }

    /// The one speaker whom the query names.
    fn named(&self, query: &Query) -> Option<u16> {
        let named = |(number, name): (u16, &String)| {
            let named = match number {
                USER => query.has(&["i", "me", "my", "mine", "user"]),
                ASSISTANT => query.has(&["you", "your", "yours", "assistant"]),
                _ => query.has(&[name]),
            };
            (named && self.units.iter().any(|unit| unit.speaker == number)).then_some(number)
        };
        let mut all = (0..).zip(&self.speakers).filter_map(named);
        all.next().filter(|_| all.next().is_none())
    }

    fn used_languages(&self) -> Vec<Language> {
        let used = Language::ALL.iter().zip(&self.languages).filter(|(_, units)| **units > 0);
        used.map(|(language, _)| *language).collect()
    }

    /// The number of a speaker, new or known; `None` when there are too many.
    fn speaker(&mut self, speaker: Speaker<'_>) -> Option<u16> {
        let name = match speaker {
            Speaker::User => return Some(USER),
            Speaker::Assistant => return Some(ASSISTANT),
            Speaker::Named(name) => fold(name).into_owned(),
        };
        let known = self.speakers.iter().skip(2).position(|known| *known == name);
        let number = u16::try_from(known.map_or(self.speakers.len(), |at| at + 2)).ok()?;
        if known.is_none() {
            self.speakers.push(name);
        }
        Some(number)
    }

    /// The place of a session, new or known.
    fn session(&mut self, number: u64) -> u32 {
        let next = self.sessions.len() as u32;
        let place = *self.by_number.entry(number).or_insert(next);
        if place == next {
            self.sessions.push(Session { number, units: Vec::new(), length: 0 });
        }
        place
    }
}

impl Eq for Ranked {}

impl Ord for Ranked {
    /// By score, then by age, the newest last; at the end by what never changes.
    fn cmp(&self, other: &Self) -> Ordering {
        let rest = |ranked: &Self| (ranked.at_ms, ranked.session, ranked.turn, ranked.speaker);
        self.score.total_cmp(&other.score).then_with(|| rest(self).cmp(&rest(other)))
    }
}

impl PartialOrd for Ranked {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

fn order(units: &[Entry], document: u32) -> (u64, u16) {
    units.get(document as usize).map_or((0, 0), |unit| (unit.turn, unit.speaker))
}

/// Numbers of the speakers without a name.
const USER: u16 = 0;
pub(super) const ASSISTANT: u16 = 1;

/// Terms beyond which a longer text isn't the better answer for it.
const LENGTH_THAT_COUNTS: u32 = 40;

fn flag(yes: bool) -> f32 {
    f32::from(u8::from(yes))
}

/// What a query comes to before any unit is looked at.
struct Asking {
    query: Query,
    /// BM25 of each document.
    words: Vec<f32>,
    /// BM25 of each session, relative to the best.
    sessions: Vec<f32>,
    /// Most that a document could have.
    possible: f32,
    /// The speaker it names.
    named: Option<u16>,
}

/// What a unit and those around it in its session have of the query.
struct Near {
    own: f32,
    before: f32,
    before2: f32,
    after: f32,
    around: f32,
    /// The unit before is a question.
    answers: bool,
}

impl Near {
    /// The unit at a place in its session; `None` when it neither has a word of the query nor
    /// answers a question that has one.
    fn of(shares: &[f32], at: usize, answers: bool) -> Option<Self> {
        let share = |at: Option<usize>| at.and_then(|at| shares.get(at)).copied().unwrap_or(0.0);
        let (before, after) = (|by| share(at.checked_sub(by)), |by| share(at.checked_add(by)));
        let mut near = Self {
            own: share(Some(at)),
            before: before(1),
            before2: before(2),
            after: after(1),
            around: 0.0,
            answers,
        };
        if near.own <= 0.0 && !(answers && near.before > 0.0) {
            return None;
        }
        near.around = AROUND.iter().zip(2..).map(|(w, by)| w * (before(by) + after(by))).sum();
        Some(near)
    }
}

/// How much units from the second neighbour on count, on both sides: powers of .7.
const AROUND: [f32; 5] = [0.49, 0.343, 0.2401, 0.168_07, 0.117_649];

fn score_of(scores: &[f32], document: u32) -> f32 {
    scores.get(document as usize).copied().unwrap_or(0.0)
}

/// What there is to know of a text.
struct Reading {
    counts: HashMap<String, u32>,
    /// Terms, those aside that are there for exact queries alone.
    length: u32,
    language: u8,
    question: bool,
    tells_time: bool,
}

impl Reading {
    fn of(unit: &Unit<'_>) -> Self {
        let language = Language::detect(unit.text);
        let mut reading = Self {
            counts: HashMap::new(),
            length: 0,
            language: language as u8,
            question: unit.text.trim_end().ends_with(['?', '\u{ff1f}', '\u{61f}', '\u{37e}']),
            tells_time: false,
        };
        if let Some(at_ms) = unit.at_ms {
            reading.take(&Day::of(at_ms).words(), Language::English);
        }
        if let Speaker::Named(name) = unit.speaker {
            reading.take(name, language);
        }
        // A date before the text tells no time of what the text is about.
        reading.tells_time = false;
        reading.take(unit.text, language);
        reading
    }

    fn take(&mut self, text: &str, language: Language) {
        tokens(text, &mut |token| {
            self.tells_time = self.tells_time || is_time_word(&token);
            let counted = matches!(token.kind, Kind::Word | Kind::Gram | Kind::Number);
            terms(&token, language, &mut |term| {
                self.length = self.length.saturating_add(u32::from(counted));
                match self.counts.get_mut(term) {
                    Some(count) => *count = count.saturating_add(1),
                    None => drop(self.counts.insert(term.to_owned(), 1)),
                }
            });
        });
    }
}
