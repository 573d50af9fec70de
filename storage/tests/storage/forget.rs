//! What goes when something is forgotten, and that the rest is as it was.

use std::collections::BTreeSet;

use garret_hal::media::RamMedium;
use garret_storage::search::Speaker;
use garret_storage::{
    Added, ErasedItem, ErasedKind, FactError, FactFilter, FactId, FactKind, ImportedTurn, Link,
    LinkKind, NewFact, Node, Origin, Part, ReadError, Selection, Store, Trace, WriteError,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

use crate::facts_model::{self, MOMENTS, Op};
use crate::facts_operations::op;
use crate::rewrite::{AT, CANARY, Disk, holds_canary, id, read, reply, selection, tell, told};

fn store() -> (Disk<RamMedium>, Store) {
    let disk = Disk::<RamMedium>::default();
    let store = disk.open();
    (disk, store)
}

fn forget(store: &Store, selection: &Selection<'_>) -> Vec<ErasedItem> {
    let forgotten = store.erase(selection, AT, false).unwrap();
    assert!(forgotten.unfinished.is_none());
    assert_eq!(store.verify().unwrap().problems, []);
    forgotten.items
}

fn of_turns<'a>(turns: &'a [(garret_core::id::SessionId, u64)]) -> Selection<'a> {
    Selection { turns, ..Selection::default() }
}

fn ids(items: &[ErasedItem]) -> Vec<&str> {
    items.iter().map(|item| &*item.id).collect()
}

#[test]
fn a_pattern_takes_all_that_has_it_and_all_that_rests_on_that() {
    let disk = Disk::of(told());
    let store = disk.open();
    let before = read(&store);
    let dry = store.erase(&selection(), AT, true).unwrap();
    assert_eq!((read(&store), disk.images() == told()), (before, true));
    assert_eq!((dry.erasure, dry.files), (None, None));
    let items = forget(&store, &selection());
    assert_eq!(items, dry.items);
    let expected = [
        "kitchen",
        "kitchen/2/user",
        "kitchen/2/assistant",
        "kitchen/2",
        "kitchen/3/user",
        "letters/2/user",
        "letters/2",
        "f2",
        "f3",
        "f5",
        "e2",
        "e3",
        "kitchen/s2",
        "kitchen/s3",
        "kitchen/context",
        "kitchen/work",
        "letters/carry",
        "kitchen/2/trace",
    ];
    assert_eq!(ids(&items), expected);
    assert!(items.iter().all(|item| item.bytes > 0));
    assert_eq!(items[0].kind, ErasedKind::Title);
    let erasure = store.erasures().unwrap()[0];
    assert_eq!((erasure.number, erasure.turns, erasure.replies, erasure.facts), (1, 3, 1, 3));
    assert_eq!((erasure.titles, erasure.entities, erasure.links), (1, 2, 1));
    assert_eq!((erasure.summaries, erasure.states, erasure.traces), (2, 3, 1));
    assert_eq!(erasure.bytes, items.iter().map(|item| item.bytes).sum::<u64>());
    assert_eq!(store.verify_erased(CANARY.as_bytes()).unwrap(), []);
    assert!(!holds_canary(&disk.images()));
    assert!(store.search("xylophone", None, 5).unwrap().hits.is_empty());
    // Nothing more to forget: no second line in the ledger.
    assert_eq!(store.erase(&selection(), AT, false).unwrap().erasure, None);
    assert_eq!(store.erasures().unwrap().len(), 1);
}

#[test]
fn a_trace_is_told_wherever_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), "home", |path| {
        Ok(Box::new(garret_hal::media::FileMedium::open(path)?))
    })
    .unwrap();
    tell(&store);
    let next = store.path().unwrap().with_extension("next");
    std::fs::write(&next, [vec![b'.'; 3_000_000], b"a Xylophone-7731".to_vec()].concat()).unwrap();
    let traces = store.verify_erased(CANARY.as_bytes()).unwrap();
    let records: Vec<_> = traces
        .iter()
        .filter_map(|trace| if let Trace::Record { id } = trace { Some(&**id) } else { None })
        .collect();
    let expected = [
        "kitchen",
        "kitchen/2/user",
        "kitchen/3/user",
        "letters/2/user",
        "kitchen/2/assistant",
        "kitchen/2",
        "f2",
        "e3",
        "kitchen/s2",
        "kitchen/2/trace",
        "kitchen/context",
        "kitchen/work",
    ];
    assert_eq!(records, expected);
    let extensions: BTreeSet<_> = traces
        .iter()
        .filter_map(|trace| match trace {
            Trace::Bytes { extension, .. } => Some(*extension),
            _ => None,
        })
        .collect();
    assert_eq!(extensions, BTreeSet::from(["redb", "log", "next"]));
    let in_next = Trace::Bytes { extension: "next", path: Some(next), offset: 3_000_002 };
    assert!(traces.contains(&in_next));
    let pid = std::process::id().to_string();
    let lock = store.verify_erased(pid.as_bytes()).unwrap();
    assert!(lock.iter().any(|trace| matches!(trace, Trace::Bytes { extension: "lock", .. })));
    assert!(matches!(store.verify_erased(b" "), Err(ReadError::BlankPattern)));
}

