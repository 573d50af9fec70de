//! The power goes at every moment of a turn and of the idle work after it.

use std::sync::{Arc, Mutex};

use garret_hal::media::{Cut, Op, Recording};
use garret_tests::disk::Disk;
use garret_tests::talk::session;

use crate::talk::{Talk, WINDOW, model, options, remark};

/// A message after which there is everything to do: facts to be kept, a thought for the next turn,
/// turns and summaries to be summed up.
pub(crate) const RICH: &str = "I like tea and I live in Oslo. I work at Acme with my sister and her \
                               dogs on big projects. The garden is so much work.";

/// The files of a conversation in which the next message is followed by all kinds of idle work.
pub(crate) fn nearly_full() -> Vec<Vec<u8>> {
    let mut talk = Talk::new();
    for n in 1..120 {
        let mut rich = talk.killed();
        rich.say(RICH);
        let idled = rich.idle();
        let done = idled.summaries;
        if done.leaves > 0 && done.condensed > 0 && done.rebased > 0 {
            assert!(idled.extracted > 2 && idled.inferred, "{idled:?}");
            return talk.disk.images();
        }
        talk.say(&remark(n));
        talk.idle();
    }
    panic!("summaries are summed up at some time");
}

/// The effects of a turn, and of the idle time after it, on the device.
struct Run {
    recording: Recording,
    /// Operations of the device when the message was accepted, and when it was answered.
    accepted: usize,
    answered: usize,
    facts: Vec<String>,
    /// Tokens of the snapshot that was written at last.
    kept: u32,
}

impl Run {
    fn record(base: &[Vec<u8>]) -> Self {
        let disk = Disk::of(base.to_vec());
        let (seen, ops) = (Arc::new(Mutex::new(None)), disk.clone());
        let accepted = Arc::clone(&seen);
        let model = model(WINDOW).on_start(move || {
            accepted.lock().unwrap().get_or_insert(ops.ops());
        });
        let mut talk = Talk::on(disk, model, options());
        talk.say(RICH);
        let answered = talk.disk.ops();
        let idled = talk.idle();
        assert!(idled.inferred && idled.summaries.condensed > 0, "{idled:?}");
        talk.check();
        let facts = talk.facts();
        let snapshot = talk.agent.snapshot(&session(), 0, 1 << 20).unwrap();
        assert!(snapshot.write().unwrap());
        let kept = u32::try_from(snapshot.bytes() / 4).unwrap();
        let accepted = seen.lock().unwrap().unwrap();
        let disk = talk.disk.clone();
        drop(talk);
        Self { recording: disk.recording(), accepted, answered, facts, kept }
    }

    /// Before every operation of the device, with nothing or all of what wasn't synced, and in the
    /// middle of every write, with some of it.
    fn cuts(&self) -> impl Iterator<Item = (Cut, u64)> {
        self.recording.ops().iter().enumerate().flat_map(|(ops, op)| {
            let middle = if let Op::Write { bytes, .. } = op { bytes.len() / 2 } else { 0 };
            let torn = (middle > 0).then_some((Cut { ops, torn: middle }, 2 + ops as u64));
            let whole = Cut { ops, torn: 0 };
            [(whole, 0), (whole, 1)].into_iter().chain(torn)
        })
    }
}

#[test]
fn the_power_goes_at_any_moment_of_a_turn_and_of_idle_work() {
    let base = nearly_full();
    let before = Talk::on(Disk::of(base.clone()), model(WINDOW), options()).said();
    let run = Run::record(&base);
    for (cut, seed) in run.cuts() {
        let disk = Disk::after(&run.recording, cut, seed);
        let mut talk = Talk::on(disk, model(WINDOW), options());
        let said = talk.said();
        assert!(said.starts_with(&before), "{cut:?}");
        let newest = said.get(before.len());
        assert!(cut.ops < run.accepted || newest.is_some_and(|(_, text, _)| text == RICH));
        let reply = newest.and_then(|(.., reply)| reply.as_deref());
        assert!(cut.ops < run.answered || reply == Some("ok"), "{cut:?}: {newest:?}");
        talk.check();
        let resumed = talk.agent.resume(&session());
        assert!(resumed == 0 || resumed == run.kept, "{cut:?}: {resumed} tokens");
        talk.say("And then?");
        talk.check();
        talk.idle();
        talk.check();
        if newest.is_some() {
            assert_eq!(talk.facts(), run.facts, "{cut:?}, seed {seed}");
        }
    }
}
