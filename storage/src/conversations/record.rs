//! Records: rkyv archives that are checked and then read where they lie. Each value ends with a
//! check of its other bytes, [`SEAL`] of them.

use garret_core::id::TurnSeq;
use garret_core::time::WallTime;
use garret_core::token::TokenBytes;
use rkyv::rancor::Error;
use rkyv::util::AlignedVec;
use rkyv::{Archive, Serialize};

use crate::conversations::op::Reply;
use crate::conversations::view::{ReplyView, SessionInfo, StoredFinish, TurnView};
use crate::ground::codec::{SEAL, access, archive, seal_under, unseal};
use crate::ground::error::{Fault, damaged};
use crate::ground::stamp::{byte_of, confidence_of};
use crate::ground::table::turn_key;

#[derive(Archive, Serialize)]
pub(crate) struct SessionRecord {
    pub(crate) id: String,
    pub(crate) title: String,
    pub(crate) number: u64,
    pub(crate) created_ms: i64,
    pub(crate) updated_ms: i64,
    pub(crate) turns: u64,
    pub(crate) activity: u64,
}

#[derive(Archive, Serialize)]
pub(crate) struct TurnRecord {
    accepted_ms: i64,
    user_text: String,
    /// [`SLIM`] and how good the clock was.
    form: u8,
}

/// A turn of versions 1 and 2 of the format, which are read and not written any more.
#[derive(Archive)]
#[cfg_attr(test, derive(Serialize))]
#[cfg_attr(not(test), expect(dead_code, reason = "only its archived form is used"))]
struct WideTurnRecord {
    session: u64,
    seq: u64,
    accepted_ms: i64,
    content_hash: [u8; 32],
    user_text: String,
    clock_confidence: u8,
}

/// The last byte of a turn's root has this bit where the record is a [`TurnRecord`].
const SLIM: u8 = 16;

#[derive(Archive, Serialize)]
pub(crate) struct ReplyRecord {
    pub(crate) session: u64,
    pub(crate) seq: u64,
    pub(crate) finished_ms: i64,
    pub(crate) model_fingerprint: [u8; 32],
    pub(crate) text: String,
    pub(crate) tokens: Vec<u8>,
    pub(crate) finish: u8,
    pub(crate) clock_confidence: u8,
}

// The sizes that FORMAT.md promises.
const _: () = assert!(size_of::<ArchivedSessionRecord>() == 56);
const _: () = assert!(size_of::<ArchivedTurnRecord>() == 17);
const _: () = assert!(size_of::<ArchivedWideTurnRecord>() == 65);
const _: () = assert!(size_of::<ArchivedReplyRecord>() == 74);
/// The place where a session's number lies in its root.
const NUMBER_AT: usize = std::mem::offset_of!(ArchivedSessionRecord, number);
const _: () = assert!(NUMBER_AT == 16);

impl SessionRecord {
    /// Reads the record stored under `id`.
    pub(crate) fn read(id: &[u8], bytes: &[u8]) -> Result<Self, Fault> {
        let name = || session_name(&String::from_utf8_lossy(id));
        let record: &ArchivedSessionRecord = access(bytes, "session record", name)?;
        if record.id.as_str().as_bytes() != id {
            return Err(damaged("session record (its id isn't its key)", name()));
        }
        Ok(Self {
            id: record.id.as_str().to_owned(),
            title: record.title.as_str().to_owned(),
            number: record.number.to_native(),
            created_ms: record.created_ms.to_native(),
            updated_ms: record.updated_ms.to_native(),
            turns: record.turns.to_native(),
            activity: record.activity.to_native(),
        })
    }

    /// The number in a record that can't be read; it may be wrong as well.
    pub(crate) fn claimed_number(bytes: &[u8]) -> Option<u64> {
        let root = bytes.len().checked_sub(size_of::<ArchivedSessionRecord>() + SEAL)?;
        let number = bytes.get(root + NUMBER_AT..)?.first_chunk()?;
        Some(u64::from_le_bytes(*number))
    }

    pub(crate) fn into_info(self) -> Result<SessionInfo, Fault> {
        let Ok(id) = self.id.parse() else {
            return Err(damaged("session record (its id can't be one)", session_name(&self.id)));
        };
        Ok(SessionInfo {
            id,
            title: self.title,
            created_ms: self.created_ms,
            updated_ms: self.updated_ms,
            turns: self.turns,
        })
    }
}

impl TurnRecord {
    /// The value of what was said in the turn of this key. Its check is that of the key as well: what
    /// was written for another turn isn't right here.
    pub(crate) fn encode(
        session: u64,
        seq: TurnSeq,
        text: &str,
        at: WallTime,
    ) -> Result<AlignedVec, Fault> {
        let (user_text, form) = (text.to_owned(), SLIM | byte_of(at.confidence));
        let mut bytes = archive(&Self { accepted_ms: at.unix_ms, user_text, form })?;
        let end = seal_under(&turn_key(session, seq), &bytes);
        bytes.extend_from_slice(&end);
        Ok(bytes)
    }

