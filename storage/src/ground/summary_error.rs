//! Why a summary is not taken.

use garret_core::id::TurnSeq;

use crate::ground::summary_id::SummaryId;

/// Why a compaction was refused; nothing of it was written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SummaryError {
    /// Its text has no characters but white space.
    #[error("a summary of turns {from} to {to} has no words: give it a text")]
    Blank {
        /// First turn of its run.
        from: TurnSeq,
        /// Last turn of its run.
        to: TurnSeq,
    },
    /// It isn't shorter than what it sums up.
    #[error(
        "a summary has {tokens} tokens for {source_tokens} that it sums up: make it shorter than \
         those"
    )]
    NotShorter {
        /// Its length in tokens.
        tokens: u32,
        /// Tokens of what it sums up.
        source_tokens: u32,
    },
    /// The session doesn't have these turns.
    #[error("there are no turns {from} to {to}: the session has turns 1 to {turns}")]
    UnknownTurns {
        /// First turn of its run.
        from: TurnSeq,
        /// Last turn of its run.
        to: TurnSeq,
        /// Turns of the session.
        turns: TurnSeq,
    },
    /// Another leaf covers one of its turns.
    #[error("turn {turn} is covered by {by} already: sum up turns that no summary covers")]
    Covered {
        /// The turn.
        turn: TurnSeq,
        /// The leaf that covers it.
        by: SummaryId,
    },
    /// Its last turn waits for a reply.
    #[error("turn {turn} has no reply yet: sum it up after its reply or after the next turn")]
    Unanswered {
        /// The turn.
        turn: TurnSeq,
    },
    /// All of its turns were forgotten.
    #[error("turns {from} to {to} were forgotten: there is nothing to sum up")]
    Forgotten {
        /// First turn of its run.
        from: TurnSeq,
        /// Last turn of its run.
        to: TurnSeq,
    },
    /// There is no such summary in the session.
    #[error("the session has no summary {id}: list its summaries to see those that exist")]
    UnknownSummary {
        /// The id asked for.
        id: SummaryId,
    },
    /// A condensed summary of fewer than two.
    #[error("a condensed summary needs two sources or more: give it as many, or none for a leaf")]
    TooFew,
    /// A source has a parent.
    #[error("{id} is a source of {parent} already: condense summaries without a parent")]
    HasParent {
        /// The source.
        id: SummaryId,
        /// Its parent.
        parent: SummaryId,
    },
    /// Two sources don't follow each other.
    #[error("{after} doesn't start where {before} ends: condense summaries that follow each other")]
    Gap {
        /// A source.
        before: SummaryId,
        /// The next one.
        after: SummaryId,
    },
    /// What it says of itself isn't what its sources say.
    #[error(
        "a summary says depth {depth} and turns {from} to {to}, but what it is made of comes to \
         depth {real_depth} and turns {real_from} to {real_to}"
    )]
    Mismatch {
        /// Its depth, as given.
        depth: u8,
        /// First turn, as given.
        from: TurnSeq,
        /// Last turn, as given.
        to: TurnSeq,
        /// Its depth by its sources.
        real_depth: u16,
        /// First turn by its sources.
        real_from: TurnSeq,
        /// Last turn by its sources.
        real_to: TurnSeq,
    },
    /// Two sources have different depths.
    #[error("{id} has depth {depth}, the source before it {expected}: condense those of one depth")]
    OtherDepth {
        /// The source.
        id: SummaryId,
        /// Its depth.
        depth: u8,
        /// The depth of the first source.
        expected: u8,
    },
}
