//! The file of the text index: whatever it holds, searches find what they would without it.

use garret_core::time::{Confidence, WallTime};
use garret_hal::media::RamMedium;
use garret_storage::search::{Found, Search, Speaker};
use garret_storage::{ImportedTurn, NewFact, Part, Selection, Store, Trace};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::everything::op;
use crate::everything_model::{Model, Op, apply};
use crate::rewrite::{Disk, Images};

pub(crate) const AT: WallTime =
    WallTime { unix_ms: 1_683_550_800_000, confidence: Confidence::Good };

/// What a store finds, asked for many things.
pub(crate) fn answers(store: &Store) -> Vec<Found> {
    let queries = ["garden", "When did the bees swarm?", "what did Ada say in May 2023", "Bob"];
    let find = |query, k, source, replaced| {
        let search = Search { source, replaced, now: Some(AT.unix_ms), ..Search::new(query, k) };
        store.find(&search).unwrap()
    };
    let mut found = Vec::new();
    for query in queries {
        found.push(find(query, 3, Some("ada"), false));
        found.push(find(query, 1_000, None, true));
    }
    found
}

pub(crate) fn index_of(images: &Images) -> Vec<u8> {
    images[place()].clone()
}

fn place() -> usize {
    Part::ALL.iter().position(|part| *part == Part::Index).unwrap()
}

pub(crate) fn with_index(images: &Images, index: Vec<u8>) -> Images {
    let mut images = images.clone();
    images[place()] = index;
    images
}

/// What is found with the index's file as it is; it isn't written to.
pub(crate) fn found_in(images: &Images) -> Vec<Found> {
    let disk = Disk::of(images.clone());
    let store = disk.open();
    let found = answers(&store);
    assert!(disk.images() == *images, "a search wrote");
    drop(store);
    assert!(disk.images() == *images, "a store that was only read wrote");
    found
}

/// What is found by an index that is made anew.
pub(crate) fn found_without(images: &Images) -> Vec<Found> {
    found_in(&with_index(images, Vec::new()))
}

fn check(steps: &[Op]) -> Result<(), TestCaseError> {
    let mut disk = Disk::<RamMedium>::default();
    let mut store = disk.open();
    let mut model = Model::default();
    for op in steps {
        match op {
            Op::Reopen => {
                drop(store);
                store = disk.open();
            }
            Op::Kill => {
                disk = Disk::of(disk.images());
                store = disk.open();
            }
            op => apply(&store, &mut model, op),
        }
        prop_assert_eq!(store.verify().unwrap().problems, []);
        let images = disk.images();
        let expected = found_without(&images);
        prop_assert_eq!(&found_in(&images), &expected, "from the file, after {:?}", op);
        prop_assert_eq!(&answers(&store), &expected, "kept up to date, after {:?}", op);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: crate::cases(12),
        failure_persistence: None,
        ..Default::default()
    })]

    /// Hits, scores and what they are made of are those of an index that was made anew, whether the
    /// index is read from its file or was kept up to date.
    #[test]
    fn an_index_from_its_file_finds_what_one_made_anew_does(
        steps in vec(prop_oneof![3 => op(), 1 => Just(Op::Tend)], 1..30),
    ) {
        check(&steps)?;
    }
}

pub(crate) fn text(number: u64) -> String {
    const WORDS: [&str; 12] = [
        "bees", "garden", "rain", "queen", "honey", "oak", "letter", "train", "Oslo", "winter",
        "swarm", "tea",
    ];
    let word = |at: u64| WORDS[(number.wrapping_mul(2_654_435_761) >> at) as usize % WORDS.len()];
    format!("{} {} in the {} number{number}", word(3), word(9), word(17))
}

/// Says so much, from the turn after the last one on.
pub(crate) fn say(store: &Store, session: &str, numbers: std::ops::Range<u64>) {
    let session = session.parse().unwrap();
    let texts: Vec<String> = numbers.map(text).collect();
    for texts in texts.chunks(500) {
        let turn = |text| ImportedTurn {
            session: &session,
            speaker: Speaker::Named("Ada"),
            text,
            at: AT,
            id: None,
        };
        store.import_turns(&texts.iter().map(|text| turn(text)).collect::<Vec<_>>()).unwrap();
    }
}

fn told(store: &Store, text: &str) {
    store.add_fact(&NewFact { text, ..NewFact::default() }, AT).unwrap();
}

