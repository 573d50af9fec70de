//! What nobody says by accident: stories that bend chains of facts back, words that look like the
//! journal's own bytes.

use garret_core::time::{Confidence, WallTime};
use garret_hal::media::RamMedium;
use garret_storage::{FactId, NewFact, Store};

use crate::model::open;

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
