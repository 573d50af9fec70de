//! What is linked to a hit is found with it, below it, and only where the search looks.

use garret_core::id::SessionId;
use garret_core::time::{Confidence, WallTime};
use garret_hal::media::RamMedium;
use garret_storage::search::{Found, Hit, Kind, Search};
use garret_storage::{
    FactId, FactKind, FactSource, LinkKind, NewFact, NewReply, Node, Origin, Store, StoredFinish,
};

use crate::model::open;

const MAY_8: i64 = 1_683_554_160_000;
const DAY: i64 = 86_400_000;

fn at(unix_ms: i64) -> WallTime {
    WallTime { unix_ms, confidence: Confidence::Good }
}

fn garden() -> SessionId {
    "garden".parse().unwrap()
}

/// A turn with a reply, and a fact from each of both; none of the three others shares a word with
/// the fact about the queen.
fn store() -> (Store, [String; 2]) {
    let store = open(&RamMedium::new());
    let turn = store.accept(&garden(), "It is the blue one, I marked her.", at(MAY_8)).unwrap();
    let reply = NewReply {
        text: "Fine.",
        tokens: &[],
        model_fingerprint: &[0; 32],
        finish: StoredFinish::Stop,
        at: at(MAY_8),
        receipt: b"",
        trace: &[],
    };
    store.reply(&garden(), turn, reply).unwrap();
    let fact = |text, source| {
        let origin = Some(Origin { session: &garden(), turn });
        let fact = NewFact { text, origin, source, valid_at: Some(MAY_8), ..NewFact::default() };
        store.add_fact(&fact, at(MAY_8)).unwrap().id.to_string()
    };
    let queen = fact("The queen has a spot of paint.", FactSource::User);
    let approval = fact("Marking was approved.", FactSource::Assistant);
    (store, [queen, approval])
}

fn note(store: &Store, text: &str) -> FactId {
    let fact = NewFact { text, valid_at: Some(MAY_8), ..NewFact::default() };
    store.add_fact(&fact, at(MAY_8)).unwrap().id
}

fn find(store: &Store, search: Search<'_>) -> Found {
    store.find(&search).unwrap()
}

fn ids(found: &Found) -> Vec<&str> {
    found.hits.iter().map(|hit| &*hit.id).collect()
}

fn through(hit: &Hit) -> Option<&str> {
    hit.through.as_deref()
}

#[test]
fn a_fact_leads_to_the_message_it_was_said_in() {
    let (store, [queen, approval]) = store();
    let found = find(&store, Search::new("queen's paint", 5));
    assert_eq!(ids(&found), [&*queen, "garden/1/user"]);
    let [fact, message] = &*found.hits else { unreachable!() };
    assert_eq!((through(fact), through(message)), (None, Some(&*queen)));
    assert!(message.relevance > 0.0 && message.relevance < fact.relevance);
    assert!(message.parts.iter().all(|part| *part == 0.0), "{:?}", message.parts);
    // The assistant's own was said in the reply.
    let found = find(&store, Search::new("approved", 5));
    assert_eq!(ids(&found), [&*approval, "garden/1/assistant"]);
}

#[test]
fn a_message_leads_to_the_facts_that_were_said_in_it() {
    let (store, [queen, _]) = store();
    let found = find(&store, Search::new("blue", 5));
    let fact = found.hits.iter().find(|hit| hit.id == queen).unwrap();
    assert_eq!((&*found.hits[0].id, through(fact)), ("garden/1/user", Some("garden/1/user")));
    assert_eq!(found.hits.len(), 2, "and not to what the reply says");
}

#[test]
fn a_fact_leads_to_the_facts_it_is_linked_to_either_way() {
    let store = open(&RamMedium::new());
    let [bees, wasps, stings] =
        ["Bees sleep.", "Wasps hunt.", "A sting hurts."].map(|text| note(&store, text));
    store.link(Node::Fact(bees), LinkKind::Related, Node::Fact(wasps)).unwrap();
    store.link(Node::Fact(stings), LinkKind::DerivedFrom, Node::Fact(bees)).unwrap();
    let found = find(&store, Search::new("bees", 5));
    let mut linked: Vec<_> = found.hits[1..].iter().map(|hit| (&*hit.text, through(hit))).collect();
    linked.sort_unstable();
    let bees = bees.to_string();
    assert_eq!(found.hits[0].id, bees);
    assert_eq!(linked, [("A sting hurts.", Some(&*bees)), ("Wasps hunt.", Some(&*bees))]);
    // One link, not two.
    let found = find(&store, Search::new("wasps", 5));
    assert_eq!(ids(&found), [wasps.to_string(), bees]);
}

#[test]
fn what_is_a_hit_by_itself_keeps_its_place() {
    let store = open(&RamMedium::new());
    let [first, second] = ["Bees swarm in May.", "Bees swarm."].map(|text| note(&store, text));
    let alone = find(&store, Search::new("When do bees swarm?", 5));
    store.link(Node::Fact(first), LinkKind::Related, Node::Fact(second)).unwrap();
    assert_eq!(find(&store, Search::new("When do bees swarm?", 5)), alone);
}

#[test]
fn a_search_reaches_nothing_that_it_leaves_out() {
    let (store, [queen, _]) = store();
    let paint = Search::new("paint", 5);
    for search in [
        Search { kinds: &[Kind::Fact(FactKind::Asserts)], ..paint },
        Search { source: Some("assistant"), ..paint },
        Search { as_of: Some(MAY_8 - DAY), ..paint },
    ] {
        assert!(!ids(&find(&store, search)).contains(&"garden/1/user"), "{search:?}");
    }
    // A fact that was replaced is no more reached than found.
    let old = FactId(queen.trim_start_matches('f').parse().unwrap());
    let lost = NewFact { text: "She lost it.", valid_at: Some(MAY_8 + DAY), ..NewFact::default() };
    store.supersede(old, &lost, at(MAY_8 + DAY)).unwrap();
    assert_eq!(ids(&find(&store, Search::new("blue", 5))), ["garden/1/user"]);
    let replaced = Search { replaced: true, ..Search::new("blue", 5) };
    assert!(ids(&find(&store, replaced)).contains(&&*queen));
}

#[test]
fn links_do_not_make_more_hits_than_were_asked_for() {
    let (store, [queen, _]) = store();
    assert_eq!(ids(&find(&store, Search::new("paint", 1))), [queen]);
    assert!(find(&store, Search::new("paint", 0)).hits.is_empty());
}
