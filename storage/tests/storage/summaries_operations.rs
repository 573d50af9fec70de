//! Summaries under random operations and power cuts: every turn covered once at most, the frontier
//! never beyond a gap, a compaction there whole or not at all.

use garret_hal::media::RamMedium;
use garret_storage::Store;
use proptest::collection::vec;
use proptest::prelude::*;

use crate::crash::Run;
use crate::model::{NAMES, Pair};
use crate::rewrite::Disk;
use crate::summaries_model::{Dump, Model, Op, Plan, apply, dump};

fn plan() -> impl Strategy<Value = Plan> {
    prop_oneof![
        6 => (1..4_u64, 1..3_usize).prop_map(|(turns, words)| Plan::Next { turns, words }),
        3 => (0..12_u64, 1..4_u64).prop_map(|(from, turns)| Plan::Run { from, turns }),
        5 => (0..3_u8, 0..2_usize, 2..4_usize)
            .prop_map(|(depth, skip, count)| Plan::Roots { depth, skip, count }),
        1 => (0..9_u64, 0..9_u64).prop_map(|(first, second)| Plan::Two { first, second }),
    ]
}

fn op() -> impl Strategy<Value = Op> {
    // Most of it happens in one session.
    let session = prop_oneof![6 => Just(0_u8), 1 => 0..NAMES];
    let some = any::<usize>();
    prop_oneof![
        10 => session.clone().prop_map(Op::Accept),
        8 => (session.clone(), 0..3_u8).prop_map(|(session, trace)| Op::Reply { session, trace }),
        10 => (session.clone(), vec(plan(), 0..4), prop::option::weighted(0.5, 0..3_u8))
            .prop_map(|(session, plans, context)| Op::Compact { session, plans, context }),
        2 => (session.clone(), 0..4_usize, 0..3_u8)
            .prop_map(|(session, kind, bytes)| Op::SetState { session, kind, bytes }),
        2 => (session.clone(), some).prop_map(|(session, turn)| Op::ForgetTurn { session, turn }),
        1 => (0..NAMES, 0..NAMES).prop_map(|(session, to)| Op::Rename { session, to }),
        1 => (1..NAMES).prop_map(Op::Delete),
        1 => Just(Op::Fold),
        1 => Just(Op::Rewrite),
        2 => Just(Op::Reopen),
    ]
}

/// What holds whatever was asked for.
fn hold(model: &Model, found: &Dump) {
    for (name, session) in &model.sessions {
        let found = &found[name];
        for turn in 1..=found.frontier {
            assert!(session.leaf_of(turn).len() <= 1, "turn {turn} is covered twice");
        }
        for (id, node) in &found.summaries {
            for source in &node.sources {
                assert_eq!(found.summaries[source].parent, Some(*id));
            }
            if let Some(parent) = node.parent {
                assert!(found.summaries[&parent].sources.contains(id));
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 40,
        failure_persistence: None,
        ..Default::default()
    })]

    #[test]
    fn random_operations_match_the_model(ops in vec(op(), 60)) {
        let disk = Disk::<RamMedium>::default();
        let (mut store, mut model) = (disk.open(), Model::default());
        for op in &ops {
            if matches!(op, Op::Reopen) {
                drop(store);
                store = disk.open();
            } else {
                apply(&store, &mut model, op);
            }
            let found = dump(&store);
            prop_assert_eq!(&found, &model.dump(), "after {:?}", op);
            hold(&model, &found);
            prop_assert_eq!(store.verify().unwrap().problems, []);
        }
        drop(store);
        prop_assert_eq!(dump(&disk.open()), model.dump());
    }
}

/// Seven turns with replies, some with a trace.
fn said() -> Vec<Op> {
    let turn = |trace| [Op::Accept(0), Op::Reply { session: 0, trace }];
    [0, 3, 200, 1, 0, 2, 1].into_iter().flat_map(turn).collect()
}

/// Every way that a compaction can go: by the journal, directly as it is large, refused; and what
/// is beside it.
fn workload() -> Vec<Op> {
    let compact = |plans: &[Plan], context| {
        let plans = plans.to_vec();
        Op::Compact { session: 0, plans, context }
    };
    let next = |turns| Plan::Next { turns, words: 1 };
    let pair = Plan::Roots { depth: 0, skip: 0, count: 2 };
    vec![
        compact(&[next(2)], Some(9)),
        compact(&[next(1), next(1), pair], Some(200)),
        Op::Accept(1),
        Op::Reply { session: 1, trace: 7 },
        compact(&[next(9)], Some(1)),
        Op::Reopen,
        compact(&[Plan::Next { turns: 1, words: 14_000 }, pair], Some(8)),
        Op::SetState { session: 0, kind: 2, bytes: 5 },
        Op::Fold,
        Op::Rename { session: 0, to: 2 },
        Op::SetState { session: 2, kind: 2, bytes: 0 },
        Op::Delete(2),
        Op::Accept(0),
    ]
}

/// The process dies between a summary and its links, the frontier, the context: all or nothing.
#[test]
fn a_compaction_is_there_whole_or_not_at_all_at_any_cut() {
    let (pair, mut model) = (Pair::<RamMedium>::default(), Model::default());
    let store = pair.open();
    said().iter().for_each(|op| apply(&store, &mut model, op));
    store.fold().unwrap();
    let before = pair.bytes();
    drop(store);
    let (ops, mut dumps) = (workload(), vec![model.dump()]);
    let run = Run::perform(before, &ops, |store: &Store, op| {
        let reopens = matches!(op, Op::Reopen);
        if !reopens {
            apply(store, &mut model, op);
        }
        dumps.push(model.dump());
        reopens
    });
    let most = dumps.iter().filter_map(|dump| dump.get(&0)).map(|session| session.frontier).max();
    assert_eq!(most, Some(5), "the workload doesn't do what it is for");
    let (mut images, mut in_flight) = (0, 0);
    for cut in run.cuts() {
        let allowed = run.allowed(&dumps, cut);
        for survivors in run.survivors(cut) {
            let store = Pair::of(survivors).open();
            let found = dump(&store);
            assert!(allowed.contains(&found), "cut {cut:?}: {found:?}");
            // It reads everything; a few will do.
            if images % 16 == 0 {
                assert_eq!(store.verify().unwrap().problems, []);
            }
            images += 1;
            in_flight += usize::from(found != allowed[0]);
        }
    }
    eprintln!("{images} images, {in_flight} with a write under way");
    assert!(images > 300 && in_flight > 0);
}
