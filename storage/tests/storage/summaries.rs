//! Summaries, states and traces: what is taken, what is refused, what is read back.

use garret_core::id::SessionId;
use garret_core::time::{Confidence, WallTime};
use garret_hal::media::RamMedium;
use garret_storage::{
    MAX_STATE_BYTES, NewReply, NewSummary, Selection, StateKind, Store, StoredFinish, SummaryError,
    SummaryId, SummaryMethod, WriteError,
};

use crate::rewrite::{CANARY, Disk, holds_canary};

const MODEL: [u8; 32] = [7; 32];

fn at(ms: i64) -> WallTime {
    WallTime { unix_ms: ms, confidence: Confidence::Good }
}

fn session() -> SessionId {
    "kitchen".parse().unwrap()
}

/// Turns said at 1,000 ms each, all answered 500 ms later but the last, where that waits.
pub(crate) fn say(store: &Store, turns: u64, last_waits: bool) {
    for turn in 1..=turns {
        let seq = store.accept(&session(), &format!("words {turn}"), at(1_000 * turn as i64));
        assert_eq!(seq.unwrap(), turn);
        if turn < turns || !last_waits {
            answer(store, turn, b"");
        }
    }
}

fn answer(store: &Store, turn: u64, trace: &[u8]) {
    let reply = NewReply {
        text: "noted",
        tokens: &[],
        model_fingerprint: &MODEL,
        finish: StoredFinish::Stop,
        at: at(1_000 * turn as i64 + 500),
        receipt: b"",
        trace,
    };
    store.reply(&session(), turn, reply).unwrap();
}

pub(crate) fn leaf(from: u64, to: u64) -> NewSummary<'static> {
    NewSummary {
        depth: 0,
        from,
        to,
        sources: &[],
        text: " shorter words ",
        tokens: 3,
        source_tokens: 10,
        method: SummaryMethod::Model,
        model_fingerprint: &MODEL,
    }
}

fn node<'a>(depth: u8, from: u64, to: u64, sources: &'a [SummaryId]) -> NewSummary<'a> {
    NewSummary { depth, sources, method: SummaryMethod::Extract, ..leaf(from, to) }
}

fn store() -> (Disk<RamMedium>, Store) {
    let disk = Disk::default();
    let store = disk.open();
    (disk, store)
}

