//! Facts from what users say of themselves, and guesses at what they are after, which are carried
//! to the next turn.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use garret::Cancel;
use garret::agent::{Agent, Options, Parts};
use garret_core::gate::Mode;
use garret_core::medium::{Medium, MediumError};
use garret_core::model::{ModelRole, PoolingError};
use garret_core::time::{Confidence, WallTime};
use garret_hal::clock::ManualClock;
use garret_hal::media::{Faults, FaultyMedium, FileMedium};
use garret_storage::{Fact, FactFilter, FactSource, NewFact, Pin, StateKind, Store};
use garret_tests::disk::fill;
use garret_tests::models::{STARTER, config, find};
use garret_tests::scripted::{Act, ScriptedEmbedder, ScriptedModel};
use garret_tests::talk::{self, TestAgent, parts, session};

const READING: &str = "\
plain: 20
guess: 80 | so much work | to be told that giving the garden up is fine
guess: 60 | my pool leaks | a plumber
guess: 10 | second thoughts | a smaller garden
really: May I give the garden up?
next: Which plants need no watering? | Lavender and thyme.
next: Who could take over the beds? | A neighbour, perhaps.
";

const PLAIN: &str = "\
plain: 100
guess: 5 | a | b
guess: 5 | a | b
guess: 5 | a | b
really: nothing else
next: none
";

fn open(data: &Path) -> Arc<Store> {
    let file = |path: &Path| -> Result<Box<dyn Medium>, MediumError> {
        Ok(Box::new(FileMedium::open(path)?))
    };
    Arc::new(Store::open(data, "n", file).unwrap())
}

fn agent(store: &Arc<Store>, model: &ScriptedModel, companions: Mode) -> TestAgent {
    let parts = parts(model, Arc::clone(store));
    Agent::new(parts, Options { companions, ..Options::default() }).unwrap()
}

/// A model whose inferrer answers with [`READING`], then that everything is meant as it is said,
/// and that copies the first word of any value.
fn model() -> ScriptedModel {
    let answers = AtomicUsize::new(0);
    ScriptedModel::new(16_384, []).companions(move |role, prompt| match role {
        ModelRole::Inferrer if text(prompt).contains("Which of these words") => {
            Act::Say("value: Acme\n".into())
        }
        ModelRole::Inferrer => {
            let first = answers.fetch_add(1, Ordering::SeqCst) == 0;
            Act::Say(if first { READING } else { PLAIN }.into())
        }
        _ => Act::Say("- noted\n".into()),
    })
}

fn text(prompt: &[garret_core::token::Token]) -> String {
    let bytes: Vec<u8> = prompt.iter().filter_map(|token| u8::try_from(token.0).ok()).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

fn say(agent: &mut TestAgent, text: &str) {
    talk::say(agent, text);
    smol::block_on(agent.idle(&session()));
}

fn facts(store: &Store) -> Vec<Fact> {
    let filter = FactFilter { latest: true, ..FactFilter::default() };
    let facts = store.facts(&filter).unwrap().facts;
    facts.into_iter().filter(|fact| fact.predicate != "persona").collect()
}

fn values(store: &Store) -> Vec<(String, String)> {
    let value = |fact: Fact| (fact.predicate, fact.object.unwrap_or(fact.text));
    facts(store).into_iter().map(value).collect()
}

fn pair(relation: &str, value: &str) -> (String, String) {
    (relation.into(), value.into())
}

#[test]
fn what_a_user_says_of_themselves_is_a_fact_with_its_words() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let mut agent = agent(&store, &model(), Mode::ColdStart);
    say(&mut agent, "Hello there");
    say(&mut agent, "My name is Ada and I live in Oslo.");
    assert_eq!(values(&store), [pair("name", "Ada"), pair("lives_in", "Oslo")]);
    for fact in facts(&store) {
        assert_eq!((fact.source, fact.turn), (FactSource::User, Some(2)));
        assert!(fact.grounded && fact.confidence > 0.9 && !fact.inferred);
        assert_eq!(fact.pinned, Pin::Auto);
    }
    assert_eq!(facts(&store)[1].quote.as_deref(), Some("I live in Oslo"));
}

