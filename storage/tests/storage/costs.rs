//! What a write and a search read, counted in bytes: neither may grow with the store. In systems before
//! ours each fact that was added had all others read, and the second stage of a search read every
//! vector; a namespace of one fact took megabytes. (That an add syncs once is in `journal`.)

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use garret_core::medium::{Medium, MediumError};
use garret_core::time::{Confidence, WallTime};
use garret_hal::media::{FileMedium, RamMedium};
use garret_storage::vectors::{Rotation, Side, VectorStore};
use garret_storage::{FactId, NewFact, Store};

use crate::rewrite::Disk;
use crate::vectors::{spec, vector, words};

/// Memory, and how much of it was read.
#[derive(Clone, Debug, Default)]
struct Counted {
    medium: RamMedium,
    read: Arc<AtomicU64>,
}

impl Counted {
    fn read_since(&self, before: u64) -> u64 {
        self.read.load(Ordering::Relaxed) - before
    }
}

impl Medium for Counted {
    fn len(&self) -> Result<u64, MediumError> {
        self.medium.len()
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<(), MediumError> {
        self.read.fetch_add(out.len() as u64, Ordering::Relaxed);
        self.medium.read_at(offset, out)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<(), MediumError> {
        self.medium.write_at(offset, bytes)
    }

    fn set_len(&self, len: u64) -> Result<(), MediumError> {
        self.medium.set_len(len)
    }

    fn sync(&self) -> Result<(), MediumError> {
        self.medium.sync()
    }
}

/// Says what somebody has, in a text long enough that the store doesn't fit its pages in memory.
fn add(store: &Store, subject: &str, number: u64) -> FactId {
    let (text, object) = (format!("{number} {}", "hives ".repeat(400)), format!("hive {number}"));
    let fact = NewFact {
        text: &text,
        subject: Some(subject),
        predicate: Some("has"),
        object: Some(&object),
        ..NewFact::default()
    };
    let at = WallTime { unix_ms: number as i64 * 1_000, confidence: Confidence::Good };
    store.add_fact(&fact, at).unwrap().id
}

/// Looking for what a fact replaces and for what is said twice must not read all there is.
#[test]
fn a_fact_reads_little_of_a_large_store() {
    let disk = Disk::<RamMedium>::default();
    let counted = Counted { medium: disk.0[0].clone(), ..Counted::default() };
    let records = counted.clone();
    let store = Store::on_media("home", move |part| {
        let records_too = records.clone();
        match disk.part(part).clone() {
            _ if part == garret_storage::Part::Records => Ok(Box::new(records_too)),
            other => Ok(Box::new(other)),
        }
    })
    .unwrap();
    for number in 0..3_000 {
        add(&store, &format!("subject {number}"), number);
    }
    let size = counted.len().unwrap();
    assert!(size > 6 << 20, "{size}");
    let mut costs: Vec<u64> = (0..21)
        .map(|round| {
            let before = counted.read_since(0);
            add(&store, &format!("subject {}", round * 101), 5_000 + round);
            counted.read_since(before)
        })
        .collect();
    costs.sort_unstable();
    assert!(costs[10] < 128 << 10, "{costs:?} of {size}");
    let before = counted.read_since(0);
    let found = store.search("hive 77", None, 3).unwrap();
    assert_eq!(found.hits.len(), 3);
    let first = counted.read_since(before);
    let before = counted.read_since(0);
    store.search("hive 78", None, 3).unwrap();
    let next = counted.read_since(before);
    assert!(next < 256 << 10, "{next} of {size}, the first time {first}");
}

/// The second stage looks at some whole vectors, by their places.
#[test]
fn a_search_reads_few_whole_vectors() {
    const DIMS: usize = 96;
    let (coarse, whole) = (Counted::default(), Counted::default());
    let parts = (coarse.clone(), whole.clone());
    let files = move |side, _| {
        let medium = match side {
            Side::Coarse => parts.0.clone(),
            Side::Whole => parts.1.clone(),
        };
        Ok(Some(Arc::new(medium) as Arc<dyn Medium>))
    };
    let rotation = Some(Rotation::prefix(DIMS, 32));
    let kernels = garret_hal::kernels::detect();
    let mut store = VectorStore::open(files, kernels, Some(spec(DIMS, rotation))).unwrap();
    let units: Vec<_> = (0..6_000).map(|turn| (words(turn), vector(turn, DIMS))).collect();
    store.insert(&units).unwrap();
    store.flush().unwrap();
    let (all, before) =
        (whole.len().unwrap(), [&coarse, &whole].map(|medium| medium.read_since(0)));
    let hits = store.search(&vector(77, DIMS), 10, &|_| true).unwrap();
    assert_eq!((hits.len(), hits[0].key), (10, words(77)));
    let read = whole.read_since(before[1]);
    assert!(read > 0 && read < all / 50, "{read} of {all}");
    let scanned = coarse.read_since(before[0]);
    assert_eq!(scanned, 6_000 * 32, "each coarse row once");
}

/// What is preallocated, or left behind by the first write.
#[test]
fn one_fact_takes_little_room() {
    let folder = tempfile::tempdir().unwrap();
    let file = |path: &Path| -> Result<Box<dyn Medium>, MediumError> {
        Ok(Box::new(FileMedium::open(path)?))
    };
    let bytes = || -> u64 {
        let entries = std::fs::read_dir(folder.path()).unwrap();
        entries.map(|entry| entry.unwrap().metadata().unwrap().len()).sum()
    };
    let store = Store::open(folder.path(), "home", file).unwrap();
    add(&store, "Ada", 1);
    let open = bytes();
    drop(store);
    let closed = bytes();
    assert!(open < 200_000 && closed < 160_000, "{open} bytes, closed {closed}");
}
