//! Facts as a caller sees them. Many of these reproduce what went wrong in systems before ours;
//! each says what.

use garret_core::time::{Confidence, WallTime};
use garret_hal::media::{FileMedium, RamMedium};
use garret_storage::{
    Added, Fact, FactError, FactFilter, FactId, FactKind, FactSource, FactView, ImportedTurn,
    LinkKind, NewFact, NewReply, Node, Origin, Outcome, Store, StoredFinish, WriteError,
    search::Speaker,
};

use crate::model::{id, open};

pub(crate) const DAY: i64 = 86_400_000;

pub(crate) fn at(unix_ms: i64) -> WallTime {
    WallTime { unix_ms, confidence: Confidence::Good }
}

pub(crate) fn store() -> Store {
    open(&RamMedium::new())
}

/// What `subject` is or has, told at `day` about that day.
fn say(store: &Store, subject: &str, predicate: &str, object: &str, day: i64) -> Added {
    store.add_fact(&fact(subject, predicate, object), at(day * DAY)).unwrap()
}

fn fact<'a>(subject: &'a str, predicate: &'a str, object: &'a str) -> NewFact<'a> {
    NewFact {
        text: object,
        subject: Some(subject),
        predicate: Some(predicate),
        object: Some(object),
        ..NewFact::default()
    }
}

fn note(text: &str) -> NewFact<'_> {
    NewFact { text, ..NewFact::default() }
}

fn get(store: &Store, id: FactId) -> Fact {
    store.fact(id).unwrap().unwrap()
}

/// The objects that hold on a day, in the order of writing.
fn held(store: &Store, subject: &str, predicate: &str, day: i64) -> Vec<String> {
    let filter = FactFilter {
        as_of: Some(day * DAY),
        subject: Some(subject),
        predicate: Some(predicate),
        ..FactFilter::default()
    };
    let page = store.facts(&filter).unwrap();
    assert_eq!(page.next, None);
    page.facts.into_iter().map(|fact| fact.object.unwrap_or(fact.text)).collect()
}

fn sound(store: &Store) {
    assert_eq!(store.check_facts().unwrap(), [""; 0]);
}

#[test]
fn a_newer_value_ends_the_older_and_both_stay() {
    let store = store();
    let oslo = say(&store, "Ada", "lives_in", "Oslo", 1);
    let rome = say(&store, "Ada", "lives_in", "Rome", 5);
    assert_eq!((rome.outcome, &*rome.superseded), (Outcome::Stored, &[oslo.id][..]));
    let old = get(&store, oslo.id);
    assert_eq!((old.valid_at, old.valid_to), (DAY, Some(5 * DAY)));
    assert_eq!(
        (old.superseded_by, old.latest, old.kind),
        (Some(rome.id), false, FactKind::Asserts)
    );
    let new = get(&store, rome.id);
    assert_eq!((new.valid_to, new.latest, new.kind), (None, true, FactKind::Supersedes));
    let expected: [(i64, &[&str]); 5] =
        [(0, &[]), (1, &["Oslo"]), (4, &["Oslo"]), (5, &["Rome"]), (99, &["Rome"])];
    for (day, expected) in expected {
        assert_eq!(held(&store, "Ada", "lives_in", day), expected, "day {day}");
    }
    let history: Vec<_> = store.history(oslo.id).unwrap().iter().map(|fact| fact.id).collect();
    assert_eq!(history, [oslo.id, rome.id]);
    sound(&store);
}

/// Where the order of telling counts, an older event told later retires the newer fact, with an end
/// before its start.
#[test]
fn an_older_event_told_later_gets_its_own_place() {
    let store = store();
    let rome = say(&store, "Ada", "lives_in", "Rome", 10);
    let older = NewFact { valid_at: Some(2 * DAY), ..fact("Ada", "lives_in", "Oslo") };
    let oslo = store.add_fact(&older, at(11 * DAY)).unwrap();
    assert_eq!((oslo.outcome, &*oslo.superseded), (Outcome::Stored, &[][..]));
    let oslo = get(&store, oslo.id);
    assert_eq!((oslo.valid_to, oslo.superseded_by), (Some(10 * DAY), Some(rome.id)));
    assert_eq!((oslo.latest, oslo.recorded_at), (false, 11 * DAY));
    let rome = get(&store, rome.id);
    assert_eq!((rome.valid_to, rome.latest, rome.superseded_by), (None, true, None));
    let between = NewFact { valid_at: Some(6 * DAY), ..fact("Ada", "lives_in", "Bern") };
    let bern = store.add_fact(&between, at(12 * DAY)).unwrap();
    assert_eq!(bern.superseded, [oslo.id]);
    assert_eq!(get(&store, oslo.id).superseded_by, Some(bern.id));
    assert_eq!(get(&store, bern.id).superseded_by, Some(rome.id));
    for (day, city) in [(3, "Oslo"), (6, "Bern"), (9, "Bern"), (10, "Rome"), (20, "Rome")] {
        assert_eq!(held(&store, "Ada", "lives_in", day), [city], "day {day}");
    }
    let history = store.history(rome.id).unwrap();
    assert_eq!(
        history.iter().map(|fact| &*fact.text).collect::<Vec<_>>(),
        ["Oslo", "Bern", "Rome"]
    );
    sound(&store);
}

