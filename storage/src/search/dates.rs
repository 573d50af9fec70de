//! Days, months and the words for them.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use crate::text::{Kind, Token, fold};

/// A day of the calendar, in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Day {
    pub(crate) year: i64,
    /// From 1.
    pub(crate) month: u32,
    /// From 1.
    pub(crate) day: u32,
}

impl Day {
    /// The day of a moment in milliseconds since 1970.
    pub(crate) fn of(unix_ms: i64) -> Self {
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

    /// As people write it in English.
    pub(super) fn words(self) -> String {
        let month = MONTHS[(self.month as usize + 11) % 12].split(' ').next().unwrap_or("");
        format!("{} {month} {}", self.day, self.year)
    }
}

/// What a question says about a day.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Asked {
    year: Option<i64>,
    month: Option<u32>,
    day: Option<u32>,
}

impl Asked {
    /// What the folded words of a question say.
    pub(super) fn of(words: &[String]) -> Self {
        let mut asked = Self::default();
        let year = |word: &str| word.parse().ok().filter(|year| (1900..2100).contains(year));
        asked.year = words.iter().find_map(|word| year(word));
        for (at, word) in words.iter().enumerate() {
            if let [year, month, rest @ ..] = &*word.split(['-', '/']).collect::<Vec<_>>()
                && year.len() == 4
                && let (Ok(year), Ok(month @ 1..=12)) = (year.parse(), month.parse())
            {
                let day = rest.first().and_then(|day| day.parse().ok());
                return Self { year: Some(year), month: Some(month), day };
            }
            let before = at.checked_sub(1).and_then(|at| words.get(at));
            let after = words.get(at + 1);
            let Some(month) = month(word, before, after) else { continue };
            asked.month = Some(month);
            asked.day = [before, after].into_iter().flatten().find_map(|word| day(word));
        }
        asked
    }

    /// How well a unit said on `said` fits: 1 for the month (or the month of another year, when no
    /// year was asked for), 2 with the day, .3 for the year alone.
    pub(super) fn fits(self, said: Day) -> f32 {
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

/// Whether a question wants a time for an answer.
pub(super) fn asks_when(words: &[String]) -> bool {
    let pair = |first: &str, second: &[&str]| {
        words.windows(2).any(|two| two[0] == first && second.contains(&&*two[1]))
    };
    words.iter().any(|word| WHEN.contains(&&**word))
        || pair("how", &["long", "often", "old"])
        || pair("what", &["time", "date", "day", "month", "year"])
        || pair("which", &["date", "day", "month", "year"])
}

/// Whether a token tells a time.
pub(super) fn is_time_word(token: &Token<'_>) -> bool {
    static WORDS: LazyLock<HashSet<&str>> = LazyLock::new(|| {
        let months = MONTHS.iter().flat_map(|names| names.split(' ')).filter(|name| *name != "may");
        TIMES.split_ascii_whitespace().chain(months).collect()
    });
    if token.kind != Kind::Word {
        return false;
    }
    let bytes = token.text.as_bytes();
    if bytes.iter().all(u8::is_ascii_digit) {
        return bytes.len() == 4 && (bytes.starts_with(b"19") || bytes.starts_with(b"20"));
    }
    bytes.len() <= LONGEST_TIME_WORD && WORDS.contains(&*fold(token.text))
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

    #[test]
    fn a_question_names_a_day_a_month_or_a_year() {
        let said = Day { year: 2023, month: 5, day: 8 };
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
        ] {
            assert_eq!(Asked::of(&words(question)).fits(said), fit, "{question}");
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
