//! The power goes at every moment of a workload; what was acknowledged is there afterwards.

use garret_core::medium::Medium;
use garret_hal::media::{Cut, Faults, FaultyMedium, Op as MediumOp, RamMedium, Recording};

use crate::model::{Dump, Op, apply, dump, history, open, workload};

/// A workload as the medium saw it.
struct Run {
    recording: Recording,
    /// For each operation, how many of the medium's were done when it was acknowledged.
    acknowledged: Vec<usize>,
}

impl Run {
    fn record(image: Vec<u8>, ops: &[Op]) -> Self {
        let medium = FaultyMedium::with_image(image, Faults::default());
        let mut store = open(&medium);
        let mut acknowledged = Vec::new();
        for op in ops {
            if matches!(op, Op::Reopen) {
                drop(store);
                store = open(&medium);
            } else {
                apply(&store, op).unwrap();
            }
            acknowledged.push(usize::try_from(medium.ops()).unwrap());
        }
        drop(store);
        Self { recording: medium.recording(), acknowledged }
    }

    /// Before and after each operation of the medium and at some bytes within each write; a short
    /// one, such as the database's header, is cut more finely.
    fn cuts(&self) -> Vec<Cut> {
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
    fn allowed<'a>(&self, dumps: &'a [Dump], cut: Cut) -> &'a [Dump] {
        let done = self.acknowledged.iter().filter(|ops| **ops <= cut.ops).count();
        &dumps[done..dumps.len().min(done + 2)]
    }
}

fn survivor(image: &[u8]) -> Dump {
    let medium = RamMedium::from_bytes(image.to_vec());
    let found = dump(&open(&medium)).unwrap();
    assert!(medium.snapshot() == image, "opening and reading wrote to the medium");
    found
}

#[test]
fn nothing_acknowledged_is_lost_at_any_cut() {
    let ops = workload();
    let dumps = history(&ops);
    let run = Run::record(Vec::new(), &ops);
    let (mut images, mut in_flight) = (0, 0);
    for cut in run.cuts() {
        let allowed = run.allowed(&dumps, cut);
        for seed in [0, 1, 2 + cut.ops as u64, 1_000_003 * cut.ops as u64 + cut.torn as u64 + 5] {
            let found = survivor(&run.recording.image_after_cut(cut, seed));
            assert!(allowed.contains(&found), "cut {cut:?}, seed {seed}: {found:?}");
            images += 1;
            in_flight += usize::from(found != allowed[0]);
        }
    }
    eprintln!("{images} images, {in_flight} with the operation under way");
    assert!(images > 2_000, "the workload shrank to {images} images");
    assert!(in_flight > 0, "no cut came after the last write and before its acknowledgement");
}

/// The first write after a crash writes the recovery as well; that can be cut, too.
#[test]
fn recovery_can_be_cut_like_anything_else() {
    let ops = workload();
    let dumps = history(&ops);
    let run = Run::record(Vec::new(), &ops);
    let more = [
        Op::Accept { session: 2, text: "after the storm".to_owned(), ms: 3 },
        Op::Reply { session: 2, seq: 1, text: "calm".to_owned() },
    ];
    let cuts = run.cuts();
    for (nth, cut) in cuts.iter().enumerate().step_by(cuts.len() / 24) {
        let image = run.recording.image_after_cut(*cut, nth as u64);
        let before = survivor(&image);
        let at = dumps.iter().position(|dump| *dump == before).unwrap();
        let all: Vec<Op> = ops[..at].iter().chain(&more).cloned().collect();
        let after = history(&all)[at..].to_vec();
        let second = Run::record(image, &more);
        for cut in second.cuts().into_iter().step_by(3) {
            let found = survivor(&second.recording.image_after_cut(cut, cut.ops as u64 % 7));
            let allowed = second.allowed(&after, cut);
            assert!(allowed.contains(&found), "{nth}: cut {cut:?}: {found:?}");
        }
    }
}

/// A creation that was cut short, then cut short again in its second attempt.
#[test]
fn a_store_can_be_created_at_any_attempt() {
    let first = Run::record(Vec::new(), &workload()[..1]);
    let creation: Vec<_> =
        first.cuts().into_iter().filter(|cut| cut.ops < first.acknowledged[0]).collect();
    for (nth, cut) in creation.iter().enumerate().step_by(7) {
        let image = first.recording.image_after_cut(*cut, nth as u64);
        let second = Run::record(image, &workload()[..1]);
        let dumps = history(&workload()[..1]);
        for cut in second.cuts().into_iter().step_by(3) {
            let found = survivor(&second.recording.image_after_cut(cut, cut.ops as u64));
            assert!(dumps.contains(&found), "{cut:?}");
        }
    }
}

/// Without the medium's power everything fails cleanly, and nothing hangs or panics.
#[test]
fn a_store_without_power_says_so() {
    let medium = FaultyMedium::new(Faults::default());
    let store = open(&medium);
    let ops = workload();
    apply(&store, &ops[0]).unwrap();
    medium.set_faults(Faults { cut_after_ops: Some(0), ..Faults::default() });
    for _ in 0..2 {
        let error = apply(&store, &ops[1]).unwrap_err();
        assert!(error.to_string().contains("lost power"), "{error}");
    }
    assert!(store.sessions().unwrap_err().to_string().contains("lost power"));
    medium.set_faults(Faults::default());
    assert_eq!(dump(&store).unwrap(), history(&ops[..1])[1]);
    assert_eq!(medium.len(), store.file_len().map_err(|_| unreachable!()));
}
