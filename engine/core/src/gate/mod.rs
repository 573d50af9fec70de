//! Decides after each message which companions are worth their time.
//!
//! Two scores grow with what was noticed in a message and decay with every turn: one for the
//! inferrer, one for the compactor. A companion runs when its score reaches a threshold, and goes
//! on running down to a lower one, so that a conversation that is hard to read isn't read every
//! other turn only.
//!
//! ```
//! use garret_core::gate::{Gate, Mode, Signals};
//!
//! let mut gate = Gate::default();
//! let plain = gate.decide(Mode::ColdStart, &Signals::default());
//! assert!(!plain.infer && !plain.compact);
//!
//! let told = Signals { contradiction: true, ..Signals::default() };
//! assert!(gate.decide(Mode::ColdStart, &told).infer);
//! ```
//!
//! An inference that was sure of itself counts at the next decision ([`Gate::inferred`]). It counts
//! once, and the next one doesn't before a message gave reason by itself: so no inference keeps
//! asking for the next. Without an embedder nobody knows whether the topic changed; that is `None`
//! and says nothing. A contradiction asks for the facts to be read, not for a compaction, which
//! would change the prompt's prefix.
//!
//! Limits: it decides from what it is told; the sensors are the caller's.

use core::fmt;
use core::str::FromStr;

mod state;

/// Readiness of companions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Runs nothing but a compaction when the window fills.
    Off,
    /// Runs companions when a message gives reason to.
    #[default]
    ColdStart,
    /// Runs the inferrer after every message.
    Turbo,
}

impl Mode {
    /// Returns the name in the configuration: `off`, `cold_start` or `turbo`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::ColdStart => "cold_start",
            Self::Turbo => "turbo",
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Mode {
    type Err = UnknownMode;

    fn from_str(name: &str) -> Result<Self, UnknownMode> {
        let modes = [Self::Off, Self::ColdStart, Self::Turbo];
        modes.into_iter().find(|mode| mode.as_str() == name).ok_or(UnknownMode)
    }
}

/// A mode that doesn't exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "it must be off (compaction only), cold_start (when there is reason to) or turbo (every turn)"
)]
pub struct UnknownMode;

/// Cues in a message. The default is a message in which there was nothing to notice.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Signals {
    /// Tokens of the prompt per token of the window, 0 to 1.
    pub fill: f32,
    /// True when the message is about something else than the one before; `None` when nobody can
    /// know.
    pub topic_changed: Option<bool>,
    /// Words of the message.
    pub words: u32,
    /// Set when the message asks for what is new.
    pub freshness: bool,
    /// Likelihood, 0 to 1, that the message means something said before without naming it.
    pub anaphora: f32,
    /// Likelihood, 0 to 1, that the user is unsure.
    pub hedge: f32,
    /// Likelihood, 0 to 1, that more is wanted than is said.
    pub oblique: f32,
    /// Set when the message names a date or a web address.
    pub anchored: bool,
    /// Number of dates, addresses and identifiers in the message.
    pub spans: u8,
    /// Set when the message says of a subject and relation what can't be true beside what is
    /// remembered.
    pub contradiction: bool,
    /// Set when the message says something lasting about the user.
    pub personal: bool,
    /// Set when the model asked for a compaction.
    pub tag_compact: bool,
    /// Set when the model asked for an inference.
    pub tag_infer: bool,
}

impl Signals {
    /// Returns whether a change of topic would count: what points back goes on with the topic,
    /// however different its words are.
    pub fn needs_topic(&self) -> bool {
        share(self.anaphora) == 0.0 && (self.words <= SHORT || self.freshness)
    }
}

/// A reason to run a companion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// Something new is asked for.
    Freshness,
    /// Something new is asked for, and something ties it to the conversation.
    FreshnessTied,
    /// Something is meant that isn't named.
    Anaphora,
    /// The user is unsure.
    Hedge,
    /// More is wanted than is said.
    Oblique,
    /// A short message changes the topic.
    TopicChanged,
    /// The message can't be true beside a fact.
    Contradiction,
    /// The last inference was sure of itself.
    Confidence,
    /// The model asked for an inference.
    TagInfer,
    /// The model asked for a compaction.
    TagCompact,
    /// The window fills.
    Fill,
    /// Details pile up that a summary could lose.
    Spans,
    /// The message says something about the user.
    Personal,
    /// The mode runs the inferrer every turn.
    Turbo,
}

impl Reason {
    /// Every reason, in the order in which they are reported.
    pub const ALL: [Self; 14] = [
        Self::Freshness,
        Self::FreshnessTied,
        Self::Anaphora,
        Self::Hedge,
        Self::Oblique,
        Self::TopicChanged,
        Self::Contradiction,
        Self::Confidence,
        Self::TagInfer,
        Self::TagCompact,
        Self::Fill,
        Self::Spans,
        Self::Personal,
        Self::Turbo,
    ];

