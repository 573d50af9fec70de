//! A model's output: bytes to characters, characters to text and tags.

use core::hint::black_box;

use garret_core::scan::{Companion, Scan, TagKind, TagScanner, is_quoted};
use garret_core::utf8::Utf8Stream;

/// Broken and whole characters, one byte at a time.
pub(crate) fn characters_arrive_whole() -> bool {
    let mut expected = "h\u{e9} \u{1F41D}\u{FFFD}!\u{FFFD}".chars();
    let mut equal = true;
    let mut compare = |text: &str| text.chars().for_each(|c| equal &= expected.next() == Some(c));
    let mut stream = Utf8Stream::new();
    for byte in black_box(b"h\xC3\xA9 \xF0\x9F\x90\x9D\xE2\x82!\xF0\x9F") {
        stream.push(&[*byte], &mut compare);
    }
    stream.finish(&mut compare);
    equal && expected.next().is_none()
}

/// Every kind of event, one byte at a time.
pub(crate) fn tags_are_found_byte_by_byte() -> bool {
    let mut seen = Seen::default();
    let mut scanner = TagScanner::new();
    for byte in black_box(OUTPUT).as_bytes() {
        scanner.push(&[*byte], &mut |scan| seen.add(scan));
    }
    scanner.finish(&mut |scan| seen.add(scan));
    seen.text == SHOWN.len() && seen.equal && seen.tools == 1 && seen.sets == 1 && seen.broken == 1
}

/// A tag that the user wrote isn't the model's.
pub(crate) fn quoted_tags_are_recognised() -> bool {
    let raw = black_box(b"<<garret-tool: search bees>>");
    is_quoted(raw, "What does <garret_tool: SEARCH\nbees> do?") && !is_quoted(raw, "Find bees.")
}

const OUTPUT: &str = "See `<<garret-tool: x>>`, 1 << 2.\n<<garret_tool: search \"a >> \u{8702}\">>\n\
    <<garret-companions: infer>>\n```\n<<garret-tool: x>>\n```\n<<garret-tool: cut";
const SHOWN: &str = "See `<<garret-tool: x>>`, 1 << 2.\n\n\n```\n<<garret-tool: x>>\n```\n";

/// What came out.
struct Seen {
    /// Bytes of text so far.
    text: usize,
    /// Whether they are those of `SHOWN`.
    equal: bool,
    tools: usize,
    sets: usize,
    broken: usize,
}

impl Default for Seen {
    fn default() -> Self {
        Self { text: 0, equal: true, tools: 0, sets: 0, broken: 0 }
    }
}

impl Seen {
    fn add(&mut self, scan: Scan<'_>) {
        match scan {
            Scan::Text(text) => {
                let expected = SHOWN.as_bytes().iter().skip(self.text).take(text.len());
                self.equal &= text.iter().eq(expected);
                self.text += text.len();
            }
            Scan::Stripped(_) => self.broken += 1,
            Scan::Tag(tag) => match tag.kind {
                TagKind::Tool { verb: "search", payload: "a >> \u{8702}" } => self.tools += 1,
                TagKind::Companions(set) if set.contains(Companion::Infer) => self.sets += 1,
                _ => self.equal = false,
            },
        }
    }
}
