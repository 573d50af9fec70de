//! Numbers of facts and entities, and how they are written.

use std::fmt;
use std::num::NonZeroU64;
use std::str::FromStr;

/// A fact's number within its namespace: from 1, in the order of writing, never given again.
///
/// ```
/// use garret_storage::FactId;
/// let id: FactId = "f12".parse()?;
/// assert_eq!(id.to_string(), "f12");
/// assert!("12".parse::<FactId>().is_err());
/// # Ok::<(), garret_storage::FactIdError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FactId(pub u64);

/// An entity's number within its namespace: from 1, in the order of writing; written `e12`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntityId(pub u64);

impl fmt::Display for FactId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "f{}", self.0)
    }
}

impl FromStr for FactId {
    type Err = FactIdError;

    fn from_str(text: &str) -> Result<Self, FactIdError> {
        number_after(text, 'f').map(Self).ok_or_else(|| FactIdError { text: text.to_owned() })
    }
}

impl fmt::Display for EntityId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "e{}", self.0)
    }
}

/// Why a text is no fact's id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is no fact: write `f` and its number, such as `f12`", text.escape_debug())]
pub struct FactIdError {
    text: String,
}

/// The number after `letter`, if the text is the one way to write it.
pub(crate) fn number_after(text: &str, letter: char) -> Option<u64> {
    let digits = text.strip_prefix(letter)?;
    let plain = digits.bytes().all(|byte| byte.is_ascii_digit()) && !digits.starts_with('0');
    plain.then(|| digits.parse().ok().map(NonZeroU64::get)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_written_in_one_way() {
        for id in [1, 12, u64::MAX] {
            assert_eq!(FactId(id).to_string().parse(), Ok(FactId(id)));
        }
        for text in ["", "f", "f0", "f01", "f+1", "F1", "f1 ", "e1", "f18446744073709551616"] {
            let error = text.parse::<FactId>().unwrap_err();
            assert!(error.to_string().contains("f12"), "{error}");
        }
    }
}
