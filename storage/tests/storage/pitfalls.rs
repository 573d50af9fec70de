//! What searches of a memory are known to get wrong, one test each. What is about facts alone is in
//! `facts`, and what is about moments and ranking in `search_facts`.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use garret_core::medium::{Medium, MediumError};
use garret_core::time::{Confidence, WallTime};
use garret_hal::media::{FileMedium, RamMedium};
use garret_storage::search::{Found, Kind, Search};
use garret_storage::{FactFilter, FactKind, NewFact, Part, Store, WriteError};

use crate::model::open;
use crate::rewrite::{CANARY, Disk, id, read, selection, tell};

const MAY_8: i64 = 1_683_554_160_000;
const DAY: i64 = 86_400_000;

fn at(unix_ms: i64) -> WallTime {
    WallTime { unix_ms, confidence: Confidence::Good }
}

fn files(directory: &Path, namespace: &str) -> Store {
    Store::open(directory, namespace, |path| Ok(Box::new(FileMedium::open(path)?))).unwrap()
}

fn say(store: &Store, text: &str) {
    store.accept(&id("a"), text, at(MAY_8)).unwrap();
}

fn note(store: &Store, text: &str, unix_ms: i64) -> String {
    let fact = NewFact { text, ..NewFact::default() };
    store.add_fact(&fact, at(unix_ms)).unwrap().id.to_string()
}

fn find(store: &Store, query: &str, k: usize) -> Found {
    store.find(&Search { now: Some(MAY_8 + DAY), ..Search::new(query, k) }).unwrap()
}

fn texts(found: &Found) -> Vec<&str> {
    found.hits.iter().map(|hit| &*hit.text).collect()
}

/// Names that are cleaned of odd signs meet: `a/b` and `a_b`, or any two Chinese names of one length.
/// Then a search finds what others were told.
#[test]
fn no_namespace_finds_what_another_was_told() {
    let directory = tempfile::tempdir().unwrap();
    let names = ["a/b", "a_b", "\u{65e5}\u{672c}", "\u{4e2d}\u{56fd}", "A_B", "a%2fb", "__", ""];
    for (number, name) in names.iter().enumerate() {
        let store = files(directory.path(), name);
        say(&store, &format!("The safe of number {number} is blue."));
        note(&store, &format!("Number {number} has a safe."), MAY_8);
    }
    for (number, name) in names.iter().enumerate() {
        let found = find(&files(directory.path(), name), "Whose safe is blue?", 100);
        assert_eq!(found.hits.len(), 2, "{name}");
        assert!(found.hits.iter().all(|hit| hit.text.contains(&format!("umber {number} "))));
    }
}

/// Memory that may not be written.
#[derive(Debug)]
struct ReadOnly {
    bytes: RamMedium,
    tried: Arc<AtomicU64>,
}

impl ReadOnly {
    fn refuse(&self) -> Result<(), MediumError> {
        self.tried.fetch_add(1, Ordering::Relaxed);
        Err(MediumError::Denied)
    }
}

