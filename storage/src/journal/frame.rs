//! Frames: one operation each, with its place in the order of all and a check.

use sha2::{Digest as _, Sha256};

use crate::record::SEAL;

/// Bytes of a frame before its payload: length (u32), number (u64), check of the one before.
pub(crate) const HEAD: usize = 4 + 8 + SEAL;
/// Bytes of a frame beside its payload.
pub(crate) const FRAME: usize = HEAD + SEAL;

pub(crate) type Check = [u8; SEAL];

/// A place in the order of all writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Position {
    /// Number of the last write before it; 0 before the first.
    pub(crate) seq: u64,
    /// That write's check, which follows from it and all before.
    pub(crate) check: Check,
}

impl Position {
    /// As it stands in `meta`.
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

/// The frame of the write after `last`, and its place. `payload` has less than 4 GiB.
pub(crate) fn encode(key: Check, last: Position, payload: &[u8]) -> (Vec<u8>, Position) {
    let seq = last.seq.saturating_add(1);
    let length = u32::try_from(payload.len()).unwrap_or(u32::MAX);
    let mut bytes = Vec::with_capacity(FRAME + payload.len());
    bytes.extend(length.to_le_bytes());
    bytes.extend(seq.to_le_bytes());
    bytes.extend(last.check);
    bytes.extend(payload);
    let check = check(key, &bytes);
    bytes.extend(check);
    (bytes, Position { seq, check })
}

/// A frame where it lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Frame<'a> {
    pub(crate) at: Position,
    /// The check of the write before it.
    pub(crate) after: Check,
    pub(crate) payload: &'a [u8],
}

impl<'a> Frame<'a> {
    /// The frame at the start of `bytes`, if there is a whole one.
    pub(crate) fn decode(key: Check, bytes: &'a [u8]) -> Option<Self> {
        let (head, rest) = Head::read(bytes)?;
        let payload = rest.get(..head.length)?;
        let at_end: Check = *rest.get(head.length..)?.first_chunk()?;
        let checked = bytes.get(..HEAD + head.length)?;
        let at = Position { seq: head.seq, check: at_end };
        (check(key, checked) == at_end).then_some(Self { at, after: head.after, payload })
    }

    /// Bytes it takes.
    pub(crate) fn len(&self) -> usize {
        FRAME + self.payload.len()
    }
}

struct Head {
    length: usize,
    seq: u64,
    after: Check,
}

impl Head {
    fn read(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (length, rest) = bytes.split_first_chunk()?;
        let (seq, rest) = rest.split_first_chunk()?;
        let (after, rest) = rest.split_first_chunk()?;
        let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
        Some((Self { length, seq: u64::from_le_bytes(*seq), after: *after }, rest))
    }
}

/// The number of the first whole frame anywhere in `bytes` whose number is above `seq`: what
/// follows a frame that is damaged. Without `key` nobody can write words that look like one.
pub(crate) fn find_above(key: Check, bytes: &[u8], seq: u64) -> Option<u64> {
    let used = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    (0..used).find_map(|at| {
        let bytes = bytes.get(at..)?;
        let (head, rest) = Head::read(bytes)?;
        let plausible = head.seq > seq && head.length.checked_add(SEAL)? <= rest.len();
        if !plausible || head.seq - seq > AHEAD {
            return None;
        }
        Frame::decode(key, bytes).map(|frame| frame.at.seq)
    })
}

/// How far a frame behind a damaged one can be from it; far more than a journal holds.
const AHEAD: u64 = 1 << 20;

fn check(key: Check, bytes: &[u8]) -> Check {
    let [a, b, c, d, e, f, g, h, ..] =
        <[u8; 32]>::from(Sha256::new().chain_update(key).chain_update(bytes).finalize());
    [a, b, c, d, e, f, g, h]
}
