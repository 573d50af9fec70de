//! Search: what is said can be found, what isn't can't, and the index that is kept agrees with one
//! that is made anew.

use garret_core::id::SessionId;
use garret_core::time::{Confidence, WallTime};
use garret_hal::media::RamMedium;
use garret_storage::search::{Found, Source};
use garret_storage::{NewReply, ReadError, Store, StoredFinish};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::model::{NAMES, Op, apply, open};

const MAY_8: i64 = 1_683_554_160_000;
const DAY: i64 = 86_400_000;

fn at(unix_ms: i64) -> WallTime {
    WallTime { unix_ms, confidence: Confidence::Good }
}

fn id(name: &str) -> SessionId {
    name.parse().unwrap()
}

fn reply(store: &Store, session: &str, turn: u64, text: &str, at: WallTime) {
    let reply = NewReply {
        text,
        tokens: &[],
        model_fingerprint: &[0; 32],
        finish: StoredFinish::Stop,
        at,
        receipt: b"",
        trace: &[],
    };
    store.reply(&id(session), turn, reply).unwrap();
}

/// Sessions, turns and sources of the hits.
fn places(found: &Found) -> Vec<(String, u64, Source)> {
    let place = |hit: &garret_storage::search::Hit| {
        let source = if hit.source == "assistant" { Source::Assistant } else { Source::User };
        (hit.session.clone().unwrap().to_string(), hit.turn.unwrap(), source)
    };
    found.hits.iter().map(place).collect()
}

fn find(store: &Store, query: &str) -> Vec<(String, u64, Source)> {
    places(&store.search(query, None, 10).unwrap())
}

fn place(session: &str, turn: u64, source: Source) -> (String, u64, Source) {
    (session.to_owned(), turn, source)
}

/// A store whose index was made before anything was said.
fn searched() -> Store {
    let store = open(&RamMedium::new());
    assert_eq!(store.search("bees", None, 10).unwrap().searched, 0);
    store
}

fn beekeeper() -> Store {
    let store = searched();
    for (session, at_ms, user, answer) in [
        ("garden", MAY_8, "I planted tomatoes behind the shed.", "Water them in the evening."),
        ("garden", MAY_8, "The shed roof leaks since Monday.", "Tar paper would help."),
        ("bees", MAY_8 + 40 * DAY, "My bees swarmed yesterday!", "Did you catch the swarm?"),
        ("bees", MAY_8 + 41 * DAY, "Yes, it sits in the oak.", "Hang up a lure box."),
    ] {
        let turn = store.accept(&id(session), user, at(at_ms)).unwrap();
        reply(&store, session, turn, answer, at(at_ms + 5_000));
    }
    store
}

#[test]
fn a_message_can_be_found_as_soon_as_it_is_accepted() {
    let store = searched();
    let turn = store.accept(&id("a"), "The hives stand by the pond.", at(MAY_8)).unwrap();
    assert_eq!(find(&store, "hive")[0], place("a", turn, Source::User));
    reply(&store, "a", turn, "Ponds attract dragonflies.", at(MAY_8));
    assert_eq!(find(&store, "dragonfly")[0], place("a", turn, Source::Assistant));
}

#[test]
fn the_message_that_answers_comes_first() {
    let store = beekeeper();
    for (query, best) in [
        ("When did the bees swarm?", place("bees", 1, Source::User)),
        ("tomato", place("garden", 1, Source::User)),
        ("roof", place("garden", 2, Source::User)),
        ("what did you say about tar", place("garden", 2, Source::Assistant)),
        ("oak", place("bees", 2, Source::User)),
    ] {
        assert_eq!(find(&store, query).first(), Some(&best), "{query}");
    }
    let june = store.search("what happened in June 2023?", None, 10).unwrap();
    assert_eq!(june.hits.first().and_then(|hit| hit.session.clone()), Some(id("bees")));
}

/// Neighbours help what is found, but aren't found for that alone, save the answer to a question.
#[test]
fn a_hit_shares_a_word_or_answers_a_question_that_does() {
    let store = beekeeper();
    let found = find(&store, "tomato");
    assert_eq!(found, [place("garden", 1, Source::User)], "not what was said next");
    let found = find(&store, "catch");
    let (question, answer) = (place("bees", 1, Source::Assistant), place("bees", 2, Source::User));
    assert!(found.len() == 2 && found.contains(&question) && found.contains(&answer), "{found:?}");
}

