//! The whole memory under random operations: whatever is said, told, replaced, forgotten, renamed
//! and cut short, searches find exactly what the reference knows to be there and visible.

use garret_core::time::{Confidence, WallTime};
use garret_hal::media::RamMedium;
use garret_storage::search::{Found, Kind, Search};
use garret_storage::{FactFilter, FactKind, Pin, Store};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::everything_model::{
    DAY, Model, Op, SESSIONS, SOURCES, SPEAKERS, Seen, Told, apply, compare_summaries,
};
use crate::rewrite::Disk;

const DAYS: i64 = 12;

fn told() -> impl Strategy<Value = Told> {
    let slot = prop::option::weighted(0.6, 0..2_u8);
    let derived = prop::option::weighted(0.2, any::<usize>());
    let origin = prop::option::weighted(0.4, (0..SESSIONS, any::<usize>()));
    let length = prop::option::weighted(0.2, 1..5_i64);
    (any::<u8>(), slot, 0..DAYS, length, 0..SOURCES.len(), derived, origin).prop_map(
        |(form, slot, day, length, source, derived_from, origin)| Told {
            form,
            slot,
            day,
            length,
            source,
            derived_from,
            origin,
        },
    )
}

pub(crate) fn op() -> impl Strategy<Value = Op> {
    let session = 0..SESSIONS;
    let day = prop::option::weighted(0.9, 0..DAYS);
    let said = (0..SESSIONS, 0..SPEAKERS, any::<u8>(), day.clone());
    let some = any::<usize>();
    prop_oneof![
        8 => (session.clone(), any::<u8>(), day.clone())
            .prop_map(|(session, form, day)| Op::Accept { session, form, day }),
        5 => (session.clone(), some, any::<u8>(), day)
            .prop_map(|(session, turn, form, day)| Op::Reply { session, turn, form, day }),
        3 => vec(said, 1..6).prop_map(Op::Import),
        8 => vec(told(), 1..3).prop_map(Op::Add),
        3 => (some, told()).prop_map(|(old, told)| Op::Supersede { old, told }),
        3 => (some, 0..DAYS).prop_map(|(fact, day)| Op::Retract { fact, day }),
        2 => (session.clone(), some).prop_map(|(session, turn)| Op::ForgetTurn { session, turn }),
        2 => some.prop_map(|fact| Op::ForgetFact { fact }),
        4 => (session.clone(), 1..4_u64, any::<u8>())
            .prop_map(|(session, turns, form)| Op::SumUp { session, turns, form }),
        2 => (some, prop::sample::select(vec![Pin::None, Pin::Auto, Pin::User]))
            .prop_map(|(fact, pin)| Op::Pin { fact, pin }),
        1 => session.clone().prop_map(Op::Delete),
        2 => (session.clone(), session).prop_map(|(session, to)| Op::Rename { session, to }),
        1 => Just(Op::Fold),
        1 => Just(Op::Compact),
        3 => Just(Op::Tend),
        1 => Just(Op::Reopen),
        2 => Just(Op::Kill),
    ]
}

/// What a search leaves out; the defaults leave out facts that were replaced or have ended.
#[derive(Clone, Debug, Default)]
struct Asked {
    session: Option<u8>,
    source: Option<&'static str>,
    kind: Option<Kind>,
    as_of: Option<i64>,
    replaced: bool,
}

fn asked() -> impl Strategy<Value = Asked> {
    let kinds = [
        Kind::Message,
        Kind::Fact(FactKind::Asserts),
        Kind::Fact(FactKind::Supersedes),
        Kind::Fact(FactKind::Derives),
    ];
    let source = prop::sample::select(vec!["user", "assistant", "ada", "Bob Cole", "tool", "Eve"]);
    (
        prop::option::weighted(0.3, 0..SESSIONS),
        prop::option::weighted(0.3, source),
        prop::option::weighted(0.3, prop::sample::select(kinds.to_vec())),
        prop::option::weighted(0.5, -1..=DAYS),
        any::<bool>(),
    )
        .prop_map(|(session, source, kind, as_of, replaced)| Asked {
            session,
            source,
            kind,
            as_of: as_of.map(|day| day * DAY),
            replaced,
        })
}