#[test]
fn of_two_with_one_start_the_later_told_holds() {
    let store = store();
    let rome = say(&store, "Ada", "lives_in", "Rome", 3);
    let oslo = say(&store, "Ada", "lives_in", "Oslo", 3);
    let rome = get(&store, rome.id);
    assert_eq!((rome.valid_to, rome.superseded_by), (Some(3 * DAY), Some(oslo.id)));
    assert_eq!(held(&store, "Ada", "lives_in", 3), ["Oslo"]);
    assert_eq!(store.history(oslo.id).unwrap().len(), 2);
    sound(&store);
}

/// A Raspberry Pi without a battery may say it is 1970: what was said just now isn't old news then.
#[test]
fn what_is_said_now_by_a_wrong_clock_comes_last() {
    let store = store();
    say(&store, "Ada", "lives_in", "Rome", 20_000);
    let now = WallTime { unix_ms: 5, confidence: Confidence::Wrong };
    let oslo = store.add_fact(&fact("Ada", "lives_in", "Oslo"), now).unwrap();
    assert_eq!(held(&store, "Ada", "lives_in", 20_001), ["Oslo"]);
    let bern = store.supersede(oslo.id, &fact("Ada", "lives_in", "Bern"), now).unwrap();
    assert_eq!(held(&store, "Ada", "lives_in", 20_001), ["Bern"]);
    let bern = get(&store, bern.id);
    assert_eq!((bern.recorded_at, bern.clock), (5, Confidence::Wrong));
    let dated = NewFact { valid_at: Some(6), ..fact("Ada", "lives_in", "Kiel") };
    store.add_fact(&dated, now).unwrap();
    assert_eq!(held(&store, "Ada", "lives_in", 20_001), ["Bern"]);
    assert_eq!(held(&store, "Ada", "lives_in", 1), ["Kiel"]);
    sound(&store);
}

#[test]
fn a_subject_has_many_objects_of_some_predicates() {
    let store = store();
    let tea = say(&store, "Ada", "likes", "tea", 1);
    let jazz = say(&store, "Ada", "likes", "jazz", 2);
    assert_eq!((&*jazz.superseded, get(&store, jazz.id).kind), (&[][..], FactKind::Extends));
    let chess = store.supersede(tea.id, &fact("Ada", "likes", "chess"), at(3 * DAY)).unwrap();
    assert_eq!(chess.superseded, [tea.id]);
    assert_eq!(held(&store, "Ada", "likes", 2), ["tea", "jazz"]);
    assert_eq!(held(&store, "Ada", "likes", 3), ["jazz", "chess"]);
    // An earlier time for what holds already: never twice at once.
    let earlier = NewFact { valid_at: Some(0), ..fact("Ada", "likes", "Jazz") };
    let earlier = store.add_fact(&earlier, at(4 * DAY)).unwrap();
    assert_eq!(get(&store, earlier.id).valid_to, Some(2 * DAY));
    assert_eq!(held(&store, "Ada", "likes", 3), ["jazz", "chess"]);
    assert_eq!(held(&store, "Ada", "likes", 0), ["Jazz"]);
    sound(&store);
}

/// One value at a time is a promise of the store, whatever words a text has.
#[test]
fn also_makes_no_second_value_where_one_holds_at_a_time() {
    let store = store();
    say(&store, "Ada", "works_at", "Acme", 1);
    let also = NewFact { text: "I also work at Initech.", ..fact("Ada", "works_at", "Initech") };
    store.add_fact(&also, at(2 * DAY)).unwrap();
    assert_eq!(held(&store, "Ada", "works_at", 2), ["Initech"]);
}

#[test]
fn a_restatement_writes_nothing() {
    let medium = RamMedium::new();
    let store = open(&medium);
    let oslo = say(&store, "Ada", "lives_in", "Oslo", 1);
    let plain = store.add_fact(&note("Buy milk."), at(DAY)).unwrap();
    let count = || store.facts(&FactFilter::default()).unwrap().facts.len();
    for object in ["Oslo", "OSLO", " oslo ", "\"Oslo\"", "Oslo."] {
        let again = say(&store, "ADA", "Lives in", object, 4);
        assert_eq!((again.id, again.outcome), (oslo.id, Outcome::Restated), "{object}");
    }
    let again = store.add_fact(&note(" buy  MILK"), at(2 * DAY)).unwrap();
    assert_eq!((again.id, again.outcome), (plain.id, Outcome::Restated));
    assert_eq!(count(), 2);
    // Nothing in it to compare.
    for _ in 0..2 {
        let sign = store.add_fact(&note("?!"), at(2 * DAY)).unwrap();
        assert_eq!(sign.outcome, Outcome::Stored);
    }
    say(&store, "Ada", "earns", "10,5", 1);
    assert_eq!(say(&store, "Ada", "earns", "105", 2).outcome, Outcome::Stored);
    assert_eq!(store.entities().unwrap().len(), 1);
    sound(&store);
}

