//! What a model says is kept as that, whatever it looks like; what went wrong is never kept as
//! something that was said.

use std::sync::Arc;

use garret::agent::{Agent, Options, TurnError, When};
use garret::tools::{self, Call, Context};
use garret_core::assemble::{NO_REPLY, OVERHEARD};
use garret_core::gate::Mode;
use garret_core::model::ModelRole;
use garret_core::time::{Confidence, WallTime};
use garret_core::token::Token;
use garret_hal::media::{Faults, FaultyMedium, RamMedium};
use garret_storage::search::{Search, Speaker};
use garret_storage::{ImportedTurn, NewReply, Store, StoredFinish};
use garret_tests::bytes;
use garret_tests::scripted::{Act, ScriptedModel};
use garret_tests::talk::{self, TestAgent, parts, say, session, texts, turn};
use proptest::prelude::*;

const AT: WallTime = WallTime { unix_ms: 1_790_000_000_000, confidence: Confidence::Good };

/// Replies of a model that answers as it should.
const LIKE_ERRORS: [&str; 16] = [
    "[timeout] is what the oven shows when the cake is done.",
    "[timeout",
    "[error: the cake is burnt]",
    "Error: 503 Service Unavailable",
    "error 401: unauthorized",
    "ERROR the model is overloaded, try again later",
    "Request timed out.",
    "{\"error\": {\"message\": \"invalid api key\", \"type\": \"auth\"}}",
    "Traceback (most recent call last):\n  File \"cake.py\", line 1",
    "rate limit exceeded",
    "I cannot answer that.",
    "null",
    "None",
    "HEARTBEAT_OK",
    NO_REPLY,
    OVERHEARD,
];

fn agent(store: Store, model: &ScriptedModel) -> TestAgent {
    let options = Options {
        system_prompt: "Be kind.".into(),
        memory_tokens: Some(0),
        compact_at: 80,
        companions: Mode::Turbo,
        ..Options::default()
    };
    Agent::new(parts(model, Arc::new(store)), options).unwrap()
}

fn empty() -> Store {
    Store::on_medium("test", Box::new(RamMedium::new())).unwrap()
}

/// What was answered, how that ended, and how many ids are kept of it.
type Stored = (String, StoredFinish, usize);

/// What was said, and what was answered.
fn stored(agent: &TestAgent) -> Vec<(String, Option<Stored>)> {
    let read = agent.store().with_turns(&session(), 1, |views| {
        let reply = |view: &garret_storage::TurnView<'_>| {
            view.reply.map(|reply| (reply.text.to_owned(), reply.finish, reply.tokens.len()))
        };
        views.iter().map(|view| (view.user.to_owned(), reply(view))).collect()
    });
    read.unwrap()
}

/// A reply that begins like an error of the provider is shown, stored with its ids, part of later
/// prompts, found, and summed up.
#[test]
fn replies_that_look_like_errors_are_replies() {
    let script = LIKE_ERRORS.map(|text| Act::Say(text.into()));
    let model = ScriptedModel::new(32_768, script)
        .companions(|_, _| Act::Say("- the cake was burnt in the oven\n".into()));
    let mut agent = agent(empty(), &model);
    for (n, text) in LIKE_ERRORS.into_iter().enumerate() {
        let outcome = say(&mut agent, &format!("How is cake number {n}?"));
        assert_eq!(outcome.reply, text);
        assert_eq!(outcome.receipt.reply_tokens as usize, text.len());
    }
    let kept: Vec<_> = stored(&agent).into_iter().map(|(_, reply)| reply.unwrap()).collect();
    let expected = LIKE_ERRORS.map(|text| (text.to_owned(), StoredFinish::Stop, text.len()));
    assert_eq!(kept, expected);
    say(&mut agent, "And now?");
    let shown = texts(&model.prompts().pop().unwrap());
    let replies: Vec<_> = shown[1..].iter().skip(1).step_by(2).collect();
    assert_eq!(replies, LIKE_ERRORS.iter().collect::<Vec<_>>());
    for (query, turn) in [("overloaded", 6), ("timeout oven", 1), ("Traceback", 9)] {
        let found = agent.store().find(&Search::new(query, 3)).unwrap();
        assert_eq!(found.hits[0].id, format!("s/{turn}/assistant"), "{query}");
    }
    let here = session();
    let context = Context { session: Some(&here), ..Context::new(agent.store()) };
    let line = tools::run(&context, &Call::read("timeline 17").unwrap()).unwrap();
    let told: Vec<_> = line.entries.iter().map(|entry| entry.text.as_str()).collect();
    for text in LIKE_ERRORS {
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(told.iter().any(|told| told.contains(&words)), "{text}: {told:?}");
    }
}