    /// Shows the record stored under the key of `session` and `seq`, without a reply.
    pub(crate) fn view(session: u64, seq: TurnSeq, value: &[u8]) -> Result<TurnView<'_>, Fault> {
        let name = || turn_name(session, seq);
        let (accepted_ms, user, clock) = if is_slim(value) {
            let record = Self::access(session, seq, value)
                .ok_or_else(|| Fault::Damaged { what: "turn record", key: name() })?;
            (record.accepted_ms, record.user_text.as_str(), record.form & !SLIM)
        } else {
            let record: &ArchivedWideTurnRecord = access(value, "turn record", name)?;
            if (record.session.to_native(), record.seq.to_native()) != (session, seq) {
                return Err(damaged("turn record (its numbers aren't its key's)", name()));
            }
            (record.accepted_ms, record.user_text.as_str(), record.clock_confidence)
        };
        let Some(clock) = confidence_of(clock) else {
            return Err(damaged("turn record (clock confidence)", name()));
        };
        let Some(check) = value.last_chunk() else {
            return Err(damaged("turn record", name()));
        };
        Ok(TurnView {
            seq,
            user,
            speaker: None,
            accepted_ms: accepted_ms.to_native(),
            clock,
            check,
            reply: None,
            reply_damaged: false,
        })
    }

    fn access(session: u64, seq: TurnSeq, value: &[u8]) -> Option<&ArchivedTurnRecord> {
        let (bytes, end) = value.split_last_chunk::<SEAL>()?;
        let right = seal_under(&turn_key(session, seq), bytes) == *end;
        right.then(|| rkyv::access::<_, Error>(bytes).ok()).flatten()
    }

    /// The SHA-256 of its text that a record has within, in the form of versions 1 and 2.
    pub(crate) fn stored_hash(value: &[u8]) -> Option<[u8; 32]> {
        if is_slim(value) {
            return None;
        }
        let record: &ArchivedWideTurnRecord = access(value, "turn record", String::new).ok()?;
        Some(record.content_hash)
    }
}

/// Tells whether a turn's value says that it is a [`TurnRecord`].
fn is_slim(value: &[u8]) -> bool {
    let last = value.len().checked_sub(SEAL + 1).and_then(|at| value.get(at));
    last.is_some_and(|form| form & SLIM != 0)
}

impl ReplyRecord {
    /// The reply of `op`, of the session of this number.
    pub(crate) fn new(session: u64, op: &Reply<'_>) -> Self {
        Self {
            session,
            seq: op.seq,
            finished_ms: op.at.unix_ms,
            model_fingerprint: op.model_fingerprint,
            text: op.text.to_owned(),
            tokens: op.tokens.to_vec(),
            finish: op.finish,
            clock_confidence: op.at.clock,
        }
    }

    /// Shows the record stored under the key of `session` and `seq`.
    pub(crate) fn view(session: u64, seq: TurnSeq, bytes: &[u8]) -> Result<ReplyView<'_>, Fault> {
        let name = || turn_name(session, seq);
        let record: &ArchivedReplyRecord = access(bytes, "reply record", name)?;
        if (record.session.to_native(), record.seq.to_native()) != (session, seq) {
            return Err(damaged("reply record (its numbers aren't its key's)", name()));
        }
        let Some(finish) = StoredFinish::from_byte(record.finish) else {
            return Err(damaged("reply record (finish)", name()));
        };
        let Some(clock) = confidence_of(record.clock_confidence) else {
            return Err(damaged("reply record (clock confidence)", name()));
        };
        if !record.tokens.len().is_multiple_of(4) {
            return Err(damaged("reply record (length of its token ids)", name()));
        }
        Ok(ReplyView {
            text: record.text.as_str(),
            tokens: TokenBytes::new(record.tokens.as_slice()),
            model_fingerprint: &record.model_fingerprint,
            finish,
            finished_ms: record.finished_ms.to_native(),
            clock,
        })
    }
}

/// The name that was stored as that of a turn's speaker.
pub(crate) fn speaker(session: u64, seq: TurnSeq, value: &[u8]) -> Result<&str, Fault> {
    let name = unseal(value).and_then(|name| std::str::from_utf8(name).ok());
    name.ok_or_else(|| damaged("speaker record", turn_name(session, seq)))
}

/// Says how errors name a turn's records.
pub(crate) fn turn_name(session: u64, seq: TurnSeq) -> String {
    format!("turn {seq} of session number {session}")
}

/// Says how errors name a session's record.
pub(crate) fn session_name(id: &str) -> String {
    format!("session `{}`", id.escape_debug())
}

