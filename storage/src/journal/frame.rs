//! Frames: one operation each, with its place in the order of all and a check.

use sha2::{Digest as _, Sha256};

use crate::ground::codec::SEAL;
use crate::ground::position::{Check, Position};

/// Bytes of a frame before its payload: length (u32), number (u64), check of the one before.
pub(crate) const HEAD: usize = 4 + 8 + SEAL;
/// Bytes of a frame beside its payload.
pub(crate) const FRAME: usize = HEAD + SEAL;

/// The frame of the write after `last`, and its place. `payload` has less than 4 GiB.
pub(crate) fn encode(key: Check, last: Position, payload: &[u8]) -> (Vec<u8>, Position) {
    let at = place(key, last, payload);
    let mut bytes = Vec::with_capacity(FRAME + payload.len());
    bytes.extend(head(last, payload));
    bytes.extend(payload);
    bytes.extend(at.check);
    (bytes, at)
}

/// The place of the write after `last`, without its frame.
pub(crate) fn place(key: Check, last: Position, payload: &[u8]) -> Position {
    let check = check(key, &[&head(last, payload), payload]);
    Position { seq: last.seq.saturating_add(1), check }
}

fn head(last: Position, payload: &[u8]) -> [u8; HEAD] {
    let length = u32::try_from(payload.len()).unwrap_or(u32::MAX);
    let mut bytes = [0; HEAD];
    let (start, after) = bytes.split_at_mut(4 + 8);
    let (len, seq) = start.split_at_mut(4);
    len.copy_from_slice(&length.to_le_bytes());
    seq.copy_from_slice(&last.seq.saturating_add(1).to_le_bytes());
    after.copy_from_slice(&last.check);
    bytes
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
        (check(key, &[checked]) == at_end).then_some(Self { at, after: head.after, payload })
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

/// The number of the first whole frame of at most `longest` bytes anywhere in `bytes` whose number is
/// above `seq`: what follows a frame that is damaged. Without `key` nobody can write words that look
/// like one. Words that look like the head of one can be written by anybody, and each has to be
/// checked; so it stops at some amount of work.
pub(crate) fn find_above(key: Check, bytes: &[u8], seq: u64, longest: usize) -> Option<u64> {
    let used = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    let mut checked = 0_usize;
    (0..used).find_map(|at| {
        let bytes = bytes.get(at..)?;
        let (head, rest) = Head::read(bytes)?;
        let len = head.length.checked_add(FRAME).filter(|len| *len <= longest)?;
        let plausible = head.seq > seq && head.seq - seq <= AHEAD && len <= HEAD + rest.len();
        if !plausible || checked >= MOST_CHECKED {
            return None;
        }
        checked = checked.saturating_add(len);
        Frame::decode(key, bytes).map(|frame| frame.at.seq)
    })
}

/// The longest distance of a frame from a damaged one before it; far more than a journal holds.
const AHEAD: u64 = 1 << 20;

/// Bytes of what may be frames behind a damaged one that are checked; many times a journal's.
const MOST_CHECKED: usize = 64 << 20;

fn check(key: Check, parts: &[&[u8]]) -> Check {
    let mut hash = Sha256::new_with_prefix(key);
    parts.iter().for_each(|part| hash.update(part));
    let [a, b, c, d, e, f, g, h, ..] = <[u8; 32]>::from(hash.finalize());
    [a, b, c, d, e, f, g, h]
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: Check = [7; 8];
    const LONGEST: usize = 64 << 10;

    fn frame(seq: u64, payload: &[u8]) -> Vec<u8> {
        encode(KEY, Position { seq: seq - 1, check: [3; 8] }, payload).0
    }

    #[test]
    fn a_frame_behind_others_bytes_is_found() {
        let mut bytes = vec![0xaa; 999];
        bytes.extend(frame(12, b"payload"));
        bytes.extend([0; 100]);
        assert_eq!(find_above(KEY, &bytes, 11, LONGEST), Some(12));
        assert_eq!(find_above(KEY, &bytes, 12, LONGEST), None);
        assert_eq!(find_above([8; 8], &bytes, 11, LONGEST), None);
        assert_eq!(find_above(KEY, &bytes, 11, FRAME + 6), None);
        // Its check's last byte is missing, and a zero has its place.
        bytes[999 + FRAME + 6] = !bytes[999 + FRAME + 6];
        assert_eq!(find_above(KEY, &bytes, 11, LONGEST), None);
    }

    /// A message made of heads of frames kept an open busy for 20 s.
    #[test]
    fn words_that_look_like_heads_cost_a_bounded_time() {
        let claimed = LONGEST - FRAME;
        let mut head = (claimed as u32).to_le_bytes().to_vec();
        head.extend(12_u64.to_le_bytes());
        let with_heads = |heads: usize| {
            let mut bytes = head.repeat(heads);
            bytes.extend(frame(13, b"payload"));
            bytes.extend(vec![1; LONGEST]);
            find_above(KEY, &bytes, 11, LONGEST)
        };
        let most = MOST_CHECKED / LONGEST;
        assert_eq!(with_heads(most - 1), Some(13));
        assert_eq!(with_heads(most), None);
    }
}
