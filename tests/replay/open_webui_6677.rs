//! open-webui#6677: a title for the conversation was asked for between two messages, through the same
//! cache: the conversation was evicted, and the next message was read from its first token on.
//!
//! What a companion is asked runs on a fork; the next message finds all of the conversation.

use garret::companion::Question;
use garret::open::LocalAgent;
use garret_core::model::ModelRole;
use garret_tests::talk::{say, session};

use crate::real;

/// Tokens of the third message's prompt that the cache holds, after a title was asked for or not.
fn reused(title: bool) -> Option<u32> {
    let folder = tempfile::tempdir().unwrap();
    let settings = [("window", "2048"), ("companions", "off")];
    let mut agent = real(folder.path(), &settings)?;
    say(&mut agent, "My bees made honey today and I am so happy.");
    say(&mut agent, "How do I keep it?");
    if title {
        ask_for_title(&mut agent);
    }
    Some(say(&mut agent, "Thank you.").receipt.reused_tokens)
}

fn ask_for_title(agent: &mut LocalAgent) {
    let title = Question {
        role: ModelRole::Compactor,
        instruction: "Write a title for this conversation.",
        grammar: None,
        max_tokens: 24,
    };
    let answer = smol::block_on(agent.ask_about(&session(), None, &title)).unwrap().unwrap();
    assert!(answer.reused > answer.prefilled, "{answer:?}");
}

#[test]
fn a_title_leaves_the_conversation_in_the_cache() {
    let Some(without) = reused(false) else { return };
    assert!(without > 50, "{without}");
    assert!(reused(true) >= Some(without), "{without} without a title");
}
