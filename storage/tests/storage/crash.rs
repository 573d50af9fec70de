//! The power goes at every moment of a workload, in either file; what was acknowledged is there
//! afterwards.

use garret_core::medium::Medium;
use garret_hal::media::{Cut, Faults, FaultyMedium, Op as MediumOp, Recording};
use garret_storage::Store;

use crate::model::{Dump, Op, Pair, Said, apply, dump, history, workload};

/// What both files hold, the records first.
pub(crate) type Images = [Vec<u8>; 2];

/// A workload as the device saw it.
pub(crate) struct Run {
    recording: Recording,
    /// For each operation, how many of the device's were done when it was acknowledged.
    acknowledged: Vec<usize>,
}

impl Run {
    fn record(images: Images, ops: &[Op]) -> Self {
        Self::perform(images, ops, |store, op| match op {
            Op::Reopen => true,
            op => {
                apply(store, op).unwrap();
                false
            }
        })
    }

    /// Performs operations of any kind; `step` says that the store is to be opened anew.
    pub(crate) fn perform<O>(
        [records, journal]: Images,
        ops: &[O],
        mut step: impl FnMut(&Store, &O) -> bool,
    ) -> Self {
        let records = FaultyMedium::with_image(records, Faults::default());
        let pair = Pair { journal: records.beside(journal), records };
        let mut store = pair.open();
        let mut acknowledged = Vec::new();
        for op in ops {
            if step(&store, op) {
                drop(store);
                store = pair.open();
            }
            acknowledged.push(usize::try_from(pair.records.ops()).unwrap());
        }
        drop(store);
        Self { recording: pair.records.recording(), acknowledged }
    }

    /// Before and after each operation of the device and at some bytes within each write; a short
    /// one, such as the database's header or a frame, is cut more finely.
    pub(crate) fn cuts(&self) -> Vec<Cut> {
        let mut cuts = Vec::new();
        for (ops, op) in self.recording.ops().iter().enumerate() {
            cuts.push(Cut { ops, torn: 0 });
            if let MediumOp::Write { bytes, .. } = op {
                let len = bytes.len();
                let stride = if len <= 512 { (len / 12).max(1) } else { len / 3 };
                cuts.extend((stride..len).step_by(stride).map(|torn| Cut { ops, torn }));
            }
        }
        cuts.push(Cut { ops: self.recording.ops().len(), torn: 0 });
        cuts
    }

    /// What may be there after `cut`: everything acknowledged, and perhaps the operation under way.
    pub(crate) fn allowed<'a, D>(&self, dumps: &'a [D], cut: Cut) -> &'a [D] {
        let done = self.acknowledged.iter().filter(|ops| **ops <= cut.ops).count();
        &dumps[done..dumps.len().min(done + 2)]
    }

    fn images(&self, cut: Cut, seed: u64) -> Images {
        self.recording.images_after_cut(cut, seed).try_into().unwrap()
    }

    /// Both files with nothing and all of what wasn't synced, each with the one and with the other,
    /// and with some of it.
    pub(crate) fn survivors(&self, cut: Cut) -> Vec<Images> {
        let seed = 1_000_003 * cut.ops as u64 + cut.torn as u64 + 5;
        let ([records, journal], [more_records, more_journal]) =
            (self.images(cut, 0), self.images(cut, 1));
        let mut found = vec![
            self.images(cut, 2 + cut.ops as u64),
            self.images(cut, seed),
            [records.clone(), journal.clone()],
        ];
        if records != more_records {
            found.push([more_records.clone(), journal]);
        }
        if found[2][1] != more_journal {
            found.push([records, more_journal.clone()]);
        }
        found.push([more_records, more_journal]);
        found.sort_unstable();
        found.dedup();
        found
    }
}

fn survivor(images: &Images) -> Dump {
    let pair = Pair::of(images.clone());
    let found = dump(&pair.open()).unwrap();
    assert!(pair.bytes() == *images, "opening and reading wrote");
    found
}

/// The workload, then everything that the journal does: it is folded, used again from its start,
/// grows, lets large writes pass by, loses what is deleted, and waits for the next time.
fn long_workload() -> Vec<Op> {
    let accept = |session, text: &str, ms| Op::Accept { session, text: text.to_owned(), ms };
    let large = |kib: usize| "large ".repeat(kib * 1_024 / 6);
    let import = |texts: &[&str]| {
        let said = |(text, speaker): (&&str, u8)| Said {
            session: 0,
            speaker,
            text: (*text).to_owned(),
            id: u8::try_from(text.len() % 251).ok(),
        };
        Op::Import(texts.iter().zip([0, 1, 2]).map(said).collect())
    };
    let mut ops = workload();
    ops.extend([
        accept(3, "before the fold", 1),
        Op::Reply { session: 3, seq: 4, text: "ay".to_owned() },
        Op::Fold,
        accept(3, "after it", 2),
        Op::Title { session: 3, title: "Queens".to_owned() },
        Op::Reopen,
        accept(2, "from the start again", 3),
        Op::Reply { session: 2, seq: 1, text: large(63) },
        accept(2, &large(62), 4),
        accept(2, "the first in the second extent", 4),
        Op::Fold,
        accept(2, &large(66), 5),
        Op::Rename { session: 2, to: 4 },
        Op::Delete { session: 3 },
        import(&["a short one", "in the journal"]),
        import(&[&large(30), &large(40), "a long one"]),
        accept(4, "the last", 6),
    ]);
    ops
}

