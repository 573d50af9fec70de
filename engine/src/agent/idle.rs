//! Work for the time in which nobody waits: the conversation as the next prompt will show it is
//! brought into the model's cache.
//!
//! A turn that was answered with a block of memory left its words in the cache; the next prompt has
//! the turn without them. The model's own thread decodes the difference, and the next message stops
//! it wherever it is: what was done by then is used.

use garret_core::assemble::{self, Scratch};
use garret_core::id::{SessionId, TurnSeq};
use garret_core::model::{ChatModel, Event, ModelRole, Reply, Request, Sampling};
use garret_core::prompt::{Message, PromptEncoder, Role};
use smol::future::poll_fn;

use super::Agent;

/// What is to be done, and what is being done.
#[derive(Debug)]
pub(super) struct Idle<R> {
    pub(super) unsettled: Option<Unsettled>,
    /// Dropping it stops it.
    running: Option<R>,
}

/// A conversation of which the cache holds something that no later prompt has.
#[derive(Clone, Debug)]
pub(super) struct Unsettled {
    pub(super) session: SessionId,
    /// Its oldest turn in the prompt.
    pub(super) from: TurnSeq,
    /// Its newest turn.
    pub(super) turn: TurnSeq,
}

impl<R> Default for Idle<R> {
    fn default() -> Self {
        Self { unsettled: None, running: None }
    }
}

impl<R> Idle<R> {
    pub(super) fn stop(&mut self) {
        *self = Self::default();
    }
}

impl<M: ChatModel, E: PromptEncoder> Agent<M, E>
where
    E::Error: 'static,
{
    /// Begins what can be done for the next turn while nobody waits, and returns at once. The next
    /// turn stops it.
    pub fn rest(&mut self) {
        let Some(unsettled) = self.idle.unsettled.take() else { return };
        let Some(length) = self.settled_prompt(&unsettled) else { return };
        let prompt = self.tokens.get(..length).unwrap_or(&[]);
        let sampling = Sampling { temperature: 0.0, ..Sampling::default() };
        let role = ModelRole::Main;
        match self.parts.model.start(Request {
            role,
            prompt,
            max_tokens: 0,
            sampling,
            grammar: None,
        }) {
            Ok(reply) => self.idle.running = Some(reply),
            Err(error) => tracing::debug!(%error, "the next turn prefills this one again"),
        }
    }

    /// Waits until what [`Agent::rest`] began is done. Tokens that were prefilled.
    pub async fn rested(&mut self) -> u32 {
        let Some(mut reply) = self.idle.running.take() else { return 0 };
        let mut tokens = 0;
        while let Some(Ok(event)) = poll_fn(|cx| reply.poll_event(cx)).await {
            if let Event::Prefilled { prefilled, .. } = event {
                tokens = prefilled;
            }
        }
        tokens
    }

    /// Encodes a conversation as the next prompt begins, into `self.tokens`; its length. `None` when
    /// the next prompt won't begin that way or can't be known.
    fn settled_prompt(&mut self, unsettled: &Unsettled) -> Option<usize> {
        let Unsettled { session, from, turn } = unsettled;
        self.counts.turn_to(session);
        let limits = self.limits();
        let (encoder, counts) = (&mut self.parts.encoder, &mut self.counts);
        let (system, tokens) = (&self.options.system_prompt, &mut self.tokens);
        let read = self.parts.store.with_turns(session, *from, |views| {
            let whole = views.partition_point(|view| view.seq <= *turn);
            let past = counts.shown(encoder, &views[..whole], limits).ok()?;
            if past.len() != whole {
                return None;
            }
            let history: Vec<_> = past.iter().map(|past| past.turn()).collect();
            let mut messages = vec![Message::new(Role::User, ""); 2 * history.len() + 1];
            let mut ends = vec![0; messages.len()];
            let scratch = Scratch { messages: &mut messages, ends: &mut ends, tokens };
            assemble::settled(encoder, system, &history, scratch).ok().map(<[_]>::len)
        });
        read.ok().flatten()
    }
}
