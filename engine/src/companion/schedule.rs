//! The schedule of companions: what a session's turns gave reason for, and isn't done yet.

use garret_core::gate::{Decision, Gate, Mode, Signals};
use garret_core::id::{SessionId, TurnSeq};
use garret_storage::{FactId, ReadError, StateKind, Store, WriteError};

use crate::embed::Embed;
use crate::remember::cues::{self, Cues, KnownFact, contradicted, topic_changed};
use crate::remember::extract::latest;
use crate::state;

/// The decisions about companions after a session's turns, kept between them.
#[derive(Clone, Debug)]
pub(crate) struct Schedule {
    gate: Gate,
    /// Turns up to this one were read for facts.
    pub(crate) extracted: TurnSeq,
    /// The companions that the newest turn gave reason for.
    pub(crate) due: DueCompanions,
    /// Facts that were recalled and whose use isn't counted yet.
    pub(crate) recalled: Vec<FactId>,
    /// The store doesn't have it as it is.
    changed: bool,
}

/// Companions that are to run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DueCompanions {
    pub(crate) infer: bool,
    pub(crate) summarise: bool,
    pub(crate) extract: bool,
    /// The topic changed since older turns were last summed up.
    pub(crate) topic_changed: bool,
}

/// The message of a turn that was just answered, and what its reply says beside words.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AnsweredTurn<'a> {
    pub(crate) session: &'a SessionId,
    pub(crate) turn: TurnSeq,
    /// The user's words.
    pub(crate) text: &'a str,
    /// Tokens of the prompt and the reply per token of the window.
    pub(crate) fill: f32,
    /// The model asked for summaries.
    pub(crate) asks_summaries: bool,
    /// The model asked for an inference.
    pub(crate) asks_inference: bool,
}

impl AnsweredTurn<'_> {
    /// Reads the signals of the turn, by which the gate decides.
    ///
    /// # Errors
    /// When the store can't be read.
    pub(crate) fn signals(
        &self,
        store: &Store,
        embedder: Option<&dyn Embed>,
        mode: Mode,
    ) -> Result<Signals, ReadError> {
        let cues = cues::read(self.text);
        Ok(Signals {
            fill: self.fill,
            tag_compact: self.asks_summaries,
            tag_infer: self.asks_inference,
            topic_changed: self.topic_changed(
                store,
                embedder.filter(|_| mode != Mode::Off),
                &cues,
            )?,
            contradiction: mode != Mode::Off && contradicts(store, &cues)?,
            ..cues.signals()
        })
    }

    /// Returns whether the message changes the topic, where that can matter and be known.
    fn topic_changed(
        &self,
        store: &Store,
        embedder: Option<&dyn Embed>,
        cues: &Cues,
    ) -> Result<Option<bool>, ReadError> {
        let Some(embedder) = embedder else { return Ok(None) };
        if self.turn < 2 || !cues.signals().needs_topic() {
            return Ok(None);
        }
        let before = message(store, self.session, self.turn - 1)?;
        Ok(topic_changed(embedder, &before, self.text))
    }
}

impl Schedule {
    /// Opens the schedule of a session that is begun or gone back to, at turn `turn`, as it was kept.
    ///
    /// # Errors
    /// When the store can't be read.
    pub(crate) fn open(
        store: &Store,
        session: &SessionId,
        turn: TurnSeq,
    ) -> Result<Self, ReadError> {
        let kept = state::read(store, session, StateKind::Gate)?;
        let (gate, extracted) = match kept.as_deref().and_then(Self::decode) {
            Some((gate, extracted)) => {
                let last = message(store, session, turn.saturating_sub(1))?;
                (gate.reopened(&cues::read(&last).signals()), extracted)
            }
            None => (Gate::default(), 0),
        };
        let due = DueCompanions::default();
        Ok(Self { gate, extracted, due, recalled: Vec::new(), changed: false })
    }

    /// Reads the gate's own bytes, behind which the last turn that was read for facts stands as a
    /// little-endian number.
    fn decode(bytes: &[u8]) -> Option<(Gate, TurnSeq)> {
        let (gate, extracted) = bytes.split_last_chunk::<8>()?;
        Some((Gate::from_bytes(gate)?, u64::from_le_bytes(*extracted)))
    }

    /// Stores it, if there is something new to store.
    ///
    /// # Errors
    /// [`WriteError`].
    pub(crate) fn save(&mut self, store: &Store, session: &SessionId) -> Result<(), WriteError> {
        if std::mem::take(&mut self.changed) {
            let bytes = [&self.gate.to_bytes()[..], &self.extracted.to_le_bytes()].concat();
            store.set_state(session, StateKind::Gate, &bytes)?;
        }
        Ok(())
    }

    /// Decides which companions run after a turn with these signals, whose prompt showed the messages
    /// and facts of the ids `recalled`.
    pub(crate) fn decide(
        &mut self,
        mode: Mode,
        signals: &Signals,
        recalled: &[String],
    ) -> Decision {
        let decision = self.gate.decide(mode, signals);
        self.recalled.extend(recalled.iter().filter_map(|id| id.parse::<FactId>().ok()));
        self.due.topic_changed |= signals.topic_changed == Some(true);
        self.due.infer = decision.infer;
        self.due.summarise |= decision.compact;
        self.due.extract |= decision.extract;
        decision
    }

    /// Notes that turns up to `turn` were read for facts.
    pub(crate) fn extracted_to(&mut self, turn: TurnSeq) {
        self.changed |= turn > self.extracted;
        self.extracted = self.extracted.max(turn);
    }

    /// Returns the gate, about to change.
    pub(crate) fn gate_mut(&mut self) -> &mut Gate {
        self.changed = true;
        &mut self.gate
    }
}

/// Returns the user's words of a turn; empty when there is no such turn.
fn message(store: &Store, session: &SessionId, turn: TurnSeq) -> Result<String, ReadError> {
    store.with_turns(session, turn, |views| {
        let view = views.first().filter(|view| view.seq == turn && view.speaker.is_none());
        view.map(|view| view.user.to_owned()).unwrap_or_default()
    })
}

/// Returns whether a message can't be true beside what is remembered.
fn contradicts(store: &Store, cues: &Cues) -> Result<bool, ReadError> {
    for statement in &cues.statements {
        let facts = latest(store, &statement.subject)?;
        let known: Vec<_> = facts
            .iter()
            .filter(|fact| !fact.inferred)
            .map(|fact| KnownFact {
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
