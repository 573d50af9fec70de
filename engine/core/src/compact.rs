//! Plan of a compaction: when a conversation is due, and which turns and summaries are taken.
//!
//! A session's turns are the **covered** ones, up to the frontier, under summaries; the **tail**,
//! the newest whole turns; and those between. A compaction sums up what lies between, in chunks
//! from the frontier on; when the summaries outgrow their share of the prompt, the oldest
//! neighbours of one depth are summed up in turn.
//!
//! ```
//! use garret_core::budget::Budget;
//! use garret_core::compact::{Cause, Limits, Pressure, Turn};
//!
//! let limits = Limits::of(&Budget::for_window(8_192)?);
//! let turns: Vec<_> = (1..=40).map(|seq| Turn { seq, tokens: 100 }).collect();
//! let pressure = Pressure { fill_percent: 85, full_at_percent: 80, ..Pressure::default() };
//! assert_eq!(limits.due(&turns, &pressure), Some(Cause::Full));
//! let leaf = limits.leaf(&turns).expect("there is more than a tail");
//! assert_eq!(leaf.first().map(|turn| turn.seq), Some(1));
//! # Ok::<(), garret_core::budget::BudgetError>(())
//! ```
//!
//! Limits: everything here goes by token counts that the caller brings; they may be estimates.

use crate::budget::Budget;
use crate::id::TurnSeq;

/// A turn that no summary covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// Number of the turn in its session.
    pub seq: TurnSeq,
    /// Tokens that it takes in a prompt.
    pub tokens: u32,
}

/// A summary that is part of no other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    /// Depth: 0 for a summary of turns, else one more than that of the summaries under it.
    pub depth: u8,
    /// Length of the summary in tokens.
    pub tokens: u32,
}

/// Reasons for a compaction, as far as they are there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pressure {
    /// Fill of the next prompt, in percent of what a prompt may have.
    pub fill_percent: u32,
    /// Fill, in percent, from which on a prompt is too full; 0 for never.
    pub full_at_percent: u32,
    /// Set when history gave way to what had no room: turns are in no prompt and under no summary.
    pub gap: bool,
    /// Set when the model asked for a compaction.
    pub asked: bool,
    /// Set when the conversation turned to something else.
    pub topic_changed: bool,
    /// Set when nobody waits, so that a compaction costs nothing but energy.
    pub idle: bool,
    /// Set when the turns lie between summaries: what summed them up was removed.
    pub hole: bool,
}

/// Cause of a compaction that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cause {
    /// The prompt is too full, or turns fell out of it.
    Full,
    /// The model asked for it.
    Asked,
    /// The conversation turned to something else.
    TopicChange,
    /// Nobody waits and there is enough to be summed up.
    Idle,
}

impl Cause {
    /// Returns the name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Asked => "asked",
            Self::TopicChange => "topic change",
            Self::Idle => "idle",
        }
    }
}

/// Sizes of a compaction, in tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Most tokens that stay as they are, the newest turn aside: a quarter of what history may
    /// take.
    pub tail: u32,
    /// Most tokens of turns that one summary sums up.
    pub chunk: u32,
    /// Tokens that a summary should have.
    pub summary: u32,
    /// Tokens that all summaries may have before some are summed up in turn.
    pub highlights: u32,
    /// Fewest tokens that are worth a compaction which changes the prompt for no need.
    pub debt: u32,
}

impl Limits {
    /// Returns the sizes for a window.
    pub fn of(budget: &Budget) -> Self {
        let history = budget.usual_history();
        let half = history / 2;
        Self {
            tail: history / 4,
            chunk: half.min(LONGEST_CHUNK),
            summary: budget.summary(),
            highlights: budget.highlights_share(),
            debt: half,
        }
    }

    /// Returns the cause of a compaction, if one is due. `turns` are those after the frontier,
    /// oldest first.
    pub fn due(&self, turns: &[Turn], pressure: &Pressure) -> Option<Cause> {
        let outside = if pressure.hole { sum(turns) } else { sum(self.outside(turns)) };
        if outside < self.least() && !pressure.hole {
            return None;
        }
        let full =
            pressure.full_at_percent > 0 && pressure.fill_percent >= pressure.full_at_percent;
        let idle = pressure.idle && (pressure.hole || outside >= self.debt);
        let turned = pressure.topic_changed && outside >= self.debt / 2;
        match () {
            () if full || pressure.gap => Some(Cause::Full),
            () if pressure.asked => Some(Cause::Asked),
            () if turned => Some(Cause::TopicChange),
            () if idle => Some(Cause::Idle),
            () => None,
        }
    }