#[test]
fn saying_again_what_was_superseded_supersedes() {
    let store = store();
    let first = say(&store, "Ada", "lives_in", "Oslo", 1);
    let rome = say(&store, "Ada", "lives_in", "Rome", 2);
    let again = say(&store, "Ada", "lives_in", "Oslo", 3);
    assert_ne!(again.id, first.id);
    assert_eq!(again.superseded, [rome.id]);
    for (day, city) in [(1, "Oslo"), (2, "Rome"), (3, "Oslo")] {
        assert_eq!(held(&store, "Ada", "lives_in", day), [city]);
    }
    assert_eq!(store.history(again.id).unwrap().len(), 3);
}

/// Where a text counts as said already, the second of two facts from one sentence is dropped.
#[test]
fn one_sentence_can_say_two_things() {
    let store = store();
    for object in ["jazz", "blues"] {
        let text = "I like jazz and blues.";
        let fact = NewFact { text, ..fact("user", "likes", object) };
        assert_eq!(store.add_fact(&fact, at(DAY)).unwrap().outcome, Outcome::Stored);
    }
    assert_eq!(held(&store, "user", "likes", 1), ["jazz", "blues"]);
}

#[test]
fn what_was_written_is_kept_letter_for_letter() {
    let medium = RamMedium::new();
    let store = open(&medium);
    let text = "  I LIVE in\tCafe\u{301} street.\n";
    let written = NewFact {
        text,
        source: FactSource::from_name("Ada L."),
        quote: Some("LIVE in"),
        subject: Some("Ada"),
        subject_type: Some("Person"),
        predicate: Some("lives in"),
        object: Some("Cafe\u{301} street"),
        valid_to: Some(9 * DAY),
        salience: Some(7.25),
        confidence: Some(0.5),
        ..NewFact::default()
    };
    let added = store.add_fact(&written, at(DAY)).unwrap();
    let before = get(&store, added.id);
    drop(store);
    let store = open(&medium);
    let fact = get(&store, added.id);
    assert_eq!(fact, before);
    assert_eq!((&*fact.text, fact.source), (text, FactSource::Named("Ada L.".into())));
    assert_eq!((fact.quote.as_deref(), fact.grounded), (Some("LIVE in"), false));
    assert_eq!(
        (&*fact.predicate, fact.object.as_deref()),
        ("lives_in", Some("Cafe\u{301} street"))
    );
    assert_eq!((fact.salience, fact.confidence), (7.25, 0.5));
    assert_eq!((fact.valid_at, fact.valid_to, fact.latest), (DAY, Some(9 * DAY), false));
    let ada = store.entity(fact.subject.unwrap()).unwrap().unwrap();
    assert_eq!((&*ada.name, &*ada.kind, ada.recorded_at), ("Ada", "Person", DAY));
}

/// A name is one entity however its case, spaces and letters are written; accents, widths,
/// punctuation and types tell entities apart.
#[test]
fn an_entity_is_known_by_its_name() {
    let store = store();
    let count = |names: &[&str]| {
        let before = store.entities().unwrap().len();
        for name in names {
            say(&store, name, "is_a", "thing", 1);
        }
        store.entities().unwrap().len() - before
    };
    assert_eq!(count(&["Acme", "ACME", "acme", " a\u{63}me "]), 1);
    assert_eq!(count(&["Caf\u{e9}", "CAF\u{c9}", "Cafe\u{301}"]), 1);
    assert_eq!(count(&["\u{42e}\u{43b}\u{438}\u{44f}", "\u{44e}\u{43b}\u{438}\u{44f}"]), 1);
    assert_eq!(count(&["Yahoo!", "Yahoo", "Cafe", "\u{ff21}cme"]), 4);
    assert_eq!(count(&["New York", "new  york"]), 1);
    let typed = NewFact { subject_type: Some("person"), ..fact("Acme", "is_a", "smith") };
    store.add_fact(&typed, at(DAY)).unwrap();
    let entities = store.entities().unwrap();
    assert_eq!(entities.first().map(|entity| &*entity.name), Some("Acme"));
    let named = |name: &str| entities.iter().filter(|entity| entity.name == name).count();
    assert_eq!(named("Acme"), 2);
    // Of either type.
    assert_eq!(held(&store, "acme", "is_a", 1), ["thing", "smith"]);
    sound(&store);
}

/// Names that are cleaned of odd signs meet in one file.
#[test]
fn namespaces_never_see_each_others_facts() {
    let directory = tempfile::tempdir().unwrap();
    let names = ["a/b", "a_b", "\u{65e5}\u{672c}", "\u{4e2d}\u{56fd}", "A_B"];
    let open = |name| {
        Store::open(directory.path(), name, |path| Ok(Box::new(FileMedium::open(path)?))).unwrap()
    };
    for name in names {
        open(name).add_fact(&note(name), at(DAY)).unwrap();
    }
    for name in names {
        let facts = open(name).facts(&FactFilter::default()).unwrap().facts;
        assert_eq!(facts.iter().map(|fact| &*fact.text).collect::<Vec<_>>(), [name]);
    }
}

