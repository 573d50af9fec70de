//! The turn loop on a scripted model and a real store.

use std::sync::{Arc, Mutex};

use garret::Cancel;
use garret::agent::{Agent, Options, Outcome, TurnError};
use garret_core::assemble::{NO_REPLY, OVERHEARD};
use garret_core::model::Finish;
use garret_core::time::{Confidence, WallTime};
use garret_core::token::Token;
use garret_hal::media::{Faults, FaultyMedium};
use garret_storage::search::Speaker;
use garret_storage::{ImportedTurn, Store, StoredFinish};
use garret_tests::scripted::{Act, ScriptedModel};
use garret_tests::talk::{TestAgent, parts, session, texts, turn};
use proptest::prelude::*;

fn agent(model: &ScriptedModel, medium: &FaultyMedium) -> TestAgent {
    with_reply(model, medium, None)
}

fn with_reply(model: &ScriptedModel, medium: &FaultyMedium, max_tokens: Option<u32>) -> TestAgent {
    let store = Store::on_medium("test", Box::new(medium.clone())).unwrap();
    let parts = parts(model, Arc::new(store));
    let options = Options {
        system_prompt: "Be kind.".into(),
        max_tokens,
        draw_seed: true,
        tools: false,
        ..Options::default()
    };
    Agent::new(parts, options).unwrap()
}

fn say(agent: &mut TestAgent, text: &str) -> Result<Outcome, TurnError> {
    turn(agent, &session(), text)
}

/// Says `text` and stops the reply once `after` was said.
fn say_and_stop(agent: &mut TestAgent, text: &str, after: &str) -> Outcome {
    let stop = Cancel::new();
    let mut heard = String::new();
    let mut listen = |piece: &str| {
        heard.push_str(piece);
        if heard == after {
            stop.cancel();
        }
    };
    smol::block_on(agent.turn(&session(), text, &stop, &mut listen)).unwrap()
}

/// User text, reply text and end of every stored turn.
fn stored(agent: &TestAgent) -> Vec<(String, Option<(String, StoredFinish)>)> {
    let turns = agent.store().with_turns(&session(), 1, |turns| {
        turns
            .iter()
            .map(|turn| {
                let reply = turn.reply.as_ref().map(|reply| (reply.text.to_owned(), reply.finish));
                (turn.user.to_owned(), reply)
            })
            .collect()
    });
    turns.unwrap()
}

#[test]
fn a_message_is_durable_before_the_model_is_asked() {
    let medium = FaultyMedium::new(Faults::default());
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (probe, notes) = (medium.clone(), Arc::clone(&seen));
    let model = ScriptedModel::new(2_048, []).on_start(move || {
        let image = FaultyMedium::with_image(probe.durable_image(), Faults::default());
        let store = Store::on_medium("test", Box::new(image)).unwrap();
        let texts = store.with_turns(&session(), 1, |turns| {
            turns.iter().map(|turn| turn.user.to_owned()).collect::<Vec<_>>()
        });
        notes.lock().unwrap().push(texts.unwrap());
    });
    let mut agent = agent(&model, &medium);
    say(&mut agent, "first").unwrap();
    say(&mut agent, "second").unwrap();
    let seen = seen.lock().unwrap();
    assert_eq!(*seen, [vec!["first"], vec!["first", "second"]]);
}

#[test]
fn an_interrupted_reply_is_kept_and_shown_to_the_model_again() {
    let medium = FaultyMedium::new(Faults::default());
    let model = ScriptedModel::new(2_048, [Act::SayAndWait("Bees are".into())]);
    let mut agent = agent(&model, &medium);
    let outcome = say_and_stop(&mut agent, "Tell me of bees.", "Bees are");
    assert_eq!((outcome.finish, outcome.reply.as_str()), (Finish::Cancelled, "Bees are"));
    say(&mut agent, "Go on.").unwrap();
    let prompts = model.prompts();
    assert_eq!(texts(&prompts[1]), ["Be kind.", "Tell me of bees.", "Bees are", "Go on."]);
    assert_eq!(stored(&agent)[0].1, Some(("Bees are".into(), StoredFinish::Cancelled)));
}

