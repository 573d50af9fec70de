//! Records of summaries; see `crate::conversations::record` for how records are kept.

use rkyv::{Archive, Serialize};

use crate::ground::codec::{SEAL, access};
use crate::ground::error::{Fault, damaged};
use crate::ground::stamp::confidence_of;
use crate::ground::summary_id::SummaryId;
use crate::summaries::view::{Summary, SummaryMethod};

/// A summary. A parent of 0 stands for none.
#[derive(Archive, Clone, Debug, PartialEq, Serialize)]
pub(crate) struct SummaryRecord {
    pub(crate) session: u64,
    pub(crate) id: u64,
    pub(crate) first: u64,
    pub(crate) last: u64,
    pub(crate) parent: u64,
    pub(crate) made_ms: i64,
    pub(crate) earliest_ms: i64,
    pub(crate) latest_ms: i64,
    pub(crate) model_fingerprint: [u8; 32],
    pub(crate) text: String,
    pub(crate) sources: Vec<u64>,
    pub(crate) tokens: u32,
    pub(crate) source_tokens: u32,
    pub(crate) depth: u8,
    pub(crate) method: u8,
    pub(crate) clock_confidence: u8,
}

/// The sum of a session's summaries.
#[derive(Archive, Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct HeadRecord {
    pub(crate) session: u64,
    /// The number of the next summary.
    pub(crate) next: u64,
    pub(crate) frontier: u64,
}

// The sizes that FORMAT.md promises.
const _: () = assert!(size_of::<ArchivedSummaryRecord>() == 123);
const _: () = assert!(size_of::<ArchivedHeadRecord>() == 24);
/// The place where a summary's parent lies in its root.
const PARENT_AT: usize = std::mem::offset_of!(ArchivedSummaryRecord, parent);
const _: () = assert!(PARENT_AT == 32);

impl SummaryRecord {
    /// The record stored under the key of `session` and `id`.
    pub(crate) fn read(session: u64, id: u64, bytes: &[u8]) -> Result<Self, Fault> {
        let name = || summary_name(session, id);
        let record: &ArchivedSummaryRecord = access(bytes, "summary record", name)?;
        if (record.session.to_native(), record.id.to_native()) != (session, id) {
            return Err(damaged("summary record (its numbers aren't its key's)", name()));
        }
        let read = Self {
            session,
            id,
            first: record.first.to_native(),
            last: record.last.to_native(),
            parent: record.parent.to_native(),
            made_ms: record.made_ms.to_native(),
            earliest_ms: record.earliest_ms.to_native(),
            latest_ms: record.latest_ms.to_native(),
            model_fingerprint: record.model_fingerprint,
            text: record.text.as_str().to_owned(),
            sources: record.sources.iter().map(|source| source.to_native()).collect(),
            tokens: record.tokens.to_native(),
            source_tokens: record.source_tokens.to_native(),
            depth: record.depth,
            method: record.method,
            clock_confidence: record.clock_confidence,
        };
        match read.wrong() {
            None => Ok(read),
            Some(what) => Err(damaged(what, name())),
        }
    }

    /// Tells whether a value says that it has a parent. It isn't checked, and may be damaged.
    pub(crate) fn claims_parent(value: &[u8]) -> bool {
        let root = value.len().checked_sub(size_of::<ArchivedSummaryRecord>() + SEAL);
        let parent = root.and_then(|root| value.get(root + PARENT_AT..)?.first_chunk());
        parent.is_some_and(|parent| u64::from_le_bytes(*parent) != 0)
    }

    /// Returns what is wrong with it by itself.
    fn wrong(&self) -> Option<&'static str> {
        let right = [
            (self.first >= 1 && self.first <= self.last, "summary record (its turns)"),
            (SummaryMethod::from_byte(self.method).is_some(), "summary record (method)"),
            (confidence_of(self.clock_confidence).is_some(), "summary record (clock confidence)"),
            (!self.text.trim().is_empty(), "summary record (it has no words)"),
            (self.tokens < self.source_tokens, "summary record (its length)"),
            (self.sources.is_empty() == (self.depth == 0), "summary record (its depth)"),
        ];
        right.into_iter().find(|(right, _)| !right).map(|(_, what)| what)
    }

    pub(crate) fn into_summary(self) -> Result<Summary, Fault> {
        let wrong = |what| damaged(what, summary_name(self.session, self.id));
        let method = SummaryMethod::from_byte(self.method);
        let clock = confidence_of(self.clock_confidence);
        Ok(Summary {
            id: SummaryId(self.id),
            depth: self.depth,
            from: self.first,
            to: self.last,
            sources: self.sources.iter().copied().map(SummaryId).collect(),
            parent: (self.parent != 0).then_some(SummaryId(self.parent)),
            tokens: self.tokens,
            source_tokens: self.source_tokens,
            method: method.ok_or_else(|| wrong("summary record (method)"))?,
            model_fingerprint: self.model_fingerprint,
            made_ms: self.made_ms,
            clock: clock.ok_or_else(|| wrong("summary record (clock confidence)"))?,
            earliest_ms: self.earliest_ms,
            latest_ms: self.latest_ms,
            text: self.text,
        })
    }
}

