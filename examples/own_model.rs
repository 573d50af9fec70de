//! A model of one's own behind the ports: all that an agent needs of a model are a [`ChatModel`] that
//! streams tokens and a [`PromptEncoder`] that makes them of messages.
//!
//! `cargo run -p garret-examples --bin garret-own-model`

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};

use garret::Cancel;
use garret::agent::{Agent, Options, Parts};
use garret::core::model::{ChatModel, Event, Finish, ModelFacts, Reply, Request};
use garret::core::prompt::{Content, EncodeError, Message, PromptEncoder};
use garret::core::token::{Token, TokenBuf};
use garret::hal::clock::SystemClock;
use garret::hal::entropy::SystemEntropy;
use garret::hal::media::RamMedium;
use garret::storage::Store;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let parts = Parts {
        model: Parrot,
        encoder: Bytes,
        store: Arc::new(Store::on_medium("home", Box::new(RamMedium::new()))?),
        embedder: None,
        clock: Arc::new(SystemClock::new()),
        entropy: Arc::new(SystemEntropy),
    };
    let mut agent = Agent::new(parts, Options::default())?;
    let session = "parrot".parse()?;
    for message in ["Good morning.", "Have the bees swarmed?"] {
        let outcome = smol::block_on(agent.turn(&session, message, &Cancel::new(), &mut |_| ()))?;
        println!("{message} -> {}", outcome.reply);
        println!("  {} tokens of prompt", outcome.receipt.prompt_tokens);
    }
    Ok(())
}

/// A model that says how long its prompt is.
struct Parrot;

impl ChatModel for Parrot {
    type Reply = Words;
    type Error = Infallible;

    fn facts(&self) -> ModelFacts {
        // Replies are kept with their tokens, which hold for this fingerprint alone.
        ModelFacts { n_ctx: 2_048, fingerprint: [7; 32], parameters: None }
    }

    fn start(&self, request: Request<'_>) -> Result<Words, Infallible> {
        let prefilled = request.prompt.len() as u32;
        let said = format!("I was shown {prefilled} tokens.");
        let pieces =
            said.bytes().map(|byte| Event::Piece { token: Token(byte.into()), bytes: [byte] });
        let events = std::iter::once(Event::Prefilled { reused: 0, prefilled })
            .chain(pieces.take(request.max_tokens as usize))
            .chain([Event::Finished(Finish::Stop)]);
        Ok(Words(events.collect()))
    }
}

/// A reply of [`Parrot`]. One that has to wait for its model returns `Poll::Pending` and wakes the
/// task later.
struct Words(VecDeque<Event<[u8; 1]>>);

impl Reply for Words {
    type Bytes = [u8; 1];
    type Error = Infallible;

    fn poll_event(
        &mut self,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Event<[u8; 1]>, Infallible>>> {
        Poll::Ready(self.0.pop_front().map(Ok))
    }

    fn cancel(&self) {}
}

/// An encoder of one token a byte: a byte that names the role, the content, a line feed.
struct Bytes;

impl PromptEncoder for Bytes {
    type Error = Infallible;

    fn encode(
        &mut self,
        messages: &[Message<'_>],
        out: &mut TokenBuf<'_>,
        ends: &mut [usize],
    ) -> Result<(), EncodeError<Infallible>> {
        let put = |out: &mut TokenBuf<'_>, text: &str| {
            out.extend(text.bytes().map(|byte| Token(byte.into()))).map_err(|_| EncodeError::Full)
        };
        for (i, message) in messages.iter().enumerate() {
            put(out, message.role.as_str())?;
            put(out, ": ")?;
            for part in message.content.parts() {
                put(out, part)?;
            }
            put(out, "\n")?;
            if let Some(end) = ends.get_mut(i) {
                *end = out.as_slice().len();
            }
        }
        put(out, "assistant: ")
    }

    fn count(&mut self, content: &Content<'_>, _: usize) -> Result<usize, EncodeError<Infallible>> {
        Ok(content.len())
    }

    fn detokenize(&self, token: Token, out: &mut dyn FnMut(&[u8])) {
        if let Ok(byte) = u8::try_from(token.0) {
            out(&[byte]);
        }
    }
}
