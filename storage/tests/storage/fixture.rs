//! Files that released formats left behind are opened and read whole.

use std::path::{Path, PathBuf};

use garret_core::time::{Confidence, WallTime};
use garret_hal::media::RamMedium;
use garret_storage::search::Speaker;
use garret_storage::{FactFilter, ImportedTurn, NewFact, Store};

use crate::model::{Dump, Op, Pair, apply, dump, history, id, open, workload};

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

fn fixture(name: &str) -> Vec<u8> {
    std::fs::read(path(name)).unwrap()
}

#[test]
fn version_1_is_read_and_written_on() {
    let expected = history(&workload()).pop().unwrap();
    let medium = RamMedium::from_bytes(fixture("v1.redb"));
    let store = open(&medium);
    assert_eq!(dump(&store).unwrap(), expected);
    apply(&store, &workload()[0]).unwrap();
    drop(store);
    assert_eq!(dump(&open(&medium)).unwrap().sessions.len(), expected.sessions.len() + 1);
}

/// The first write is the upgrade: only then may a journal have frames, which a program of version
/// 1 wouldn't see. The newest session stays the newest.
#[test]
fn version_1_is_upgraded_by_the_first_write() {
    let pair = Pair::of([fixture("v1.redb"), Vec::new()]);
    drop(pair.open());
    assert!(pair.bytes()[0] == fixture("v1.redb"), "reading wrote");
    let (first, more) = (&workload()[0], Op::Accept { session: 0, text: "more".into(), ms: 2 });
    let mut ops = workload();
    let store = pair.open();
    for op in [first, &more] {
        assert!(pair.journal.snapshot().is_empty());
        ops.push(op.clone());
        apply(&store, op).unwrap();
    }
    assert_eq!(store.pending().unwrap(), 1);
    let expected = history(&ops).pop().unwrap();
    assert_eq!(dump(&store).unwrap(), expected);
    assert_eq!(dump(&Pair::of(pair.bytes()).open()).unwrap(), expected);
}

#[test]
fn version_2_is_read_and_written_on() {
    let pair = Pair::of([fixture("v2.redb"), fixture("v2.log")]);
    let store = pair.open();
    assert_eq!(store.pending().unwrap(), 5);
    check_version_2(&store);
    apply(&store, &Op::Accept { session: 2, text: "on".to_owned(), ms: 1 }).unwrap();
    store.fold().unwrap();
    drop(store);
    let store = Pair::of([pair.bytes()[0].clone(), Vec::new()]).open();
    store.delete(&id(2)).unwrap();
    check_version_2(&store);
}

/// What waits in the journal of version 2 is applied again and goes on among records of this version;
/// reading alone changes neither file.
#[test]
fn version_2_is_upgraded_by_the_first_write() {
    let files = [fixture("v2.redb"), fixture("v2.log")];
    let pair = Pair::of(files.clone());
    check_version_2(&pair.open());
    assert!(pair.bytes() == files, "reading wrote");
    let store = pair.open();
    apply(&store, &Op::Accept { session: 2, text: "on".to_owned(), ms: 1 }).unwrap();
    assert_eq!(store.pending().unwrap(), 0);
    apply(&store, &Op::Accept { session: 2, text: "and on".to_owned(), ms: 2 }).unwrap();
    assert_eq!(store.pending().unwrap(), 1);
    let expected = dump(&store).unwrap();
    let again = Pair::of(pair.bytes()).open();
    assert_eq!(dump(&again).unwrap(), expected);
    assert!(again.verify().unwrap().problems.is_empty());
    again.delete(&id(2)).unwrap();
    check_version_2(&again);
}

/// Written anew, records keep the form that they have.
#[test]
fn version_2_is_written_anew_as_it_is() {
    let mut images = crate::rewrite::Images::default();
    (images[0], images[1]) = (fixture("v2.redb"), fixture("v2.log"));
    let disk = crate::rewrite::Disk::of(images);
    let open = || {
        let disk = disk.clone();
        let namespace = crate::model::NAMESPACE;
        Store::on_media(namespace, move |part| Ok(Box::new(disk.part(part).clone()))).unwrap()
    };
    let store = open();
    store.vacuum().unwrap();
    check_version_2(&store);
    drop(store);
    check_version_2(&open());
}

