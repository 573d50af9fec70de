//! Record of the KV cache, sequence by sequence.
//!
//! [`Cache`] pairs a llama.cpp context with a record of the tokens whose keys and values it really
//! holds. All sequences share one pool of cells: a companion that starts as a copy of the main
//! sequence costs cells only for what it adds. The record is the only thing decisions are taken
//! from, so every path that changes the context changes the record, and after an interrupted decode
//! the record is set from the context.

use garret_core::model::ModelRole;
use llama_cpp_2::DecodeError;
use llama_cpp_2::context::LlamaContext;
use llama_cpp_2::llama_batch::LlamaBatch;
use llama_cpp_2::token::LlamaToken;

use super::state;
use crate::error::ChatError;
use crate::model::Model;

/// Sequences a context is made for: main, a spare one for the prefix that is to replace it, and the
/// two companions.
pub(crate) const SEQUENCES: usize = 4;

/// A sequence of the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seq(usize);

impl Seq {
    pub(super) const MAIN: Self = Self(0);
    pub(super) const SPARE: Self = Self(1);
    const COMPACTOR: Self = Self(2);
    const INFERRER: Self = Self(3);

    /// Returns the sequence on which `role` decodes. A role this version doesn't know shares the
    /// inferrer's.
    pub(super) fn of(role: ModelRole) -> Self {
        match role {
            ModelRole::Main => Self::MAIN,
            ModelRole::Rebase => Self::SPARE,
            ModelRole::Compactor => Self::COMPACTOR,
            _ => Self::INFERRER,
        }
    }

    pub(super) fn is_main(self) -> bool {
        self == Self::MAIN
    }

    /// Returns whether what the sequence holds is given up with the request that made it.
    pub(super) fn is_companion(self) -> bool {
        self == Self::COMPACTOR || self == Self::INFERRER
    }

    fn all() -> impl Iterator<Item = Self> {
        (0..SEQUENCES).map(Self)
    }

    // Both fit: a sequence number is below SEQUENCES.
    fn signed(self) -> i32 {
        self.0 as i32
    }

    fn unsigned(self) -> u32 {
        self.0 as u32
    }
}

/// End of a decode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decoded {
    /// All tokens are in the cache.
    Whole,
    /// The interrupt flag was raised; only these many tokens are in the cache.
    Interrupted(usize),
    /// Refused for want of free cells; nothing changed.
    NoRoom,
}

/// A context and the record of what it holds.
pub(super) struct Cache<'m> {
    context: LlamaContext<'m>,
    batch: LlamaBatch<'static>,
    held: [Vec<LlamaToken>; SEQUENCES],
    n_batch: usize,
    /// Sliding window in tokens, 0 when the file names none.
    window: usize,
    /// State can't be taken back or copied in part.
    recurrent: bool,
}

impl<'m> Cache<'m> {
    pub(super) fn new(model: &Model, context: LlamaContext<'m>) -> Self {
        let n_batch = context.n_batch().max(1) as usize;
        Self {
            context,
            batch: LlamaBatch::new(n_batch, 1),
            held: [const { Vec::new() }; SEQUENCES],
            n_batch,
            window: model.swa().map_or(0, |swa| swa.tokens as usize),
            recurrent: model.recurrent(),
        }
    }

    /// Returns the most tokens of one [`Cache::decode`].
    pub(super) fn n_batch(&self) -> usize {
        self.n_batch
    }

    /// Makes `seq` hold the longest prefix of `tokens` that needs no decoding, and nothing else;
    /// the last token is never part of it, since its logits are wanted. Returns its length.
    ///
    /// It takes a copy of the main or the spare sequence where that holds more of the prefix. The
    /// main sequence takes the spare one over, which is empty then.
    pub(super) fn adopt(&mut self, seq: Seq, tokens: &[LlamaToken]) -> usize {
        let others = [Seq::MAIN, Seq::SPARE].into_iter().filter(|other| *other != seq);
        let other = others.map(|other| (self.common(other, tokens), other)).max_by_key(|(n, _)| *n);
        if let Some((more, other)) = other
            && more > self.common(seq, tokens)
            && self.fork(other, seq, more)
        {
            if seq.is_main() {
                self.drop_sequence(other);
            }
            return more;
        }
        // Counted again, since a fork that fails may have given up what there was.
        let own = self.common(seq, tokens);
        if own < self.held[seq.0].len() && !self.trim(seq, own) {
            tracing::info!(
                lost = own,
                "this model's state can't be taken back: decoding the prompt from its start"
            );
            return 0;
        }
        own
    }

