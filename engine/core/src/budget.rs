//! Division of a window between what the model reads and what it may write.
//!
//! A profile gives every block a ceiling in tokens of the loaded model. Ceilings are limits, not
//! allotments: history takes whatever the other blocks leave, and never less than
//! [`Budget::history_floor`]. Profiles for 2K, 8K, 16K and 32K windows are constants whose sums are
//! checked while compiling; windows between are interpolated, larger ones keep the ceilings of 32K
//! and give the rest to history.
//!
//! ```
//! use garret_core::budget::Budget;
//! let budget = Budget::for_window(8_192)?;
//! assert_eq!(budget.prompt_limit(), 8_192 - 1_024 - 512);
//! # Ok::<(), garret_core::budget::BudgetError>(())
//! ```

/// A division of one window, in tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// The whole window.
    pub n_ctx: u32,
    /// Most that instructions may take in the system message.
    pub system: u32,
    /// Most that what is tracked of the conversation may take there: pinned facts, what the user is
    /// like, highlights of earlier turns.
    pub tracked: u32,
    /// Most that the newest message may take; a longer one is shown in part.
    pub message: u32,
    /// Most that what is remembered from elsewhere may take beside the newest message.
    pub memory: u32,
    /// Most that the rest of what only one turn needs may take there: the time, newly pinned facts,
    /// what was worked out beforehand.
    pub volatile: u32,
    /// Tokens that history gets when every other block is at its ceiling.
    pub history_floor: u32,
    /// Kept free for the reply, which therefore has at most this many tokens.
    pub reply_reserve: u32,
    /// Kept free for a companion that forks the conversation.
    pub companion_reserve: u32,
}

impl Budget {
    /// Smallest window there is a budget for, in tokens.
    pub const MIN_WINDOW: u32 = 2_048;

    /// Returns the division of a window of `n_ctx` tokens.
    ///
    /// # Errors
    /// [`BudgetError::WindowTooSmall`] under [`Budget::MIN_WINDOW`].
    pub fn for_window(n_ctx: u32) -> Result<Self, BudgetError> {
        if n_ctx < Self::MIN_WINDOW {
            return Err(BudgetError::WindowTooSmall { n_ctx });
        }
        let (below, above) = neighbours(n_ctx);
        let between = |pick: fn(&Self) -> u32| interpolate(n_ctx, below, above, pick);
        Ok(Self {
            n_ctx,
            system: between(|b| b.system),
            message: between(|b| b.message),
            tracked: between(|b| b.tracked),
            memory: between(|b| b.memory),
            volatile: between(|b| b.volatile),
            history_floor: 0,
            reply_reserve: between(|b| b.reply_reserve),
            companion_reserve: between(|b| b.companion_reserve),
        }
        .with_rest_to_history())
    }

    /// Returns the budget with `tokens` kept for the reply; what that takes or frees is history's.
    ///
    /// # Errors
    /// [`BudgetError::ReplyTooLong`] when history would lose its whole floor, and
    /// [`BudgetError::NoReply`] for 0.
    pub fn with_reply_reserve(self, tokens: u32) -> Result<Self, BudgetError> {
        let most = self.reply_reserve.saturating_add(self.history_floor);
        if tokens == 0 {
            return Err(BudgetError::NoReply);
        }
        if tokens > most {
            return Err(BudgetError::ReplyTooLong { asked: tokens, most, n_ctx: self.n_ctx });
        }
        Ok(Self { reply_reserve: tokens, ..self }.with_rest_to_history())
    }

    /// Returns the budget with at most `tokens` of what is remembered from elsewhere, 0 for none;
    /// what that takes or frees is history's.
    ///
    /// # Errors
    /// [`BudgetError::MemoryTooLong`] when history would lose its whole floor.
    pub fn with_memory(self, tokens: u32) -> Result<Self, BudgetError> {
        let most = self.memory.saturating_add(self.history_floor);
        if tokens > most {
            return Err(BudgetError::MemoryTooLong { asked: tokens, most, n_ctx: self.n_ctx });
        }
        Ok(Self { memory: tokens, ..self }.with_rest_to_history())
    }

    /// Returns the budget of conversations beside which no companion ever runs: what is kept for
    /// those is history's.
    #[must_use]
    pub const fn without_companions(self) -> Self {
        Self { companion_reserve: 0, ..self }.with_rest_to_history()
    }

    /// Returns the most tokens that a prompt may have: the window without the reserves.
    pub const fn prompt_limit(&self) -> u32 {
        self.n_ctx.saturating_sub(self.reply_reserve).saturating_sub(self.companion_reserve)
    }

    /// Returns the most tokens of text, without the template's scaffolding, that the newest message
    /// may have.
    pub const fn message_text(&self) -> u32 {
        self.message.saturating_sub(SCAFFOLD)
    }

