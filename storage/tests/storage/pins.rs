//! Pins: who has one, and where it goes when its fact is replaced.

use garret_core::time::{Confidence, WallTime};
use garret_hal::media::RamMedium;
use garret_storage::{FactId, NewFact, Pin, Selection, Store};

use crate::rewrite::Disk;

fn day(day: i64) -> WallTime {
    WallTime { unix_ms: day * 86_400_000, confidence: Confidence::Good }
}

fn lives_in(city: &str) -> NewFact<'_> {
    NewFact { text: city, subject: Some("Ada"), predicate: Some("lives_in"), ..NewFact::default() }
}

fn note<'a>(text: &'a str, salience: f32) -> NewFact<'a> {
    NewFact { text, salience: Some(salience), ..NewFact::default() }
}

fn add(store: &Store, fact: &NewFact<'_>, on: i64) -> FactId {
    store.add_fact(fact, day(on)).unwrap().id
}

fn pinned(store: &Store, on: i64) -> Vec<(u64, Pin)> {
    let facts = store.pinned(day(on)).unwrap();
    for fact in &facts {
        assert_eq!(store.fact(fact.id).unwrap().as_ref(), Some(fact));
    }
    facts.iter().map(|fact| (fact.id.0, fact.pinned)).collect()
}

#[test]
fn the_users_come_first_then_what_matters_then_what_is_new() {
    let disk = Disk::<RamMedium>::default();
    let store = disk.open();
    for (text, salience) in [("a", 1.0), ("b", 9.0), ("c", 2.0), ("d", 9.0), ("e", 9.5)] {
        add(&store, &note(text, salience), 1);
    }
    for (id, pin) in [(1, Pin::User), (2, Pin::Auto), (3, Pin::User), (4, Pin::Auto)] {
        store.pin(FactId(id), pin).unwrap();
    }
    let expected = [(3, Pin::User), (1, Pin::User), (4, Pin::Auto), (2, Pin::Auto)];
    assert_eq!(pinned(&store, 1), expected);
    drop(store);
    let store = disk.open();
    assert_eq!(pinned(&store, 1), expected);
    // A rule doesn't take the user's pin away.
    store.pin(FactId(3), Pin::Auto).unwrap();
    store.pin(FactId(4), Pin::User).unwrap();
    store.pin(FactId(1), Pin::None).unwrap();
    assert_eq!(pinned(&store, 1), [(4, Pin::User), (3, Pin::User), (2, Pin::Auto)]);
    let error = store.pin(FactId(9), Pin::User).unwrap_err();
    assert!(error.to_string().contains("no fact f9"), "{error}");
}

/// The last of a line of successors may end in the same step, being derived from the first.
#[test]
fn no_pin_moves_to_a_fact_that_ends() {
    let store = Disk::<RamMedium>::default().open();
    let oslo = NewFact { valid_to: Some(day(8).unix_ms), ..lives_in("Oslo") };
    let oslo = add(&store, &oslo, 3);
    store.pin(oslo, Pin::User).unwrap();
    let bergen = NewFact { derived_from: &[oslo], ..lives_in("Bergen") };
    let bergen = add(&store, &bergen, 9);
    let rome = add(&store, &lives_in("Rome"), 4);
    let fact = |id| store.fact(id).unwrap().unwrap();
    assert_eq!(fact(oslo).superseded_by, Some(rome));
    assert_eq!(fact(rome).superseded_by, Some(bergen));
    assert_eq!(fact(bergen).invalidated_by, Some(rome));
    assert_eq!([oslo, rome, bergen].map(|id| fact(id).pinned), [Pin::None; 3]);
}

