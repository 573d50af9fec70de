//! Moments, as records and the journal keep them.

use garret_core::time::{Confidence, WallTime};
use serde::{Deserialize, Serialize};

use crate::ground::error::Fault;

/// A wall clock's time and how good it was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Stamp {
    pub(crate) unix_ms: i64,
    pub(crate) clock: u8,
}

impl From<WallTime> for Stamp {
    fn from(at: WallTime) -> Self {
        Self { unix_ms: at.unix_ms, clock: byte_of(at.confidence) }
    }
}

impl Stamp {
    pub(crate) fn time(self) -> Result<WallTime, Fault> {
        match confidence_of(self.clock) {
            Some(confidence) => Ok(WallTime { unix_ms: self.unix_ms, confidence }),
            None => Err(Fault::Damaged { what: "operation", key: "its clock".to_owned() }),
        }
    }
}

pub(crate) const fn byte_of(confidence: Confidence) -> u8 {
    match confidence {
        Confidence::Wrong => 0,
        Confidence::Good => 2,
        // Unsure, and whatever core adds: neither known wrong nor known good.
        _ => 1,
    }
}

pub(crate) const fn confidence_of(byte: u8) -> Option<Confidence> {
    match byte {
        0 => Some(Confidence::Wrong),
        1 => Some(Confidence::Unsure),
        2 => Some(Confidence::Good),
        _ => None,
    }
}
