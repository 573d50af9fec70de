//! Finds the tags in a model's output while it streams: which bytes are control, which are text.
//!
//! A model asks for something by writing a tag:
//!
//! ```text
//! <<garret-tool: VERB PAYLOAD>>
//! <<garret-companions: compact, infer>>
//! ```
//!
//! [`TagScanner`] passes text on at once and holds back only what can still become a tag: from a
//! `<` on, while the bytes are the beginning of a tag's spelling.
//!
//! ```
//! use garret_core::scan::{Scan, TagKind, TagScanner};
//!
//! let mut scanner = TagScanner::new();
//! let mut tags = 0;
//! for piece in ["One moment. <<gar", "ret_tool: search \"bees\"", ">>"] {
//!     scanner.push(piece.as_bytes(), &mut |scan| match scan {
//!         Scan::Text(text) => assert_eq!(text, b"One moment. "),
//!         Scan::Tag(tag) => {
//!             assert_eq!(tag.kind, TagKind::Tool { verb: "search", payload: "bees" });
//!             tags += 1;
//!         }
//!         Scan::Stripped(_) => unreachable!(),
//!     });
//! }
//! scanner.finish(&mut |_| unreachable!());
//! assert_eq!(tags, 1);
//! ```
//!
//! A scanner [with calls](TagScanner::with_calls) finds those of a model's own template, too:
//! `<tool_call>` and a JSON object, then `</tool_call>`. The closer may be missing behind a whole
//! object, and the object may lack its last braces or have some too many. What begins with
//! `<tool_call>` and holds no object is text; an object that the output cuts off is stripped.
//!
//! # What is a tag
//!
//! - **Opener**: `<<` or, repaired, `<`; `garret`; `-` or, repaired, `_` or blanks; `tool` or
//!   `companions`, with or without the `s`; `:` or, repaired, white space or an immediate closer.
//!   ASCII case doesn't matter; blanks (spaces and tabs) may stand between these parts.
//! - **Body** of a tool's tag: a verb of ASCII letters, digits, `-` and `_`, then the payload: any
//!   UTF-8 over any number of lines, without the white space around it and without one pair of
//!   quotes (`"` or `'`). The caller knows the verbs. Of a companions' tag: names in any order;
//!   unknown ones are ignored.
//! - **Closer**: the first `>>`. In a payload that begins with a quote, one directly after the same
//!   quote (white space aside). Repaired: on a line without `>>`, a single `>`, the first that
//!   stands after a word and before white space or the line's end, else the line's last.
//!
//! A tag that isn't closed before a blank line, before the next tag's opener (outside of quotes) or
//! at the end of the output is stripped up to there: reported as [`Scan::Stripped`], never shown.
//! If a quotation was what hid the closer, the quotes are ignored first. So is an opener stripped
//! that the end of the output cuts off after `<<garret-`; a shorter beginning is text. A tool's tag
//! without a verb and a tag that isn't UTF-8 are stripped, too.
//!
//! Code is text and its tags are shown, not reported: fences of three or more backticks or tildes
//! at the beginning of a line (also in block quotes and list items), with their first line, and
//! code spans. A run of backticks opens a span only if an equal run closes it before a blank line;
//! a tag after such a run is held back until that is known.
//!
//! Limits: a tag has at most [`TagScanner::MAX_TAG_BYTES`] bytes, closer included. If it isn't
//! closed by then it is no tag: its opener is shown as it is and what follows is scanned anew. A
//! code span that closes further behind a tag than that isn't seen. Indented code blocks are read
//! as prose. Everything that isn't part of a tag comes out byte for byte, valid UTF-8 or not; a
//! piece of text can end in the middle of a character.

mod call;
mod grammar;
mod markdown;
mod quoted;
mod tag;

pub use quoted::is_quoted;
pub use tag::{Companion, Companions, TagDefect, TagKind};

use grammar::{Limit, Verdict};
use markdown::Markdown;

/// Splits a model's output into text and tags. See the [module](self).
#[derive(Clone, Debug)]
pub struct TagScanner {
    /// Empty, or a `<` outside of a fence and what followed.
    held: heapless::Vec<u8, { TagScanner::MAX_TAG_BYTES }>,
    shown: Markdown,
    /// True when calls are found, false when they are text.
    calls: bool,
}

impl TagScanner {
    /// Most bytes a tag can have, from its first `<` to its last `>`, and most that are held back.
    pub const MAX_TAG_BYTES: usize = 1_024;

    /// Creates a scanner at the beginning of an output.
    pub const fn new() -> Self {
        Self { held: heapless::Vec::new(), shown: Markdown::new(), calls: false }
    }