    /// Appends `tokens`, at most [`Cache::n_batch`], to `seq`. With `logits` those after the last
    /// one can be read afterwards.
    ///
    /// # Errors
    /// When llama.cpp refuses or fails; the cache must be cleared then.
    pub(super) fn decode(
        &mut self,
        seq: Seq,
        tokens: &[LlamaToken],
        logits: bool,
    ) -> Result<Decoded, ChatError> {
        let first = self.held[seq.0].len();
        self.batch.clear();
        for (index, token) in tokens.iter().enumerate() {
            let position = i32::try_from(first + index).map_err(|_| ChatError::NoRoom)?;
            let wanted = logits && index + 1 == tokens.len();
            self.batch
                .add(*token, position, &[seq.signed()], wanted)
                .map_err(|_| ChatError::Decode(TOO_LONG))?;
        }
        match self.context.decode(&mut self.batch) {
            Ok(()) => {
                self.held[seq.0].extend_from_slice(tokens);
                Ok(Decoded::Whole)
            }
            Err(DecodeError::NoKvCacheSlot) => Ok(Decoded::NoRoom),
            Err(DecodeError::Unknown(INTERRUPTED)) => {
                self.held[seq.0].extend_from_slice(tokens);
                Ok(Decoded::Interrupted(self.recount(seq).saturating_sub(first)))
            }
            Err(DecodeError::Unknown(code)) => Err(ChatError::Decode(code)),
            Err(DecodeError::NTokensZero) => Err(ChatError::Decode(INVALID)),
        }
    }

    /// Returns the logits, one for each id, after the last token of the last decode that asked for
    /// them.
    ///
    /// # Errors
    /// [`ChatError::NotFinite`] when there is a NaN or a positive infinity among them, or nothing
    /// but negative ones.
    pub(super) fn logits(&self) -> Result<&[f32], ChatError> {
        let logits = self.context.get_logits_ith(self.batch.n_tokens() - 1);
        let highest = logits.iter().try_fold(f32::NEG_INFINITY, |highest, logit| {
            (*logit < f32::INFINITY).then(|| highest.max(*logit))
        });
        match highest {
            Some(highest) if highest.is_finite() => Ok(logits),
            _ => Err(ChatError::NotFinite),
        }
    }

    /// Returns the state of what the main sequence holds of `tokens`, which is all it holds
    /// afterwards; `None` for nothing, and for more than `most` bytes.
    ///
    /// # Errors
    /// [`ChatError::State`], when llama.cpp doesn't give it.
    pub(super) fn save(
        &mut self,
        tokens: &[LlamaToken],
        most: u64,
    ) -> Result<Option<Vec<u8>>, ChatError> {
        let pairs = self.held[Seq::MAIN.0].iter().zip(tokens);
        let length = pairs.take_while(|(held, token)| held == token).count();
        if length == 0 || !self.trim(Seq::MAIN, length) {
            return Ok(None);
        }
        state::save(&self.context, Seq::MAIN.signed(), &self.held[Seq::MAIN.0], most)
    }

    /// Makes the main sequence hold `tokens` by their state, in place of what it holds.
    ///
    /// # Errors
    /// [`ChatError::State`], when llama.cpp refuses it; the main sequence is empty then.
    pub(super) fn restore(&mut self, tokens: &[LlamaToken], state: &[u8]) -> Result<(), ChatError> {
        for seq in Seq::all() {
            self.drop_sequence(seq);
        }
        let main = Seq::MAIN.signed();
        let whole = state::restore(&mut self.context, main, state)
            && usize::try_from(self.context.kv_cache_seq_pos_max(main) + 1) == Ok(tokens.len());
        if !whole {
            self.context.clear_kv_cache();
            return Err(ChatError::State);
        }
        self.held[Seq::MAIN.0] = tokens.to_vec();
        Ok(())
    }

