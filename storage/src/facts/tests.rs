//! What a write reads: as much in a large store as in a small one. Every record that a write has no
//! business with is damaged first, so that reading it would be an error.

use garret_core::time::{Confidence, WallTime};
use redb::backends::InMemoryBackend;
use redb::{Database, ReadableDatabase as _, ReadableTable as _};

use crate::facts::op::{Draft, FactOp};
use crate::facts::read;
use crate::facts::table::FACTS;
use crate::facts::view::{Added, NewFact, Outcome};
use crate::facts::write::{Effect, apply};
use crate::ground::fact_id::FactId;
use crate::ground::table::META;

const AT: WallTime = WallTime { unix_ms: 0, confidence: Confidence::Good };

fn database() -> Database {
    let database = Database::builder().create_with_backend(InMemoryBackend::new()).unwrap();
    let transaction = database.begin_write().unwrap();
    transaction.open_table(META).unwrap();
    transaction.commit().unwrap();
    database
}

fn run(database: &Database, op: &FactOp<'_>) -> Effect {
    let transaction = database.begin_write().unwrap();
    let effect = apply(&transaction, op).unwrap();
    transaction.commit().unwrap();
    effect
}

fn fact<'a>(predicate: &'a str, object: &'a str, start: i64) -> NewFact<'a> {
    let subject = Some("user");
    NewFact {
        text: object,
        subject,
        predicate: Some(predicate),
        valid_at: Some(start),
        ..NewFact::default()
    }
}

fn add(database: &Database, fact: &NewFact<'_>) -> Added {
    let op = FactOp::Add(vec![Draft::new(fact, AT).unwrap()]);
    run(database, &op).added.remove(0)
}

fn fill(database: &Database, predicate: &str, facts: i64) {
    let values: Vec<_> = (0..facts).map(|nth| format!("value {nth}")).collect();
    let facts: Vec<_> = (0..).zip(&values).map(|(at, value)| fact(predicate, value, at)).collect();
    let drafts = facts.iter().map(|fact| Draft::new(fact, AT).unwrap()).collect();
    run(database, &FactOp::Add(drafts));
}

/// Damages all records but those.
fn damage(database: &Database, spared: &[u64]) {
    let transaction = database.begin_write().unwrap();
    {
        let mut facts = transaction.open_table(FACTS).unwrap();
        let keys = facts.iter().unwrap().map(|entry| *entry.unwrap().0.value());
        for key in keys.collect::<Vec<_>>() {
            if !spared.contains(&u64::from_be_bytes(key)) {
                facts.insert(&key, b"damaged".as_slice()).unwrap();
            }
        }
    }
    transaction.commit().unwrap();
}

/// An addition that reads all facts takes ever longer.
#[test]
fn adding_reads_the_neighbours_in_time_alone() {
    let database = database();
    fill(&database, "lives_in", 1_000);
    damage(&database, &[500, 501, 1_000]);
    let last = add(&database, &fact("lives_in", "Oslo", 2_000));
    assert_eq!(last.superseded, [FactId(1_000)]);
    let between = add(&database, &fact("lives_in", "Rome", 499));
    assert_eq!(between.superseded, [FactId(500)]);
    assert_eq!(add(&database, &fact("lives_in", "Oslo", 3_000)).outcome, Outcome::Restated);
}

/// It compared each value of a slot of many with all others, which took 74 ms for the thousandth.
#[test]
fn one_more_of_many_values_reads_none_of_the_others() {
    let database = database();
    fill(&database, "likes", 1_000);
    damage(&database, &[17]);
    assert_eq!(add(&database, &fact("likes", "tea", 2_000)).outcome, Outcome::Stored);
    let restated = add(&database, &fact("likes", "Value 16.", 2_000));
    assert_eq!((restated.id, restated.outcome), (FactId(17), Outcome::Restated));
}

#[test]
fn ending_a_fact_reads_what_it_leads_to_alone() {
    let database = database();
    fill(&database, "likes", 1_000);
    let derived_from = [FactId(17)];
    let derived = NewFact { text: "a guess", derived_from: &derived_from, ..NewFact::default() };
    let derived = add(&database, &derived).id;
    run(&database, &FactOp::Retire { loser: 18, survivor: 17 });
    damage(&database, &[17, 18, derived.0]);
    let new = fact("likes", "tea", 2_000);
    let op = FactOp::Supersede { old: 17, new: Draft::new(&new, AT).unwrap() };
    let added = run(&database, &op).added.remove(0);
    assert_eq!(added.superseded, [FactId(17), FactId(18)]);
    assert_eq!(added.invalidated, [derived]);
    run(&database, &FactOp::Retract { fact: added.id.0, at_ms: 3_000 });
    run(&database, &FactOp::Touch(vec![(3, 1)]));
}

/// A store from before there were facts has none of their tables.
#[test]
fn a_store_without_tables_of_facts_has_none() {
    let database = database();
    let transaction = database.begin_read().unwrap();
    assert_eq!(read::fact(&transaction, FactId(1)).unwrap(), None);
    assert_eq!(read::history(&transaction, FactId(1)).unwrap(), []);
    assert_eq!(read::entities(&transaction).unwrap(), []);
    assert_eq!(read::usage(&transaction, FactId(1)).unwrap().count, 0);
    assert_eq!(crate::verify::check_facts(&transaction).unwrap(), [""; 0]);
    read::for_each(&transaction, |fact| panic!("{fact:?}")).unwrap();
}

/// One damaged record hides no other.
#[test]
fn the_facts_beside_a_damaged_one_are_read() {
    let database = database();
    fill(&database, "likes", 3);
    damage(&database, &[1, 3]);
    let transaction = database.begin_read().unwrap();
    let mut seen = Vec::new();
    read::for_each(&transaction, |fact| seen.push(fact.id.0)).unwrap();
    assert_eq!(seen, [1, 3]);
    assert!(read::fact(&transaction, FactId(2)).is_err());
    let wrong = crate::verify::check_facts(&transaction).unwrap();
    assert_eq!(wrong, ["fact record, f2"]);
}