/// Of two writers that look first and write then, each makes an entity and a current value.
#[test]
fn writers_that_meet_make_one_subject_and_one_current_value() {
    let store = store();
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let store = &store;
            scope.spawn(move || {
                for nth in 0..10 {
                    let employer = format!("Employer {writer}.{nth}");
                    let subject = ["user", "User", "USER", " user"][writer];
                    say(store, subject, "works_at", &employer, 1);
                }
            });
        }
    });
    assert_eq!(store.entities().unwrap().len(), 1);
    assert_eq!(held(&store, "user", "works_at", 1).len(), 1);
    let latest = FactFilter { latest: true, ..FactFilter::default() };
    assert_eq!(store.facts(&latest).unwrap().facts.len(), 1);
    assert_eq!(store.facts(&FactFilter::default()).unwrap().facts.len(), 40);
    sound(&store);
}

/// A fact that fails leaves nothing of itself: no subject, no ended predecessor.
#[test]
fn a_fact_is_stored_whole_or_not_at_all() {
    let store = store();
    let oslo = say(&store, "Ada", "lives_in", "Oslo", 1);
    let session = id(0);
    let lost = NewFact {
        origin: Some(Origin { session: &session, turn: 1 }),
        ..fact("Bob", "lives_in", "Rome")
    };
    let error = store.add_fact(&lost, at(2 * DAY)).unwrap_err();
    assert!(matches!(error, WriteError::UnknownSession { .. }), "{error}");
    let unknown = [FactId(99)];
    let lost = NewFact { derived_from: &unknown, ..fact("Ada", "lives_in", "Rome") };
    let batch = [fact("Bob", "lives_in", "Bern"), fact("Ada", "lives_in", "Kiel"), lost.clone()];
    for error in [
        store.add_fact(&lost, at(2 * DAY)).unwrap_err(),
        store.add_facts(&batch, at(2 * DAY)).unwrap_err(),
        store.supersede(FactId(99), &fact("Bob", "is_a", "smith"), at(DAY)).unwrap_err(),
        store.retract(FactId(99), 0).unwrap_err(),
    ] {
        let expected = FactError::UnknownFact { fact: FactId(99) };
        assert!(matches!(&error, WriteError::Fact(error) if *error == expected), "{error}");
    }
    assert_eq!(store.entities().unwrap().len(), 1);
    let facts = store.facts(&FactFilter::default()).unwrap().facts;
    assert_eq!(
        facts.iter().map(|fact| (fact.id, fact.latest)).collect::<Vec<_>>(),
        [(oslo.id, true)]
    );
    // The number that wasn't used is the next one's.
    assert_eq!(say(&store, "Ada", "lives_in", "Rome", 2).id, FactId(oslo.id.0 + 1));
    sound(&store);
}

#[test]
fn a_batch_is_stored_in_order() {
    let store = store();
    let batch = [
        fact("Ada", "lives_in", "Oslo"),
        fact("Ada", "lives_in", "Rome"),
        fact("Ada", "lives_in", "Rome"),
        fact("Bob", "likes", "tea"),
    ];
    let added = store.add_facts(&batch, at(DAY)).unwrap();
    let outcomes: Vec<_> = added.iter().map(|added| added.outcome).collect();
    assert_eq!(outcomes[..3], [Outcome::Stored, Outcome::Stored, Outcome::Restated]);
    assert_eq!(added[1].superseded, [added[0].id]);
    assert_eq!(added[2].id, added[1].id);
    assert_eq!(added[3].id, FactId(3));
    assert_eq!(store.add_facts(&[], at(DAY)).unwrap(), []);
}

#[test]
fn a_quote_is_looked_for_in_the_words_of_its_source() {
    let store = store();
    let session = id(0);
    store.accept(&session, "I live in\n  Oslo since May.", at(1)).unwrap();
    let reply = NewReply {
        text: "Oslo is cold.",
        tokens: &[],
        model_fingerprint: &[0; 32],
        finish: StoredFinish::Stop,
        at: at(2),
        receipt: b"",
        trace: &[],
    };
    store.reply(&session, 1, reply).unwrap();
    let origin = Some(Origin { session: &session, turn: 1 });
    let grounded = |quote, source: &'static str| {
        let text = format!("fact {}", store.facts(&FactFilter::default()).unwrap().facts.len());
        let source = FactSource::from_name(source);
        let fact = NewFact { text: &text, quote: Some(quote), source, origin, ..note("") };
        let added = store.add_fact(&fact, at(3)).unwrap();
        let fact = get(&store, added.id);
        assert_eq!((fact.session, fact.turn), (Some(1), Some(1)));
        fact.grounded
    };
    assert!(grounded("live in Oslo", "user"));
    assert!(!grounded("live in oslo", "user"));
    assert!(!grounded("Oslo is cold", "user"));
    assert!(grounded("Oslo is cold", "assistant"));
    assert!(!grounded("since May", "assistant"));
    assert!(grounded("since May", "Ada") && grounded("is cold", "tool"));
    assert!(!grounded("", "user"));
    let missing = NewFact { origin: Some(Origin { session: &session, turn: 2 }), ..note("x") };
    let error = store.add_fact(&missing, at(3)).unwrap_err();
    assert!(matches!(error, WriteError::UnknownTurn { turn: 2, .. }), "{error}");
}

