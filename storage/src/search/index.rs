//! The index of what was said: units, their terms, and their order.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use garret_language::Language;

use crate::facts::{Fact, FactKind, FactSource};
use crate::postings::Postings;
use crate::search::candidates::Candidates;
use crate::search::filter::Filter;
use crate::search::meaning::{Closeness, Cosines};
use crate::search::mix::{Best, Sorts};
use crate::search::names::{ASSISTANT, Names};
use crate::search::query::Query;
use crate::search::rank::Features;
use crate::search::reading::Reading;
use crate::search::score::Scratch;
use crate::search::sittings::{NO_SITTING, Sittings};
use crate::search::unit::{Ask, Ranked, Speaker, Unit};
use crate::vectors::UnitKey;

/// Messages and facts, ready to be searched.
///
/// ```
/// use garret_storage::search::{Ask, Index, Speaker, Unit};
///
/// let mut index = Index::default();
/// for (turn, text) in [(1, "My bees swarmed."), (2, "It rained on the garden.")] {
///     index.add(&Unit { session: 1, turn, speaker: Speaker::User, at_ms: None, text });
/// }
/// assert_eq!(index.search(&Ask::new("When did the bee swarm?", 10))[0].turn, 1);
/// assert!(index.search(&Ask::new("zxqv", 10)).is_empty());
/// ```
#[derive(Debug, Default)]
pub struct Index {
    pub(crate) postings: Postings,
    /// By number of the document.
    pub(crate) units: Vec<Entry>,
    pub(crate) sessions: Vec<Session>,
    pub(crate) by_number: HashMap<u64, u32>,
    pub(crate) sittings: Sittings,
    pub(crate) facts: Vec<FactEntry>,
    pub(crate) by_fact: HashMap<u64, u32>,
    pub(crate) names: Names,
    /// Units in each language, in the order of [`Language::ALL`].
    pub(crate) languages: [u32; Language::ALL.len()],
    /// Buffers of earlier searches.
    spare: Mutex<Vec<Scratch>>,
}

#[derive(Debug)]
pub(crate) struct Entry {
    /// Place among the sessions; [`NO_SESSION`] for a fact.
    pub(crate) session: u32,
    /// Place in the session, or among the facts.
    pub(crate) place: u32,
    /// Its number; see [`Sittings`].
    pub(crate) sitting: u32,
    pub(crate) turn: u64,
    /// [`NO_TIME`] where it isn't known.
    pub(crate) at_ms: i64,
    pub(crate) speaker: u16,
    pub(crate) language: u8,
    /// [`QUESTION`] and [`TELLS_TIME`].
    pub(crate) flags: u8,
}

/// A unit that ends with a question mark.
pub(crate) const QUESTION: u8 = 1;
/// A unit that tells when something is.
pub(crate) const TELLS_TIME: u8 = 2;

/// Properties of a fact beside its text.
#[derive(Debug)]
pub(crate) struct FactEntry {
    pub(crate) document: u32,
    pub(crate) id: u64,
    /// The place where it was said.
    pub(crate) session: Option<u64>,
    pub(crate) valid_to: Option<i64>,
    pub(crate) last_access: Option<i64>,
    pub(crate) kind: FactKind,
    pub(crate) latest: bool,
    /// 0 to 1.
    pub(crate) importance: f32,
}

#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) number: u64,
    /// Documents in the order of turns and, in a turn, of speakers.
    pub(crate) units: Vec<u32>,
}

impl Index {
    /// Number of units.
    pub fn len(&self) -> usize {
        self.units.len()
    }

    /// Tells whether there are none.
    pub fn is_empty(&self) -> bool {
        self.units.is_empty()
    }

    /// Bytes of memory taken, about.
    pub fn memory(&self) -> usize {
        self.postings.memory() + self.units.capacity() * size_of::<Entry>() + self.units.len() * 4
    }

