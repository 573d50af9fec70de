//! The spelling of tags: decides about the bytes from a `<` on.
//!
//! Every decision is taken at the first byte that allows it and depends on nothing after that byte,
//! which is why it doesn't matter how the output was cut into pieces.

use core::ops::Range;

use super::tag::{Companions, TagDefect, TagKind};

/// Verdict on the bytes from a `<` on.
pub(super) enum Verdict<'a> {
    /// Undecided until more bytes come.
    Partial,
    /// Text, so many bytes of it.
    Text(usize),
    /// A tag that asks for nothing, of so many bytes.
    Stripped(usize, TagDefect),
    /// A tag of so many bytes.
    Tag(usize, TagKind<'a>),
}

/// Limit of the bytes that are held: what may follow them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Limit {
    /// More bytes may follow.
    None,
    /// More bytes may follow, but a tag can't be longer.
    Cap,
    /// No byte follows.
    End,
}

/// Decides about `held`, which begins with `<`.
pub(super) fn find(held: &[u8], limit: Limit) -> Verdict<'_> {
    match opener(held) {
        Opener::No => Verdict::Text(1),
        Opener::Yes { name, len } => find_body(held, name, len, limit),
        Opener::Partial { .. } if limit == Limit::None => Verdict::Partial,
        Opener::Partial { certain: true } if limit == Limit::End => {
            Verdict::Stripped(held.len(), TagDefect::Unclosed)
        }
        Opener::Partial { .. } => Verdict::Text(1),
    }
}

/// Splits the tag spelled `raw` into what it is for, in the singular, and what follows its opener.
pub(super) fn split_opener(raw: &[u8]) -> Option<(&'static str, &[u8])> {
    let (name, len) = match opener(raw) {
        Opener::Yes { name: Name::Tool, len } => ("tool", len),
        Opener::Yes { name: Name::Companions, len } => ("companion", len),
        _ => return None,
    };
    raw.get(len..).map(|body| (name, body))
}

/// Decides about a tag whose opener has `from` bytes.
fn find_body(held: &[u8], name: Name, from: usize, limit: Limit) -> Verdict<'_> {
    let quote = quote_at(held, name, from);
    let mut stop = match closer(held, from..held.len(), quote, limit) {
        Closer::Partial => return Verdict::Partial,
        Closer::At { inner, end } => return whole(held, name, from..inner, end),
        Closer::Stop(stop) => stop,
    };
    if quote.is_some() {
        // The quotation has no end: it was none.
        let limit = if stop == held.len() { limit } else { Limit::End };
        match closer(held, from..stop, None, limit) {
            Closer::At { inner, end } => return whole(held, name, from..inner, end),
            Closer::Stop(earlier) => stop = earlier,
            Closer::Partial => {}
        }
    }
    if limit == Limit::Cap && stop == held.len() {
        return Verdict::Text(from);
    }
    Verdict::Stripped(stop, TagDefect::Unclosed)
}

/// Returns the tag of `end` bytes whose verb and payload, or list, are in `inner`.
fn whole(held: &[u8], name: Name, inner: Range<usize>, end: usize) -> Verdict<'_> {
    let body = held.get(inner).unwrap_or_default();
    let Ok(body) = core::str::from_utf8(body) else {
        return Verdict::Stripped(end, TagDefect::NotUtf8);
    };
    match name {
        Name::Companions => Verdict::Tag(end, TagKind::Companions(Companions::parse(body))),
        Name::Tool => {
            let body = body.trim_ascii();
            let verb_len = body.bytes().take_while(|&byte| is_word(byte)).count();
            match body.split_at_checked(verb_len) {
                Some((verb, payload)) if !verb.is_empty() => {
                    let payload = unquote(payload.trim_ascii());
                    Verdict::Tag(end, TagKind::Tool { verb, payload })
                }
                _ => Verdict::Stripped(end, TagDefect::NoVerb),
            }
        }
    }
}

/// `text` without the pair of quotes around it; `"a" or "b"` has no such pair.
fn unquote(text: &str) -> &str {
    let inner = |&quote: &char| text.strip_prefix(quote)?.strip_suffix(quote);
    ['"', '\'']
        .iter()
        .find_map(|quote| inner(quote).filter(|inner| !inner.contains(*quote)))
        .unwrap_or(text)
}

