//! The journal: what waits in it, what an open makes of it, and which journals are refused.

use garret_core::medium::{Medium, MediumError};
use garret_hal::media::{Faults, FaultyMedium, Op as MediumOp, RamMedium};
use garret_storage::{OpenError, Store, file_name};
use sha2::Digest as _;

use crate::model::{Dump, Model, NAMESPACE, Op, Pair, apply, dump, id};

type Ram = Pair<RamMedium>;

fn accept(number: u64) -> Op {
    let text = format!("message {number} of some length, so that it is like one");
    Op::Accept { session: 0, text, ms: i64::try_from(number).unwrap() }
}

/// A pair with messages from `from` to `to` added, and what they come to; closed as if killed.
fn said(pair: &Ram, model: &mut Model, messages: std::ops::RangeInclusive<u64>) -> [Vec<u8>; 2] {
    let store = pair.open();
    for op in messages.map(accept) {
        assert_eq!(apply(&store, &op).unwrap(), model.apply(&op));
    }
    pair.bytes()
}

fn read(bytes: &[Vec<u8>; 2]) -> Result<Dump, OpenError> {
    let pair = Ram::of(bytes.clone());
    let found = pair.try_open().map(|store| dump(&store).unwrap());
    assert!(pair.bytes() == *bytes, "opening and reading wrote");
    found
}

fn refusal(bytes: &[Vec<u8>; 2]) -> String {
    let error = read(bytes).unwrap_err();
    assert!(matches!(error, OpenError::Journal { .. }), "{error}");
    error.to_string()
}

/// Bytes before the first frame.
const HEADER: usize = 4_096;

#[test]
fn a_killed_store_goes_on_from_its_journal() {
    let (pair, mut model) = (Ram::default(), Model::default());
    let bytes = said(&pair, &mut model, 1..=10);
    assert_eq!(read(&bytes).unwrap(), model.dump());
    // Without the journal there is the first message alone, which made the file.
    assert_eq!(read(&[bytes[0].clone(), Vec::new()]).unwrap().sessions[0].turns.len(), 1);
    let pair = Ram::of(bytes);
    let bytes = said(&pair, &mut model, 11..=20);
    assert_eq!(read(&bytes).unwrap(), model.dump());
    let store = Ram::of(bytes).open();
    assert_eq!(store.pending().unwrap(), 19);
    assert_eq!(dump(&store).unwrap(), model.dump());
}

#[test]
fn few_writes_wait_for_the_next_time_and_many_are_folded_at_the_end() {
    let (pair, mut model) = (Ram::default(), Model::default());
    said(&pair, &mut model, 1..=32);
    let store = pair.open();
    assert_eq!(store.pending().unwrap(), 31);
    assert_eq!(apply(&store, &accept(33)).unwrap(), model.apply(&accept(33)));
    drop(store);
    let [records, _] = pair.bytes();
    assert_eq!(pair.open().pending().unwrap(), 0);
    assert_eq!(read(&[records, Vec::new()]).unwrap(), model.dump());
}

/// The journal is used again from its start after each fold, and doesn't grow.
#[test]
fn a_long_run_folds_on_its_way() {
    let (pair, mut model) = (Ram::default(), Model::default());
    let store = pair.open();
    let mut folds = 0;
    for number in 1..=2_500 {
        let waiting = store.pending().unwrap();
        assert_eq!(apply(&store, &accept(number)).unwrap(), model.apply(&accept(number)));
        folds += u64::from(store.pending().unwrap() < waiting);
        if number % 251 == 0 {
            assert_eq!(read(&pair.bytes()).unwrap(), model.dump(), "{number}");
        }
    }
    assert_eq!(folds, 2_499 / 2_048);
    store.fold().unwrap();
    assert_eq!(store.pending().unwrap(), 0);
    let [records, journal] = pair.bytes();
    assert_eq!(journal.len(), 256 << 10);
    assert_eq!(read(&[records, Vec::new()]).unwrap(), model.dump());
}

/// A device that is written to by way of pages of 4,096 bytes, as a file's cache does it.
#[derive(Clone)]
struct Paged(FaultyMedium);