    /// Adds a unit, unless its session, turn and speaker are there already or there is no room.
    /// Gives its number: units count from 0 in the order they are added, and anew when a session
    /// is removed.
    pub fn add(&mut self, unit: &Unit<'_>) -> Option<u32> {
        let speaker = self.names.number(unit.speaker)?;
        let at = self.place(unit.session, unit.turn, speaker)?;
        let (document, length) = self.put(unit, speaker, at)?;
        self.enter(document, at, length);
        Some(document)
    }

    /// The session that a message is to be in, new or known, and its place there; `None` where it
    /// is there already.
    pub(crate) fn place(&mut self, session: u64, turn: u64, speaker: u16) -> Option<(u32, u32)> {
        let session = self.session(session);
        let others = &self.sessions.get(session as usize)?.units;
        let before = |unit: &u32| order(&self.units, *unit) < (turn, speaker);
        // Most come last.
        let place = match others.last() {
            Some(last) if !before(last) => others.partition_point(before),
            _ => others.len(),
        };
        let there =
            others.get(place).is_some_and(|unit| order(&self.units, *unit) == (turn, speaker));
        (!there).then_some((session, place as u32))
    }

    /// Puts a message of so many terms in its place.
    pub(crate) fn enter(&mut self, document: u32, (session, place): (u32, u32), length: u32) {
        let Some(session) = self.sessions.get_mut(session as usize) else { return };
        let place = (place as usize).min(session.units.len());
        for later in session.units.get(place..).unwrap_or(&[]) {
            if let Some(unit) = self.units.get_mut(*later as usize) {
                unit.place += 1;
            }
        }
        session.units.insert(place, document);
        if let Some(unit) = self.units.get_mut(document as usize) {
            unit.sitting = self.sittings.join(unit, length);
        }
    }

    /// Takes in a unit whose place in a session or among the facts is known. Gives its number and
    /// length.
    fn put(&mut self, unit: &Unit<'_>, speaker: u16, at: (u32, u32)) -> Option<(u32, u32)> {
        let read = Reading::of(unit);
        let document = self.postings.add(&read.counts, read.length)?;
        let (session, place) = at;
        self.units.push(Entry {
            session,
            place,
            sitting: NO_SITTING,
            turn: unit.turn,
            at_ms: unit.at_ms.unwrap_or(NO_TIME),
            speaker,
            language: read.language,
            flags: read.flags(),
        });
        self.names.spoke(speaker);
        self.languages[usize::from(read.language)] += 1;
        Some((document, read.length))
    }

    /// Adds a fact, or takes over what changed of one that is there: all but its text. It is found
    /// by the name of its subject as well.
    pub(crate) fn put_fact(
        &mut self,
        fact: &Fact,
        subject: Option<&str>,
        last_access: Option<i64>,
    ) {
        let place = match self.by_fact.get(&fact.id.0) {
            Some(place) => *place,
            None => {
                let place = self.facts.len() as u32;
                let Some(document) = self.add_fact(fact, subject, place) else { return };
                self.by_fact.insert(fact.id.0, place);
                self.facts.push(FactEntry {
                    document,
                    id: fact.id.0,
                    session: fact.session,
                    valid_to: None,
                    last_access: None,
                    kind: fact.kind,
                    latest: true,
                    importance: (fact.salience / 10.0).clamp(0.0, 1.0),
                });
                place
            }
        };
        let Some(entry) = self.facts.get_mut(place as usize) else { return };
        (entry.valid_to, entry.last_access) = (fact.valid_to, last_access);
        (entry.kind, entry.latest) = (fact.kind, fact.latest);
        if let Some(unit) = self.units.get_mut(entry.document as usize) {
            unit.at_ms = fact.valid_at;
        }
    }

    fn add_fact(&mut self, fact: &Fact, subject: Option<&str>, place: u32) -> Option<u32> {
        let speaker = match &fact.source {
            FactSource::User => Speaker::User,
            FactSource::Assistant => Speaker::Assistant,
            other => Speaker::Named(other.as_str()),
        };
        let number = self.names.number(speaker)?;
        let named = subject.filter(|name| *name != "user" && !fact.text.contains(*name));
        let text = named.map(|name| format!("{name}: {}", fact.text));
        // Who said it isn't what it is about.
        let unit = Unit {
            session: 0,
            turn: fact.turn.unwrap_or(0),
            speaker: Speaker::User,
            at_ms: Some(fact.valid_at),
            text: text.as_deref().unwrap_or(&fact.text),
        };
        self.put(&unit, number, (NO_SESSION, place)).map(|(document, _)| document)
    }