impl Medium for ReadOnly {
    fn len(&self) -> Result<u64, MediumError> {
        self.bytes.len()
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<(), MediumError> {
        self.bytes.read_at(offset, out)
    }

    fn write_at(&self, _: u64, _: &[u8]) -> Result<(), MediumError> {
        self.refuse()
    }

    fn set_len(&self, _: u64) -> Result<(), MediumError> {
        self.refuse()
    }

    fn sync(&self) -> Result<(), MediumError> {
        self.refuse()
    }
}

/// A search that counts its hits as it goes writes, even about the past, and fails on a read-only
/// file.
#[test]
fn a_search_writes_nothing_and_needs_not_to_be_able_to() {
    let disk = Disk::<RamMedium>::default();
    let store = disk.open();
    tell(&store);
    // The journal of a store that was never closed is among them.
    let (images, tried) = (disk.images(), Arc::new(AtomicU64::new(0)));
    let count = tried.clone();
    let copy = Store::on_media("home", move |part| {
        let place = Part::ALL.iter().position(|other| *other == part).unwrap();
        let bytes = RamMedium::from_bytes(images[place].clone());
        Ok(Box::new(ReadOnly { bytes, tried: count.clone() }))
    })
    .unwrap();
    let searched = |store: &Store| {
        let now = Some(MAY_8 + DAY);
        let search = Search { now, ..Search::new("Where does Ada live?", 10) };
        let then = Search { as_of: Some(1_500), ..search };
        [store.find(&search).unwrap(), store.find(&then).unwrap()]
    };
    assert_eq!(searched(&copy), searched(&store));
    let [now, then] = searched(&copy);
    assert!(texts(&now).contains(&"Ada lives in Bergen."), "{now:?}");
    assert_eq!(texts(&then), ["Ada lives in Oslo."]);
    assert_eq!(tried.load(Ordering::Relaxed), 0);
    assert_eq!(read(&copy), read(&store), "nor is there a trace of it in the records");
    let denied = copy.accept(&id("a"), "no", at(0));
    assert!(matches!(denied, Err(WriteError::Medium(MediumError::Denied))), "it is read-only");
}

/// It fails as well where a writer is busy for long.
#[test]
fn a_search_works_while_others_write() {
    let directory = tempfile::tempdir().unwrap();
    let store = files(directory.path(), "home");
    say(&store, "The bees swarmed.");
    let writing = std::sync::atomic::AtomicBool::new(true);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut written = 0;
            while writing.load(Ordering::Relaxed) || written == 0 {
                note(&store, &format!("Number {written} is here."), MAY_8);
                written += 1;
            }
            written
        });
        for _ in 0..50 {
            assert_eq!(texts(&find(&store, "bees", 3)), ["The bees swarmed."]);
        }
        writing.store(false, Ordering::Relaxed);
        let written = writer.join().unwrap();
        let searched = find(&store, "number", 1).searched;
        assert_eq!(searched, written + 1);
    });
}

/// Where the best of whatever is found counts as 1, nonsense finds as much as is asked for.
#[test]
fn nonsense_finds_nothing_and_scores_tell_how_well_it_answers() {
    let store = open(&RamMedium::new());
    for number in 0..300 {
        say(&store, &format!("The hive by the shed was fine in row {number}."));
    }
    say(&store, "The red hive swarmed into the old oak.");
    note(&store, "The oak is old.", MAY_8);
    for nonsense in ["zxqv wlkj", "qwertz uiop asdf", "\u{871c}\u{8702}", "the of and"] {
        assert!(find(&store, nonsense, 5).hits.is_empty(), "{nonsense}");
    }
    let best = |query| {
        let found = find(&store, query, 3);
        (found.hits[0].score, found.hits[0].relevance, found.hits[0].text.clone())
    };
    let (well, likely, text) = best("Which red hive swarmed into the old oak?");
    let (badly, unlikely, _) = best("Was that old mill sold?");
    assert_eq!(text, "The red hive swarmed into the old oak.");
    assert!(well > badly && likely > unlikely, "{well} {badly}");
    assert!((0.0..1.0).contains(&unlikely) && (0.0..1.0).contains(&likely));
}

/// What is deleted can stay word for word in lists of proposals and events.
#[test]
fn what_is_forgotten_is_in_no_file_of_the_directory() {
    let directory = tempfile::tempdir().unwrap();
    let holds = || -> Vec<String> {
        let files = std::fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().path());
        let holds = |path: &std::path::PathBuf| {
            let bytes = std::fs::read(path).unwrap().to_ascii_lowercase();
            bytes.windows(CANARY.len()).any(|window| window == CANARY.as_bytes())
        };
        files.filter(holds).map(|path| path.display().to_string()).collect()
    };
    let store = files(directory.path(), "home");
    tell(&store);
    assert!(!find(&store, CANARY, 5).hits.is_empty());
    assert!(!holds().is_empty());
    store.erase(&selection(), at(MAY_8), false).unwrap();
    assert_eq!(holds(), [""; 0]);
    assert!(find(&store, CANARY, 5).hits.is_empty());
    drop(store);
    assert_eq!(holds(), [""; 0]);
    assert!(find(&files(directory.path(), "home"), CANARY, 5).hits.is_empty());
}

