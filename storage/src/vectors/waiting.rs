//! What waits for a vector, known without a look at every record.
//!
//! After a store is opened, or its vectors changed in a way that can't be told, records are looked
//! through once, in the order of their keys, up to where enough was found; from there the next look
//! goes on. What is written meanwhile is noted where that look has already been. So there is nothing
//! to do where nothing is new. All of it is in memory alone and follows from records and vectors.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use garret_core::id::TurnSeq;
use redb::ReadTransaction;

use garret_language::without_names;

use crate::conversations::record::{ReplyRecord, TurnRecord, speaker};
use crate::facts::FactRecord;
use crate::facts::table::FACTS;
use crate::ground::database::open_if_there as if_there;
use crate::ground::error::Fault;
use crate::ground::table::{REPLIES, SPEAKERS, TURNS, TurnKey, seq_of, session_of, turn_key};
use crate::index::{Changes, Fresh};
use crate::vectors::{UnitKey, VectorStore};

/// Units that may lack a vector.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    /// Held by whoever looks: one at a time.
    pub(crate) looking: Mutex<()>,
    state: Mutex<State>,
}

#[derive(Debug)]
pub(crate) struct State {
    /// Units before `from` that may lack one.
    pub(crate) units: BTreeSet<UnitKey>,
    /// Units from here on weren't looked at; `None` where all were.
    pub(crate) from: Option<UnitKey>,
    /// The [version](VectorStore::version) of the vectors that this agrees with.
    pub(crate) version: u64,
    /// Raised whenever this begins anew.
    pub(crate) beginnings: u64,
}

impl Default for State {
    fn default() -> Self {
        Self { units: BTreeSet::new(), from: Some(FIRST), version: 0, beginnings: 0 }
    }
}

/// A unit before every other one.
const FIRST: UnitKey = UnitKey::Words { session: 0, turn: 0 };

/// Most units that are noted; beyond, looking at all records takes less memory and no more time.
const MOST: usize = 1 << 16;

impl Waiting {
    /// Notes what was written. Called while the store is locked.
    pub(crate) fn note(&self, fresh: &Fresh) {
        let mut state = self.state();
        if fresh.lost {
            return state.begin();
        }
        state.note(&fresh.changes);
    }

    /// The records may hold something else than was noted.
    pub(crate) fn forget(&self) {
        self.state().begin();
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        // Whole at every moment: at worst a unit is noted that a panic kept others from following,
        // and then the write that it came with fails, which has all of this begin anew.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    pub(crate) fn begin(&mut self) {
        *self = Self { beginnings: self.beginnings.wrapping_add(1), ..Self::default() };
    }

    pub(crate) fn note(&mut self, changes: &Changes) {
        let Some(new) = usize::try_from(changes.units()).ok().filter(|new| *new > 0) else {
            return;
        };
        // Nothing has been looked at: the first look finds all.
        if self.from == Some(FIRST) {
            return;
        }
        if new.saturating_add(self.units.len()) > MOST {
            return self.begin();
        }
        let from = self.from;
        self.units.extend(changes.keys().filter(|key| from.is_none_or(|from| *key < from)));
    }

    /// Takes what is to be looked at: units to ask for, and from where on to go through the records.
    /// Whatever is written from now on is noted, wherever it is.
    pub(crate) fn take(&mut self, version: u64) -> (BTreeSet<UnitKey>, Option<UnitKey>, u64) {
        if self.version != version {
            self.begin();
            self.version = version;
        }
        (std::mem::take(&mut self.units), self.from.take(), self.beginnings)
    }

    /// Puts back what still waits, and up to where the records were gone through.
    pub(crate) fn put(
        &mut self,
        (units, from, beginnings): (BTreeSet<UnitKey>, Option<UnitKey>, u64),
    ) {
        if self.beginnings == beginnings {
            self.units.extend(units);
            self.units.retain(|key| from.is_none_or(|from| *key < from));
            self.from = from;
        }
    }
}

/// A look for what lacks a vector.
pub(crate) struct Look<'a> {
    pub(crate) vectors: &'a VectorStore,
    pub(crate) limit: usize,
    pub(crate) found: Vec<(UnitKey, String)>,
    /// Units that weren't looked at for lack of room.
    pub(crate) rest: BTreeSet<UnitKey>,
}