    /// Removes a session with all its units. Facts that were said in it stay.
    pub fn remove(&mut self, session: u64) {
        let Some(place) = self.by_number.remove(&session) else { return };
        self.retain(|unit| unit.session != place);
        self.sessions.remove(place as usize);
        for unit in self.units.iter_mut().filter(|unit| unit.session != NO_SESSION) {
            unit.session -= u32::from(unit.session > place);
        }
        for other in self.by_number.values_mut() {
            *other -= u32::from(*other > place);
        }
        self.sittings = Sittings::default();
        for (unit, document) in self.units.iter_mut().zip(0..) {
            if unit.session != NO_SESSION {
                unit.sitting = self.sittings.join(unit, self.postings.length(document));
            }
        }
    }

    /// Removes facts.
    pub(crate) fn remove_facts(&mut self, gone: &[u64]) {
        let places: Vec<u32> = gone.iter().filter_map(|id| self.by_fact.remove(id)).collect();
        if places.is_empty() {
            return;
        }
        self.retain(|unit| unit.session != NO_SESSION || !places.contains(&unit.place));
        let mut place = 0;
        self.facts.retain(|_| {
            place += 1;
            !places.contains(&(place - 1))
        });
        for (place, fact) in (0..).zip(&self.facts) {
            self.by_fact.insert(fact.id, place);
            if let Some(unit) = self.units.get_mut(fact.document as usize) {
                unit.place = place;
            }
        }
    }

    /// Removes the units that `keep` doesn't want and numbers the others anew.
    fn retain(&mut self, keep: impl Fn(&Entry) -> bool) {
        let units = &self.units;
        let numbers =
            self.postings.retain(|document| units.get(document as usize).is_some_and(&keep));
        self.units.retain(|unit| {
            let kept = keep(unit);
            if !kept {
                self.languages[usize::from(unit.language)] -= 1;
                self.names.left(unit.speaker);
            }
            kept
        });
        let units = self.sessions.iter_mut().flat_map(|session| &mut session.units);
        for unit in units.chain(self.facts.iter_mut().map(|fact| &mut fact.document)) {
            if let Some(new) = numbers.get(*unit as usize).copied().flatten() {
                *unit = new;
            }
        }
    }

    /// The units that answer best, the best first, of equals the newest. What is found shares a
    /// word with the query, comes right after a question that does, or is close to it in meaning.
    /// Nothing is found where all of that is [`UNLIKELY`](super::UNLIKELY) to answer.
    pub fn search(&self, ask: &Ask<'_>) -> Vec<Ranked> {
        let cosines = ask.cosines.and_then(Cosines::of);
        let close = cosines.as_ref().map(|cosines| cosines as &dyn Closeness);
        let filter = Filter { session: ask.session, ..Filter::default() };
        let query = self.query(ask.query, ask.now);
        let wanted = Wanted { query: &query, filter: &filter, close, now: ask.now };
        self.best(&wanted, ask.k).mixed(ask.k)
    }

    /// Hands everything that could answer to `take`, each with its features unweighted (`parts`)
    /// and no score: what weights are fitted on. `ask.k` doesn't matter.
    pub fn features(&self, ask: &Ask<'_>, take: &mut dyn FnMut(Ranked)) {
        let cosines = ask.cosines.and_then(Cosines::of);
        let close = cosines.as_ref().map(|cosines| cosines as &dyn Closeness);
        let filter = Filter { session: ask.session, ..Filter::default() };
        let query = self.query(ask.query, ask.now);
        self.candidates(&Wanted { query: &query, filter: &filter, close, now: ask.now }, 0, take);
    }

