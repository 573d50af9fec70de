//! Days, months and the words for them.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use crate::casefold;
use crate::tokens::{Token, TokenKind};

/// A day of the calendar, in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Day {
    /// Negative before the year 0.
    pub year: i64,
    /// From 1.
    pub month: u32,
    /// From 1.
    pub day: u32,
}

impl Day {
    /// The day of a moment in milliseconds since 1970.
    pub fn of(unix_ms: i64) -> Self {
        // Years that begin in March, in cycles of 400 years of 146,097 days.
        let days = unix_ms.div_euclid(86_400_000) + 719_468;
        let (cycle, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
        let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
        let day = day - (365 * year + year / 4 - year / 100);
        let shifted = (5 * day + 2) / 153;
        let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
        Self {
            year: year + cycle * 400 + i64::from(month <= 2),
            month: month as u32,
            day: (day - (153 * shifted + 2) / 5 + 1) as u32,
        }
    }

    /// Its first moment, in milliseconds since 1970.
    fn start(self) -> i64 {
        let year = self.year.clamp(-200_000, 200_000) - i64::from(self.month <= 2);
        let (cycle, year) = (year.div_euclid(400), year.rem_euclid(400));
        let shifted = i64::from((self.month + 9) % 12);
        let day = (153 * shifted + 2) / 5 + i64::from(self.day) - 1;
        let day = day + 365 * year + year / 4 - year / 100;
        (cycle * 146_097 + day - 719_468) * DAY_MS
    }

    /// As people write it in English.
    pub fn words(self) -> String {
        let month = MONTHS[(self.month as usize + 11) % 12].split(' ').next().unwrap_or("");
        format!("{} {month} {}", self.day, self.year)
    }
}

/// What a question says about a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    year: Option<i64>,
    month: Option<u32>,
    day: Option<u32>,
    /// From the first moment up to the second, in milliseconds since 1970.
    span: Option<(i64, i64)>,
}

impl Asked {
    /// What the folded words of a question say, asked at `now`.
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

    /// Whether it names a date to tell what is before or after it, so that its words aren't to be
    /// found themselves.
    pub fn is_bound(self) -> bool {
        self.span.is_some() && self.year.is_some()
    }

    /// A date, and where it begins.
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

    /// The first moment of the date and the first one after it, where it has a year.
    fn bounds(self) -> Option<(i64, i64)> {
        let (year, month, day) = (self.year?, self.month.unwrap_or(1), self.day.unwrap_or(1));
        let start = Day { year, month, day }.start();
        let end = match (self.month, self.day) {
            (Some(_), Some(_)) => start + DAY_MS,
            (Some(12), None) | (None, _) => Day { year: year + 1, month: 1, day: 1 }.start(),
            (Some(month), None) => Day { year, month: month + 1, day: 1 }.start(),
        };
        Some((start, end))
    }

    /// How well a unit of that moment fits: 1 for the month (or the month of another year, when no
    /// year was asked for), 2 with the day, .3 for the year alone; in a span 2 where that is a day
    /// or two, .5 where it is more than two months, 1 else and before or after a date.
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
        let said = Day::of(at_ms);
        if self.year.is_some_and(|year| year != said.year) {
            return 0.0;
        }
        match (self.month, self.day) {
            (Some(month), _) if month != said.month => 0.0,
            (Some(_), Some(day)) if day == said.day => 2.0,
            (Some(_), _) => 1.0,
            (None, _) if self.year.is_some() => 0.3,
            (None, _) => 0.0,
        }
    }
}