/// Name of a tag, which says what it is for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Name {
    Tool,
    Companions,
}

/// Verdict on the opener of bytes that begin with `<`.
enum Opener {
    /// No opener.
    No,
    /// Bytes that end within an opener; `certain` when nothing but a tag is spelled like that.
    Partial { certain: bool },
    /// An opener that has `len` bytes, colon included.
    Yes { name: Name, len: usize },
}

fn opener(bytes: &[u8]) -> Opener {
    let mut cursor = Cursor { bytes, at: 0 };
    cursor.eat(|byte| byte == b'<');
    cursor.eat(|byte| byte == b'<');
    cursor.skip(is_blank);
    match cursor.word(b"garret") {
        Word::Whole => {}
        Word::Cut => return Opener::Partial { certain: false },
        Word::Other => return Opener::No,
    }
    let before = cursor.at;
    cursor.skip(is_blank);
    let certain = cursor.eat(|byte| byte == b'-' || byte == b'_');
    cursor.skip(is_blank);
    if cursor.peek().is_none() {
        return Opener::Partial { certain };
    }
    if cursor.at == before {
        return Opener::No;
    }
    match name(&mut cursor) {
        Ok(name) => end_of_opener(cursor, name),
        Err(Word::Cut) => Opener::Partial { certain },
        Err(_) => Opener::No,
    }
}

/// Reads `tool`, `companions` or the other number of either.
fn name(cursor: &mut Cursor<'_>) -> Result<Name, Word> {
    let found = match cursor.word(b"companion") {
        Word::Whole => Name::Companions,
        Word::Cut => return Err(Word::Cut),
        Word::Other => match cursor.word(b"tool") {
            Word::Whole => Name::Tool,
            other => return Err(other),
        },
    };
    cursor.eat(|byte| byte.eq_ignore_ascii_case(&b's'));
    Ok(found)
}

/// Reads what separates the name from the body: a colon, white space or nothing before a `>`.
fn end_of_opener(mut cursor: Cursor<'_>, name: Name) -> Opener {
    let before = cursor.at;
    cursor.skip(is_blank);
    if cursor.eat(|byte| byte == b':') {
        return Opener::Yes { name, len: cursor.at };
    }
    match cursor.peek() {
        None => Opener::Partial { certain: true },
        Some(byte) if cursor.at > before || byte.is_ascii_whitespace() || byte == b'>' => {
            Opener::Yes { name, len: cursor.at }
        }
        Some(_) => Opener::No,
    }
}

/// Returns where a tool's payload begins, if that is a quote.
fn quote_at(held: &[u8], name: Name, from: usize) -> Option<usize> {
    let mut cursor = Cursor { bytes: held, at: from };
    cursor.skip(|byte| byte.is_ascii_whitespace());
    cursor.skip(is_word);
    cursor.skip(|byte| byte.is_ascii_whitespace());
    let quoted = matches!(cursor.peek(), Some(b'"' | b'\''));
    (quoted && name == Name::Tool).then_some(cursor.at)
}

/// Verdict on the body of a tag.
enum Closer {
    /// More bytes must tell.
    Partial,
    /// A body up to its closer, which begins at `inner` and ends at `end`.
    At { inner: usize, end: usize },
    /// A body that isn't closed up to here: the end, a blank line or the next tag.
    Stop(usize),
}

impl Closer {
    /// A stop at `stop`, unless a single `>` before it closes.
    fn stop(single: Option<Single>, stop: usize) -> Self {
        match single {
            Some(Single { at, .. }) => Self::At { inner: at, end: at.saturating_add(1) },
            None => Self::Stop(stop),
        }
    }
}

/// A single `>` that may close a tag.
#[derive(Clone, Copy)]
struct Single {
    at: usize,
    /// True when it stands like a closer: after a word and before white space.
    likely: bool,
}

