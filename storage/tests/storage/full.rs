//! Media that are full or fail for a while; the store goes on when they do.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use garret_core::medium::{Medium, MediumError};
use garret_hal::media::{Faults, FaultyMedium, RamMedium};
use garret_storage::WriteError;

use crate::model::{Model, Op, Pair, apply, dump, workload};

fn capacity(bytes: u64) -> Faults {
    Faults { capacity: Some(bytes), ..Faults::default() }
}

/// An empty pair on one device with `faults`.
fn device(faults: Faults) -> Pair<FaultyMedium> {
    let records = FaultyMedium::new(faults);
    Pair { journal: records.beside(Vec::new()), records }
}

/// redb#620: after a full disk, the next open panicked.
#[test]
fn a_full_disk_loses_nothing_at_any_size() {
    let mut ops = workload();
    ops.insert(6, Op::Fold);
    let whole = device(Faults::default());
    let mut store = whole.open();
    for op in ops.iter().filter(|op| !matches!(op, Op::Reopen)) {
        apply(&store, op).unwrap();
    }
    drop(store);
    let end = whole.records.len().unwrap() + whole.journal.len().unwrap();
    let (mut refusals, mut direct) = (0, 0);
    for room in (0..end + 8_192).step_by(5_000) {
        let pair = device(capacity(room));
        let mut model = Model::default();
        store = pair.open();
        for (step, op) in ops.iter().enumerate() {
            if matches!(op, Op::Reopen) {
                drop(store);
                store = pair.open();
                continue;
            }
            let answer = match apply(&store, op) {
                Err(WriteError::Full) => {
                    refusals += 1;
                    assert_eq!(dump(&store).unwrap(), model.dump(), "read while full, {room}");
                    drop(store);
                    store = pair.open();
                    assert_eq!(dump(&store).unwrap(), model.dump(), "reopened while full, {room}");
                    match apply(&store, op) {
                        // The journal gave back what it couldn't use.
                        Ok(answer) => answer,
                        Err(error) => {
                            assert!(matches!(error, WriteError::Full), "{room}: {error}");
                            pair.records.set_faults(Faults::default());
                            apply(&store, op).unwrap()
                        }
                    }
                }
                done => done.unwrap(),
            };
            assert_eq!(answer, model.apply(op));
            direct += usize::from(step > 0 && pair.journal.is_empty().unwrap());
        }
        assert_eq!(dump(&store).unwrap(), model.dump());
        drop(store);
        assert_eq!(dump(&pair.open()).unwrap(), model.dump());
    }
    assert!(refusals > 20, "only {refusals} refusals");
    assert!(direct > 0, "the records never went on without a journal");
}

/// There is room for frames in the journal, but none for the records to grow: what was accepted
/// stays in the journal, until that is full as well.
#[test]
fn writing_goes_on_while_folding_finds_no_room() {
    let pair = device(Faults::default());
    let mut model = Model::default();
    let mut store = pair.open();
    let accept = |number: u64| Op::Accept {
        session: (number % 3) as u8,
        text: format!("message {number} {}", "buzz ".repeat(40)),
        ms: 0,
    };
    let mut number = 0;
    while number < 2_100 {
        assert_eq!(apply(&store, &accept(number)).unwrap(), model.apply(&accept(number)));
        number += 1;
    }
    let used = pair.records.len().unwrap() + pair.journal.len().unwrap();
    pair.records.set_faults(capacity(used));
    let refused = loop {
        match apply(&store, &accept(number)) {
            Ok(answer) => assert_eq!(answer, model.apply(&accept(number))),
            Err(error) => break error,
        }
        number += 1;
        if number % 100 == 0 {
            drop(store);
            store = pair.open();
        }
    };
    assert!(matches!(refused, WriteError::Full), "{refused}");
    assert!(store.pending().unwrap() > 2_200, "a fold was due at 2,048: {number}");
    assert_eq!(dump(&store).unwrap(), model.dump());
    pair.records.set_faults(Faults::default());
    assert_eq!(apply(&store, &accept(number)).unwrap(), model.apply(&accept(number)));
    store.fold().unwrap();
    assert_eq!(store.pending().unwrap(), 0);
    drop(store);
    assert_eq!(dump(&pair.open()).unwrap(), model.dump());
}