    /// Returns the most tokens of text, without the template's scaffolding, that instructions may
    /// have.
    pub const fn system_text(&self) -> u32 {
        self.system.saturating_sub(SCAFFOLD)
    }

    /// Returns the tokens of [`Budget::tracked`] that pinned facts can't take from what the user is
    /// like, if so much is known.
    pub const fn persona_share(&self) -> u32 {
        self.tracked / 6
    }

    /// Returns the tokens of [`Budget::tracked`] that pinned facts can't take from summaries, if
    /// there are as many. Summaries that have more are summed up in turn.
    pub const fn highlights_share(&self) -> u32 {
        self.tracked / 3
    }

    /// Returns the tokens that one summary should have.
    pub fn summary(&self) -> u32 {
        (self.system / 8).clamp(SHORTEST_SUMMARY, LONGEST_SUMMARY)
    }

    /// Returns the most tokens that one summary may have: three times [`Budget::summary`], but
    /// never more than [`Budget::tracked`] has room for.
    pub fn longest_summary(&self) -> u32 {
        self.summary().saturating_mul(3).min(self.tracked.saturating_sub(SCAFFOLD))
    }

    /// Returns the tokens that history has as a rule: those that instructions and memory leave at
    /// their ceilings, the other blocks being far below theirs.
    pub const fn usual_history(&self) -> u32 {
        self.prompt_limit().saturating_sub(self.system).saturating_sub(self.memory)
    }

    /// Returns the most tokens that a prompt and its reply may have together, lookups included.
    pub const fn turn_limit(&self) -> u32 {
        self.n_ctx.saturating_sub(self.companion_reserve)
    }

    /// Returns the most tokens that the result of one lookup may have.
    pub const fn tool_result(&self) -> u32 {
        self.n_ctx / 8
    }

    /// Returns the tokens that a companion has in all, its answer included, beside a conversation
    /// of so many tokens, which it doesn't share.
    pub fn companion_room(&self, conversation: usize) -> usize {
        usize::try_from(self.n_ctx).unwrap_or(usize::MAX).saturating_sub(conversation)
    }

    const fn with_rest_to_history(self) -> Self {
        Self { history_floor: self.prompt_limit().saturating_sub(self.beside_history()), ..self }
    }

    /// Returns the tokens of the other blocks of the prompt when each is at its ceiling.
    const fn beside_history(&self) -> u32 {
        self.system
            .saturating_add(self.tracked)
            .saturating_add(self.message)
            .saturating_add(self.memory)
            .saturating_add(self.volatile)
    }

    const fn sum(&self) -> u32 {
        self.beside_history()
            .saturating_add(self.history_floor)
            .saturating_add(self.reply_reserve)
            .saturating_add(self.companion_reserve)
    }
}

/// Reason why there is no budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BudgetError {
    /// The window is smaller than [`Budget::MIN_WINDOW`].
    #[error("a window of {n_ctx} tokens is too small: Garret needs at least 2048 (--window)")]
    WindowTooSmall {
        /// Tokens asked for.
        n_ctx: u32,
    },
    /// The reply would leave nothing for history.
    #[error(
        "a reply of {asked} tokens doesn't fit into a window of {n_ctx}: \
         ask for at most {most} (--max-tokens) or a larger window (--window)"
    )]
    ReplyTooLong {
        /// Tokens asked for.
        asked: u32,
        /// Most that can be had.
        most: u32,
        /// The window.
        n_ctx: u32,
    },
    /// The share of what is remembered from elsewhere would leave nothing for history.
    #[error(
        "a memory of {asked} tokens doesn't fit into a window of {n_ctx}: \
         ask for at most {most} (--memory-tokens) or a larger window (--window)"
    )]
    MemoryTooLong {
        /// Tokens asked for.
        asked: u32,
        /// Most that can be had.
        most: u32,
        /// The window.
        n_ctx: u32,
    },
    /// A reply of no tokens.
    #[error("a reply needs at least 1 token (--max-tokens)")]
    NoReply,
}

/// Returns the two profiles between which `n_ctx` lies; twice the same one beyond the last.
fn neighbours(n_ctx: u32) -> (&'static Budget, &'static Budget) {
    let [k2, k8, k16, k32] = &PROFILES;
    match n_ctx {
        _ if n_ctx < k8.n_ctx => (k2, k8),
        _ if n_ctx < k16.n_ctx => (k8, k16),
        _ if n_ctx < k32.n_ctx => (k16, k32),
        _ => (k32, k32),
    }
}

/// Interpolates between the two profiles, rounded down, so that a sum of parts never exceeds the
/// window.
fn interpolate(n_ctx: u32, below: &Budget, above: &Budget, pick: fn(&Budget) -> u32) -> u32 {
    let low = pick(below);
    let high = pick(above);
    let width = above.n_ctx.saturating_sub(below.n_ctx);
    let into = n_ctx.saturating_sub(below.n_ctx).min(width);
    let rise = u64::from(high.saturating_sub(low)).saturating_mul(u64::from(into));
    let rise = rise.checked_div(u64::from(width)).unwrap_or(0);
    low.saturating_add(u32::try_from(rise).unwrap_or(0))
}