#[test]
fn the_same_dialogue_twice_adds_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let mut agent = agent(&store, &model(), Mode::ColdStart);
    let dialogue = [
        "I live in Oslo.",
        "I work at Acme with my sister and her dogs on big projects",
        "I like tea",
    ];
    for message in dialogue {
        say(&mut agent, message);
    }
    let once = store.facts(&FactFilter::default()).unwrap().facts;
    assert_eq!(
        values(&store),
        [pair("lives_in", "Oslo"), pair("works_at", "Acme"), pair("likes", "tea")]
    );
    for message in dialogue {
        say(&mut agent, message);
    }
    say(&mut agent, "As I said, I live in Oslo!");
    let again = store.facts(&FactFilter::default()).unwrap().facts;
    assert_eq!(again.len(), once.len());
}

#[test]
fn corrections_supersede_and_denials_end() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let mut agent = agent(&store, &model(), Mode::ColdStart);
    say(&mut agent, "I live in Oslo. I love hiking. I'm allergic to cats.");
    say(&mut agent, "I moved to Bergen. I hate hiking.");
    say(&mut agent, "I'm not allergic to cats.");
    assert_eq!(values(&store), [pair("lives_in", "Bergen"), pair("dislikes", "hiking")]);
    let all = store.facts(&FactFilter::default()).unwrap().facts;
    let oslo = all.iter().find(|fact| fact.object.as_deref() == Some("Oslo")).unwrap();
    assert!(oslo.superseded_by.is_some(), "what was true stays, with its end");
}

#[test]
fn the_persona_replaces_itself() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let mut agent = agent(&store, &model(), Mode::ColdStart);
    let persona = || -> Vec<Fact> {
        let filter = FactFilter {
            subject: Some("user"),
            predicate: Some("persona"),
            latest: true,
            ..FactFilter::default()
        };
        store.facts(&filter).unwrap().facts
    };
    say(&mut agent, "My name is Ada.");
    assert_eq!(persona()[0].text, "name: Ada.");
    say(&mut agent, "I live in Oslo and I like tea.");
    say(&mut agent, "I moved to Bergen.");
    let [one] = &persona()[..] else { panic!("{:?}", persona()) };
    assert_eq!(one.text, "name: Ada. lives in: Bergen. likes: tea.");
    assert!(one.inferred && one.source == FactSource::Assistant);
    for at in 0..300 {
        let text = format!("I like thing number{at} of mine");
        let fact = NewFact {
            text: &text,
            subject: Some("user"),
            predicate: Some("likes"),
            object: Some(&text),
            ..NewFact::default()
        };
        store.add_fact(&fact, AT).unwrap();
    }
    say(&mut agent, "I speak Norwegian.");
    assert!(persona()[0].text.split_whitespace().count() <= 200);
}

#[test]
fn neither_a_reply_nor_a_quotation_becomes_a_fact() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let model = model();
    model.then(Act::Say("I live in Paris. My name is Bot.".into()));
    let mut agent = agent(&store, &model, Mode::ColdStart);
    say(&mut agent, "> I live in Rome\nHe wrote: \"I live in Kyiv\".\n```\nI live in Lima\n```");
    assert_eq!(values(&store), []);
}

#[test]
fn automatic_pins_give_way_and_the_users_stay() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    for at in 0..25 {
        let text = format!("The code of door {at} is {at}{at}.");
        let added = store.add_fact(&NewFact { text: &text, ..NewFact::default() }, AT).unwrap();
        store.pin(added.id, if at < 17 { Pin::User } else { Pin::Auto }).unwrap();
    }
    let mut agent = agent(&store, &model(), Mode::ColdStart);
    say(&mut agent, "My name is Ada.");
    let pinned = store.pinned(AT).unwrap();
    assert_eq!(pinned.len(), 18);
    assert_eq!(pinned.iter().filter(|fact| fact.pinned == Pin::User).count(), 17);
}