/// Cuts of `run` that are checked: all of them but for the long writes' inner ones.
#[test]
fn nothing_acknowledged_is_lost_at_any_cut() {
    let ops = long_workload();
    let dumps = history(&ops);
    let run = Run::record(Images::default(), &ops);
    let (mut images, mut in_flight, mut in_journal) = (0, 0, 0);
    for cut in run.cuts() {
        let allowed = run.allowed(&dumps, cut);
        for survivors in run.survivors(cut) {
            let found = survivor(&survivors);
            assert!(allowed.contains(&found), "cut {cut:?}: {found:?}");
            images += 1;
            in_flight += usize::from(found != allowed[0]);
            in_journal += usize::from(run.recording.owner(cut.ops) == Some(1));
        }
    }
    eprintln!("{images} images, {in_flight} with the operation under way, {in_journal} in journal");
    assert!(images > 1_500, "the workload shrank to {images} images");
    assert!(in_flight > 0, "no cut came after the last write and before its acknowledgement");
    assert!(in_journal > 300, "only {in_journal} cuts within the journal");
}

/// The first write after a crash writes the recovery as well; that can be cut, too.
#[test]
fn recovery_can_be_cut_like_anything_else() {
    let ops = long_workload();
    let dumps = history(&ops);
    let run = Run::record(Images::default(), &ops);
    let more = [
        Op::Accept { session: 2, text: "after the storm".to_owned(), ms: 3 },
        Op::Fold,
        Op::Accept { session: 2, text: "calm".to_owned(), ms: 4 },
    ];
    let cuts = run.cuts();
    for (nth, cut) in cuts.iter().enumerate().step_by(cuts.len() / 24) {
        let images = run.images(*cut, nth as u64);
        let before = survivor(&images);
        let at = dumps.iter().position(|dump| *dump == before).unwrap();
        let all: Vec<Op> = ops[..at].iter().chain(&more).cloned().collect();
        let after = history(&all)[at..].to_vec();
        let second = Run::record(images, &more);
        for cut in second.cuts().into_iter().step_by(3) {
            let found = survivor(&second.images(cut, cut.ops as u64 % 7));
            let allowed = second.allowed(&after, cut);
            assert!(allowed.contains(&found), "{nth}: cut {cut:?}: {found:?}");
        }
    }
}

/// A creation that was cut short, then cut short again in its second attempt. The journal is
/// created by the second write.
#[test]
fn a_store_can_be_created_at_any_attempt() {
    let ops = &workload()[..2];
    let dumps = history(ops);
    let first = Run::record(Images::default(), ops);
    for (nth, cut) in first.cuts().into_iter().enumerate().step_by(7) {
        let images = first.images(cut, nth as u64);
        let done = dumps.iter().position(|dump| *dump == survivor(&images)).unwrap();
        let second = Run::record(images, &ops[done..]);
        for cut in second.cuts().into_iter().step_by(3) {
            let found = survivor(&second.images(cut, cut.ops as u64));
            let allowed = second.allowed(&dumps[done..], cut);
            assert!(allowed.contains(&found), "{cut:?}");
        }
    }
}

/// Without the device's power everything fails cleanly, and nothing hangs or panics.
#[test]
fn a_store_without_power_says_so() {
    let records = FaultyMedium::new(Faults::default());
    let pair = Pair { journal: records.beside(Vec::new()), records };
    let store = pair.open();
    let ops = workload();
    apply(&store, &ops[0]).unwrap();
    pair.records.set_faults(Faults { cut_after_ops: Some(0), ..Faults::default() });
    for _ in 0..2 {
        let error = apply(&store, &ops[1]).unwrap_err();
        assert!(error.to_string().contains("lost power"), "{error}");
    }
    assert!(store.sessions().unwrap_err().to_string().contains("lost power"));
    pair.records.set_faults(Faults::default());
    assert_eq!(dump(&store).unwrap(), history(&ops[..1])[1]);
    assert_eq!(pair.records.len(), store.file_len().map_err(|_| unreachable!()));
}
