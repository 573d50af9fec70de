//! What the companions that read a user's mind do with a session while nobody waits.

use garret_core::gate::Mode;
use garret_core::id::{SessionId, TurnSeq};
use garret_core::model::{ChatModel, ModelRole};
use garret_core::prompt::PromptEncoder;
use garret_core::time::WallTime;
use garret_storage::{FactSource, NewFact, Origin, ReadError, StateKind, Ticket, WriteError};

use super::compact::CALL_US;
use super::{Agent, states};
use crate::companion::form::Form as _;
use crate::companion::{Answer, Question};
use crate::infer::carry::{Carry, Thought};
use crate::infer::extract::{self, COPY_TOKENS, KeepError, Kept, Told};
use crate::infer::reading::{Inference, Reading, instruction, most_tokens};
use crate::infer::{persona, pins};
use crate::perceive::{Perception, perceive, topic_changed};

/// A user's message that is read for facts.
struct Heard {
    turn: TurnSeq,
    text: String,
    accepted: WallTime,
    seen: Perception,
}

impl<M: ChatModel, E: PromptEncoder> Agent<M, E> {
    /// Reads what the user said of themselves in turns that weren't read yet; how many facts are new.
    /// Dropping the future keeps what was done. What fails is left alone for a while.
    pub(super) async fn extract(&mut self, session: &SessionId) -> usize {
        let now = self.now_ms();
        if !self.breakers.facts.allows(now) {
            return 0;
        }
        match self.try_extract(session).await {
            Ok(found) => {
                self.breakers.facts.succeeded();
                found.new
            }
            Err(error) => {
                if !is_outdated(&error) {
                    self.breakers.facts.failed(now);
                }
                tracing::warn!(%error, "what was said is read for facts later");
                0
            }
        }
    }

    /// The same, whatever failed before.
    pub(super) async fn try_extract(&mut self, session: &SessionId) -> Result<Found, KeepError> {
        let mut found = Found::default();
        if self.options.companions == Mode::Off {
            return Ok(found);
        }
        self.count_uses(session)?;
        let ticket = self.parts.store.ticket();
        let unread = self.unread(session)?;
        let (mut kept, mut newest) = (Vec::new(), None);
        for heard in &unread {
            let before = kept.len();
            for statement in &heard.seen.statements {
                let told = Told {
                    session,
                    turn: heard.turn,
                    message: &heard.text,
                    accepted: heard.accepted,
                    statement,
                    hedged: heard.seen.hedge > 0.0,
                };
                let (object, sure) = self.value(&told, &mut found).await;
                match told.keep(self.parts.store.since(ticket), &object, sure) {
                    Ok(done) => kept.push(done),
                    Err(error) => {
                        // What was kept of it may be what was forgotten: it isn't read again.
                        if is_outdated(&error) && kept.len() > before {
                            self.mind(session, heard.turn)?.extracted_to(heard.turn);
                        }
                        return Err(error);
                    }
                }
            }
            newest = Some(heard.turn);
            self.mind(session, heard.turn)?.extracted_to(heard.turn);
        }
        let now = self.parts.clock.wall();
        // What is said again is as present as what was recalled.
        let again = kept.iter().filter_map(|kept| match kept {
            Kept::Known(fact) => Some((*fact, now.unix_ms)),
            _ => None,
        });
        let again: Vec<_> = again.collect();
        if !again.is_empty() {
            self.parts.store.touch(&again)?;
        }
        if !kept.is_empty() {
            pins::pin(&self.parts.store, &kept)?;
            persona::refresh(&self.parts.store, now)?;
            pins::cap(&self.parts.store, now, pins::MAX_PINNED)?;
        }
        if let Some(turn) = newest {
            let store = std::sync::Arc::clone(&self.parts.store);
            let mind = self.mind(session, turn)?;
            mind.due.extract = false;
            mind.save(&store)?;
        }
        found.new = kept.iter().filter(|kept| matches!(kept, Kept::New(_))).count();
        Ok(found)
    }

    /// Counts that facts were recalled, so that they fade later.
    fn count_uses(&mut self, session: &SessionId) -> Result<(), KeepError> {
        let now = self.parts.clock.wall().unix_ms;
        let recalled = std::mem::take(&mut self.mind(session, TurnSeq::MAX)?.recalled);
        let touches: Vec<_> = recalled.into_iter().map(|fact| (fact, now)).collect();
        if !touches.is_empty() {
            self.parts.store.touch(&touches)?;
        }
        Ok(())
    }

