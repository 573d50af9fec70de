//! Dates that a text names, in numbers or words.
//!
//! Times that a question asks for, relative ones too, are read by
//! [`time_query`](crate::time_query).

use std::ops::Range;

use jiff::civil::Date;

use crate::calendar::month;
use crate::casefold;

/// A date that a text names, and its place there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DateMention {
    /// The year, if that is named.
    pub year: Option<i16>,
    /// The month, 1 to 12.
    pub month: i8,
    /// The day, 1 to 31.
    pub day: i8,
    /// The bytes of the text that name it.
    pub at: Range<usize>,
}

impl DateMention {
    /// Returns the date itself; without a year, the first such day that isn't before `today`.
    pub fn resolve(&self, today: Date) -> Option<Date> {
        if let Some(year) = self.year {
            return Date::new(year, self.month, self.day).ok();
        }
        // Eight years hold a 29 February.
        (0..=8).find_map(|ahead| {
            let date = Date::new(today.year().checked_add(ahead)?, self.month, self.day).ok()?;
            (date >= today).then_some(date)
        })
    }
}

/// Returns the dates of a text, at most [`MAX_DATES`], in their order.
///
/// ```
/// use garret_language::dates;
///
/// let text = "due on 24 December 2026";
/// let date = &dates::find(text)[0];
/// assert_eq!((date.year, date.month, date.day), (Some(2026), 12, 24));
/// assert_eq!(&text[date.at.clone()], "24 December 2026");
/// ```
pub fn find(text: &str) -> Vec<DateMention> {
    let pieces = pieces(text);
    let mut found = Vec::new();
    let mut at = 0;
    while at < pieces.len() && found.len() < MAX_DATES {
        let rest = pieces.get(at..).unwrap_or_default();
        let date = numeric(rest).or_else(|| cjk(rest)).or_else(|| worded(rest));
        at += match date {
            Some((date, taken)) if is_real(&date) => {
                found.push(date);
                taken
            }
            _ => 1,
        };
    }
    found
}

/// A number, a word or a mark of a text.
#[derive(Debug)]
struct Piece<'a> {
    text: &'a str,
    folded: String,
    at: Range<usize>,
    number: Option<i16>,
}

fn pieces(text: &str) -> Vec<Piece<'_>> {
    #[derive(PartialEq, Clone, Copy)]
    enum Kind {
        Digit,
        Letter,
        Mark,
    }
    let kind = |c: char| match c {
        '0'..='9' => Some(Kind::Digit),
        c if c.is_alphanumeric() => Some(Kind::Letter),
        c if c.is_whitespace() => None,
        _ => Some(Kind::Mark),
    };
    let mut pieces: Vec<Piece<'_>> = Vec::new();
    let mut open: Option<(usize, Kind)> = None;
    for (at, c) in text.char_indices().chain([(text.len(), ' ')]) {
        let now = if at == text.len() { None } else { kind(c) };
        let goes_on = open.is_some_and(|(_, kind)| now == Some(kind) && kind != Kind::Mark);
        if goes_on {
            continue;
        }
        if let Some((start, _)) = open.take() {
            let written = text.get(start..at).unwrap_or_default();
            let number = if written.len() <= 4 { written.parse().ok() } else { None };
            let folded = casefold(written).into_owned();
            pieces.push(Piece { text: written, folded, at: start..at, number });
        }
        open = now.map(|kind| (at, kind));
    }
    pieces
}