/// A word that lies across two of the blocks in which files are read.
#[test]
fn a_trace_is_found_at_every_place_of_a_block() {
    for before in (1 << 20) - 16..(1 << 20) + 2 {
        let disk = Disk::of(told());
        let bytes = [vec![0; before], CANARY.as_bytes().to_vec()].concat();
        garret_core::medium::Medium::write_at(disk.part(Part::Index), 0, &bytes).unwrap();
        let traces = disk.open().verify_erased(CANARY.as_bytes()).unwrap();
        let expected = Trace::Bytes { extension: "idx", path: None, offset: before as u64 };
        assert_eq!(traces.iter().filter(|trace| **trace == expected).count(), 1);
    }
}

#[test]
fn a_forgotten_turn_is_counted_but_not_there_and_not_damaged() {
    let (_, store) = store();
    let kitchen = id("kitchen");
    for text in ["One.", "Two.", "Three."] {
        store.accept(&kitchen, text, AT).unwrap();
    }
    reply(&store, "kitchen", 1, "Yes.", "{}");
    let items = forget(&store, &of_turns(&[(kitchen.clone(), 2), (kitchen.clone(), 3)]));
    assert_eq!(ids(&items), ["kitchen/2/user", "kitchen/3/user"]);
    let seqs = |from| {
        store.with_turns(&kitchen, from, |turns| turns.iter().map(|t| t.seq).collect::<Vec<_>>())
    };
    assert_eq!(seqs(1).unwrap(), [1]);
    assert_eq!(seqs(2).unwrap(), [0; 0]);
    assert_eq!(store.damaged_turns(&kitchen).unwrap(), []);
    assert_eq!(store.session(&kitchen).unwrap().unwrap().turns, 3);
    // Nothing more of it is taken in.
    let late = garret_storage::NewReply {
        text: "To two.",
        tokens: &[],
        model_fingerprint: &[0; 32],
        finish: garret_storage::StoredFinish::Stop,
        at: AT,
        receipt: b"",
        trace: &[],
    };
    let refused = store.reply(&kitchen, 3, late).unwrap_err();
    assert!(matches!(refused, WriteError::ForgottenTurn { turn: 3, .. }), "{refused}");
    let origin = Some(Origin { session: &kitchen, turn: 2 });
    let fact = NewFact { text: "It was two.", origin, ..NewFact::default() };
    let refused = store.add_fact(&fact, AT).unwrap_err();
    assert!(matches!(refused, WriteError::ForgottenTurn { turn: 2, .. }), "{refused}");
    assert_eq!(forget(&store, &of_turns(&[(kitchen.clone(), 2)])), []);
    assert_eq!(store.accept(&kitchen, "Four.", AT).unwrap(), 4);
    assert_eq!(seqs(1).unwrap(), [1, 4]);
    store.delete(&kitchen).unwrap();
    store.accept(&kitchen, "Again.", AT).unwrap();
    assert_eq!(seqs(1).unwrap(), [1]);
    assert_eq!(store.verify().unwrap().problems, []);
}

