//! Web addresses, e-mail addresses, IP addresses and UUIDs.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::ops::Range;

/// The kind of a [`Span`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SpanKind {
    /// `https://...` or `www....`.
    Url,
    /// `name@host.example`.
    Email,
    /// An IPv4 or IPv6 address.
    Ip,
    /// A UUID.
    Uuid,
}

/// A part of a text that names one thing exactly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// The kind of the thing.
    pub kind: SpanKind,
    /// The bytes of the text.
    pub at: Range<usize>,
}

/// Returns the spans of a text, at most [`MAX_SPANS`], in their order.
///
/// ```
/// use garret_language::spans::{self, SpanKind};
///
/// let spans = spans::find("Ask ada@example.org.");
/// assert_eq!((spans[0].kind, spans[0].at.clone()), (SpanKind::Email, 4..19));
/// ```
pub fn find(text: &str) -> Vec<Span> {
    let mut found = Vec::new();
    let mut start = None;
    let ends = text.char_indices().chain([(text.len(), ' ')]);
    for (at, c) in ends {
        let outside = c.is_whitespace() || matches!(c, '<' | '>' | '"' | '(' | ')' | ',' | ';');
        match (outside, start) {
            (false, None) => start = Some(at),
            (true, Some(from)) => {
                found.extend(classify(text, from..at));
                start = None;
            }
            _ => {}
        }
        if found.len() == MAX_SPANS {
            break;
        }
    }
    found
}

fn classify(text: &str, at: Range<usize>) -> Option<Span> {
    let written = text.get(at.clone())?;
    let bare = written.trim_end_matches(['.', ':', '!', '?', '\'', ']', '}']);
    let opening = written.len() - written.trim_start_matches(['[', '{', '\'']).len();
    let bare = bare.get(opening..)?;
    let start = at.start + opening;
    let kind = kind(bare)?;
    Some(Span { kind, at: start..start + bare.len() })
}

fn kind(word: &str) -> Option<SpanKind> {
    let scheme = word.split_once("://").map(|(scheme, host)| {
        matches!(scheme, "http" | "https" | "ftp" | "file") && !host.is_empty()
    });
    let is_www = word.strip_prefix("www.").is_some_and(|rest| rest.contains('.'));
    if scheme == Some(true) || is_www {
        Some(SpanKind::Url)
    } else if is_email(word) {
        Some(SpanKind::Email)
    } else if is_ip(word) {
        Some(SpanKind::Ip)
    } else if is_uuid(word) {
        Some(SpanKind::Uuid)
    } else {
        None
    }
}

fn is_email(word: &str) -> bool {
    let Some((name, host)) = word.split_once('@') else { return false };
    let mut labels = host.split('.');
    !name.is_empty()
        && host.contains('.')
        && labels.all(|label| {
            !label.is_empty() && label.chars().all(|c| c.is_alphanumeric() || c == '-')
        })
}

/// Returns true for an address, with or without a port or a prefix behind it; `::` alone is none.
fn is_ip(word: &str) -> bool {
    let address = word.split_once('/').map_or(word, |(address, _)| address);
    let v4 = address.split_once(':').map_or(address, |(address, _)| address);
    v4.parse::<Ipv4Addr>().is_ok() || (address.len() > 4 && address.parse::<Ipv6Addr>().is_ok())
}

fn is_uuid(word: &str) -> bool {
    let lengths = [8, 4, 4, 4, 12];
    let parts: Vec<_> = word.split('-').collect();
    let hex = |part: &str| part.bytes().all(|byte| byte.is_ascii_hexdigit());
    parts.len() == lengths.len()
        && parts.iter().zip(lengths).all(|(part, length)| part.len() == length && hex(part))
}

/// Spans of a text that are read.
pub const MAX_SPANS: usize = 12;
