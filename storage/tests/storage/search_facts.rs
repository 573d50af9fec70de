//! Facts are found beside messages, at the right moment, and whatever a search leaves out it leaves
//! out before anything is cut.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use garret_core::id::SessionId;
use garret_core::time::{Confidence, WallTime};
use garret_core::vector::Scalar;
use garret_hal::media::RamMedium;
use garret_storage::search::{Found, Hit, Kind, NAMES, Search, Speaker, WEIGHTS};
use garret_storage::{
    FactId, FactKind, FactSource, ImportedTurn, NewFact, Origin, Part, Selection, Store,
};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::model::open;

const MAY_8: i64 = 1_683_554_160_000;
const DAY: i64 = 86_400_000;

fn at(unix_ms: i64) -> WallTime {
    WallTime { unix_ms, confidence: Confidence::Good }
}

fn id(name: &str) -> SessionId {
    name.parse().unwrap()
}

fn note(store: &Store, text: &str, days: i64) -> FactId {
    let fact = NewFact { text, valid_at: Some(MAY_8 + days * DAY), ..NewFact::default() };
    store.add_fact(&fact, at(MAY_8 + days * DAY)).unwrap().id
}

fn city(store: &Store, city: &str, days: i64) -> FactId {
    let fact = NewFact {
        text: &format!("I live in {city}."),
        subject: Some("user"),
        predicate: Some("lives_in"),
        object: Some(city),
        valid_at: Some(MAY_8 + days * DAY),
        ..NewFact::default()
    };
    store.add_fact(&fact, at(MAY_8 + days * DAY)).unwrap().id
}

fn ids(found: &Found) -> Vec<&str> {
    found.hits.iter().map(|hit| &*hit.id).collect()
}

fn texts(found: &Found) -> Vec<&str> {
    found.hits.iter().map(|hit| &*hit.text).collect()
}

fn find(store: &Store, search: Search<'_>) -> Found {
    store.find(&search).unwrap()
}

fn hit(store: &Store, search: Search<'_>) -> Hit {
    find(store, search).hits.into_iter().next().unwrap()
}

#[test]
fn a_fact_can_be_found_as_soon_as_it_is_written_and_says_where_it_is_from() {
    let store = open(&RamMedium::new());
    assert!(find(&store, Search::new("bees", 5)).hits.is_empty());
    let turn = store.accept(&id("garden"), "We keep bees now.", at(MAY_8)).unwrap();
    let fact = NewFact {
        text: "The user keeps bees.",
        origin: Some(Origin { session: &id("garden"), turn }),
        valid_at: Some(MAY_8 - DAY),
        ..NewFact::default()
    };
    let added = store.add_fact(&fact, at(MAY_8)).unwrap().id;
    let hit =
        hit(&store, Search { kinds: &[Kind::Fact(FactKind::Asserts)], ..Search::new("bee", 5) });
    assert_eq!((hit.id, hit.kind.as_str()), (added.to_string(), "asserts"));
    assert_eq!((hit.session, hit.turn, &*hit.source), (Some(id("garden")), Some(1), "user"));
    assert_eq!((hit.at_ms, hit.valid_to), (Some(MAY_8 - DAY), None));
    assert_eq!(&*hit.text, "The user keeps bees.");
    assert!((0.0..=1.0).contains(&hit.relevance));
}

#[test]
fn what_was_replaced_is_found_at_its_time_alone() {
    let store = open(&RamMedium::new());
    find(&store, Search::new("", 1));
    let (oslo, rome) = (city(&store, "Oslo", 0), city(&store, "Rome", 100));
    let live = Search::new("Where do I live?", 5);
    let (oslo, rome) = (oslo.to_string(), rome.to_string());
    assert_eq!(ids(&find(&store, live)), [&*rome]);
    assert_eq!(find(&store, live).searched, 1);
    for (days, found) in [(-1, vec![]), (0, vec![&*oslo]), (99, vec![&*oslo]), (100, vec![&*rome])]
    {
        let then = Search { as_of: Some(MAY_8 + days * DAY), ..live };
        assert_eq!(ids(&find(&store, then)), found, "{days} days after");
    }
    let mut all = find(&store, Search { replaced: true, ..live });
    all.hits.sort_by_key(|hit| hit.at_ms);
    assert_eq!(ids(&all), [&*oslo, &*rome]);
    assert_eq!(all.hits[0].valid_to, Some(MAY_8 + 100 * DAY));
}