#[test]
fn an_import_does_not_bring_a_forgotten_turn_back() {
    let (disk, store) = store();
    let letters = id("letters");
    let said = |speaker, text, id| {
        let (session, at, id) = (&letters, AT, Some(id));
        ImportedTurn { session, speaker, text, at, id }
    };
    let turns = [
        said(Speaker::Named("Bob"), "The bees are well.", "1:1"),
        said(Speaker::Named("Eve"), CANARY, "1:2"),
    ];
    store.import_turns(&turns).unwrap();
    let items = forget(&store, &of_turns(&[(letters.clone(), 2)]));
    assert_eq!(ids(&items), ["letters/2/user", "letters/2"]);
    let answer = said(Speaker::Assistant, "And that is an answer.", "1:3");
    let imported = store.import_turns(&[turns[0], turns[1], answer]).unwrap();
    assert_eq!((imported.added, imported.skipped), (1, 2));
    assert!(!holds_canary(&disk.images()));
    // The answer isn't that of the forgotten turn.
    let seqs = |turns: &[garret_storage::TurnView<'_>]| {
        turns.iter().map(|turn| (turn.seq, turn.reply.is_some())).collect::<Vec<_>>()
    };
    assert_eq!(store.with_turns(&letters, 1, seqs).unwrap(), [(1, false), (3, false)]);
    assert_eq!(store.verify_erased(b"Eve").unwrap(), []);
    assert_eq!(store.verify().unwrap().problems, []);
}

#[test]
fn a_session_goes_with_its_name_and_the_facts_that_were_said_in_it() {
    let disk = Disk::of(told());
    let store = disk.open();
    let sessions = [id("kitchen")];
    let items = forget(&store, &Selection { sessions: &sessions, ..Selection::default() });
    let expected = [
        "kitchen",
        "kitchen/1/user",
        "kitchen/2/user",
        "kitchen/3/user",
        "kitchen/4/user",
        "kitchen/1/assistant",
        "kitchen/2/assistant",
        "kitchen/1",
        "kitchen/2",
        "f1",
        "f2",
        "f3",
        "f4",
        "e1",
        "e2",
        "kitchen/s1",
        "kitchen/s2",
        "kitchen/s3",
        "kitchen/context",
        "kitchen/work",
        "letters/carry",
        "kitchen/2/trace",
    ];
    assert_eq!(ids(&items), expected);
    let erasure = store.erasures().unwrap()[0];
    assert_eq!((erasure.sessions, erasure.summaries, erasure.states), (1, 3, 3));
    assert_eq!(store.verify_erased(b"kitchen").unwrap(), []);
    assert_eq!(store.verify_erased(b"Oslo").unwrap(), []);
    assert_eq!(store.sessions().unwrap().len(), 1);
}

#[test]
fn words_are_forgotten_in_any_case_and_form() {
    let (_, store) = store();
    for text in ["Die Stra\u{df}e", "DIE STRASSE", "e\u{301}cole", "\u{c9}COLE", "eco le"] {
        store.accept(&id("a"), text, AT).unwrap();
    }
    let by = |pattern| Selection { pattern: Some(pattern), ..Selection::default() };
    assert_eq!(ids(&forget(&store, &by("strasse"))), ["a/1/user", "a/2/user"]);
    assert_eq!(ids(&forget(&store, &by("\u{e9}cole"))), ["a/3/user", "a/4/user"]);
    for pattern in ["stra\u{df}e", "STRASSE", "\u{e9}cole", "E\u{301}COLE"] {
        assert_eq!(store.verify_erased(pattern.as_bytes()).unwrap(), [], "{pattern}");
    }
}

/// A name can't be taken away without another one; whoever asks is told.
#[test]
fn sessions_that_are_named_so_are_told_and_stay() {
    let (_, store) = store();
    store.accept(&id("about-xylophone-7731"), "Nothing.", AT).unwrap();
    let forgotten = store.erase(&selection(), AT, false).unwrap();
    assert_eq!(
        (forgotten.items, forgotten.named),
        (vec![], vec!["about-xylophone-7731".to_owned()])
    );
    store.rename(&id("about-xylophone-7731"), &id("b")).unwrap();
    store.vacuum().unwrap();
    assert_eq!(store.verify_erased(CANARY.as_bytes()).unwrap(), []);
}

#[test]
fn what_is_not_there_cannot_be_forgotten() {
    let disk = Disk::of(told());
    let store = disk.open();
    let (nobody, kitchen) = ([id("nobody")], id("kitchen"));
    let refusals = [
        Selection { sessions: &nobody, ..Selection::default() },
        of_turns(&[(id("nobody"), 1)]),
        of_turns(&[(kitchen.clone(), 5)]),
        of_turns(&[(kitchen, 0)]),
        Selection { facts: &[FactId(9)], ..Selection::default() },
        Selection { pattern: Some(" \u{a0}\n"), ..Selection::default() },
    ]
    .map(|selection| store.erase(&selection, AT, false).unwrap_err());
    assert!(matches!(refusals[0], WriteError::UnknownSession { .. }));
    assert!(matches!(refusals[1], WriteError::UnknownSession { .. }));
    assert!(matches!(refusals[2], WriteError::UnknownTurn { turn: 5, .. }));
    assert!(matches!(refusals[3], WriteError::UnknownTurn { turn: 0, .. }));
    assert!(matches!(refusals[4], WriteError::Fact(FactError::UnknownFact { .. })));
    assert!(matches!(refusals[5], WriteError::BlankPattern));
    assert_eq!(forget(&store, &Selection::default()), []);
    assert!(disk.images() == told());
}

