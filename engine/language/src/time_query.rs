//! Times that a question names, and words that tell a time.
//!
//! Dates that a message names are read by [`dates`](crate::dates).

use std::collections::HashSet;
use std::sync::LazyLock;

use jiff::ToSpan as _;
use jiff::civil::Date;

use crate::calendar::{self, start_ms, utc};
use crate::casefold;
use crate::tokens::{Token, TokenKind};

/// A time that a question names: a date or a part of one, or a span.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimeQuery {
    year: Option<i16>,
    month: Option<i8>,
    day: Option<i8>,
    /// The first moment and the first one after it, in milliseconds since 1970.
    span: Option<(i64, i64)>,
}

impl TimeQuery {
    /// Reads the casefolded words of a question that is asked at `now`, in milliseconds since 1970;
    /// without it, expressions such as "yesterday" name no time.
    pub fn of(words: &[String], now: Option<i64>) -> Self {
        let (mut asked, at) = Self::date(words);
        let before = at.and_then(|at| words.get(at.checked_sub(1)?));
        asked.span = match before.map(String::as_str).zip(asked.bounds()) {
            Some(("before" | "until" | "till", (start, _))) => Some((i64::MIN, start)),
            Some(("since" | "from", (start, _))) => Some((start, i64::MAX)),
            Some(("after", (_, end))) => Some((end, i64::MAX)),
            _ => None,
        };
        if at.is_none() {
            asked.span = now.and_then(|now| relative(words, now));
        }
        asked
    }

    /// Returns true where a date is named for what is before or after it, so that its words aren't
    /// to be found themselves.
    pub fn is_bound(self) -> bool {
        self.span.is_some() && self.year.is_some()
    }

    /// Reads a date; returns the position of its first word, too.
    fn date(words: &[String]) -> (Self, Option<usize>) {
        let mut asked = Self::default();
        let year = |word: &str| word.parse().ok().filter(|year| (1900..2100).contains(year));
        let mut first = words.iter().position(|word| year(word).is_some());
        asked.year = first.and_then(|at| words.get(at)).and_then(|word| year(word));
        for (at, word) in words.iter().enumerate() {
            if let [year, month, rest @ ..] = &*word.split(['-', '/']).collect::<Vec<_>>()
                && year.len() == 4
                && let (Ok(year), Ok(month @ 1..=12)) = (year.parse(), month.parse())
            {
                let day = rest.first().and_then(|day| day.parse().ok());
                return (Self { year: Some(year), month: Some(month), day, span: None }, Some(at));
            }
            let before = at.checked_sub(1).and_then(|at| words.get(at));
            let after = words.get(at + 1);
            let Some(month) = month(word, before, after) else { continue };
            asked.month = Some(month);
            asked.day = [before, after].into_iter().flatten().find_map(|word| day(word));
            let from = at - usize::from(before.is_some_and(|word| day(word).is_some()));
            first = Some(first.map_or(from, |first| first.min(from)));
        }
        (asked, first)
    }

    /// Returns the first moment of the date and the first one after it, where it has a year.
    fn bounds(self) -> Option<(i64, i64)> {
        let (year, month, day) = (self.year?, self.month.unwrap_or(1), self.day.unwrap_or(1));
        // The 31st of a month of 30 days is the first of the next one.
        let later = i64::from(day.clamp(1, 31)) - 1;
        let first = Date::new(year, month, 1).ok()?.saturating_add(later.days());
        let length = match (self.month, self.day) {
            (Some(_), Some(_)) => 1.day(),
            (Some(_), None) => 1.month(),
            (None, _) => 1.year(),
        };
        Some((start_ms(first), start_ms(first.saturating_add(length))))
    }

    /// Returns how well a moment, in milliseconds since 1970, fits: 1 for the month (or the month of
    /// another year, when no year is named), 2 with the day, .3 for the year alone; in a span 2 where
    /// that is a day or two, .5 where it is more than two months, 1 else and before or after a date.
    pub fn fits(self, at_ms: i64) -> f32 {
        if let Some((from, to)) = self.span {
            let open = from == i64::MIN || to == i64::MAX;
            let counts = match to.saturating_sub(from) / DAY_MS {
                0..=2 => 2.0,
                3..=60 => 1.0,
                _ => {
                    if open {
                        1.0
                    } else {
                        0.5
                    }
                }
            };
            return if (from..to).contains(&at_ms) { counts } else { 0.0 };
        }
        let Some(said) = utc(at_ms) else { return 0.0 };
        if self.year.is_some_and(|year| year != said.year()) {
            return 0.0;
        }
        match (self.month, self.day) {
            (Some(month), _) if month != said.month() => 0.0,
            (Some(_), Some(day)) if day == said.day() => 2.0,
            (Some(_), _) => 1.0,
            (None, _) if self.year.is_some() => 0.3,
            (None, _) => 0.0,
        }
    }
}