    /// Creates a scanner that finds `<tool_call>` as well: for a model whose template tells it of
    /// tools.
    pub const fn with_calls() -> Self {
        Self { held: heapless::Vec::new(), shown: Markdown::new(), calls: true }
    }

    /// Takes the next bytes of the output and reports what they decide, in the order of the output.
    /// Pieces of text are never empty; where they are cut means nothing.
    pub fn push(&mut self, bytes: &[u8], sink: &mut impl FnMut(Scan<'_>)) {
        let mut rest = bytes;
        while !rest.is_empty() {
            if self.held.is_empty() {
                let text = self.shown.read_to_opener(rest);
                rest = show(rest, text, sink);
            }
            let taken = rest.iter().take_while(|&&byte| self.held.push(byte).is_ok()).count();
            rest = rest.get(taken..).unwrap_or_default();
            self.settle(false, sink);
        }
    }

    /// Ends the output and reports what was held back. The scanner is new again.
    pub fn finish(&mut self, sink: &mut impl FnMut(Scan<'_>)) {
        self.settle(true, sink);
        *self = Self { calls: self.calls, ..Self::new() };
    }

    /// Returns how many bytes are held back.
    pub fn held(&self) -> usize {
        self.held.len()
    }

    /// Reports everything in the buffer that is decided.
    fn settle(&mut self, end: bool, sink: &mut impl FnMut(Scan<'_>)) {
        while !self.held.is_empty() {
            let text = self.shown.read_to_opener(&self.held);
            let done = if text > 0 {
                show(&self.held, text, sink);
                text
            } else {
                let limit = match (end, self.held.is_full()) {
                    (true, _) => Limit::End,
                    (_, true) => Limit::Cap,
                    _ => Limit::None,
                };
                self.settle_opener(limit, sink)
            };
            if done == 0 {
                return;
            }
            self.held.drain(..done.min(self.held.len()));
        }
    }

    /// Reports what the `<` at the front of the buffer begins; returns how many bytes that are, 0
    /// when it is undecided.
    fn settle_opener(&mut self, limit: Limit, sink: &mut impl FnMut(Scan<'_>)) -> usize {
        let call = if self.calls { call::find(&self.held, limit) } else { None };
        let mut found = call.unwrap_or_else(|| grammar::find(&self.held, limit));
        if self.shown.in_span() && !matches!(found, Verdict::Text(_)) {
            match self.shown.closes(&self.held, limit != Limit::None) {
                Some(true) => found = Verdict::Text(1),
                Some(false) => self.shown.drop_span(),
                None => found = Verdict::Partial,
            }
        }
        let (len, scan) = match found {
            Verdict::Partial => return 0,
            Verdict::Text(len) => {
                let text = self.held.get(..len).unwrap_or_default();
                text.iter().for_each(|&byte| self.shown.read(byte));
                sink(Scan::Text(text));
                return len;
            }
            Verdict::Stripped(len, why) => {
                let raw = self.held.get(..len).unwrap_or_default();
                (len, Scan::Stripped(StrippedTag { raw, why }))
            }
            Verdict::Tag(len, kind) => {
                let raw = self.held.get(..len).unwrap_or_default();
                (len, Scan::Tag(Tag { kind, raw }))
            }
        };
        self.shown.skip_tag();
        sink(scan);
        len
    }
}

impl Default for TagScanner {
    fn default() -> Self {
        Self::new()
    }
}

/// A piece of a model's output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scan<'a> {
    /// Text to show, as the model wrote it.
    Text(&'a [u8]),
    /// A tag to act upon, unless it [is quoted](is_quoted) from the user.
    Tag(Tag<'a>),
    /// A broken tag: not to be shown, nothing to act upon.
    Stripped(StrippedTag<'a>),
}

/// A tag in a model's output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag<'a> {
    /// Wish of the tag.
    pub kind: TagKind<'a>,
    /// The tag as the model spelled it, from its first `<` to its last `>`.
    pub raw: &'a [u8],
}

/// A tag that was taken out of the text because it couldn't be understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StrippedTag<'a> {
    /// The bytes the model wrote.
    pub raw: &'a [u8],
    /// Defect of the tag.
    pub why: TagDefect,
}

/// Reports the first `len` bytes as text and returns the others.
fn show<'a>(bytes: &'a [u8], len: usize, sink: &mut impl FnMut(Scan<'_>)) -> &'a [u8] {
    let (text, rest) = bytes.split_at_checked(len).unwrap_or((bytes, &[]));
    if !text.is_empty() {
        sink(Scan::Text(text));
    }
    rest
}
