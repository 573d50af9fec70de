//! Writing the records anew: nothing is lost and nothing else stays, whenever the power goes and
//! however little room there is.

use std::sync::Arc;

use garret_core::medium::{Medium, MediumError};
use garret_core::time::{Confidence, WallTime};
use garret_hal::media::{Cut, Faults, FaultyMedium, FileMedium, Op as MediumOp, RamMedium};
use garret_storage::search::Speaker;
use garret_storage::{
    FactFilter, ImportedTurn, NewFact, NewReply, NewSummary, Origin, Part, Selection, StateKind,
    Store, StoredFinish, SummaryId, WriteError,
};

use crate::summaries::leaf;

pub(crate) const AT: WallTime =
    WallTime { unix_ms: 1_767_225_600_000, confidence: Confidence::Good };
/// Words that are to be forgotten.
pub(crate) const CANARY: &str = "xylophone-7731";

/// All files of a namespace, in the order of `Part::ALL`. A clone is another handle.
#[derive(Clone, Default)]
pub(crate) struct Disk<M>(pub(crate) [M; 8]);

impl<M: Medium + Clone + 'static> Disk<M> {
    pub(crate) fn part(&self, part: Part) -> &M {
        &self.0[Part::ALL.iter().position(|other| *other == part).unwrap()]
    }

    pub(crate) fn open(&self) -> Store {
        let disk = self.clone();
        Store::on_media("home", move |part| Ok(Box::new(disk.part(part).clone()))).unwrap()
    }
}

pub(crate) type Images = [Vec<u8>; 8];

impl Disk<RamMedium> {
    pub(crate) fn of(images: Images) -> Self {
        Self(images.map(RamMedium::from_bytes))
    }

    pub(crate) fn images(&self) -> Images {
        self.0.each_ref().map(RamMedium::snapshot)
    }
}

impl Disk<FaultyMedium> {
    pub(crate) fn recording(images: Images) -> Self {
        let [records, others @ ..] = images;
        let records = FaultyMedium::with_image(records, Faults::default());
        let [a, b, c, d, e, f, g] = others.map(|image| records.beside(image));
        Self([records, a, b, c, d, e, f, g])
    }
}

pub(crate) fn id(name: &str) -> garret_core::id::SessionId {
    name.parse().unwrap()
}

pub(crate) fn reply(store: &Store, session: &str, seq: u64, text: &str, receipt: &str) {
    let reply = NewReply { receipt: receipt.as_bytes(), ..new_reply(text) };
    store.reply(&id(session), seq, reply).unwrap();
}

fn new_reply(text: &str) -> NewReply<'_> {
    NewReply {
        text,
        tokens: &[],
        model_fingerprint: &[7; 32],
        finish: StoredFinish::Stop,
        at: AT,
        receipt: b"",
        trace: b"",
    }
}

/// Two turns under a leaf each, both leaves under one; the canary in one of them and in states.
fn sum_up(store: &Store) {
    let kitchen = id("kitchen");
    let leaf = |turn, text| NewSummary { from: turn, to: turn, text, ..leaf(1, 1) };
    let leaves = [
        leaf(1, "Ada lives in Oslo."),
        leaf(2, "The safe opens with Xylophone-7731."),
        NewSummary {
            depth: 1,
            sources: &[SummaryId(1), SummaryId(2)],
            to: 2,
            ..leaf(1, "Ada has a safe.")
        },
    ];
    store.compact_session(&kitchen, &leaves, Some(b"Pinned: xylophone-7731"), AT).unwrap();
    store.set_state(&kitchen, StateKind::Work, b"sum up xylophone-7731").unwrap();
}