/// The probe that the systems before this one failed in more than half of the cases: one value
/// that changed a thousand times, asked for as of any moment.
#[test]
fn the_value_of_any_moment_is_found_among_a_thousand() {
    let store = open(&RamMedium::new());
    for day in 0..1_000 {
        city(&store, &format!("Town{day}"), day);
    }
    for day in (0..1_000).step_by(37) {
        let as_of = Some(MAY_8 + day * DAY + DAY / 2);
        let found = find(&store, Search { as_of, ..Search::new("Where do I live?", 3) });
        assert_eq!(texts(&found), [format!("I live in Town{day}.")]);
        assert_eq!(found.searched, 1);
    }
    let found = find(&store, Search::new("Where do I live?", 3));
    assert_eq!(texts(&found), ["I live in Town999."]);
}

#[test]
fn messages_are_found_as_of_a_moment() {
    let store = open(&RamMedium::new());
    for (days, text) in [(0, "The bees came."), (9, "The bees left."), (20, "New bees came.")] {
        store.accept(&id("a"), text, at(MAY_8 + days * DAY)).unwrap();
    }
    let unknown = WallTime { unix_ms: MAY_8, confidence: Confidence::Wrong };
    store.accept(&id("a"), "Nobody knows when bees slept.", unknown).unwrap();
    let then = Search { as_of: Some(MAY_8 + 9 * DAY), ..Search::new("bees", 1_000) };
    let mut found = find(&store, then);
    found.hits.sort_by_key(|hit| hit.turn);
    assert_eq!(texts(&found), ["The bees came.", "The bees left."]);
}

/// More than are looked at closely match better, and none of them may be found.
#[test]
fn nothing_is_cut_before_it_is_filtered() {
    let store = open(&RamMedium::new());
    let (crowd, alone) = (id("crowd"), id("alone"));
    let turn = |session, speaker, text, days: i64| ImportedTurn {
        session,
        speaker,
        text,
        at: at(MAY_8 + days * DAY),
        id: None,
    };
    let crowded: Vec<_> =
        (0..3_000).map(|_| turn(&crowd, Speaker::User, "bees bees bees", 50)).collect();
    store.import_turns(&crowded).unwrap();
    let said = "There was something about bees in the paper that I read on the train.";
    store.import_turns(&[turn(&alone, Speaker::Named("Ada Byron"), said, 1)]).unwrap();
    let old = note(&store, "Ada was afraid of bees as a child in the country.", -900);
    let bees = Search::new("bees", 2);
    for search in [
        Search { session: Some(&alone), ..bees },
        Search { source: Some("ada byron"), ..bees },
        Search { as_of: Some(MAY_8 + 2 * DAY), kinds: &[Kind::Message], ..bees },
    ] {
        let found = find(&store, search);
        assert_eq!(ids(&found), ["alone/1/user"], "{search:?}");
        assert_eq!((found.searched, &*found.hits[0].source), (1, "Ada Byron"));
    }
    let facts = Search { kinds: &[Kind::Fact(FactKind::Asserts)], ..bees };
    assert_eq!(ids(&find(&store, facts)), [old.to_string()]);
    let nobody = Search { source: Some("Charles"), ..bees };
    assert_eq!((find(&store, nobody).hits.len(), find(&store, nobody).searched), (0, 0));
}

