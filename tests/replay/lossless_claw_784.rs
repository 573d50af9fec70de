//! lossless-claw#784: what one model had signed as its own was given back to another one, which refused
//! the conversation.
//!
//! The ids of a reply mean something to the model that generated it alone; another one reads the text.

use garret_core::token::Token;
use garret_storage::NewReply;
use garret_tests::scripted::ScriptedModel;
use garret_tests::talk::{self, say, session, texts};

use crate::{AT, agent_on, attentive, store};

#[test]
fn a_reply_of_another_model_is_put_back_as_text() {
    let store = store();
    for (fingerprint, ids) in [([8; 32], [2_000, 2_001]), ([7; 32], [72, 105])] {
        let turn = store.accept(&session(), "How are you?", AT).unwrap();
        let tokens = ids.map(Token);
        let model_fingerprint = &fingerprint;
        let reply = NewReply { tokens: &tokens, model_fingerprint, ..talk::reply("Hi", AT) };
        store.reply(&session(), turn, reply).unwrap();
    }
    let model = ScriptedModel::new(8_192, []);
    let mut agent = agent_on(&store, &model, attentive());
    say(&mut agent, "And now?");
    let prompt = model.prompts().pop().unwrap();
    assert!(prompt.iter().all(|token| token.0 < 2_000), "foreign ids are in the prompt");
    let shown = texts(&prompt);
    assert_eq!(shown, ["Be kind.", "How are you?", "Hi", "How are you?", "Hi", "And now?"]);
}
