//! Calls in the form that many chat templates teach: `<tool_call>{...}</tool_call>` around JSON.
//!
//! As with tags, every decision is taken at the first byte that allows it and depends on nothing
//! after that byte.

use core::ops::Range;

use super::grammar::{Limit, Verdict};
use super::tag::{TagDefect, TagKind};

/// Opener of a call.
pub(super) const OPENER: &[u8] = b"<tool_call>";
/// Closer of a call.
pub(super) const CLOSER: &[u8] = b"</tool_call>";

/// Decides about `held`, which begins with `<`; `None` where that begins no call.
pub(super) fn find(held: &[u8], limit: Limit) -> Option<Verdict<'_>> {
    let Some(body) = held.strip_prefix(OPENER) else {
        let open = OPENER.starts_with(held) && limit == Limit::None;
        return open.then_some(Verdict::Partial);
    };
    let lead = body.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
    let from = OPENER.len().saturating_add(lead);
    Some(match (held.get(from), limit) {
        (Some(b'{'), _) => find_end(held, from, limit),
        (None, Limit::None) => Verdict::Partial,
        (None, Limit::End) => Verdict::Stripped(held.len(), TagDefect::Unclosed),
        _ => Verdict::Text(OPENER.len()),
    })
}

/// Decides about a call whose JSON begins at `from`.
fn find_end(held: &[u8], from: usize, limit: Limit) -> Verdict<'_> {
    let mut json = Json::default();
    for (at, byte) in held.iter().enumerate().skip(from) {
        if !json.in_string && closes(held, at) {
            return call(held, from..at, at.saturating_add(CLOSER.len()));
        }
        json.read(*byte);
        if json.is_whole() {
            return after(held, from..at.saturating_add(1), limit);
        }
    }
    let cut_off = match limit {
        Limit::None => return Verdict::Partial,
        Limit::Cap => Verdict::Text(OPENER.len()),
        Limit::End => Verdict::Stripped(held.len(), TagDefect::Unclosed),
    };
    // A text without its end hid the closer: it was none.
    let closer = (from..held.len()).find(|at| closes(held, *at));
    closer.map_or(cut_off, |at| call(held, from..at, at.saturating_add(CLOSER.len())))
}

/// Decides about a call whose JSON is whole: its closer may follow, behind braces too many.
fn after(held: &[u8], json: Range<usize>, limit: Limit) -> Verdict<'_> {
    let rest = held.get(json.end..).unwrap_or_default();
    let loose = |byte: &&u8| byte.is_ascii_whitespace() || **byte == b'}';
    let at = json.end.saturating_add(rest.iter().take_while(loose).count());
    let rest = held.get(at..).unwrap_or_default();
    if rest.starts_with(CLOSER) {
        return call(held, json, at.saturating_add(CLOSER.len()));
    }
    let end = match (CLOSER.starts_with(rest), limit) {
        (true, Limit::None) => return Verdict::Partial,
        (true, Limit::End) => held.len(),
        _ => json.end,
    };
    call(held, json, end)
}

/// Returns the call of `end` bytes.
fn call(held: &[u8], json: Range<usize>, end: usize) -> Verdict<'_> {
    match core::str::from_utf8(held.get(json).unwrap_or_default()) {
        Ok(json) => Verdict::Tag(end, TagKind::Call { json: json.trim_ascii() }),
        Err(_) => Verdict::Stripped(end, TagDefect::NotUtf8),
    }
}

fn closes(held: &[u8], at: usize) -> bool {
    held.get(at..).is_some_and(|rest| rest.starts_with(CLOSER))
}

/// State of reading a JSON text.
#[derive(Default)]
struct Json {
    depth: usize,
    in_string: bool,
    escaped: bool,
}

impl Json {
    fn read(&mut self, byte: u8) {
        match byte {
            _ if self.escaped => self.escaped = false,
            b'\\' if self.in_string => self.escaped = true,
            b'"' => self.in_string = !self.in_string,
            _ if self.in_string => {}
            b'{' | b'[' => self.depth = self.depth.saturating_add(1),
            b'}' | b']' => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
    }

    const fn is_whole(&self) -> bool {
        self.depth == 0 && !self.in_string
    }
}