#[test]
fn an_inference_rides_once_with_the_next_turn_that_it_concerns() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let model = model();
    let mut agent = agent(&store, &model, Mode::ColdStart);
    say(&mut agent, "I'm having second thoughts about the garden, it's so much work.");
    let asked = model.asked();
    assert_eq!(asked.len(), 1, "the gate fired");
    assert!(asked[0].reused > 0, "on a fork of the conversation");
    say(&mut agent, "Which tools does a garden need?");
    say(&mut agent, "And which tools does the garden need in winter?");
    let prompts = model.prompts();
    let shown: Vec<bool> =
        prompts.iter().map(|prompt| text(prompt).contains("[Inferred, not said")).collect();
    assert_eq!(shown, [false, true, false]);
    let second = text(&prompts[1]);
    assert!(second.contains("> really asking: May I give the garden up?"));
    assert!(second.contains("> may want (80%): to be told that giving the garden up is fine"));
    assert!(second.contains("> may want (35%): a plumber"), "unsaid words count for little");
    assert!(second.find("[Inferred").unwrap() < second.find("Which tools").unwrap());
}

#[test]
fn an_inference_that_has_nothing_to_do_with_the_next_turn_is_dropped() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let model = model();
    let mut agent = agent(&store, &model, Mode::ColdStart);
    say(&mut agent, "I'm having second thoughts about the garden, it's so much work.");
    say(&mut agent, "What is 17 times 23?");
    say(&mut agent, "Tell me of the garden");
    assert!(model.prompts().iter().all(|prompt| !text(prompt).contains("[Inferred")));
}

#[test]
fn a_confirmed_inference_is_kept_as_an_inference() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let mut agent = agent(&store, &model(), Mode::ColdStart);
    say(&mut agent, "I'm having second thoughts about the garden, it's so much work.");
    say(&mut agent, "So which plants in the garden need no watering?");
    say(&mut agent, "Which plants need no watering, again?");
    let notes: Vec<Fact> = facts(&store).into_iter().filter(|fact| fact.inferred).collect();
    let [note] = &notes[..] else { panic!("{notes:?}") };
    assert!(note.text.contains("Lavender and thyme."));
    assert_eq!((note.kind.as_str(), &note.source), ("derives", &FactSource::Assistant));
}

#[test]
fn plain_requests_and_switched_off_companions_ask_no_model() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let model = model();
    let mut plain = agent(&store, &model, Mode::ColdStart);
    for message in ["How many grams are in an ounce?", "Translate it into German.", "Thanks!"] {
        say(&mut plain, message);
    }
    let mut off = agent(&store, &model, Mode::Off);
    say(&mut off, "I live in Oslo. I don't know what to do, it's all broken.");
    assert_eq!((model.asked().len(), values(&store).len()), (0, 0));
    let mut turbo = agent(&store, &model, Mode::Turbo);
    say(&mut turbo, "How many grams are in an ounce?");
    assert_eq!(model.asked().len(), 1);
}

/// Without vectors nobody knows whether the topic changed; that is no sign that it did.
#[test]
fn an_embedder_that_fails_gives_no_reason_to_think() {
    for mode in [Mode::ColdStart, Mode::Turbo] {
        let dir = tempfile::tempdir().unwrap();
        let (store, model) = (open(dir.path()), model());
        let embedder = ScriptedEmbedder::new(1, &[])
            .on_embed(|_| Err(PoolingError::Other("the script says so")));
        let parts =
            Parts { embedder: Some(Arc::new(embedder)), ..parts(&model, Arc::clone(&store)) };
        let options = Options { companions: mode, ..Options::default() };
        let mut agent = Agent::new(parts, options).unwrap();
        for message in ["How many grams are in an ounce?", "Name a river in Peru.", "Thanks!"] {
            say(&mut agent, message);
        }
        assert_eq!(model.prompts().len(), 3);
        let quiet = mode == Mode::ColdStart;
        assert_eq!(model.asked().is_empty(), quiet, "{:?}", model.asked().len());
    }
}