#[cfg(test)]
mod tests {
    use garret_core::token::Token;
    use proptest::collection::vec;
    use proptest::prelude::*;

    use garret_core::time::Confidence;
    use sha2::{Digest as _, Sha256};

    use super::*;
    use crate::ground::codec::{encode, seal};
    use crate::ground::stamp::byte_of;

    const AT: WallTime = WallTime { unix_ms: -2, confidence: Confidence::Good };

    fn turn(text: &str) -> Vec<u8> {
        TurnRecord::encode(0x0102, 0x0304, text, AT).unwrap().to_vec()
    }

    /// The same, in the form of versions 1 and 2.
    fn wide_turn(text: &str) -> Vec<u8> {
        let record = WideTurnRecord {
            session: 0x0102,
            seq: 0x0304,
            accepted_ms: AT.unix_ms,
            content_hash: Sha256::digest(text).into(),
            user_text: text.to_owned(),
            clock_confidence: byte_of(AT.confidence),
        };
        encode(&record).unwrap().to_vec()
    }

    fn reply(text: &str, tokens: &[Token]) -> Vec<u8> {
        let tokens: Vec<u8> = tokens.iter().flat_map(|token| token.0.to_le_bytes()).collect();
        let reply = Reply {
            session: "s",
            seq: 2,
            text,
            tokens: &tokens,
            model_fingerprint: [0xf1; 32],
            finish: StoredFinish::Cancelled.to_byte(),
            at: AT.into(),
            receipt: b"",
        };
        encode(&ReplyRecord::new(1, &reply)).unwrap().to_vec()
    }

    /// `FORMAT.md`, TurnRecord, written out by hand.
    #[test]
    fn turn_record_bytes_are_those_of_the_format() {
        for (text, before, reference) in [
            ("bee", &b""[..], *b"bee\xff\xff\xff\xff\xff"),
            ("nine byte", b"nine byte", [0x80 | 9, 0, 0, 0, 0xef, 0xff, 0xff, 0xff]),
        ] {
            let mut expected = before.to_vec();
            expected.extend([0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]);
            expected.extend(reference);
            expected.push(16 + 2);
            let mut checked = vec![0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0, 0, 3, 4];
            checked.extend(&expected);
            expected.extend(&Sha256::digest(&checked)[..8]);
            assert_eq!(turn(text), expected);
        }
    }

    /// The same of versions 1 and 2.
    #[test]
    fn a_turn_record_of_older_versions_is_read() {
        for (text, before, reference) in [
            ("bee", &b""[..], *b"bee\xff\xff\xff\xff\xff"),
            ("nine byte", b"nine byte", [0x80 | 9, 0, 0, 0, 0xbf, 0xff, 0xff, 0xff]),
        ] {
            let mut bytes = before.to_vec();
            bytes.extend([2, 1, 0, 0, 0, 0, 0, 0]);
            bytes.extend([4, 3, 0, 0, 0, 0, 0, 0]);
            bytes.extend([0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]);
            bytes.extend(Sha256::digest(text));
            bytes.extend(reference);
            bytes.push(2);
            let check = seal(&bytes);
            bytes.extend(check);
            assert_eq!(wide_turn(text), bytes);
            let view = TurnRecord::view(0x0102, 0x0304, &bytes).unwrap();
            assert_eq!((view.user, view.accepted_ms, view.clock), (text, -2, AT.confidence));
            assert_eq!(*view.check, check);
            assert_eq!(TurnRecord::stored_hash(&bytes), Some(Sha256::digest(text).into()));
        }
    }

    /// Neither form says in the clear whose turn it is and is taken for another one's.
    #[test]
    fn a_turn_under_another_key_is_damaged() {
        for bytes in [turn("a hat"), wide_turn("a hat")] {
            assert!(TurnRecord::view(0x0102, 0x0304, &bytes).is_ok());
            for (session, seq) in [(0x0102, 0x0305), (0x0103, 0x0304), (0, 0)] {
                assert!(TurnRecord::view(session, seq, &bytes).is_err());
            }
        }
    }

    /// A text of 100 bytes: bits 0-5 of its length stay, the others move up by two.
    #[test]
    fn a_long_text_has_its_length_spread_as_the_format_says() {
        let bytes = turn(&"x".repeat(100));
        let root = &bytes[bytes.len() - 25..];
        assert_eq!(root[8..12], [0x80 | 100 & 0x3f, (100 >> 6), 0, 0]);
        assert_eq!(i32::from_le_bytes(root[12..16].try_into().unwrap()), -(100 + 8));
    }

