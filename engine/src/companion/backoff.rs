//! What is remembered of work that failed, so that it isn't tried again and again.

use serde::{Deserialize, Serialize};

/// Counts failures of one kind of work, such as asking a model, and says when it may be tried again:
/// after a time that doubles with every failure in a row, and after half an hour once there are
/// [`OPEN_AFTER`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Breaker {
    failures: u32,
    /// When the newest one was, in milliseconds of any one clock.
    failed_ms: i64,
}

impl Breaker {
    /// Whether it may be tried at `now_ms`. A clock that went back doesn't keep it from that.
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

/// What is kept of compactions between two of them: in the store, as the state `Work` of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Work {
    /// The model that `breaker` is about.
    fingerprint: [u8; 32],
    /// See [`Breaker`].
    pub(crate) breaker: Breaker,
    /// What the newest compaction did, in words.
    pub(crate) last: String,
}

impl Work {
    /// Reads a record; one that can't be read, or is about another model, is as good as none.
    pub(crate) fn read(bytes: Option<Vec<u8>>, fingerprint: [u8; 32]) -> Self {
        let read = |bytes: Vec<u8>| match bytes.split_first() {
            Some((&VERSION, body)) => postcard::from_bytes::<Self>(body).ok(),
            _ => None,
        };
        let mut work = bytes.and_then(read).unwrap_or_default();
        if work.fingerprint != fingerprint {
            work.breaker = Breaker::default();
        }
        Self { fingerprint, ..work }
    }

    /// The record.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        // Serialising numbers and a string into memory can't fail.
        postcard::to_extend(self, vec![VERSION]).unwrap_or_default()
    }
}

/// Version of the record.
const VERSION: u8 = 1;
/// Failures in a row after which the model is left alone for [`OPEN_MS`].
const OPEN_AFTER: u32 = 5;
/// Half an hour.
const OPEN_MS: i64 = 30 * 60 * 1_000;
/// After the first failure.
const PAUSE_MS: i64 = 30 * 1_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_that_fails_is_asked_ever_more_seldom() {
        let (mut breaker, mut now) = (Breaker::default(), 1_000_000);
        let mut pauses = Vec::new();
        for _ in 0..7 {
            assert!(breaker.allows(now));
            breaker.failed(now);
            let asked = (1..).map(|seconds| seconds * 1_000).find(|ms| breaker.allows(now + ms));
            pauses.push(asked.unwrap() / 1_000);
            now += asked.unwrap();
        }
        assert_eq!(pauses, [30, 60, 120, 240, 1_800, 1_800, 1_800]);
        breaker.succeeded();
        assert!(breaker.allows(now));
    }

    #[test]
    fn a_clock_that_went_back_keeps_nothing_shut() {
        let mut breaker = Breaker::default();
        breaker.failed(1_000_000);
        assert!(!breaker.allows(1_000_000));
        assert!(breaker.allows(999_999));
    }

    #[test]
    fn another_model_begins_anew() {
        let mut work = Work::read(None, [1; 32]);
        work.breaker.failed(1_000);
        work.last = "summed up".into();
        let bytes = work.to_bytes();
        assert_eq!(Work::read(Some(bytes.clone()), [1; 32]), work);
        let other = Work::read(Some(bytes.clone()), [2; 32]);
        assert!(other.breaker.allows(1_000) && other.last == "summed up");
        for end in 0..bytes.len() {
            assert!(Work::read(Some(bytes[..end].to_vec()), [1; 32]).last.is_empty());
        }
    }
}
