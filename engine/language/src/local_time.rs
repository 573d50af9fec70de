//! Moments in the system's time zone, which is where the user is.

use jiff::tz::TimeZone;
use jiff::{Timestamp, ZonedDateTime};

/// Returns a moment, in milliseconds since 1970, in the system's time zone; `None` outside the years
/// -9999 to 9999.
pub fn at(unix_ms: i64) -> Option<ZonedDateTime> {
    let at = Timestamp::from_millisecond(unix_ms).ok()?;
    Some(at.to_zoned_datetime(TimeZone::system()))
}

/// Returns the days from one moment to a later one, such as `8 May to 10 May 2023`, or the one that
/// is known; `None` when neither is.
pub fn days(from_ms: Option<i64>, to_ms: Option<i64>) -> Option<String> {
    let date = |ms: i64| Some(at(ms)?.date());
    let from = from_ms.and_then(date);
    let to = to_ms.and_then(date);
    let end = to.or(from)?.strftime(DAY).to_string();
    match from.filter(|from| Some(*from) != to.or(Some(*from))) {
        None => Some(end),
        Some(from) => {
            let same_year = to.is_some_and(|to| to.year() == from.year());
            let how = if same_year { "%-d %B" } else { DAY };
            Some(format!("{} to {end}", from.strftime(how)))
        }
    }
}

/// The form of a day such as `8 May 2023`.
const DAY: &str = "%-d %B %Y";

/// Returns a moment as jiff's `strftime` writes it by the form `how`.
pub fn format(unix_ms: i64, how: &str) -> Option<String> {
    Some(at(unix_ms)?.strftime(how).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_and_years_are_named_once() {
        let (noon, day) = (1_683_547_200_000, 86_400_000);
        let days = |from, to| days(from, to).unwrap_or_default();
        assert_eq!(days(None, None), "");
        assert_eq!(days(Some(noon), Some(noon + 1)), "8 May 2023");
        assert_eq!(days(Some(noon), None), "8 May 2023");
        assert_eq!(days(None, Some(noon)), "8 May 2023");
        assert_eq!(days(Some(noon), Some(noon + 2 * day)), "8 May to 10 May 2023");
        assert_eq!(days(Some(noon - 365 * day), Some(noon)), "8 May 2022 to 8 May 2023");
    }
}