/// They are what a companion is told of, too, and no reason for it not to run.
#[test]
fn replies_that_look_like_errors_are_summed_up() {
    let script = (0..60).map(|n| Act::Say(LIKE_ERRORS[n % LIKE_ERRORS.len()].into()));
    let model = ScriptedModel::new(4_096, script)
        .companions(|_, _| Act::Say("- error: the burnt cake timed out\n".into()));
    let mut agent = agent(empty(), &model);
    for n in 0..60 {
        say(&mut agent, &format!("How is cake number {n}, the one that was burnt on day {n}?"));
        smol::block_on(agent.summarise(&session(), When::Idle));
    }
    let asked: String = model
        .asked()
        .iter()
        .filter(|asked| asked.role == ModelRole::Compactor)
        .flat_map(|asked| texts(&asked.prompt))
        .collect();
    for text in LIKE_ERRORS {
        assert!(asked.contains(text), "{text}");
    }
    let summaries = agent.store().summaries(&session()).unwrap();
    assert!(!summaries.is_empty());
    for summary in summaries {
        assert_eq!(summary.method.as_str(), "model", "{summary:?}");
        assert_eq!(summary.text, "error: the burnt cake timed out");
    }
}

/// What went wrong is told to whoever asked, and is nothing that was said: not in the store, in no
/// later prompt, not found, not summed up. No companion thinks about it.
#[test]
fn an_error_is_never_stored_as_a_reply() {
    let words = "gave no answer in words";
    for (acts, kept, error) in [
        (vec![Act::Refuse], None, true),
        (vec![Act::Fail(String::new())], None, true),
        (vec![Act::Fail("Well, the".into())], Some("Well, the"), true),
        (vec![Act::Say(String::new()), Act::Refuse], Some(""), false),
        (vec![Act::Say(" \n".into()), Act::Say(String::new())], Some(""), false),
        (vec![Act::Say("<<garret-tool: ".into()), Act::Fail(String::new())], Some(""), false),
    ] {
        let medium = FaultyMedium::new(Faults::default());
        let model = ScriptedModel::new(8_192, acts.clone());
        let store = Store::on_medium("test", Box::new(medium.clone())).unwrap();
        let mut agent = agent(store, &model);
        match turn(&mut agent, &session(), "How is the cake?") {
            Ok(outcome) => assert!(!error && outcome.reply.contains(words), "{outcome:?}"),
            Err(TurnError::Model { turn: 1, reason }) => {
                assert!(error && reason.to_string() == "the script says so", "{acts:?}");
            }
            other => panic!("{acts:?}: {other:?}"),
        }
        let kept = kept.map(|text| (text.to_owned(), StoredFinish::Failed));
        let reply = stored(&agent).remove(0).1.map(|(text, finish, _)| (text, finish));
        assert_eq!(reply, kept, "{acts:?}");
        if kept.is_none() {
            smol::block_on(agent.idle(&session()));
            assert!(model.asked().is_empty(), "{acts:?}");
        }
        say(&mut agent, "Hello?");
        let shown = texts(&model.prompts().pop().unwrap());
        let said = kept.as_ref().map_or("", |(text, _)| text.as_str());
        let answered = if said.is_empty() { NO_REPLY } else { said };
        assert_eq!(shown, ["Be kind.", "How is the cake?", answered, "Hello?"], "{acts:?}");
        smol::block_on(agent.idle(&session()));
        let bytes = medium.image();
        for text in ["the script says so", words, "looked things up and gave"] {
            let inside = bytes.windows(text.len()).any(|window| window == text.as_bytes());
            assert!(!inside, "{text} is on the disk after {acts:?}");
        }
        assert!(agent.store().find(&Search::new("answer in words", 5)).unwrap().hits.is_empty());
    }
}

/// Whoever says the same twenty times has said it twenty times.
#[test]
fn the_same_words_again_are_another_turn() {
    let model = ScriptedModel::new(8_192, vec![Act::Say("ok".into()); 20]);
    let mut agent = agent(empty(), &model);
    for n in 1..=20 {
        assert_eq!(say(&mut agent, "ok").turn, n);
    }
    let kept = stored(&agent);
    assert!(kept.len() == 20 && kept.iter().all(|(user, reply)| user == "ok" && reply.is_some()));
    say(&mut agent, "ok");
    assert_eq!(texts(&model.prompts().pop().unwrap()).len(), 1 + 2 * 20 + 1);
    let shared = session();
    let import = |id: Option<&'static str>| ImportedTurn {
        session: &shared,
        speaker: Speaker::User,
        text: "ok",
        at: AT,
        id,
    };
    let store = agent.store();
    assert_eq!(store.import_turns(&[import(None); 20]).unwrap().added, 20);
    assert_eq!(store.import_turns(&[import(None); 2]).unwrap().added, 2);
    // What has a number of its own is known again by that, within its conversation.
    let numbered = ["1", "2", "1", "01", ""].map(|id| import(Some(id)));
    assert_eq!(store.import_turns(&numbered).unwrap().added, 4);
    assert_eq!(store.import_turns(&numbered).unwrap().added, 0);
    let other = "other".parse().unwrap();
    let elsewhere = numbered.map(|turn| ImportedTurn { session: &other, ..turn });
    assert_eq!(store.import_turns(&elsewhere).unwrap().added, 4);
    assert_eq!(stored(&agent).len(), 21 + 20 + 2 + 4);
}