/// A store with some segments, a log and something in the journal.
fn grown() -> Images {
    let disk = Disk::<RamMedium>::default();
    let store = disk.open();
    for (number, count) in [(0, 400), (1, 100), (2, 20)] {
        say(&store, "letters", 1_000 * number..1_000 * number + count);
        told(&store, &format!("Fact {number} is about bees."));
        assert!(store.tend_index(1).unwrap());
    }
    say(&store, "more", 9_000..9_030);
    store.fold().unwrap();
    store.accept(&"more".parse().unwrap(), "A queen in the journal.", AT).unwrap();
    assert_eq!(store.unindexed().unwrap(), 31);
    disk.images()
}

#[test]
fn what_is_closed_is_indexed_and_what_is_opened_reads_little() {
    let disk = Disk::<RamMedium>::default();
    let store = disk.open();
    say(&store, "letters", 0..1_000);
    assert_eq!(store.unindexed().unwrap(), 1_000);
    drop(store);
    let store = disk.open();
    assert_eq!(store.unindexed().unwrap(), 1_000, "so few aren't worth a file");
    say(&store, "letters", 1_000..2_000);
    drop(store);
    let store = disk.open();
    assert_eq!(store.unindexed().unwrap(), 0);
    assert_eq!(store.search("number1999", None, 1).unwrap().hits.len(), 1);
    store.accept(&"letters".parse().unwrap(), "The last one.", AT).unwrap();
    assert_eq!(store.unindexed().unwrap(), 1);
    assert_eq!(store.search("last", None, 1).unwrap().hits.len(), 1);
    let images = disk.images();
    drop(store);
    assert_eq!(index_of(&disk.images()), index_of(&images), "one more isn't worth a segment");
    let store = disk.open();
    assert_eq!(store.unindexed().unwrap(), 1);
    assert_eq!(store.search("last", None, 1).unwrap().hits.len(), 1);
}

/// More units answer equally well than are looked at closely: which of them are, mustn't depend on
/// the order in which they came into the index.
#[test]
fn of_equals_the_same_are_found_however_the_index_came_about() {
    let disk = Disk::<RamMedium>::default();
    let store = disk.open();
    for session in ["zebra", "ant"] {
        let session = session.parse().unwrap();
        let turn = ImportedTurn {
            session: &session,
            speaker: Speaker::User,
            text: "Rain in the garden.",
            at: AT,
            id: None,
        };
        store.import_turns(&[turn; 700]).unwrap();
    }
    store.tend_index(1).unwrap();
    let images = disk.images();
    assert_eq!(found_in(&images), found_without(&images));
}

/// Each text is written a few times, however many there come to be.
#[test]
fn segments_are_few_and_seldom_written_again() {
    let disk = Disk::recording(Images::default());
    let store = disk.open();
    let step = Store::INDEX_TAIL;
    for number in 0..24 {
        say(&store, "letters", step * number..step * (number + 1));
        assert!(store.tend_index(Store::INDEX_TAIL).unwrap());
        assert_eq!(store.unindexed().unwrap(), 0);
    }
    let len = garret_core::medium::Medium::len(disk.part(Part::Index)).unwrap();
    let records = disk.part(Part::Records);
    drop(store);
    let mut written = 0;
    let recording = records.recording();
    for (at, op) in recording.ops().iter().enumerate() {
        if recording.owner(at) == Some(place())
            && let garret_hal::media::Op::Write { bytes, .. } = op
        {
            written += bytes.len() as u64;
        }
    }
    let (units, len) = (24 * step, len as f64);
    eprintln!("{units} texts: {len} bytes, {written} were written");
    assert!((written as f64) < 5.0 * len, "{written} bytes were written for {len}");
}

#[test]
fn no_byte_of_the_file_can_make_a_search_wrong() {
    let images = grown();
    let (index, expected) = (index_of(&images), found_without(&images));
    assert_eq!(found_in(&images), expected);
    let wrong = |index: Vec<u8>, what: &str| {
        assert!(found_in(&with_index(&images, index)) == expected, "{what}");
    };
    for at in (0..index.len()).step_by(index.len() / 60) {
        let mut other = index.clone();
        other[at] ^= 1 << (at % 8);
        wrong(other, &format!("a wrong bit at {at}"));
        wrong(index[..at].to_vec(), &format!("cut to {at}"));
    }
    for at in (0..8_192).step_by(37) {
        let mut other = index.clone();
        other[at] ^= 1 << (at % 8);
        wrong(other, &format!("a wrong bit at {at}"));
    }
    let mut longer = index.clone();
    longer.extend([7; 5_000]);
    wrong(longer, "with more behind it");
    wrong(vec![0; index.len()], "zeros");
    wrong((0..index.len()).map(|at| (at * at % 251) as u8).collect(), "noise");
}