    /// The best `k` of each sort of what is wanted.
    pub(crate) fn best(&self, wanted: &Wanted<'_>, k: usize) -> Best {
        let mut sorts = Sorts::new(wanted.close.is_some(), k);
        self.candidates(wanted, k, &mut |unit| {
            let fact = unit.fact.and_then(|id| self.fact(id));
            sorts.offer(unit, fact.map(|fact| fact.kind));
        });
        sorts.into_best(self.len())
    }

    /// All that could answer, of which the best `k` are to be found.
    fn candidates(&self, wanted: &Wanted<'_>, k: usize, take: &mut dyn FnMut(Ranked)) {
        let mut scratch = self.spare().pop().unwrap_or_default();
        let found = Candidates::find(self, wanted, &mut scratch);
        for (unit, parts) in found.all(k) {
            take(Ranked { parts, ..self.unranked(unit, wanted.now) });
        }
        drop(found);
        scratch.clear();
        self.spare().push(scratch);
    }

    /// A unit of which nothing is known yet that has to do with a query.
    pub(crate) fn unranked(&self, unit: &Entry, now: Option<i64>) -> Ranked {
        let fact = self.fact_of(unit);
        let session = fact.map_or_else(|| self.session_of(unit), |fact| fact.session);
        Ranked {
            session: session.unwrap_or(0),
            turn: unit.turn,
            fact: fact.map(|fact| fact.id),
            speaker: unit.speaker,
            at_ms: unit.at_ms(),
            relevance: 0.0,
            recency: fact.and_then(|fact| recency(fact, unit, now)).unwrap_or(0.5),
            importance: fact.map_or(0.5, |fact| fact.importance),
            score: 0.0,
            parts: Features::default(),
            through: None,
        }
    }

    /// A fact by its number.
    pub(crate) fn fact(&self, id: u64) -> Option<&FactEntry> {
        self.by_fact.get(&id).and_then(|place| self.facts.get(*place as usize))
    }

    /// The fact that a unit is.
    pub(crate) fn fact_of(&self, unit: &Entry) -> Option<&FactEntry> {
        (unit.session == NO_SESSION).then(|| self.facts.get(unit.place as usize)).flatten()
    }

    /// Says which of two units comes first: the older one, at the end by what never changes.
    pub(crate) fn in_time(&self, a: u32, b: u32) -> Option<Ordering> {
        let (a, b) = (self.units.get(a as usize)?, self.units.get(b as usize)?);
        let rest = |unit: &Entry| {
            let fact = self.fact_of(unit).map(|fact| fact.id);
            (fact, self.session_of(unit), unit.turn, unit.speaker)
        };
        Some(a.at_ms.cmp(&b.at_ms).then_with(|| rest(a).cmp(&rest(b))))
    }

    /// The number of the session that a message is in.
    pub(crate) fn session_of(&self, unit: &Entry) -> Option<u64> {
        self.sessions.get(unit.session as usize).map(|session| session.number)
    }

    /// The document of a unit that may have a vector.
    pub(crate) fn document(&self, key: UnitKey) -> Option<u32> {
        let (session, turn, reply) = match key {
            UnitKey::Words { session, turn } => (session, turn, false),
            UnitKey::Reply { session, turn } => (session, turn, true),
            UnitKey::Fact { id } => {
                let place = self.by_fact.get(&id)?;
                return self.facts.get(*place as usize).map(|fact| fact.document);
            }
        };
        let units = &self.sessions.get(*self.by_number.get(&session)? as usize)?.units;
        let from = units.partition_point(|unit| order(&self.units, *unit) < (turn, 0));
        units.get(from..)?.iter().copied().find(|unit| {
            let unit = self.units.get(*unit as usize);
            unit.is_some_and(|unit| unit.turn == turn && (unit.speaker == ASSISTANT) == reply)
        })
    }