    /// Returns the turns of the next summary: whole ones, the oldest first, none of the tail;
    /// `None` when they aren't worth one. A turn that is longer than a chunk is one by itself.
    pub fn leaf<'t>(&self, turns: &'t [Turn]) -> Option<&'t [Turn]> {
        let outside = self.outside(turns);
        if sum(outside) < self.least() {
            return None;
        }
        self.patch(outside)
    }

    /// Returns the turns of the next summary where all of them lie between summaries: as
    /// [`Limits::leaf`] does, however few there are.
    pub fn patch<'t>(&self, turns: &'t [Turn]) -> Option<&'t [Turn]> {
        let mut left = self.chunk;
        let fitting = turns.iter().take_while(|turn| {
            let fits = turn.tokens <= left;
            left = left.saturating_sub(turn.tokens);
            fits
        });
        turns.get(..fitting.count().max(1))
    }

    /// Returns which of these summaries, in the order of their turns, are to be summed up together:
    /// the oldest neighbours of the least depth that has enough of them. `None` while all of them
    /// keep to their share.
    pub fn condense(&self, nodes: &[Node]) -> Option<core::ops::Range<usize>> {
        let all = nodes.iter().fold(0_u32, |sum, node| node.tokens.saturating_add(sum));
        if all <= self.highlights {
            return None;
        }
        let pressing = all > self.highlights.saturating_mul(2);
        let fanout = if pressing { FANOUT_PRESSED } else { FANOUT };
        let runs = Runs { nodes, start: 0 }.filter(|run| run.len() >= fanout);
        let depth = |run: &core::ops::Range<usize>| nodes.get(run.start).map(|node| node.depth);
        let run = runs.min_by_key(|run| depth(run))?;
        let end = run.end.min(run.start.saturating_add(FANOUT));
        Some(run.start..end)
    }

    /// Returns the part of `turns` that is not in the tail.
    pub fn outside<'t>(&self, turns: &'t [Turn]) -> &'t [Turn] {
        let Some((_newest, older)) = turns.split_last() else { return turns };
        let mut left = self.tail;
        let kept = older.iter().rev().take_while(|turn| {
            let fits = turn.tokens <= left;
            left = left.saturating_sub(turn.tokens);
            fits
        });
        let outside = older.len().saturating_sub(kept.count());
        older.get(..outside).unwrap_or(older)
    }

    /// Returns the number of tokens under which a text can hardly be said shorter.
    const fn least(&self) -> u32 {
        self.summary.saturating_mul(2)
    }
}

fn sum(turns: &[Turn]) -> u32 {
    turns.iter().fold(0, |sum, turn| turn.tokens.saturating_add(sum))
}

/// Runs of neighbours of one depth.
struct Runs<'n> {
    nodes: &'n [Node],
    start: usize,
}

impl Iterator for Runs<'_> {
    type Item = core::ops::Range<usize>;

    fn next(&mut self) -> Option<Self::Item> {
        let start = self.start;
        let rest = self.nodes.get(start..)?;
        let depth = rest.first()?.depth;
        let length = rest.iter().take_while(|node| node.depth == depth).count();
        self.start = start.saturating_add(length);
        Some(start..self.start)
    }
}

