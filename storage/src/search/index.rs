//! The index of what was said: units, their terms, and their order.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use super::candidates::Candidates;
use super::names::Names;
use super::query::Query;
use super::rank::{WEIGHTS, WEIGHTS_WITH_VECTORS, blend};
use super::reading::Reading;
use super::score::Scratch;
use super::top::Top;
use super::unit::{Ask, Ranked, Unit};
use crate::postings::Postings;
use crate::text::Language;

/// What was said, ready to be searched.
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
    pub(super) postings: Postings,
    /// By number of the document.
    pub(super) units: Vec<Entry>,
    pub(super) sessions: Vec<Session>,
    by_number: HashMap<u64, u32>,
    pub(super) names: Names,
    /// Units in each language, in the order of [`Language::ALL`].
    languages: [u32; Language::ALL.len()],
    /// What earlier searches worked in.
    spare: Mutex<Vec<Scratch>>,
}

#[derive(Debug)]
pub(super) struct Entry {
    /// Place among the sessions.
    pub(super) session: u32,
    /// Place in the session.
    pub(super) place: u32,
    pub(super) turn: u64,
    at_ms: i64,
    pub(super) speaker: u16,
    language: u8,
    pub(super) question: bool,
    pub(super) tells_time: bool,
}

#[derive(Debug)]
pub(super) struct Session {
    pub(super) number: u64,
    /// Documents in the order of turns and, in a turn, of speakers.
    pub(super) units: Vec<u32>,
    /// Terms in all of them.
    pub(super) length: u64,
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
    /// Gives its number: units count from 0 in the order they are added, and anew when a session
    /// is removed.
    pub fn add(&mut self, unit: &Unit<'_>) -> Option<u32> {
        let speaker = self.names.number(unit.speaker)?;
        let session = self.session(unit.session);
        let key = (unit.turn, speaker);
        let others = &self.sessions.get(session as usize)?.units;
        let place = others.partition_point(|unit| order(&self.units, *unit) < key);
        if others.get(place).is_some_and(|unit| order(&self.units, *unit) == key) {
            return None;
        }
        let read = Reading::of(unit);
        let document = self.postings.add(&read.counts, read.length)?;
        self.units.push(Entry {
            session,
            place: place as u32,
            turn: unit.turn,
            at_ms: unit.at_ms.unwrap_or(NO_TIME),
            speaker,
            language: read.language,
            question: read.question,
            tells_time: read.tells_time,
        });
        self.names.spoke(speaker);
        self.languages[usize::from(read.language)] += 1;
        if let Some(session) = self.sessions.get_mut(session as usize) {
            for later in session.units.get(place..).unwrap_or(&[]) {
                if let Some(unit) = self.units.get_mut(*later as usize) {
                    unit.place += 1;
                }
            }
            session.units.insert(place, document);
            session.length += u64::from(read.length);
        }
        Some(document)
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
                self.names.left(unit.speaker);
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

    /// The units that answer best, the best first, of equals the newest. What is found shares a
    /// word with the query, comes right after a question that does, or is close to it in meaning.
    pub fn search(&self, ask: &Ask<'_>) -> Vec<Ranked> {
        let weights = if ask.cosines.is_some() { &WEIGHTS_WITH_VECTORS } else { &WEIGHTS };
        let mut top = Top::new(ask.k);
        self.features(ask, &mut |mut unit| {
            unit.score = blend(&unit.parts, weights);
            unit.parts.iter_mut().zip(weights).for_each(|(part, weight)| *part *= weight);
            top.offer(unit);
        });
        top.into_vec()
    }

    /// Hands everything that could answer to `take`, each with its features unweighted (`parts`)
    /// and no score: what weights are fitted on. `ask.k` doesn't matter.
    pub fn features(&self, ask: &Ask<'_>, take: &mut dyn FnMut(Ranked)) {
        let query = self.query(ask.query);
        let mut scratch = self.spare().pop().unwrap_or_default();
        let found = Candidates::find(self, &query, ask, &mut scratch);
        for document in found.documents() {
            let Some(unit) = self.units.get(*document as usize) else { continue };
            let session = self.sessions.get(unit.session as usize);
            take(Ranked {
                session: session.map_or(0, |session| session.number),
                turn: unit.turn,
                speaker: unit.speaker,
                at_ms: unit.at_ms(),
                score: 0.0,
                parts: found.features(*document, unit),
            });
        }
        drop(found);
        scratch.clear();
        self.spare().push(scratch);
    }

    /// Number of units in a session, or of all.
    pub(super) fn count(&self, session: Option<u64>) -> usize {
        let Some(number) = session else { return self.len() };
        let place = self.place_of(number).map(|place| place as usize);
        place.and_then(|place| self.sessions.get(place)).map_or(0, |session| session.units.len())
    }

    /// The place of a session that is known.
    pub(super) fn place_of(&self, session: u64) -> Option<u32> {
        self.by_number.get(&session).copied()
    }

    /// A query, taken apart for the languages that units are in.
    pub(super) fn query(&self, text: &str) -> Query {
        let used = Language::ALL.iter().zip(&self.languages).filter(|(_, units)| **units > 0);
        Query::new(text, &used.map(|(language, _)| *language).collect::<Vec<_>>())
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

    fn spare(&self) -> std::sync::MutexGuard<'_, Vec<Scratch>> {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entry {
    pub(super) fn at_ms(&self) -> Option<i64> {
        (self.at_ms != NO_TIME).then_some(self.at_ms)
    }
}

/// Stands for no time at all.
const NO_TIME: i64 = i64::MIN;

fn order(units: &[Entry], document: u32) -> (u64, u16) {
    units.get(document as usize).map_or((0, 0), |unit| (unit.turn, unit.speaker))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::{Features, Speaker};

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

    /// A search leaves nothing behind in the room it worked in.
    #[test]
    fn the_same_search_finds_the_same_again() {
        let index = index(&["Bees swarm.", "Why?", "Bees are hungry.", "Rain."]);
        let first = index.search(&Ask::new("why do bees swarm", 9));
        index.search(&Ask { cosines: Some(&[0.1, 0.9]), ..Ask::new("rain and hunger", 9) });
        assert_eq!(index.search(&Ask::new("why do bees swarm", 9)), first);
    }
}
