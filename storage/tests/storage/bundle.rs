//! Backups: whole, of one moment, and no store before they are.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use garret_core::medium::{Medium, MediumError};
use garret_core::time::{Confidence, WallTime};
use garret_hal::media::RamMedium;
use garret_storage::{
    BackupError, Fact, FactFilter, FactId, ImportedTurn, LinkKind, NewFact, NewReply, NewSummary,
    Node, OpenError, Origin, Pin, Selection, StateKind, Store, StoredFinish, SummaryId,
    search::Speaker,
};

use crate::model::{NAMESPACE, Op, Pair, apply, dump, id, open, workload};
use crate::summaries::leaf;

/// A store with something in every table: the conversations of the workload, facts of all kinds
/// about two subjects, links, and facts that were of use.
pub(crate) fn fill(store: &Store) {
    for op in workload().iter().filter(|op| !matches!(op, Op::Reopen)).take(9) {
        apply(store, op).unwrap();
    }
    let at = |ms| WallTime { unix_ms: ms, confidence: Confidence::Good };
    let letters = "letters".parse().unwrap();
    let letter =
        |text, speaker, id| ImportedTurn { session: &letters, speaker, text, at: at(5), id };
    let letters = [
        letter("The bees have swarmed.", Speaker::Named("Ada"), Some("1:1")),
        letter("Where to?", Speaker::Assistant, Some("1:2")),
        letter("Into the pear tree.", Speaker::User, None),
    ];
    store.import_turns(&letters).unwrap();
    let session = id(3);
    let lives = |text, object, valid_at| NewFact {
        text,
        subject: Some("Ada"),
        predicate: Some("lives_in"),
        object: Some(object),
        valid_at: Some(valid_at),
        ..NewFact::default()
    };
    let origin = Some(Origin { session: &session, turn: 1 });
    let first =
        NewFact { origin, quote: Some("I keep bees"), ..lives("Ada lives in Oslo.", "Oslo", 10) };
    let oslo = store.add_fact(&first, at(10)).unwrap().id;
    let bergen = store.add_fact(&lives("Now in Bergen.", "Bergen", 30), at(30)).unwrap().id;
    // Told late, so that a later number was replaced by an earlier one.
    store.add_fact(&lives("In between in Moss.", "Moss", 20), at(31)).unwrap();
    for text in ["Ada likes tea.", "Ada likes bees."] {
        let likes =
            NewFact { text, subject: Some("ada"), predicate: Some("likes"), ..NewFact::default() };
        store.add_fact(&likes, at(40)).unwrap();
    }
    let acme = NewFact {
        text: "Acme makes hives.",
        subject: Some("Acme"),
        subject_type: Some("company"),
        derived_from: &[bergen],
        inferred: true,
        ..NewFact::default()
    };
    let acme = store.add_fact(&acme, at(50)).unwrap().id;
    let note = NewFact { text: "The hives are blue.", ..NewFact::default() };
    let note = store.add_fact(&note, at(60)).unwrap().id;
    store.retract(note, 70).unwrap();
    let green = NewFact { text: "The hives are green.", ..NewFact::default() };
    store.supersede(note, &green, at(80)).unwrap();
    let tea = store.entities().unwrap().first().unwrap().id;
    store.link(Node::Fact(acme), LinkKind::Related, Node::Entity(tea)).unwrap();
    store.touch(&[(oslo, 90), (acme, 91), (oslo, 92)]).unwrap();
    store.pin(bergen, Pin::User).unwrap();
    store.pin(acme, Pin::Auto).unwrap();
    sum_up(store);
}

/// Of one session two leaves, what they come to, and one more; a trace that is text, and one that
/// isn't; states.
fn sum_up(store: &Store) {
    let (session, at) = (id(3), |ms| WallTime { unix_ms: ms, confidence: Confidence::Unsure });
    let reply = NewReply {
        text: "I see.",
        tokens: &[],
        model_fingerprint: &[3; 32],
        finish: StoredFinish::Stop,
        at: at(96),
        receipt: b"",
        trace: b"user: <|im_start|>system",
    };
    assert_eq!(store.accept(&session, "And the queen?", at(95)).unwrap(), 3);
    store.reply(&session, 3, reply).unwrap();
    assert_eq!(store.accept(&session, "And the drones?", at(97)).unwrap(), 4);
    store.reply(&session, 4, NewReply { trace: &[0xff, 0, 0xfe], ..reply }).unwrap();
    let sources = [SummaryId(1), SummaryId(2)];
    let node = NewSummary { depth: 1, sources: &sources, ..leaf(1, 2) };
    let summaries = [leaf(1, 1), leaf(2, 2), node, leaf(4, 4)];
    let ids = store.compact_session(&session, &summaries, Some(b"prefix"), at(98)).unwrap();
    assert_eq!(ids.len(), 4);
    store.set_state(&session, StateKind::Gate, b"calm").unwrap();
}