#[test]
fn a_model_that_fails_costs_only_the_rest_of_its_reply() {
    let medium = FaultyMedium::new(Faults::default());
    let model = ScriptedModel::new(2_048, [Act::Fail("Well, ".into()), Act::Refuse]);
    let mut agent = agent(&model, &medium);
    assert!(matches!(say(&mut agent, "one"), Err(TurnError::Model { turn: 1, .. })));
    assert!(matches!(say(&mut agent, "two"), Err(TurnError::Model { turn: 2, .. })));
    let outcome = say(&mut agent, "three").unwrap();
    assert_eq!((outcome.turn, outcome.reply.as_str()), (3, "ok"));
    assert_eq!(stored(&agent)[0].1, Some(("Well, ".into(), StoredFinish::Failed)));
    assert_eq!(stored(&agent)[1].1, None);
    let expected = ["Be kind.", "one", "Well, ", "two", NO_REPLY, "three"];
    assert_eq!(texts(&model.prompts()[2]), expected);
}

#[test]
fn an_empty_message_is_refused_and_leaves_no_trace() {
    let medium = FaultyMedium::new(Faults::default());
    let model = ScriptedModel::new(2_048, []);
    let mut agent = agent(&model, &medium);
    assert!(matches!(say(&mut agent, " \n\t"), Err(TurnError::Empty)));
    assert!(agent.store().sessions().unwrap().is_empty());
    assert!(model.prompts().is_empty());
}

#[test]
fn a_full_disk_refuses_the_message_and_keeps_what_there_is() {
    let medium = FaultyMedium::new(Faults::default());
    let model = ScriptedModel::new(2_048, []);
    let mut agent = agent(&model, &medium);
    say(&mut agent, "before").unwrap();
    let capacity = Some(medium.image().len() as u64);
    medium.set_faults(Faults { capacity, ..Faults::default() });
    let long = "x".repeat(1 << 20);
    assert!(matches!(say(&mut agent, &long), Err(TurnError::NotAccepted(_))));
    assert_eq!(model.prompts().len(), 1, "the model never saw it");
    medium.set_faults(Faults::default());
    say(&mut agent, "after").unwrap();
    let users: Vec<_> = stored(&agent).into_iter().map(|(user, _)| user).collect();
    assert_eq!(users, ["before", "after"]);
}

#[test]
fn a_reply_that_finds_the_disk_full_is_reported_and_the_message_stays() {
    let medium = FaultyMedium::new(Faults::default());
    let handle = medium.clone();
    // Longer than the free pages of a new file, so that the reply needs a larger one.
    let act = Act::Say("y".repeat(100_000));
    let model = ScriptedModel::new(1 << 20, [act]).on_start(move || {
        handle.set_faults(Faults { capacity: Some(0), ..Faults::default() });
    });
    let mut first = with_reply(&model, &medium, Some(100_000));
    let error = say(&mut first, "hello").unwrap_err();
    assert!(matches!(error, TurnError::ReplyNotStored { turn: 1, .. }), "{error}");
    medium.set_faults(Faults::default());
    assert_eq!(stored(&first), [("hello".to_owned(), None)]);
    say(&mut first, "again").unwrap();
    assert_eq!(texts(&model.prompts()[1]), ["Be kind.", "hello", NO_REPLY, "again"]);
}

/// A message with a speaker's name was said to somebody else, so no answer is missed.
#[test]
fn what_others_said_stands_in_history_with_their_names() {
    let model = ScriptedModel::new(8_192, []);
    let mut agent = agent(&model, &FaultyMedium::new(Faults::default()));
    let at = WallTime { unix_ms: 1_700_000_000_000, confidence: Confidence::Good };
    let session = session();
    let (ada, bo) = (Speaker::Named("Ada"), Speaker::Named("Bo"));
    let said = [(ada, "My bees swarmed."), (bo, "Where to?"), (Speaker::User, "I saw them.")];
    let said =
        said.map(|(speaker, text)| ImportedTurn { session: &session, speaker, text, at, id: None });
    agent.store().import_turns(&said).unwrap();
    for _ in 0..2 {
        say(&mut agent, "Well?").unwrap();
    }
    let heard = ["Ada: My bees swarmed.", OVERHEARD, "Bo: Where to?", OVERHEARD];
    let expected = [&["Be kind."][..], &heard, &["I saw them.", NO_REPLY, "Well?"]].concat();
    assert_eq!(texts(&model.prompts()[0]), expected);
    assert_eq!(texts(&model.prompts()[1])[..expected.len()], expected);
}