fn compact(store: &Store, summaries: &[NewSummary<'_>]) -> Result<Vec<SummaryId>, SummaryError> {
    match store.compact_session(&session(), summaries, None, at(99)) {
        Ok(ids) => Ok(ids),
        Err(WriteError::Summary(error)) => Err(error),
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn what_was_stored_is_read_back_after_a_restart() {
    let (disk, store) = store();
    say(&store, 6, false);
    let leaves = [leaf(1, 2), leaf(3, 3), leaf(4, 5)];
    let ids = store.compact_session(&session(), &leaves, Some(b"prefix"), at(99)).unwrap();
    assert_eq!(ids, [1, 2, 3].map(SummaryId));
    assert_eq!(compact(&store, &[node(1, 1, 3, &ids[..2])]), Ok(vec![SummaryId(4)]));
    drop(store);
    let store = disk.open();
    let all = store.summaries(&session()).unwrap();
    let shape = |summary: &garret_storage::Summary| {
        (summary.id.0, summary.depth, summary.from, summary.to, summary.parent.map(|id| id.0))
    };
    let shapes: Vec<_> = all.iter().map(shape).collect();
    assert_eq!(
        shapes,
        [(1, 0, 1, 2, Some(4)), (4, 1, 1, 3, None), (2, 0, 3, 3, Some(4)), (3, 0, 4, 5, None)]
    );
    let roots = store.roots(&session()).unwrap();
    assert_eq!(roots.iter().map(|root| root.id.0).collect::<Vec<_>>(), [4, 3]);
    let top = store.summary(&session(), SummaryId(4)).unwrap().unwrap();
    assert_eq!((&*top.text, top.tokens, top.source_tokens), ("shorter words", 3, 10));
    assert_eq!((top.method, top.model_fingerprint), (SummaryMethod::Extract, MODEL));
    assert_eq!(top.sources, [SummaryId(1), SummaryId(2)]);
    assert_eq!((top.made_ms, top.earliest_ms, top.latest_ms), (99, 1_000, 3_500));
    assert_eq!(top.clock, Confidence::Good);
    assert_eq!(store.summary(&session(), SummaryId(5)).unwrap(), None);
    assert_eq!(store.frontier(&session()).unwrap(), 5);
    assert_eq!(store.state(&session(), StateKind::Context).unwrap().unwrap(), b"prefix");
}

/// A system before ours took the highest covered turn for the frontier: what was skipped was lost.
#[test]
fn the_frontier_is_never_beyond_a_gap() {
    let (_, store) = store();
    say(&store, 9, false);
    compact(&store, &[leaf(4, 6)]).unwrap();
    let after = |turn| store.leaf_after(&session(), turn).unwrap();
    assert_eq!(store.frontier(&session()).unwrap(), 0);
    assert_eq!([0, 3, 4, u64::MAX].map(after), [Some(4), Some(4), None, None]);
    compact(&store, &[leaf(1, 2)]).unwrap();
    assert_eq!(store.frontier(&session()).unwrap(), 2);
    assert_eq!([0, 1, 2].map(after), [Some(1), Some(4), Some(4)]);
    compact(&store, &[leaf(3, 3)]).unwrap();
    assert_eq!(store.frontier(&session()).unwrap(), 6);
    assert_eq!(after(6), None);
}

#[test]
fn what_does_not_fit_is_refused_and_nothing_is_written() {
    let (_, store) = store();
    say(&store, 8, true);
    let ids = compact(&store, &[leaf(1, 2), leaf(3, 4), leaf(6, 6)]).unwrap();
    let before = store.summaries(&session()).unwrap();
    let gap = [ids[1], ids[2]];
    let backwards = [ids[1], ids[0]];
    let disk = [ids[0], ids[1]];
    for (wrong, words) in [
        (NewSummary { text: " \n\t", ..leaf(5, 5) }, "has no words"),
        (NewSummary { tokens: 10, ..leaf(5, 5) }, "10 tokens for 10"),
        (NewSummary { tokens: 0, source_tokens: 0, ..leaf(5, 5) }, "0 tokens for 0"),
        (leaf(0, 1), "turns 1 to 8"),
        (leaf(6, 5), "turns 1 to 8"),
        (leaf(7, 9), "turns 1 to 8"),
        (leaf(7, u64::MAX), "turns 1 to 8"),
        (leaf(2, 2), "turn 2 is covered by s1"),
        (leaf(5, 7), "turn 6 is covered by s3"),
        (leaf(1, 8), "covered"),
        (leaf(7, 8), "turn 8 has no reply"),
        (NewSummary { depth: 1, ..leaf(5, 5) }, "depth 0"),
        (node(1, 1, 2, &ids[..1]), "two sources"),
        (node(1, 3, 6, &gap), "s3 doesn't start where s2 ends"),
        (node(1, 3, 2, &backwards), "s1 doesn't start where s2 ends"),
        (node(1, 1, 2, &[ids[0], ids[0]]), "s1 doesn't start where s1 ends"),
        (node(2, 1, 4, &disk), "depth 1"),
        (node(0, 1, 4, &disk), "depth 1"),
        (node(1, 1, 5, &disk), "turns 1 to 4"),
        (node(1, 1, 4, &[ids[0], SummaryId(9)]), "no summary s9"),
    ] {
        // What comes before a wrong one isn't written either.
        for batch in [vec![wrong], vec![leaf(5, 5), wrong]] {
            let error = compact(&store, &batch).unwrap_err().to_string();
            assert!(batch.len() == 2 || error.contains(words), "{error}");
            assert_eq!(store.summaries(&session()).unwrap(), before);
        }
    }
    let top = compact(&store, &[node(1, 1, 4, &disk)]).unwrap();
    let error = compact(&store, &[node(1, 1, 4, &disk)]).unwrap_err();
    assert_eq!(error, SummaryError::HasParent { id: ids[0], parent: top[0] });
    let error = compact(&store, &[leaf(5, 5), node(2, 1, 5, &[top[0], SummaryId(5)])]);
    let expected = SummaryError::OtherDepth { id: SummaryId(5), depth: 0, expected: 1 };
    assert_eq!(error, Err(expected));
    let unknown = store.compact_session(&"x".parse().unwrap(), &[leaf(1, 1)], None, at(0));
    assert!(matches!(unknown, Err(WriteError::UnknownSession { .. })));
}

/// The reply makes the difference.
#[test]
fn the_newest_turn_is_summed_up_once_it_is_answered() {
    let (_, store) = store();
    say(&store, 2, true);
    assert_eq!(compact(&store, &[leaf(1, 2)]), Err(SummaryError::Unanswered { turn: 2 }));
    answer(&store, 2, b"");
    compact(&store, &[leaf(1, 2)]).unwrap();
    assert_eq!(store.frontier(&session()).unwrap(), 2);
}

#[test]
fn states_are_set_replaced_and_removed() {
    let (disk, store) = store();
    let wrong = store.set_state(&session(), StateKind::Gate, b"x");
    assert!(matches!(wrong, Err(WriteError::UnknownSession { .. })));
    assert_eq!(store.state(&session(), StateKind::Gate).unwrap(), None);
    say(&store, 1, true);
    let all = [StateKind::Context, StateKind::Carry, StateKind::Gate, StateKind::Work];
    for kind in all {
        store.set_state(&session(), kind, kind.as_str().as_bytes()).unwrap();
    }
    store.set_state(&session(), StateKind::Carry, b"").unwrap();
    store.set_state(&session(), StateKind::Work, &[9; MAX_STATE_BYTES]).unwrap();
    let large = store.set_state(&session(), StateKind::Gate, &[9; MAX_STATE_BYTES + 1]);
    assert!(large.unwrap_err().to_string().contains("65537"));
    drop(store);
    let store = disk.open();
    let states = all.map(|kind| store.state(&session(), kind).unwrap());
    let expected = [Some(b"context".to_vec()), None, Some(b"gate".to_vec())];
    assert_eq!(states[..3], expected);
    assert_eq!(states[3], Some(vec![9; MAX_STATE_BYTES]));
    // With a compaction, and by itself.
    store.compact_session(&session(), &[], Some(b"new"), at(0)).unwrap();
    assert_eq!(store.state(&session(), StateKind::Context).unwrap(), Some(b"new".to_vec()));
    store.compact_session(&session(), &[], Some(b""), at(0)).unwrap();
    assert_eq!(store.state(&session(), StateKind::Context).unwrap(), None);
}

#[test]
fn a_trace_comes_with_its_reply() {
    let (disk, store) = store();
    say(&store, 2, true);
    answer(&store, 2, &[5; 70_000]);
    drop(store);
    let store = disk.open();
    assert_eq!(store.trace(&session(), 1).unwrap(), None);
    assert_eq!(store.trace(&session(), 2).unwrap(), Some(vec![5; 70_000]));
    assert_eq!(store.receipt(&session(), 2).unwrap(), Some(Vec::new()));
}

#[test]
fn all_of_it_moves_with_a_rename_and_goes_with_a_delete() {
    let (_, store) = store();
    say(&store, 3, false);
    compact(&store, &[leaf(1, 2)]).unwrap();
    store.set_state(&session(), StateKind::Gate, b"x").unwrap();
    let other: SessionId = "attic".parse().unwrap();
    store.rename(&session(), &other).unwrap();
    assert_eq!(store.frontier(&other).unwrap(), 2);
    assert_eq!(store.summaries(&other).unwrap().len(), 1);
    assert_eq!(store.summaries(&session()).unwrap(), []);
    store.rename(&other, &session()).unwrap();
    store.vacuum().unwrap();
    assert_eq!(store.frontier(&session()).unwrap(), 2);
    store.delete(&session()).unwrap();
    say(&store, 1, false);
    assert_eq!(store.frontier(&session()).unwrap(), 0);
    assert_eq!(store.summaries(&session()).unwrap(), []);
    assert_eq!(store.state(&session(), StateKind::Gate).unwrap(), None);
    assert_eq!(store.trace(&session(), 1).unwrap(), None);
}

/// A prompt of one conversation may quote another one.
#[test]
fn a_delete_removes_what_the_model_saw_elsewhere() {
    let (_, store) = store();
    let attic: SessionId = "attic".parse().unwrap();
    store.accept(&attic, "The key is under the mat.", at(0)).unwrap();
    say(&store, 2, true);
    answer(&store, 2, b"> The key is under the mat.");
    store.delete(&attic).unwrap();
    assert_eq!(store.trace(&session(), 2).unwrap(), None);
}

fn forget_turns(store: &Store, turns: &[u64]) {
    let turns: Vec<_> = turns.iter().map(|turn| (session(), *turn)).collect();
    let selection = Selection { turns: &turns, ..Selection::default() };
    assert!(store.erase(&selection, at(0), false).unwrap().unfinished.is_none());
    assert_eq!(store.verify().unwrap().problems, []);
}

/// What a summary says can be what was forgotten.
#[test]
fn what_covers_a_forgotten_turn_goes_and_what_it_leaves_can_be_summed_up_again() {
    let (_, store) = store();
    let attic: SessionId = "attic".parse().unwrap();
    store.accept(&attic, "Something else.", at(0)).unwrap();
    store.set_state(&attic, StateKind::Gate, b"x").unwrap();
    store.set_state(&attic, StateKind::Carry, b"y").unwrap();
    say(&store, 8, true);
    answer(&store, 8, b"trace");
    let ids = compact(&store, &[leaf(1, 2), leaf(3, 4), leaf(5, 6), leaf(7, 7)]).unwrap();
    let pairs = [node(1, 1, 4, &ids[..2]), node(1, 5, 7, &ids[2..])];
    let pairs = compact(&store, &pairs).unwrap();
    let top = compact(&store, &[node(2, 1, 7, &pairs)]).unwrap();
    assert_eq!(top, [SummaryId(7)]);
    forget_turns(&store, &[3]);
    let left: Vec<_> = store.summaries(&session()).unwrap();
    let left: Vec<_> = left.iter().map(|summary| (summary.id.0, summary.parent)).collect();
    let parent = Some(pairs[1]);
    assert_eq!(left, [(1, None), (3, parent), (6, None), (4, parent)]);
    assert_eq!(store.frontier(&session()).unwrap(), 3);
    assert_eq!(store.state(&attic, StateKind::Carry).unwrap(), None);
    let gate = store.state(&attic, StateKind::Gate).unwrap();
    assert_eq!(gate.as_deref(), Some(&b"x"[..]), "it has no words");
    assert_eq!(store.trace(&session(), 8).unwrap(), None);
    let erasure = store.erasures().unwrap()[0];
    assert_eq!((erasure.summaries, erasure.states, erasure.traces), (3, 1, 1));
    // No number is given again. A forgotten turn is no gap.
    assert_eq!(compact(&store, &[leaf(4, 4)]), Ok(vec![SummaryId(8)]));
    assert_eq!(store.frontier(&session()).unwrap(), 7);
    let again = [SummaryId(1), SummaryId(8)];
    assert_eq!(compact(&store, &[node(1, 1, 4, &again)]), Ok(vec![SummaryId(9)]));
    forget_turns(&store, &[7, 8]);
    assert_eq!(store.frontier(&session()).unwrap(), 8);
    assert_eq!(compact(&store, &[leaf(7, 8)]), Err(SummaryError::Forgotten { from: 7, to: 8 }));
    assert_eq!(
        compact(&store, &[leaf(5, 6)]),
        Err(SummaryError::Covered { turn: 5, by: SummaryId(3) })
    );
}

#[test]
fn forgotten_turns_are_covered_without_a_summary() {
    let (_, store) = store();
    say(&store, 3, false);
    forget_turns(&store, &[1, 2]);
    assert_eq!(store.frontier(&session()).unwrap(), 2);
    compact(&store, &[leaf(2, 3)]).unwrap();
    assert_eq!(store.frontier(&session()).unwrap(), 3);
    assert_eq!(store.verify().unwrap().problems, []);
}

/// Words that are nowhere but in what a companion made of others.
#[test]
fn words_of_a_summary_or_a_state_are_forgotten_like_others() {
    let (disk, store) = store();
    say(&store, 3, false);
    compact(&store, &[NewSummary { text: "of Xylophone-7731", ..leaf(1, 2) }]).unwrap();
    compact(&store, &[leaf(3, 3)]).unwrap();
    store.set_state(&session(), StateKind::Carry, b"is it xylophone-7731?").unwrap();
    let selection = Selection { pattern: Some(CANARY), ..Selection::default() };
    let forgotten = store.erase(&selection, at(0), false).unwrap();
    let ids: Vec<_> = forgotten.items.iter().map(|item| (&*item.id, item.kind.as_str())).collect();
    assert_eq!(ids, [("kitchen/s1", "summary"), ("kitchen/carry", "state")]);
    assert_eq!(store.verify_erased(CANARY.as_bytes()).unwrap(), []);
    assert!(!holds_canary(&disk.images()));
    assert_eq!(store.frontier(&session()).unwrap(), 0);
    // In a state alone.
    store.set_state(&session(), StateKind::Carry, b"is it xylophone-7731?").unwrap();
    assert!(store.erase(&selection, at(0), false).unwrap().erasure.is_some());
    assert_eq!(store.verify_erased(CANARY.as_bytes()).unwrap(), []);
    assert!(store.erase(&selection, at(0), false).unwrap().erasure.is_none());
}
