//! Vectors of a store: units come from its records, and go with them.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use garret_core::id::SessionId;
use garret_core::medium::{Medium, MediumError};
use garret_core::time::{Confidence, WallTime};
use garret_hal::media::FileMedium;
use garret_storage::vectors::{LEARN_FROM, UnitKey, VectorError};
use garret_storage::{FactSource, NewFact, NewReply, Store, StoredFinish};

use crate::vectors::vector;

const AT: WallTime = WallTime { unix_ms: 1_767_225_600_000, confidence: Confidence::Good };
const DIMS: usize = 40;

fn open(data: &Path) -> Store {
    let file = |path: &Path| -> Result<Box<dyn Medium>, MediumError> {
        Ok(Box::new(FileMedium::open(path)?))
    };
    Store::open(data, "n", file).unwrap()
}

fn id(name: &str) -> SessionId {
    name.parse().unwrap()
}

fn answer(store: &Store, session: &str, turn: u64, text: &str) {
    let reply = NewReply {
        text,
        tokens: &[],
        model_fingerprint: &[0; 32],
        finish: StoredFinish::Stop,
        at: AT,
        receipt: b"",
        trace: &[],
    };
    store.reply(&id(session), turn, reply).unwrap();
}

fn set(store: &Store, fingerprint: u8) {
    let kernels = garret_hal::kernels::detect();
    store.set_embedder([fingerprint; 32], DIMS, kernels, None).unwrap();
}

/// An embedder: the same text has the same vector, other texts have others.
fn embed(text: &str) -> Vec<f32> {
    vector(text.bytes().fold(7, |sum, byte| sum * 31 % 1_000_003 + u64::from(byte)), DIMS)
}

fn embed_all(store: &Store) -> usize {
    let mut count = 0;
    loop {
        let units = store.unembedded(3).unwrap();
        if units.is_empty() {
            return count;
        }
        let made: Vec<_> = units.iter().map(|(key, text)| (*key, embed(text))).collect();
        count += store.add_vectors(&made).unwrap();
    }
}

fn nearest(store: &Store, text: &str) -> Option<UnitKey> {
    let search = |vectors: &garret_storage::vectors::VectorStore| {
        let hits = vectors.search(&embed(text), 1, &|_| true).unwrap();
        hits.first().filter(|hit| hit.cosine > 0.999).map(|hit| hit.key)
    };
    store.with_vectors(search).flatten()
}

fn files(data: &Path) -> BTreeSet<String> {
    let names = std::fs::read_dir(data).unwrap();
    names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn every_text_gets_a_vector_once_and_keeps_it() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let store = open(&data);
    assert_eq!(store.unembedded(9).unwrap(), []);
    assert_eq!(store.add_vectors(&[]), Err(VectorError::NoEmbedder));
    assert!(store.with_vectors(|_| ()).is_none());
    store.accept(&id("a"), "My bees came in May.", AT).unwrap();
    answer(&store, "a", 1, "How many hives?");
    store.accept(&id("a"), " \n", AT).unwrap();
    store.accept(&id("b"), "Where is my hat?", AT).unwrap();
    let fact = NewFact { text: "Ada keeps bees.", source: FactSource::User, ..NewFact::default() };
    let fact = store.add_fact(&fact, AT).unwrap();
    set(&store, 1);
    let texts: Vec<String> =
        store.unembedded(9).unwrap().into_iter().map(|(_, text)| text).collect();
    let expected =
        ["My bees came in May.", "Where is my hat?", "How many hives?", "Ada keeps bees."];
    assert_eq!(texts, expected);
    assert!(!files(&data).contains("n.i8"));
    assert_eq!(embed_all(&store), 4);
    let words = |session, turn| Some(UnitKey::Words { session, turn });
    let check = |store: &Store| {
        assert_eq!(nearest(store, "My bees came in May."), words(1, 1));
        assert_eq!(nearest(store, "Where is my hat?"), words(2, 1));
        let reply = Some(UnitKey::Reply { session: 1, turn: 1 });
        assert_eq!(nearest(store, "How many hives?"), reply);
        let id = fact.id.0;
        assert_eq!(nearest(store, "Ada keeps bees."), Some(UnitKey::Fact { id }));
    };
    check(&store);
    // A name is not what a vector hangs on.
    store.rename(&id("a"), &id("c")).unwrap();
    drop(store);
    let store = open(&data);
    set(&store, 1);
    check(&store);
    assert_eq!(store.unembedded(9).unwrap(), []);
    // What was there before is passed over, and so is what never was.
    let again = [(UnitKey::Words { session: 2, turn: 1 }, embed("other"))];
    assert_eq!(store.add_vectors(&again), Ok(0));
    let never = [(UnitKey::Words { session: 2, turn: 9 }, embed("other"))];
    assert_eq!(store.add_vectors(&never), Ok(0));
    check(&store);
}