#[test]
fn sources_are_told_apart() {
    let store = open(&RamMedium::new());
    for source in [FactSource::User, FactSource::Tool, FactSource::from_name("Ada")] {
        let text = format!("The hive is cold, says the {source}.");
        let fact = NewFact { text: &text, source, ..NewFact::default() };
        store.add_fact(&fact, at(MAY_8)).unwrap();
    }
    for source in ["user", "tool", "Ada", "ada"] {
        let found = find(&store, Search { source: Some(source), ..Search::new("hive", 9) });
        assert_eq!(found.hits.len(), 1, "{source}");
        assert_eq!(found.hits[0].source.to_lowercase(), source.to_lowercase());
        assert!(found.hits[0].text.to_lowercase().contains(&source.to_lowercase()));
    }
}

#[test]
fn of_equal_facts_the_fresher_and_the_weightier_come_first() {
    let store = open(&RamMedium::new());
    let (old, new) =
        (note(&store, "The red hive swarms.", 0), note(&store, "The old hive swarms.", 80));
    let hive = Search { now: Some(MAY_8 + 90 * DAY), ..Search::new("hive", 2) };
    assert_eq!(ids(&find(&store, hive)), [new.to_string(), old.to_string()]);
    let [fresh, stale] = find(&store, hive).hits.try_into().unwrap();
    assert!((fresh.recency - (-10.0_f32 / 30.0).exp()).abs() < 1e-3 && stale.recency < 0.06);
    // Of use a moment ago.
    store.touch(&[(old, MAY_8 + 90 * DAY)]).unwrap();
    assert_eq!(ids(&find(&store, hive)), [old.to_string(), new.to_string()]);
    let weighty =
        NewFact { text: "The blue hive swarms.", salience: Some(10.0), ..NewFact::default() };
    let weighty = store.add_fact(&weighty, at(MAY_8 + 90 * DAY)).unwrap().id;
    assert_eq!(hit(&store, hive).id, weighty.to_string());
    assert_eq!(hit(&store, hive).importance, 1.0);
    // Neither helps against what answers better.
    let better = Search { now: hive.now, ..Search::new("Which red hive swarms?", 1) };
    assert_eq!(hit(&store, better).id, old.to_string());
}

#[test]
fn a_fact_is_found_by_the_name_of_its_subject() {
    let store = open(&RamMedium::new());
    for (subject, text) in [("Ada Byron", "She keeps bees."), ("Charles", "He keeps bees.")] {
        let fact = NewFact { text, subject: Some(subject), ..NewFact::default() };
        store.add_fact(&fact, at(MAY_8)).unwrap();
    }
    let found = hit(&store, Search::new("What does Ada keep?", 2));
    assert_eq!(&*found.text, "She keeps bees.");
    let again = open(&RamMedium::new());
    assert!(find(&again, Search::new("Charles", 2)).hits.is_empty());
    assert_eq!(texts(&find(&store, Search::new("Charles", 2))), ["He keeps bees."]);
}

/// Names draw in whatever addresses somebody, so neither texts nor queries have them when they are
/// embedded.
#[test]
fn what_is_embedded_has_no_names_of_speakers() {
    let media = Mutex::new(HashMap::<Part, RamMedium>::new());
    let medium = move |part| media.lock().unwrap().entry(part).or_default().clone();
    let store = Store::on_media("n", move |part| Ok(Box::new(medium(part)))).unwrap();
    store.set_embedder([1; 32], 2, Arc::new(Scalar), None).unwrap();
    let (walk, own) = (id("walk"), id("own"));
    let turn = |speaker, text| ImportedTurn { session: &walk, speaker, text, at: at(0), id: None };
    let said = [
        turn(Speaker::Named("Ada"), "Charles, look at Ada's bees!"),
        turn(Speaker::Named("Charles"), "Ada!"),
    ];
    store.import_turns(&said).unwrap();
    store.accept(&own, "Ada and Charles went for a walk.", at(0)).unwrap();
    let texts = store.unembedded(9).unwrap();
    let texts: Vec<_> = texts.iter().map(|(_, text)| &**text).collect();
    assert_eq!(texts, [", look at bees!", "Ada!", "Ada and Charles went for a walk."]);
    assert_eq!(store.without_names("Where did Charles see Ada?").unwrap(), "Where did see ?");
}

