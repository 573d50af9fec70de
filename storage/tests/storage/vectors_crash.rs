//! Vectors whose power is cut at every moment: what was flushed is there, what was removed is gone
//! to the last byte, and nothing else is worse than missing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use garret_core::medium::{Medium, MediumError};
use garret_hal::media::{Faults, FaultyMedium, RamMedium};
use garret_storage::vectors::{Rotation, Side, UnitKey, VectorError, VectorStore};

use crate::vectors::{spec, vector, words};

const DIMS: usize = 24;

/// A medium of two that lose their power together, after so many operations on both.
#[derive(Clone)]
struct Wired {
    mine: FaultyMedium,
    other: FaultyMedium,
    left: Arc<AtomicI64>,
}

impl Wired {
    /// Whether the power is still on for one more operation.
    fn spend(&self) -> Result<(), MediumError> {
        if self.left.fetch_sub(1, Ordering::Relaxed) > 0 {
            return Ok(());
        }
        for medium in [&self.mine, &self.other] {
            medium.set_faults(Faults { cut_after_ops: Some(0), ..Faults::default() });
        }
        Err(MediumError::PowerCut)
    }
}

impl Medium for Wired {
    fn len(&self) -> Result<u64, MediumError> {
        self.mine.len()
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<(), MediumError> {
        self.mine.read_at(offset, out)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<(), MediumError> {
        self.spend()?;
        self.mine.write_at(offset, bytes)
    }

    fn set_len(&self, len: u64) -> Result<(), MediumError> {
        self.spend()?;
        self.mine.set_len(len)
    }

    fn sync(&self) -> Result<(), MediumError> {
        self.spend()?;
        self.mine.sync()
    }
}

/// The two files, and how many operations they have left.
struct Device {
    coarse: FaultyMedium,
    whole: FaultyMedium,
    left: Arc<AtomicI64>,
}

impl Device {
    fn new(left: i64) -> Self {
        let empty = || FaultyMedium::new(Faults::default());
        Self { coarse: empty(), whole: empty(), left: Arc::new(AtomicI64::new(left)) }
    }

    fn open(&self, rotation: Option<Rotation>) -> Result<VectorStore, VectorError> {
        let wired = |mine: &FaultyMedium, other: &FaultyMedium| Wired {
            mine: mine.clone(),
            other: other.clone(),
            left: self.left.clone(),
        };
        let coarse = wired(&self.coarse, &self.whole);
        let whole = wired(&self.whole, &self.coarse);
        let files = move |side, _| {
            let medium = if side == Side::Coarse { coarse.clone() } else { whole.clone() };
            Ok(Some(Arc::new(medium) as Arc<dyn Medium>))
        };
        VectorStore::open(files, garret_hal::kernels::detect(), Some(spec(DIMS, rotation)))
    }
}

/// What was acknowledged.
#[derive(Default)]
struct Told {
    durable: BTreeSet<u64>,
    /// May be there or not: added and not flushed, or being removed.
    open: BTreeSet<u64>,
    erased: BTreeSet<u64>,
}

/// Adds, flushes, removes, reuses rows, changes the rotation; stops where the power goes.
fn work(device: &Device, told: &mut Told) -> Result<(), VectorError> {
    let mut store = device.open(None)?;
    for round in 0..3_u64 {
        let ids = round * 70..round * 70 + 70;
        told.open.extend(ids.clone());
        store.insert(&units(ids.clone()))?;
        store.flush()?;
        told.open.clear();
        told.durable.extend(ids.clone());

        let gone: Vec<u64> = ids.filter(|id| id % 9 < 3).collect();
        told.durable.retain(|id| !gone.contains(id));
        told.open.extend(&gone);
        store.remove(&gone.iter().map(|id| words(*id)).collect::<Vec<_>>())?;
        told.open.clear();
        told.erased.extend(gone);

        // Never flushed before the store is opened again.
        told.open.insert(1_000 + round);
        store.insert(&units(1_000 + round..1_001 + round))?;
        let rotation = (round == 1).then(|| Rotation::prefix(DIMS, 5));
        store = device.open(rotation)?;
        store.maintain()?;
        told.open.remove(&(1_000 + round));
        told.erased.insert(1_000 + round);
        let last = 2_000 + round;
        told.open.insert(last);
        store.insert(&units(last..last + 1))?;
        store.flush()?;
        told.open.clear();
        told.durable.insert(last);
    }
    Ok(())
}

fn units(ids: std::ops::Range<u64>) -> Vec<(UnitKey, Vec<f32>)> {
    ids.map(|id| (words(id), vector(id, DIMS))).collect()
}

/// The bytes of a vector as they are stored, from a store that holds it alone.
fn trace(id: u64) -> Vec<u8> {
    let (coarse, whole) = (RamMedium::new(), RamMedium::new());
    let kept = whole.clone();
    let files = move |side, _| {
        let medium = if side == Side::Coarse { coarse.clone() } else { whole.clone() };
        Ok(Some(Arc::new(medium) as Arc<dyn Medium>))
    };
    let mut store =
        VectorStore::open(files, garret_hal::kernels::detect(), Some(spec(DIMS, None))).unwrap();
    store.insert(&[(words(id), vector(id, DIMS))]).unwrap();
    let image = kept.snapshot();
    image[image.len() - DIMS * 2..].to_vec()
}

fn holds(image: &[u8], trace: &[u8]) -> bool {
    image.windows(trace.len()).any(|window| window == trace)
}

fn check(coarse: Vec<u8>, whole: Vec<u8>, told: &Told, traces: &BTreeMap<u64, Vec<u8>>) {
    let device = Device {
        coarse: FaultyMedium::with_image(coarse, Faults::default()),
        whole: FaultyMedium::with_image(whole, Faults::default()),
        left: Arc::new(AtomicI64::new(i64::MAX)),
    };
    let mut store = device.open(None).unwrap();
    for id in &told.durable {
        assert!(store.contains(words(*id)), "{id} was flushed");
    }
    for key in store.keys() {
        let UnitKey::Words { turn, .. } = key else { panic!("{key:?}") };
        assert!(told.durable.contains(&turn) || told.open.contains(&turn), "{turn}");
    }
    // Those that may be there or not are whole when they are, or found out.
    for id in store.damaged().unwrap() {
        assert!(told.open.iter().any(|open| words(*open) == id), "{id:?}");
    }
    store.maintain().unwrap();
    for id in told.durable.iter().step_by(7) {
        let hits = store.search(&vector(*id, DIMS), 1, &|_| true).unwrap();
        assert_eq!(hits[0].key, words(*id));
        assert!(hits[0].cosine > 0.999);
    }
    // What the records don't have any more is taken away, whatever became of its removal.
    let durable = &told.durable;
    store
        .retain(&|key| matches!(key, UnitKey::Words { turn, .. } if durable.contains(&turn)))
        .unwrap();
    store.insert(&units(5_000..5_003)).unwrap();
    store.flush().unwrap();
    assert_eq!(store.len(), told.durable.len() + 3);
    assert_eq!(store.damaged(), Ok(Vec::new()));
    let image = device.whole.durable_image();
    for id in told.erased.iter().chain(&told.open) {
        let trace = traces.get(id);
        assert!(!trace.is_some_and(|trace| holds(&image, trace)), "{id} was erased");
    }
    assert!(holds(&image, &traces[&5_000]), "the test looks for the right bytes");
}

#[test]
fn a_power_cut_at_any_moment_loses_recent_rows_only() {
    let whole = Device::new(i64::MAX);
    let mut told = Told::default();
    work(&whole, &mut told).unwrap();
    let total = i64::MAX - whole.left.load(Ordering::Relaxed);
    assert!(total > 60, "{total} operations");
    let looked_for = (0..210).step_by(5).chain(1_000..1_003).chain([2_000, 2_001, 2_002, 5_000]);
    let traces = looked_for.map(|id| (id, trace(id))).collect();
    for left in 0..=total {
        let device = Device::new(left);
        let mut told = Told::default();
        let done = work(&device, &mut told);
        assert_eq!(done.is_ok(), left == total);
        for seed in [left as u64 % 2, 2 + left as u64] {
            let coarse = device.coarse.image_after_cut(seed);
            let whole = device.whole.image_after_cut(seed.wrapping_mul(31));
            check(coarse, whole, &told, &traces);
        }
    }
}

/// A device that fails once and recovers: what was added is found out to be missing, and can be
/// added again.
#[test]
fn a_failed_write_is_looked_at_before_the_next() {
    let device = Device::new(i64::MAX);
    let mut store = device.open(None).unwrap();
    store.insert(&units(0..10)).unwrap();
    store.flush().unwrap();
    store.insert(&units(10..20)).unwrap();
    let full = Faults { capacity: Some(0), ..Faults::default() };
    device.whole.set_faults(full);
    let beyond = units(200..2_000);
    assert_eq!(store.insert(&beyond), Err(VectorError::Medium(MediumError::Full)));
    device.whole.set_faults(Faults::default());
    assert_eq!(store.insert(&units(0..20)), Ok(10));
    store.flush().unwrap();
    assert_eq!(device.open(None).unwrap().len(), 20);
    assert_eq!(store.damaged(), Ok(Vec::new()));
}
