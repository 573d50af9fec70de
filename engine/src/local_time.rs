//! Moments where the user is.

use jiff::tz::TimeZone;
use jiff::{Timestamp, ZonedDateTime};

/// A moment, in milliseconds since 1970, in the system's time zone; `None` when it is out of range.
pub(crate) fn at(unix_ms: i64) -> Option<ZonedDateTime> {
    let at = Timestamp::from_millisecond(unix_ms).ok()?;
    Some(at.to_zoned_datetime(TimeZone::system()))
}

/// The same as `strftime` writes it.
pub(crate) fn format(unix_ms: i64, how: &str) -> Option<String> {
    Some(at(unix_ms)?.strftime(how).to_string())
}