#[test]
fn facts_leave_room_for_messages() {
    let store = open(&RamMedium::new());
    for number in 0..20 {
        let text = &*format!("Hive {number} has bees.");
        let fact = NewFact { text, salience: Some(10.0), ..NewFact::default() };
        store.add_fact(&fact, at(MAY_8)).unwrap();
        let session = id(&format!("day-{number}"));
        store.accept(&session, "Do hives have bees?", at(MAY_8)).unwrap();
    }
    let found = find(&store, Search::new("Which hives have bees?", 10));
    let facts = found.hits.iter().filter(|hit| hit.kind != Kind::Message).count();
    assert_eq!((found.hits.len(), facts), (10, 5));
    let only = find(
        &store,
        Search { kinds: &[Kind::Fact(FactKind::Asserts)], ..Search::new("hives", 10) },
    );
    assert_eq!(only.hits.len(), 10);
}

/// A question that is stored already says nothing about its answer, and doesn't make it look worse.
#[test]
fn the_turn_that_asks_has_no_say() {
    let store = open(&RamMedium::new());
    let session = id("a");
    for text in ["The bees live behind the shed.", "It rained.", "We had soup."] {
        store.accept(&session, text, at(MAY_8)).unwrap();
    }
    let asked = Search::new("Where do the bees live?", 5);
    let before = find(&store, asked);
    assert_eq!(ids(&before), ["a/1/user"]);
    let turn = store.accept(&session, asked.query, at(MAY_8)).unwrap();
    let after = find(&store, Search { except: Some((&session, turn)), ..asked });
    assert_eq!(ids(&after), ids(&before));
    assert!(after.hits[0].relevance >= before.hits[0].relevance * 0.99, "{after:?}");
    assert!(ids(&find(&store, asked)).contains(&"a/4/user"));
}

/// Nor does the day on which it is asked, of which it may be all there is.
#[test]
fn the_turn_that_asks_makes_no_day_of_its_own() {
    let session_part = NAMES.iter().position(|name| *name == "session").unwrap();
    for asking in ["a", "b"].map(id) {
        let store = open(&RamMedium::new());
        let told = ["The bees live behind the shed.", "It rained.", "We had soup."];
        for (day, text) in (0..).zip(told) {
            store.accept(&id("a"), text, at(MAY_8 + day * DAY)).unwrap();
        }
        let asked = Search::new("Where do the bees live?", 5);
        let turn = store.accept(&asking, asked.query, at(MAY_8 + 9 * DAY)).unwrap();
        let found = find(&store, Search { except: Some((&asking, turn)), ..asked });
        assert_eq!(ids(&found), ["a/1/user"]);
        assert_eq!(found.hits[0].parts[session_part], WEIGHTS[session_part], "the best day");
    }
}

/// Where there is enough to know what is usual, a question about something else finds nothing.
#[test]
fn what_merely_shares_a_common_word_does_not_answer() {
    let store = open(&RamMedium::new());
    let words = ["garden", "hive", "shed", "roof", "swarm", "honey", "frame", "smoke"];
    for number in 0..400 {
        let (a, b) = (words[number % 8], words[number / 8 % 8]);
        let text = format!("The {a} by the {b} was fine, row {number}.");
        store.accept(&id("a"), &text, at(MAY_8)).unwrap();
    }
    let other = "Which quantum garden did Napoleon's violinist orbit beneath Lisbon's parliament?";
    assert_eq!(find(&store, Search::new(other, 5)).hits.len(), 0);
    assert_eq!(find(&store, Search::new("How was the garden by the shed?", 5)).hits.len(), 5);
}

