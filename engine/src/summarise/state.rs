//! The record of a session's newest summarising.

use serde::{Deserialize, Serialize};

use crate::companion::backoff::Backoff;
use crate::state;

/// The state `Work` of a session: how the newest summarising went, and whether the model that sums up
/// is left alone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SummariserState {
    /// SHA-256 of the file of the model that `backoff` is about.
    fingerprint: [u8; 32],
    /// Failures of that model in a row.
    pub(crate) backoff: Backoff,
    /// The newest summarising, in words.
    pub(crate) last: String,
}

impl state::Record for SummariserState {
    const VERSION: u8 = 1;
}

impl SummariserState {
    /// Reads a record for the model of this `fingerprint`. One that can't be read is as good as none;
    /// the failures of another model don't count.
    pub(crate) fn read(bytes: Option<Vec<u8>>, fingerprint: [u8; 32]) -> Self {
        let mut read: Self = bytes.and_then(|it| state::decode(&it)).unwrap_or_default();
        if read.fingerprint != fingerprint {
            read.backoff = Backoff::default();
        }
        Self { fingerprint, ..read }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_model_begins_anew() {
        let mut kept = SummariserState::read(None, [1; 32]);
        kept.backoff.failed(1_000);
        kept.last = "summed up".into();
        let bytes = state::encode(&kept);
        assert_eq!(SummariserState::read(Some(bytes.clone()), [1; 32]), kept);
        let other = SummariserState::read(Some(bytes), [2; 32]);
        assert!(other.backoff.allows(1_000) && other.last == "summed up");
    }
}