/// An imported turn is somebody's words: nobody else's.
#[test]
fn a_quote_of_an_imported_turn_is_its_speakers() {
    let store = store();
    let session = id(0);
    let said =
        |speaker, text| ImportedTurn { session: &session, speaker, text, at: at(1), id: None };
    let turns = [
        said(Speaker::Named("Ada"), "I keep bees."),
        said(Speaker::Assistant, "How many?"),
        said(Speaker::Assistant, "Bees are kept in hives."),
    ];
    store.import_turns(&turns).unwrap();
    let grounded = |turn, quote, source: &'static str| {
        let text = format!("fact {}", store.facts(&FactFilter::default()).unwrap().facts.len());
        let origin = Some(Origin { session: &session, turn });
        let source = FactSource::from_name(source);
        let fact = NewFact { text: &text, quote: Some(quote), source, origin, ..note("") };
        let added = store.add_fact(&fact, at(3)).unwrap();
        get(&store, added.id).grounded
    };
    assert!(grounded(1, "keep bees", "ada") && grounded(1, "keep bees", "document"));
    assert!(!grounded(1, "keep bees", "user") && !grounded(1, "keep bees", "Bob"));
    assert!(grounded(1, "How many", "assistant") && !grounded(1, "How many", "Ada"));
    assert!(grounded(2, "in hives", "assistant") && !grounded(2, "in hives", "user"));
}

/// Deleting a conversation doesn't delete what was learnt from it.
#[test]
fn facts_outlive_their_session() {
    let store = store();
    let session = id(0);
    store.accept(&session, "I live in Oslo.", at(1)).unwrap();
    let origin = Some(Origin { session: &session, turn: 1 });
    let oslo = NewFact { origin, quote: Some("Oslo"), ..fact("user", "lives_in", "Oslo") };
    let oslo = store.add_fact(&oslo, at(2)).unwrap().id;
    assert_eq!(store.facts_of_turn(&session, 1).unwrap(), [oslo]);
    let of_session = FactFilter { session: Some(&session), ..FactFilter::default() };
    assert_eq!(store.facts(&of_session).unwrap().facts.len(), 1);
    assert_eq!(store.session_of_number(1).unwrap().as_ref(), Some(&session));
    let before = get(&store, oslo);
    store.delete(&session).unwrap();
    assert_eq!(get(&store, oslo), before);
    assert_eq!((before.session, before.grounded), (Some(1), true));
    assert_eq!(store.session_of_number(1).unwrap(), None);
    // Another session of that name is another session.
    store.accept(&session, "Hello.", at(3)).unwrap();
    assert_eq!(store.facts(&of_session).unwrap().facts, []);
    assert_eq!(store.facts_of_turn(&session, 1).unwrap(), []);
    sound(&store);
}

#[test]
fn what_is_inferred_never_replaces_what_was_said() {
    let store = store();
    let oslo = say(&store, "Ada", "lives_in", "Oslo", 1);
    let guess = NewFact { inferred: true, ..fact("Ada", "lives_in", "Rome") };
    let guess = store.add_fact(&guess, at(2 * DAY)).unwrap();
    assert_eq!((guess.outcome, &*guess.superseded), (Outcome::Stored, &[][..]));
    let guess = get(&store, guess.id);
    assert!(guess.inferred && guess.kind == FactKind::Derives);
    assert_eq!((guess.valid_to, guess.superseded_by), (Some(2 * DAY), Some(oslo.id)));
    assert_eq!(held(&store, "Ada", "lives_in", 3), ["Oslo"]);
    // Where nothing was said it holds, until something is: even the same.
    let guess = NewFact { inferred: true, ..fact("Ada", "works_at", "Acme") };
    let guess = store.add_fact(&guess, at(2 * DAY)).unwrap();
    assert_eq!(held(&store, "Ada", "works_at", 2), ["Acme"]);
    let said = say(&store, "Ada", "works_at", "Acme", 4);
    assert_eq!((said.outcome, &*said.superseded), (Outcome::Stored, &[guess.id][..]));
    assert!(!get(&store, said.id).inferred);
    let again = NewFact { inferred: true, ..fact("Ada", "works_at", "Acme") };
    assert_eq!(store.add_fact(&again, at(5 * DAY)).unwrap().outcome, Outcome::Restated);
    sound(&store);
}