/// A medium of which everything that changes it fails from some moment on, until it is healed,
/// together with those that share its count. As with a file, a handle that couldn't sync never changes anything again.
struct Flaky {
    bytes: RamMedium,
    stuck: AtomicBool,
    /// Changes that still succeed.
    left: Arc<AtomicI64>,
    error: MediumError,
}

impl Flaky {
    fn new(left: i64, error: MediumError) -> Self {
        let (bytes, left) = (RamMedium::new(), Arc::new(AtomicI64::new(left)));
        Self { bytes, stuck: AtomicBool::new(false), left, error }
    }

    fn heal(&self) {
        self.left.store(i64::MAX, Ordering::Relaxed);
    }

    fn change(&self) -> Result<(), MediumError> {
        let left = self.left.fetch_sub(1, Ordering::Relaxed);
        let fails = left <= 0 || self.stuck.load(Ordering::Relaxed);
        if fails { Err(self.error) } else { Ok(()) }
    }
}

/// A clone is another handle, as if it were opened anew.
impl Clone for Flaky {
    fn clone(&self) -> Self {
        let (bytes, left) = (self.bytes.clone(), self.left.clone());
        Self { bytes, stuck: AtomicBool::new(false), left, error: self.error }
    }
}

impl Medium for Flaky {
    fn len(&self) -> Result<u64, MediumError> {
        self.bytes.len()
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<(), MediumError> {
        self.bytes.read_at(offset, out)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<(), MediumError> {
        if let Err(error) = self.change() {
            // As a device may: half of it.
            self.bytes.write_at(offset, &bytes[..bytes.len() / 2])?;
            return Err(error);
        }
        self.bytes.write_at(offset, bytes)
    }

    fn set_len(&self, len: u64) -> Result<(), MediumError> {
        self.change()?;
        self.bytes.set_len(len)
    }

    fn sync(&self) -> Result<(), MediumError> {
        self.change().inspect_err(|_| self.stuck.store(true, Ordering::Relaxed))?;
        self.bytes.sync()
    }
}

/// Fails from change `left` on; returns whether anything failed.
fn fail_and_heal(left: i64, error: MediumError) -> bool {
    let records = Flaky::new(left, error);
    let journal = Flaky { bytes: RamMedium::new(), ..records.clone() };
    let pair = Pair { records, journal };
    let open = || pair.open();
    let mut store = open();
    let mut model = Model::default();
    let mut failed = false;
    for op in workload() {
        if matches!(op, Op::Reopen) {
            drop(store);
            store = open();
            continue;
        }
        let outcome = apply(&store, &op);
        let before = model.dump();
        let answer = model.apply(&op);
        match outcome {
            Ok(given) => assert_eq!(given, answer),
            Err(refused) => {
                failed = true;
                let there = dump(&store).unwrap();
                pair.records.heal();
                assert_eq!(dump(&store).unwrap(), there);
                assert!(matches!(refused, WriteError::Full | WriteError::Medium(_)), "{refused}");
                if there == before {
                    assert_eq!(apply(&store, &op).unwrap(), answer, "{left}");
                } else {
                    // Only the last step was refused; then it is there whole.
                    assert_eq!(there, model.dump(), "{left}");
                }
            }
        }
        assert_eq!(dump(&store).unwrap(), model.dump(), "{left}: {op:?}");
    }
    drop(store);
    assert_eq!(dump(&open()).unwrap(), model.dump(), "{left}");
    failed
}

/// Copy-on-write file systems run out of room for bytes that were there before, and some say so
/// only at a sync.
#[test]
fn any_write_can_find_no_room() {
    let failures = (0..).take_while(|left| fail_and_heal(*left, MediumError::Full)).count();
    assert!(failures > 100, "only {failures}");
}

#[test]
fn any_write_can_meet_a_sick_device() {
    let error = MediumError::Device { errno: 5 };
    let failures = (0..).take_while(|left| fail_and_heal(*left, error)).count();
    assert!(failures > 100, "only {failures}");
}
