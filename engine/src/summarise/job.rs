//! The summary that is to be made, and the turns or summaries that it covers.

use garret_core::id::TurnSeq;
use garret_storage::SummaryId;

use crate::companion::transcript::Line;

/// A summary to be made.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    /// 0 for a summary of turns, 1 for one of such summaries, and so on.
    pub(crate) depth: u8,
    /// The first turn that it covers.
    pub(crate) from: TurnSeq,
    /// The last turn that it covers.
    pub(crate) to: TurnSeq,
    /// The summaries that it sums up; none for a summary of turns.
    pub(crate) sources: Vec<SummaryId>,
    /// The messages, or the texts of the summaries, in order.
    pub(crate) lines: Vec<Line>,
    /// Tokens of all lines.
    pub(crate) source_tokens: u32,
    /// Time of the earliest line, in milliseconds since 1970, if that is known.
    pub(crate) earliest_ms: Option<i64>,
    /// Time of the latest line, in milliseconds since 1970, if that is known.
    pub(crate) latest_ms: Option<i64>,
}