    /// What the user said in turns that weren't read for facts, at most [`MOST_UNREAD`] of them.
    fn unread(&mut self, session: &SessionId) -> Result<Vec<Heard>, ReadError> {
        let from = self.mind(session, TurnSeq::MAX)?.extracted + 1;
        self.parts.store.with_turns(session, from, |views| {
            let user = views.iter().filter(|view| view.speaker.is_none()).take(MOST_UNREAD);
            let hear = |view: &garret_storage::TurnView<'_>| Heard {
                turn: view.seq,
                text: view.user.to_owned(),
                accepted: WallTime { unix_ms: view.accepted_ms, confidence: view.clock },
                seen: perceive(view.user),
            };
            user.map(hear).collect()
        })
    }

    /// The value of a statement, and whether it is surely just that: by the rule where its end is
    /// plain, else as the model copies it, else as far as the rule reaches.
    async fn value(&mut self, told: &Told<'_>, found: &mut Found) -> (String, bool) {
        let statement = told.statement;
        if statement.plain || statement.ended {
            return (statement.object.clone(), statement.plain);
        }
        let words = told.message.get(statement.object_at.clone()).unwrap_or_default();
        let (instruction, grammar) =
            (extract::copy_instruction(told), extract::copy_grammar(words));
        let question = Question {
            role: ModelRole::Inferrer,
            instruction: &instruction,
            grammar: Some(&grammar),
            max_tokens: COPY_TOKENS,
        };
        let answer = self.ask_inferrer(told.session, told.turn, &question).await;
        let copied = match &answer {
            Ok(Some(answer)) => {
                let copied = extract::copied(&answer.text, words);
                self.inferrer_did(copied.is_some());
                copied
            }
            Ok(None) => None,
            Err(why) => {
                tracing::warn!(why, "a value is kept as far as the rule reaches");
                found.unasked = Some(why.clone());
                None
            }
        };
        match copied {
            Some(value) => (value.to_owned(), true),
            None => (statement.object.clone(), false),
        }
    }

    /// Asks the inferrer, unless it failed not long ago. `None` when there is nothing to ask it about,
    /// or no room for that; why it didn't answer, in words.
    async fn ask_inferrer(
        &mut self,
        session: &SessionId,
        turn: TurnSeq,
        question: &Question<'_>,
    ) -> Result<Option<Answer>, String> {
        let begun = self.parts.clock.monotonic_us();
        if !self.breakers.inferrer.allows(self.now_ms()) {
            return Err("the inferrer failed not long ago and is left alone for a while".to_owned());
        }
        let answer = self.ask_about(session, Some(turn), question).await;
        let took = self.parts.clock.monotonic_us().saturating_sub(begun);
        let why = match answer {
            Ok(None) if took >= CALL_US => "the inferrer took too long".to_owned(),
            Ok(answer) => return Ok(answer),
            Err(error) => format!("the inferrer failed: {error}"),
        };
        self.inferrer_did(false);
        Err(why)
    }

    /// Takes note of whether the inferrer did what it was asked.
    fn inferrer_did(&mut self, well: bool) {
        let now = self.now_ms();
        match well {
            true => self.breakers.inferrer.succeeded(),
            false => self.breakers.inferrer.failed(now),
        }
    }

    /// Works out what the user is after, if the gate said so, for the next turn; whether it did.
    pub(super) async fn infer(&mut self, session: &SessionId) -> bool {
        match self.try_infer(session).await {
            Ok(done) => done,
            Err(error) => {
                if !is_outdated(&error) {
                    self.inferrer_did(false);
                }
                tracing::warn!(%error, "nothing is inferred for the next turn");
                false
            }
        }
    }

    async fn try_infer(&mut self, session: &SessionId) -> Result<bool, KeepError> {
        let ticket = self.parts.store.ticket();
        self.confirm(session, ticket)?;
        let Some((turn, said)) = self.recent(session)? else { return Ok(false) };
        let may_ask = self.breakers.inferrer.allows(self.now_ms());
        if !may_ask || !std::mem::take(&mut self.mind(session, turn)?.due.infer) {
            return Ok(false);
        }
        let size = self.companion_size();
        let grammar = Reading::grammar(size);
        let question = Question {
            role: ModelRole::Inferrer,
            instruction: instruction(size),
            grammar: Some(&grammar),
            max_tokens: most_tokens(size),
        };
        let answer = match self.ask_inferrer(session, turn, &question).await {
            Ok(Some(answer)) => answer,
            Ok(None) => return Ok(false),
            Err(why) => {
                tracing::warn!(why, "the next turn does without an inference");
                return Ok(false);
            }
        };
        let said: Vec<&str> = said.iter().map(String::as_str).collect();
        let inference = match Inference::read(&answer.text, size, &said) {
            Ok(inference) => inference,
            Err(error) => {
                tracing::debug!(%error, "the inferrer's answer can't be read");
                self.inferrer_did(false);
                return Ok(false);
            }
        };
        self.inferrer_did(true);
        self.leave(session, turn, &inference, ticket)?;
        Ok(true)
    }

    /// Keeps an inference for the next turn and tells the gate of it.
    fn leave(
        &mut self,
        session: &SessionId,
        turn: TurnSeq,
        inference: &Inference,
        ticket: Ticket,
    ) -> Result<(), KeepError> {
        let store = std::sync::Arc::clone(&self.parts.store);
        let mut carry = self.carry(session)?;
        carry.waiting = Thought::new(turn, inference);
        self.set_carry(session, &carry, ticket)?;
        let percent = inference.likeliest().map_or(0, |guess| guess.percent);
        let mind = self.mind(session, turn)?;
        mind.gate_mut().inferred(f32::from(percent) / 100.0);
        Ok(mind.save(&store)?)
    }

    /// Stores what the newest message confirms of what was inferred, as an inference.
    fn confirm(&mut self, session: &SessionId, ticket: Ticket) -> Result<(), KeepError> {
        let mut carry = self.carry(session)?;
        let Some(consumed) = carry.consumed.clone() else { return Ok(()) };
        let Some((turn, said)) = self.recent(session)? else { return Ok(()) };
        let message = said.last().map(String::as_str).unwrap_or_default();
        let note = carry.confirmed(turn, message);
        if let Some(note) = &note {
            let fact = NewFact {
                text: note,
                source: FactSource::Assistant,
                origin: Some(Origin { session, turn }),
                inferred: true,
                confidence: Some(CONFIRMED),
                ..NewFact::default()
            };
            let at = self.parts.clock.wall();
            self.parts.store.since(ticket).add_fact(&fact, at)?;
        }
        if note.is_some() || turn > consumed.by {
            carry.consumed = None;
            self.set_carry(session, &carry, ticket)?;
        }
        Ok(())
    }

    /// Hands out what was inferred for turn `turn`, whose message is `text`, once: the
    /// next call has nothing. `None` where it has nothing to do with the message.
    pub(super) fn take_carry(
        &self,
        session: &SessionId,
        turn: TurnSeq,
        text: &str,
    ) -> Option<Thought> {
        let ticket = self.parts.store.ticket();
        let mut carry = self.carry(session).ok()?;
        carry.waiting.as_ref()?;
        let similar = |thought: &str, message: &str| {
            let embedder = self.parts.embedder.as_deref();
            embedder.and_then(|embedder| topic_changed(embedder, thought, message)) == Some(false)
        };
        let thought = carry.consume(turn, text, similar);
        // Shown without being consumed, it might be shown again.
        let consumed = self.set_carry(session, &carry, ticket);
        let consumed =
            consumed.inspect_err(|error| tracing::warn!(%error, "an inference isn't shown"));
        consumed.ok()?;
        thought
    }

    fn carry(&self, session: &SessionId) -> Result<Carry, ReadError> {
        let bytes = states::read(&self.parts.store, session, StateKind::Carry)?;
        Ok(bytes.map(|bytes| Carry::from_bytes(&bytes)).unwrap_or_default())
    }

    fn set_carry(
        &self,
        session: &SessionId,
        carry: &Carry,
        ticket: Ticket,
    ) -> Result<(), KeepError> {
        let bytes = carry.to_bytes().unwrap_or_default();
        Ok(self.parts.store.since(ticket).set_state(session, StateKind::Carry, &bytes)?)
    }

    /// The newest turn and what the user said in the last few, the newest last. `None` when nothing
    /// was said.
    fn recent(&self, session: &SessionId) -> Result<Option<(TurnSeq, Vec<String>)>, ReadError> {
        let newest = self.parts.store.session(session)?.map_or(0, |info| info.turns);
        let from = newest.saturating_sub(RECENT).max(1);
        self.parts.store.with_turns(session, from, |views| {
            let said = views.iter().filter(|view| view.speaker.is_none());
            let said: Vec<_> = said.map(|view| view.user.to_owned()).collect();
            views.last().map(|last| (last.seq, said))
        })
    }
}

/// What was found in turns that were read for facts.
#[derive(Clone, Debug, Default)]
pub(super) struct Found {
    /// Facts that are new.
    pub(super) new: usize,
    /// Why the inferrer wasn't asked for a value, or didn't answer; the rule's is kept then.
    pub(super) unasked: Option<String>,
}

/// Whether something was only given up since what it was made of may be forgotten.
fn is_outdated(error: &KeepError) -> bool {
    matches!(error, KeepError::Write(WriteError::Outdated))
}

/// Turns before the newest whose words a guess may quote.
const RECENT: u64 = 8;
/// Most messages that are read for facts in one go.
const MOST_UNREAD: usize = 64;
/// Confidence of what was inferred and confirmed.
const CONFIRMED: f32 = 0.7;
