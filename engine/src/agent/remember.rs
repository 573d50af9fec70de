//! Reading what the user said for facts, while nobody waits.

use std::sync::Arc;

use garret_core::gate::Mode;
use garret_core::id::{SessionId, TurnSeq};
use garret_core::model::{ChatModel, ModelRole};
use garret_core::prompt::PromptEncoder;
use garret_core::time::WallTime;
use garret_storage::{FactId, ReadError, TurnView, WriteError};

use super::Agent;
use crate::companion::Question;
use crate::remember::cues::{self, Cues};
use crate::remember::extract::{self, COPY_TOKENS, HeardStatement, KeepError, KeepOutcome};
use crate::remember::{persona, pins};

/// A user's message that is read for facts.
struct UnreadMessage {
    turn: TurnSeq,
    text: String,
    accepted: WallTime,
    cues: Cues,
}

/// The outcome of reading turns for facts.
#[derive(Clone, Debug, Default)]
pub(super) struct ExtractReport {
    /// Facts that are new.
    pub(super) new: usize,
    /// The reason for which the inferrer wasn't asked for a value, or didn't answer; the rule's is kept
    /// then.
    pub(super) unasked: Option<String>,
}

impl<M: ChatModel, E: PromptEncoder> Agent<M, E> {
    /// Reads what the user said of themselves in turns that weren't read yet; returns how many facts
    /// are new. Dropping the future keeps what was done. What fails is left alone for a while.
    pub(super) async fn extract(&mut self, session: &SessionId) -> usize {
        let now = self.now_ms();
        if !self.backoffs.facts.allows(now) {
            return 0;
        }
        match self.try_extract(session).await {
            Ok(report) => {
                self.backoffs.facts.succeeded();
                report.new
            }
            Err(error) => {
                if !is_outdated(&error) {
                    self.backoffs.facts.failed(now);
                }
                tracing::warn!(%error, "what was said is read for facts later");
                0
            }
        }
    }

    /// Reads turns for facts like [`Agent::extract`], whatever failed before.
    pub(super) async fn try_extract(
        &mut self,
        session: &SessionId,
    ) -> Result<ExtractReport, KeepError> {
        let mut report = ExtractReport::default();
        if self.options.companions == Mode::Off {
            return Ok(report);
        }
        self.count_uses(session)?;
        let epoch = self.parts.store.erasure_epoch();
        let unread = self.unread(session)?;
        let mut kept = Vec::new();
        let mut newest = None;
        for message in &unread {
            let before = kept.len();
            for statement in &message.cues.statements {
                let heard = HeardStatement {
                    session,
                    turn: message.turn,
                    message: &message.text,
                    accepted: message.accepted,
                    statement,
                    hedged: message.cues.hedge > 0.0,
                };
                let (object, sure) = self.value(&heard, &mut report).await;
                match heard.keep(self.parts.store.since(epoch), &object, sure) {
                    Ok(done) => kept.push(done),
                    Err(error) => {
                        // What was kept of it may be what was erased: it isn't read again.
                        if is_outdated(&error) && kept.len() > before {
                            self.schedule(session, message.turn)?.extracted_to(message.turn);
                        }
                        return Err(error);
                    }
                }
            }
            newest = Some(message.turn);
            self.schedule(session, message.turn)?.extracted_to(message.turn);
        }
        self.follow_up(&kept)?;
        if let Some(turn) = newest {
            let store = Arc::clone(&self.parts.store);
            let schedule = self.schedule(session, turn)?;
            schedule.due.extract = false;
            schedule.save(&store, session)?;
        }
        report.new = kept.iter().filter(|kept| matches!(kept, KeepOutcome::New(_))).count();
        Ok(report)
    }

    /// Does what follows from statements that were kept: those said again are used, those that matter
    /// are pinned, and the record of the user is made anew.
    fn follow_up(&self, kept: &[KeepOutcome]) -> Result<(), KeepError> {
        let now = self.parts.clock.wall();
        // What is said again is as present as what was recalled.
        let again = kept.iter().filter_map(|kept| match kept {
            KeepOutcome::Known(fact) => Some((*fact, now.unix_ms)),
            _ => None,
        });
        self.touch(again.collect())?;
        if !kept.is_empty() {
            pins::pin(&self.parts.store, kept)?;
            persona::refresh(&self.parts.store, now)?;
            pins::cap(&self.parts.store, now, pins::MAX_PINNED)?;
        }
        Ok(())
    }

    /// Counts that facts were recalled, so that they fade later.
    fn count_uses(&mut self, session: &SessionId) -> Result<(), KeepError> {
        let now = self.parts.clock.wall().unix_ms;
        let recalled = std::mem::take(&mut self.schedule(session, TurnSeq::MAX)?.recalled);
        self.touch(recalled.into_iter().map(|fact| (fact, now)).collect())
    }

    fn touch(&self, uses: Vec<(FactId, i64)>) -> Result<(), KeepError> {
        if !uses.is_empty() {
            self.parts.store.touch(&uses)?;
        }
        Ok(())
    }

    /// Reads the messages of turns that weren't read for facts, at most [`MAX_UNREAD`] of them.
    fn unread(&mut self, session: &SessionId) -> Result<Vec<UnreadMessage>, ReadError> {
        let from = self.schedule(session, TurnSeq::MAX)?.extracted + 1;
        self.parts.store.with_turns(session, from, |views| {
            let user = views.iter().filter(|view| view.speaker.is_none()).take(MAX_UNREAD);
            let message = |view: &TurnView<'_>| UnreadMessage {
                turn: view.seq,
                text: view.user.to_owned(),
                accepted: WallTime { unix_ms: view.accepted_ms, confidence: view.clock },
                cues: cues::read(view.user),
            };
            user.map(message).collect()
        })
    }

    /// Finds the value of a statement, and whether it is surely just that: by the rule where its end is
    /// plain, else as the model copies it, else as far as the rule reaches.
    async fn value(
        &mut self,
        heard: &HeardStatement<'_>,
        report: &mut ExtractReport,
    ) -> (String, bool) {
        let statement = heard.statement;
        if statement.plain || statement.ended {
            return (statement.object.clone(), statement.plain);
        }
        let words = heard.message.get(statement.object_at.clone()).unwrap_or_default();
        let instruction = extract::copy_instruction(heard);
        let grammar = extract::copy_grammar(words);
        let question = Question {
            role: ModelRole::Inferrer,
            instruction: &instruction,
            grammar: Some(&grammar),
            max_tokens: COPY_TOKENS,
        };
        let answer = self.ask_inferrer(heard.session, heard.turn, &question).await;
        let copied = match &answer {
            Ok(Some(answer)) => {
                let copied = extract::copied(&answer.text, words);
                self.inferrer_did(copied.is_some());
                copied
            }
            Ok(None) => None,
            Err(why) => {
                tracing::warn!(why, "a value is kept as far as the rule reaches");
                report.unasked = Some(why.clone());
                None
            }
        };
        match copied {
            Some(value) => (value.to_owned(), true),
            None => (statement.object.clone(), false),
        }
    }
}

/// Returns whether something was only given up since what it was made of may be erased.
pub(super) fn is_outdated(error: &KeepError) -> bool {
    matches!(error, KeepError::Write(WriteError::Outdated))
}

/// Most messages that are read for facts in one go.
const MAX_UNREAD: usize = 64;
