//! What goes in and what comes out.

use garret_core::id::TurnSeq;
use garret_core::time::Confidence;

use crate::ground::summary_id::SummaryId;

/// The way in which a summary was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SummaryMethod {
    /// By the model.
    Model,
    /// By the model, which was told to be shorter.
    Shorter,
    /// By taking words out of what is summed up, without a model.
    Extract,
}

impl SummaryMethod {
    /// The name on the wire: `model`, `shorter` or `extract`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Model => "model",
            Self::Shorter => "shorter",
            Self::Extract => "extract",
        }
    }

    pub(crate) const fn to_byte(self) -> u8 {
        match self {
            Self::Model => 0,
            Self::Shorter => 1,
            Self::Extract => 2,
        }
    }

    pub(crate) const fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            0 => Some(Self::Model),
            1 => Some(Self::Shorter),
            2 => Some(Self::Extract),
            _ => None,
        }
    }
}

/// A summary to be stored.
#[derive(Clone, Copy, Debug)]
pub struct NewSummary<'a> {
    /// 0 for a leaf, which sums up turns; else one more than that of its sources.
    pub depth: u8,
    /// First turn that it covers.
    pub from: TurnSeq,
    /// Last turn that it covers.
    pub to: TurnSeq,
    /// The summaries that it sums up, in order; none for a leaf.
    pub sources: &'a [SummaryId],
    /// Its words.
    pub text: &'a str,
    /// Its length in tokens of the model.
    pub tokens: u32,
    /// The length of what it sums up, likewise: more than its own.
    pub source_tokens: u32,
    /// The way in which it was made.
    pub method: SummaryMethod,
    /// The model that made it, or counted it.
    pub model_fingerprint: &'a [u8; 32],
}

/// A summary.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Summary {
    /// Its number in its session.
    pub id: SummaryId,
    /// 0 for a leaf, which sums up turns; else one more than that of its sources.
    pub depth: u8,
    /// First turn that it covers.
    pub from: TurnSeq,
    /// Last turn that it covers.
    pub to: TurnSeq,
    /// The summaries that it sums up, in order; none for a leaf.
    pub sources: Vec<SummaryId>,
    /// The summary that it is a source of.
    pub parent: Option<SummaryId>,
    /// Its words.
    pub text: String,
    /// Its length in tokens of the model.
    pub tokens: u32,
    /// The length of what it sums up, likewise.
    pub source_tokens: u32,
    /// The way in which it was made.
    pub method: SummaryMethod,
    /// The model that made it, or counted it.
    pub model_fingerprint: [u8; 32],
    /// Wall clock when it was stored, in milliseconds since 1970.
    pub made_ms: i64,
    /// The trust that this clock deserved.
    pub clock: Confidence,
    /// Wall clock of the earliest turn that it covers, likewise; 0 where no clock could be trusted.
    pub earliest_ms: i64,
    /// Wall clock of the latest turn or reply that it covers, likewise.
    pub latest_ms: i64,
}

/// States that the engine keeps of a session beside what was said, in bytes of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum StateKind {
    /// The part of the prompt that stays the same between compactions.
    Context,
    /// The inference that waits for the next turn.
    Carry,
    /// The numbers that decide which companions run, and how far they came: no word of what was
    /// said. A forget leaves it.
    Gate,
    /// Idle work that was begun.
    Work,
}

impl StateKind {
    pub(crate) const ALL: [Self; 4] = [Self::Context, Self::Carry, Self::Gate, Self::Work];

    /// The name on the wire: `context`, `carry`, `gate` or `work`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Context => "context",
            Self::Carry => "carry",
            Self::Gate => "gate",
            Self::Work => "work",
        }
    }

    pub(crate) const fn to_byte(self) -> u8 {
        match self {
            Self::Context => 0,
            Self::Carry => 1,
            Self::Gate => 2,
            Self::Work => 3,
        }
    }

    pub(crate) fn from_byte(byte: u8) -> Option<Self> {
        Self::ALL.get(usize::from(byte)).copied()
    }
}