#[test]
fn hits_say_where_when_and_what() {
    let store = beekeeper();
    let found = store.search("bees", None, 1).unwrap();
    assert_eq!((found.searched, found.hits.len()), (8, 1));
    let hit = &found.hits[0];
    assert_eq!((hit.at_ms, &*hit.text), (Some(MAY_8 + 40 * DAY), "My bees swarmed yesterday!"));
    assert!(!hit.cut_before && !hit.cut_after);
    assert_eq!((&*hit.id, hit.kind.as_str(), &*hit.source), ("bees/1/user", "message", "user"));
    assert_eq!((hit.score, hit.valid_to), (hit.relevance, None));
    let wrong = WallTime { unix_ms: 5, confidence: Confidence::Wrong };
    store.accept(&id("x"), "Zebras came.", wrong).unwrap();
    assert_eq!(store.search("zebra", None, 1).unwrap().hits[0].at_ms, None);
    assert!(store.search("1970", None, 1).unwrap().hits.is_empty(), "nor is it found by that date");
}

#[test]
fn a_long_message_is_shown_where_it_answers() {
    let store = searched();
    let filler = "There is nothing to be seen here. ".repeat(50);
    store.accept(&id("a"), &format!("{filler}A zebra came. {filler}"), at(MAY_8)).unwrap();
    let hit = &store.search("zebras", None, 1).unwrap().hits[0];
    assert!(hit.text.contains("A zebra came.") && hit.text.len() < 300, "{}", hit.text);
    assert!(hit.cut_before && hit.cut_after);
}

#[test]
fn nothing_is_found_for_nonsense() {
    let store = beekeeper();
    for query in ["", " \n", "zxqv wlkj", "the of and", "???", "\u{871c}\u{8702}", "\u{0}"] {
        assert!(find(&store, query).is_empty(), "{query}");
    }
    assert!(store.search("bees", None, 0).unwrap().hits.is_empty());
}

/// Operators of the query languages of others are words or nothing.
#[test]
fn any_text_is_a_query() {
    let store = beekeeper();
    for query in [
        "bees AND NOT",
        "OR",
        "NEAR(bees, 3)",
        "\"bees",
        "bees*",
        "(bees",
        "text:bees",
        "^bees",
        "-bees",
        "bees ' OR 1=1 --",
        "{bees}",
        "bees\\",
        "%bees%",
        "+bees +-",
        "bees~2",
    ] {
        let found = find(&store, query);
        if query.contains("bees") {
            assert_eq!(found.first(), Some(&place("bees", 1, Source::User)), "{query}");
        }
    }
}

#[test]
fn what_is_written_exactly_is_found_exactly() {
    let exact = [
        "C++",
        "C#",
        "a-b",
        "/etc/hosts",
        "~/bees.txt",
        "ada@example.org",
        "2023-05-08",
        "3.14",
        "3,000",
        "-40",
        "50%",
        "+49-30-1234",
        "10:30",
        "v1.2.3",
        "192.168.0.1",
        "\u{1f41d}",
    ];
    let store = searched();
    for (number, text) in exact.iter().enumerate() {
        let session = id(&format!("s{number}"));
        store.accept(&session, &format!("It was ({text}), I think."), at(0)).unwrap();
        store
            .accept(&session, "C a b etc hosts bees.md 2023 14 3 40 50 30 1.2 168", at(0))
            .unwrap();
    }
    for (number, text) in exact.iter().enumerate() {
        let best = find(&store, text).into_iter().next();
        assert_eq!(best, Some(place(&format!("s{number}"), 1, Source::User)), "{text}");
    }
}

#[test]
fn every_language_is_found_beside_the_others() {
    let store = searched();
    for (number, (text, _)) in MANY.iter().enumerate() {
        store.accept(&id(&format!("s{number}")), text, at(MAY_8)).unwrap();
    }
    for (number, (_, query)) in MANY.iter().enumerate() {
        let best = find(&store, query).into_iter().next();
        assert_eq!(best, Some(place(&format!("s{number}"), 1, Source::User)), "{query}");
    }
}

