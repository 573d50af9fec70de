//! Random operations on facts, each answer and each state compared with the reference.

use std::collections::BTreeMap;

use garret_core::time::{Confidence, WallTime};
use garret_hal::media::RamMedium;
use garret_storage::{FactFilter, FactId, Pin};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::facts_model::{
    MOMENTS, Model, Op, PREDICATES, SUBJECTS, Said, VALUES, apply, compare_moments, dump, in_order,
    workload,
};
use crate::model::Pair;

fn said() -> impl Strategy<Value = Said> {
    let slot = prop::option::weighted(0.9, (0..SUBJECTS.len(), 0..PREDICATES.len()));
    let start = prop::option::weighted(0.8, 0..MOMENTS);
    let length = prop::option::weighted(0.15, 1..6_i64);
    let derived = prop::option::weighted(0.2, any::<u64>());
    let session = prop::option::weighted(0.2, 0..3_u8);
    let flags = (prop::bool::weighted(0.2), prop::bool::weighted(0.2));
    (slot, 0..VALUES.len(), start, length, 0..MOMENTS, flags, derived, session).prop_map(
        |(slot, value, start, length, now, (wrong_clock, inferred), derived_from, session)| Said {
            slot,
            value,
            start,
            length,
            now,
            wrong_clock,
            inferred,
            derived_from,
            session,
        },
    )
}

pub(crate) fn op() -> impl Strategy<Value = Op> {
    let fact = any::<u64>();
    prop_oneof![
        10 => said().prop_map(|said| Op::Add(vec![said])),
        1 => (vec(said(), 1..4), 0..MOMENTS, any::<bool>()).prop_map(|(mut all, now, wrong)| {
            for said in &mut all {
                // One clock for a batch, and no references into it.
                (said.now, said.wrong_clock, said.derived_from) = (now, wrong, None);
            }
            Op::Add(all)
        }),
        4 => (fact, said()).prop_map(|(old, new)| Op::Supersede { old, new }),
        3 => (fact, 0..MOMENTS).prop_map(|(fact, at)| Op::Retract { fact, at }),
        3 => (fact, fact).prop_map(|(loser, survivor)| Op::Retire { loser, survivor }),
        1 => (fact, 0..MOMENTS).prop_map(|(fact, at)| Op::Touch { fact, at }),
        2 => (0..3_u8).prop_map(|session| Op::Accept { session }),
        1 => (0..3_u8).prop_map(|session| Op::Delete { session }),
        1 => Just(Op::Reopen),
        1 => Just(Op::Kill),
        1 => Just(Op::Fold),
    ]
}

fn check(ops: &[Op]) -> Result<(), TestCaseError> {
    let mut pair = Pair::<RamMedium>::default();
    let mut model = Model::default();
    let mut store = pair.open();
    for op in ops {
        let before = model.clone();
        let expected = in_order(model.apply(op));
        match op {
            Op::Reopen => {
                drop(store);
                store = pair.open();
            }
            Op::Kill => {
                // What the device has at this moment; the old store is closed on the old one.
                pair = Pair::of(pair.bytes());
                store = pair.open();
            }
            op => {
                let answer = in_order(apply(&store, &before, op)?);
                prop_assert_eq!(answer, expected, "{:?} on {:#?}", op, before);
            }
        }
        prop_assert_eq!(dump(&store), &*model.facts, "after {:?} on {:#?}", op, before);
        compare_moments(&store, &model);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: crate::cases(32),
        failure_persistence: None,
        ..Default::default()
    })]

    #[test]
    fn random_operations_on_facts_match_the_reference(ops in vec(op(), 40)) {
        check(&ops)?;
    }
}

#[test]
fn the_fixed_story_matches_the_reference() {
    check(&workload()).unwrap();
    let mut model = Model::default();
    let refused = workload().into_iter().filter(|op| {
        use crate::facts_model::Answer::{Added, Done};
        !matches!(model.apply(op), Added(_) | Done)
    });
    assert_eq!(refused.count(), 0);
    assert!(model.facts.len() > 8);
}

/// What pins should be after an operation: a fact that has an heir gives its pin to whoever is at the
/// end of that line, one that ends otherwise loses it.
fn follow(pins: &Pins, before: &Model, after: &Model) -> Pins {
    let row = |fact: u64| &after.facts[fact as usize - 1];
    let ended = |fact: u64| {
        let old = before.facts.get(fact as usize - 1);
        old.is_some_and(|old| old.end != row(fact).end)
    };
    let mut found = Pins::new();
    for (fact, pin) in pins {
        let mut at = *fact;
        while let Some(heir) = row(at).heir {
            at = heir;
        }
        if !ended(at) {
            let kept = found.entry(at).or_insert(*pin);
            *kept = (*kept).max(*pin);
        }
    }
    found
}

type Pins = BTreeMap<u64, Pin>;

fn check_pins(steps: &[(Op, Option<(u64, Pin)>)]) -> Result<(), TestCaseError> {
    let pair = Pair::<RamMedium>::default();
    let (mut store, mut model, mut pins) = (pair.open(), Model::default(), Pins::new());
    for (op, pin) in steps {
        let before = model.clone();
        model.apply(op);
        if matches!(op, Op::Reopen | Op::Kill) {
            drop(store);
            store = pair.open();
        } else {
            apply(&store, &before, op)?;
        }
        pins = follow(&pins, &before, &model);
        if let Some((fact, pin)) = pin
            && let Some(fact) = fact.checked_rem(model.facts.len() as u64).map(|fact| fact + 1)
        {
            let replaced = model.facts[fact as usize - 1].heir.is_some();
            let done = store.pin(FactId(fact), *pin);
            prop_assert_eq!(done.is_err(), replaced && *pin != Pin::None);
            match pin {
                Pin::None => drop(pins.remove(&fact)),
                pin if !replaced => {
                    let kept = pins.entry(fact).or_insert(*pin);
                    *kept = (*kept).max(*pin);
                }
                _ => {}
            }
        }
        let all = FactFilter { limit: 10_000, ..FactFilter::default() };
        let found = store.facts(&all).unwrap().facts.into_iter();
        let found: Pins = found
            .filter(|fact| fact.pinned != Pin::None)
            .map(|fact| (fact.id.0, fact.pinned))
            .collect();
        prop_assert_eq!(&found, &pins, "after {:?} and {:?} on {:#?}", op, pin, before);
        prop_assert_eq!(store.check_facts().unwrap(), [""; 0]);
        let now = WallTime { unix_ms: MOMENTS / 2, confidence: Confidence::Good };
        let shown = store.pinned(now).unwrap();
        let holds = pins.keys().filter(|fact| {
            let row = &model.facts[**fact as usize - 1];
            row.start <= now.unix_ms && row.end.is_none_or(|end| now.unix_ms < end)
        });
        prop_assert_eq!(shown.len(), holds.count());
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: crate::cases(32),
        failure_persistence: None,
        ..Default::default()
    })]

    #[test]
    fn pins_follow_their_facts(
        steps in vec(
            (
                op(),
                prop::option::of((
                    any::<u64>(),
                    prop::sample::select(vec![Pin::None, Pin::Auto, Pin::Auto, Pin::User]),
                )),
            ),
            50,
        ),
    ) {
        check_pins(&steps)?;
    }
}
