//! Dates as they are typed, as files have them, and as people read them.

use garret_language::local_time;
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

/// Reads milliseconds since 1970 of a date (its first moment where the user is), of a date and time
/// (where the user is unless it has an offset), or of a number of those milliseconds.
pub(crate) fn parse(text: &str) -> Result<i64, String> {
    let text = text.trim();
    let local = |civil| TimeZone::system().to_ambiguous_timestamp(civil).compatible();
    let moment = text.parse::<Timestamp>();
    let moment = moment.or_else(|_| text.parse::<DateTime>().and_then(local));
    moment.map(Timestamp::as_millisecond).or_else(|error| text.parse().map_err(|_| error)).map_err(
        |_| format!("`{text}` is no date: write 2026-11-29, 2026-11-29 14:03 or 2026-11-29T14:03Z"),
    )
}

/// Writes a moment, in milliseconds since 1970, in local time to the second.
pub(crate) fn when(unix_ms: i64) -> String {
    let when = local_time::format(unix_ms, "%Y-%m-%d %H:%M:%S %:z");
    when.unwrap_or_else(|| "at an unknown time".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_read_in_the_ways_people_write_them() {
        let noon = 1_796_040_000_000;
        for text in ["2026-11-30T12:00Z", "2026-11-30 14:00+02:00", "1796040000000"] {
            assert_eq!(parse(text), Ok(noon), "{text}");
        }
        let local = |text| parse(text).unwrap();
        assert_eq!(local("2026-11-30 12:00") - local("2026-11-30"), 12 * 3_600_000);
        assert_eq!(local("2023-05-08T13:56:30") - local("2023-05-08T13:56:00"), 30_000);
        for text in ["", "yesterday", "2026-13-01", "30.11.2026"] {
            assert!(parse(text).unwrap_err().contains("2026-11-29"), "{text}");
        }
    }
}
