//! The bytes of both files, as `FORMAT.md` draws them.

use crate::ground::codec;
use crate::vectors::key::UnitKey;
use crate::vectors::slots::Slot;

/// Unit in which the parts of a file are aligned, in bytes.
pub(crate) const PAGE: u64 = 4_096;

/// Version of the coarse vectors.
const COARSE_VERSION: u32 = 1;

/// Version of the whole vectors that are begun now; those before it are read, and added to.
pub(crate) const FULL_VERSION: u32 = 2;

/// The first version of whole vectors whose sums are made four at a time.
const FOURFOLD_SINCE: u32 = 2;

/// Rows behind one directory of the whole vectors.
pub(crate) const BLOCK_ROWS: u32 = 128;

/// Bytes of an entry of a directory.
pub(crate) const ENTRY: usize = 32;

/// Most dimensions a vector has.
pub const MAX_DIMS: usize = 8_192;

const FULL_MAGIC: [u8; 8] = *b"GarretVf";
const COARSE_MAGIC: [u8; 8] = *b"GarretVc";

/// Head of the file of whole vectors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FullHead {
    pub(crate) version: u32,
    /// Raised whenever the file begins anew, so that the other one is known to be its own.
    pub(crate) epoch: u64,
    pub(crate) fingerprint: [u8; 32],
    pub(crate) dims: u32,
}

impl FullHead {
    pub(crate) const BYTES: usize = 64;

    pub(crate) fn encode(&self) -> [u8; Self::BYTES] {
        let mut out = [0; Self::BYTES];
        out[..8].copy_from_slice(&FULL_MAGIC);
        out[8..12].copy_from_slice(&self.version.to_le_bytes());
        out[12..16].copy_from_slice(&self.dims.to_le_bytes());
        out[16..24].copy_from_slice(&self.epoch.to_le_bytes());
        out[24..56].copy_from_slice(&self.fingerprint);
        seal(&mut out);
        out
    }

    /// The head, if these bytes are one of a version that is known.
    pub(crate) fn decode(bytes: &[u8; Self::BYTES]) -> Option<Self> {
        let version = u32_at(bytes, 8);
        let known = (1..=FULL_VERSION).contains(&version);
        if !sealed(bytes) || bytes[..8] != FULL_MAGIC || !known {
            return None;
        }
        let mut fingerprint = [0; 32];
        fingerprint.copy_from_slice(&bytes[24..56]);
        let (dims, epoch) = (u32_at(bytes, 12), u64_at(bytes, 16));
        let head = Self { version, epoch, fingerprint, dims };
        (1..=MAX_DIMS).contains(&(head.dims as usize)).then_some(head)
    }

    /// Check of a vector's bytes.
    pub(crate) fn vector_check(&self, bytes: &[u8]) -> u32 {
        let sum = match self.version {
            FOURFOLD_SINCE.. => fourfold(bytes),
            _ => checksum(bytes, 0),
        };
        sum as u32
    }

    fn vector_bytes(&self) -> u64 {
        u64::from(self.dims) * 2
    }

    fn block_bytes(&self) -> u64 {
        u64::from(BLOCK_ROWS) * (ENTRY as u64 + self.vector_bytes())
    }

    fn block_at(&self, slot: Slot) -> u64 {
        PAGE + u64::from(slot / BLOCK_ROWS) * self.block_bytes()
    }

    /// Returns where the entry of a row is.
    pub(crate) fn entry_at(&self, slot: Slot) -> u64 {
        self.block_at(slot) + u64::from(slot % BLOCK_ROWS) * ENTRY as u64
    }

    /// Returns where the vector of a row is.
    pub(crate) fn vector_at(&self, slot: Slot) -> u64 {
        let directory = u64::from(BLOCK_ROWS) * ENTRY as u64;
        self.block_at(slot) + directory + u64::from(slot % BLOCK_ROWS) * self.vector_bytes()
    }

    /// Returns where the vector of a row ends.
    pub(crate) fn vector_end(&self, slot: Slot) -> u64 {
        self.vector_at(slot) + self.vector_bytes()
    }

    /// Blocks of which a file of `len` bytes has at least the directory.
    pub(crate) fn blocks(&self, len: u64) -> u64 {
        let rows = len.saturating_sub(PAGE + u64::from(BLOCK_ROWS) * ENTRY as u64);
        if rows == 0 { 0 } else { (rows - 1) / self.block_bytes() + 1 }
    }
}

/// Head of the file of coarse vectors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CoarseHead {
    pub(crate) epoch: u64,
    pub(crate) fingerprint: [u8; 32],
    /// Bytes of the rotation, which follows from [`PAGE`] on.
    pub(crate) rotation_len: u32,
    /// SHA-256 of the rotation.
    pub(crate) rotation: [u8; 32],
}