#[test]
fn a_pin_moves_to_what_replaces_its_fact() {
    let store = Disk::<RamMedium>::default().open();
    let oslo = add(&store, &lives_in("Oslo"), 1);
    store.pin(oslo, Pin::User).unwrap();
    // By the newer value of its slot, by name, and by one that is told late.
    add(&store, &lives_in("Rome"), 5);
    assert_eq!(pinned(&store, 9), [(2, Pin::User)]);
    store.supersede(FactId(2), &lives_in("Bern"), day(7)).unwrap();
    assert_eq!(pinned(&store, 9), [(3, Pin::User)]);
    let before = NewFact { valid_at: Some(day(3).unix_ms), ..lives_in("Paris") };
    add(&store, &before, 8);
    assert_eq!(pinned(&store, 9), [(3, Pin::User)]);
    let error = store.pin(oslo, Pin::Auto).unwrap_err();
    assert!(error.to_string().contains("pin f4 instead"), "{error}");
    store.pin(oslo, Pin::None).unwrap();
    assert_eq!(pinned(&store, 9), [(3, Pin::User)]);
}

/// The replacement is told to have begun before what follows the pinned fact.
#[test]
fn a_pin_goes_on_to_the_end_of_the_line() {
    let store = Disk::<RamMedium>::default().open();
    let note = add(&store, &note("Ada lives in Oslo", 5.0), 1);
    store.pin(note, Pin::User).unwrap();
    add(&store, &lives_in("Rome"), 5);
    // It takes the note's place, and Rome took its own.
    let early = NewFact { valid_at: Some(day(2).unix_ms), ..lives_in("Oslo") };
    let added = store.supersede(note, &early, day(6)).unwrap();
    assert_eq!(store.fact(added.id).unwrap().unwrap().superseded_by, Some(FactId(2)));
    assert_eq!(pinned(&store, 9), [(2, Pin::User)]);
}

#[test]
fn what_ended_lost_its_pin() {
    let store = Disk::<RamMedium>::default().open();
    let (first, second) = (add(&store, &note("a", 5.0), 1), add(&store, &note("b", 5.0), 1));
    let derived = NewFact { inferred: true, derived_from: &[second], ..note("c", 5.0) };
    let derived = add(&store, &derived, 1);
    for (id, pin) in [(first, Pin::User), (second, Pin::User), (derived, Pin::Auto)] {
        store.pin(id, pin).unwrap();
    }
    store.retract(first, day(3).unix_ms).unwrap();
    assert_eq!(pinned(&store, 1), [(second.0, Pin::User), (derived.0, Pin::Auto)]);
    store.supersede(second, &note("d", 5.0), day(4)).unwrap();
    assert_eq!(pinned(&store, 9), [(4, Pin::User)]);
    let forgotten = Selection { facts: &[FactId(4)], ..Selection::default() };
    store.erase(&forgotten, day(9), false).unwrap();
    assert_eq!(pinned(&store, 9), []);
}

#[test]
fn a_retired_duplicate_gives_its_pin_to_the_survivor() {
    let store = Disk::<RamMedium>::default().open();
    let likes = |text| NewFact {
        text,
        subject: Some("Ada"),
        predicate: Some("likes"),
        ..NewFact::default()
    };
    let (loser, survivor) = (add(&store, &likes("tea"), 1), add(&store, &likes("green tea"), 1));
    store.pin(loser, Pin::User).unwrap();
    store.pin(survivor, Pin::Auto).unwrap();
    store.retire_duplicate(loser, survivor).unwrap();
    assert_eq!(pinned(&store, 1), [(survivor.0, Pin::User)]);
}

#[test]
fn only_what_holds_is_shown() {
    let store = Disk::<RamMedium>::default().open();
    let trip = NewFact { valid_to: Some(day(9).unix_ms), ..note("a trip", 5.0) };
    let trip = add(&store, &trip, 3);
    let home = add(&store, &note("a home", 4.0), 3);
    for id in [trip, home] {
        store.pin(id, Pin::User).unwrap();
    }
    assert_eq!(pinned(&store, 5), [(trip.0, Pin::User), (home.0, Pin::User)]);
    assert_eq!(pinned(&store, 9), [(home.0, Pin::User)]);
    assert_eq!(pinned(&store, 2), []);
    // A clock that was reset says nothing.
    let lost = WallTime { unix_ms: 0, confidence: Confidence::Wrong };
    assert_eq!(store.pinned(lost).unwrap().len(), 1);
}
