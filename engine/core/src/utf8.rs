//! Bytes of model output in, whole characters out.
//!
//! A token may end in the middle of a character. [`Utf8Stream`] holds back the bytes of an
//! unfinished character, at most three, and passes everything else on at once. Bytes that can't
//! become UTF-8 turn into U+FFFD exactly as the standard library's `String::from_utf8_lossy` would
//! turn them in the whole output: one U+FFFD for each longest prefix of a character, else for each
//! byte.
//!
//! ```
//! use garret_core::utf8::Utf8Stream;
//!
//! let mut stream = Utf8Stream::new();
//! let mut calls = 0;
//! stream.push(b"caf\xC3", &mut |text| {
//!     assert_eq!(text, "caf");
//!     calls += 1;
//! });
//! stream.push(b"\xA9", &mut |text| {
//!     assert_eq!(text, "\u{e9}");
//!     calls += 1;
//! });
//! stream.finish(&mut |_| calls += 1);
//! assert_eq!(calls, 2);
//! ```
//!
//! Limits: none; memory is four bytes and a length.

use bstr::ByteSlice;

/// Joins the pieces of a byte stream to text. See the [module](self).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Utf8Stream {
    /// A prefix of one character's bytes, never the whole character.
    held: heapless::Vec<u8, 4>,
}

impl Utf8Stream {
    /// Creates a stream at its beginning.
    pub const fn new() -> Self {
        Self { held: heapless::Vec::new() }
    }

    /// Takes the next bytes and emits every character they finish. `emit` never sees an empty text.
    pub fn push(&mut self, bytes: &[u8], emit: &mut impl FnMut(&str)) {
        let rest = self.finish_held(bytes, emit);
        for chunk in ByteSlice::utf8_chunks(rest) {
            if !chunk.valid().is_empty() {
                emit(chunk.valid());
            }
            if chunk.invalid().is_empty() {
                continue;
            }
            // An unfinished character has at most three bytes, so that it always fits.
            if !chunk.incomplete() || self.held.extend_from_slice(chunk.invalid()).is_err() {
                emit(REPLACEMENT);
            }
        }
    }

    /// Ends the output: an unfinished character becomes U+FFFD. The stream is new again.
    pub fn finish(&mut self, emit: &mut impl FnMut(&str)) {
        if !self.held.is_empty() {
            self.held.clear();
            emit(REPLACEMENT);
        }
    }

    /// Returns how many bytes are held back: 0 to 3.
    pub fn held(&self) -> usize {
        self.held.len()
    }

    /// Feeds the held character from `bytes` and returns what it doesn't need.
    fn finish_held<'a>(&mut self, bytes: &'a [u8], emit: &mut impl FnMut(&str)) -> &'a [u8] {
        let mut rest = bytes;
        while let (false, Some((&byte, tail))) = (self.held.is_empty(), rest.split_first()) {
            let mut longer = self.held.clone();
            // At most three bytes are held, so that a fourth always fits.
            let fits = longer.push(byte).is_ok();
            match core::str::from_utf8(&longer) {
                Err(error) if fits && error.error_len().is_none() => {
                    self.held = longer;
                    rest = tail;
                    continue;
                }
                Ok(character) => {
                    emit(character);
                    rest = tail;
                }
                // The held bytes are all of a broken character; `byte` begins another.
                Err(_) => emit(REPLACEMENT),
            }
            self.held.clear();
        }
        rest
    }
}

/// Character that stands for bytes that are no UTF-8.
const REPLACEMENT: &str = "\u{FFFD}";