/// The span of an expression such as "yesterday", "last week", "two months ago" or "in the last
/// ten days", counted from `now`.
fn relative(words: &[String], now: i64) -> Option<(i64, i64)> {
    let midnight = now.div_euclid(DAY_MS) * DAY_MS;
    let days = |from: i64, to: i64| (midnight + from * DAY_MS, midnight + to * DAY_MS);
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
            // The first of January 1970 was a Thursday.
            let today = (midnight / DAY_MS + 3).rem_euclid(7);
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

/// Whether a folded word can be part of a date.
pub fn is_date_word(word: &str) -> bool {
    let number = word.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    number.starts_with(|c: char| c.is_ascii_digit())
        || MONTHS.iter().any(|names| names.split(' ').any(|name| name == word))
}

/// Whether a folded word is the name of a day.
pub fn is_weekday(word: &str) -> bool {
    WEEKDAYS.contains(&word)
}

/// How many days it lasts.
fn length_of(word: &str) -> Option<i64> {
    Some(match word.trim_end_matches('s') {
        "day" => 1,
        "week" | "weekend" => 7,
        "month" => 30,
        "year" => 365,
        _ => return None,
    })
}

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

/// Whether a question wants a time for an answer.
pub fn asks_when(words: &[String]) -> bool {
    let pair = |first: &str, second: &[&str]| {
        words.windows(2).any(|two| two[0] == first && second.contains(&&*two[1]))
    };
    words.iter().any(|word| WHEN.contains(&&**word))
        || pair("how", &["long", "often", "old"])
        || pair("what", &["time", "date", "day", "month", "year"])
        || pair("which", &["date", "day", "month", "year"])
}

/// Whether a token tells a time.
pub fn is_time_word(token: &Token<'_>) -> bool {
    static WORDS: LazyLock<HashSet<&str>> = LazyLock::new(|| {
        let months = MONTHS.iter().flat_map(|names| names.split(' ')).filter(|name| *name != "may");
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

/// In bytes, written with accents.
const LONGEST_TIME_WORD: usize = 16;

/// The month a word names. "May" and its like are one only beside a number or after a preposition.
fn month(word: &str, before: Option<&String>, after: Option<&String>) -> Option<u32> {
    static NAMES: LazyLock<HashMap<&str, u32>> = LazyLock::new(|| {
        let names = MONTHS
            .iter()
            .zip(1..)
            .flat_map(|(names, month)| names.split(' ').map(move |name| (name, month)));
        names.collect()
    });
    let month = NAMES.get(word).copied()?;
    let number =
        |word: Option<&String>| word.is_some_and(|word| word.bytes().any(|b| b.is_ascii_digit()));
    let dated = || {
        number(before)
            || number(after)
            || before.is_some_and(|word| BEFORE_MONTH.contains(&&**word))
    };
    (!AMBIGUOUS.contains(&word) || dated()).then_some(month)
}

/// A day of the month, from "8" or "8th".
fn day(word: &str) -> Option<u32> {
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

/// Names of the months, folded; the English one first.
const MONTHS: [&str; 12] = [
    "january jan januar janvier enero gennaio janeiro januari",
    "february feb februar fevrier febrero febbraio fevereiro februari",
    "march mar marz mars marzo marco maart",
    "april apr avril abril aprile",
    "may mai mayo maggio maio mei maj",
    "june jun juni juin junio giugno junho",
    "july jul juli juillet julio luglio julho",
    "august aug aout agosto augustus augusti",
    "september sep sept septembre septiembre settembre setembro",
    "october oct oktober octobre octubre ottobre outubro",
    "november nov novembre noviembre novembro",
    "december dec dezember decembre diciembre dicembre dezembro",
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

    #[test]
    fn days_are_those_of_the_calendar() {
        for (unix_ms, year, month, day) in [
            (0, 1970, 1, 1),
            (-1, 1969, 12, 31),
            (951_782_400_000, 2000, 2, 29),
            (951_868_800_000, 2000, 3, 1),
            (1_683_554_160_000, 2023, 5, 8),
            (4_107_542_399_999, 2100, 2, 28),
            (4_107_542_400_000, 2100, 3, 1),
            (i64::MIN, -292_275_055, 5, 16),
            (i64::MAX, 292_278_994, 8, 17),
        ] {
            assert_eq!(Day::of(unix_ms), Day { year, month, day }, "{unix_ms}");
        }
        assert_eq!(Day::of(1_683_554_160_000).words(), "8 may 2023");
    }

    const SAID: i64 = 1_683_554_160_000; // 8 May 2023, a Monday

    #[test]
    fn the_start_of_a_day_is_in_it_and_the_moment_before_is_not() {
        for at_ms in (-40_000_i64..40_000).map(|day| day * 86_400_000 + 5) {
            assert_eq!(Day::of(at_ms).start(), at_ms - 5);
        }
    }

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
            assert_eq!(Asked::of(&words(question), None).fits(SAID), fit, "{question}");
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
            let asked = Asked::of(&words(question), Some(now));
            assert_eq!(asked.fits(SAID), fit, "{question}, {days_later} days later");
            assert_eq!(Asked::of(&words(question), None).fits(SAID), 0.0, "without a clock");
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
