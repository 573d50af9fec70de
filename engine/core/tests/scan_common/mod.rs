//! What the scanner's tests share: owned events and a way to run the scanner over pieces.

use garret_core::scan::{Companions, Scan, TagDefect, TagKind, TagScanner};

/// An event with its bytes. Text in a row is one event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ev {
    /// ShownText text.
    Text(Vec<u8>),
    /// Verb, payload and raw bytes.
    Tool(String, String, Vec<u8>),
    /// Set and raw bytes.
    Companions(Companions, Vec<u8>),
    /// Raw bytes and what is wrong.
    Stripped(Vec<u8>, TagDefect),
    /// JSON and raw bytes.
    Call(String, Vec<u8>),
}

/// Events of an output that arrives in `pieces`.
#[allow(dead_code, reason = "not every test binary uses every helper")]
pub(crate) fn scan<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<Ev> {
    scan_with(TagScanner::new(), pieces)
}

/// Events of an output that arrives in `pieces` at `scanner`.
pub(crate) fn scan_with<'a>(
    mut scanner: TagScanner,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> Vec<Ev> {
    let mut events = Vec::new();
    for piece in pieces {
        scanner.push(piece, &mut |scan| add(&mut events, scan));
    }
    scanner.finish(&mut |scan| add(&mut events, scan));
    events
}

/// Events of `text` that arrives as one piece.
#[allow(dead_code, reason = "not every test binary uses every helper")]
pub(crate) fn scan_whole(text: impl AsRef<[u8]>) -> Vec<Ev> {
    scan([text.as_ref()])
}

/// Text event.
#[allow(dead_code, reason = "not every test binary uses every helper")]
pub(crate) fn text(text: &str) -> Ev {
    Ev::Text(text.as_bytes().to_vec())
}

/// Appends an event.
pub(crate) fn add(events: &mut Vec<Ev>, scan: Scan<'_>) {
    match scan {
        Scan::Text(bytes) => add_text(events, bytes),
        Scan::Stripped(stripped) => events.push(Ev::Stripped(stripped.raw.to_vec(), stripped.why)),
        Scan::Tag(tag) => events.push(match tag.kind {
            TagKind::Tool { verb, payload } => {
                Ev::Tool(verb.into(), payload.into(), tag.raw.to_vec())
            }
            TagKind::Companions(set) => Ev::Companions(set, tag.raw.to_vec()),
            TagKind::Call { json } => Ev::Call(json.into(), tag.raw.to_vec()),
        }),
    }
}

/// Appends text to the text event at the end, or as a new one.
pub(crate) fn add_text(events: &mut Vec<Ev>, bytes: &[u8]) {
    assert!(!bytes.is_empty(), "a piece of text is never empty");
    if let Some(Ev::Text(text)) = events.last_mut() {
        text.extend_from_slice(bytes);
    } else {
        events.push(Ev::Text(bytes.to_vec()));
    }
}