#[test]
fn a_named_fact_is_replaced() {
    let store = store();
    let first = store.add_fact(&note("The key is under the mat."), at(DAY)).unwrap();
    let second = store.supersede(first.id, &note("The key is in the shed."), at(3 * DAY)).unwrap();
    assert_eq!(second.superseded, [first.id]);
    let first = get(&store, first.id);
    assert_eq!((first.valid_to, first.superseded_by), (Some(3 * DAY), Some(second.id)));
    let error = store.supersede(first.id, &note("It is lost."), at(4 * DAY)).unwrap_err();
    let told = error.to_string();
    assert!(told.contains("f1") && told.contains("supersede f2 instead"), "{told}");
    // Without a subject the new one is about the same as the old one.
    let oslo = say(&store, "Ada", "lives_in", "Oslo", 1);
    let rome = store.supersede(oslo.id, &note("Rome"), at(2 * DAY)).unwrap();
    let rome = get(&store, rome.id);
    assert_eq!((rome.subject, &*rome.predicate), (get(&store, oslo.id).subject, "lives_in"));
    assert_eq!(held(&store, "Ada", "lives_in", 2), ["Rome"]);
    sound(&store);
}

/// The old fact was wrong from its start: it ends there, not before.
#[test]
fn a_correction_from_before_the_old_facts_start() {
    let store = store();
    let oslo = say(&store, "Ada", "lives_in", "Oslo", 5);
    let rome = NewFact { valid_at: Some(2 * DAY), ..fact("Ada", "lives_in", "Rome") };
    let rome = store.supersede(oslo.id, &rome, at(6 * DAY)).unwrap();
    let oslo = get(&store, oslo.id);
    assert_eq!((oslo.valid_at, oslo.valid_to), (5 * DAY, Some(5 * DAY)));
    for (day, expected) in [(1, &[][..]), (2, &["Rome"]), (5, &["Rome"]), (9, &["Rome"])] {
        assert_eq!(held(&store, "Ada", "lives_in", day), expected);
    }
    assert!(get(&store, rome.id).latest);
    sound(&store);
}

/// The value before comes back: it doesn't stay replaced by what it replaces.
#[test]
fn a_correction_to_the_value_before_makes_no_circle() {
    let store = store();
    let first = say(&store, "Ada", "lives_in", "Oslo", 1);
    let wrong = say(&store, "Ada", "lives_in", "Rome", 5);
    let back = NewFact { valid_at: Some(3 * DAY), ..fact("Ada", "lives_in", "Oslo") };
    let back = store.supersede(wrong.id, &back, at(6 * DAY)).unwrap();
    assert_eq!(back.outcome, Outcome::Stored);
    assert_eq!(back.superseded, [wrong.id, first.id]);
    assert_eq!(held(&store, "Ada", "lives_in", 9), ["Oslo"]);
    // Where what is to replace it is said already, that does.
    let tea = say(&store, "Ada", "likes", "tea", 1);
    let coffee = say(&store, "Ada", "likes", "coffee", 1);
    let same = store.supersede(coffee.id, &fact("Ada", "likes", "Tea"), at(2 * DAY)).unwrap();
    assert_eq!((same.id, same.outcome), (tea.id, Outcome::Restated));
    assert_eq!(
        (&*same.superseded, get(&store, coffee.id).superseded_by),
        (&[coffee.id][..], Some(tea.id))
    );
    sound(&store);
}

#[test]
fn a_retracted_fact_ends_without_a_successor() {
    let store = store();
    let oslo = say(&store, "Ada", "lives_in", "Oslo", 1);
    let rome = say(&store, "Ada", "lives_in", "Rome", 5);
    store.retract(rome.id, 8 * DAY).unwrap();
    let fact = get(&store, rome.id);
    assert_eq!((fact.valid_to, fact.superseded_by, fact.latest), (Some(8 * DAY), None, false));
    for (day, expected) in [(4, &["Oslo"][..]), (7, &["Rome"]), (8, &[])] {
        assert_eq!(held(&store, "Ada", "lives_in", day), expected);
    }
    // Later changes nothing, earlier does; before its start it never was.
    store.retract(rome.id, 9 * DAY).unwrap();
    assert_eq!(get(&store, rome.id).valid_to, Some(8 * DAY));
    store.retract(rome.id, 2 * DAY).unwrap();
    assert_eq!(get(&store, rome.id).valid_to, Some(5 * DAY));
    store.retract(oslo.id, 3 * DAY).unwrap();
    let oslo = get(&store, oslo.id);
    assert_eq!((oslo.valid_to, oslo.superseded_by), (Some(3 * DAY), Some(rome.id)));
    assert_eq!(say(&store, "Ada", "lives_in", "Rome", 10).outcome, Outcome::Stored);
    sound(&store);
}

