//! Token ids as the loaded model numbers them, and a buffer of them that refuses to grow.

/// Id of one token in the vocabulary of the loaded model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Token(pub i32);

/// Token ids stored as little-endian 32-bit words, read in place from a record of any alignment.
///
/// ```
/// use garret_core::token::{Token, TokenBytes};
/// let stored = TokenBytes::new(&[7, 0, 0, 0, 1, 1, 0, 0]);
/// assert!(stored.iter().eq([Token(7), Token(257)]));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TokenBytes<'a>(&'a [u8]);

impl<'a> TokenBytes<'a> {
    /// Views `bytes` as token ids; up to three trailing bytes that make no whole id are ignored.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Returns the number of ids.
    pub const fn len(self) -> usize {
        self.0.len() / 4
    }

    /// Returns whether there is no id.
    pub const fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Returns the ids in order.
    pub fn iter(self) -> impl ExactSizeIterator<Item = Token> + 'a {
        let (words, _) = self.0.as_chunks::<4>();
        words.iter().map(|word| Token(i32::from_le_bytes(*word)))
    }
}

/// A caller-provided slice that is filled with tokens from the front.
#[derive(Debug)]
pub struct TokenBuf<'a> {
    slots: &'a mut [Token],
    len: usize,
}

impl<'a> TokenBuf<'a> {
    /// Creates an empty buffer over `slots`; its capacity is their number.
    pub fn new(slots: &'a mut [Token]) -> Self {
        Self { slots, len: 0 }
    }

    /// Appends one token, or says that the buffer is full and leaves it as it was.
    pub fn push(&mut self, token: Token) -> Result<(), BufferFull> {
        let slot = self.slots.get_mut(self.len).ok_or(BufferFull)?;
        *slot = token;
        self.len = self.len.saturating_add(1);
        Ok(())
    }

    /// Appends all of `tokens` in order; when they don't fit, those that do are there.
    pub fn extend(&mut self, tokens: impl IntoIterator<Item = Token>) -> Result<(), BufferFull> {
        tokens.into_iter().try_for_each(|token| self.push(token))
    }

    /// Returns the tokens written so far.
    pub fn as_slice(&self) -> &[Token] {
        self.slots.get(..self.len).unwrap_or(&[])
    }

    /// Returns the number of tokens written so far.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Returns whether nothing was written yet.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Empties the buffer.
    pub fn clear(&mut self) {
        self.len = 0;
    }
}

/// Refusal of a caller-provided buffer that has no room for one more item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the buffer is full")]
pub struct BufferFull;
