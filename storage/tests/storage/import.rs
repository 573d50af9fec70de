//! Conversations that were held elsewhere, taken in many turns at a time.

use garret_core::id::SessionId;
use garret_core::time::{Confidence, WallTime};
use garret_hal::media::{Cut, Faults, FaultyMedium, Op as MediumOp, RamMedium};
use garret_storage::search::Speaker;
use garret_storage::{Imported, ImportedTurn, MAX_BATCH_BYTES, Store, WriteError};

use crate::model::{Pair, id};

type Ram = Pair<RamMedium>;

/// What a session shows: of each turn the speaker, the words and the reply.
type Shown = Vec<(Option<String>, String, Option<String>)>;

fn shown(store: &Store, session: &SessionId) -> Shown {
    let owned = |text: &str| text.to_owned();
    store
        .with_turns(session, 1, |turns| {
            let reply = |turn: &garret_storage::TurnView<'_>| turn.reply.map(|r| owned(r.text));
            turns.iter().map(|t| (t.speaker.map(owned), owned(t.user), reply(t))).collect()
        })
        .unwrap()
}

fn turn<'a>(session: &'a SessionId, speaker: Speaker<'a>, text: &'a str) -> ImportedTurn<'a> {
    let at = WallTime { unix_ms: 1_683_550_800_000, confidence: Confidence::Good };
    ImportedTurn { session, speaker, text, at, id: Some(text) }
}

fn counts(imported: Imported) -> (usize, usize) {
    (imported.added, imported.skipped)
}

const ADA: Speaker<'_> = Speaker::Named("Ada");

#[test]
fn each_utterance_goes_where_it_belongs() {
    let pair = Ram::default();
    let store = pair.open();
    let (a, b) = (id(0), id(1));
    let turns = [
        turn(&a, Speaker::Assistant, "Welcome."),
        turn(&a, Speaker::Assistant, "Anybody there?"),
        turn(&b, ADA, "Another conversation"),
        turn(&a, Speaker::User, "Yes."),
        turn(&a, Speaker::Assistant, "Good."),
        turn(&a, Speaker::Named("assistant"), "Tea?"),
        turn(&a, ADA, "Please."),
        turn(&a, Speaker::Named("user"), "Me too."),
        turn(&b, Speaker::Assistant, "with a reply"),
        turn(&a, Speaker::Named(""), ""),
    ];
    assert_eq!(counts(store.import_turns(&turns).unwrap()), (10, 0));
    let said = |speaker: Option<&str>, text: &str, reply: Option<&str>| {
        (speaker.map(str::to_owned), text.to_owned(), reply.map(str::to_owned))
    };
    let of_a = [
        said(Some("assistant"), "Welcome.", None),
        said(Some("assistant"), "Anybody there?", None),
        said(None, "Yes.", Some("Good.")),
        said(Some("assistant"), "Tea?", None),
        said(Some("Ada"), "Please.", None),
        said(None, "Me too.", None),
        said(Some(""), "", None),
    ];
    let of_b = [said(Some("Ada"), "Another conversation", Some("with a reply"))];
    for _ in 0..2 {
        let store = Ram::of(pair.bytes()).open();
        assert_eq!((shown(&store, &a), shown(&store, &b)), (of_a.to_vec(), of_b.to_vec()));
        assert_eq!(store.receipt(&b, 1).unwrap(), Some(Vec::new()));
        assert_eq!(store.latest_session().unwrap().unwrap().id, a);
    }
    // A live conversation goes on from there.
    assert_eq!(store.accept(&b, "and goes on", turns[0].at).unwrap(), 2);
    assert_eq!(shown(&store, &b)[1], said(None, "and goes on", None));
}

#[test]
fn what_is_there_already_is_skipped() {
    let pair = Ram::default();
    let (a, b) = (id(0), id(1));
    let first = [turn(&a, ADA, "one"), turn(&a, Speaker::Assistant, "two"), turn(&b, ADA, "one")];
    let store = pair.open();
    assert_eq!(counts(store.import_turns(&first[..1]).unwrap()), (1, 0));
    assert_eq!(counts(store.import_turns(&first).unwrap()), (2, 1));
    drop(store);
    let store = pair.open();
    assert_eq!(counts(store.import_turns(&first).unwrap()), (0, 3));
    assert_eq!(counts(store.import_turns(&[first[0], first[0]]).unwrap()), (0, 2));
    let before = pair.bytes();
    assert_eq!(counts(store.import_turns(&first).unwrap()), (0, 3));
    assert!(pair.bytes() == before, "nothing new was written");
    let twice = turn(&a, ADA, "twice in one batch");
    assert_eq!(counts(store.import_turns(&[twice, twice]).unwrap()), (1, 1));
    let nameless = ImportedTurn { id: None, ..first[0] };
    assert_eq!(counts(store.import_turns(&[nameless, nameless]).unwrap()), (2, 0));
    assert_eq!(shown(&store, &a).len(), 4);
    // Under another name it is the same session; deleted, it can be imported again.
    let renamed = id(2);
    store.rename(&a, &renamed).unwrap();
    assert_eq!(counts(store.import_turns(&[turn(&renamed, ADA, "one")]).unwrap()), (0, 1));
    store.delete(&renamed).unwrap();
    assert_eq!(counts(store.import_turns(&first).unwrap()), (2, 1));
}

#[test]
fn a_deleted_session_takes_its_speakers_along() {
    let pair = Ram::default();
    let store = pair.open();
    let a = id(0);
    store.import_turns(&[turn(&a, Speaker::Named("Grace Hopper"), "nanoseconds")]).unwrap();
    store.delete(&a).unwrap();
    store.import_turns(&[turn(&a, Speaker::User, "anew")]).unwrap();
    assert_eq!(shown(&store, &a), [(None, "anew".to_owned(), None)]);
    let found = store.search("Grace Hopper nanoseconds", None, 5).unwrap();
    assert_eq!(found.hits.len(), 0);
}

