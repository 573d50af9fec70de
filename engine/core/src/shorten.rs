//! A message too long for its ceiling, shown as head, marker and tail.
//!
//! The cut depends only on the text, the limit and the tokenizer, so that the same message is shown
//! the same way in the turn it was written and in every later one: the token prefix stays stable.

use core::fmt::Write;

use crate::prompt::{Content, EncodeError, PromptEncoder};

/// A text as the model sees it: whole, or head and tail around a marker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownText<'a> {
    by: &'a str,
    head: &'a str,
    tail: &'a str,
    marker: heapless::String<MARKER_BYTES>,
    left_out: usize,
}

impl<'a> ShownText<'a> {
    /// Shows the whole text.
    pub const fn whole(text: &'a str) -> Self {
        Self { by: "", head: text, tail: "", marker: heapless::String::new(), left_out: 0 }
    }

    /// Shows `head_bytes` from the front and `tail_bytes` from the back of `text` around a marker;
    /// both are lowered to the next character boundary, and the whole text is shown where they
    /// meet.
    pub fn cut(text: &'a str, head_bytes: usize, tail_bytes: usize) -> Self {
        let head_end = text.floor_char_boundary(head_bytes);
        let tail_start = text.ceil_char_boundary(text.len().saturating_sub(tail_bytes));
        let parts = (text.get(..head_end), text.get(head_end..tail_start), text.get(tail_start..));
        let (Some(head), Some(middle), Some(tail)) = parts else { return Self::whole(text) };
        if middle.is_empty() {
            return Self::whole(text);
        }
        let left_out = middle.chars().count();
        Self { by: "", head, tail, marker: marker(left_out), left_out }
    }

    /// Puts the name of the speaker before the text, for one who isn't whoever the message is by;
    /// empty for none.
    #[must_use]
    pub fn by(self, name: &'a str) -> Self {
        Self { by: name, ..self }
    }

    /// Returns the content of a message that shows the text.
    pub fn content(&'a self) -> Content<'a> {
        self.content_after("")
    }

    /// Returns the content of a message that shows the text after `before`, which belongs to the
    /// message for once and not to the text.
    pub fn content_after(&'a self, before: &'a str) -> Content<'a> {
        let colon = if self.by.is_empty() { "" } else { ": " };
        Content::from_parts([before, self.by, colon, self.head, &self.marker, self.tail])
    }

    /// Returns the number of characters that aren't shown.
    pub const fn left_out(&self) -> usize {
        self.left_out
    }

    /// Returns the bytes shown from the front and from the back; `None` when the text is whole.
    pub const fn cut_bytes(&self) -> Option<(usize, usize)> {
        if self.left_out == 0 { None } else { Some((self.head.len(), self.tail.len())) }
    }
}

/// Shows `text` within `limit` tokens: whole if it fits, else two thirds head and one third tail.
///
/// # Errors
/// Those of the encoder.
pub fn shorten<'a, E: PromptEncoder>(
    encoder: &mut E,
    text: &'a str,
    limit: usize,
) -> Result<ShownText<'a>, EncodeError<E::Error>> {
    if encoder.count(&Content::from(text), limit)? <= limit {
        return Ok(ShownText::whole(text));
    }
    let room = limit.saturating_sub(MARKER_TOKENS);
    let tail_room = room / 3;
    let head_room = room.saturating_sub(tail_room);
    let mut head = fit(encoder, text.len(), head_room, |bytes| front(text, bytes))?;
    let mut tail = fit(encoder, text.len(), tail_room, |bytes| back(text, bytes))?;
    loop {
        let shown = ShownText::cut(text, head, tail);
        let tokens = encoder.count(&shown.content(), limit)?;
        if tokens <= limit || (head == 0 && tail == 0) {
            return Ok(shown);
        }
        head = shrink(head);
        tail = shrink(tail);
    }
}