#[test]
fn a_time_in_the_query_is_counted_from_its_moment() {
    let store = open(&RamMedium::new());
    for day in 0..60 {
        store.accept(&id("a"), "I looked after the bees.", at(MAY_8 + day * DAY)).unwrap();
    }
    let now = Some(MAY_8 + 59 * DAY);
    for (query, days) in [
        ("What did I do with the bees yesterday?", 58..59),
        ("What did I do with the bees last week?", 49..60),
        ("What did I do with the bees three weeks ago?", 34..43),
        ("What did I do with the bees before 10 May 2023?", 0..2),
    ] {
        let found = hit(&store, Search { now, ..Search::new(query, 1) });
        let day = (found.at_ms.unwrap() - MAY_8) / DAY;
        assert!(days.contains(&day), "{query} found day {day}");
    }
}

#[test]
fn deleting_a_session_leaves_its_facts() {
    let store = open(&RamMedium::new());
    let turn = store.accept(&id("a"), "I keep bees.", at(MAY_8)).unwrap();
    store.accept(&id("b"), "Bees are hard work.", at(MAY_8)).unwrap();
    let origin = Some(Origin { session: &id("a"), turn });
    let fact = NewFact { text: "The user keeps bees.", origin, ..NewFact::default() };
    let fact = store.add_fact(&fact, at(MAY_8)).unwrap().id.to_string();
    assert_eq!(find(&store, Search::new("bees", 9)).hits.len(), 3);
    store.delete(&id("a")).unwrap();
    let found = find(&store, Search::new("bees", 9));
    let mut left = ids(&found);
    left.sort_unstable();
    assert_eq!(left, ["b/1/user", &*fact]);
    assert!(found.hits.iter().any(|hit| hit.id == fact && hit.session.is_none()));
}

#[derive(Clone, Debug)]
enum Op {
    Say(u8, u8),
    Note(u8, i64),
    Move(u8, i64),
    Retract(u8, i64),
    Touch(u8, i64),
    Delete(u8),
}

fn op() -> impl Strategy<Value = Op> {
    let day = 0..40_i64;
    prop_oneof![
        4 => (0..3_u8, 0..9_u8).prop_map(|(session, word)| Op::Say(session, word)),
        4 => (0..9_u8, day.clone()).prop_map(|(word, day)| Op::Note(word, day)),
        4 => (0..9_u8, day.clone()).prop_map(|(word, day)| Op::Move(word, day)),
        2 => (0..9_u8, day.clone()).prop_map(|(fact, day)| Op::Retract(fact, day)),
        1 => (0..9_u8, day).prop_map(|(fact, day)| Op::Touch(fact, day)),
        1 => (0..3_u8).prop_map(Op::Delete),
    ]
}

const WORDS: [&str; 9] = ["bee", "hive", "oak", "rain", "shed", "roof", "honey", "swarm", "Town"];