/// Everything about summaries, and what the model saw.
pub(crate) fn summed_up(store: &Store) -> Vec<String> {
    let mut lines = Vec::new();
    let mut sessions = store.sessions().unwrap();
    sessions.sort_by(|a, b| a.id.as_str().cmp(b.id.as_str()));
    for info in sessions {
        let summaries = store.summaries(&info.id).unwrap();
        lines.extend(summaries.iter().map(|summary| format!("{} {summary:?}", info.id)));
        lines.push(format!("{} up to {}", info.id, store.frontier(&info.id).unwrap()));
        let trace = |turn| store.trace(&info.id, turn).unwrap();
        lines.extend((1..=info.turns).filter_map(trace).map(|trace| format!("{trace:?}")));
    }
    lines
}

/// Forgets a turn of a filled store.
pub(crate) fn forget(store: &Store) {
    let selection = Selection { pattern: Some("pear tree"), ..Selection::default() };
    let at = WallTime { unix_ms: 95, confidence: Confidence::Good };
    assert_eq!(store.erase(&selection, at, false).unwrap().erasure, Some(1));
}

/// Every fact with what belongs to it.
pub(crate) fn facts(
    store: &Store,
) -> Vec<(Fact, Vec<garret_storage::Link>, garret_storage::Usage)> {
    let all = FactFilter { limit: 10_000, ..FactFilter::default() };
    let facts = store.facts(&all).unwrap().facts.into_iter();
    facts
        .map(|fact| {
            let id = fact.id;
            (fact, store.links_of(Node::Fact(id)).unwrap(), store.usage(id).unwrap())
        })
        .collect()
}

#[test]
fn a_backup_is_the_same_store() {
    let pair = Pair::<RamMedium>::default();
    let store = pair.open();
    fill(&store);
    assert!(store.pending().unwrap() > 0, "some of it must be in the journal alone");
    let copy = RamMedium::new();
    let made = store.backup(Box::new(copy.clone())).unwrap();
    assert_eq!(made.bytes, copy.len().unwrap());
    assert!(made.rows > 40);
    let restored = open(&copy);
    assert_eq!(dump(&restored).unwrap(), dump(&store).unwrap());
    assert_eq!(facts(&restored), facts(&store));
    assert_eq!(summed_up(&restored), summed_up(&store));
    assert_eq!(restored.entities().unwrap(), store.entities().unwrap());
    let report = restored.verify().unwrap();
    assert_eq!(report.problems, []);
    assert_eq!(report.checked.pending, 0);
    drop(restored);
    // It goes on from where the store was, alone and beside the journal of a later moment.
    let next = apply(&store, &accept("on")).unwrap();
    let [_, journal] = pair.bytes();
    let journal = RamMedium::from_bytes(journal);
    let beside = Pair { records: RamMedium::from_bytes(copy.snapshot()), journal };
    assert_eq!(dump(&beside.open()).unwrap(), dump(&store).unwrap());
    assert_eq!(apply(&open(&copy), &accept("on")).unwrap(), next);
}

fn accept(text: &str) -> Op {
    Op::Accept { session: 0, text: text.to_owned(), ms: 5 }
}

#[test]
fn a_backup_does_not_go_where_something_is() {
    let store = open(&RamMedium::new());
    apply(&store, &accept("one")).unwrap();
    let other = RamMedium::new();
    apply(&open(&other), &accept("two")).unwrap();
    for there in [other.snapshot(), b"my thesis, the only copy".to_vec(), vec![0; 4_096]] {
        let medium = RamMedium::from_bytes(there.clone());
        let error = store.backup(Box::new(medium.clone())).unwrap_err();
        assert!(matches!(error, BackupError::NotEmpty), "{error}");
        assert!(medium.snapshot() == there);
    }
}

/// A medium that takes so many writes and then no more, as if it were full.
#[derive(Clone)]
struct Small {
    medium: RamMedium,
    writes: Arc<std::sync::atomic::AtomicU32>,
}

impl Medium for Small {
    fn len(&self) -> Result<u64, MediumError> {
        self.medium.len()
    }
    fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<(), MediumError> {
        self.medium.read_at(offset, out)
    }
    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<(), MediumError> {
        let left =
            self.writes.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1));
        left.map_err(|_| MediumError::Full)?;
        self.medium.write_at(offset, bytes)
    }
    fn set_len(&self, len: u64) -> Result<(), MediumError> {
        // So that what was begun stays to be looked at.
        if len == 0 && !self.medium.is_empty()? { Ok(()) } else { self.medium.set_len(len) }
    }
    fn sync(&self) -> Result<(), MediumError> {
        self.medium.sync()
    }
}