#[test]
fn a_retired_duplicate_stays_true_until_its_survivor_ends() {
    let store = store();
    let [a, b, d] = ["coffee", "a coffee", "the coffee"]
        .map(|object| say(&store, "Ada", "likes", object, 1).id);
    let before = held(&store, "Ada", "likes", 2);
    store.touch(&[(a, 5), (b, 9), (b, 7), (FactId(99), 1)]).unwrap();
    store.retire_duplicate(b, a).unwrap();
    store.retire_duplicate(a, d).unwrap();
    assert_eq!(held(&store, "Ada", "likes", 2), before);
    assert_eq!([a, b].map(|id| get(&store, id).superseded_by), [Some(d); 2]);
    assert!(!get(&store, b).latest);
    let used = store.usage(d).unwrap();
    assert_eq!((used.count, used.last_ms), (3, Some(9)));
    // Saying it again is said by the survivor.
    assert_eq!(say(&store, "Ada", "likes", "A coffee", 3).id, d);
    let tea = store.supersede(d, &fact("Ada", "likes", "tea"), at(4 * DAY)).unwrap();
    assert_eq!(tea.superseded, [d, b, a]);
    for id in [a, b, d] {
        assert_eq!(get(&store, id).valid_to, Some(4 * DAY));
    }
    assert_eq!(held(&store, "Ada", "likes", 4), ["tea"]);
    sound(&store);
}

#[test]
fn a_duplicate_that_ended_before_is_left_alone() {
    let store = store();
    let [a, b] = ["coffee", "a coffee"].map(|object| say(&store, "Ada", "likes", object, 1).id);
    store.retire_duplicate(b, a).unwrap();
    store.retract(b, 2 * DAY).unwrap();
    let tea = store.supersede(a, &fact("Ada", "likes", "tea"), at(4 * DAY)).unwrap();
    assert_eq!(tea.superseded, [a]);
    assert_eq!(get(&store, b).valid_to, Some(2 * DAY));
    let other = say(&store, "Ada", "lives_in", "Oslo", 1).id;
    for (loser, survivor) in [(a, tea.id), (tea.id, tea.id), (tea.id, other), (b, tea.id)] {
        let error = store.retire_duplicate(loser, survivor).unwrap_err();
        let expected = FactError::NotDuplicates { loser, survivor };
        assert!(matches!(&error, WriteError::Fact(error) if *error == expected), "{error}");
    }
    sound(&store);
}

#[test]
fn what_was_derived_ends_with_its_first_source() {
    let store = store();
    let [acme, oslo] = [("works_at", "Acme"), ("lives_in", "Oslo")]
        .map(|(predicate, object)| say(&store, "Ada", predicate, object, 1).id);
    let derive = |text, from: &[FactId]| {
        let fact = NewFact { inferred: true, derived_from: from, ..note(text) };
        store.add_fact(&fact, at(2 * DAY)).unwrap().id
    };
    let commutes = derive("Ada commutes in Oslo.", &[acme, oslo]);
    let tired = derive("Ada is tired.", &[commutes]);
    let unrelated = derive("Oslo is a city.", &[oslo]);
    let (from, to) = (Node::Fact(commutes), Node::Fact(acme));
    let links = store.links_of(to).unwrap();
    assert_eq!(links.iter().map(|link| (link.from, link.to)).collect::<Vec<_>>(), [(from, to)]);
    let initech = say(&store, "Ada", "works_at", "Initech", 5);
    assert_eq!(
        (&*initech.superseded, &*initech.invalidated),
        (&[acme][..], &[commutes, tired][..])
    );
    for id in [commutes, tired] {
        let fact = get(&store, id);
        assert_eq!((fact.valid_to, fact.superseded_by), (Some(5 * DAY), None));
        assert_eq!((fact.invalidated_by, fact.latest), (Some(initech.id), false));
    }
    assert!(get(&store, unrelated).latest);
    store.retract(oslo, DAY).unwrap();
    let fact = get(&store, unrelated);
    assert_eq!((fact.valid_to, fact.invalidated_by), (Some(2 * DAY), Some(oslo)));
    sound(&store);
}

/// A duplicate of what was derived, and what was derived from a duplicate, end with it, too.
#[test]
fn what_was_derived_from_a_duplicate_ends_as_well() {
    let store = store();
    let [a, b] = ["coffee", "a coffee"].map(|object| say(&store, "Ada", "likes", object, 1).id);
    let derived = NewFact { inferred: true, derived_from: &[b], ..note("Ada sleeps little.") };
    let derived = store.add_fact(&derived, at(2 * DAY)).unwrap().id;
    store.retire_duplicate(b, a).unwrap();
    assert!(get(&store, derived).latest);
    store.retract(a, 7 * DAY).unwrap();
    assert_eq!([a, b, derived].map(|id| get(&store, id).valid_to), [Some(7 * DAY); 3]);
    sound(&store);
}

#[test]
fn links_are_found_from_both_ends() {
    let store = store();
    let oslo = say(&store, "Ada", "lives_in", "Oslo", 1).id;
    let plain = store.add_fact(&note("Oslo has trams."), at(DAY)).unwrap().id;
    let ada = store.entities().unwrap()[0].id;
    let (from, to) = (Node::Fact(plain), Node::Fact(oslo));
    for _ in 0..2 {
        store.link(from, LinkKind::Related, to).unwrap();
    }
    store.link(Node::Entity(ada), LinkKind::PartOf, from).unwrap();
    assert_eq!(store.links_of(to).unwrap().len(), 1);
    assert_eq!(store.links_of(from).unwrap().len(), 2);
    let of_ada = store.links_of(Node::Entity(ada)).unwrap();
    assert_eq!((of_ada[0].kind, of_ada[0].to), (LinkKind::PartOf, from));
    let error = store.link(from, LinkKind::Related, Node::Fact(FactId(9))).unwrap_err();
    assert!(error.to_string().contains("no fact f9"), "{error}");
    sound(&store);
}