/// Returns the span of an expression such as "yesterday", "last week", "two months ago" or "in the last
/// ten days", counted from `now`.
fn relative(words: &[String], now: i64) -> Option<(i64, i64)> {
    let today = utc(now)?.date();
    // Fewer than 1,000 years, which a span of jiff's can hold.
    let start = |day: i64| start_ms(today.saturating_add(day.days()));
    let days = |from: i64, to: i64| (start(from), start(to));
    for (at, word) in words.iter().enumerate() {
        let before =
            |by: usize| at.checked_sub(by).and_then(|at| words.get(at)).map(String::as_str);
        if TODAY.contains(&&**word) {
            return Some(days(0, 1));
        }
        if YESTERDAY.contains(&&**word) {
            return Some(days(-1, 0));
        }
        if let Some(weekday) = WEEKDAYS.iter().position(|day| day == word)
            && matches!(before(1), Some("last" | "on" | "since" | "this"))
        {
            let today = i64::from(today.weekday().to_monday_zero_offset());
            let back = (today - weekday as i64 - 1).rem_euclid(7) + 1;
            return Some(days(-back, 1 - back));
        }
        let Some(length) = length_of(word) else { continue };
        match (before(1), before(2)) {
            (Some("last" | "past" | "previous"), _) => {
                let to = if length < 28 { 1 } else { 0 };
                return Some(days(-length - length / 2, to));
            }
            (Some("this"), _) => return Some(days(-length, 1)),
            (Some(number), Some("last" | "past" | "previous")) => {
                let count = count_of(number)?;
                return Some(days(-length * count, 1));
            }
            (Some(number), _) if words.get(at + 1).is_some_and(|word| word == "ago") => {
                let (count, slack) = (count_of(number)?, length / 2);
                return Some(days(-length * count - slack, 1 - length * count + slack));
            }
            _ => {}
        }
    }
    None
}

/// Returns true for a casefolded word that can be part of a date.
pub fn is_date_word(word: &str) -> bool {
    let number = word.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    number.starts_with(|c: char| c.is_ascii_digit()) || calendar::month(word).is_some()
}

/// Returns true for the casefolded name of a weekday.
pub fn is_weekday(word: &str) -> bool {
    WEEKDAYS.contains(&word)
}

/// Returns how many days a day, week, month or year lasts.
fn length_of(word: &str) -> Option<i64> {
    Some(match word.trim_end_matches('s') {
        "day" => 1,
        "week" | "weekend" => 7,
        "month" => 30,
        "year" => 365,
        _ => return None,
    })
}

/// Returns the number that a word says, below 1,000.
fn count_of(word: &str) -> Option<i64> {
    let count = COUNTS.iter().position(|count| *count == word).map(|at| at as i64);
    match word {
        "a" | "an" => Some(1),
        "couple" => Some(2),
        "few" | "several" => Some(3),
        _ => count.or_else(|| word.parse().ok()).filter(|count| (0..1_000).contains(count)),
    }
}

const DAY_MS: i64 = 86_400_000;
const TODAY: [&str; 7] = ["today", "tonight", "heute", "hoy", "oggi", "vandaag", "idag"];
const YESTERDAY: [&str; 6] = ["yesterday", "gestern", "ayer", "ieri", "gisteren", "igar"];
const WEEKDAYS: [&str; 7] =
    ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];
const COUNTS: [&str; 13] = [
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
    "eleven", "twelve",
];

/// Returns true for the casefolded words of a question that wants a time for an answer.
pub fn asks_when(words: &[String]) -> bool {
    let pair = |first: &str, second: &[&str]| {
        words.windows(2).any(|two| two[0] == first && second.contains(&&*two[1]))
    };
    words.iter().any(|word| WHEN.contains(&&**word))
        || pair("how", &["long", "often", "old"])
        || pair("what", &["time", "date", "day", "month", "year"])
        || pair("which", &["date", "day", "month", "year"])
}

/// Returns true for a token that tells a time.
pub fn is_time_word(token: &Token<'_>) -> bool {
    static WORDS: LazyLock<HashSet<&str>> = LazyLock::new(|| {
        let months = calendar::month_names().filter(|name| *name != "may");
        TIMES.split_ascii_whitespace().chain(months).collect()
    });
    if token.kind != TokenKind::Word {
        return false;
    }
    let bytes = token.text.as_bytes();
    if bytes.iter().all(u8::is_ascii_digit) {
        return bytes.len() == 4 && (bytes.starts_with(b"19") || bytes.starts_with(b"20"));
    }
    bytes.len() <= LONGEST_TIME_WORD && WORDS.contains(&*casefold(token.text))
}