    /// `FORMAT.md`, ReplyRecord, field by field.
    #[test]
    fn reply_record_bytes_are_those_of_the_format() {
        let bytes = reply("a longer text", &[Token(-2), Token(0x0102_0304)]);
        let root = bytes.len() - 82;
        assert_eq!(bytes[root..root + 8], 1_u64.to_le_bytes());
        assert_eq!(bytes[root + 8..root + 16], 2_u64.to_le_bytes());
        assert_eq!(bytes[root + 16..root + 24], (-2_i64).to_le_bytes());
        assert_eq!(bytes[root + 24..root + 56], [0xf1; 32]);
        let word = |at: usize| i32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        let target = |at: usize, distance: usize| (at as i64 + i64::from(word(distance))) as usize;
        let text = target(root + 56, root + 60);
        assert_eq!(&bytes[text..text + 13], b"a longer text");
        assert_eq!(word(root + 68), 8);
        let tokens = target(root + 64, root + 64);
        assert_eq!(bytes[tokens..tokens + 8], [0xfe, 0xff, 0xff, 0xff, 4, 3, 2, 1]);
        assert_eq!(bytes[root + 72..root + 74], [2, 2]);
        assert_eq!(bytes[root + 74..], Sha256::digest(&bytes[..root + 74])[..8]);
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

        #[test]
        fn records_come_back(text: String, reply_text: String, ids in vec(any::<i32>(), 0..50)) {
            for bytes in [turn(&text), wide_turn(&text)] {
                let view = TurnRecord::view(0x0102, 0x0304, &bytes).unwrap();
                let expected = (&*text, -2, AT.confidence);
                prop_assert_eq!((view.user, view.accepted_ms, view.clock), expected);
            }
            let tokens: Vec<_> = ids.into_iter().map(Token).collect();
            let bytes = reply(&reply_text, &tokens);
            let view = ReplyRecord::view(1, 2, &bytes).unwrap();
            prop_assert_eq!(view.text, reply_text);
            prop_assert!(view.tokens.iter().eq(tokens));
            prop_assert_eq!(view.finish, StoredFinish::Cancelled);
        }

        /// Any bytes are a record or an error; where they are a record, its parts can be read.
        #[test]
        fn any_bytes_can_be_read(mut bytes in vec(any::<u8>(), 0..200), sealed: bool) {
            let under = [&bytes[..], &seal_under(&turn_key(1, 1), &bytes)].concat();
            if sealed {
                bytes.extend(seal(&bytes));
            }
            let _ = SessionRecord::read(b"a", &bytes);
            for bytes in [&bytes, &under] {
                let _ = TurnRecord::view(1, 1, bytes);
                let _ = TurnRecord::stored_hash(bytes);
            }
            if let Ok(view) = ReplyRecord::view(1, 1, &bytes) {
                prop_assert!(view.text.len() + view.tokens.len() <= bytes.len());
            }
        }

        /// Behind a right check, too, whatever a record says of itself stays within its bytes.
        #[test]
        fn a_reply_changed_and_sealed_again_is_read_or_refused(
            at: prop::sample::Index, flip in 1..=u8::MAX,
        ) {
            let mut bytes = reply("a reply of some length", &[Token(1); 9]);
            bytes.truncate(bytes.len() - SEAL);
            let at = at.index(bytes.len());
            bytes[at] ^= flip;
            bytes.extend(seal(&bytes));
            if let Ok(view) = ReplyRecord::view(1, 2, &bytes) {
                prop_assert!(view.text.len() < 64 && view.tokens.iter().count() < 64);
            }
        }

        #[test]
        fn a_record_cut_anywhere_or_changed_anywhere_is_damaged(
            text in ".{0,40}", at: prop::sample::Index, flip in 1..=u8::MAX,
        ) {
            let session = SessionRecord {
                id: "s".to_owned(),
                title: text.clone(),
                number: 1,
                created_ms: 2,
                updated_ms: 3,
                turns: 4,
                activity: 5,
            };
            let values = [
                encode(&session).unwrap().to_vec(),
                turn(&text),
                wide_turn(&text),
                reply(&text, &[Token(1); 9]),
            ];
            let reads = |[session, turn, wide, reply]: [&[u8]; 4]| {
                [
                    SessionRecord::read(b"s", session).is_ok(),
                    TurnRecord::view(0x0102, 0x0304, turn).is_ok(),
                    TurnRecord::view(0x0102, 0x0304, wide).is_ok(),
                    ReplyRecord::view(1, 2, reply).is_ok(),
                ]
            };
            let whole = values.each_ref().map(|value| &**value);
            prop_assert_eq!(reads(whole), [true; 4]);
            prop_assert_eq!(reads(whole.map(|value| &value[..at.index(value.len())])), [false; 4]);
            let changed = values.clone().map(|mut value| {
                let at = at.index(value.len());
                value[at] ^= flip;
                value
            });
            prop_assert_eq!(reads(changed.each_ref().map(|value| &**value)), [false; 4]);
        }
    }
}