/// What is said, and what is looked for: another form, without accents, part of it.
const MANY: [(&str, &str); 11] = [
    ("We were talking about the old library.", "libraries"),
    ("Ich habe gestern mit der Imkerin die V\u{f6}lker gez\u{e4}hlt.", "volker"),
    ("Nous avons mang\u{e9} les pommes dans le jardin.", "manger"),
    ("Ayer cant\u{e9} las canciones de mi abuela.", "cancion"),
    ("Ieri ho visto i gatti nella piazza.", "gatto"),
    (
        "\u{42f} \u{432}\u{438}\u{434}\u{435}\u{43b} \u{43f}\u{447}\u{451}\u{43b} \u{432} \u{441}\u{430}\u{434}\u{443}.",
        "\u{441}\u{430}\u{434}",
    ),
    ("\u{6211}\u{559c}\u{6b22}\u{5403}\u{8702}\u{871c}\u{3002}", "\u{8702}\u{871c}"),
    (
        "\u{6628}\u{65e5}\u{5bff}\u{53f8}\u{3092}\u{98df}\u{3079}\u{307e}\u{3057}\u{305f}\u{3002}",
        "\u{5bff}\u{53f8}",
    ),
    (
        "\u{c5b4}\u{c81c} \u{d559}\u{ad50}\u{c5d0}\u{c11c} \u{ce5c}\u{ad6c}\u{b97c} \u{b9cc}\u{b0ac}\u{b2e4}.",
        "\u{d559}\u{ad50}",
    ),
    (
        "\u{e09}\u{e31}\u{e19}\u{e0a}\u{e2d}\u{e1a}\u{e1c}\u{e36}\u{e49}\u{e07}",
        "\u{e1c}\u{e36}\u{e49}\u{e07}",
    ),
    (
        "\u{642}\u{631}\u{623}\u{62a} \u{627}\u{644}\u{643}\u{62a}\u{627}\u{628} \u{623}\u{645}\u{633}.",
        "\u{643}\u{62a}\u{627}\u{628}",
    ),
];

#[test]
fn a_session_can_be_searched_alone() {
    let store = beekeeper();
    let found = store.search("shed", Some(&id("bees")), 10).unwrap();
    assert!(found.hits.is_empty());
    assert_eq!(found.searched, 4);
    let found = store.search("swarm", Some(&id("bees")), 10).unwrap();
    assert_eq!(found.hits[0].session, Some(id("bees")));
    let error = store.search("swarm", Some(&id("cellar")), 10);
    assert!(matches!(error, Err(ReadError::UnknownSession { session }) if session == id("cellar")));
}

#[test]
fn a_renamed_session_is_found_by_its_new_name_and_a_deleted_one_not_at_all() {
    let store = beekeeper();
    store.rename(&id("bees"), &id("apiary")).unwrap();
    assert_eq!(find(&store, "oak")[0], place("apiary", 2, Source::User));
    store.delete(&id("apiary")).unwrap();
    assert!(find(&store, "oak").is_empty());
    assert_eq!(find(&store, "shed").len(), 2);
    store.accept(&id("apiary"), "Another beginning.", at(MAY_8)).unwrap();
    assert!(find(&store, "oak").is_empty());
}

/// A store that was just opened has no index: it makes one.
fn anew(medium: &RamMedium, query: &str, session: Option<&SessionId>) -> Result<Found, ReadError> {
    let copy = RamMedium::from_bytes(medium.snapshot());
    open(&copy).search(query, session, 5)
}

const QUERIES: [&str; 6] =
    ["bees", "When did my hive swarm in May?", "oak a-b", "the rain", "\u{8702}\u{871c}", "8 may"];

fn text() -> impl Strategy<Value = String> {
    let word = prop::sample::select(vec![
        "bee",
        "bees",
        "swarm",
        "hive?",
        "oak",
        "rain",
        "yesterday",
        "the",
        "my",
        "a-b",
        "May",
        "\u{8702}\u{871c}",
        "pommes",
        "und",
        "der",
        "\u{43f}\u{447}\u{435}\u{43b}\u{44b}",
    ]);
    vec(word, 0..7).prop_map(|words| words.join(" "))
}

fn op() -> impl Strategy<Value = Op> {
    let session = 0..NAMES;
    let ms = (0..60_i64).prop_map(|days| MAY_8 + days * DAY);
    prop_oneof![
        8 => (session.clone(), text(), ms)
            .prop_map(|(session, text, ms)| Op::Accept { session, text, ms }),
        6 => (session.clone(), 0..5_u64, text())
            .prop_map(|(session, seq, text)| Op::Reply { session, seq, text }),
        2 => (session.clone(), session.clone())
            .prop_map(|(session, to)| Op::Rename { session, to }),
        2 => session.prop_map(|session| Op::Delete { session }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn the_index_that_is_kept_is_the_one_that_would_be_made(ops in vec(op(), 1..30)) {
        let medium = RamMedium::new();
        let store = open(&medium);
        store.search("", None, 1).unwrap();
        for op in &ops {
            let _ = apply(&store, op);
            for query in QUERIES {
                let kept = store.search(query, None, 5).unwrap();
                prop_assert_eq!(&kept, &anew(&medium, query, None).unwrap(), "{}", query);
                if let Some(session) = kept.hits.last().and_then(|hit| hit.session.as_ref()) {
                    let one = store.search(query, Some(session), 5).unwrap();
                    prop_assert_eq!(one, anew(&medium, query, Some(session)).unwrap());
                }
            }
        }
    }

    #[test]
    fn no_query_fails(query in any::<String>()) {
        let store = beekeeper();
        prop_assert!(store.search(&query, None, 3).unwrap().hits.len() <= 3);
    }
}
