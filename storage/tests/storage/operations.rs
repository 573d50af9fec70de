//! Random operations, each answer and each state compared with the model.

use garret_hal::media::RamMedium;
use garret_storage::Store;
use proptest::collection::vec;
use proptest::prelude::*;

use crate::model::{Model, NAMES, Op, Pair, Said, apply, dump, history, open, workload};

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => ".{0,12}",
        2 => "[a-z ]{0,300}",
        1 => (1..5_usize).prop_map(|pages| "\u{65e5}\u{672c}x".repeat(pages * 700)),
    ]
}

fn said() -> impl Strategy<Value = Said> {
    (0..NAMES, 0..4_u8, text(), prop::option::of(0..6_u8))
        .prop_map(|(session, speaker, text, id)| Said { session, speaker, text, id })
}

pub(crate) fn op() -> impl Strategy<Value = Op> {
    let session = 0..NAMES;
    prop_oneof![
        8 => (session.clone(), text(), any::<i64>())
            .prop_map(|(session, text, ms)| Op::Accept { session, text, ms }),
        6 => (session.clone(), 0..6_u64, text())
            .prop_map(|(session, seq, text)| Op::Reply { session, seq, text }),
        2 => (session.clone(), session.clone())
            .prop_map(|(session, to)| Op::Rename { session, to }),
        1 => (session.clone(), text()).prop_map(|(session, title)| Op::Title { session, title }),
        2 => session.prop_map(|session| Op::Delete { session }),
        2 => vec(said(), 0..8).prop_map(Op::Import),
        2 => Just(Op::Reopen),
        1 => Just(Op::Fold),
    ]
}

fn check(ops: &[Op], open: impl Fn() -> Store) -> Result<(), TestCaseError> {
    let mut model = Model::default();
    let mut store = open();
    for op in ops {
        let expected = model.apply(op);
        if matches!(op, Op::Reopen) {
            drop(store);
            store = open();
        } else {
            prop_assert_eq!(apply(&store, op)?, expected, "{:?}", op);
        }
        prop_assert_eq!(dump(&store)?, model.dump(), "after {:?}", op);
    }
    drop(store);
    prop_assert_eq!(dump(&open())?, model.dump());
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 40,
        failure_persistence: None,
        ..Default::default()
    })]

    #[test]
    fn random_operations_match_the_model(ops in vec(op(), 60)) {
        let pair = Pair::<RamMedium>::default();
        check(&ops, || pair.open())?;
    }

    #[test]
    fn without_a_journal_as_well(ops in vec(op(), 20)) {
        let medium = RamMedium::new();
        check(&ops, || open(&medium))?;
    }
}

#[test]
fn the_fixed_workload_matches_the_model() {
    let (pair, medium) = (Pair::<RamMedium>::default(), RamMedium::new());
    check(&workload(), || pair.open()).unwrap();
    check(&workload(), || open(&medium)).unwrap();
    let last = history(&workload()).pop().unwrap();
    assert!(
        last.sessions.iter().any(|session| session.turns.iter().any(|turn| turn.reply.is_some()))
    );
}

/// Retrieved views must be usable while the store takes the next message.
#[test]
fn views_see_one_moment_and_the_store_can_be_used_meanwhile() {
    let store = open(&RamMedium::new());
    let ops = workload();
    apply(&store, &ops[0]).unwrap();
    let id = crate::model::id(0);
    store
        .with_turns(&id, 1, |turns| {
            apply(&store, &ops[1]).unwrap();
            store.delete(&id).unwrap();
            for op in &ops[2..5] {
                apply(&store, op).unwrap();
            }
            assert_eq!(turns.len(), 1);
            assert_eq!(turns[0].user, "My name is Ada and I keep bees.");
            assert_eq!(turns[0].reply, None);
        })
        .unwrap();
}

#[test]
fn turns_are_handed_out_from_a_number_on() {
    let store = open(&RamMedium::new());
    let id = crate::model::id(0);
    for ms in 0..5 {
        apply(&store, &Op::Accept { session: 0, text: ms.to_string(), ms }).unwrap();
    }
    let from = |seq| {
        store.with_turns(&id, seq, |turns| turns.iter().map(|turn| turn.seq).collect::<Vec<_>>())
    };
    assert_eq!(from(0).unwrap(), [1, 2, 3, 4, 5]);
    assert_eq!(from(4).unwrap(), [4, 5]);
    assert_eq!(from(6).unwrap(), [0_u64; 0]);
    assert_eq!(from(u64::MAX).unwrap(), [0_u64; 0]);
}

/// A message at the limit is stored whole; one byte more is refused before anything is written.
#[test]
fn the_size_limit_is_exact() {
    let medium = RamMedium::new();
    let store = open(&medium);
    let text = "x".repeat(garret_storage::MAX_BYTES);
    let op = Op::Accept { session: 0, text: format!("{text}x"), ms: 0 };
    let error = apply(&store, &op).unwrap_err();
    assert!(error.to_string().contains("16777217"), "{error}");
    assert_eq!(store.file_len().unwrap(), 0);
    apply(&store, &Op::Accept { session: 0, text: text.clone(), ms: 0 }).unwrap();
    let whole = store.with_turns(&crate::model::id(0), 1, |turns| turns[0].user == text);
    assert!(whole.unwrap());
}