impl Medium for Paged {
    fn len(&self) -> Result<u64, MediumError> {
        self.0.len()
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<(), MediumError> {
        self.0.read_at(offset, out)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<(), MediumError> {
        self.0.write_at(offset, bytes)
    }

    fn set_len(&self, len: u64) -> Result<(), MediumError> {
        self.0.set_len(len)
    }

    fn sync(&self) -> Result<(), MediumError> {
        self.0.sync()
    }
}

/// The blocks of 4,096 or 512 bytes that each add writes, and the lengths of the writes.
fn blocks_of_adds<M: Medium + Clone + 'static>(
    wrap: impl Fn(FaultyMedium) -> M,
    block: u64,
) -> Vec<(u64, usize)> {
    let records = FaultyMedium::new(Faults::default());
    let journal = records.beside(Vec::new());
    let pair = Pair { journal: wrap(journal.clone()), records: wrap(records) };
    let store = pair.open();
    apply(&store, &accept(1)).unwrap();
    apply(&store, &accept(2)).unwrap();
    let before = usize::try_from(journal.ops()).unwrap();
    for number in 3..=500 {
        apply(&store, &accept(number)).unwrap();
    }
    let recording = journal.recording();
    let ops = &recording.ops()[before..];
    assert_eq!(ops.len(), 2 * 498);
    let written = |pair: &[MediumOp]| {
        let [MediumOp::Write { offset, bytes }, MediumOp::Sync] = pair else {
            panic!("{pair:?}");
        };
        let end = offset + bytes.len() as u64;
        (end.div_ceil(block) - offset / block, bytes.len())
    };
    ops.chunks(2).map(written).collect()
}

/// A device writes whole blocks: a write that lies in two costs twice as much.
#[test]
fn an_add_writes_one_block_and_syncs_once() {
    let paged = blocks_of_adds(Paged, 4_096);
    assert!(paged.iter().all(|(blocks, len)| *blocks == 1 && *len < 512));
    // Where there is no cache that would fill them, the journal writes whole ones.
    let small = blocks_of_adds(|medium| medium, 512);
    assert!(small.iter().all(|written| *written == (1, 512)));
}

/// A namespace is carried from one machine to another.
#[test]
fn a_journal_goes_on_in_blocks_of_another_size() {
    let mut model = Model::default();
    let mut bytes = said(&Ram::default(), &mut model, 1..=7);
    for round in 0..6_u64 {
        let messages = 8 + round * 9..=16 + round * 9;
        bytes = match round % 2 {
            0 => {
                let records = FaultyMedium::with_image(bytes[0].clone(), Faults::default());
                let pair = Pair { journal: records.beside(bytes[1].clone()), records };
                let store = pair.open();
                for op in messages.map(accept) {
                    assert_eq!(apply(&store, &op).unwrap(), model.apply(&op));
                }
                [pair.records.image(), pair.journal.image()]
            }
            _ => said(&Ram::of(bytes), &mut model, messages),
        };
        assert_eq!(read(&bytes).unwrap(), model.dump(), "{round}");
    }
}

#[test]
fn a_frame_cut_short_ends_the_journal() {
    let (pair, mut model) = (Ram::default(), Model::default());
    let before = said(&pair, &mut model, 1..=5);
    let expected = model.dump();
    let after = said(&pair, &mut model, 6..=6);
    let differs = |at: &usize| before[1][*at] != after[1][*at];
    let end = (0..after[1].len()).rev().find(differs).unwrap() + 1;
    let start = (0..end).find(differs).unwrap();
    for cut in start..end {
        let mut torn = after.clone();
        torn[1][cut..end].fill(0);
        assert_eq!(read(&torn).unwrap(), expected, "{cut}");
        let (pair, mut model) = (Ram::of(torn), history_of(5));
        let bytes = said(&pair, &mut model, 6..=7);
        assert_eq!(read(&bytes).unwrap(), model.dump());
    }
    assert_eq!(read(&after).unwrap(), model.dump());
}

/// A model of the first messages.
fn history_of(messages: u64) -> Model {
    let mut model = Model::default();
    for op in (1..=messages).map(accept) {
        model.apply(&op);
    }
    model
}

#[test]
fn damage_before_the_last_frame_is_told_and_nothing_is_changed() {
    let (pair, mut model) = (Ram::default(), Model::default());
    let bytes = said(&pair, &mut model, 1..=8);
    let end = (0..bytes[1].len()).rev().find(|at| bytes[1][*at] != 0).unwrap() + 1;
    let last = bytes[1].windows(9).position(|found| found == b"message 8").unwrap();
    let (mut refused, mut shortened) = (0, 0);
    for at in HEADER..end {
        let mut spoilt = bytes.clone();
        spoilt[1][at] ^= 1 << (at % 8);
        match read(&spoilt) {
            Err(error) => {
                assert!(error.to_string().contains("can't be read although"), "{error}");
                refused += 1;
            }
            Ok(found) => {
                assert!(at + 64 > last, "{at}: an acknowledged write is gone");
                assert_eq!(found, history_of(7).dump());
                shortened += 1;
            }
        }
    }
    assert!(refused > 400 && shortened > 50, "{refused} {shortened}");
}

#[test]
fn a_damaged_header_is_told() {
    let (pair, mut model) = (Ram::default(), Model::default());
    let bytes = said(&pair, &mut model, 1..=3);
    let used = (0..HEADER).rev().find(|at| bytes[1][*at] != 0).unwrap() + 1;
    for at in 0..used {
        for byte in [0, bytes[1][at] ^ 0x10] {
            let mut spoilt = bytes.clone();
            spoilt[1][at] = byte;
            if spoilt != bytes {
                refusal(&spoilt);
            }
        }
    }
}

#[test]
fn other_files_are_no_journals() {
    let (pair, mut model) = (Ram::default(), Model::default());
    let [records, _] = said(&pair, &mut model, 1..=3);
    for other in [b"notes".to_vec(), vec![7; 9_000], b"Garret journey".to_vec()] {
        let said = refusal(&[records.clone(), other]);
        assert!(said.contains("move it away") && said.contains(NAMESPACE), "{said}");
    }
    for none in [vec![], vec![0; 100], vec![0; 300_000], b"Garret jo\0\0\0".to_vec()] {
        assert_eq!(read(&[records.clone(), none]).unwrap(), history_of(1).dump());
    }
}

#[test]
fn a_journal_of_another_namespace_or_version_is_refused() {
    let (pair, mut model) = (Ram::default(), Model::default());
    let [records, mut journal] = said(&pair, &mut model, 1..=3);
    let other = Pair::<RamMedium>::default();
    let neighbour = other.clone();
    let store = Store::on_media("neighbour", move |part| match part {
        garret_storage::Part::Records => Ok(Box::new(neighbour.records.clone())),
        garret_storage::Part::Journal => Ok(Box::new(neighbour.journal.clone())),
        _ => Err(MediumError::Denied),
    });
    let store = store.unwrap();
    apply(&store, &accept(1)).unwrap();
    apply(&store, &accept(2)).unwrap();
    let error = read(&[records.clone(), other.journal.snapshot()]).unwrap_err();
    assert!(matches!(&error, OpenError::OtherNamespace { found, .. } if found == "neighbour"));

    journal[16] = 4;
    let end = 30 + NAMESPACE.len();
    let check = sha2::Sha256::digest(&journal[..end]);
    journal[end..end + 8].copy_from_slice(&check[..8]);
    let error = read(&[records, journal]).unwrap_err();
    assert!(matches!(error, OpenError::NewerFormat { found: 4, .. }), "{error}");
}

/// One of the two files was put back from a backup, or is of another history.
#[test]
fn files_that_do_not_belong_together_are_refused() {
    let (pair, mut model) = (Ram::default(), Model::default());
    let old = said(&pair, &mut model, 1..=10);
    let store = pair.open();
    store.fold().unwrap();
    apply(&store, &accept(11)).unwrap();
    let new = pair.bytes();
    drop(store);
    assert!(refusal(&[old[0].clone(), new[1].clone()]).contains("begins with write 11"));
    // Stale frames do no harm.
    assert_eq!(read(&[new[0].clone(), old[1].clone()]).unwrap(), model.dump());

    let pair = Ram::of(old);
    let store = pair.open();
    apply(&store, &Op::Title { session: 0, title: "another way".to_owned() }).unwrap();
    store.fold().unwrap();
    apply(&store, &accept(12)).unwrap();
    let forked = pair.bytes();
    assert!(refusal(&[new[0].clone(), forked[1].clone()]).contains("begins with write 12"));
    assert!(refusal(&[Vec::new(), new[1].clone()]).contains("begins with write 11"));
}

/// What was deleted can't come back, whatever happens to the journal afterwards.
#[test]
fn a_deleted_session_leaves_nothing_in_the_journal() {
    let (pair, mut model) = (Ram::default(), Model::default());
    said(&pair, &mut model, 1..=10);
    let store = pair.open();
    store.delete(&id(0)).unwrap();
    let [_, journal] = pair.bytes();
    assert!(!journal.windows(7).any(|bytes| bytes == b"message"));
    assert!(journal[HEADER..].iter().all(|byte| *byte == 0));
    assert_eq!(store.sessions().unwrap(), []);
    drop(store);
    assert_eq!(pair.open().sessions().unwrap(), []);
}

/// Reading makes no file: not even an empty journal.
#[test]
fn a_journal_is_made_by_the_second_write() {
    let dir = tempfile::tempdir().unwrap();
    let open = || {
        Store::open(dir.path(), NAMESPACE, |path| {
            Ok(Box::new(garret_hal::media::FileMedium::open(path)?))
        })
        .unwrap()
    };
    let journal = dir.path().join(file_name(NAMESPACE).unwrap()).with_extension("log");
    let store = open();
    assert_eq!(store.sessions().unwrap(), []);
    apply(&store, &accept(1)).unwrap();
    drop(store);
    let store = open();
    assert_eq!(store.sessions().unwrap().len(), 1);
    assert!(!journal.exists());
    apply(&store, &accept(2)).unwrap();
    assert!(journal.exists());
    drop(store);
    assert_eq!(open().session(&id(0)).unwrap().unwrap().turns, 2);
}

/// A quiet moment is used for a fold that would come soon, and no other.
#[test]
fn a_quiet_moment_folds_what_is_worth_it() {
    let (pair, mut model) = (Ram::default(), Model::default());
    said(&pair, &mut model, 1..=30);
    let store = pair.open();
    assert!(!store.tend_journal().unwrap());
    assert_eq!(store.pending().unwrap(), 29);
    for op in (31..=1_025).map(accept) {
        apply(&store, &op).unwrap();
    }
    assert_eq!(store.pending().unwrap(), 1_024);
    assert!(store.tend_journal().unwrap());
    assert_eq!(store.pending().unwrap(), 0);
    assert!(!store.tend_journal().unwrap());
}
