//! The files of a namespace and what is exported of it.

use std::sync::LazyLock;

use garret::embed::{attach, embed_all};
use garret_core::id::SessionId;
use garret_core::time::{Confidence, WallTime};
use garret_hal::kernels;
use garret_hal::media::RamMedium;
use garret_storage::search::Search;
use garret_storage::{FactFilter, Format, NewFact, Part, Store, Taken};
use garret_tests::disk::Disk;
use garret_tests::scripted::ScriptedEmbedder;
use garret_tests::talk::tell;

pub(super) const AT: WallTime =
    WallTime { unix_ms: 1_790_000_000_000, confidence: Confidence::Good };

fn session() -> SessionId {
    "kitchen".parse().unwrap()
}

/// A small namespace with every kind of file: records, vectors, an index, and writes in the journal.
static NAMESPACE: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let disk = Disk::new();
    let store = disk.open();
    let embedder = ScriptedEmbedder::new(1, &[]);
    attach(&store, &embedder, kernels::detect()).unwrap();
    for n in 0..12 {
        tell(&store, &session(), &format!("The lamp of room {n} is green."), "I see.", AT);
    }
    let fact = NewFact {
        text: "I live in Oslo.",
        subject: Some("user"),
        predicate: Some("lives_in"),
        object: Some("Oslo"),
        ..NewFact::default()
    };
    store.add_fact(&fact, AT).unwrap();
    embed_all(&store, &embedder, &mut |_| true).unwrap();
    store.find(&Search::new("lamp", 3)).unwrap();
    store.fold().unwrap();
    store.tend_index(1).unwrap();
    tell(&store, &session(), "What waits in the journal?", "This does.", AT);
    store.add_fact(&NewFact { text: "The hive is blue.", ..NewFact::default() }, AT).unwrap();
    let images = disk.images();
    for part in [Part::Records, Part::Journal, Part::Coarse, Part::Full, Part::Index] {
        let place = Part::ALL.iter().position(|other| *other == part).unwrap();
        assert!(!images[place].is_empty(), "{part:?} is there");
    }
    images
});

/// One file of the namespace, without the zeros at its end.
pub(super) fn file(part: Part) -> Vec<u8> {
    let place = Part::ALL.iter().position(|other| *other == part).unwrap();
    let mut bytes = NAMESPACE[place].clone();
    let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    bytes.truncate(end);
    bytes
}

/// Opens the namespace with `bytes` in place of one of its files, and reads all there is.
pub(super) fn read_with(part: Part, bytes: &[u8]) {
    let mut images = NAMESPACE.clone();
    let place = Part::ALL.iter().position(|other| *other == part).unwrap();
    let image = &mut images[place];
    let whole = image.len();
    image.clear();
    image.extend_from_slice(bytes);
    // What was cut off a seed are zeros.
    image.resize(whole.max(bytes.len()), 0);
    let disk = Disk::of(images);
    if let Ok(store) = disk.try_open() {
        read(&store);
    }
}

fn read(store: &Store) {
    let embedder = ScriptedEmbedder::new(1, &[]);
    // Whatever is refused is refused; what matters is that it comes to an end.
    let _ = attach(store, &embedder, kernels::detect());
    let _ = embed_all(store, &embedder, &mut |_| true);
    let _ = store.sessions();
    let _ = store.with_turns(&session(), 1, |turns| turns.len());
    let _ = store.facts(&FactFilter::default());
    let _ = store.find(&Search::new("lamp oslo", 3));
    let _ = store.verify();
    let _ = store.accept(&session(), "And now?", AT);
    let _ = store.fold();
    let _ = store.tend_index(1);
}

pub(super) fn journal(bytes: &[u8]) {
    read_with(Part::Journal, bytes);
}

pub(super) fn journals() -> Vec<Vec<u8>> {
    vec![file(Part::Journal)]
}

pub(super) fn records(bytes: &[u8]) {
    read_with(Part::Records, bytes);
}

pub(super) fn records_seeds() -> Vec<Vec<u8>> {
    vec![file(Part::Records)]
}

pub(super) fn coarse_vectors(bytes: &[u8]) {
    read_with(Part::Coarse, bytes);
}

pub(super) fn coarse_vectors_seeds() -> Vec<Vec<u8>> {
    vec![file(Part::Coarse), file(Part::Full)]
}

pub(super) fn full_vectors(bytes: &[u8]) {
    read_with(Part::Full, bytes);
}

pub(super) fn full_vectors_seeds() -> Vec<Vec<u8>> {
    vec![file(Part::Full), file(Part::Coarse)]
}

pub(super) fn text_index(bytes: &[u8]) {
    read_with(Part::Index, bytes);
}

pub(super) fn text_indexes() -> Vec<Vec<u8>> {
    vec![file(Part::Index)]
}

/// Imports an export of either form into an empty store.
pub(super) fn bundle(bytes: &[u8]) {
    let store = Store::on_medium("home", Box::new(RamMedium::new())).unwrap();
    if store.import(bytes, Taken::Rename).is_ok() {
        assert!(store.verify().unwrap().is_clean());
    }
}

pub(super) fn bundles() -> Vec<Vec<u8>> {
    let store = Disk::of(NAMESPACE.clone()).open();
    [Format::Bundle, Format::Lines]
        .map(|format| {
            let mut bytes = Vec::new();
            store.export(&mut bytes, format).unwrap();
            bytes
        })
        .into()
}