impl CoarseHead {
    pub(crate) const BYTES: usize = 96;

    pub(crate) fn encode(&self) -> [u8; Self::BYTES] {
        let mut out = [0; Self::BYTES];
        out[..8].copy_from_slice(&COARSE_MAGIC);
        out[8..12].copy_from_slice(&COARSE_VERSION.to_le_bytes());
        out[12..16].copy_from_slice(&self.rotation_len.to_le_bytes());
        out[16..24].copy_from_slice(&self.epoch.to_le_bytes());
        out[24..56].copy_from_slice(&self.fingerprint);
        out[56..88].copy_from_slice(&self.rotation);
        seal(&mut out);
        out
    }

    /// The head, if these bytes are one of this version.
    pub(crate) fn decode(bytes: &[u8; Self::BYTES]) -> Option<Self> {
        if !sealed(bytes) || bytes[..8] != COARSE_MAGIC || u32_at(bytes, 8) != COARSE_VERSION {
            return None;
        }
        let (mut fingerprint, mut rotation) = ([0; 32], [0; 32]);
        fingerprint.copy_from_slice(&bytes[24..56]);
        rotation.copy_from_slice(&bytes[56..88]);
        let rotation_len = u32_at(bytes, 12);
        Some(Self { epoch: u64_at(bytes, 16), fingerprint, rotation_len, rotation })
    }

    /// Returns where the first row is.
    pub(crate) fn rows_at(&self) -> u64 {
        PAGE + u64::from(self.rotation_len).next_multiple_of(PAGE)
    }
}

/// The entry of a directory: which unit is in a row, and the check of its vector.
pub(crate) fn entry(key: UnitKey, check: u32, slot: Slot, epoch: u64) -> [u8; ENTRY] {
    let (kind, first, second) = key.parts();
    let mut out = [0; ENTRY];
    out[0] = kind;
    out[4..8].copy_from_slice(&check.to_le_bytes());
    out[8..16].copy_from_slice(&first.to_le_bytes());
    out[16..24].copy_from_slice(&second.to_le_bytes());
    let sum = entry_check(&out, slot, epoch);
    out[24..].copy_from_slice(&sum.to_le_bytes());
    out
}

/// Unit and check of an [`entry`], if these bytes are one for this row.
pub(crate) fn read_entry(bytes: &[u8], slot: Slot, epoch: u64) -> Option<(UnitKey, u32)> {
    let bytes: &[u8; ENTRY] = bytes.try_into().ok()?;
    if bytes[1..4] != [0; 3] || u64_at(bytes, 24) != entry_check(bytes, slot, epoch) {
        return None;
    }
    let key = UnitKey::from_parts(bytes[0], u64_at(bytes, 8), u64_at(bytes, 16))?;
    Some((key, u32_at(bytes, 4)))
}

fn entry_check(entry: &[u8; ENTRY], slot: Slot, epoch: u64) -> u64 {
    checksum(&entry[..24], mix(epoch) ^ u64::from(slot))
}

/// Finds torn and flipped bytes; it isn't a defence against anybody.
pub(crate) fn checksum(bytes: &[u8], seed: u64) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    let sum = words.iter().fold(seed, |sum, word| step(sum, u64::from_le_bytes(*word)));
    mix(step(sum, u64::from_le_bytes(last)) ^ bytes.len() as u64)
}

/// The same with four sums, none of which waits for another: of each run of four words the first goes
/// into the first sum, and so on. What is left over at the end follows with the sums themselves.
fn fourfold(bytes: &[u8]) -> u64 {
    let (fours, rest) = bytes.as_chunks::<32>();
    let mut sums = [0, 1, 2, 3];
    for four in fours {
        for (sum, word) in sums.iter_mut().zip(four.as_chunks::<8>().0) {
            *sum = step(*sum, u64::from_le_bytes(*word));
        }
    }
    checksum(rest, sums.into_iter().fold(bytes.len() as u64, step))
}

fn step(sum: u64, word: u64) -> u64 {
    let sum = (sum ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    sum ^ (sum >> 32)
}

/// The finaliser of SplitMix64: every bit of the result depends on every bit.
pub(crate) fn mix(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Puts the first 8 bytes of the SHA-256 of what is before them at the end.
pub(crate) fn seal(bytes: &mut [u8]) {
    if let Some((body, check)) = bytes.split_last_chunk_mut::<8>() {
        *check = codec::seal(body);
    }
}

/// Tells whether [`seal`] wrote the end of these bytes.
pub(crate) fn sealed(bytes: &[u8]) -> bool {
    codec::unseal(bytes).is_some()
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(|b| b.try_into().ok()).map_or(0, u32::from_le_bytes)
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).and_then(|b| b.try_into().ok()).map_or(0, u64::from_le_bytes)
}
