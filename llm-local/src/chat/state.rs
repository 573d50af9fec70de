//! A sequence's state as bytes: its token ids, and llama.cpp's own record of keys and values.
//!
//! Layout, little-endian: u32 number of ids, the ids as i32, llama.cpp's state. llama.cpp checks
//! the shape of a state, not its values, and not what model it is of: bytes that changed, or
//! another model of the same shape, would pass. So states are kept with a checksum and under
//! [`fingerprint`].
//!
//! Limits: a state is one allocation, of about 23 MB per 1,000 tokens for the starter model.

use garret_core::token::Token;
use llama_cpp_2::context::LlamaContext;
use llama_cpp_2::context::session::LlamaStateSeqFlags;
use llama_cpp_2::token::LlamaToken;
use sha2::{Digest as _, Sha256};

use super::ChatOptions;
use super::cache::SEQUENCES;
use crate::error::ChatError;

/// Returns the fingerprint of all that a state depends on: the model file, the context's
/// parameters, the version of llama.cpp, the machine's byte order and kind.
pub(super) fn fingerprint(options: &ChatOptions) -> [u8; 32] {
    let flash = match options.flash_attention {
        None => "auto",
        Some(true) => "on",
        Some(false) => "off",
    };
    let machine = std::env::consts::ARCH;
    let text = format!(
        "state 1; llama-cpp-2 {LLAMA_CPP_2}; {machine}; window {}; kv {}; flash {flash}; \
         sequences {SEQUENCES}; unified",
        options.n_ctx, options.kv,
    );
    Sha256::new().chain_update(options.fingerprint).chain_update(text).finalize().into()
}

/// Version of the bindings, which pin llama.cpp.
const LLAMA_CPP_2: &str = "0.1.160";

/// Returns the state of a sequence that holds `tokens`, unless it has more than `most` bytes.
///
/// # Errors
/// [`ChatError::State`], when llama.cpp doesn't give it.
pub(super) fn save(
    context: &LlamaContext<'_>,
    seq: i32,
    tokens: &[LlamaToken],
    most: u64,
) -> Result<Option<Vec<u8>>, ChatError> {
    let flags = LlamaStateSeqFlags::empty();
    let size = context.state_seq_get_size_ext(seq, flags);
    let head = size_of::<u32>() + size_of_val(tokens);
    if u64::try_from(head + size).map_or(true, |bytes| bytes > most) {
        return Ok(None);
    }
    let mut bytes = Vec::with_capacity(head + size);
    bytes.extend(u32::try_from(tokens.len()).map_err(|_| ChatError::State)?.to_le_bytes());
    bytes.extend(tokens.iter().flat_map(|token| token.0.to_le_bytes()));
    bytes.resize(head + size, 0);
    // SAFETY: the pointer is to the `size` bytes after the head, which nobody else uses; llama.cpp
    // writes at most as many as it said it needs, and nothing ran on the context in between.
    let written = unsafe { context.state_seq_get_data_ext(bytes[head..].as_mut_ptr(), seq, flags) };
    if written == size && size > 0 { Ok(Some(bytes)) } else { Err(ChatError::State) }
}

/// Gives an empty sequence the state of another one, and returns whether llama.cpp took it.
pub(super) fn restore(context: &mut LlamaContext<'_>, seq: i32, state: &[u8]) -> bool {
    // SAFETY: llama.cpp reads no further than the length of the slice it is given, and refuses what
    // isn't a state of this shape.
    unsafe { context.state_seq_set_data_ext(state, seq, LlamaStateSeqFlags::empty()) }
}

/// Splits what [`save`] gave into the ids and llama.cpp's state.
pub(super) fn parse(bytes: &[u8]) -> Option<(Vec<Token>, &[u8])> {
    let (count, rest) = bytes.split_first_chunk::<4>()?;
    let length = usize::try_from(u32::from_le_bytes(*count)).ok()?.checked_mul(4)?;
    let (ids, state) = rest.split_at_checked(length)?;
    let id = |four: &[u8; 4]| Token(i32::from_le_bytes(*four));
    Some((ids.as_chunks::<4>().0.iter().map(id).collect(), state))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Another llama.cpp may lay a state out differently.
    #[test]
    fn the_fingerprint_names_the_pinned_bindings() {
        let pin = format!("llama-cpp-2 = {{ version = \"={LLAMA_CPP_2}\"");
        assert!(include_str!("../../../Cargo.toml").contains(&pin), "{pin}");
    }

    #[test]
    fn bytes_that_are_no_state_are_none() {
        assert_eq!(parse(&[]), None);
        assert_eq!(parse(&[2, 0, 0, 0, 1, 0, 0, 0]), None);
        assert_eq!(parse(&[255; 16]), None);
        let (ids, state) = parse(&[1, 0, 0, 0, 7, 0, 0, 0, 9]).unwrap();
        assert_eq!((ids, state), (vec![Token(7)], &[9][..]));
    }
}