fn lives_in(store: &Store, city: &str, at: i64) -> Added {
    let fact = NewFact {
        text: city,
        subject: Some("Ada"),
        predicate: Some("lives_in"),
        valid_at: Some(at),
        ..NewFact::default()
    };
    store.add_fact(&fact, AT).unwrap()
}

#[test]
fn a_forgotten_fact_leaves_a_gap_and_a_whole_chain() {
    let (_, store) = store();
    let [oslo, bergen, rome] = [("Oslo", 10), ("Bergen", 20), ("Rome", 30)]
        .map(|(city, at)| lives_in(&store, city, at).id);
    forget(&store, &Selection { facts: &[bergen], ..Selection::default() });
    let first = store.fact(oslo).unwrap().unwrap();
    assert_eq!((first.valid_to, first.superseded_by), (Some(20), Some(rome)));
    let chain: Vec<_> = store.history(rome).unwrap().iter().map(|fact| fact.id).collect();
    assert_eq!(chain, [oslo, rome]);
    let true_at = |at| {
        let filter = FactFilter { as_of: Some(at), ..FactFilter::default() };
        store.facts(&filter).unwrap().facts.iter().map(|fact| fact.id).collect::<Vec<_>>()
    };
    assert_eq!([true_at(19), true_at(20), true_at(29)], [vec![oslo], vec![], vec![]]);
    assert_eq!(true_at(30), [rome]);
    forget(&store, &Selection { facts: &[rome], ..Selection::default() });
    let first = store.fact(oslo).unwrap().unwrap();
    assert_eq!((first.valid_to, first.superseded_by, first.latest), (Some(20), None, false));
    // The gap can be filled again.
    let bergen = lives_in(&store, "Bergen", 20);
    assert_eq!((bergen.id.0, true_at(25)), (4, vec![bergen.id]));
    assert_eq!(store.fact(bergen.id).unwrap().unwrap().kind, FactKind::Asserts);
}

#[test]
fn a_retired_duplicate_of_a_forgotten_fact_is_current_again() {
    let (_, store) = store();
    let like = |text| NewFact {
        text,
        subject: Some("Ada"),
        predicate: Some("likes"),
        valid_at: Some(1),
        ..NewFact::default()
    };
    let [tea, leaves] =
        ["tea", "the leaves"].map(|text| store.add_fact(&like(text), AT).unwrap().id);
    store.retire_duplicate(leaves, tea).unwrap();
    forget(&store, &Selection { facts: &[tea], ..Selection::default() });
    assert!(store.fact(leaves).unwrap().unwrap().latest);
}

#[test]
fn whoever_is_still_spoken_of_stays() {
    let (_, store) = store();
    let oslo = lives_in(&store, "Oslo", 1).id;
    let about = |text, subject| NewFact { text, subject: Some(subject), ..NewFact::default() };
    let tea = store.add_fact(&about("Tea is green.", "tea"), AT).unwrap().id;
    let bob = store.add_fact(&about("Bob drinks it.", "Bob"), AT).unwrap().id;
    let entity = store.fact(tea).unwrap().unwrap().subject.unwrap();
    store.link(Node::Fact(bob), LinkKind::Related, Node::Entity(entity)).unwrap();
    let items = forget(&store, &Selection { facts: &[oslo, tea], ..Selection::default() });
    assert_eq!(ids(&items), ["f1", "f2", "e1"]);
    assert!(store.entity(entity).unwrap().is_some());
    let items = forget(&store, &Selection { facts: &[bob], ..Selection::default() });
    assert_eq!(ids(&items), ["f3", "e3"]);
}

/// What the ids that hold at each moment are.
fn truth(store: &Store) -> Vec<BTreeSet<u64>> {
    let true_at = |at| {
        let filter = FactFilter { as_of: Some(at), limit: 1_000, ..FactFilter::default() };
        store.facts(&filter).unwrap().facts.iter().map(|fact| fact.id.0).collect()
    };
    (-1..MOMENTS + 8).map(true_at).collect()
}

