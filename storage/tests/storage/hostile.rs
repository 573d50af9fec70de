//! What nobody does by accident: stories that bend chains of facts back, files that were cut short,
//! records that are written anew under those who read them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use garret_core::medium::{Medium, MediumError};
use garret_core::time::{Confidence, WallTime};
use garret_hal::media::RamMedium;
use garret_storage::{FactId, NewFact, OpenError, Outcome, Store};

use crate::model::{Pair, id, open};

const AT: WallTime = WallTime { unix_ms: 100, confidence: Confidence::Good };

fn lives<'a>(subject: &'a str, object: &'a str, valid_at: i64) -> NewFact<'a> {
    NewFact {
        text: object,
        subject: Some(subject),
        predicate: Some("lives_in"),
        object: Some(object),
        valid_at: Some(valid_at),
        ..NewFact::default()
    }
}

/// A fact about Ada that ends where another one starts, and isn't replaced by that, since that is
/// replaced, by way of Bob's, by itself. Gives the store and the last fact of all.
fn bent() -> (Store, FactId) {
    let store = open(&RamMedium::new());
    let oslo = store.add_fact(&lives("Ada", "Oslo", 10), AT).unwrap().id;
    let rome = store.add_fact(&lives("Bob", "Rome", 30), AT).unwrap().id;
    store.supersede(oslo, &lives("Bob", "Paris", 20), AT).unwrap();
    let bergen = store.supersede(rome, &lives("Ada", "Bergen", 0), AT).unwrap().id;
    let fact = store.fact(bergen).unwrap().unwrap();
    assert_eq!((fact.valid_to, fact.superseded_by), (Some(10), None));
    (store, bergen)
}

#[test]
fn no_fact_replaces_itself_by_way_of_others() {
    let (store, bergen) = bent();
    let bern = store.add_fact(&lives("Ada", "Bern", 5), AT).unwrap().id;
    assert_eq!(store.check_facts().unwrap(), [""; 0]);
    assert_eq!(store.fact(bergen).unwrap().unwrap().superseded_by, Some(bern));
    let bern = store.fact(bern).unwrap().unwrap();
    assert_eq!((bern.valid_to, bern.superseded_by), (Some(10), None));
    // This one follows all heirs, and mustn't do so for ever.
    let other = store.add_fact(&lives("Eve", "Kyiv", 1), AT).unwrap().id;
    store.supersede(other, &lives("Ada", "Lund", 3), AT).unwrap();
    assert_eq!(store.check_facts().unwrap(), [""; 0]);
}

#[test]
fn a_chain_that_leads_through_what_is_replaced_is_no_damage() {
    let (store, _) = bent();
    let other = store.add_fact(&lives("Eve", "Kyiv", 1), AT).unwrap().id;
    store.supersede(other, &lives("Ada", "Lund", 5), AT).unwrap();
    assert_eq!(store.check_facts().unwrap(), [""; 0]);
}

/// As a copy of it may be that found the device full.
#[test]
fn a_journal_that_was_cut_short_is_told() {
    let pair = Pair::<RamMedium>::default();
    let store = pair.open();
    for _ in 0..3 {
        store.accept(&id(0), "Bees.", AT).unwrap();
    }
    let [records, journal] = pair.bytes();
    for len in [4_096, 4_200, journal.len() - 1] {
        let bytes = [records.clone(), journal[..len].to_vec()];
        let pair = Pair::<RamMedium>::of(bytes.clone());
        let error = pair.try_open().unwrap_err();
        assert!(matches!(&error, OpenError::Journal { why, .. } if why.contains("cut short")));
        assert!(pair.bytes() == bytes);
    }
}

#[test]
fn saying_again_what_is_known_costs_no_write() {
    let pair = Pair::<RamMedium>::default();
    let store = pair.open();
    store.add_fact(&lives("Ada", "Oslo", 1), AT).unwrap();
    store.accept(&id(0), "Bees.", AT).unwrap();
    let (pending, before) = (store.pending().unwrap(), pair.bytes());
    let known = [lives("Ada", "Oslo", 5), lives("ada", "OSLO", 7)];
    let added = store.add_facts(&known, AT).unwrap();
    assert!(added.iter().all(|added| added.outcome == Outcome::Restated));
    assert_eq!(store.pending().unwrap(), pending);
    assert!(pair.bytes() == before);
    // One that is new takes the others with it.
    store.add_facts(&[known[0].clone(), lives("Ada", "Bern", 9)], AT).unwrap();
    assert_eq!(store.pending().unwrap(), pending + 1);
}

fn with_facts(count: u64) -> Store {
    let store = open(&RamMedium::new());
    for number in 0..count {
        let town = format!("town {number}");
        store.add_fact(&lives(&town, &town, 1), AT).unwrap();
    }
    store
}

#[test]
fn going_through_facts_outlasts_a_rewrite() {
    let (store, mut seen) = (with_facts(200), Vec::new());
    let each = |fact: &garret_storage::FactView<'_>| {
        if seen.len() % 70 == 0 {
            store.vacuum().unwrap();
        }
        seen.push(fact.id.0);
    };
    store.for_each_fact(each).unwrap();
    assert_eq!(seen, (1..=200).collect::<Vec<_>>());
}

/// Memory; when it is first written to, a store writes its records anew.
struct Meddler {
    bytes: RamMedium,
    store: Arc<Store>,
    writes: AtomicU32,
}

impl Medium for Meddler {
    fn len(&self) -> Result<u64, MediumError> {
        self.bytes.len()
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<(), MediumError> {
        self.bytes.read_at(offset, out)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<(), MediumError> {
        if self.writes.fetch_add(1, Ordering::Relaxed) == 0 {
            self.store.vacuum().unwrap();
        }
        self.bytes.write_at(offset, bytes)
    }

    fn set_len(&self, len: u64) -> Result<(), MediumError> {
        self.bytes.set_len(len)
    }

    fn sync(&self) -> Result<(), MediumError> {
        self.bytes.sync()
    }
}

#[test]
fn a_backup_outlasts_a_rewrite() {
    let (store, bytes) = (Arc::new(with_facts(200)), RamMedium::new());
    let writes = AtomicU32::new(0);
    let to = Meddler { bytes: bytes.clone(), store: store.clone(), writes };
    store.backup(Box::new(to)).unwrap();
    let copy = open(&bytes);
    assert_eq!(copy.stats().unwrap().facts, store.stats().unwrap().facts);
    assert!(copy.verify().unwrap().is_clean());
}