/// open-webui#28316: after a change of embedder memory was unusable.
#[test]
fn another_embedder_finds_what_it_made_and_the_rest_as_it_comes() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let store = open(&data);
    set(&store, 1);
    for text in ["one", "two", "three"] {
        store.accept(&id("a"), text, AT).unwrap();
    }
    assert_eq!(embed_all(&store), 3);
    set(&store, 2);
    assert_eq!(nearest(&store, "two"), None);
    let first = store.unembedded(1).unwrap();
    assert_eq!(first[0].1, "one");
    store.add_vectors(&[(first[0].0, embed("one"))]).unwrap();
    assert!(nearest(&store, "one").is_some());
    assert_eq!(nearest(&store, "two"), None);
    drop(store);
    // Killed in the midst of it: it goes on from there.
    let store = open(&data);
    set(&store, 2);
    assert!(nearest(&store, "one").is_some());
    assert_eq!(embed_all(&store), 2);
    assert!(nearest(&store, "two").is_some());
}

fn holds(path: &Path, text: &str) -> bool {
    let length = embed(text).iter().map(|x| f64::from(x * x)).sum::<f64>().sqrt();
    // The signs and sizes of four halves in a row are enough to know a vector by.
    let first: Vec<f64> = embed(text).iter().take(4).map(|x| f64::from(*x) / length).collect();
    let bytes = std::fs::read(path).unwrap();
    bytes.windows(8).step_by(2).any(|window| {
        let halves = window.as_chunks::<2>().0.iter().map(|half| u16::from_le_bytes(*half));
        halves.zip(&first).all(|(bits, x)| (widen(bits) - x).abs() < 2e-3)
    })
}

fn widen(bits: u16) -> f64 {
    let sign = if bits >> 15 == 1 { -1.0 } else { 1.0 };
    let (exponent, mantissa) = (i32::from((bits >> 10) & 31), f64::from(bits & 1_023));
    sign * match exponent {
        0 => mantissa * 2_f64.powi(-24),
        _ => (1.0 + mantissa / 1_024.0) * 2_f64.powi(exponent - 15),
    }
}

/// Also when the program that deletes has no embedder, or another one.
#[test]
fn a_deleted_session_leaves_no_vector() {
    for embedder in [Some(1), Some(2), None] {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().join("data");
        let store = open(&data);
        set(&store, 1);
        store.accept(&id("kept"), "The hat is green.", AT).unwrap();
        store.accept(&id("gone"), "The safe is behind it.", AT).unwrap();
        answer(&store, "gone", 1, "I will not tell.");
        assert_eq!(embed_all(&store), 3);
        drop(store);
        let file = data.join("n.f16");
        assert!(holds(&file, "The safe is behind it.") && holds(&file, "I will not tell."));
        let store = open(&data);
        if let Some(embedder) = embedder {
            set(&store, embedder);
        }
        store.delete(&id("gone")).unwrap();
        assert!(!holds(&file, "The safe is behind it.") && !holds(&file, "I will not tell."));
        assert!(holds(&file, "The hat is green."));
        assert!(store.delete(&id("gone")).is_err());
        set(&store, 1);
        assert!(nearest(&store, "The hat is green.").is_some());
        assert_eq!(nearest(&store, "The safe is behind it."), None);
    }
}

