//! Ports for time and randomness: core and its users are handed both, so that a run can be
//! replayed.

/// Trust in a reading of the wall clock.
///
/// A Raspberry Pi has no battery-backed clock: after a power cut it may believe that it is 1970 or
/// the day of its last shutdown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Confidence {
    /// Kept by a battery-backed clock or set from a time source since boot.
    Good,
    /// Plausible (not before this program was built), source unknown.
    Unsure,
    /// Impossible: earlier than this program was built.
    Wrong,
}

/// A reading of the wall clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WallTime {
    /// Milliseconds since 1970-01-01T00:00:00Z.
    pub unix_ms: i64,
    /// Trust in the reading.
    pub confidence: Confidence,
}

/// A source of time.
pub trait Clock {
    /// Returns the microseconds since an arbitrary moment; never goes back.
    fn monotonic_us(&self) -> u64;

    /// Returns the time of day.
    fn wall(&self) -> WallTime;
}

/// A source of random bytes.
pub trait Entropy {
    /// Fills `bytes`.
    ///
    /// # Errors
    /// When the source has none to give, which leaves `bytes` unspecified.
    fn fill(&self, bytes: &mut [u8]) -> Result<(), NoEntropy>;
}

/// Failure of the source of randomness.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the system gives no random bytes: check that /dev/urandom can be read")]
pub struct NoEntropy;