#[test]
fn version_3_is_read_and_written_on() {
    let pair = Pair::of([fixture("v3.redb"), fixture("v3.log")]);
    let store = pair.open();
    assert_eq!(store.pending().unwrap(), 5);
    check_version_2(&store);
    apply(&store, &Op::Accept { session: 2, text: "on".to_owned(), ms: 1 }).unwrap();
    assert_eq!(store.pending().unwrap(), 6);
    store.fold().unwrap();
    drop(store);
    let store = Pair::of([pair.bytes()[0].clone(), Vec::new()]).open();
    assert!(store.verify().unwrap().problems.is_empty());
    store.delete(&id(2)).unwrap();
    check_version_2(&store);
}

/// Everything in the fixtures of versions 2 and 3.
fn check_version_2(store: &Store) {
    let found = dump(store).unwrap();
    let (imported, rest) = found.sessions.into_iter().partition(|session| session.id == "0");
    let (imported, rest): (Vec<_>, Vec<_>) = (imported, rest);
    assert_eq!(Dump { sessions: rest }, history(&said_in_version_2()).pop().unwrap());
    assert_eq!(imported.len(), 1);
    let speakers = store.with_turns(&id(4), 1, |turns| {
        let speakers = turns.iter().map(|turn| turn.speaker.map(str::to_owned));
        let replies = turns.iter().map(|turn| turn.reply.map(|reply| reply.text.to_owned()));
        speakers.zip(replies).collect::<Vec<_>>()
    });
    let (ada, grace) = (Some("Ada".to_owned()), Some("Grace".to_owned()));
    let reply = Some("The assistant's.".to_owned());
    assert_eq!(speakers.unwrap(), [(ada, None), (None, reply), (grace, None)]);
    assert_eq!(store.import_turns(&imports(&id(4))).unwrap().skipped, 4);
    let facts = store.facts(&FactFilter::default()).unwrap().facts;
    let facts: Vec<_> =
        facts.into_iter().map(|fact| (fact.text, fact.valid_to.is_some())).collect();
    assert_eq!(facts, [("I live in Oslo.".to_owned(), true), ("I live in Bergen.".into(), false)]);
}

/// What was said in it, but for the imports.
fn said_in_version_2() -> Vec<Op> {
    let mut ops = workload();
    ops.retain(|op| !matches!(op, Op::Reopen));
    ops.push(Op::Accept { session: 1, text: "into the journal".to_owned(), ms: 5 });
    ops.push(Op::Reply { session: 1, seq: 2, text: "as well".to_owned() });
    ops.push(Op::Title { session: 1, title: "Waiting".to_owned() });
    ops
}

fn imports(session: &garret_core::id::SessionId) -> [ImportedTurn<'_>; 4] {
    let turn = |speaker, text, name| {
        let at = WallTime { unix_ms: 1_683_550_800_000, confidence: Confidence::Good };
        ImportedTurn { session, speaker, text, at, id: Some(name) }
    };
    [
        turn(Speaker::Named("Ada"), "Ada's.", "D1:1"),
        turn(Speaker::User, "The user's.", "D1:2"),
        turn(Speaker::Assistant, "The assistant's.", "D1:3"),
        turn(Speaker::Named("Grace"), "Grace's.", "D1:4"),
    ]
}

/// Wrote the fixture; `tests/fixtures/README.md` says when to run it again: never for a version
/// that was released. Those of version 2 were written by the same steps.
#[test]
#[ignore = "writes a fixture"]
fn write_version_3() {
    let pair = Pair::<RamMedium>::default();
    let store = pair.open();
    let (folded, waiting) = (said_in_version_2().len() - 3, 3);
    let fact = |city: &str, valid_at| {
        let text = format!("I live in {city}.");
        let fact = NewFact {
            text: &text,
            subject: Some("user"),
            predicate: Some("lives_in"),
            object: Some(city),
            valid_at: Some(valid_at),
            ..NewFact::default()
        };
        let at = WallTime { unix_ms: valid_at, confidence: Confidence::Good };
        store.add_fact(&fact, at).unwrap();
    };
    for op in &said_in_version_2()[..folded] {
        apply(&store, op).unwrap();
    }
    store.import_turns(&imports(&id(4))[..3]).unwrap();
    fact("Oslo", 1_767_225_600_000);
    store.fold().unwrap();
    for op in &said_in_version_2()[folded..] {
        apply(&store, op).unwrap();
    }
    store.import_turns(&imports(&id(4))[3..]).unwrap();
    fact("Bergen", 1_767_225_700_000);
    assert_eq!(store.pending().unwrap(), waiting + 2);
    check_version_2(&store);
    let [records, journal] = pair.bytes();
    std::fs::write(path("v3.redb"), records).unwrap();
    std::fs::write(path("v3.log"), journal).unwrap();
}
