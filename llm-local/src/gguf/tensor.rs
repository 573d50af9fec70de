//! Tensor descriptions of a GGUF file, reduced to what they add up to.

use super::{Fault, Reader};

/// All tensors of a file together.
#[derive(Clone, Debug, Default)]
pub(super) struct Layout {
    /// Number of tensors.
    pub(super) count: u64,
    /// Their bytes, without padding.
    pub(super) bytes: u64,
    /// Bytes from the start of the data section to the end of its last tensor.
    pub(super) end: u64,
    /// True if a tensor is the token embedding.
    pub(super) has_token_embedding: bool,
    /// Flags for the dense layer of a head that classifies, and for its output.
    pub(super) has_head: [bool; 2],
}

impl Layout {
    /// Reads `count` descriptions; tensors must lie one after the other, padded to `alignment`.
    pub(super) fn read(input: &mut Reader, count: u64, alignment: u64) -> Result<Self, Fault> {
        let mut all = Self { count, ..Self::default() };
        let mut next_offset = 0;
        for _ in 0..count {
            let tensor = Tensor::read(input)?;
            if tensor.offset != next_offset {
                return Err(Fault::damaged(format!("tensor {:?} is out of place", tensor.name)));
            }
            all.bytes = add(all.bytes, tensor.bytes)?;
            all.end = add(tensor.offset, tensor.bytes)?;
            next_offset = pad(all.end, alignment)?;
            all.has_token_embedding |= tensor.name == "token_embd.weight";
            for (has, name) in all.has_head.iter_mut().zip(["cls.weight", "cls.output.weight"]) {
                *has |= tensor.name == name;
            }
        }
        Ok(all)
    }
}

struct Tensor {
    name: String,
    bytes: u64,
    offset: u64,
}

impl Tensor {
    fn read(input: &mut Reader) -> Result<Self, Fault> {
        let kept = input.kept;
        let name = input.string(MAX_NAME_BYTES)?;
        input.kept = kept;
        let dimensions = input.u32()?;
        if dimensions > MAX_DIMENSIONS {
            return Err(Fault::damaged(format!("tensor {name:?} has {dimensions} dimensions")));
        }
        let mut elements = 1_u64;
        let mut row = 1;
        for dimension in 0..dimensions {
            let size = input.u64()?;
            row = if dimension == 0 { size } else { row };
            elements = elements.checked_mul(size).ok_or_else(overflow)?;
        }
        let kind = input.u32()?;
        if REMOVED_TYPES.contains(&kind) {
            return Err(Fault::OldQuantisation(kind));
        }
        let (block, block_bytes) = block_size(kind)
            .ok_or_else(|| Fault::damaged(format!("tensor {name:?} has unknown type {kind}")))?;
        if row % block != 0 {
            return Err(Fault::damaged(format!("tensor {name:?} has a row of {row}")));
        }
        let bytes = (elements / block).checked_mul(block_bytes).ok_or_else(overflow)?;
        Ok(Self { name, bytes, offset: input.u64()? })
    }
}

/// Rounds `position` up to a multiple of `alignment`, a power of two.
pub(super) fn pad(position: u64, alignment: u64) -> Result<u64, Fault> {
    position.checked_next_multiple_of(alignment).ok_or_else(overflow)
}

fn add(a: u64, b: u64) -> Result<u64, Fault> {
    a.checked_add(b).ok_or_else(overflow)
}

fn overflow() -> Fault {
    Fault::damaged("tensor sizes overflow")
}

/// Elements and bytes of one block of a ggml type, as in the `ggml.h` of the pinned llama.cpp.
fn block_size(kind: u32) -> Option<(u64, u64)> {
    Some(match kind {
        0 | 26 => (1, 4),
        1 | 25 | 30 => (1, 2),
        2 | 20 => (32, 18),
        3 => (32, 20),
        6 => (32, 22),
        7 => (32, 24),
        8 => (32, 34),
        9 => (32, 36),
        10 => (256, 84),
        11 | 21 => (256, 110),
        12 => (256, 144),
        13 => (256, 176),
        14 => (256, 210),
        15 => (256, 292),
        16 | 35 => (256, 66),
        17 => (256, 74),
        18 => (256, 98),
        19 => (256, 50),
        22 => (256, 82),
        23 => (256, 136),
        24 => (1, 1),
        27 | 28 => (1, 8),
        29 => (256, 56),
        34 => (256, 54),
        39 => (32, 17),
        40 => (64, 36),
        41 => (128, 18),
        42 => (64, 18),
        _ => return None,
    })
}

/// Types with weights reordered for some processors, which llama.cpp now does while loading.
const REMOVED_TYPES: [u32; 6] = [31, 32, 33, 36, 37, 38];
/// llama.cpp's `GGML_MAX_NAME` less the closing zero.
const MAX_NAME_BYTES: u64 = 63;
/// llama.cpp's `GGML_MAX_DIMS`.
const MAX_DIMENSIONS: u32 = 4;