/// Most summaries that are summed up together.
const FANOUT: usize = 4;
/// Number of summaries that suffices when all of them take twice their share.
const FANOUT_PRESSED: usize = 2;
/// Most tokens of a chunk; a small model loses track of more.
const LONGEST_CHUNK: u32 = 4_096;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    fn limits() -> Limits {
        Limits { tail: 100, chunk: 200, summary: 20, highlights: 60, debt: 300 }
    }

    fn turns(tokens: &[u32]) -> Vec<Turn> {
        (1..).zip(tokens).map(|(seq, &tokens)| Turn { seq, tokens }).collect()
    }

    fn nodes(depths_and_tokens: &[(u8, u32)]) -> Vec<Node> {
        depths_and_tokens.iter().map(|&(depth, tokens)| Node { depth, tokens }).collect()
    }

    #[test]
    fn nothing_is_due_without_a_reason() {
        let turns = turns(&[50; 7]);
        let quiet = Pressure { fill_percent: 79, full_at_percent: 80, ..Pressure::default() };
        assert_eq!(limits().due(&turns, &quiet), None);
        let full = Pressure { fill_percent: 80, ..quiet };
        assert_eq!(limits().due(&turns, &full), Some(Cause::Full));
        assert_eq!(limits().due(&turns, &Pressure { gap: true, ..quiet }), Some(Cause::Full));
        assert_eq!(limits().due(&turns, &Pressure { asked: true, ..quiet }), Some(Cause::Asked));
        let turned = Pressure { topic_changed: true, ..quiet };
        assert_eq!(limits().due(&turns, &turned), Some(Cause::TopicChange));
        assert_eq!(limits().due(&turns, &Pressure { idle: true, ..quiet }), None);
        let never = Pressure { fill_percent: 100, ..Pressure::default() };
        assert_eq!(limits().due(&turns, &never), None);
    }

    #[test]
    fn idle_time_is_used_when_there_is_enough_to_sum_up() {
        let idle = Pressure { idle: true, full_at_percent: 80, ..Pressure::default() };
        assert_eq!(limits().due(&turns(&[50; 9]), &idle), Some(Cause::Idle));
        assert_eq!(limits().due(&turns(&[50; 8]), &idle), None);
    }

    #[test]
    fn a_prompt_that_is_full_of_its_tail_is_left_alone() {
        let pressure = Pressure {
            fill_percent: 100,
            full_at_percent: 80,
            gap: true,
            asked: true,
            topic_changed: true,
            idle: true,
            hole: false,
        };
        assert_eq!(limits().due(&turns(&[90, 900]), &pressure), None);
        assert_eq!(limits().due(&turns(&[]), &pressure), None);
    }

    #[test]
    fn a_hole_between_summaries_is_patched_however_small_it_is() {
        let hole = Pressure { hole: true, full_at_percent: 80, ..Pressure::default() };
        let turns = turns(&[3, 150, 60]);
        assert_eq!(limits().due(&turns[..1], &hole), None, "somebody may wait");
        let idle = Pressure { idle: true, ..hole };
        assert_eq!(limits().due(&turns[..1], &idle), Some(Cause::Idle));
        assert_eq!(limits().patch(&turns).map(<[Turn]>::len), Some(2), "a chunk at a time");
        assert_eq!(limits().patch(&[]), None);
    }

    #[test]
    fn the_shallowest_neighbours_are_condensed_when_there_are_too_many() {
        let limits = limits();
        assert_eq!(limits.condense(&nodes(&[(0, 15); 4])), None);
        assert_eq!(limits.condense(&nodes(&[(0, 20); 6])), Some(0..4));
        let deep = nodes(&[(1, 20), (1, 20), (1, 20), (1, 20), (0, 20)]);
        assert_eq!(limits.condense(&deep), Some(0..4));
        let mixed = nodes(&[(1, 20), (0, 20), (0, 20), (1, 20)]);
        assert_eq!(limits.condense(&mixed), None, "not four neighbours of one depth");
        let pressed = nodes(&[(1, 40), (0, 40), (0, 40), (1, 40)]);
        assert_eq!(limits.condense(&pressed), Some(1..3));
    }

    /// Two numbers for the share of summaries once let them outgrow their block (80 tokens of a
    /// block of 128 that keeps 42), or be summed up while they had room.
    #[test]
    fn summaries_are_condensed_to_the_share_that_the_prompt_keeps_for_them() {
        for (window, share) in [(2_048, 42), (8_192, 256), (16_384, 512), (32_768, 1_024)] {
            let budget = Budget::for_window(window).unwrap();
            let limits = Limits::of(&budget);
            assert_eq!((limits.highlights, budget.highlights_share()), (share, share));
            let mut roots = nodes(&[(0, budget.longest_summary()); 64]);
            while let Some(run) = limits.condense(&roots) {
                let depth = roots[run.start].depth + 1;
                roots.splice(run, nodes(&[(depth, limits.summary)]));
            }
            let tokens: u32 = roots.iter().map(|root| root.tokens).sum();
            assert!(tokens <= budget.tracked, "{tokens} of {} at {window}", budget.tracked);
        }
    }

    proptest! {
        #[test]
        fn a_leaf_begins_at_the_frontier_and_keeps_out_of_the_tail(
            tokens in prop::collection::vec(0_u32..300, 0..60),
        ) {
            let limits = limits();
            let turns = turns(&tokens);
            let outside = limits.outside(&turns);
            let tail = &turns[outside.len()..];
            prop_assert!(turns.is_empty() || !tail.is_empty());
            let older = sum(&tail[..tail.len().saturating_sub(1)]);
            prop_assert!(older <= limits.tail);
            if let Some(leaf) = limits.leaf(&turns) {
                prop_assert_eq!(leaf, &outside[..leaf.len()]);
                prop_assert!(!leaf.is_empty());
                prop_assert!(leaf.len() == 1 || sum(leaf) <= limits.chunk);
            }
        }

        #[test]
        fn compacting_ends(tokens in prop::collection::vec(0_u32..300, 0..200)) {
            let limits = limits();
            let mut left = turns(&tokens);
            let mut roots = Vec::new();
            let mut steps = 0;
            while let Some(leaf) = limits.leaf(&left).map(<[Turn]>::len) {
                left.drain(..leaf);
                roots.push(Node { depth: 0, tokens: limits.summary });
                steps += 1;
            }
            while let Some(run) = limits.condense(&roots) {
                prop_assert!(run.len() >= 2 && run.len() <= FANOUT);
                let depth = roots[run.start].depth;
                prop_assert!(roots[run.clone()].iter().all(|node| node.depth == depth));
                roots.splice(run, [Node { depth: depth + 1, tokens: limits.summary }]);
                steps += 1;
            }
            prop_assert!(steps <= 2 * tokens.len());
            let rest = limits.outside(&left);
            prop_assert!(sum(rest) < 2 * limits.summary);
        }

        #[test]
        fn sizes_suit_every_window(n_ctx in 2_048_u32..200_000) {
            let budget = Budget::for_window(n_ctx).unwrap();
            let limits = Limits::of(&budget);
            prop_assert!(limits.summary <= budget.longest_summary());
            prop_assert!(limits.summary * 3 < limits.chunk);
            prop_assert!(limits.tail + limits.chunk <= budget.prompt_limit());
            prop_assert!(limits.tail <= budget.history_floor, "it fits beside full blocks");
            prop_assert!(limits.debt >= 2 * limits.summary);
        }
    }
}
