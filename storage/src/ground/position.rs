//! Places in the order of all writes.

use crate::ground::codec::SEAL;

pub(crate) type Check = [u8; SEAL];

/// A place in the order of all writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Position {
    /// Number of the last write before it; 0 before the first.
    pub(crate) seq: u64,
    /// The check of that write, which follows from it and all before.
    pub(crate) check: Check,
}

impl Position {
    /// Returns the bytes that stand in `meta`.
    pub(crate) fn to_bytes(self) -> [u8; 16] {
        let mut bytes = [0; 16];
        let (seq, check) = bytes.split_at_mut(8);
        seq.copy_from_slice(&self.seq.to_le_bytes());
        check.copy_from_slice(&self.check);
        bytes
    }

    pub(crate) fn from_bytes(bytes: [u8; 16]) -> Self {
        let [a, b, c, d, e, f, g, h, check @ ..] = bytes;
        Self { seq: u64::from_le_bytes([a, b, c, d, e, f, g, h]), check }
    }
}