impl Look<'_> {
    /// Tells whether there is no room for more.
    pub(crate) fn is_full(&self) -> bool {
        self.found.len() >= self.limit
    }

    pub(crate) fn add(&mut self, key: UnitKey, text: Option<&str>) {
        let text = text.filter(|text| !text.trim().is_empty());
        self.found.extend(text.map(|text| (key, text.to_owned())));
    }

    /// Looks at units that were noted. Those without a record, or words, don't wait any more.
    pub(crate) fn at_noted(
        &mut self,
        transaction: &ReadTransaction,
        noted: &BTreeSet<UnitKey>,
    ) -> Result<(), Fault> {
        for key in noted.iter().copied().filter(|key| !self.vectors.contains(*key)) {
            if self.is_full() {
                self.rest.insert(key);
                continue;
            }
            match key {
                UnitKey::Words { session, turn } => {
                    let record = transaction.open_table(TURNS)?.get(&turn_key(session, turn))?;
                    let text = record.as_ref().and_then(|it| words(session, turn, it.value()));
                    self.add(key, text);
                }
                UnitKey::Reply { session, turn } => {
                    let record = transaction.open_table(REPLIES)?.get(&turn_key(session, turn))?;
                    let text = record.as_ref().and_then(|it| reply(session, turn, it.value()));
                    self.add(key, text);
                }
                UnitKey::Fact { id } => {
                    let Some(facts) = if_there(transaction, FACTS)? else { continue };
                    let record = facts.get(&id.to_be_bytes())?;
                    self.add(key, record.as_ref().and_then(|it| fact(id, it.value())));
                }
            }
        }
        Ok(())
    }

    /// Goes through all units from one on, until there is no room for more: gives the one that comes
    /// next then.
    pub(crate) fn from(
        &mut self,
        transaction: &ReadTransaction,
        from: UnitKey,
    ) -> Result<Option<UnitKey>, Fault> {
        let start = UnitKey::Reply { session: 0, turn: 0 };
        if let UnitKey::Words { session, turn } = from {
            let first = turn_key(session, turn);
            for entry in transaction.open_table(TURNS)?.range::<&TurnKey>(&first..)? {
                let (key, bytes) = entry?;
                let (session, turn) = (session_of(key.value()), seq_of(key.value()));
                let text = || words(session, turn, bytes.value());
                if !self.at(UnitKey::Words { session, turn }, text) {
                    return Ok(Some(UnitKey::Words { session, turn }));
                }
            }
        }
        if let UnitKey::Reply { session, turn } = from.max(start) {
            let first = turn_key(session, turn);
            for entry in transaction.open_table(REPLIES)?.range::<&TurnKey>(&first..)? {
                let (key, bytes) = entry?;
                let (session, turn) = (session_of(key.value()), seq_of(key.value()));
                let text = || reply(session, turn, bytes.value());
                if !self.at(UnitKey::Reply { session, turn }, text) {
                    return Ok(Some(UnitKey::Reply { session, turn }));
                }
            }
        }
        let UnitKey::Fact { id } = from.max(UnitKey::Fact { id: 0 }) else { return Ok(None) };
        let Some(facts) = if_there(transaction, FACTS)? else { return Ok(None) };
        for entry in facts.range::<&[u8; 8]>(&id.to_be_bytes()..)? {
            let (key, bytes) = entry?;
            let id = u64::from_be_bytes(*key.value());
            if !self.at(UnitKey::Fact { id }, || fact(id, bytes.value())) {
                return Ok(Some(UnitKey::Fact { id }));
            }
        }
        Ok(None)
    }

    /// Looks at a unit; false where there is no room for it.
    pub(crate) fn at<'t>(&mut self, key: UnitKey, text: impl FnOnce() -> Option<&'t str>) -> bool {
        if self.is_full() {
            return false;
        }
        if !self.vectors.contains(key) {
            self.add(key, text());
        }
        true
    }
}

/// The words of a turn; none of a damaged record.
pub(crate) fn words(session: u64, turn: TurnSeq, bytes: &[u8]) -> Option<&str> {
    TurnRecord::view(session, turn, bytes).ok().map(|view| view.user)
}

pub(crate) fn reply(session: u64, turn: TurnSeq, bytes: &[u8]) -> Option<&str> {
    ReplyRecord::view(session, turn, bytes).ok().map(|view| view.text)
}

