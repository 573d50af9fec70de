//! Memory that a chat model is going to take, from its header alone.
//!
//! The figure is there to refuse before the system runs out, so it leans to the high side:
//! - weights: all tensor bytes, as if each page of the mapped file were touched;
//! - KV cache: for each layer, `n_ctx` cells (rounded up to 256, as llama.cpp does) of
//!   `kv heads x (key width + value width)` numbers; sliding-window layers count in full, since
//!   suffixes can be dropped only when they are kept in full;
//! - compute: the widest stage of one batch of `n_ubatch` tokens in 32-bit floats: attention scores
//!   over the whole window for each head (as without flash attention), the mask, a dozen hidden
//!   states with both halves of the feed-forward layer, and logits for one token of each sequence.
//!
//! ```no_run
//! use garret_core::model::KvType;
//! use garret_llm::estimate::MemoryEstimate;
//!
//! let info = garret_llm::check::check_chat("model.gguf".as_ref())?;
//! let need = MemoryEstimate::of(&info.gguf, 8_192, KvType::F16, 128);
//! println!("{} MiB", need.total() >> 20);
//! # Ok::<(), garret_llm::check::CheckError>(())
//! ```
//!
//! Limits: recurrent state and the compressed caches of some architectures are not modelled; the
//! figure for them is that of plain attention, which is larger. Memory on a GPU isn't told apart.

use garret_core::model::KvType;

use crate::chat::SEQUENCES;
use crate::gguf::{Gguf, MAX_LAYERS};

/// Memory for one context on one model, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryEstimate {
    /// The weights.
    pub weights: u64,
    /// The KV cache.
    pub kv: u64,
    /// Scratch space of one batch.
    pub compute: u64,
}

impl MemoryEstimate {
    /// Estimates for a window of `n_ctx` tokens and batches of `n_ubatch` tokens.
    pub fn of(gguf: &Gguf, n_ctx: u32, kv: KvType, n_ubatch: u32) -> Self {
        Self {
            weights: gguf.tensor_bytes(),
            kv: kv_bytes(gguf, n_ctx, kv),
            compute: compute_bytes(gguf, n_ctx, n_ubatch),
        }
    }

    /// Returns the sum of weights, cache and scratch space.
    pub fn total(&self) -> u64 {
        self.weights.saturating_add(self.kv).saturating_add(self.compute)
    }

    /// Returns whether the sum fits into `available_bytes`.
    pub fn fits(&self, available_bytes: u64) -> bool {
        self.total() <= available_bytes
    }
}

fn kv_bytes(gguf: &Gguf, n_ctx: u32, kv: KvType) -> u64 {
    let cells = u64::from(n_ctx).next_multiple_of(CELL_ROUNDING);
    let key = gguf.key_length().unwrap_or(0);
    let value = gguf.value_length().unwrap_or(0);
    (0..layers(gguf)).fold(0, |sum: u64, layer| {
        let heads = gguf.head_count_kv(layer).unwrap_or(0);
        let cell = [key, value].map(|width| numbers_bytes(kv, heads.saturating_mul(width)));
        sum.saturating_add(cells.saturating_mul(cell[0].saturating_add(cell[1])))
    })
}

fn compute_bytes(gguf: &Gguf, n_ctx: u32, n_ubatch: u32) -> u64 {
    let window = u64::from(n_ctx).next_multiple_of(CELL_ROUNDING);
    let heads = (0..layers(gguf)).filter_map(|layer| gguf.head_count(layer)).max().unwrap_or(0);
    let hidden = gguf.embedding_length().map_or(0, u64::from);
    let logits = gguf.vocabulary_size().unwrap_or(0);
    let scores = window.saturating_mul(heads.saturating_add(1));
    let states = hidden.saturating_mul(HIDDEN_STATES).saturating_add(feed_forward(gguf) * 2);
    let floats = scores.saturating_add(states).saturating_mul(u64::from(n_ubatch));
    let outputs = u64::from(n_ubatch).min(OUTPUTS);
    // Once where they are computed, and once where they are read.
    let floats = floats.saturating_add(logits.saturating_mul(outputs + OUTPUTS));
    floats.saturating_mul(FLOAT_BYTES)
}

/// Width of the feed-forward layer that one token goes through.
fn feed_forward(gguf: &Gguf) -> u64 {
    let widest =
        |key| (0..layers(gguf)).filter_map(|layer| gguf.per_layer(key, layer)).max().unwrap_or(0);
    let used = gguf.arch_u32("expert_used_count").map_or(0, u64::from);
    let experts = widest("expert_feed_forward_length").saturating_mul(used);
    widest("feed_forward_length").max(experts).min(MAX_FEED_FORWARD)
}

/// Bytes of `count` numbers in the cache.
fn numbers_bytes(kv: KvType, count: u64) -> u64 {
    match kv {
        KvType::F16 => count.saturating_mul(2),
        KvType::Q8_0 => count.div_ceil(32).saturating_mul(34),
    }
}

/// Layers of the model; a header with more than any model has counts as that many.
fn layers(gguf: &Gguf) -> u32 {
    gguf.block_count().unwrap_or(0).min(MAX_LAYERS)
}

const FLOAT_BYTES: u64 = 4;
/// llama.cpp rounds the number of cells up to a multiple of this.
const CELL_ROUNDING: u64 = 256;
/// Hidden states that are alive at once in a layer, generously.
const HIDDEN_STATES: u64 = 12;
/// Tokens of one batch that logits are asked for, at most: one for each sequence.
const OUTPUTS: u64 = SEQUENCES as u64;
const MAX_FEED_FORWARD: u64 = 1 << 24;