    /// Returns what a unit's vector would be kept under.
    pub(crate) fn key(&self, document: u32) -> Option<UnitKey> {
        let unit = self.units.get(document as usize)?;
        if let Some(fact) = self.fact_of(unit) {
            return Some(UnitKey::Fact { id: fact.id });
        }
        let (session, turn) = (self.session_of(unit)?, unit.turn);
        Some(match unit.speaker {
            ASSISTANT => UnitKey::Reply { session, turn },
            _ => UnitKey::Words { session, turn },
        })
    }

    /// Number of units that a search with this filter looks at.
    pub(crate) fn count(&self, filter: &Filter) -> usize {
        let replaced = self.facts.iter().filter(|fact| !fact.latest).count();
        if filter.is_open() {
            return self.len() - if filter.replaced { 0 } else { replaced };
        }
        self.units.iter().filter(|unit| filter.passes(self, unit)).count()
    }

    /// A query, taken apart for the languages that units are in.
    pub(crate) fn query(&self, text: &str, now: Option<i64>) -> Query {
        let used = Language::ALL.iter().zip(&self.languages).filter(|(_, units)| **units > 0);
        Query::new(text, &used.map(|(language, _)| *language).collect::<Vec<_>>(), now)
    }

    /// The place of a session, new or known.
    fn session(&mut self, number: u64) -> u32 {
        let next = self.sessions.len() as u32;
        let place = *self.by_number.entry(number).or_insert(next);
        if place == next {
            self.sessions.push(Session { number, units: Vec::new() });
        }
        place
    }

    fn spare(&self) -> std::sync::MutexGuard<'_, Vec<Scratch>> {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entry {
    pub(crate) const fn is_question(&self) -> bool {
        self.flags & QUESTION != 0
    }

    pub(crate) const fn tells_time(&self) -> bool {
        self.flags & TELLS_TIME != 0
    }

    pub(crate) fn at_ms(&self) -> Option<i64> {
        (self.at_ms != NO_TIME).then_some(self.at_ms)
    }
}

/// The aim of a search, and its bounds.
pub(crate) struct Wanted<'a> {
    pub(crate) query: &'a Query,
    pub(crate) filter: &'a Filter,
    pub(crate) close: Option<&'a dyn Closeness>,
    pub(crate) now: Option<i64>,
}

/// Says how fresh a fact is: by half a month it is down to .6, by two months to .14.
fn recency(fact: &FactEntry, unit: &Entry, now: Option<i64>) -> Option<f32> {
    let age = now?.saturating_sub(fact.last_access.or(unit.at_ms())?).max(0);
    Some((-(age as f32) / MONTH_MS).exp())
}

/// 30 days.
const MONTH_MS: f32 = 30.0 * 86_400_000.0;

/// The session of what isn't in one.
pub(crate) const NO_SESSION: u32 = u32::MAX;

/// Stands for no time at all.
pub(crate) const NO_TIME: i64 = i64::MIN;