/// A conversation in which the canary is everywhere that words can be; the last of it waits in the
/// journal.
pub(crate) fn tell(store: &Store) {
    let kitchen = id("kitchen");
    store.accept(&kitchen, "My name is Ada, and I live in Oslo.", AT).unwrap();
    reply(store, "kitchen", 1, "Hello, Ada.", "{}");
    store.accept(&kitchen, "The safe opens with Xylophone-7731, remember that.", AT).unwrap();
    let receipt = b"{\"words\":\"xylophone-7731\"}";
    let trace = b"user: The safe opens with Xylophone-7731, remember that.";
    let noted = NewReply { receipt, trace, ..new_reply("Noted: XYLOPHONE-7731.") };
    store.reply(&kitchen, 2, noted).unwrap();
    sum_up(store);
    store.set_title(&kitchen, "Safe: xylophone-7731").unwrap();
    let said_in = |turn| Some(Origin { session: &kitchen, turn });
    let lives = NewFact {
        text: "Ada lives in Oslo.",
        origin: said_in(1),
        quote: Some("I live in Oslo"),
        subject: Some("Ada"),
        predicate: Some("lives_in"),
        object: Some("Oslo"),
        valid_at: Some(1_000),
        ..NewFact::default()
    };
    store.add_fact(&lives, AT).unwrap();
    let opens = NewFact {
        text: "The safe opens with xylophone-7731.",
        origin: said_in(2),
        quote: Some("opens with Xylophone-7731"),
        subject: Some("the safe"),
        predicate: Some("opens_with"),
        object: Some("xylophone-7731"),
        ..NewFact::default()
    };
    let opens = store.add_fact(&opens, AT).unwrap().id;
    let hers = NewFact {
        text: "Ada can open the safe.",
        subject: Some("Ada"),
        predicate: Some("can"),
        derived_from: &[opens],
        inferred: true,
        ..NewFact::default()
    };
    store.add_fact(&hers, AT).unwrap();
    let moved = NewFact { object: Some("Bergen"), valid_at: Some(2_000), ..lives };
    let moved = NewFact { text: "Ada lives in Bergen.", quote: None, ..moved };
    store.add_fact(&moved, AT).unwrap();
    let named = NewFact { text: "It is a word.", subject: Some(CANARY), ..NewFact::default() };
    store.add_fact(&named, AT).unwrap();
    store.touch(&[(opens, 5)]).unwrap();
    let letters = id("letters");
    let letter = |text, id| ImportedTurn {
        session: &letters,
        speaker: Speaker::Named("Bob"),
        text,
        at: AT,
        id: Some(id),
    };
    let turns = [letter("The bees are well.", "1:1"), letter("xylophone-7731, still?", "1:2")];
    store.import_turns(&turns).unwrap();
    store.set_state(&letters, StateKind::Carry, b"calm").unwrap();
    store.fold().unwrap();
    store.accept(&kitchen, "Is xylophone-7731 safe?", AT).unwrap();
    store.accept(&kitchen, "Good night.", AT).unwrap();
}

/// The half-precision numbers of what has the canary in it are 0.6 and 0.8.
const VECTOR: [u8; 4] = [0xcd, 0x38, 0x66, 0x3a];

fn embed(store: &Store) {
    store.set_embedder([1; 32], 4, garret_hal::kernels::detect(), None).unwrap();
    let vector = |text: &str| {
        let canary = text.to_lowercase().contains(CANARY);
        if canary { vec![0.6, 0.8, 0.0, 0.0] } else { vec![0.0, 0.0, 1.0, 0.0] }
    };
    let units = store.unembedded(100).unwrap();
    let units: Vec<_> = units.into_iter().map(|(key, text)| (key, vector(&text))).collect();
    assert_eq!(store.add_vectors(&units).unwrap(), units.len());
}

pub(crate) fn told() -> Images {
    let disk = Disk::<RamMedium>::default();
    let store = disk.open();
    tell(&store);
    embed(&store);
    let images = disk.images();
    drop(store);
    images
}

/// All that can be read, one line each.
pub(crate) fn read(store: &Store) -> Vec<String> {
    let mut lines = Vec::new();
    for info in store.sessions().unwrap() {
        lines.push(format!("{info:?}"));
        let turns = |turns: &[garret_storage::TurnView<'_>]| {
            turns.iter().map(|turn| format!("{} {turn:?}", info.id)).collect::<Vec<_>>()
        };
        lines.extend(store.with_turns(&info.id, 1, turns).unwrap());
        lines.push(format!("{:?}", store.damaged_turns(&info.id).unwrap()));
        lines.push(format!("{:?}", store.last_receipt(&info.id).unwrap()));
        let summaries = store.summaries(&info.id).unwrap();
        lines.extend(summaries.iter().map(|summary| format!("{summary:?}")));
        lines.push(format!("up to {}", store.frontier(&info.id).unwrap()));
        for kind in [StateKind::Context, StateKind::Carry, StateKind::Work] {
            lines.push(format!("{:?}", store.state(&info.id, kind).unwrap()));
        }
        let trace = |turn| store.trace(&info.id, turn).unwrap();
        lines.push(format!("{:?}", (1..=info.turns).map(trace).collect::<Vec<_>>()));
    }
    lines.extend(
        store.facts(&FactFilter::default()).unwrap().facts.iter().map(|f| format!("{f:?}")),
    );
    lines.extend(store.entities().unwrap().iter().map(|entity| format!("{entity:?}")));
    lines.extend(store.erasures().unwrap().iter().map(|erasure| format!("{erasure:?}")));
    lines
}

