//! Values as JSON Lines write them.

use std::borrow::Cow;

use garret_core::time::Confidence;

use garret_language::calendar::rfc3339;

use crate::facts::table::kind_byte;
use crate::facts::{EntityId, FactId, LinkKind};
use crate::ground::stamp::{byte_of, confidence_of};

/// Writes a moment in RFC 3339, UTC; `None` outside the years that this has.
pub(crate) fn moment(unix_ms: i64) -> Option<Cow<'static, str>> {
    rfc3339(unix_ms).map(Cow::Owned)
}

const CLOCKS: [(Confidence, &str); 3] =
    [(Confidence::Wrong, "wrong"), (Confidence::Unsure, "unsure"), (Confidence::Good, "good")];

/// The name of a clock's confidence.
pub(crate) fn clock_name(byte: u8) -> Option<&'static str> {
    let confidence = confidence_of(byte)?;
    CLOCKS.iter().find(|(of, _)| *of == confidence).map(|(_, name)| *name)
}

pub(crate) fn clock(name: &str) -> Result<u8, &'static str> {
    let found = CLOCKS.iter().find(|(_, of)| *of == name);
    found.map(|(confidence, _)| byte_of(*confidence)).ok_or("its clock isn't known")
}

/// A node as people see it: `f12`, `e3`.
pub(crate) fn node_name((tag, number): (u8, u64)) -> Option<String> {
    match tag {
        0 => Some(FactId(number).to_string()),
        1 => Some(EntityId(number).to_string()),
        _ => None,
    }
}

pub(crate) fn node(name: &str) -> Result<(u8, u64), &'static str> {
    let number = |tag, digits: &str| Some((tag, digits.parse::<u64>().ok()?));
    let found = match name.split_at_checked(1) {
        Some(("f", digits)) => number(0, digits),
        Some(("e", digits)) => number(1, digits),
        _ => None,
    };
    found.filter(|found| node_name(*found).as_deref() == Some(name)).ok_or("it links nothing")
}

pub(crate) fn link_kind_name(byte: u8) -> Option<&'static str> {
    LinkKind::ALL.get(usize::from(byte)).map(|kind| kind.as_str())
}

pub(crate) fn link_kind(name: &str) -> Result<u8, &'static str> {
    let found = LinkKind::ALL.into_iter().find(|kind| kind.as_str() == name);
    found.map(kind_byte).ok_or("what it links by isn't known")
}

pub(crate) fn to_hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut hex, byte| {
        // Writing to a text can't fail.
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

/// The bytes of small hexadecimal digits.
pub(crate) fn from_hex(hex: &str) -> Result<Vec<u8>, &'static str> {
    let digit = |byte: &u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let (pairs, rest) = hex.as_bytes().as_chunks::<2>();
    let bytes = pairs.iter().map(|[high, low]| Some(digit(high)? << 4 | digit(low)?));
    let bytes: Option<Vec<u8>> = bytes.collect();
    bytes.filter(|_| rest.is_empty()).ok_or("it isn't hexadecimal")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_come_back() {
        for byte in 0..3 {
            assert_eq!(clock(clock_name(byte).unwrap()), Ok(byte));
        }
        for byte in 0..5 {
            assert_eq!(link_kind(link_kind_name(byte).unwrap()), Ok(byte));
        }
        assert_eq!((clock_name(3), link_kind_name(5), node_name((2, 1))), (None, None, None));
        assert!(clock("Good").is_err() && link_kind("").is_err());
        for name in ["", "f", "f+1", "f01", "g1", "\u{e9}1"] {
            assert!(node(name).is_err(), "{name}");
        }
    }

    proptest! {
        #[test]
        fn bytes_and_nodes_come_back(bytes: Vec<u8>, tag in 0..2_u8, number: u64) {
            prop_assert_eq!(from_hex(&to_hex(&bytes)), Ok(bytes));
            prop_assert_eq!(node(&node_name((tag, number)).unwrap()), Ok((tag, number)));
        }

        #[test]
        fn what_is_not_hexadecimal_is_refused(text in ".{1,8}") {
            if let Ok(bytes) = from_hex(&text) {
                prop_assert_eq!(to_hex(&bytes), text);
            }
        }
    }
}