fn order(units: &[Entry], document: u32) -> (u64, u16) {
    units.get(document as usize).map_or((0, 0), |unit| (unit.turn, unit.speaker))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::{NAMES, Speaker};

    const SESSION: usize = 5;
    const ELSEWHERE: usize = 13;

    fn index(texts: &[&str]) -> Index {
        let mut index = Index::default();
        for (turn, text) in (1..).zip(texts) {
            let unit = Unit { session: 1, turn, speaker: Speaker::User, at_ms: None, text };
            assert_eq!(index.add(&unit), Some(turn as u32 - 1));
            assert_eq!(index.add(&unit), None, "twice");
        }
        index
    }

    #[test]
    fn what_shares_no_word_is_found_by_its_meaning_alone() {
        let index = index(&["The hive swarmed.", "Rain fell.", "Dinner was late.", "Bees left."]);
        let words = Ask::new("honey makers", 4);
        assert!(index.search(&words).is_empty());
        let cosines = [0.7, 0.1, f32::NAN, 0.8];
        let found = index.search(&Ask { cosines: Some(&cosines), ..words });
        let turns: Vec<u64> = found.iter().map(|unit| unit.turn).collect();
        assert_eq!(turns, [4, 1], "and not what is farther than most, or has no vector");
    }

    /// Knows roughly how close units are, and exactly once it looked.
    struct Rough {
        looked: std::cell::RefCell<Vec<u32>>,
    }

    impl Closeness for Rough {
        fn of(&self, _: &Index, document: u32) -> Option<f32> {
            // Roughly, the first is the best; exactly, the fifth.
            let looked = self.looked.borrow().contains(&document);
            let exact = f32::from(u8::from(document == 4));
            Some(if looked { exact } else { 0.01 - document as f32 / 1e4 })
        }

        fn look(&self, _: &Index, documents: &mut dyn Iterator<Item = u32>) -> bool {
            self.looked.borrow_mut().extend(documents);
            true
        }

        fn each(&self, _: &Index, _: usize, _: &dyn Fn(u32) -> bool, take: &mut dyn FnMut(u32)) {
            (0..40).for_each(take);
        }
    }

    /// Twice as many as are wanted are looked at, with those around them.
    #[test]
    fn the_best_by_coarse_vectors_are_ranked_by_whole_ones() {
        let index = index(&["Bees."; 40]);
        let close = Rough { looked: std::cell::RefCell::default() };
        let (query, filter) = (index.query("honey", None), Filter::default());
        let wanted = Wanted { query: &query, filter: &filter, close: Some(&close), now: None };
        let found = index.best(&wanted, 3).mixed(3);
        assert_eq!(found.first().map(|unit| unit.turn), Some(5));
        let looked = close.looked.into_inner();
        assert!(
            looked.len() <= 6 * 7 && looked.iter().all(|document| *document < 12),
            "{looked:?}"
        );
    }

    #[test]
    fn the_number_of_a_unit_is_that_of_its_cosine_after_a_removal() {
        let mut index = index(&["One.", "Two."]);
        for (turn, text) in [(1, "Three."), (2, "Four.")] {
            let unit = Unit { session: 2, turn, speaker: Speaker::User, at_ms: None, text };
            assert_eq!(index.add(&unit), Some(turn as u32 + 1));
        }
        index.remove(1);
        let found = index.search(&Ask { cosines: Some(&[0.1, 0.9]), ..Ask::new("x", 1) });
        assert_eq!(found.first().map(|unit| (unit.session, unit.turn)), Some((2, 2)));
    }

    /// A turn that comes late takes its place between those around it.
    #[test]
    fn neighbours_are_those_of_the_order_of_turns() {
        let parts = |turns: [u64; 4]| -> Vec<(u64, Features)> {
            let texts = ["Where do bees live?", "In the oak.", "Fine.", "Bees sleep."];
            let mut index = Index::default();
            for turn in turns {
                let text = texts[turn as usize - 1];
                let unit = Unit { session: 7, turn, speaker: Speaker::User, at_ms: None, text };
                index.add(&unit);
            }
            let mut all = Vec::new();
            index.features(&Ask::new("bees", 9), &mut |unit| all.push((unit.turn, unit.parts)));
            all.sort_unstable_by_key(|(turn, _)| *turn);
            all
        };
        let in_order = parts([1, 2, 3, 4]);
        assert_eq!(in_order.len(), 3, "both with the word and the answer");
        assert_eq!(parts([4, 1, 3, 2]), in_order);
    }

    /// A long session isn't one document: what stands around a unit is what was said on its day.
    #[test]
    fn a_day_of_a_session_is_what_a_unit_is_part_of() {
        assert_eq!(NAMES[SESSION], "session");
        let one_session = told(&[(1, 1), (1, 1), (1, 2), (1, 2)]);
        let two_sessions = told(&[(1, 1), (1, 1), (2, 2), (2, 2)]);
        let parts = session_parts(&one_session);
        assert_eq!(parts, session_parts(&two_sessions));
        assert!(parts[0].1 == 1.0 && parts[2].1 < 0.9, "{parts:?}");
    }

    #[test]
    fn days_are_what_they_are_without_a_session_that_is_gone() {
        let mut rest = told(&[(1, 1), (1, 2), (1, 2), (2, 2)]);
        rest.remove(2);
        assert_eq!(session_parts(&rest), session_parts(&told(&[(1, 1), (1, 2), (1, 2)])));
    }

    /// Four texts, each said in a session on a day.
    fn told(places: &[(u64, i64)]) -> Index {
        let texts = ["Bees.", "A honey of a day.", "Rain.", "Much honey."];
        let mut index = Index::default();
        for ((turn, text), (session, day)) in (1..).zip(texts).zip(places) {
            let at_ms = Some(day * 86_400_000 + 7);
            let unit = Unit { session: *session, turn, speaker: Speaker::User, at_ms, text };
            index.add(&unit);
        }
        index
    }

    fn session_parts(index: &Index) -> Vec<(u64, f32)> {
        let mut all = Vec::new();
        let mut take = |unit: Ranked| all.push((unit.turn, unit.parts[SESSION]));
        index.features(&Ask::new("honey bees", 9), &mut take);
        all.sort_unstable_by_key(|(turn, _)| *turn);
        all
    }

    /// Whom a query names draws in what was said on the days on which they were there, or were spoken of.
    #[test]
    fn what_was_said_among_others_is_no_answer_about_somebody() {
        assert_eq!(NAMES[ELSEWHERE], "elsewhere");
        let people = [(1, "Ada"), (2, "Cy"), (3, "Dee")].map(|(day, name)| (1, day, name));
        let index = talks(&people, "Cy might know.");
        let elsewhere = |query: &str| {
            let mut all = Vec::new();
            let mut take = |unit: Ranked| all.push((unit.turn, unit.parts[ELSEWHERE]));
            index.features(&Ask::new(query, 9), &mut take);
            all.sort_unstable_by_key(|(turn, _)| *turn);
            all.into_iter().map(|(_, part)| part).collect::<Vec<_>>()
        };
        // Each day asks, answers, and on the third one Cy is spoken of.
        assert_eq!(elsewhere("How much honey has Ada?")[..6], [0.0, 0.0, 1.0, 1.0, 1.0, 1.0]);
        assert_eq!(elsewhere("How much honey has Cy?")[..6], [1.0, 1.0, 0.0, 0.0, 0.0, 0.0]);
        assert_eq!(elsewhere("Have Ada and Dee honey?")[..2], [0.0, 0.0]);
        assert_eq!(elsewhere("Where is the honey?"), [0.0; 6], "it names nobody");
        assert_eq!(elsewhere("How much honey has Zeno?"), [0.0; 6], "nobody speaks of him");
        for (first, name) in [(1, "Ada"), (5, "Dee")] {
            let query = format!("How much honey has {name}?");
            let found = index.search(&Ask::new(&query, 2));
            let turns: Vec<u64> = found.iter().map(|unit| unit.turn).collect();
            assert!(turns.iter().all(|turn| (first..first + 2).contains(turn)), "{name} {turns:?}");
        }
    }

    /// On each day somebody is asked for honey by a friend of theirs; `last` is the last answer's end.
    fn talks(people: &[(u64, i64, &str)], last: &str) -> Index {
        let mut index = Index::default();
        let mut turn = 0;
        for (number, (session, day, name)) in people.iter().enumerate() {
            let at_ms = Some(day * 86_400_000);
            let end = if number + 1 == people.len() { last } else { "" };
            let answer = format!("Much honey is in the jars here. {end}");
            let said = [(Speaker::User, "Where is your honey?"), (Speaker::Named(name), &*answer)];
            for (speaker, text) in said {
                turn += 1;
                index.add(&Unit { session: *session, turn, speaker, at_ms, text });
            }
        }
        index
    }

    /// A search leaves nothing behind in the room it worked in.
    #[test]
    fn the_same_search_finds_the_same_again() {
        let index = index(&["Bees swarm.", "Why?", "Bees are hungry.", "Rain."]);
        let first = index.search(&Ask::new("why do bees swarm", 9));
        index.search(&Ask { cosines: Some(&[0.1, 0.9]), ..Ask::new("rain and hunger", 9) });
        assert_eq!(index.search(&Ask::new("why do bees swarm", 9)), first);
    }
}