/// Bytes of the longest word that tells a time, written with accents.
const LONGEST_TIME_WORD: usize = 16;

/// Returns the month that a word names. "May" and its like are one only beside a number or after a
/// preposition.
fn month(word: &str, before: Option<&String>, after: Option<&String>) -> Option<i8> {
    let month = calendar::month(word)?;
    let number =
        |word: Option<&String>| word.is_some_and(|word| word.bytes().any(|b| b.is_ascii_digit()));
    let dated = || {
        number(before)
            || number(after)
            || before.is_some_and(|word| BEFORE_MONTH.contains(&&**word))
    };
    (!AMBIGUOUS.contains(&word) || dated()).then_some(month)
}

/// Reads a day of the month: "8" or "8th".
fn day(word: &str) -> Option<i8> {
    let digits = word.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    digits.parse().ok().filter(|day| (1..=31).contains(day))
}

const WHEN: [&str; 10] = [
    "when",
    "wann",
    "quand",
    "cuando",
    "quando",
    "wanneer",
    "nar",
    "milloin",
    "ne zaman",
    "\u{43a}\u{43e}\u{433}\u{434}\u{430}",
];

const AMBIGUOUS: [&str; 8] = ["may", "march", "mar", "mai", "mars", "set", "dec", "jan"];
const BEFORE_MONTH: [&str; 14] = [
    "in", "of", "since", "until", "during", "last", "this", "next", "early", "late", "mid", "en",
    "im", "by",
];

const TIMES: &str = "yesterday today tonight tomorrow ago last next week weeks month months year years weekend \
     weekends monday tuesday wednesday thursday friday saturday sunday morning afternoon evening \
     night recently since soon earlier later day days birthday anniversary summer winter spring \
     autumn fall gestern heute morgen letzte letzten woche monat jahr montag dienstag mittwoch \
     donnerstag freitag samstag sonntag hier aujourd demain semaine mois annee ans ayer hoy manana \
     semana mes ano ieri oggi domani settimana mese anno gisteren vandaag";

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    const SAID: i64 = 1_683_554_160_000; // 8 May 2023, a Monday

    #[test]
    fn a_question_names_a_day_a_month_or_a_year() {
        for (question, fit) in [
            ("what happened in may 2023", 1.0),
            ("what happened in may", 1.0),
            ("what may have happened", 0.0),
            ("on the 8th may 2023", 2.0),
            ("on may 9 2023", 1.0),
            ("2023-05-08", 2.0),
            ("2023-05", 1.0),
            ("in 2023", 0.3),
            ("in may 2022", 0.0),
            ("in june 2023", 0.0),
            ("bees", 0.0),
            ("before may 2023", 0.0),
            ("before june 2023", 1.0),
            ("before 9 may 2023", 1.0),
            ("after 2022", 1.0),
            ("after 8 may 2023", 0.0),
            ("since 8 may 2023", 1.0),
            ("until 2023-05-08", 0.0),
        ] {
            assert_eq!(TimeQuery::of(&words(question), None).fits(SAID), fit, "{question}");
        }
    }

    #[test]
    fn expressions_count_from_the_moment_of_the_question() {
        let day = 86_400_000;
        for (question, days_later, fit) in [
            ("what did i say today", 0, 2.0),
            ("what did i say yesterday", 1, 2.0),
            ("what did i say yesterday", 0, 0.0),
            ("what did i say yesterday", 2, 0.0),
            ("last week", 5, 1.0),
            ("last week", 12, 0.0),
            ("this week", 2, 1.0),
            ("last month", 40, 1.0),
            ("two weeks ago", 14, 1.0),
            ("two weeks ago", 21, 0.0),
            ("3 days ago", 3, 2.0),
            ("a year ago", 365, 0.5),
            ("in the last ten days", 9, 1.0),
            ("in the last ten days", 11, 0.0),
            ("on monday", 3, 2.0),
            ("on monday", 7, 2.0),
            ("last monday", 8, 0.0),
            ("last tuesday", 8, 0.0),
            ("was hat er gestern gesagt", 1, 2.0),
        ] {
            let now = SAID + days_later * day;
            let asked = TimeQuery::of(&words(question), Some(now));
            assert_eq!(asked.fits(SAID), fit, "{question}, {days_later} days later");
            assert_eq!(TimeQuery::of(&words(question), None).fits(SAID), 0.0, "without a clock");
        }
    }

    #[test]
    fn questions_for_a_time_are_recognised() {
        for question in ["when did it rain", "how long was it", "what year was it", "wann kam er"] {
            assert!(asks_when(&words(question)), "{question}");
        }
        for question in ["how are you", "what did it cost", "which bee"] {
            assert!(!asks_when(&words(question)), "{question}");
        }
    }
}