impl Asked {
    fn allows(&self, unit: &Seen) -> bool {
        let in_time = match self.as_of {
            Some(then) => {
                unit.at.is_some_and(|at| at <= then) && unit.end.is_none_or(|end| then < end)
            }
            None => unit.latest || self.replaced,
        };
        in_time
            && self.session.is_none_or(|session| unit.session == Some(session))
            && self.source.is_none_or(|source| unit.source.eq_ignore_ascii_case(source))
            && self.kind.is_none_or(|kind| unit.kind == kind)
    }
}

/// One search; each hit is compared with what the reference has by its id.
fn find(
    store: &Store,
    all: &[Seen],
    asked: &Asked,
    query: &str,
    k: usize,
) -> Result<Found, TestCaseError> {
    let session = asked.session.map(crate::model::id);
    let kind = asked.kind.map(|kind| [kind]);
    let found = store.find(&Search {
        session: session.as_ref(),
        source: asked.source,
        kinds: kind.as_ref().map_or(&[], |kind| &kind[..]),
        as_of: asked.as_of,
        replaced: asked.replaced,
        ..Search::new(query, k)
    });
    let found = found.map_err(|error| TestCaseError::fail(error.to_string()))?;
    prop_assert!(found.hits.len() <= k);
    let mut ids: Vec<&str> = found.hits.iter().map(|hit| &*hit.id).collect();
    ids.sort_unstable();
    ids.dedup();
    prop_assert_eq!(ids.len(), found.hits.len(), "one twice for `{}`", query);
    for hit in &found.hits {
        let Some(unit) = all.iter().find(|unit| unit.id == hit.id) else {
            return Err(TestCaseError::fail(format!("{hit:?} isn't there")));
        };
        prop_assert!(asked.allows(unit), "{:?} found {:?}", asked, hit);
        let session = unit.session.map(crate::model::id);
        prop_assert_eq!((&hit.kind, &*hit.source), (&unit.kind, &*unit.source), "{:?}", hit);
        prop_assert_eq!((&hit.session, hit.at_ms, hit.valid_to), (&session, unit.at, unit.end));
        let place = unit.text.find(&*hit.text);
        prop_assert!(place.is_some() && !hit.text.is_empty(), "{:?} isn't verbatim", hit);
        let ends = (unit.text.starts_with(&*hit.text), unit.text.ends_with(&*hit.text));
        prop_assert_eq!((!hit.cut_before, !hit.cut_after), ends, "{:?}", hit);
    }
    Ok(found)
}

/// Searches for every word that there ever was, and for one that everything has.
fn compare(store: &Store, model: &Model, asked: &Asked) -> Result<(), TestCaseError> {
    let all = model.units();
    if let Some(session) = asked.session.filter(|session| !model.has(*session)) {
        let session = crate::model::id(session);
        prop_assert!(store.search("garden", Some(&session), 5).is_err());
        return Ok(());
    }
    let visible: Vec<&Seen> = all.iter().filter(|unit| asked.allows(unit)).collect();
    for word in model.words() {
        let unit = visible.iter().find(|unit| unit.text.contains(&word));
        // What comes right after a question is found with it.
        let k = if unit.is_some_and(|unit| unit.text.ends_with('?')) { 2 } else { 1 };
        let found = find(store, &all, asked, &word.to_uppercase(), k)?;
        match unit {
            Some(unit) => prop_assert!(
                found.hits.iter().any(|hit| hit.id == unit.id && hit.text.contains(&word)),
                "`{}` of {:?} isn't found by {:?}: {:?}",
                word,
                unit,
                asked,
                found
            ),
            None => prop_assert!(found.hits.is_empty(), "`{}` by {:?}: {:?}", word, asked, found),
        }
    }
    let found = find(store, &all, asked, "garden", 1_000)?;
    prop_assert_eq!((found.hits.len(), found.searched), (visible.len(), visible.len()));
    for k in [1, 5] {
        let found = find(store, &all, asked, "the garden?", k)?;
        prop_assert_eq!(found.hits.len(), visible.len().min(k));
    }
    Ok(())
}