/// Finds the largest number of bytes, of `len`, for which `take(bytes)` has at most `room` tokens,
/// as near as a few counts get. Follows the measured bytes per token.
fn fit<'a, E: PromptEncoder>(
    encoder: &mut E,
    len: usize,
    room: usize,
    take: impl Fn(usize) -> &'a str,
) -> Result<usize, EncodeError<E::Error>> {
    let mut bytes = len.min(room.saturating_mul(4));
    let mut best = 0;
    for _ in 0..ROUNDS {
        let count_limit = room.saturating_mul(2);
        let tokens = encoder.count(&Content::from(take(bytes)), count_limit)?;
        if tokens <= room {
            best = best.max(bytes);
            if bytes == len || is_close(tokens, room) {
                return Ok(best);
            }
        }
        let aim = scale(bytes, room, tokens.max(1)).min(len);
        bytes = if tokens > room { aim.min(shrink(bytes)) } else { aim };
    }
    while best == 0 && bytes > 0 {
        bytes /= 2;
        if encoder.count(&Content::from(take(bytes)), room)? <= room {
            best = bytes;
        }
    }
    Ok(best)
}

fn front(text: &str, bytes: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes)).unwrap_or("")
}

fn back(text: &str, bytes: usize) -> &str {
    text.get(text.ceil_char_boundary(text.len().saturating_sub(bytes))..).unwrap_or("")
}

/// Returns whether `tokens` uses at least 15/16 of `room`.
const fn is_close(tokens: usize, room: usize) -> bool {
    tokens.saturating_mul(16) >= room.saturating_mul(15)
}

/// Returns `bytes * room / tokens`, a little less so that the next try likely fits.
fn scale(bytes: usize, room: usize, tokens: usize) -> usize {
    let aim = bytes.saturating_mul(room).checked_div(tokens).unwrap_or(0);
    aim.saturating_sub(aim / 64)
}

/// Returns seven eighths, strictly less than a positive `bytes`.
const fn shrink(bytes: usize) -> usize {
    bytes.saturating_sub(bytes / 8).saturating_sub(1)
}

fn marker(left_out: usize) -> heapless::String<MARKER_BYTES> {
    let mut text = heapless::String::new();
    // Never too long: the sentence has 62 bytes and a usize at most 20 digits.
    let _ = write!(text, "\n[... {left_out} characters not shown here; the message is kept ...]\n");
    text
}

/// Room for [`marker`].
const MARKER_BYTES: usize = 96;
/// Tokens set aside for the marker; a tokenizer that needs more makes head and tail shorter.
const MARKER_TOKENS: usize = 32;
/// Counts before [`fit`] halves instead of aiming.
const ROUNDS: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::ByteEncoder;
    use proptest::prelude::*;
    use std::string::{String, ToString};

    #[test]
    fn a_text_that_fits_is_whole() {
        let shown = shorten(&mut ByteEncoder, "hello", 5).unwrap();
        assert_eq!(shown, ShownText::whole("hello"));
    }

    #[test]
    fn a_long_text_keeps_its_ends() {
        let text = "a".repeat(500) + &"m".repeat(200_000) + &"z".repeat(500);
        let shown = shorten(&mut ByteEncoder, &text, 900).unwrap();
        let seen: String = shown.content().parts().collect();
        assert!(seen.starts_with(&"a".repeat(400)) && seen.ends_with(&"z".repeat(200)));
        assert!(seen.contains(&shown.left_out().to_string()));
    }

    proptest! {
        #[test]
        fn what_is_shown_fits_and_is_part_of_the_text(
            text in "(\\PC|[a-z ]{1,40}){0,400}",
            limit in 120_usize..800,
        ) {
            let shown = shorten(&mut ByteEncoder, &text, limit).unwrap();
            let content = shown.content();
            prop_assert!(content.len() <= limit);
            match shown.cut_bytes() {
                None => prop_assert_eq!(content.parts().collect::<String>(), text),
                Some((head, tail)) => {
                    let kept = text.chars().count() - shown.left_out();
                    prop_assert!(head + tail < text.len() && kept > 0);
                    prop_assert_eq!(&ShownText::cut(&text, head, tail), &shown);
                    prop_assert!(head + tail >= (limit - 100) / 2);
                }
            }
        }
    }
}