#[test]
fn pages_go_through_all_facts_once() {
    let store = store();
    let session = id(0);
    store.accept(&session, "hello", at(0)).unwrap();
    for nth in 0..25_i64 {
        let text = format!("note {nth}");
        let origin = (nth % 2 == 0).then_some(Origin { session: &session, turn: 1 });
        let source = FactSource::from_name(if nth % 3 == 0 { "tool" } else { "user" });
        store.add_fact(&NewFact { origin, source, ..note(&text) }, at(nth)).unwrap();
    }
    say(&store, "Ada", "likes", "tea", 1);
    say(&store, "Ada", "likes", "jazz", 1);
    let listed = |filter: FactFilter<'_>| {
        let (mut filter, mut ids) = (FactFilter { limit: 4, ..filter }, Vec::new());
        loop {
            let page = store.facts(&filter).unwrap();
            assert!(page.facts.len() <= 4);
            ids.extend(page.facts.iter().map(|fact| fact.id.0));
            match page.next {
                Some(next) => filter.after = Some(next),
                None => return ids,
            }
        }
    };
    let all = FactFilter::default;
    assert_eq!(listed(all()), (1..=27).collect::<Vec<_>>());
    let even: Vec<_> = (1..=25).step_by(2).collect();
    assert_eq!(listed(FactFilter { session: Some(&session), ..all() }), even);
    assert_eq!(listed(FactFilter { subject: Some("ADA"), ..all() }), [26, 27]);
    assert_eq!(listed(FactFilter { subject: Some("Bob"), ..all() }), [0; 0]);
    assert_eq!(listed(FactFilter { predicate: Some("Likes"), ..all() }), [26, 27]);
    assert_eq!(listed(FactFilter { kind: Some(FactKind::Extends), ..all() }), [27]);
    let tool = FactFilter { source: Some(FactSource::Tool), as_of: Some(6), ..all() };
    assert_eq!(listed(tool), [1, 4, 7]);
    let none = FactFilter { session: Some(&session), subject: Some("Ada"), ..all() };
    assert_eq!(listed(none), [0; 0]);
    let mut seen = Vec::new();
    let meanwhile = |fact: &FactView<'_>| {
        seen.push(fact.id.0);
        store.add_fact(&note(&format!("beside {}", fact.id)), at(0)).unwrap();
    };
    let before = listed(all());
    store.for_each_fact(meanwhile).unwrap();
    assert_eq!(seen, before);
}

/// A cursor over ids that come from the clock loses facts of one that went back.
#[test]
fn a_clock_that_goes_back_hides_no_fact_from_a_cursor() {
    let store = store();
    let first = store.add_fact(&note("one"), at(9 * DAY)).unwrap().id;
    for text in ["two", "three"] {
        store.add_fact(&note(text), at(DAY)).unwrap();
    }
    let after = FactFilter { after: Some(first), ..FactFilter::default() };
    let facts = store.facts(&after).unwrap().facts;
    assert_eq!(facts.iter().map(|fact| &*fact.text).collect::<Vec<_>>(), ["two", "three"]);
}

/// Not even when asked about the past.
#[test]
fn reading_writes_nothing() {
    let medium = RamMedium::new();
    let store = open(&medium);
    let oslo = say(&store, "Ada", "lives_in", "Oslo", 1).id;
    drop(store);
    let before = medium.snapshot();
    let store = open(&medium);
    held(&store, "Ada", "lives_in", 1);
    store.history(oslo).unwrap();
    store.entities().unwrap();
    sound(&store);
    assert_eq!(store.usage(oslo).unwrap().count, 0);
    drop(store);
    assert!(medium.snapshot() == before);
}

/// Filtered after a cut, most are lost; a slot revised again and again is what a memory is for.
#[test]
fn after_a_thousand_revisions_every_moments_truth_is_found() {
    let store = store();
    let name = |nth: i64| format!("City {nth}");
    // In an order that has nothing to do with time.
    let names: Vec<_> = (0..1_000).map(|nth| name(nth * 387 % 1_000)).collect();
    for (nth, names) in (0..).zip(names.chunks(50)) {
        let facts: Vec<_> = (nth * 50..)
            .zip(names)
            .map(|(nth, city)| NewFact {
                valid_at: Some((nth * 387 % 1_000) * DAY),
                ..fact("Ada", "lives_in", city)
            })
            .collect();
        store.add_facts(&facts, at(0)).unwrap();
    }
    let found = (0..100).filter(|probe| {
        let day = probe * 10 + 3;
        held(&store, "Ada", "lives_in", day) == [name(day)]
    });
    assert_eq!(found.count(), 100);
    let history = store.history(FactId(1)).unwrap();
    assert!(history.iter().zip(0..).all(|(fact, nth)| fact.text == name(nth)));
    assert_eq!(history.len(), 1_000);
    sound(&store);
}
