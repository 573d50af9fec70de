//! The survey by which summarising goes: what is covered by summaries, and what isn't.

use garret_core::compact::{Limits, Node, Turn};
use garret_core::id::TurnSeq;
use garret_storage::{ErasureEpoch, Summary};

/// The state of a session's summaries and of its prompt.
pub(crate) struct Survey {
    /// The last turn that is covered, with all before it.
    pub(crate) frontier: TurnSeq,
    /// The turns after that, up to the next that is covered.
    pub(crate) turns: Vec<Turn>,
    /// The first turn further on that is covered: what summed up those before it was erased.
    pub(crate) next: Option<TurnSeq>,
    /// Tells whether something was erased since.
    pub(crate) epoch: ErasureEpoch,
    /// Summaries up to the frontier that aren't part of another.
    pub(crate) roots: Vec<Summary>,
    /// The turn with which history begins by the session's record.
    pub(crate) from: TurnSeq,
    /// The oldest turn that the newest prompt showed, and the conversation's length in tokens from there
    /// on.
    pub(crate) live: Option<(TurnSeq, usize)>,
    /// The conversation is longer than the window, which may have been another one.
    pub(crate) too_long: bool,
}

impl Survey {
    /// Returns the first and the last turn that the next summary of turns covers. Turns that can't be
    /// read go with those after them; between summaries, at the end, with those before or by themselves.
    pub(crate) fn next_leaf(&self, limits: &Limits) -> Option<(TurnSeq, TurnSeq)> {
        let first = self.frontier.saturating_add(1);
        let Some(next) = self.next else {
            return Some((first, limits.leaf(&self.turns)?.last()?.seq));
        };
        let end = next.saturating_sub(1);
        let patch = limits.patch(&self.turns).unwrap_or_default();
        let is_all = patch.len() == self.turns.len() && patch.len() < MAX_TURNS;
        let last = patch.last().map(|turn| turn.seq).filter(|_| !is_all).unwrap_or(end);
        (last >= first).then_some((first, last))
    }

    /// Returns the summaries that are to be summed up, if they outgrew their share: two or more.
    pub(crate) fn next_condensed(&self, limits: &Limits) -> Option<&[Summary]> {
        let node = |root: &Summary| Node { depth: root.depth, tokens: root.tokens };
        let nodes: Vec<_> = self.roots.iter().map(node).collect();
        let run = limits.condense(&nodes).and_then(|run| self.roots.get(run));
        run.filter(|run| run.len() > 1)
    }
}

/// Turns that a survey looks at.
pub(crate) const MAX_TURNS: usize = 400;
