//! Days of the calendar in UTC, and the names of months.

use std::collections::HashMap;
use std::sync::LazyLock;

use jiff::SignedDuration;
use jiff::civil::{Date, DateTime, Time};

/// Returns a moment, in milliseconds since 1970, as date and time in UTC; `None` outside the years
/// -9999 to 9999.
pub fn utc(unix_ms: i64) -> Option<DateTime> {
    EPOCH.checked_add(SignedDuration::from_millis(unix_ms)).ok()
}

/// Returns a moment in RFC 3339, in UTC with milliseconds; `None` outside the years 0 to 9999, which
/// are all that this form has.
///
/// ```
/// use garret_language::calendar::rfc3339;
///
/// assert_eq!(rfc3339(1_767_225_660_001).as_deref(), Some("2026-01-01T00:01:00.001Z"));
/// assert_eq!(rfc3339(i64::MAX), None);
/// ```
pub fn rfc3339(unix_ms: i64) -> Option<String> {
    let at = utc(unix_ms).filter(|at| at.year() >= 0)?;
    Some(format!("{at:.3}Z"))
}

/// Returns the day of a moment as people write it in English, casefolded, such as `8 may 2023`.
pub fn day_in_words(unix_ms: i64) -> Option<String> {
    let date = utc(unix_ms)?.date();
    let month = usize::try_from(date.month()).ok()?.checked_sub(1)?;
    let month = MONTHS.get(month)?.split(' ').next()?;
    Some(format!("{} {month} {}", date.day(), date.year()))
}

/// Returns the first moment of a day in UTC, in milliseconds since 1970.
pub(crate) fn start_ms(date: Date) -> i64 {
    // Some 20,000 years in milliseconds are far from the end of an i64.
    date.to_datetime(Time::midnight()).duration_since(EPOCH).as_secs() * 1_000
}

/// Returns the month that a casefolded word names, 1 to 12.
pub(crate) fn month(word: &str) -> Option<i8> {
    static NUMBERS: LazyLock<HashMap<&str, i8>> = LazyLock::new(|| {
        (1..)
            .zip(MONTHS)
            .flat_map(|(number, names)| names.split(' ').map(move |n| (n, number)))
            .collect()
    });
    NUMBERS.get(word).copied()
}

/// Returns all names of months, casefolded.
pub(crate) fn month_names() -> impl Iterator<Item = &'static str> {
    MONTHS.iter().flat_map(|names| names.split(' '))
}

const EPOCH: DateTime = DateTime::constant(1970, 1, 1, 0, 0, 0, 0);

/// Names of the months, casefolded, the English one first: English, German, French, Spanish, Italian,
/// Portuguese, Dutch and Swedish.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_those_of_the_calendar() {
        for (unix_ms, expected) in [
            (0, Some("1 january 1970")),
            (-1, Some("31 december 1969")),
            (951_782_400_000, Some("29 february 2000")),
            (951_868_800_000, Some("1 march 2000")),
            (1_683_554_160_000, Some("8 may 2023")),
            (4_107_542_399_999, Some("28 february 2100")),
            (4_107_542_400_000, Some("1 march 2100")),
            (i64::MIN, None),
            (i64::MAX, None),
        ] {
            assert_eq!(day_in_words(unix_ms).as_deref(), expected, "{unix_ms}");
        }
    }

    #[test]
    fn a_day_begins_with_its_first_moment() {
        for at_ms in (-40_000_i64..40_000).map(|day| day * 86_400_000 + 5) {
            assert_eq!(utc(at_ms).map(|at| start_ms(at.date())), Some(at_ms - 5));
        }
    }

    #[test]
    fn moments_are_written_as_rfc_3339_has_them() {
        for (ms, expected) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (-1, "1969-12-31T23:59:59.999Z"),
            (1_767_225_660_001, "2026-01-01T00:01:00.001Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
            (-62_167_219_200_000, "0000-01-01T00:00:00.000Z"),
        ] {
            assert_eq!(rfc3339(ms).as_deref(), Some(expected));
        }
        for ms in [253_402_300_800_000, -62_167_219_200_001, i64::MIN, i64::MAX] {
            assert_eq!(rfc3339(ms), None);
        }
    }

    #[test]
    fn months_are_written_casefolded() {
        for name in month_names() {
            assert_eq!(crate::casefold(name), name);
            assert!(month(name).is_some());
        }
    }
}