    /// Returns the name on the wire, such as `topic_changed`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Freshness => "freshness",
            Self::FreshnessTied => "freshness_tied",
            Self::Anaphora => "anaphora",
            Self::Hedge => "hedge",
            Self::Oblique => "oblique",
            Self::TopicChanged => "topic_changed",
            Self::Contradiction => "contradiction",
            Self::Confidence => "confidence",
            Self::TagInfer => "tag_infer",
            Self::TagCompact => "tag_compact",
            Self::Fill => "fill",
            Self::Spans => "spans",
            Self::Personal => "personal",
            Self::Turbo => "turbo",
        }
    }

    const fn bit(self) -> u16 {
        match self {
            Self::Freshness => 1,
            Self::FreshnessTied => 1 << 1,
            Self::Anaphora => 1 << 2,
            Self::Hedge => 1 << 3,
            Self::TopicChanged => 1 << 4,
            Self::Contradiction => 1 << 5,
            Self::Confidence => 1 << 8,
            Self::TagInfer => 1 << 9,
            Self::TagCompact => 1 << 10,
            Self::Fill => 1 << 11,
            Self::Spans => 1 << 12,
            Self::Personal => 1 << 13,
            Self::Turbo => 1 << 14,
            Self::Oblique => 1 << 15,
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A set of reasons.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Reasons(u16);

impl Reasons {
    /// Returns whether `reason` is in the set.
    pub const fn has(self, reason: Reason) -> bool {
        self.0 & reason.bit() != 0
    }

    /// Returns the reasons in the set, in the order of [`Reason::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Reason> {
        Reason::ALL.into_iter().filter(move |reason| self.has(*reason))
    }

    const fn add(&mut self, reason: Reason) {
        self.0 |= reason.bit();
    }

    /// Returns whether a reason is in the message itself.
    const fn own(self) -> bool {
        self.0 & OWN != 0
    }
}

/// Reasons that are in the message itself.
const OWN: u16 = Reason::Freshness.bit()
    | Reason::FreshnessTied.bit()
    | Reason::Anaphora.bit()
    | Reason::Hedge.bit()
    | Reason::Oblique.bit()
    | Reason::TopicChanged.bit()
    | Reason::Contradiction.bit()
    | Reason::TagInfer.bit();

/// Work to be done after a message.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Decision {
    /// Set when the inferrer is to run.
    pub infer: bool,
    /// Set when the compactor is to run.
    pub compact: bool,
    /// Set when the message is to be read for facts.
    pub extract: bool,
    /// Reasons that were noticed.
    pub reasons: Reasons,
    /// Score of the inferrer, 0 to 2.
    pub infer_score: f32,
    /// Score of the compactor, 0 to 2.
    pub compact_score: f32,
}

/// The scores of one session.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Gate {
    infer: f32,
    compact: f32,
    /// Decisions for which the inferrer still runs at the lower threshold.
    infer_loud: u8,
    compact_loud: bool,
    /// Dates, addresses and identifiers since the last compaction.
    spans: u8,
    /// Confidence of the last inference, 0 to 1, until a decision has counted it; 0 for none.
    confidence: f32,
    /// True once a confidence has counted and no message gave reason by itself since.
    chained: bool,
}

impl Gate {
    /// Decides what is to be done after a message in which `signals` were noticed.
    pub fn decide(&mut self, mode: Mode, signals: &Signals) -> Decision {
        self.spans = self.spans.saturating_add(signals.spans).min(MOST_SPANS);
        let mut decision = Decision::default();
        let reasons = &mut decision.reasons;
        let strong = self.score_inference(signals, reasons);
        self.score_compaction(signals, reasons);
        if signals.personal {
            reasons.add(Reason::Personal);
        }
        let threshold = if self.infer_loud > 0 { INFER_LOUD } else { INFER };
        let due = self.infer >= threshold - ROUNDING || signals.tag_infer;
        let compact_threshold = if self.compact_loud { COMPACT_LOUD } else { COMPACT };
        let full = share(signals.fill) >= FULL;
        let compact_due = self.compact >= compact_threshold - ROUNDING || signals.tag_compact;
        self.infer_loud = match due {
            true if self.infer >= INFER - ROUNDING || strong => LOUD_TURNS,
            true => self.infer_loud.saturating_sub(1),
            false => 0,
        };
        self.chained = !reasons.own() && (self.chained || reasons.has(Reason::Confidence));
        self.compact_loud = compact_due;
        decision.compact = full || (compact_due && mode != Mode::Off);
        decision.infer = due && mode != Mode::Off;
        decision.extract = (signals.personal || signals.contradiction) && mode != Mode::Off;
        if mode == Mode::Turbo {
            decision.infer = true;
            decision.reasons.add(Reason::Turbo);
        }
        (decision.infer_score, decision.compact_score) = (self.infer, self.compact);
        decision
    }