#[test]
fn deleting_makes_no_file() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let store = open(&data);
    store.accept(&id("a"), "one", AT).unwrap();
    store.delete(&id("a")).unwrap();
    set(&store, 1);
    assert_eq!(store.tend_vectors(), Ok(false));
    let found = files(&data);
    assert!(!found.contains("n.i8") && !found.contains("n.f16"), "{found:?}");
}

/// Idle work learns a rotation while somebody searches, and both end well.
#[test]
fn a_rotation_is_learned_beside_searches() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let store = Arc::new(open(&data));
    let kernels = garret_hal::kernels::detect();
    store.set_embedder([1; 32], 200, kernels, None).unwrap();
    let count = *LEARN_FROM.start() as u64;
    let mut units = Vec::new();
    for turn in 1..=count {
        store.accept(&id("a"), "text", AT).unwrap();
        units.push((UnitKey::Words { session: 1, turn }, vector(turn, 200)));
    }
    assert_eq!(store.add_vectors(&units), Ok(units.len()));
    let learner = std::thread::spawn({
        let store = store.clone();
        move || store.tend_vectors()
    });
    while !learner.is_finished() {
        for (key, vector) in units.iter().step_by(97) {
            let hits = store.with_vectors(|all| all.search(vector, 1, &|_| true)).unwrap().unwrap();
            assert_eq!(hits[0].key, *key);
        }
    }
    assert_eq!(learner.join().unwrap(), Ok(true));
    assert_eq!(store.with_vectors(|all| all.damaged()), Some(Ok(Vec::new())));
    assert_eq!(store.tend_vectors(), Ok(false));
}

#[test]
fn vectors_are_counted_and_checked_against_records() {
    let data = tempfile::tempdir().unwrap();
    let store = open(data.path());
    for text in ["The bees have swarmed.", "Where to?", "Into the pear tree."] {
        store.accept(&id("garden"), text, AT).unwrap();
    }
    answer(&store, "garden", 1, "Oh.");
    store.add_fact(&NewFact { text: "Ada keeps bees.", ..NewFact::default() }, AT).unwrap();
    assert_eq!((store.stats().unwrap().vectors, store.stats().unwrap().embedder), (0, None));
    set(&store, 7);
    let made = embed_all(&store) as u64;
    let stats = store.stats().unwrap();
    assert_eq!((made, stats.vectors, stats.embedder), (5, 5, Some([7; 32])));
    let report = store.verify().unwrap();
    assert_eq!((report.checked.vectors, &*report.problems), (5, &[][..]));

    let records = store.path().unwrap().to_owned();
    let whole = records.with_extension("f16");
    let mut bytes = std::fs::read(&whole).unwrap();
    let end = bytes.len();
    bytes[end - 3] ^= 0x10;
    std::fs::write(&whole, &bytes).unwrap();
    let problems = store.verify().unwrap().problems;
    assert!(problems.iter().all(|problem| problem.what == "vector"), "{problems:?}");
    assert!(problems.len() == 1 && problems[0].advice.contains("made again"), "{problems:?}");
    bytes[end - 3] ^= 0x10;
    std::fs::write(&whole, &bytes).unwrap();

    // Records of another moment, without the last of them: vectors that belong to nothing.
    let image = garret_hal::media::RamMedium::new();
    store.backup(Box::new(image.clone())).unwrap();
    store.accept(&id("garden"), "It rains.", AT).unwrap();
    assert_eq!(embed_all(&store), 1);
    drop(store);
    std::fs::remove_file(records.with_extension("log")).unwrap();
    std::fs::write(&records, image.snapshot()).unwrap();
    let store = open(data.path());
    set(&store, 7);
    let problems = store.verify().unwrap().problems;
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert_eq!(problems[0].key, "turn 4 of session number 1");
}