fn all_facts(store: &Store) -> Vec<garret_storage::Fact> {
    let filter = FactFilter { limit: 1_000, ..FactFilter::default() };
    store.facts(&filter).unwrap().facts
}

/// The facts that go with those of `gone`, worked out from their links.
fn with_derived(store: &Store, gone: &mut BTreeSet<u64>) {
    loop {
        let more: BTreeSet<u64> = gone
            .iter()
            .flat_map(|id| store.links_of(Node::Fact(FactId(*id))).unwrap())
            .filter_map(|link| match link {
                Link {
                    from: Node::Fact(from),
                    kind: LinkKind::DerivedFrom,
                    to: Node::Fact(to),
                } => gone.contains(&to.0).then_some(from.0),
                _ => None,
            })
            .collect();
        if more.is_subset(gone) {
            return;
        }
        gone.extend(more);
    }
}

fn check(ops: &[Op], picks: &[Index], turn: Option<u8>) -> Result<(), TestCaseError> {
    let (disk, store) = store();
    let mut model = facts_model::Model::default();
    for op in ops.iter().filter(|op| !matches!(op, Op::Fold | Op::Reopen | Op::Kill)) {
        let before = model.clone();
        model.apply(op);
        facts_model::apply(&store, &before, op)?;
    }
    let (facts, before) = (all_facts(&store), truth(&store));
    if facts.is_empty() {
        return Ok(());
    }
    let chosen: Vec<_> = picks.iter().map(|pick| pick.get(&facts).id).collect();
    let mut gone: BTreeSet<u64> = chosen.iter().map(|fact| fact.0).collect();
    let session = turn.map(crate::model::id).filter(|id| store.session(id).unwrap().is_some());
    let turns: Vec<_> = session.into_iter().map(|session| (session, 1)).collect();
    for (session, turn) in &turns {
        gone.extend(store.facts_of_turn(session, *turn).unwrap().iter().map(|fact| fact.0));
    }
    with_derived(&store, &mut gone);

    let selection = Selection { facts: &chosen, turns: &turns, ..Selection::default() };
    let items = store.erase(&selection, AT, false)?.items;
    let told: BTreeSet<_> = items
        .iter()
        .filter(|item| item.kind == ErasedKind::Fact)
        .map(|item| item.id.parse::<FactId>().unwrap().0)
        .collect();
    prop_assert_eq!(&told, &gone);
    prop_assert_eq!(store.verify().unwrap().problems, []);
    let stays = |set: BTreeSet<u64>| set.difference(&gone).copied().collect::<BTreeSet<_>>();
    prop_assert_eq!(truth(&store), before.into_iter().map(stays).collect::<Vec<_>>());
    let heir = |fact: &garret_storage::Fact| {
        let mut next = fact.superseded_by;
        while let Some(id) = next.filter(|id| gone.contains(&id.0)) {
            next = facts.iter().find(|fact| fact.id == id).unwrap().superseded_by;
        }
        next
    };
    let expected: Vec<_> = facts
        .iter()
        .filter(|fact| !gone.contains(&fact.id.0))
        .map(|fact| {
            let superseded_by = heir(fact);
            let latest = fact.valid_to.is_none() && superseded_by.is_none();
            let invalidated_by = fact.invalidated_by.filter(|by| !gone.contains(&by.0));
            let mut fact = fact.clone();
            (fact.superseded_by, fact.latest) = (superseded_by, latest);
            fact.invalidated_by = invalidated_by;
            fact
        })
        .collect();
    prop_assert_eq!(all_facts(&store), &*expected);
    let spoken_of: BTreeSet<_> = expected.iter().filter_map(|fact| fact.subject).collect();
    let entities: BTreeSet<_> = store.entities().unwrap().iter().map(|entity| entity.id).collect();
    prop_assert_eq!(entities, spoken_of);
    drop(store);
    let store = disk.open();
    prop_assert_eq!(all_facts(&store), expected);
    // It goes on.
    lives_in(&store, "Rome", 5);
    prop_assert_eq!(store.verify().unwrap().problems, []);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 48,
        failure_persistence: None,
        ..Default::default()
    })]

    #[test]
    fn what_stays_is_true_when_it_was(
        ops in vec(op(), 30),
        picks in vec(any::<Index>(), 0..4),
        turn in prop::option::of(0..3_u8),
    ) {
        check(&ops, &picks, turn)?;
    }
}