/// What is true at a moment, asked for without a search.
fn compare_facts(store: &Store, model: &Model) -> Result<(), TestCaseError> {
    let all = model.units();
    for as_of in (-1..=DAYS).map(|day| day * DAY) {
        let filter = FactFilter { as_of: Some(as_of), limit: 1_000, ..FactFilter::default() };
        let found = store.facts(&filter).unwrap().facts;
        let mut found: Vec<_> = found.iter().map(|fact| fact.id.to_string()).collect();
        let asked = Asked { as_of: Some(as_of), ..Asked::default() };
        let holds = |unit: &&Seen| unit.kind != Kind::Message && asked.allows(unit);
        let mut expected: Vec<_> = all.iter().filter(holds).map(|unit| unit.id.clone()).collect();
        found.sort_unstable();
        expected.sort_unstable();
        prop_assert_eq!(found, expected, "as of {}", as_of);
    }
    Ok(())
}

fn clean(store: &Store) -> Result<(), TestCaseError> {
    prop_assert_eq!(store.verify().unwrap().problems, []);
    Ok(())
}

fn check(crowded: bool, steps: &[(Op, Asked)]) -> Result<(), TestCaseError> {
    let mut disk = Disk::<RamMedium>::default();
    let mut store = disk.open();
    let mut model = Model::default();
    if crowded {
        model.crowd(&store);
    }
    for (op, asked) in steps {
        match op {
            Op::Reopen => {
                drop(store);
                store = disk.open();
                clean(&store)?;
            }
            Op::Kill => {
                // What the device has at this moment; the old store is closed on the old one.
                disk = Disk::of(disk.images());
                store = disk.open();
                clean(&store)?;
            }
            op => apply(&store, &mut model, op),
        }
        compare(&store, &model, &Asked::default())?;
        compare(&store, &model, asked)?;
        compare_summaries(&store, &model);
    }
    compare_facts(&store, &model)?;
    clean(&store)?;
    drop(store);
    let store = disk.open();
    clean(&store)?;
    for (_, asked) in steps {
        compare(&store, &model, asked)?;
    }
    compare_summaries(&store, &model);
    compare_facts(&store, &model)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: crate::cases(8),
        failure_persistence: None,
        ..Default::default()
    })]

    #[test]
    fn searches_find_what_is_there_and_nothing_else(
        crowded in prop::bool::weighted(0.2),
        steps in vec((op(), asked()), 1..40),
    ) {
        check(crowded, &steps)?;
    }
}

/// The reference itself, where the answers are known.
#[test]
fn the_reference_knows_what_is_visible() {
    let told = |slot, day| Told {
        form: 0,
        slot: Some(slot),
        day,
        length: None,
        source: 0,
        derived_from: None,
        origin: None,
    };
    let disk = Disk::<RamMedium>::default();
    let store = disk.open();
    let mut model = Model::default();
    for op in [
        Op::Accept { session: 0, form: 0, day: Some(1) },
        Op::Add(vec![told(0, 9)]),
        Op::Add(vec![told(0, 3)]),
        Op::Add(vec![told(1, 5)]),
        Op::Retract { fact: 2, day: 7 },
        Op::ForgetTurn { session: 0, turn: 0 },
    ] {
        apply(&store, &mut model, &op);
    }
    let spans: Vec<_> = model
        .units()
        .iter()
        .map(|unit| (unit.id.clone(), unit.at, unit.end, unit.latest))
        .collect();
    let day = |day: i64| Some(day * DAY);
    assert_eq!(
        spans,
        [
            ("f1".to_owned(), day(9), None, true),
            ("f2".to_owned(), day(3), day(9), false),
            ("f3".to_owned(), day(5), day(7), false),
        ]
    );
    assert_eq!(model.words().len(), 4);
}

/// The clock of every write.
pub(crate) fn wall(day: Option<i64>) -> WallTime {
    match day {
        Some(day) => WallTime { unix_ms: day * DAY, confidence: Confidence::Good },
        None => WallTime { unix_ms: DAY, confidence: Confidence::Wrong },
    }
}