pub(crate) fn selection() -> Selection<'static> {
    Selection { pattern: Some(CANARY), ..Selection::default() }
}

/// Records without any other file.
fn alone(records: Vec<u8>) -> Images {
    let mut images = Images::default();
    images[0] = records;
    images
}

pub(crate) fn holds_canary(images: &Images) -> bool {
    let small = CANARY.as_bytes();
    let in_image =
        |image: &Vec<u8>| image.windows(small.len()).any(|bytes| bytes.eq_ignore_ascii_case(small));
    let vectors = &images[2..4];
    images.iter().any(in_image)
        || vectors.iter().any(|image| image.windows(4).any(|bytes| bytes == VECTOR))
}

/// Before and after each operation of the device, and within longer writes.
fn cuts(ops: &[MediumOp]) -> Vec<Cut> {
    let mut cuts = Vec::new();
    for (done, op) in ops.iter().enumerate() {
        cuts.push(Cut { ops: done, torn: 0 });
        if let MediumOp::Write { bytes, .. } = op {
            cuts.push(Cut { ops: done, torn: bytes.len() / 2 });
        }
    }
    cuts.push(Cut { ops: ops.len(), torn: 0 });
    cuts
}

/// Wherever the power goes while something is forgotten: either that hasn't begun, or nobody can
/// read it any more and the next write erases its bytes.
#[test]
fn forgetting_can_be_cut_anywhere() {
    let before = read(&Disk::of(told()).open());
    let disk = Disk::recording(told());
    let store = disk.open();
    let start = disk.0[0].ops();
    assert!(store.erase(&selection(), AT, false).unwrap().unfinished.is_none());
    let after = read(&store);
    assert!(!after.iter().any(|line| line.to_lowercase().contains(CANARY)));
    let recording = disk.0[0].recording();
    drop(store);
    let (mut early, mut late, mut sealed) = (0, 0, 0);
    for (nth, cut) in cuts(recording.ops()).into_iter().enumerate() {
        assert!(cut.ops as u64 >= start);
        let seeds = [2 + nth as u64, 0, 1];
        for seed in seeds.into_iter().take(if cut.torn == 0 { 3 } else { 1 }) {
            let images: Images = recording.images_after_cut(cut, seed).try_into().unwrap();
            let disk = Disk::of(images.clone());
            let store = disk.open();
            let found = read(&store);
            assert!(disk.images() == images, "opening and reading wrote, {cut:?}");
            sealed += usize::from(images[5].len() > 68);
            if found == before {
                early += 1;
                assert!(cut.ops < recording.ops().len(), "it was acknowledged");
                assert!(store.erase(&selection(), AT, false).unwrap().unfinished.is_none());
            } else {
                late += 1;
                assert_eq!(found, after, "{cut:?}, seed {seed}");
                store.fold().unwrap();
            }
            assert_eq!(read(&store), after, "{cut:?}, seed {seed}");
            assert_eq!(store.verify_erased(CANARY.as_bytes()).unwrap(), [], "{cut:?} {seed}");
            assert!(!holds_canary(&disk.images()), "{cut:?}, seed {seed}");
            // It goes on from there, and nothing comes back.
            store.accept(&id("kitchen"), "And now?", AT).unwrap();
            let now = read(&store);
            drop(store);
            assert_eq!(read(&disk.open()), now);
        }
    }
    assert!(holds_canary(&told()) && told()[3].windows(4).any(|bytes| bytes == VECTOR));
    eprintln!("{early} before, {late} after, {sealed} while there were two files");
    assert!(early > 20 && late > 100 && sealed > 50);
}