fn apply(store: &Store, op: &Op) {
    match op {
        Op::Say(session, word) => {
            let text = format!("The {} again.", WORDS[*word as usize]);
            store.accept(&id(&format!("s{session}")), &text, at(MAY_8)).unwrap();
        }
        Op::Note(word, day) => drop(note(store, &format!("A {}.", WORDS[*word as usize]), *day)),
        Op::Move(word, day) => drop(city(store, WORDS[*word as usize], *day)),
        Op::Retract(fact, day) => {
            let _ = store.retract(FactId(u64::from(*fact)), MAY_8 + day * DAY);
        }
        Op::Touch(fact, day) => {
            store.touch(&[(FactId(u64::from(*fact)), MAY_8 + day * DAY)]).unwrap();
        }
        Op::Delete(session) => drop(store.delete(&id(&format!("s{session}")))),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn the_index_that_is_kept_is_the_one_that_would_be_made(ops in vec(op(), 1..25)) {
        let medium = RamMedium::new();
        let store = open(&medium);
        find(&store, Search::new("", 1));
        for op in &ops {
            apply(&store, op);
            let anew = open(&RamMedium::from_bytes(medium.snapshot()));
            for as_of in [None, Some(MAY_8 + 20 * DAY)] {
                let search = Search {
                    as_of,
                    now: Some(MAY_8 + 50 * DAY),
                    ..Search::new("Where do the bees in the oak live, by the hive in the rain?", 9)
                };
                prop_assert_eq!(find(&store, search), find(&anew, search));
            }
        }
    }
}

fn about(store: &Store, subject: &str, text: &str) -> FactId {
    let fact =
        NewFact { text, subject: Some(subject), predicate: Some("about"), ..NewFact::default() };
    store.add_fact(&fact, at(MAY_8)).unwrap().id
}

/// How much of what the query names each fact is about, 0 to 1.
fn entity(store: &Store, query: &str, fact: FactId) -> f32 {
    let place = NAMES.iter().position(|name| *name == "entity").unwrap();
    let found = find(store, Search { k: 50, ..Search::new(query, 50) });
    let hit = found.hits.iter().find(|hit| hit.id == fact.to_string());
    hit.unwrap_or_else(|| panic!("{query}: {fact} isn't found")).parts[place] / WEIGHTS[place]
}

#[test]
fn a_fact_counts_more_when_it_is_about_whom_the_query_names() {
    let store = open(&RamMedium::new());
    let ada = about(&store, "Ada", "Keeps bees by the river.");
    let jose = about(&store, "Jos\u{e9} Verde", "Keeps bees by the river in the north.");
    let club = about(&store, "The Bee Club", "Keeps bees in town.");
    for (query, facts) in [
        // As it is written, in any case, with and without accents.
        ("Where does Ada keep bees?", [1.0, 0.0, 0.0]),
        ("where does ada keep bees?", [1.0, 0.0, 0.0]),
        ("ADA, BEES?", [1.0, 0.0, 0.0]),
        ("Ada's bees", [1.0, 0.0, 0.0]),
        ("bees of jose verde", [0.0, 1.0, 0.0]),
        // A part of a name that is written as one.
        ("What bees does Jos\u{e9} keep?", [0.0, 1.0, 0.0]),
        // Nobody: question words, days and months, words that begin a sentence, ordinary ones.
        ("Where are bees kept?", [0.0; 3]),
        ("Bees. River. Where? Keeps? On Monday in May.", [0.0; 3]),
        ("bees in town", [0.0; 3]),
    ] {
        let found = [ada, jose, club].map(|fact| entity(&store, query, fact));
        for (found, wanted) in found.into_iter().zip(facts) {
            assert!((found - wanted).abs() < 1e-4, "{query}: {found} instead of {wanted}");
        }
    }
    // Of two names each is a part.
    let both = "Do Ada and Jos\u{e9} Verde keep bees?";
    let (of_ada, of_jose) = (entity(&store, both, ada), entity(&store, both, jose));
    assert!(of_ada > 0.1 && of_jose > of_ada && (of_ada + of_jose - 1.0).abs() < 1e-4);
    // What is said of the one comes before what is said of the other.
    let found = find(&store, Search::new("Does Ada keep bees by the river?", 2));
    assert_eq!(ids(&found).first(), Some(&&*ada.to_string()));
}

#[test]
fn names_are_known_when_they_are_new_and_no_more_when_they_are_forgotten() {
    let store = open(&RamMedium::new());
    let bees = about(&store, "Ada", "Sells honey of rose and clover.");
    assert_eq!(entity(&store, "who sells honey of rose?", bees), 0.0);
    let rose = about(&store, "Rose", "Is a sister.");
    assert!(entity(&store, "who sells honey of rose?", bees) > 0.99);
    let selection = Selection { facts: &[rose], ..Selection::default() };
    store.erase(&selection, at(MAY_8), false).unwrap();
    assert_eq!(entity(&store, "who sells honey of rose?", bees), 0.0);
}

#[test]
fn messages_are_ranked_by_who_speaks_and_not_by_names() {
    let store = open(&RamMedium::new());
    store.accept(&id("s"), "I asked Ada about bees.", at(MAY_8)).unwrap();
    about(&store, "Ada", "Keeps bees.");
    let place = NAMES.iter().position(|name| *name == "entity").unwrap();
    let messages =
        Search { kinds: &[Kind::Message], ..Search::new("What did Ada say of bees?", 5) };
    assert_eq!(hit(&store, messages).parts[place], 0.0);
}