/// A name is part of what can be found, before and after the store is opened again.
#[test]
fn who_spoke_can_be_searched() {
    let pair = Ram::default();
    let store = pair.open();
    let a = id(0);
    assert_eq!(store.search("bees", None, 5).unwrap().searched, 0);
    let batch = [
        turn(&a, Speaker::Named("Ada"), "The bees have swarmed."),
        turn(&a, Speaker::Named("Grace"), "The bees are fine."),
        turn(&a, Speaker::Assistant, "Good to hear."),
    ];
    store.import_turns(&batch).unwrap();
    for store in [store, Ram::of(pair.bytes()).open()] {
        for (name, seq) in [("Ada", 1), ("Grace", 2)] {
            let found = store.search(&format!("{name} bees"), None, 5).unwrap();
            assert_eq!((found.hits[0].turn, found.searched), (Some(seq), 3), "{name}");
        }
    }
}

#[test]
fn too_much_is_refused_before_anything_is_written() {
    let pair = Ram::default();
    let store = pair.open();
    let a = id(0);
    let long = "x".repeat(garret_storage::MAX_BYTES);
    let many: Vec<_> = (0..5).map(|_| turn(&a, ADA, &long)).collect();
    assert!(many.len() * long.len() > MAX_BATCH_BYTES);
    let named = "n".repeat(1_025);
    let longer = format!("{long}x");
    for batch in [
        many,
        vec![turn(&a, Speaker::Named(&named), "x")],
        vec![turn(&a, ADA, "fine"), turn(&a, ADA, &longer)],
    ] {
        let error = store.import_turns(&batch).unwrap_err();
        assert!(matches!(error, WriteError::TooLarge { .. }), "{error}");
    }
    assert_eq!(counts(store.import_turns(&[]).unwrap()), (0, 0));
    assert_eq!(pair.bytes(), [Vec::<u8>::new(), Vec::new()]);
}

/// Texts of a batch of `turns`, so long that a batch goes through the journal or past it.
fn texts(turns: usize, len: usize) -> Vec<String> {
    (0..turns).map(|number| format!("{number} {}", "bee".repeat(len / 3))).collect()
}

/// An import that is killed anywhere is run again from its beginning, and each of its turns is
/// there once.
#[test]
fn an_import_cut_anywhere_can_be_run_again() {
    let session = id(0);
    let small = texts(16, 60);
    let large = texts(40, 2_000);
    let end = ["end".to_owned()];
    let batches: Vec<Vec<_>> = [&small[..8], &small[8..], &large[..], &end]
        .iter()
        .map(|batch| batch.iter().map(|text| turn(&session, ADA, text)).collect())
        .collect();
    let run = |store: &Store| -> Vec<Imported> {
        batches.iter().map(|batch| store.import_turns(batch).unwrap()).collect()
    };
    let records = FaultyMedium::new(Faults::default());
    let pair = Pair { journal: records.beside(Vec::new()), records };
    let store = pair.open();
    let mut acknowledged = vec![0];
    for batch in &batches {
        store.import_turns(batch).unwrap();
        acknowledged.push(usize::try_from(pair.records.ops()).unwrap());
    }
    let expected = shown(&store, &session);
    assert_eq!(expected.len(), 57);
    let recording = pair.records.recording();
    let mut partly = 0;
    for (ops, op) in recording.ops().iter().enumerate() {
        let torn = if let MediumOp::Write { bytes, .. } = op { bytes.len() / 2 } else { 0 };
        for (torn, seed) in [(0, 0), (torn, 1), (torn, 2 + ops as u64)] {
            let cut = Cut { ops, torn };
            let images = recording.images_after_cut(cut, seed).try_into().unwrap();
            let store = Ram::of(images).open();
            let again = run(&store);
            let done = acknowledged.iter().rposition(|end| *end <= ops).unwrap();
            for (batch, imported) in batches.iter().zip(&again).take(done) {
                assert_eq!(counts(*imported), (0, batch.len()), "{cut:?}");
            }
            assert!(again.iter().all(|of| of.added == 0 || of.skipped == 0), "{cut:?}: halved");
            partly += usize::from(again[0].added == 0 && again[3].added == 1);
            assert_eq!(shown(&store, &session), expected, "{cut:?}");
        }
    }
    assert!(partly > 20, "{partly}");
}

/// Somebody else's words must not pass for the user's.
#[test]
fn a_turn_whose_speaker_is_damaged_is_left_out() {
    let pair = Ram::default();
    let store = pair.open();
    let a = id(0);
    store
        .import_turns(&[turn(&a, Speaker::Named("Mallory"), "I owe you"), turn(&a, ADA, "no")])
        .unwrap();
    store.fold().unwrap();
    let [mut records, _] = pair.bytes();
    let mut spoilt = 0;
    while let Some(at) = records.windows(7).position(|bytes| bytes == b"Mallory") {
        records[at] = b'm';
        spoilt += 1;
    }
    assert!(spoilt > 0);
    let store = Ram::of([records, Vec::new()]).open();
    assert_eq!(shown(&store, &a), [(Some("Ada".to_owned()), "no".to_owned(), None)]);
    let damaged = store.damaged_turns(&a).unwrap();
    assert_eq!((damaged.len(), damaged[0].seq, damaged[0].what), (1, 1, "speaker record"));
    assert_eq!(store.search("owe", None, 5).unwrap().hits.len(), 0);
}
