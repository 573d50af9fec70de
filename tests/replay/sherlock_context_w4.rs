//! sherlock-context 1.12.2, W4: a reply that began like an error of the provider, such as
//! `[timeout] is what the oven shows`, vanished from history, and what the provider did say when it
//! failed left a message without an answer, so that two of the user stood in a row. lossless-claw
//! did the reverse and stored "401 unauthorized" as the summary of a conversation.
//!
//! What a model says is kept as that, whatever it looks like; what went wrong is never kept as
//! something that was said.

use std::sync::Arc;

use garret::agent::{TurnError, When};
use garret::tools::{self, Call, Context};
use garret_core::assemble::{NO_REPLY, OVERHEARD};
use garret_core::model::ModelRole;
use garret_hal::media::{Faults, FaultyMedium};
use garret_storage::search::Search;
use garret_storage::{Store, StoredFinish};
use garret_tests::scripted::{Act, ScriptedModel};
use garret_tests::talk::{say, session, texts, turn};

use crate::{agent, agent_on, attentive, stored};

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

/// A reply that begins like an error of the provider is shown, stored with its ids, part of later
/// prompts, found, and summed up.
#[test]
fn replies_that_look_like_errors_are_replies() {
    let script = LIKE_ERRORS.map(|text| Act::Say(text.into()));
    let model = ScriptedModel::new(32_768, script)
        .companions(|_, _| Act::Say("- the cake was burnt in the oven\n".into()));
    let mut agent = agent(&model, attentive());
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

/// Companions are told of such replies, too, and run.
#[test]
fn replies_that_look_like_errors_are_summed_up() {
    let script = (0..60).map(|n| Act::Say(LIKE_ERRORS[n % LIKE_ERRORS.len()].into()));
    let model = ScriptedModel::new(4_096, script)
        .companions(|_, _| Act::Say("- error: the burnt cake timed out\n".into()));
    let mut agent = agent(&model, attentive());
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

/// An error is told to whoever asked, and is nothing that was said: not in the store, in no
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
        let mut agent = agent_on(&Arc::new(store), &model, attentive());
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
