//! A chat without Garret.

use std::collections::HashSet;
use std::sync::Arc;

use garret::Cancel;
use garret::agent::{Agent, AgentError, Options, Outcome, Parts, TurnError};
use garret_core::gate::Mode;
use garret_core::id::SessionId;
use garret_core::model::ChatModel;
use garret_core::prompt::PromptEncoder;
use garret_core::time::{Clock, Confidence, Entropy, WallTime};
use garret_core::token::Token;
use garret_hal::media::RamMedium;
use garret_language::local_time;
use garret_storage::search::Speaker;
use garret_storage::{ImportedTurn, NewReply, OpenError, ReadError, Store, TurnView, WriteError};

/// See the [module](crate::ab).
pub struct Baseline<M, E> {
    agent: Agent<M, E>,
    /// Conversations that couldn't be renamed or dropped with Garret's: they are begun anew.
    stale: HashSet<SessionId>,
}

/// The reason for which there is no baseline, or it can't go on from a conversation.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BaselineError {
    /// The settings don't fit together.
    #[error("no comparison: {0}")]
    Agent(#[from] AgentError),
    /// The store in memory failed.
    #[error("no comparison: no store in memory: {0}")]
    Open(#[from] OpenError),
    /// The conversation can't be read.
    #[error("no comparison: the conversation can't be read: {0}")]
    Read(#[from] ReadError),
    /// A conversation can't be written to memory.
    #[error("no comparison: the conversation can't be copied: {0}")]
    Write(#[from] WriteError),
}

/// The same options without all that Garret adds, with `date` in the system prompt.
#[must_use]
pub fn plain(options: &Options, date: Option<&str>) -> Options {
    let system_prompt = match date.map(|date| format!("Today is {date}.")) {
        None => Arc::clone(&options.system_prompt),
        Some(date) if options.system_prompt.is_empty() => date.into(),
        Some(date) => [&*options.system_prompt, "\n\n", &date].concat().into(),
    };
    Options {
        system_prompt,
        memory_tokens: Some(0),
        compact_at: 0,
        show_time: false,
        companions: Mode::Off,
        ..options.clone()
    }
}

impl<M: ChatModel, E: PromptEncoder> Baseline<M, E> {
    /// A baseline on a context of its own, for an agent of these options.
    ///
    /// # Errors
    /// [`BaselineError`].
    pub fn new(
        model: M,
        encoder: E,
        clock: Arc<dyn Clock + Send + Sync>,
        entropy: Arc<dyn Entropy + Send + Sync>,
        options: &Options,
    ) -> Result<Self, BaselineError> {
        let date = options.show_time.then(|| date(clock.wall())).flatten();
        let options = plain(options, date.as_deref());
        let store = Arc::new(Store::on_medium("baseline", Box::new(RamMedium::new()))?);
        let parts = Parts { model, encoder, store, embedder: None, clock, entropy };
        Ok(Self { agent: Agent::new(parts, options)?, stale: HashSet::new() })
    }

    /// Begins `session` as `garret` has it, unless the baseline is in the midst of it. To be called
    /// before either side answers.
    ///
    /// # Errors
    /// [`BaselineError`].
    pub fn follow(&mut self, garret: &Store, session: &SessionId) -> Result<(), BaselineError> {
        let own = self.agent.store();
        if self.stale.contains(session) {
            if own.session(session)?.is_some() {
                own.delete(session)?;
            }
            self.stale.remove(session);
        }
        if own.session(session)?.is_some() || garret.session(session)?.is_none() {
            return Ok(());
        }
        let copied = garret.with_turns(session, 1, |turns| {
            turns.iter().try_for_each(|turn| copy(own, session, turn))
        })?;
        if copied.is_err() && own.session(session)?.is_some() {
            // Half a conversation would be taken for the whole one.
            own.delete(session)?;
        }
        copied
    }

    /// Answers `text`, as [`Agent::turn`] does.
    ///
    /// # Errors
    /// See [`TurnError`].
    pub async fn turn(
        &mut self,
        session: &SessionId,
        text: &str,
        cancel: &Cancel,
        on_text: &mut dyn FnMut(&str),
    ) -> Result<Outcome, TurnError> {
        self.agent.turn(session, text, cancel, on_text).await
    }

    /// Goes on with a conversation under another name, as Garret does. Where that can't be, the
    /// conversation is begun anew as Garret has it, under either name.
    ///
    /// # Errors
    /// [`BaselineError::Write`], also where the name is taken: Garret's side may have failed to
    /// keep a message of that name.
    pub fn rename(&mut self, session: &SessionId, to: &SessionId) -> Result<(), BaselineError> {
        let renamed = self.try_rename(session, to);
        if renamed.is_err() {
            self.stale.extend([session.clone(), to.clone()]);
        }
        renamed
    }

    fn try_rename(&self, session: &SessionId, to: &SessionId) -> Result<(), BaselineError> {
        let own = self.agent.store();
        if own.session(session)?.is_some() {
            own.rename(session, to)?;
        } else if own.session(to)?.is_some() {
            own.delete(to)?;
        }
        Ok(())
    }

    /// Drops a conversation: the next one of this name begins anew, also where this fails.
    ///
    /// # Errors
    /// [`BaselineError`].
    pub fn forget(&mut self, session: &SessionId) -> Result<(), BaselineError> {
        let forgotten = self.try_forget(session);
        if forgotten.is_err() {
            self.stale.insert(session.clone());
        }
        forgotten
    }

    fn try_forget(&self, session: &SessionId) -> Result<(), BaselineError> {
        let own = self.agent.store();
        if own.session(session)?.is_some() {
            own.delete(session)?;
        }
        Ok(())
    }
}

/// Copies a turn to the end of a session.
fn copy(to: &Store, session: &SessionId, turn: &TurnView<'_>) -> Result<(), BaselineError> {
    let at = WallTime { unix_ms: turn.accepted_ms, confidence: turn.clock };
    let copied = match turn.speaker {
        None => to.accept(session, turn.user, at)?,
        Some(name) => {
            let speaker = Speaker::Named(name);
            to.import_turns(&[ImportedTurn { session, speaker, text: turn.user, at, id: None }])?;
            to.session(session)?.map_or(0, |info| info.turns)
        }
    };
    let Some(reply) = turn.reply else { return Ok(()) };
    let tokens: Vec<Token> = reply.tokens.iter().collect();
    let finished = WallTime { unix_ms: reply.finished_ms, confidence: reply.clock };
    let reply = NewReply {
        text: reply.text,
        tokens: &tokens,
        model_fingerprint: reply.model_fingerprint,
        finish: reply.finish,
        at: finished,
        receipt: &[],
        trace: &[],
    };
    Ok(to.reply(session, copied, reply)?)
}

/// The day where the user is, if that is known.
fn date(now: WallTime) -> Option<String> {
    let known = now.confidence != Confidence::Wrong;
    known.then(|| local_time::format(now.unix_ms, "%A, %-d %B %Y")).flatten()
}