/// Looks for the closer in `held[body]`; a quotation that begins at `quote` hides it.
fn closer(held: &[u8], body: Range<usize>, quote: Option<usize>, limit: Limit) -> Closer {
    let last = limit != Limit::None;
    let mut cursor = Cursor { bytes: held, at: body.start };
    let mut single: Option<Single> = None;
    let mut quoted: Option<u8> = None;
    while let Some(byte) = cursor.peek().filter(|_| cursor.at < body.end) {
        let at = cursor.at;
        let step = match byte {
            b'\n' => line_end(&cursor, single, last),
            _ if quoted == Some(byte) => {
                let ends = ends_quotation(cursor.rest());
                quoted = quoted.filter(|_| ends == Some(false) || (ends.is_none() && last));
                (ends.is_none() && !last).then_some(Closer::Partial)
            }
            _ if quoted.is_some() => None,
            b'>' => angle(&cursor, &mut single, limit),
            b'<' => next_tag(&cursor, single, last),
            _ => {
                quoted = (quote == Some(at)).then_some(byte);
                None
            }
        };
        if let Some(closer) = step {
            return closer;
        }
        cursor.at = at.saturating_add(1);
    }
    match last {
        false => Closer::Partial,
        true => Closer::stop(single, cursor.at),
    }
}

/// Decides by a `>` at the cursor.
fn angle(cursor: &Cursor<'_>, single: &mut Option<Single>, limit: Limit) -> Option<Closer> {
    let at = cursor.at;
    let next = cursor.rest().first().copied();
    if next == Some(b'>') {
        return Some(Closer::At { inner: at, end: at.saturating_add(2) });
    }
    match (next, limit) {
        (None, Limit::None) => return Some(Closer::Partial),
        // The first half of a closer that comes too late.
        (None, Limit::Cap) => return None,
        _ => {}
    }
    let before = cursor.bytes.get(..at).unwrap_or_default().last();
    let likely = next.is_none_or(|byte| byte.is_ascii_whitespace())
        && before.is_some_and(|byte| !byte.is_ascii_whitespace());
    if !single.is_some_and(|earlier| earlier.likely) {
        *single = Some(Single { at, likely });
    }
    None
}

/// Decides by a line break at the cursor.
fn line_end(cursor: &Cursor<'_>, single: Option<Single>, last: bool) -> Option<Closer> {
    let line = cursor.bytes.get(..cursor.at).unwrap_or_default();
    let stop = line.strip_suffix(b"\r").unwrap_or(line).len();
    if single.is_some() {
        return Some(Closer::stop(single, stop));
    }
    match cursor.rest().iter().find(|&&byte| !is_blank(byte) && byte != b'\r') {
        Some(b'\n') => Some(Closer::Stop(stop)),
        Some(_) => None,
        None => (!last).then_some(Closer::Partial),
    }
}

/// Decides by a `<` at the cursor.
fn next_tag(cursor: &Cursor<'_>, single: Option<Single>, last: bool) -> Option<Closer> {
    match opener(cursor.bytes.get(cursor.at..).unwrap_or_default()) {
        Opener::No => None,
        Opener::Partial { .. } => (!last).then_some(Closer::Partial),
        Opener::Yes { .. } => Some(Closer::stop(single, cursor.at)),
    }
}

/// Returns whether `rest`, the bytes after a quote, let it end the quotation: a closer follows.
fn ends_quotation(rest: &[u8]) -> Option<bool> {
    rest.iter().find(|byte| !byte.is_ascii_whitespace()).map(|&byte| byte == b'>')
}

/// Verdict on bytes that may spell a word.
enum Word {
    /// The whole word.
    Whole,
    /// A beginning of the word, at the end of the bytes.
    Cut,
    /// Anything else.
    Other,
}

/// A place in bytes.
#[derive(Clone, Copy)]
struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    /// Returns the bytes after the one at the cursor.
    fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.at.saturating_add(1)..).unwrap_or_default()
    }

    fn eat(&mut self, wanted: impl Fn(u8) -> bool) -> bool {
        let eaten = self.peek().is_some_and(wanted);
        self.at = self.at.saturating_add(usize::from(eaten));
        eaten
    }

    fn skip(&mut self, wanted: impl Fn(u8) -> bool) {
        while self.eat(&wanted) {}
    }

    /// Passes over `word`, which is in lower case, if it is there.
    fn word(&mut self, word: &[u8]) -> Word {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let same = rest.iter().zip(word).take_while(|(a, b)| a.eq_ignore_ascii_case(b)).count();
        if same == word.len() {
            self.at = self.at.saturating_add(same);
            return Word::Whole;
        }
        if same == rest.len() { Word::Cut } else { Word::Other }
    }
}

fn is_blank(byte: u8) -> bool {
    byte == b' ' || byte == b'\t'
}

/// Bytes a verb is made of.
fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_'
}
