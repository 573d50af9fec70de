//! What waits for a vector, kept while a store is open: the same as what one finds that is opened
//! anew, whatever happened before.

use garret_core::id::SessionId;
use garret_core::time::{Confidence, WallTime};
use garret_storage::search::Speaker;
use garret_storage::vectors::UnitKey;
use garret_storage::{FactSource, ImportedTurn, NewFact, NewReply, Selection, Store, StoredFinish};
use proptest::collection::vec as many;
use proptest::prelude::*;

use crate::cases;
use crate::rewrite::Disk;
use crate::vectors::vector;

const AT: WallTime = WallTime { unix_ms: 1_767_225_600_000, confidence: Confidence::Good };
const DIMS: usize = 8;

#[derive(Clone, Debug)]
enum Step {
    Say(u8, &'static str),
    Answer(u8),
    Fact(u8),
    Import(u8, usize),
    Delete(u8),
    ForgetWord,
    /// At most so many are asked for, and each but the first few gets its vector.
    Embed(usize, usize),
    /// Another embedder.
    Set(u8),
    Compact,
    Reopen,
}

fn step() -> impl Strategy<Value = Step> {
    let text = prop::sample::select(vec!["Ada keeps bees.", "Where is my hat?", " ", "!"]);
    prop_oneof![
        6 => (0..3_u8, text).prop_map(|(session, text)| Step::Say(session, text)),
        3 => (0..3_u8).prop_map(Step::Answer),
        2 => (0..9_u8).prop_map(Step::Fact),
        1 => (0..3_u8, 1..9_usize).prop_map(|(session, count)| Step::Import(session, count)),
        1 => (0..3_u8).prop_map(Step::Delete),
        1 => Just(Step::ForgetWord),
        6 => (0..9_usize, 0..3_usize).prop_map(|(most, left)| Step::Embed(most, left)),
        1 => (0..2_u8).prop_map(Step::Set),
        1 => Just(Step::Compact),
        1 => Just(Step::Reopen),
    ]
}

fn id(session: u8) -> SessionId {
    format!("s{session}").parse().unwrap()
}

fn set(store: &Store, embedder: u8) {
    store.set_embedder([embedder; 32], DIMS, garret_hal::kernels::detect(), None).unwrap();
}

fn answer(store: &Store, session: &SessionId) {
    let Some(turn) = store.session(session).unwrap().map(|info| info.turns) else { return };
    let reply = NewReply {
        text: "In the hall.",
        tokens: &[],
        model_fingerprint: &[0; 32],
        finish: StoredFinish::Stop,
        at: AT,
        receipt: b"",
        trace: &[],
    };
    // One that has a reply, or was forgotten, stays as it is.
    let _ = store.reply(session, turn, reply);
}

fn import(store: &Store, session: &SessionId, count: usize) {
    let texts: Vec<String> = (0..count).map(|number| format!("Ada's number {number}.")).collect();
    let turn = |text| {
        let speaker = Speaker::Named("Ada");
        ImportedTurn { session, speaker, text, at: AT, id: None }
    };
    store.import_turns(&texts.iter().map(|text| turn(text)).collect::<Vec<_>>()).unwrap();
}

/// Takes a step; those that ask for what isn't there change nothing.
fn take(store: &Store, step: &Step) {
    match *step {
        Step::Say(session, text) => drop(store.accept(&id(session), text, AT).unwrap()),
        Step::Answer(session) => answer(store, &id(session)),
        Step::Fact(number) => {
            let text = format!("Hive {number} is full.");
            let fact = NewFact { text: &text, source: FactSource::User, ..NewFact::default() };
            drop(store.add_fact(&fact, AT).unwrap());
        }
        Step::Import(session, count) => import(store, &id(session), count),
        Step::Delete(session) => drop(store.delete(&id(session))),
        Step::ForgetWord => {
            let selection = Selection { pattern: Some("hat"), ..Selection::default() };
            drop(store.erase(&selection, AT, false).unwrap());
        }
        Step::Embed(most, left) => {
            let found = store.unembedded(most).unwrap();
            let made = |(key, text): &(UnitKey, String)| (*key, vector(text.len() as u64, DIMS));
            let made: Vec<_> = found.iter().skip(left).map(made).collect();
            assert_eq!(store.add_vectors(&made).unwrap(), made.len());
        }
        Step::Set(embedder) => set(store, embedder),
        Step::Compact => drop(store.vacuum().unwrap()),
        Step::Reopen => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: cases(64), failure_persistence: None, ..Default::default()
    })]

    #[test]
    fn what_waits_is_what_a_store_opened_anew_finds(
        steps in many((step(), 0..12_usize), 1..40),
    ) {
        let (disk, mut embedder) = (Disk::default(), 0);
        let mut store = disk.open();
        set(&store, embedder);
        for (step, limit) in steps {
            take(&store, &step);
            match step {
                Step::Set(other) => embedder = other,
                Step::Reopen => {
                    drop(store);
                    store = disk.open();
                    set(&store, embedder);
                }
                _ => {}
            }
            let twin = Disk::of(disk.images()).open();
            set(&twin, embedder);
            prop_assert_eq!(store.unembedded(limit).unwrap(), twin.unembedded(limit).unwrap());
        }
    }
}