pub(crate) fn fact(id: u64, bytes: &[u8]) -> Option<&str> {
    FactRecord::view(id, bytes).ok().map(|view| view.text)
}

/// Takes the names of those who speak in its session out of each text, unless that is all it has.
pub(crate) fn strip_names(
    transaction: &ReadTransaction,
    found: &mut [(UnitKey, String)],
) -> Result<(), Fault> {
    let table = transaction.open_table(SPEAKERS)?;
    let mut names: HashMap<u64, BTreeSet<String>> = HashMap::new();
    for (key, text) in found {
        let Some(session) = key.session() else { continue };
        let names = match names.entry(session) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => {
                let (first, last) = (turn_key(session, 0), turn_key(session, u64::MAX));
                let mut names = BTreeSet::new();
                for entry in table.range::<&TurnKey>(&first..=&last)? {
                    let (key, name) = entry?;
                    // A damaged one is nobody's name.
                    if let Ok(name) = speaker(session, seq_of(key.value()), name.value())
                        && !names.contains(name)
                    {
                        names.insert(name.to_owned());
                    }
                }
                new.insert(names)
            }
        };
        if names.is_empty() {
            continue;
        }
        let bare = without_names(text, &names.iter().collect::<Vec<_>>());
        if bare.contains(char::is_alphanumeric) {
            *text = bare;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use garret_core::time::{Confidence, WallTime};
    use garret_core::vector::Scalar;
    use garret_hal::media::RamMedium;

    use super::*;
    use crate::files::part::Part;

    /// Idle work asked for all records each time: 20 ms for 100,000 of them, after every turn.
    #[test]
    pub(crate) fn once_all_was_looked_at_only_what_is_new_is() {
        let media = Part::ALL.map(|_| RamMedium::new());
        let open = move |part| {
            let at = Part::ALL.iter().position(|other| *other == part).unwrap_or_default();
            Ok(Box::new(media[at].clone()) as Box<dyn garret_core::medium::Medium>)
        };
        let store = crate::store::Store::on_media("n", open).unwrap();
        store.set_embedder([1; 32], 2, Arc::new(Scalar), None).unwrap();
        let at = WallTime { unix_ms: 0, confidence: Confidence::Good };
        let session = "s".parse().unwrap();
        let said = |turn| UnitKey::Words { session: 1, turn };
        let state = || {
            let state = store.vectors.waiting.state();
            (state.units.iter().copied().collect::<Vec<_>>(), state.from)
        };
        for text in ["one", "two", " ", "four"] {
            store.accept(&session, text, at).unwrap();
        }
        assert_eq!(state(), (vec![], Some(FIRST)));
        assert_eq!(store.unembedded(1).unwrap().len(), 1);
        assert_eq!(state(), (vec![said(1)], Some(said(2))));
        assert_eq!(store.unembedded(9).unwrap().len(), 3);
        assert_eq!(state(), (vec![said(1), said(2), said(4)], None));
        let vectors = [1, 2, 4].map(|turn| (said(turn), vec![1.0, 0.0]));
        assert_eq!(store.add_vectors(&vectors), Ok(3));
        // The first of an embedder begin its files anew.
        assert_eq!(store.unembedded(9).unwrap(), []);
        assert_eq!(state(), (vec![], None));
        store.accept(&session, "five", at).unwrap();
        assert_eq!(state(), (vec![said(5)], None));
        assert_eq!(store.unembedded(9).unwrap(), [(said(5), "five".to_owned())]);
        store.add_vectors(&[(said(5), vec![0.0, 1.0])]).unwrap();
        assert_eq!(store.unembedded(9).unwrap(), []);
        assert_eq!(state(), (vec![], None));
    }

    #[test]
    pub(crate) fn what_would_take_too_much_room_is_looked_for_again() {
        let mut state = State { from: None, ..State::default() };
        let run = |count| Changes {
            said: vec![crate::index::Run { session: 1, first: 1, count }],
            ..Changes::default()
        };
        state.note(&run(MOST as u64));
        assert_eq!((state.units.len(), state.from), (MOST, None));
        state.note(&run(1));
        assert_eq!((state.units.len(), state.from), (0, Some(FIRST)));
    }
}