#[test]
fn a_backup_cut_short_anywhere_is_no_store_and_can_be_made_again() {
    let store = open(&RamMedium::new());
    fill(&store);
    let mut cut = 0;
    for writes in 0.. {
        let small = Small { medium: RamMedium::new(), writes: Arc::new(writes.into()) };
        match store.backup(Box::new(small.clone())) {
            Err(error) => assert!(matches!(error, BackupError::Full), "{writes}: {error}"),
            Ok(_) => break,
        }
        cut += 1;
        // As good as new: an empty store, and a place for the next try.
        let begun = small.medium.snapshot();
        let looked = open(&RamMedium::from_bytes(begun.clone()));
        assert_eq!(looked.sessions().unwrap(), [], "{writes}");
        let again = RamMedium::from_bytes(begun);
        store.backup(Box::new(again.clone())).unwrap();
        assert_eq!(facts(&open(&again)), facts(&store), "{writes}");
    }
    assert!(cut > 5, "{cut}");
}

/// What is written while the copy is made isn't in it, and isn't held up by it.
#[test]
fn others_write_while_a_backup_is_made() {
    let store = Arc::new(Pair::<RamMedium>::default().open());
    for n in 0..400 {
        apply(&store, &accept(&format!("message {n} {}", "word ".repeat(50)))).unwrap();
    }
    let stop = Arc::new(AtomicBool::new(false));
    let writer = std::thread::spawn({
        let (store, stop) = (store.clone(), stop.clone());
        move || {
            let mut said = 0_u64;
            while !stop.load(Ordering::SeqCst) || said == 0 {
                apply(&store, &accept("meanwhile")).unwrap();
                said += 1;
            }
            said
        }
    });
    for _ in 0..3 {
        let before = store.session(&id(0)).unwrap().unwrap().turns;
        let copy = RamMedium::new();
        store.backup(Box::new(copy.clone())).unwrap();
        let after = store.session(&id(0)).unwrap().unwrap().turns;
        let copy = open(&copy);
        let turns = copy.session(&id(0)).unwrap().unwrap().turns;
        assert!((before..=after).contains(&turns));
        assert_eq!(copy.verify().unwrap().problems, []);
    }
    stop.store(true, Ordering::SeqCst);
    let said = writer.join().unwrap();
    assert_eq!(store.session(&id(0)).unwrap().unwrap().turns, 400 + said);
}

#[test]
fn a_backup_belongs_to_its_namespace() {
    let store = open(&RamMedium::new());
    apply(&store, &accept("one")).unwrap();
    let copy = RamMedium::new();
    store.backup(Box::new(copy.clone())).unwrap();
    let error = Store::on_medium("another", Box::new(copy)).unwrap_err();
    assert!(matches!(&error, OpenError::OtherNamespace { found, .. } if found == NAMESPACE));
}

#[test]
fn stats_count_what_is_there() {
    let pair = Pair::<RamMedium>::default();
    let store = pair.open();
    let empty = store.stats().unwrap();
    assert_eq!((empty.turns, empty.facts.all, empty.total_bytes()), (0, 0, 0));
    fill(&store);
    let stats = store.stats().unwrap();
    let dump = dump(&store).unwrap();
    let turns: Vec<_> = dump.sessions.iter().flat_map(|session| &session.turns).collect();
    assert_eq!(stats.sessions, dump.sessions.len() as u64);
    assert_eq!(stats.turns, turns.len() as u64);
    assert_eq!(stats.replies, turns.iter().filter(|turn| turn.reply.is_some()).count() as u64);
    let facts = facts(&store);
    let count = |of: fn(&Fact) -> bool| facts.iter().filter(|(fact, ..)| of(fact)).count() as u64;
    assert_eq!(stats.facts.all, count(|_| true));
    assert_eq!(stats.facts.latest, count(|fact| fact.latest));
    assert_eq!(stats.facts.superseded, count(|fact| fact.superseded_by.is_some()));
    assert_eq!(
        stats.facts.all,
        stats.facts.latest + stats.facts.superseded + stats.facts.ended + stats.facts.damaged
    );
    assert!(stats.facts.latest > 0 && stats.facts.superseded > 0);
    assert_eq!((stats.entities, stats.links), (2, 2));
    assert_eq!((stats.summaries, stats.traces, stats.pinned), (4, 2, 2));
    assert_eq!(stats.pending, store.pending().unwrap());
    let bytes = pair.bytes().map(|bytes| bytes.len() as u64);
    assert_eq!(stats.bytes.iter().map(|(_, bytes)| *bytes).collect::<Vec<_>>(), bytes);
    assert!(facts.iter().any(|(fact, ..)| fact.id == FactId(1)));
}
