//! Forgetting for good: words, what was made of them, and their bytes.

use garret_core::id::{SessionId, TurnSeq};
use garret_core::time::Confidence;

use crate::facts::FactId;
use crate::files::VacuumReport;
use crate::ground::error::WriteError;

pub(crate) mod apply;
pub(crate) mod ledger;
pub(crate) mod needle;
pub(crate) mod plan;
pub(crate) mod verify;
pub(crate) mod walk;

pub(crate) use crate::erase::apply::{Removal, all_turns, apply, turns};
pub use crate::erase::verify::Trace;

/// A choice of what is to be erased: all of it together.
///
/// ```
/// use garret_storage::Selection;
/// let selection = Selection { pattern: Some("Nebukadnezar"), ..Selection::default() };
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Selection<'a> {
    /// These facts.
    pub facts: &'a [FactId],
    /// These turns: what was said, by whom, the reply and the receipt.
    pub turns: &'a [(SessionId, TurnSeq)],
    /// These sessions, and the facts that were said in them.
    pub sessions: &'a [SessionId],
    /// Every turn, fact and title that has these words in it, what speakers named so said, and
    /// what is told about entities named so. They are found in any case and Unicode form of their
    /// letters, within words, too.
    pub pattern: Option<&'a str>,
}

/// A report of what was erased, or would be.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct ErasureReport {
    /// Everything that goes, by name.
    pub items: Vec<ErasedItem>,
    /// Sessions whose names have the pattern in them. They keep those: rename them.
    pub named: Vec<String>,
    /// Its number in the ledger; `None` after a dry run, and where there was nothing to erase.
    pub erasure: Option<u64>,
    /// Lengths of the files before and after the bytes were erased; `None` where that wasn't done.
    pub files: Option<VacuumReport>,
    /// Why the bytes could not be erased now. Nobody can read them by way of the store any more;
    /// they are erased by one of the next writes that can.
    pub unfinished: Option<WriteError>,
}

/// One thing that is forgotten.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ErasedItem {
    /// Its kind.
    pub kind: ErasedKind,
    /// `SESSION/TURN/user`, `SESSION/TURN/assistant`, `SESSION/TURN` for a receipt and a speaker,
    /// `SESSION` for a title and a session, `f12` for a fact, `e12` for an entity, `SESSION/s12` for a
    /// summary, `SESSION/KIND` for a state, `SESSION/TURN/trace` for a trace.
    pub id: String,
    /// Bytes of its record; of a title those of its text.
    pub bytes: u64,
}

/// Kinds of what can be forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum ErasedKind {
    /// A session, by name.
    Session,
    /// The title of a session that stays.
    Title,
    /// The user's words in a turn.
    Turn,
    /// The reply to a turn.
    Reply,
    /// The receipt of a turn.
    Receipt,
    /// The one who spoke, in an imported conversation.
    Speaker,
    /// A fact.
    Fact,
    /// A person or thing that there were facts about.
    Entity,
    /// A summary of turns.
    Summary,
    /// A state that the engine kept of a session.
    State,
    /// The prompt that the model saw in a turn.
    Trace,
}

impl ErasedKind {
    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::Title => "title",
            Self::Turn => "turn",
            Self::Reply => "reply",
            Self::Receipt => "receipt",
            Self::Speaker => "speaker",
            Self::Fact => "fact",
            Self::Entity => "entity",
            Self::Summary => "summary",
            Self::State => "state",
            Self::Trace => "trace",
        }
    }
}

/// A line of the ledger: when how much was forgotten. What it was isn't there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Erasure {
    /// From 1, in the order of the erasures.
    pub number: u64,
    /// Wall clock, in milliseconds since 1970.
    pub at_ms: i64,
    /// The trust that this clock deserved.
    pub clock: Confidence,
    /// Sessions that went as a whole.
    pub sessions: u64,
    /// Turns, those of such sessions included.
    pub turns: u64,
    /// Replies.
    pub replies: u64,
    /// Receipts.
    pub receipts: u64,
    /// Titles of sessions that stayed.
    pub titles: u64,
    /// Facts.
    pub facts: u64,
    /// Entities.
    pub entities: u64,
    /// Links.
    pub links: u64,
    /// Bytes of all of it.
    pub bytes: u64,
    /// Summaries, those of such sessions included.
    pub summaries: u64,
    /// States of sessions, all there were that may have words.
    pub states: u64,
    /// Traces, all there were.
    pub traces: u64,
}