    /// Keeps how sure an inference was, 0 to 1, for the next decision; 0 when there was none.
    pub fn inferred(&mut self, confidence: f32) {
        self.confidence = share(confidence);
    }

    /// Takes note of a compaction: what had asked for it counts no more.
    pub fn compacted(&mut self) {
        (self.compact, self.compact_loud, self.spans) = (0.0, false, 0);
    }

    /// Returns the gate of a session that is gone back to, whose newest message was `last`: what
    /// was of the moment is over.
    #[must_use]
    pub fn reopened(self, last: &Signals) -> Self {
        let freshness = if last.freshness { 0.35 } else { 0.0 };
        let infer = (freshness + 0.3 * share(last.anaphora)).min(INFER);
        Self { infer, spans: self.spans, ..Self::default() }
    }

    /// Adds to the inferrer's score, and returns whether there was a strong signal.
    fn score_inference(&mut self, signals: &Signals, reasons: &mut Reasons) -> bool {
        let mut strong = false;
        let mut add = |reason, points: f32, is_strong: bool| {
            reasons.add(reason);
            strong |= is_strong;
            points
        };
        let changed = signals.topic_changed == Some(true) && signals.needs_topic();
        let mut sum = 0.0;
        if signals.freshness {
            let tied = signals.anchored || changed || signals.anaphora > 0.0;
            sum += match tied {
                true => add(Reason::FreshnessTied, 0.7, true),
                false => add(Reason::Freshness, 0.25, false),
            };
        }
        if signals.anaphora > 0.0 {
            sum += add(Reason::Anaphora, 0.45 * share(signals.anaphora), false);
        }
        if signals.hedge > 0.0 {
            sum += add(Reason::Hedge, 0.35 * share(signals.hedge), false);
        }
        if signals.oblique > 0.0 {
            sum += add(Reason::Oblique, 0.6 * share(signals.oblique), false);
        }
        if changed && signals.words <= SHORT {
            sum += add(Reason::TopicChanged, 0.5, true);
        }
        if signals.contradiction {
            sum += add(Reason::Contradiction, 0.7, true);
        }
        let confidence = core::mem::take(&mut self.confidence);
        if !self.chained && confidence >= SURE {
            sum += add(Reason::Confidence, 0.4 * (confidence - 0.4), false);
        }
        self.infer = (self.infer * INFER_DECAY + sum).min(MOST);
        if signals.tag_infer {
            reasons.add(Reason::TagInfer);
            self.infer = self.infer.max(INFER);
        }
        strong
    }

    fn score_compaction(&mut self, signals: &Signals, reasons: &mut Reasons) {
        let fill = share(signals.fill);
        let mut sum = 0.0;
        if fill >= FILLING {
            reasons.add(Reason::Fill);
            sum += 2.0 * (fill - FILLING);
            if self.spans > 0 {
                reasons.add(Reason::Spans);
                sum += 0.1 * f32::from(self.spans);
            }
        }
        self.compact = (self.compact * COMPACT_DECAY + sum).min(MOST);
        if signals.tag_compact {
            reasons.add(Reason::TagCompact);
            self.compact = self.compact.max(COMPACT);
        }
    }
}

/// Returns a share as it should be: 0 to 1, and 0 for what is no number.
const fn share(value: f32) -> f32 {
    if value.is_nan() { 0.0 } else { value.clamp(0.0, 1.0) }
}

/// Score at which the inferrer runs.
const INFER: f32 = 0.6;
/// Score down to which it goes on running.
const INFER_LOUD: f32 = 0.3;
/// Most messages in a row for which the lower threshold holds without a strong signal.
const LOUD_TURNS: u8 = 5;
/// Share of the inferrer's score that is left at the next message.
const INFER_DECAY: f32 = 0.5;
/// Score at which the compactor runs.
const COMPACT: f32 = 0.3;
/// Score down to which it goes on running.
const COMPACT_LOUD: f32 = 0.15;
/// Share of the compactor's score that is left at the next message.
const COMPACT_DECAY: f32 = 0.8;
/// Share of the window from which on there is something to compact.
const FILLING: f32 = 0.65;
/// Share of the window from which on a compaction is due.
const FULL: f32 = 0.8;
/// Confidence from which on an inference speaks for the next one.
const SURE: f32 = 0.6;
/// Most a score can be.
const MOST: f32 = 2.0;
/// Words of a message that is short.
const SHORT: u32 = 6;
/// Most spans that count.
const MOST_SPANS: u8 = 5;
/// Sums of tenths in binary may fall short of their threshold by as much.
const ROUNDING: f32 = 1e-5;

#[cfg(test)]
mod tests;