/// A companion that writes nonsense, fails or is refused leaves everything as it was.
#[test]
fn a_companion_that_fails_costs_nothing_but_its_answer() {
    for act in [
        Act::Say("I can't do that.".into()),
        Act::Say(String::new()),
        Act::Fail("plain: 3".into()),
        Act::Refuse,
    ] {
        let dir = tempfile::tempdir().unwrap();
        let store = open(dir.path());
        let model = ScriptedModel::new(16_384, []).companions(move |_, _| act.clone());
        let mut agent = agent(&store, &model, Mode::ColdStart);
        say(
            &mut agent,
            "I work at Acme with my sister and her dogs on big projects. I'm so stressed.",
        );
        say(&mut agent, "What about the projects?");
        assert_eq!(model.prompts().len(), 2);
        assert_eq!(store.state(&session(), StateKind::Carry).unwrap(), None);
        let [fact] = &facts(&store)[..] else { panic!("{:?}", facts(&store)) };
        assert!(fact.confidence < 0.9 && fact.pinned == Pin::None, "as far as the rule reaches");
    }
}

/// A companion that always fails is asked ever more seldom, be it for a value or for a guess; once
/// it works again it is asked as before.
#[test]
fn a_companion_that_always_fails_is_left_alone_for_a_while() {
    let works = Arc::new(AtomicBool::new(false));
    for bad in [Act::Refuse, Act::Say("I can't do that.".into())] {
        works.store(false, Ordering::SeqCst);
        let dir = tempfile::tempdir().unwrap();
        let store = open(dir.path());
        let flag = Arc::clone(&works);
        let model = ScriptedModel::new(16_384, []).companions(move |_, prompt| {
            match (flag.load(Ordering::SeqCst), text(prompt).contains("Which of these words")) {
                (false, _) => bad.clone(),
                (true, true) => Act::Say("value: Acme\n".into()),
                (true, false) => Act::Say(READING.into()),
            }
        });
        let clock = Arc::new(ManualClock::at_unix_ms(AT.unix_ms));
        let parts =
            Parts { clock: Arc::clone(&clock) as Arc<_>, ..parts(&model, Arc::clone(&store)) };
        let options = Options { companions: Mode::Turbo, ..Options::default() };
        let mut agent = Agent::new(parts, options).unwrap();
        let mut asked = Vec::new();
        for minute in 0..60 {
            let work = "with my sister and her dogs on big projects";
            say(&mut agent, &format!("I work at Firm{minute} {work}. I'm so stressed."));
            asked.push(model.asked().len());
            clock.advance_us(60_000_000);
        }
        assert_eq!(asked[0], 1, "not for the guess, too: {asked:?}");
        assert!(asked[59] <= 7, "an hour of failures: {asked:?}");
        works.store(true, Ordering::SeqCst);
        clock.advance_us(30 * 60_000_000);
        say(&mut agent, "I'm so stressed.");
        say(&mut agent, "I'm so stressed.");
        assert_eq!(model.asked().len(), asked[59] + 2);
    }
}

/// Facts that can't be stored aren't asked about again and again.
#[test]
fn facts_that_cannot_be_stored_are_read_later() {
    let medium = FaultyMedium::new(Faults::default());
    let store = Arc::new(Store::on_medium("n", Box::new(medium.clone())).unwrap());
    let model = model();
    let clock = Arc::new(ManualClock::at_unix_ms(AT.unix_ms));
    let parts = Parts { clock: Arc::clone(&clock) as Arc<_>, ..parts(&model, Arc::clone(&store)) };
    let options = Options { companions: Mode::ColdStart, ..Options::default() };
    let mut agent = Agent::new(parts, options).unwrap();
    talk::say(&mut agent, "I work at Acme with my sister and her dogs on big projects.");
    let capacity = Some(medium.image().len() as u64);
    medium.set_faults(Faults { capacity, ..Faults::default() });
    fill(&store);
    for _ in 0..10 {
        assert_eq!(smol::block_on(agent.idle(&session())).extracted, 0);
    }
    assert_eq!(model.asked().len(), 1, "for the value, once");
    medium.set_faults(Faults::default());
    clock.advance_us(30_000_000);
    assert_eq!(smol::block_on(agent.idle(&session())).extracted, 1);
}