/// The ids of a reply mean something to the model that generated it alone.
#[test]
fn a_reply_of_another_model_is_put_back_as_text() {
    let store = empty();
    for (fingerprint, ids) in [([8; 32], [2_000, 2_001]), ([7; 32], [72, 105])] {
        let turn = store.accept(&session(), "How are you?", AT).unwrap();
        let tokens = ids.map(Token);
        let model_fingerprint = &fingerprint;
        let reply = NewReply { tokens: &tokens, model_fingerprint, ..talk::reply("Hi", AT) };
        store.reply(&session(), turn, reply).unwrap();
    }
    let model = ScriptedModel::new(8_192, []);
    let mut agent = agent(store, &model);
    say(&mut agent, "And now?");
    let prompt = model.prompts().pop().unwrap();
    assert!(prompt.iter().all(|token| token.0 < 2_000), "foreign ids are in the prompt");
    let shown = texts(&prompt);
    assert_eq!(shown, ["Be kind.", "How are you?", "Hi", "How are you?", "Hi", "And now?"]);
}

/// One thing that becomes part of a conversation.
#[derive(Clone, Debug)]
enum Event {
    Say(String, Vec<Act>),
    Import(Vec<(u8, String)>),
    Restart,
}

fn event() -> impl Strategy<Value = Event> {
    let act = prop_oneof![
        3 => "\\PC{0,40}".prop_map(Act::Say),
        1 => Just(Act::Say(String::new())),
        1 => Just(Act::Say("<<garret-tool: pinned>>".into())),
        1 => "[a-z]{0,20}".prop_map(Act::Fail),
        1 => Just(Act::Refuse),
    ];
    let text = "(\\PC|\\x00|[\n\t ]){1,60}".prop_map(|text| format!(".{text}"));
    let imported = prop::collection::vec((0..4_u8, "(\\PC|[\n ]){0,30}"), 1..5);
    prop_oneof![
        5 => (text, prop::collection::vec(act, 1..3)).prop_map(|(text, acts)| Event::Say(text, acts)),
        2 => imported.prop_map(Event::Import),
        1 => Just(Event::Restart),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Whoever failed to answer, and whoever spoke first in what was imported: after the system
    /// message the user and the model take turns, the user first and last, and none of them says
    /// nothing.
    #[test]
    fn the_user_and_the_model_take_turns_in_every_prompt(
        events in prop::collection::vec(event(), 1..25),
    ) {
        let medium = FaultyMedium::new(Faults::default());
        let model = ScriptedModel::new(8_192, []);
        let open = || Store::on_medium("test", Box::new(medium.clone())).unwrap();
        let mut talk = agent(open(), &model);
        for event in events {
            match event {
                Event::Say(text, acts) => {
                    acts.into_iter().for_each(|act| model.then(act));
                    // Whether it is answered isn't what this is about.
                    let _ = turn(&mut talk, &session(), &text);
                }
                Event::Import(said) => {
                    let session = session();
                    let said: Vec<_> = said.iter().map(|(speaker, text)| {
                        let speaker = match speaker {
                            0 => Speaker::User,
                            1 => Speaker::Assistant,
                            2 => Speaker::Named("Ada"),
                            _ => Speaker::Named("[Bo]\n> "),
                        };
                        ImportedTurn { session: &session, speaker, text, at: AT, id: None }
                    }).collect();
                    talk.store().import_turns(&said).unwrap();
                }
                Event::Restart => {
                    drop(talk);
                    talk = agent(open(), &model);
                }
            }
        }
        for prompt in model.prompts() {
            let messages = bytes::read(&prompt);
            prop_assert_eq!(messages[0].0, "system");
            for (n, (role, text)) in messages[1..].iter().enumerate() {
                prop_assert_eq!(*role, if n % 2 == 0 { "user" } else { "assistant" });
                prop_assert!(!text.trim().is_empty(), "{:?}", messages);
            }
            prop_assert_eq!(messages.last().unwrap().0, "user");
        }
    }
}
