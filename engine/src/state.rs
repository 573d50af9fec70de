//! The codec of all records that this crate keeps with a session: one byte of version, then the fields
//! in postcard's encoding (`storage/FORMAT.md` leaves these bytes to this crate).
//!
//! A record can be made anew, or is an account of something past, so one that can't be read keeps
//! nobody from going on: a version that isn't known, or bytes that are damaged, read as no record.

use garret_core::id::SessionId;
use garret_storage::{ReadError, StateKind, Store};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A record kept with a session or a turn.
pub(crate) trait Record: Serialize + DeserializeOwned {
    /// The version that is written.
    const VERSION: u8;

    /// The older versions that are read. Each version ends with fields that the one before doesn't
    /// have; with a version stand the bytes in which the fields it lacks are written when they are
    /// empty.
    const OLDER: &'static [(u8, &'static [u8])] = &[];
}

/// Returns the bytes of `record`.
pub(crate) fn encode<R: Record>(record: &R) -> Vec<u8> {
    // Records are numbers, strings and lists of them: serialising those into memory can't fail.
    postcard::to_extend(record, vec![R::VERSION]).unwrap_or_default()
}

/// Returns the record in `bytes`; `None` when its version isn't known or it is damaged.
pub(crate) fn decode<R: Record>(bytes: &[u8]) -> Option<R> {
    let (version, body) = bytes.split_first()?;
    if *version == R::VERSION {
        return postcard::from_bytes(body).ok();
    }
    let (_, lacking) = R::OLDER.iter().find(|(older, _)| older == version)?;
    postcard::from_bytes(&[body, lacking].concat()).ok()
}

/// Reads a state of a session; `None` when there is none or its bytes changed on the device.
///
/// # Errors
/// When the store can't be read.
pub(crate) fn read(
    store: &Store,
    session: &SessionId,
    kind: StateKind,
) -> Result<Option<Vec<u8>>, ReadError> {
    match store.state(session, kind) {
        Err(error @ ReadError::Damaged { .. }) => {
            tracing::warn!(%error, "it is made anew");
            Ok(None)
        }
        read => read,
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Note {
        number: u32,
        words: Vec<String>,
        asked: bool,
    }

    impl Record for Note {
        const VERSION: u8 = 3;
        const OLDER: &'static [(u8, &'static [u8])] = &[(2, &[0]), (1, &[0, 0])];
    }

    #[test]
    fn a_record_comes_back_and_a_damaged_or_foreign_one_is_none() {
        let note = Note { number: 700, words: vec!["bees".into()], asked: true };
        let bytes = encode(&note);
        assert_eq!(decode(&bytes), Some(note));
        for end in 0..bytes.len() {
            assert_eq!(decode::<Note>(&bytes[..end]), None, "cut at {end}");
        }
        assert_eq!(decode::<Note>(&[&[4], &bytes[1..]].concat()), None);
    }

    #[test]
    fn older_versions_lack_their_last_fields() {
        let note = Note { number: 7, words: Vec::new(), asked: false };
        assert_eq!(decode(&[2, 7, 0]), Some(note));
        assert_eq!(decode(&[1, 7]), Some(Note { number: 7, words: Vec::new(), asked: false }));
        assert_eq!(decode::<Note>(&[1]), None);
    }
}
