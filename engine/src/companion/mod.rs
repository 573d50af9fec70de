//! Companions: short requests to a model beside the conversation, of which nobody sees the answer.
//!
//! A companion is asked in the time in which nobody waits, on a sequence of its own that begins as a
//! copy of the conversation's; a message of the user goes before it at any moment. [`ask`] runs one
//! request to its end and is cancelled by dropping it. [`form`] declares what is to be filled in: the
//! grammar that the model must follow and the reader of what it wrote come from one declaration.
//!
//! Limits: an answer is data. Whatever is made of it is stored and shown as such.

pub(crate) mod backoff;
pub mod form;
pub(crate) mod own_model;
pub(crate) mod schedule;
pub(crate) mod transcript;

use std::time::Duration;

use garret_core::model::{ChatModel, Event, Finish, ModelRole, Reply, Request, Sampling};
use garret_core::time::Clock;
use garret_core::token::Token;
use garret_core::utf8::Utf8Stream;
use smol::Timer;
use smol::future::{or, poll_fn};

/// A companion's answer, with its cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The text, with U+FFFD for bytes that are no text.
    pub text: String,
    /// The reason for which it ended; [`Finish::Length`] says that it is cut off.
    pub finish: Finish,
    /// Tokens of the prompt that were in the cache.
    pub reused: u32,
    /// Tokens of the prompt that were decoded.
    pub prefilled: u32,
    /// Tokens generated.
    pub generated: u32,
}

/// Has `model` answer `prompt` with the likeliest words, by `grammar` if there is one, in at most
/// `max_tokens`. Dropping the future cancels the request within one decode batch.
///
/// # Errors
/// The model's, when it can't be asked or fails midway.
pub async fn ask<M: ChatModel>(
    model: &M,
    role: ModelRole,
    prompt: &[Token],
    grammar: Option<&str>,
    max_tokens: u32,
) -> Result<Answer, M::Error> {
    // A grammar repeats its labels, which must not be punished.
    let repeat_penalty = if grammar.is_some() { 1.0 } else { 1.1 };
    let sampling = Sampling { temperature: 0.0, repeat_penalty, ..Sampling::default() };
    let mut reply = model.start(Request { role, prompt, max_tokens, sampling, grammar })?;
    let mut answer = Answer {
        text: String::new(),
        finish: Finish::Cancelled,
        reused: 0,
        prefilled: 0,
        generated: 0,
    };
    let mut utf8 = Utf8Stream::new();
    while let Some(event) = poll_fn(|cx| reply.poll_event(cx)).await {
        match event? {
            Event::Prefilled { reused, prefilled } => {
                answer.reused = reused;
                answer.prefilled = prefilled;
            }
            Event::Piece { bytes, .. } => {
                answer.generated = answer.generated.saturating_add(1);
                utf8.push(bytes.as_ref(), &mut |piece| answer.text.push_str(piece));
            }
            Event::Finished(finish) => answer.finish = finish,
        }
    }
    Ok(answer)
}

/// Asks like [`ask`]; returns `None` when there is no answer by the time that `clock` shows
/// `deadline_us`, its monotonic reading in microseconds. The request is cancelled then.
///
/// # Errors
/// The model's.
pub async fn ask_until<M: ChatModel>(
    model: &M,
    question: &Question<'_>,
    prompt: &[Token],
    clock: &(dyn Clock + Send + Sync),
    deadline_us: u64,
) -> Result<Option<Answer>, M::Error> {
    let Question { role, grammar, max_tokens, .. } = *question;
    let answer = async { ask(model, role, prompt, grammar, max_tokens).await.map(Some) };
    let late = async {
        while clock.monotonic_us() < deadline_us {
            Timer::after(TICK).await;
        }
        Ok(None)
    };
    or(answer, late).await
}

/// The interval at which a deadline is looked at.
const TICK: Duration = Duration::from_millis(100);

/// A question to a companion.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// The role in which it is asked.
    pub role: ModelRole,
    /// The words of the question.
    pub instruction: &'a str,
    /// The grammar of the answer.
    pub grammar: Option<&'a str>,
    /// Most tokens of the answer.
    pub max_tokens: u32,
}