    /// Gives up what `seq` holds. Cells it shares stay with the other sequences.
    pub(super) fn drop_sequence(&mut self, seq: Seq) {
        if !self.held[seq.0].is_empty() {
            self.remove(seq, 0);
            self.held[seq.0].clear();
        }
    }

    /// Drops every sequence but the main one and `seq`, and returns whether that freed anything.
    pub(super) fn evict_others(&mut self, seq: Seq) -> bool {
        let mut freed = false;
        for other in Seq::all().filter(|other| !other.is_main() && *other != seq) {
            freed |= !self.held[other.0].is_empty();
            self.drop_sequence(other);
        }
        freed
    }

    /// Empties the whole cache.
    pub(super) fn clear(&mut self) {
        self.held.iter_mut().for_each(Vec::clear);
        self.context.clear_kv_cache();
    }

    /// Returns the length of the longest common prefix of what `seq` holds and of `tokens` less its
    /// last one.
    fn common(&self, seq: Seq, tokens: &[LlamaToken]) -> usize {
        let usable = tokens.len().saturating_sub(1);
        let pairs = self.held[seq.0].iter().zip(&tokens[..usable]);
        pairs.take_while(|(held, token)| held == token).count()
    }

    /// Lets `seq` share the first `length` cells of `from`.
    fn fork(&mut self, from: Seq, seq: Seq, length: usize) -> bool {
        if !self.can_keep(from, length) {
            return false;
        }
        self.drop_sequence(seq);
        let end = u32::try_from(length).ok();
        let copied = self.context.copy_kv_cache_seq(from.signed(), seq.signed(), Some(0), end);
        if end.is_none() || copied.is_err() {
            return false;
        }
        self.held[seq.0] = self.held[from.0][..length].to_vec();
        true
    }

    /// Cuts `seq` down to its first `length` tokens. Where that can't be done, empties it and
    /// returns false (unless nothing was to be kept).
    fn trim(&mut self, seq: Seq, length: usize) -> bool {
        if length > 0 && self.can_keep(seq, length) && self.remove(seq, length) {
            self.held[seq.0].truncate(length);
            return true;
        }
        self.drop_sequence(seq);
        length == 0
    }

    /// Returns whether the state after the first `length` tokens of `seq` can be had from its
    /// cells.
    fn can_keep(&self, seq: Seq, length: usize) -> bool {
        if self.recurrent {
            return length == self.held[seq.0].len();
        }
        // Cells beyond a sliding window may have been recycled. Those that remain must reach back
        // far enough for the first token that is to be decoded.
        match usize::try_from(self.context.kv_cache_seq_pos_min(seq.signed())) {
            Ok(0) => true,
            Ok(oldest) => self.window > 0 && oldest + self.window <= length,
            Err(_) => false,
        }
    }

    fn remove(&mut self, seq: Seq, from: usize) -> bool {
        let from = u32::try_from(from).ok().filter(|from| *from > 0);
        self.context.clear_kv_cache_seq(Some(seq.unsigned()), from, None).unwrap_or(false)
    }

    /// Sets the record of `seq` from the context after an interrupted decode; returns its length.
    /// Recurrent models are never interrupted.
    fn recount(&mut self, seq: Seq) -> usize {
        let last = self.context.kv_cache_seq_pos_max(seq.signed());
        let length = usize::try_from(last + 1).unwrap_or(0);
        self.held[seq.0].truncate(length);
        self.held[seq.0].len()
    }
}

/// llama.cpp's code for a decode that its abort callback ended.
const INTERRUPTED: i32 = 2;
/// llama.cpp's code for a batch it refuses.
const INVALID: i32 = -1;
/// Code of our own for a batch that is longer than its buffer.
const TOO_LONG: i32 = -100;
