//! What is decided about companions after each turn of a session, and kept between its turns.

use garret_core::gate::{Decision, Gate, Mode, Signals};
use garret_core::id::{SessionId, TurnSeq};
use garret_core::model::{ChatModel, ModelRole};
use garret_core::prompt::PromptEncoder;
use garret_storage::{FactId, ReadError, StateKind, Store, WriteError};

use super::{Agent, states};
use crate::companion::form::Size;
use crate::infer::extract::latest;
use crate::perceive::{Known, Perception, contradicted, perceive, topic_changed};

/// See the module.
#[derive(Clone, Debug)]
pub(super) struct Mind {
    pub(super) session: SessionId,
    pub(super) gate: Gate,
    /// Turns up to this one were read for facts.
    pub(super) extracted: TurnSeq,
    /// What the newest turn gave reason for and isn't done yet.
    pub(super) due: Due,
    /// Facts that were recalled and whose use isn't counted yet.
    pub(super) recalled: Vec<FactId>,
    /// Whether the store has it as it was.
    changed: bool,
}

/// Companions that are to run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Due {
    pub(super) infer: bool,
    pub(super) compact: bool,
    pub(super) extract: bool,
    /// The topic changed since the last compaction.
    pub(super) topic_changed: bool,
}

/// What a turn tells beside its words.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Told {
    /// Tokens of the prompt and the reply per token of the window.
    pub(super) fill: f32,
    /// The model asked for a compaction.
    pub(super) compact: bool,
    /// The model asked for an inference.
    pub(super) infer: bool,
}

impl Mind {
    /// The mind of a session as it was kept, of a session that is begun or gone back to.
    fn open(store: &Store, session: &SessionId, turn: TurnSeq) -> Result<Self, ReadError> {
        let kept = states::read(store, session, StateKind::Gate)?;
        let kept = kept.as_deref().and_then(Self::read);
        let (gate, extracted) = match kept {
            Some((gate, extracted)) => {
                let last = message(store, session, turn.saturating_sub(1))?;
                (gate.reopened(&perceive(&last).signals()), extracted)
            }
            None => (Gate::default(), 0),
        };
        let session = session.clone();
        Ok(Self {
            session,
            gate,
            extracted,
            due: Due::default(),
            recalled: Vec::new(),
            changed: false,
        })
    }

    fn read(bytes: &[u8]) -> Option<(Gate, TurnSeq)> {
        let (gate, extracted) = bytes.split_last_chunk::<8>()?;
        Some((Gate::from_bytes(gate)?, u64::from_le_bytes(*extracted)))
    }

    /// Keeps it, if there is something new to keep.
    pub(super) fn save(&mut self, store: &Store) -> Result<(), WriteError> {
        if std::mem::take(&mut self.changed) {
            let bytes = [&self.gate.to_bytes()[..], &self.extracted.to_le_bytes()].concat();
            store.set_state(&self.session, StateKind::Gate, &bytes)?;
        }
        Ok(())
    }

    /// Notes that turns up to `turn` were read for facts.
    pub(super) fn extracted_to(&mut self, turn: TurnSeq) {
        self.changed |= turn > self.extracted;
        self.extracted = self.extracted.max(turn);
    }

    /// The gate, about to change.
    pub(super) fn gate_mut(&mut self) -> &mut Gate {
        self.changed = true;
        &mut self.gate
    }
}

impl<M: ChatModel, E: PromptEncoder> Agent<M, E> {
    /// Decides which companions run after a turn that was just answered, whose prompt showed what
    /// `recalled` names. That it can't be decided is
    /// no reason to fail: then none runs.
    pub(super) fn judge(
        &mut self,
        session: &SessionId,
        turn: TurnSeq,
        text: &str,
        told: Told,
        recalled: &[String],
    ) -> Decision {
        let judged = self.try_judge(session, turn, text, told, recalled);
        judged.unwrap_or_else(|error| {
            tracing::warn!(%error, "no companion runs after this turn");
            Decision::default()
        })
    }

    fn try_judge(
        &mut self,
        session: &SessionId,
        turn: TurnSeq,
        text: &str,
        told: Told,
        recalled: &[String],
    ) -> Result<Decision, ReadError> {
        let mode = self.options.companions;
        let seen = perceive(text);
        let signals = Signals {
            fill: told.fill,
            tag_compact: told.compact,
            tag_infer: told.infer,
            topic_changed: self.topic(session, turn, text, &seen)?,
            contradiction: mode != Mode::Off && contradicts(&self.parts.store, &seen)?,
            ..seen.signals()
        };
        let topic_changed = signals.topic_changed == Some(true);
        let mind = self.mind(session, turn)?;
        mind.due.topic_changed |= topic_changed;
        let decision = mind.gate.decide(mode, &signals);
        mind.recalled.extend(recalled.iter().filter_map(|id| id.parse::<FactId>().ok()));
        mind.due.infer = decision.infer;
        mind.due.compact |= decision.compact;
        mind.due.extract |= decision.extract;
        Ok(decision)
    }

    /// How much companions are asked.
    pub(super) fn companion_size(&self) -> Size {
        let suited = Size::suited(self.model_of(ModelRole::Inferrer).facts());
        self.options.companion_size.unwrap_or(suited)
    }

    /// The mind of a session, at turn `turn`.
    pub(super) fn mind(
        &mut self,
        session: &SessionId,
        turn: TurnSeq,
    ) -> Result<&mut Mind, ReadError> {
        let mind = match self.mind.take() {
            Some(mind) if mind.session == *session => mind,
            _ => Mind::open(&self.parts.store, session, turn)?,
        };
        Ok(self.mind.insert(mind))
    }

    /// Whether a message changes the topic, where that can matter and be known.
    fn topic(
        &self,
        session: &SessionId,
        turn: TurnSeq,
        text: &str,
        seen: &Perception,
    ) -> Result<Option<bool>, ReadError> {
        let signals = seen.signals();
        let Some(embedder) = self.parts.embedder.as_deref() else { return Ok(None) };
        if turn < 2 || self.options.companions == Mode::Off || !signals.needs_topic() {
            return Ok(None);
        }
        let before = message(&self.parts.store, session, turn - 1)?;
        Ok(topic_changed(embedder, &before, text))
    }
}

/// The user's words of a turn; empty when there is no such turn.
fn message(store: &Store, session: &SessionId, turn: TurnSeq) -> Result<String, ReadError> {
    store.with_turns(session, turn, |views| {
        let view = views.first().filter(|view| view.seq == turn && view.speaker.is_none());
        view.map(|view| view.user.to_owned()).unwrap_or_default()
    })
}

/// Whether a message can't be true beside what is remembered.
fn contradicts(store: &Store, seen: &Perception) -> Result<bool, ReadError> {
    for statement in &seen.statements {
        let facts = latest(store, &statement.subject)?;
        let known: Vec<_> = facts
            .iter()
            .filter(|fact| !fact.inferred)
            .map(|fact| Known {
                subject: &statement.subject,
                relation: &fact.predicate,
                object: fact.object.as_deref().unwrap_or(&fact.text),
            })
            .collect();
        if contradicted(statement, &known).is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}
