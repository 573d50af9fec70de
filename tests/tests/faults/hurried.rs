//! The user's next message comes at any moment of idle work.

use garret_tests::disk::Disk;
use garret_tests::talk::session;
use smol::future::or;

use crate::power::{RICH, nearly_full};
use crate::talk::{Talk, WINDOW, model, options};

/// At any word that a companion was saying when the message came, the records are whole, the
/// message is answered, and the work is done by the time that nobody waits long enough.
#[test]
fn idle_work_is_dropped_at_any_event_of_the_model() {
    let base = nearly_full();
    let on = || Talk::on(Disk::of(base.clone()), model(WINDOW), options());
    let mut whole = on();
    whole.say(RICH);
    whole.idle();
    let (facts, pins) = (whole.facts(), pinned(&whole));
    for events in (0..).step_by(STEP) {
        let mut talk = on();
        talk.say(RICH);
        let silent = talk.model.silent_after(events);
        let session = session();
        let work = async { Some(talk.agent.idle(&session).await) };
        let message = async { silent.recv().await.ok().and(None) };
        let idled = smol::block_on(or(work, message));
        drop(silent);
        talk.model.silent_after(usize::MAX);
        if idled.is_some() {
            assert!(events > 300, "there was something to be dropped");
            return;
        }
        talk.check();
        talk.say("And then?");
        talk.check();
        talk.idle();
        talk.check();
        assert_eq!((talk.facts(), pinned(&talk)), (facts.clone(), pins.clone()), "{events}");
    }
}

fn pinned(talk: &Talk) -> Vec<String> {
    let at = garret_core::time::WallTime {
        unix_ms: garret_tests::talk::NOW_MS + 86_400_000,
        confidence: garret_core::time::Confidence::Good,
    };
    talk.store().pinned(at).unwrap().into_iter().map(|fact| fact.text).collect()
}

/// Events from one drop to the next: a companion says far more in one answer.
const STEP: usize = 4;