#[test]
fn a_file_of_another_moment_or_store_is_not_used() {
    let disk = Disk::<RamMedium>::default();
    let store = disk.open();
    say(&store, "letters", 0..300);
    store.tend_index(1).unwrap();
    let early = disk.images();
    say(&store, "letters", 300..600);
    store.tend_index(1).unwrap();
    let late = disk.images();
    // Another history with as many writes.
    let other = Disk::of(early.clone());
    let store = other.open();
    say(&store, "letters", 5_000..5_300);
    store.tend_index(1).unwrap();
    let other = other.images();
    for images in [&early, &late, &other] {
        let expected = found_without(images);
        for index in [&early, &late, &other] {
            let mixed = with_index(images, index_of(index));
            assert_eq!(found_in(&mixed), expected);
            let own = index_of(images) == index_of(index);
            let lacking = Disk::of(mixed).open().unindexed().unwrap();
            assert_eq!(lacking == 0, own);
        }
    }
}

/// A file that doesn't count is replaced, and nothing of it stays.
#[test]
fn a_file_that_does_not_count_is_made_anew() {
    let images = grown();
    let len = index_of(&images).len();
    for index in [vec![7; 3 * len], vec![7; 10]] {
        let disk = Disk::of(with_index(&images, index));
        let store = disk.open();
        assert_eq!(store.unindexed().unwrap(), 554);
        assert!(store.tend_index(1).unwrap());
        assert_eq!(store.unindexed().unwrap(), 0);
        assert!(!store.tend_index(1).unwrap(), "there is nothing more to do");
        let images = disk.images();
        assert!(!index_of(&images).windows(8).any(|part| part == [7; 8]));
        assert_eq!(found_in(&images), found_without(&images));
    }
}

#[test]
fn what_is_deleted_or_forgotten_leaves_the_file() {
    let disk = Disk::<RamMedium>::default();
    let store = disk.open();
    say(&store, "letters", 0..50);
    let secret = "secret".parse().unwrap();
    store.accept(&secret, "The word is Nebukadnezar.", AT).unwrap();
    let spare = "spare".parse().unwrap();
    store.accept(&spare, "The other word is Hammurabi.", AT).unwrap();
    store.tend_index(1).unwrap();
    let in_index = |word: &[u8]| {
        let traces = store.verify_erased(word).unwrap();
        traces.iter().any(|trace| matches!(trace, Trace::Bytes { extension: "idx", .. }))
    };
    assert!(in_index(b"nebukadnezar") && in_index(b"hammurabi"));

    store.delete(&spare).unwrap();
    assert!(store.tend_index(10_000).unwrap(), "whatever the number");
    assert!(!in_index(b"hammurabi"), "deleted");
    assert!(!store.tend_index(10_000).unwrap());

    let selection = Selection { pattern: Some("Nebukadnezar"), ..Selection::default() };
    store.erase(&selection, AT, false).unwrap();
    assert_eq!(store.verify_erased(b"nebukadnezar").unwrap(), []);
    assert_eq!(store.search("nebukadnezar", None, 1).unwrap().hits, []);
    store.tend_index(1).unwrap();
    assert_eq!(store.verify_erased(b"nebukadnezar").unwrap(), []);
    let images = disk.images();
    assert_eq!(found_in(&images), found_without(&images));
}

/// Records that were damaged after they were indexed are left out of what is found.
#[test]
fn a_damaged_record_does_not_stop_a_search() {
    let disk = Disk::<RamMedium>::default();
    let store = disk.open();
    let session = "letters".parse().unwrap();
    store.accept(&session, "The first bees swarmed.", AT).unwrap();
    store.accept(&session, "The second bees swarmed.", AT).unwrap();
    store.fold().unwrap();
    store.tend_index(1).unwrap();
    drop(store);
    let mut images = disk.images();
    let at = images[0].windows(10).position(|part| part == b"The second").unwrap();
    images[0][at] ^= 1;
    let store = Disk::of(images).open();
    assert_eq!(store.unindexed().unwrap(), 0);
    let hits = store.search("bees", None, 9).unwrap().hits;
    assert_eq!(hits.iter().map(|hit| &*hit.text).collect::<Vec<_>>(), ["The first bees swarmed."]);
}