/// Facts are read later from turns after which nobody waited long enough.
#[test]
fn turns_that_were_not_read_are_read_later() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let first = agent(&store, &model(), Mode::ColdStart);
    let mut first = first;
    let stop = Cancel::new();
    smol::block_on(first.turn(&session(), "I live in Oslo.", &stop, &mut |_| {})).unwrap();
    drop(first);
    let mut second = agent(&store, &model(), Mode::ColdStart);
    say(&mut second, "Hello again");
    assert_eq!(values(&store), [pair("lives_in", "Oslo")]);
    assert_eq!(facts(&store)[0].turn, Some(1));
}

const AT: WallTime = WallTime { unix_ms: 1_800_000_000_000, confidence: Confidence::Good };

/// On llama.cpp the smallest model follows the form, and copies a value that is in the message.
#[test]
fn a_real_model_infers_and_copies() {
    let Some(model) = find(STARTER) else { return };
    let folder = tempfile::tempdir().unwrap();
    let config = config(
        &model,
        folder.path(),
        &[("window", "2048"), ("max_tokens", "12"), ("companions", "turbo")],
    );
    let mut agent = garret::open::agent(&config).unwrap();
    let message = "I work at Acme with my sister and her dogs on big projects.";
    let stop = Cancel::new();
    smol::block_on(agent.turn(&session(), message, &stop, &mut |_| {})).unwrap();
    let idled = smol::block_on(agent.idle(&session()));
    assert!(idled.inferred, "what it wrote can be read");
    assert_eq!(idled.extracted, 1);
    let [fact] = &facts(agent.store())[..] else { panic!("{:?}", facts(agent.store())) };
    assert!(message.contains(fact.object.as_deref().unwrap()) && fact.grounded);
}

/// A fact of long ago that never came up again isn't recalled; it stays in the store.
#[test]
fn a_forgotten_fact_is_not_recalled_and_not_deleted() {
    const DAY: i64 = 86_400_000;
    for (days, recalled) in [(80, true), (100, false)] {
        let dir = tempfile::tempdir().unwrap();
        let store = open(dir.path());
        let at = WallTime { unix_ms: 1_800_000_000_000 - days * DAY, ..AT };
        let text = "The combination of the garden shed is 4711.";
        store.add_fact(&NewFact { text, ..NewFact::default() }, at).unwrap();
        let model = model();
        let mut agent = agent(&store, &model, Mode::Off);
        say(&mut agent, "What is the combination of the garden shed?");
        assert_eq!(self::text(&model.prompts()[0]).contains("4711"), recalled, "{days} days");
        assert_eq!(facts(&store).len(), 1);
    }
}

/// A forgotten fact is as present as ever once it is said again.
#[test]
fn what_is_said_again_is_recalled_again() {
    const DAY: i64 = 86_400_000;
    for again in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let store = open(dir.path());
        let at = WallTime { unix_ms: 1_800_000_000_000 - 200 * DAY, ..AT };
        let fact = NewFact {
            text: "I play the zither",
            subject: Some("user"),
            predicate: Some("plays"),
            object: Some("the zither"),
            ..NewFact::default()
        };
        let id = store.add_fact(&fact, at).unwrap().id;
        let model = model();
        let mut agent = agent(&store, &model, Mode::ColdStart);
        if again {
            say(&mut agent, "I play the zither.");
        }
        let other = "other".parse().unwrap();
        let outcome = talk::turn(&mut agent, &other, "What do I play, the zither?").unwrap();
        let recalled = outcome.memory.contains(&id.to_string())
            || self::text(model.prompts().last().unwrap()).contains("plays: the zither");
        assert_eq!(recalled, again, "{:?}", outcome.memory);
        assert_eq!(values(&store), [pair("plays", "the zither")], "it is the same fact");
    }
}
