//! Presence of facts: what was of no use for long fades, and what is recalled stays.
//!
//! ```
//! use garret_core::decay::{Age, Stage};
//!
//! let new = Age::default();
//! assert_eq!(new.stage(), Stage::Fresh);
//! let old = Age { turns: Some(500), days: 400, ..new };
//! assert_eq!(old.stage(), Stage::Dormant);
//! assert_eq!(Age { pinned: true, ..old }.stage(), Stage::Fresh);
//! assert_eq!(Age { uses: 20, ..old }.stage(), Stage::Cold);
//! ```
//!
//! | stage | turns since the last use | days |
//! |---|---|---|
//! | warm | 1 | or 7 |
//! | cold | 12 | or 30 |
//! | dormant | 30 | and 90 |
//!
//! A dormant fact isn't recalled in a chat; it is never deleted. So both clocks must agree on it: a
//! long evening makes nothing dormant, nor does a holiday. Each doubling of the number of uses
//! adds once the first length to every one of these.
//!
//! Limits: the caller reads the clock; days are whole.

use core::num::NonZeroU64;

/// Time since a fact was of use, as far as it is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Age {
    /// Turns since it was last of use, or since it was said; `None` where that isn't known, and
    /// then the days decide.
    pub turns: Option<u64>,
    /// Days since then.
    pub days: u64,
    /// Number of times that the fact was of use.
    pub uses: u64,
    /// Set for a fact that is always shown.
    pub pinned: bool,
}

/// Presence of a fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    /// A fact that was just said or used, or is pinned.
    Fresh,
    /// A fact of this conversation.
    Warm,
    /// A fact of an earlier conversation.
    Cold,
    /// A fact that isn't recalled in a chat any more.
    Dormant,
}

impl Stage {
    /// Returns the name on the wire: `fresh`, `warm`, `cold` or, for a dormant fact, `forgotten`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Fresh => "fresh",
            Self::Warm => "warm",
            Self::Cold => "cold",
            Self::Dormant => "forgotten",
        }
    }

    /// Returns the factor of a fact's recency in the ranking: 1 for a fresh one, 0 for a dormant
    /// one.
    pub const fn weight(self) -> f32 {
        match self {
            Self::Fresh => 1.0,
            Self::Warm => 0.9,
            Self::Cold => 0.6,
            Self::Dormant => 0.0,
        }
    }
}

impl Age {
    /// Returns the age of a fact last of use at `last_ms`, at the moment `now_ms`; both in
    /// milliseconds since 1970. A clock that was set back makes nothing older.
    pub const fn since(last_ms: i64, now_ms: i64) -> Self {
        let gap = now_ms.saturating_sub(last_ms);
        let days = if gap > 0 { gap.unsigned_abs() / DAY_MS } else { 0 };
        Self { turns: None, days, uses: 0, pinned: false }
    }

    /// Returns how present a fact of this age is.
    pub fn stage(self) -> Stage {
        if self.pinned {
            return Stage::Fresh;
        }
        // 1 for a fact that was never of use, 2 from the first use on, 3 from the third...
        let slow = self.uses.saturating_add(1).checked_ilog2().unwrap_or(0);
        let slow = NonZeroU64::MIN.saturating_add(u64::from(slow.min(SLOWEST)));
        let turns = self.turns.map(|turns| turns / slow);
        let days = self.days / slow;
        let over = |limit: Limit| turns.is_some_and(|turns| turns >= limit.turns);
        let long_ago = days >= DORMANT.days && turns.is_none_or(|turns| turns >= DORMANT.turns);
        match () {
            () if long_ago => Stage::Dormant,
            () if over(COLD) || days >= COLD.days => Stage::Cold,
            () if over(WARM) || days >= WARM.days => Stage::Warm,
            () => Stage::Fresh,
        }
    }
}

#[derive(Clone, Copy)]
struct Limit {
    turns: u64,
    days: u64,
}

const WARM: Limit = Limit { turns: 1, days: 7 };
const COLD: Limit = Limit { turns: 12, days: 30 };
const DORMANT: Limit = Limit { turns: 30, days: 90 };
/// Most doublings that count.
const SLOWEST: u32 = 9;
const DAY_MS: u64 = 86_400_000;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const fn age(turns: u64, days: u64) -> Age {
        Age { turns: Some(turns), days, uses: 0, pinned: false }
    }

    #[test]
    fn each_stage_begins_where_the_table_says() {
        for (turns, days, stage) in [
            (0, 6, Stage::Fresh),
            (1, 0, Stage::Warm),
            (0, 7, Stage::Warm),
            (11, 29, Stage::Warm),
            (12, 0, Stage::Cold),
            (0, 30, Stage::Cold),
            (29, 90, Stage::Cold),
            (30, 89, Stage::Cold),
            (30, 90, Stage::Dormant),
        ] {
            assert_eq!(age(turns, days).stage(), stage, "{turns} turns, {days} days");
        }
        assert_eq!(Age { turns: None, ..age(0, 90) }.stage(), Stage::Dormant);
        assert_eq!(Age { turns: None, ..age(0, 89) }.stage(), Stage::Cold);
    }

    #[test]
    fn recall_slows_it() {
        let old = age(59, 179);
        assert_eq!(old.stage(), Stage::Dormant);
        assert_eq!(Age { uses: 1, ..old }.stage(), Stage::Cold);
        assert_eq!(Age { uses: 1, ..age(60, 180) }.stage(), Stage::Dormant);
        assert_eq!(Age { uses: 3, ..age(60, 180) }.stage(), Stage::Cold);
    }

    #[test]
    fn a_clock_that_was_set_back_makes_nothing_older() {
        assert_eq!(Age::since(5, i64::MIN).days, 0);
        assert_eq!(Age::since(i64::MIN, i64::MAX).stage(), Stage::Dormant);
        assert_eq!(Age::since(0, 86_400_000 * 3 - 1).days, 2);
    }

    proptest! {
        #[test]
        fn time_never_makes_it_fresher_and_use_never_staler(
            turns in any::<Option<u64>>(), days in any::<u64>(), uses in any::<u64>(),
            more in 0_u64..1_000,
        ) {
            let age = Age { turns, days, uses, pinned: false };
            let later = Age {
                turns: turns.map(|turns| turns.saturating_add(more)),
                days: days.saturating_add(more),
                ..age
            };
            prop_assert!(later.stage() >= age.stage());
            let used = Age { uses: uses.saturating_add(more), ..age };
            prop_assert!(used.stage() <= age.stage());
            prop_assert_eq!(Age { pinned: true, ..age }.stage(), Stage::Fresh);
        }
    }
}