/// By a cursor that goes by the clock, what was made in one millisecond, or after the clock was put
/// back, is passed over.
#[test]
fn nothing_is_passed_over_whatever_the_clock_says() {
    let store = open(&RamMedium::new());
    let mut cursor = None;
    for (number, unix_ms) in
        [MAY_8, MAY_8, MAY_8, MAY_8 - DAY, MAY_8 - DAY, 0, -5].iter().enumerate()
    {
        let word = ["ant", "bee", "cow", "dog", "eel", "fox", "gnu"][number];
        let fact = note(&store, &format!("There is a {word}."), *unix_ms);
        store.accept(&id("a"), &format!("I saw a {word}."), at(*unix_ms)).unwrap();
        let mut found: Vec<_> = find(&store, word, 5).hits.into_iter().map(|hit| hit.id).collect();
        found.sort_unstable();
        assert_eq!(found, [format!("a/{}/user", number + 1), fact.clone()]);
        let new = store.facts(&FactFilter { after: cursor, ..FactFilter::default() }).unwrap();
        assert_eq!(new.facts.iter().map(|new| new.id.to_string()).collect::<Vec<_>>(), [fact]);
        cursor = new.facts.last().map(|fact| fact.id);
    }
}

/// A mere search of a namespace that isn't there can leave a file behind.
#[test]
fn a_search_of_nothing_leaves_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let store = files(directory.path(), "home");
    assert_eq!((find(&store, "bees", 5).hits.len(), find(&store, "bees", 5).searched), (0, 0));
    drop(store);
    let left = std::fs::read_dir(directory.path()).unwrap().map(|entry| {
        let entry = entry.unwrap();
        (entry.file_name().into_string().unwrap(), entry.metadata().unwrap().len())
    });
    let left: Vec<_> = left.filter(|(name, len)| *len > 0 && !name.ends_with(".lock")).collect();
    assert_eq!(left, []);
    assert_eq!(garret_storage::namespaces(directory.path()).unwrap(), [""; 0]);
}

/// Where facts are compared by their beginnings, the second of two takes the place of the first.
#[test]
fn facts_that_begin_alike_both_stay() {
    let store = open(&RamMedium::new());
    let start = "After a long talk in the big kitchen, the whole team decided to use ";
    assert!(start.len() > 60);
    let subject = |text| NewFact { text, subject: Some("the team"), ..NewFact::default() };
    let (sqlite, redb) = (format!("{start}SQLite."), format!("{start}redb."));
    for text in [&sqlite, &redb] {
        store.add_fact(&subject(text), at(MAY_8)).unwrap();
        note(&store, &format!("{text} So it was."), MAY_8);
    }
    let latest = FactFilter { latest: true, ..FactFilter::default() };
    assert_eq!(store.facts(&latest).unwrap().facts.len(), 4);
    for (word, text) in [("SQLite", &sqlite), ("redb", &redb)] {
        let found = find(&store, word, 10);
        let mut texts = texts(&found);
        texts.sort_unstable();
        assert_eq!(texts, [text.clone(), format!("{text} So it was.")]);
    }
}

/// Who asks for ten can get five of them.
#[test]
fn ten_are_found_where_there_are_ten() {
    for facts in 0..=10 {
        let store = open(&RamMedium::new());
        for number in 0..10 {
            let text = format!("Hive number {number} has bees.");
            if number < facts { drop(note(&store, &text, MAY_8)) } else { say(&store, &text) }
        }
        let found = find(&store, "Which hive has bees?", 10);
        assert_eq!(found.hits.len(), 10, "of which {facts} are facts");
        assert_eq!(find(&store, "Which hive has bees?", 9).hits.len(), 9);
    }
}

/// The capital of a question word doesn't make it a name; else what shares nothing but that with the
/// question comes first.
#[test]
fn a_question_word_is_no_name() {
    let store = open(&RamMedium::new());
    for day in ["What a lovely day!", "What a day, What a lovely What.", "When I was young."] {
        say(&store, day);
        note(&store, day, MAY_8);
    }
    let rent = note(&store, "The rent is 900 euros a month.", MAY_8);
    let facts = &[Kind::Fact(FactKind::Asserts)];
    for query in [
        "What is my rent?",
        "what is my rent?",
        "WHAT IS MY RENT?",
        "When is my rent due?",
        "How Much Is My Rent",
    ] {
        assert_eq!(find(&store, query, 5).hits[0].id, rent, "{query}");
        let among_facts = Search { kinds: facts, ..Search::new(query, 5) };
        assert_eq!(store.find(&among_facts).unwrap().hits[0].id, rent, "{query}");
    }
    let score = |query| find(&store, query, 1).hits[0].score;
    assert_eq!(score("What is my rent?"), score("what is my rent?"));
}
