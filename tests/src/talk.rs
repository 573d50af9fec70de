//! Talking to an agent in a test.

use std::sync::Arc;

use garret::Cancel;
use garret::agent::{Agent, Outcome, Parts, TurnError};
use garret_core::id::SessionId;
use garret_core::model::ChatModel;
use garret_core::prompt::PromptEncoder;
use garret_core::time::WallTime;
use garret_core::token::Token;
use garret_hal::clock::ManualClock;
use garret_hal::entropy::SeededEntropy;
use garret_storage::{NewReply, Store, StoredFinish};

use crate::bytes::{self, ByteEncoder};
use crate::scripted::ScriptedModel;

/// An agent whose model is scripted and whose tokens are bytes.
pub type TestAgent = Agent<ScriptedModel, ByteEncoder>;

/// The parts of such an agent, without an embedder, at a fixed time.
pub fn parts(model: &ScriptedModel, store: Arc<Store>) -> Parts<ScriptedModel, ByteEncoder> {
    Parts {
        model: model.clone(),
        encoder: ByteEncoder,
        store,
        embedder: None,
        clock: Arc::new(ManualClock::at_unix_ms(NOW_MS)),
        entropy: Arc::new(SeededEntropy::new(1)),
    }
}

/// The session that tests talk in.
pub fn session() -> SessionId {
    "s".parse().expect("a name that can be used")
}

/// A reply that no model of ours gave.
pub const fn reply(text: &str, at: WallTime) -> NewReply<'_> {
    NewReply {
        text,
        tokens: &[],
        model_fingerprint: &[0; 32],
        finish: StoredFinish::Stop,
        at,
        receipt: b"",
        trace: b"",
    }
}

/// Stores a turn that was answered so, without an agent.
///
/// # Panics
/// When the store refuses it.
pub fn tell(store: &Store, session: &SessionId, user: &str, answer: &str, at: WallTime) {
    let turn = store.accept(session, user, at).expect("the message is stored");
    store.reply(session, turn, reply(answer, at)).expect("the reply is stored");
}

/// One turn of `session`.
///
/// # Errors
/// The agent's.
pub fn turn<M: ChatModel, E: PromptEncoder>(
    agent: &mut Agent<M, E>,
    session: &SessionId,
    text: &str,
) -> Result<Outcome, TurnError> {
    let stop = Cancel::new();
    smol::block_on(agent.turn(session, text, &stop, &mut |_| {}))
}

/// One turn of [`session`], which must succeed.
///
/// # Panics
/// When it fails.
pub fn say<M: ChatModel, E: PromptEncoder>(agent: &mut Agent<M, E>, text: &str) -> Outcome {
    turn(agent, &session(), text).expect("the turn is answered")
}

/// The texts of a prompt's messages.
pub fn texts(prompt: &[Token]) -> Vec<String> {
    bytes::read(prompt).into_iter().map(|(_, text)| text).collect()
}

/// When tests talk, in milliseconds since 1970.
pub const NOW_MS: i64 = 1_800_000_000_000;