impl HeadRecord {
    /// Of a session without summaries.
    pub(crate) const fn new(session: u64) -> Self {
        Self { session, next: 1, frontier: 0 }
    }

    /// The record stored under `session`.
    pub(crate) fn read(session: u64, bytes: &[u8]) -> Result<Self, Fault> {
        let name = || format!("session number {session}");
        let record: &ArchivedHeadRecord = access(bytes, "head of a session's summaries", name)?;
        if record.session.to_native() != session {
            let what = "head of a session's summaries (its number isn't its key)";
            return Err(damaged(what, name()));
        }
        Ok(Self { session, next: record.next.to_native(), frontier: record.frontier.to_native() })
    }
}

/// Says how errors name a summary.
pub(crate) fn summary_name(session: u64, id: u64) -> String {
    format!("{} of session number {session}", SummaryId(id))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::ground::codec::{SEAL, encode, seal};

    fn sample() -> SummaryRecord {
        SummaryRecord {
            session: 0x0102,
            id: 0x0304,
            first: 5,
            last: 6,
            parent: 7,
            made_ms: -2,
            earliest_ms: 8,
            latest_ms: 9,
            model_fingerprint: [0xf1; 32],
            text: "Ada keeps bees.".to_owned(),
            sources: vec![1, 2],
            tokens: 10,
            source_tokens: 11,
            depth: 1,
            method: 2,
            clock_confidence: 1,
        }
    }

    /// `FORMAT.md`, SummaryRecord, written out by hand: the text and the list first.
    #[test]
    fn summary_record_bytes_are_those_of_the_format() {
        let bytes = encode(&sample()).unwrap();
        assert_eq!(SummaryRecord::read(0x0102, 0x0304, &bytes).unwrap(), sample());
        let at = bytes.len() - SEAL - 123;
        let root = &bytes[at..bytes.len() - SEAL];
        let words = [0x0102, 0x0304, 5, 6, 7, (-2_i64).cast_unsigned(), 8, 9];
        for (word, expected) in root.chunks(8).zip(words) {
            assert_eq!(word, expected.to_le_bytes());
        }
        assert_eq!(root[64..96], [0xf1; 32]);
        let signed = |from: usize| i32::from_le_bytes(root[from..from + 4].try_into().unwrap());
        let target =
            |from: usize, distance: i32| (at as i64 + from as i64 + i64::from(distance)) as usize;
        assert_eq!(root[96..100], [0x80 | 15, 0, 0, 0]);
        assert_eq!(bytes[target(96, signed(100))..][..15], *b"Ada keeps bees.");
        assert_eq!(signed(108), 2);
        let list = target(104, signed(104));
        assert_eq!(bytes[list..list + 16], [1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(root[112..], [10, 0, 0, 0, 11, 0, 0, 0, 1, 2, 1]);
    }

    #[test]
    fn a_head_comes_back() {
        let head = HeadRecord { session: 3, next: 4, frontier: 5 };
        let bytes = encode(&head).unwrap();
        assert_eq!(bytes[..8], 3_u64.to_le_bytes());
        assert_eq!(bytes[8..16], 4_u64.to_le_bytes());
        assert_eq!(bytes[16..24], 5_u64.to_le_bytes());
        assert_eq!(HeadRecord::read(3, &bytes).unwrap(), head);
        assert!(HeadRecord::read(4, &bytes).is_err());
    }

    #[test]
    fn what_can_not_be_a_summary_is_damaged() {
        let wrong = [
            SummaryRecord { first: 0, ..sample() },
            SummaryRecord { first: 7, ..sample() },
            SummaryRecord { text: " ".to_owned(), ..sample() },
            SummaryRecord { tokens: 11, ..sample() },
            SummaryRecord { depth: 0, ..sample() },
            SummaryRecord { sources: Vec::new(), ..sample() },
            SummaryRecord { method: 3, ..sample() },
            SummaryRecord { clock_confidence: 3, ..sample() },
        ];
        for record in wrong {
            let bytes = encode(&record).unwrap();
            assert!(SummaryRecord::read(0x0102, 0x0304, &bytes).is_err(), "{record:?}");
        }
        assert!(SummaryRecord::read(0x0102, 0x0305, &encode(&sample()).unwrap()).is_err());
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

        /// Behind a right check, too, any bytes are a summary or an error.
        #[test]
        fn a_record_changed_and_sealed_again_is_read_or_refused(
            at: prop::sample::Index, flip in 1..=u8::MAX,
        ) {
            let mut bytes = encode(&sample()).unwrap().to_vec();
            bytes.truncate(bytes.len() - SEAL);
            let at = at.index(bytes.len());
            bytes[at] ^= flip;
            prop_assert!(SummaryRecord::read(0x0102, 0x0304, &bytes).is_err());
            bytes.extend(seal(&bytes));
            if let Ok(record) = SummaryRecord::read(0x0102, 0x0304, &bytes) {
                prop_assert!(record.text.len() + 8 * record.sources.len() < bytes.len());
            }
        }
    }
}