/// Room left within a block's ceiling for the template's scaffolding around the text.
const SCAFFOLD: u32 = 64;

/// Fewest tokens that a summary should have, in the smallest window.
const SHORTEST_SUMMARY: u32 = 48;
/// Most tokens that a summary should have, in the largest window.
const LONGEST_SUMMARY: u32 = 320;

/// Windows with a profile of their own, ascending.
const PROFILES: [Budget; 4] = [
    Budget {
        n_ctx: 2_048,
        system: 320,
        tracked: 128,
        message: 384,
        memory: 192,
        volatile: 64,
        history_floor: 320,
        reply_reserve: 512,
        companion_reserve: 128,
    },
    Budget {
        n_ctx: 8_192,
        system: 1_024,
        tracked: 768,
        message: 2_048,
        memory: 1_024,
        volatile: 256,
        history_floor: 1_536,
        reply_reserve: 1_024,
        companion_reserve: 512,
    },
    Budget {
        n_ctx: 16_384,
        system: 1_536,
        tracked: 1_536,
        message: 4_608,
        memory: 1_536,
        volatile: 512,
        history_floor: 3_584,
        reply_reserve: 2_048,
        companion_reserve: 1_024,
    },
    Budget {
        n_ctx: 32_768,
        system: 2_560,
        tracked: 3_072,
        message: 9_216,
        memory: 2_048,
        volatile: 768,
        history_floor: 8_960,
        reply_reserve: 4_096,
        companion_reserve: 2_048,
    },
];

const _: () = {
    let [k2, k8, k16, k32] = &PROFILES;
    assert!(k2.n_ctx == Budget::MIN_WINDOW && k2.sum() == k2.n_ctx && k2.system > SCAFFOLD);
    assert!(k8.n_ctx > k2.n_ctx && k8.sum() == k8.n_ctx);
    assert!(k16.n_ctx > k8.n_ctx && k16.sum() == k16.n_ctx);
    assert!(k32.n_ctx > k16.n_ctx && k32.sum() == k32.n_ctx);
    let shares = k2.persona_share().saturating_add(k2.highlights_share());
    assert!(k2.persona_share() > 0 && shares < k2.tracked);
};

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_profile_is_what_its_window_gets() {
        for profile in PROFILES {
            assert_eq!(Budget::for_window(profile.n_ctx), Ok(profile));
        }
    }

    #[test]
    fn a_window_under_2k_is_refused() {
        let refused = Budget::for_window(2_047);
        assert_eq!(refused, Err(BudgetError::WindowTooSmall { n_ctx: 2_047 }));
    }

    proptest! {
        #[test]
        fn parts_fill_the_window_exactly(n_ctx in 2_048_u32..=1_000_000) {
            let budget = Budget::for_window(n_ctx).unwrap();
            prop_assert_eq!(budget.sum(), n_ctx);
            prop_assert!(budget.history_floor * 100 >= n_ctx * 15);
        }

        #[test]
        fn a_larger_window_shrinks_no_part(n_ctx in 2_048_u32..200_000, more in 1_u32..5_000) {
            let (small, large) =
                (Budget::for_window(n_ctx).unwrap(), Budget::for_window(n_ctx + more).unwrap());
            prop_assert!(small.system <= large.system && small.message <= large.message);
            prop_assert!(small.reply_reserve <= large.reply_reserve);
            prop_assert!(small.memory <= large.memory && small.volatile <= large.volatile);
            prop_assert!(small.tracked <= large.tracked);
        }

        #[test]
        fn a_share_of_memory_is_met_or_refused(
            n_ctx in 2_048_u32..100_000,
            memory in 0_u32..100_000,
        ) {
            let budget = Budget::for_window(n_ctx).unwrap();
            match budget.with_memory(memory) {
                Ok(changed) => {
                    prop_assert_eq!(changed.memory, memory);
                    prop_assert_eq!(changed.sum(), n_ctx);
                }
                Err(_) => prop_assert!(memory > budget.memory + budget.history_floor),
            }
        }

        #[test]
        fn a_reply_reserve_is_met_or_refused(n_ctx in 2_048_u32..100_000, reply in 0_u32..100_000) {
            let budget = Budget::for_window(n_ctx).unwrap();
            match budget.with_reply_reserve(reply) {
                Ok(changed) => {
                    prop_assert_eq!(changed.reply_reserve, reply);
                    prop_assert_eq!(changed.sum(), n_ctx);
                }
                Err(BudgetError::NoReply) => prop_assert_eq!(reply, 0),
                Err(_) => prop_assert!(reply > budget.reply_reserve + budget.history_floor),
            }
        }
    }
}
