//! Backoff: work that failed is left alone for a while, so that it isn't tried again and again.

use serde::{Deserialize, Serialize};

/// A count of failures of one kind of work, such as asking a model, that says when it may be tried
/// again:
/// after a time that doubles with every failure in a row, and after half an hour once there are
/// [`OPEN_AFTER`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Backoff {
    failures: u32,
    /// Time of the newest failure, in milliseconds of any one clock.
    failed_ms: i64,
}

impl Backoff {
    /// Returns whether the work may be tried at `now_ms`. A clock that went back doesn't forbid it.
    pub(crate) fn allows(&self, now_ms: i64) -> bool {
        let since = now_ms.saturating_sub(self.failed_ms);
        self.failures == 0 || since < 0 || since >= self.pause_ms()
    }

    /// Takes note of a failure at `now_ms`.
    pub(crate) fn failed(&mut self, now_ms: i64) {
        self.failures = self.failures.saturating_add(1);
        self.failed_ms = now_ms;
        if self.failures == OPEN_AFTER {
            tracing::warn!("failed {OPEN_AFTER} times in a row; not tried again for a while");
        }
    }

    /// Takes note of a success.
    pub(crate) fn succeeded(&mut self) {
        *self = Self::default();
    }

    fn pause_ms(&self) -> i64 {
        let doublings = self.failures.saturating_sub(1).min(OPEN_AFTER);
        if self.failures >= OPEN_AFTER { OPEN_MS } else { PAUSE_MS << doublings }
    }
}

/// Failures in a row after which the model is left alone for [`OPEN_MS`].
const OPEN_AFTER: u32 = 5;
/// Milliseconds for which the work is left alone then: half an hour.
const OPEN_MS: i64 = 30 * 60 * 1_000;
/// Milliseconds for which it is left alone after the first failure.
const PAUSE_MS: i64 = 30 * 1_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_that_fails_is_asked_ever_more_seldom() {
        let (mut backoff, mut now) = (Backoff::default(), 1_000_000);
        let mut pauses = Vec::new();
        for _ in 0..7 {
            assert!(backoff.allows(now));
            backoff.failed(now);
            let asked = (1..).map(|seconds| seconds * 1_000).find(|ms| backoff.allows(now + ms));
            pauses.push(asked.unwrap() / 1_000);
            now += asked.unwrap();
        }
        assert_eq!(pauses, [30, 60, 120, 240, 1_800, 1_800, 1_800]);
        backoff.succeeded();
        assert!(backoff.allows(now));
    }

    #[test]
    fn a_clock_that_went_back_keeps_nothing_shut() {
        let mut backoff = Backoff::default();
        backoff.failed(1_000_000);
        assert!(!backoff.allows(1_000_000));
        assert!(backoff.allows(999_999));
    }
}