#[test]
fn after_a_restart_the_prompt_begins_as_before() {
    let medium = FaultyMedium::new(Faults::default());
    let model = ScriptedModel::new(2_048, [Act::Say("Hello Ada.".into())]);
    let mut before = agent(&model, &medium);
    say(&mut before, "I am Ada.").unwrap();
    drop(before);
    let mut after = agent(&model, &medium);
    let outcome = say(&mut after, "Who am I?").unwrap();
    assert_eq!(outcome.turn, 2);
    let prompts = model.prompts();
    assert_eq!(texts(&prompts[1]), ["Be kind.", "I am Ada.", "Hello Ada.", "Who am I?"]);
    assert!(prompts[1].starts_with(&prompts[0]));
}

/// One thing that happens to a conversation.
#[derive(Clone, Debug)]
enum Event {
    Say(String, Act),
    Restart,
}

fn event() -> impl Strategy<Value = Event> {
    let text = "[a-z ]{1,200}".prop_map(|text| format!(".{text}"));
    let act = prop_oneof![
        4 => "\\PC{0,300}".prop_map(Act::Say),
        1 => "[a-z]{0,60}".prop_map(Act::Fail),
        1 => Just(Act::Refuse),
    ];
    prop_oneof![6 => (text, act).prop_map(|(text, act)| Event::Say(text, act)), 1 => Just(Event::Restart)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn any_conversation_is_kept_whole_and_reuses_its_prefix(
        events in prop::collection::vec(event(), 1..40),
    ) {
        let medium = FaultyMedium::new(Faults::default());
        let model = ScriptedModel::new(2_048, []);
        let mut talk = agent(&model, &medium);
        let mut said = Vec::new();
        let mut moves = 0_u32;
        let mut spoken = 0_usize;
        // What the cache holds, and where history began in the prompt that filled it.
        let mut cached: Option<(Vec<Token>, Option<u64>)> = None;
        for event in events {
            let Event::Say(text, act) = event else {
                drop(talk);
                talk = agent(&model, &medium);
                continue;
            };
            model.then(act.clone());
            let result = say(&mut talk, &text);
            said.push(text);
            prop_assert_eq!(result.is_ok(), matches!(act, Act::Say(_)));
            let prompt = model.prompts().pop().unwrap();
            prop_assert!(prompt.len() <= 2_048 - 512 - 128);
            if let Ok(outcome) = result {
                let receipt = &outcome.receipt;
                let total: u32 = receipt.blocks.iter().map(|block| block.tokens).sum();
                prop_assert_eq!(total as usize, prompt.len());
                prop_assert_eq!(receipt.reused_tokens + receipt.prefilled_tokens, total);
                if let Some((before, from)) = &cached {
                    let from_first_turn = from.unwrap_or(1) == receipt.history_from.unwrap_or(1);
                    if from_first_turn {
                        prop_assert!(prompt.starts_with(before), "the prefix changed");
                    } else {
                        moves += 1;
                    }
                }
                spoken += said.last().map_or(0, String::len) + outcome.reply.len() + 150;
                // Each time history gives way it makes room for a quarter of a prompt at least.
                prop_assert!(moves as usize <= spoken / (1_400 / 4) + 1, "{moves} of {spoken}");
                let mut now = prompt.clone();
                if outcome.memory.is_empty() {
                    let reply = outcome.reply.bytes().map(|byte| Token(byte.into()));
                    now.extend(reply);
                } else {
                    // No later prompt has what was remembered for this one.
                    let settled: u32 = receipt.blocks[..3].iter().map(|b| b.tokens).sum();
                    now.truncate(settled as usize);
                }
                cached = Some((now, receipt.history_from));
            }
            let users: Vec<_> = stored(&talk).into_iter().map(|(user, _)| user).collect();
            prop_assert_eq!(&users, &said);
        }
    }
}
