//! Numbers of summaries, and how they are written.

use std::fmt;
use std::str::FromStr;

use crate::facts::number_after;

/// A summary's number within its session: from 1, in the order of writing, never given again
/// there.
///
/// ```
/// use garret_storage::SummaryId;
/// let id: SummaryId = "s3".parse()?;
/// assert_eq!(id.to_string(), "s3");
/// assert!("3".parse::<SummaryId>().is_err());
/// # Ok::<(), garret_storage::SummaryIdError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SummaryId(pub u64);

impl fmt::Display for SummaryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "s{}", self.0)
    }
}

impl FromStr for SummaryId {
    type Err = SummaryIdError;

    fn from_str(text: &str) -> Result<Self, SummaryIdError> {
        number_after(text, 's').map(Self).ok_or_else(|| SummaryIdError { text: text.to_owned() })
    }
}

/// Why a text is no summary's id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is no summary: write `s` and its number, such as `s3`", text.escape_debug())]
pub struct SummaryIdError {
    text: String,
}