/// The first write after the cut can be cut as well, wherever that was.
#[test]
fn going_on_can_be_cut_like_anything_else() {
    let disk = Disk::recording(told());
    let store = disk.open();
    store.erase(&selection(), AT, false).unwrap();
    let after = read(&store);
    let recording = disk.0[0].recording();
    drop(store);
    let all = cuts(recording.ops());
    for (nth, cut) in all.iter().enumerate().skip(all.len() / 8).step_by(all.len() / 12) {
        let images = recording.images_after_cut(*cut, nth as u64).try_into().unwrap();
        let disk = Disk::recording(images);
        let store = disk.open();
        if read(&store) != after {
            continue;
        }
        store.accept(&id("kitchen"), "And now?", AT).unwrap();
        let accepted = read(&store);
        drop(store);
        let second = disk.0[0].recording();
        for (nth, cut) in cuts(second.ops()).into_iter().enumerate().step_by(7) {
            let images: Images = second.images_after_cut(cut, nth as u64).try_into().unwrap();
            let disk = Disk::of(images);
            let store = disk.open();
            let found = read(&store);
            assert!(found == after || found == accepted, "{cut:?}");
            store.vacuum().unwrap();
            assert!(!holds_canary(&disk.images()));
            assert_eq!(read(&store), found);
        }
    }
}

#[test]
fn compacting_gives_the_room_of_deleted_sessions_back() {
    let disk = Disk::<RamMedium>::default();
    let store = disk.open();
    for nth in 0..300 {
        store.accept(&id("long"), &format!("{CANARY} {nth} {}", "words ".repeat(300)), AT).unwrap();
    }
    store.accept(&id("short"), "This stays.", AT).unwrap();
    store.delete(&id("long")).unwrap();
    let before = read(&store);
    assert!(holds_canary(&disk.images()));
    let compacted = store.vacuum().unwrap();
    assert!(!holds_canary(&disk.images()));
    assert_eq!(read(&store), before);
    let total = |disk: &Disk<RamMedium>| disk.images().iter().map(Vec::len).sum::<usize>() as u64;
    assert_eq!(compacted.after, total(&disk));
    assert_eq!(store.disk_len().unwrap(), compacted.after);
    assert!(disk.part(Part::Records).snapshot().len() < 100_000);
    assert!(disk.part(Part::Next).snapshot().is_empty());
    drop(store);
    assert_eq!(read(&disk.open()), before);
}

#[test]
fn an_empty_store_is_compacted_to_nothing() {
    let disk = Disk::<RamMedium>::default();
    let store = disk.open();
    assert_eq!(store.vacuum().unwrap().after, 0);
    assert!(disk.images().iter().all(Vec::is_empty));
    store.accept(&id("a"), "one", AT).unwrap();
    assert_eq!(store.vacuum().unwrap().after, store.disk_len().unwrap());
    assert_eq!(store.session(&id("a")).unwrap().unwrap().turns, 1);
}

#[test]
fn a_store_on_one_medium_is_rewritten_by_way_of_memory() {
    let medium = RamMedium::new();
    let store = Store::on_medium("home", Box::new(medium.clone())).unwrap();
    tell(&store);
    let forgotten = store.erase(&selection(), AT, false).unwrap();
    assert!(forgotten.unfinished.is_none() && forgotten.erasure == Some(1));
    assert_eq!(store.verify_erased(CANARY.as_bytes()).unwrap(), []);
    assert!(!holds_canary(&alone(medium.snapshot())));
    let before = read(&store);
    drop(store);
    assert_eq!(read(&Store::on_medium("home", Box::new(medium)).unwrap()), before);
}

#[test]
fn files_are_rewritten_in_their_place() {
    let dir = tempfile::tempdir().unwrap();
    let open = || Store::open(dir.path(), "home", |path| Ok(Box::new(FileMedium::open(path)?)));
    let store = open().unwrap();
    tell(&store);
    let next = store.path().unwrap().with_extension("next");
    assert!(!next.exists());
    store.erase(&selection(), AT, false).unwrap();
    assert_eq!(std::fs::read(&next).unwrap(), b"");
    let before = read(&store);
    for entry in std::fs::read_dir(dir.path()).unwrap() {
        let bytes = std::fs::read(entry.unwrap().path()).unwrap();
        assert!(!holds_canary(&alone(bytes)));
    }
    assert_eq!(store.verify_erased(CANARY.as_bytes()).unwrap(), []);
    drop(store);
    assert_eq!(read(&open().unwrap()), before);
}