/// Reads `2026-12-24`, `24.12.2026`, `24/12/2026`, the last two with the day first unless it can't be.
fn numeric(pieces: &[Piece<'_>]) -> Option<(DateMention, usize)> {
    let [a, first, b, second, c, rest @ ..] = pieces else { return None };
    let joined = [a, first, b, second].into_iter().zip([first, b, second, c]);
    if first.text != second.text || joined.into_iter().any(|(a, b)| a.at.end != b.at.start) {
        return None;
    }
    let (x, y, z) = (a.number?, b.number?, c.number?);
    let (year, month, day) = match (first.text, a.text.len(), c.text.len()) {
        ("-" | "/" | ".", 4, 1..=2) => (x, y, z),
        ("." | "/", 1..=2, 4) if y > 12 => (z, x, y),
        ("." | "/", 1..=2, 4) => (z, y, x),
        _ => return None,
    };
    // Versions and addresses: 1.2.2026.4.
    let goes_on =
        rest.first().is_some_and(|next| next.at.start == c.at.end && next.text == first.text);
    let more = goes_on && rest.get(1).is_some_and(|next| next.number.is_some());
    let at = a.at.start..c.at.end;
    (!more).then(|| Some((dated(Some(year), month, day, at)?, 5)))?
}

/// Reads `2026\u{5e74}12\u{6708}24\u{65e5}` and its Korean form, with or without a year.
fn cjk(pieces: &[Piece<'_>]) -> Option<(DateMention, usize)> {
    let unit = |piece: &Piece<'_>, units: [char; 2]| piece.text.starts_with(units);
    let read = |pieces: &[Piece<'_>]| {
        let [month, m, day, d, ..] = pieces else { return None };
        let fits = unit(m, ['\u{6708}', '\u{c6d4}']) && unit(d, ['\u{65e5}', '\u{c77c}']);
        let end = d.at.start + d.text.chars().next().map_or(0, char::len_utf8);
        fits.then_some((month.number?, day.number?, end))
    };
    let [first, y, rest @ ..] = pieces else { return None };
    if unit(y, ['\u{5e74}', '\u{b144}']) {
        let (month, day, end) = read(rest)?;
        return Some((dated(first.number, month, day, first.at.start..end)?, 6));
    }
    let (month, day, end) = read(pieces)?;
    Some((dated(None, month, day, first.at.start..end)?, 4))
}

/// Reads `24 December 2026`, `December 24th, 2026`, `24. Dezember`, `24 de diciembre de 2026`.
fn worded(pieces: &[Piece<'_>]) -> Option<(DateMention, usize)> {
    let first = pieces.first()?;
    let mut at = 1;
    let (month, day, end);
    if let Some(named) = month_of(first) {
        let second = pieces.get(at)?;
        day = second.number.filter(|_| second.text.len() <= 2)?;
        month = named;
        end = second.at.end;
        at += 1;
        at += usize::from(
            pieces.get(at).is_some_and(|next| next.at.start == end && is_ordinal(next)),
        );
    } else {
        day = first.number.filter(|_| first.text.len() <= 2)?;
        while pieces.get(at).is_some_and(|next| is_ordinal(next) || is_between(next)) && at < 3 {
            at += 1;
        }
        let second = pieces.get(at)?;
        month = month_of(second)?;
        end = second.at.end;
        at += 1;
    }
    let mut year_at = at;
    while pieces.get(year_at).is_some_and(|next| is_between(next) || matches!(next.text, "," | "."))
    {
        year_at += 1;
    }
    let year = pieces.get(year_at).filter(|year| year.text.len() == 4 && year_at < at + 3);
    let year = year.and_then(|piece| Some((piece.number?, piece.at.end)));
    let first_at = first.at.start;
    // `may`, `march` and `august` are words: in lower case only a year makes them months.
    let named = if month_of(first).is_some() { first } else { pieces.get(at - 1)? };
    let doubtful = matches!(named.text, "may" | "march" | "august" | "mars" | "mai");
    if doubtful && year.is_none() && named.at.start == first_at {
        return None;
    }
    match year {
        Some((year, end)) => Some((dated(Some(year), month, day, first_at..end)?, year_at + 1)),
        None => Some((dated(None, month, day, first_at..end)?, at)),
    }
}

fn is_ordinal(piece: &Piece<'_>) -> bool {
    matches!(&*piece.folded, "st" | "nd" | "rd" | "th" | "er" | ".")
}

fn is_between(piece: &Piece<'_>) -> bool {
    matches!(&*piece.folded, "of" | "de" | "del")
}

fn dated(year: Option<i16>, month: i16, day: i16, at: Range<usize>) -> Option<DateMention> {
    Some(DateMention { year, month: i8::try_from(month).ok()?, day: i8::try_from(day).ok()?, at })
}

/// Returns true where there is such a day; 29 February of an unnamed year counts.
fn is_real(date: &DateMention) -> bool {
    let year = date.year.unwrap_or(2_000);
    (1_000..=2_999).contains(&year) && Date::new(year, date.month, date.day).is_ok()
}

/// Returns the month that a word names, 1 to 12.
fn month_of(piece: &Piece<'_>) -> Option<i16> {
    match &*piece.folded {
        // Not in the calendar's table: a text index would take them for words that tell a time, and
        // its stored form depends on those.
        "okt" => Some(10),
        "dez" => Some(12),
        word => month(word).map(i16::from),
    }
}

/// Dates of a text that are read.
pub const MAX_DATES: usize = 3;