/// However much of the new file fits: the store goes on, and it is done once there is room.
#[test]
fn a_full_disk_leaves_the_records_as_they_are() {
    let (before, after) = {
        let store = Disk::of(told()).open();
        let before = read(&store);
        store.erase(&selection(), AT, false).unwrap();
        (before, read(&store))
    };
    let (mut refused, mut done) = (0, 0);
    let used = told().iter().map(Vec::len).sum::<usize>() as u64;
    for room in (0..900_000).step_by(25_000) {
        let disk = Disk::recording(told());
        disk.0[0].set_faults(Faults { capacity: Some(used + room), ..Faults::default() });
        let store = disk.open();
        let forgotten = match store.erase(&selection(), AT, false) {
            // The file grows by as much as it has when the change itself finds no free page.
            Err(WriteError::Full) if room < 300_000 => {
                assert!(read(&store) == before, "half of it is forgotten");
                continue;
            }
            forgotten => forgotten.unwrap(),
        };
        assert_eq!(read(&store), after);
        let Some(error) = forgotten.unfinished else {
            done += 1;
            continue;
        };
        refused += 1;
        assert!(matches!(error, WriteError::Full), "{error}");
        assert!(disk.part(Part::Next).is_empty().unwrap(), "it keeps the room");
        assert!(matches!(store.vacuum(), Err(WriteError::Full)));
        match store.accept(&id("kitchen"), "It goes on.", AT) {
            Ok(_) => {}
            Err(error) => assert!(matches!(error, WriteError::Full) && room < 20_000, "{error}"),
        }
        let now = read(&store);
        drop(store);
        let store = disk.open();
        assert_eq!(read(&store), now);
        disk.0[0].set_faults(Faults::default());
        store.fold().unwrap();
        assert_eq!(store.verify_erased(CANARY.as_bytes()).unwrap(), []);
        assert_eq!(read(&store), now);
    }
    assert!(refused > 5 && done > 5, "{refused} {done}");
}

/// The new records are whole, but can't be written over the old ones: they are read from where
/// they are until that is possible.
#[test]
fn a_copy_that_fails_is_made_later() {
    let expected = {
        let store = Disk::of(told()).open();
        store.erase(&selection(), AT, false).unwrap();
        read(&store)
    };
    for left in 1..400 {
        let disk = Disk::stubborn(told(), left);
        let store = disk.open();
        let outcome = store.erase(&selection(), AT, false);
        disk.heal(false);
        if matches!(&outcome, Ok(forgotten) if forgotten.unfinished.is_none()) {
            assert!(left > 20, "only {left} changes");
            return;
        }
        let found = read(&store);
        drop(store);
        let store = disk.open();
        assert_eq!(read(&store), found);
        assert!(store.accept(&id("other"), "No.", AT).is_err());
        assert_eq!(read(&store), found);
        disk.heal(true);
        if outcome.is_err() && found != expected {
            store.erase(&selection(), AT, false).unwrap();
        }
        store.accept(&id("kitchen"), "Yes.", AT).unwrap();
        assert_eq!(store.verify_erased(CANARY.as_bytes()).unwrap(), [], "{left}");
        drop(store);
        let store = disk.open();
        assert_eq!(store.session(&id("kitchen")).unwrap().unwrap().turns, 5);
    }
    panic!("it never came to the end");
}

/// A medium of which every change fails from some moment on, with the others of its disk.
#[derive(Clone)]
struct Stubborn {
    bytes: RamMedium,
    left: Arc<std::sync::atomic::AtomicI64>,
}

impl Stubborn {
    fn change(&self) -> Result<(), MediumError> {
        let left = self.left.fetch_sub(1, std::sync::atomic::Ordering::Relaxed);
        if left > 0 { Ok(()) } else { Err(MediumError::Device { errno: 5 }) }
    }
}

impl Disk<Stubborn> {
    fn stubborn(images: Images, left: i64) -> Self {
        let left = Arc::new(std::sync::atomic::AtomicI64::new(left));
        Self(
            images
                .map(|image| Stubborn { bytes: RamMedium::from_bytes(image), left: left.clone() }),
        )
    }

    fn heal(&self, wholly: bool) {
        let left = if wholly { i64::MAX } else { 0 };
        self.0[0].left.store(left, std::sync::atomic::Ordering::Relaxed);
    }
}

impl Medium for Stubborn {
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
        self.change()?;
        self.bytes.sync()
    }
}
