//! Records of facts and what belongs to them; see `crate::conversations::record` for how records are kept.

use std::borrow::Cow;

use rkyv::{Archive, Serialize};

use crate::facts::timeline::{OPEN, Span};
use crate::facts::view::{Entity, FactKind, FactSource, FactView, Pin, Usage};
use crate::ground::codec::access;
use crate::ground::error::{Fault, damaged};
use crate::ground::fact_id::{EntityId, FactId};
use crate::ground::stamp::confidence_of;

/// A fact. Numbers of 0 and empty texts stand for what isn't there.
#[derive(Archive, Clone, Debug, PartialEq, Serialize)]
pub(crate) struct FactRecord {
    pub(crate) id: u64,
    pub(crate) valid_at: i64,
    /// [`OPEN`] without an end.
    pub(crate) valid_to: i64,
    pub(crate) recorded_ms: i64,
    pub(crate) superseded_by: u64,
    pub(crate) invalidated_by: u64,
    pub(crate) session: u64,
    pub(crate) turn: u64,
    pub(crate) subject: u64,
    pub(crate) text: String,
    pub(crate) quote: String,
    pub(crate) predicate: String,
    pub(crate) object: String,
    pub(crate) source_name: String,
    pub(crate) confidence: f32,
    /// In hundredths.
    pub(crate) salience: u16,
    pub(crate) kind: u8,
    pub(crate) source: u8,
    pub(crate) flags: u8,
    pub(crate) clock_confidence: u8,
}

/// Bits of `flags`.
pub(crate) const INFERRED: u8 = 1;
pub(crate) const GROUNDED: u8 = 2;
/// Each value of its predicate has a lane of its own.
pub(crate) const OWN_LANE: u8 = 4;
const AUTO_PIN: u8 = 8;
const USER_PIN: u8 = 16;
/// Flags that say how it is pinned.
pub(crate) const PINS: u8 = AUTO_PIN | USER_PIN;

#[derive(Archive, Serialize)]
pub(crate) struct EntityRecord {
    pub(crate) id: u64,
    pub(crate) recorded_ms: i64,
    pub(crate) name: String,
    pub(crate) kind: String,
    /// The key of its name in the table of names.
    pub(crate) key: String,
}

#[derive(Archive, Serialize)]
pub(crate) struct UsageRecord {
    pub(crate) id: u64,
    pub(crate) count: u64,
    pub(crate) last_ms: i64,
}

// The sizes that FORMAT.md promises.
const _: () = assert!(size_of::<ArchivedFactRecord>() == 122);
const _: () = assert!(size_of::<ArchivedEntityRecord>() == 40);
const _: () = assert!(size_of::<ArchivedUsageRecord>() == 24);

impl FactRecord {
    /// The record stored under `id`.
    pub(crate) fn read(id: u64, bytes: &[u8]) -> Result<Self, Fault> {
        let record = archived(id, bytes)?;
        Ok(Self {
            id,
            valid_at: record.valid_at.to_native(),
            valid_to: record.valid_to.to_native(),
            recorded_ms: record.recorded_ms.to_native(),
            superseded_by: record.superseded_by.to_native(),
            invalidated_by: record.invalidated_by.to_native(),
            session: record.session.to_native(),
            turn: record.turn.to_native(),
            subject: record.subject.to_native(),
            text: record.text.as_str().to_owned(),
            quote: record.quote.as_str().to_owned(),
            predicate: record.predicate.as_str().to_owned(),
            object: record.object.as_str().to_owned(),
            source_name: record.source_name.as_str().to_owned(),
            confidence: record.confidence.to_native(),
            salience: record.salience.to_native(),
            kind: record.kind,
            source: record.source,
            flags: record.flags,
            clock_confidence: record.clock_confidence,
        })
    }

    /// Shows the record stored under `id`.
    pub(crate) fn view(id: u64, bytes: &[u8]) -> Result<FactView<'_>, Fault> {
        let record = archived(id, bytes)?;
        let wrong = |what| damaged(what, fact_name(id));
        let kind = FactKind::from_byte(record.kind);
        let kind = kind.ok_or_else(|| wrong("fact record (kind)"))?;
        let clock = confidence_of(record.clock_confidence);
        let clock = clock.ok_or_else(|| wrong("fact record (clock confidence)"))?;
        let source = source_of(record.source, record.source_name.as_str());
        let source = source.ok_or_else(|| wrong("fact record (source)"))?;
        let (start, end) = (record.valid_at.to_native(), record.valid_to.to_native());
        if end < start {
            return Err(wrong("fact record (it ends before it starts)"));
        }
        let superseded_by = number(record.superseded_by.to_native()).map(FactId);
        Ok(FactView {
            id: FactId(id),
            text: record.text.as_str(),
            kind,
            inferred: record.flags & INFERRED != 0,
            source,
            session: number(record.session.to_native()),
            turn: number(record.turn.to_native()),
            quote: text(record.quote.as_str()),
            grounded: record.flags & GROUNDED != 0,
            subject: number(record.subject.to_native()).map(EntityId),
            predicate: record.predicate.as_str(),
            object: text(record.object.as_str()),
            valid_at: start,
            valid_to: (end != OPEN).then_some(end),
            superseded_by,
            invalidated_by: number(record.invalidated_by.to_native()).map(FactId),
            latest: end == OPEN && superseded_by.is_none(),
            recorded_at: record.recorded_ms.to_native(),
            clock,
            salience: f32::from(record.salience.to_native()) / 100.0,
            confidence: record.confidence.to_native(),
            pinned: pin_of(record.flags),
        })
    }

    pub(crate) fn pin(&self) -> Pin {
        pin_of(self.flags)
    }

    pub(crate) fn set_pin(&mut self, pin: Pin) {
        self.flags = self.flags & !PINS | pin_flags(pin);
    }

    pub(crate) fn span(&self) -> Span {
        let inferred = self.flags & INFERRED != 0;
        Span { id: self.id, start: self.valid_at, end: self.valid_to, inferred }
    }

    /// Returns what it says about its subject.
    pub(crate) fn value(&self) -> &str {
        if self.object.is_empty() { &self.text } else { &self.object }
    }

    /// Tells whether it stays true but gave its place to a fact that says the same.
    pub(crate) fn is_retired_duplicate(&self) -> bool {
        self.superseded_by != 0 && self.valid_to == OPEN
    }
}

impl EntityRecord {
    /// The record stored under `id`.
    pub(crate) fn read(id: u64, bytes: &[u8]) -> Result<Self, Fault> {
        let name = || format!("entity e{id}");
        let record: &ArchivedEntityRecord = access(bytes, "entity record", name)?;
        if record.id.to_native() != id {
            return Err(damaged("entity record (its number isn't its key)", name()));
        }
        Ok(Self {
            id,
            recorded_ms: record.recorded_ms.to_native(),
            name: record.name.as_str().to_owned(),
            kind: record.kind.as_str().to_owned(),
            key: record.key.as_str().to_owned(),
        })
    }

    pub(crate) fn into_entity(self) -> Entity {
        let Self { id, recorded_ms, name, kind, .. } = self;
        Entity { id: EntityId(id), name, kind, recorded_at: recorded_ms }
    }
}

impl UsageRecord {
    /// The record stored under `id`.
    pub(crate) fn read(id: u64, bytes: &[u8]) -> Result<Usage, Fault> {
        let name = || fact_name(id);
        let record: &ArchivedUsageRecord = access(bytes, "record of a fact's use", name)?;
        if record.id.to_native() != id {
            return Err(damaged("record of a fact's use (its number isn't its key)", name()));
        }
        let last_ms = Some(record.last_ms.to_native());
        Ok(Usage { count: record.count.to_native(), last_ms })
    }
}

/// Says how `flags` say that a fact is pinned.
pub(crate) const fn pin_flags(pin: Pin) -> u8 {
    match pin {
        Pin::None => 0,
        Pin::Auto => AUTO_PIN,
        Pin::User => USER_PIN,
    }
}

const fn pin_of(flags: u8) -> Pin {
    match (flags & USER_PIN, flags & AUTO_PIN) {
        (0, 0) => Pin::None,
        (0, _) => Pin::Auto,
        _ => Pin::User,
    }
}

/// Says how errors name a fact.
pub(crate) fn fact_name(id: u64) -> String {
    FactId(id).to_string()
}

/// Values of `source`.
pub(crate) const USER: u8 = 0;
pub(crate) const ASSISTANT: u8 = 1;
const TOOL: u8 = 2;
const DOCUMENT: u8 = 3;
pub(crate) const NAMED: u8 = 4;

/// Says how a record keeps a source.
pub(crate) fn source_parts<'a>(source: &'a FactSource<'_>) -> (u8, &'a str) {
    match source {
        FactSource::User => (USER, ""),
        FactSource::Assistant => (ASSISTANT, ""),
        FactSource::Tool => (TOOL, ""),
        FactSource::Document => (DOCUMENT, ""),
        FactSource::Named(name) => (NAMED, name),
    }
}

/// The source that a record keeps so, if there is one.
pub(crate) fn source_of(byte: u8, name: &str) -> Option<FactSource<'_>> {
    match byte {
        USER => Some(FactSource::User),
        ASSISTANT => Some(FactSource::Assistant),
        TOOL => Some(FactSource::Tool),
        DOCUMENT => Some(FactSource::Document),
        NAMED => Some(FactSource::Named(Cow::Borrowed(name))),
        _ => None,
    }
}

fn archived(id: u64, bytes: &[u8]) -> Result<&ArchivedFactRecord, Fault> {
    let record: &ArchivedFactRecord = access(bytes, "fact record", || fact_name(id))?;
    if record.id.to_native() != id {
        return Err(damaged("fact record (its number isn't its key)", fact_name(id)));
    }
    Ok(record)
}

fn number(number: u64) -> Option<u64> {
    (number != 0).then_some(number)
}

fn text(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use garret_core::time::Confidence;
    use proptest::prelude::*;

    use super::*;
    use crate::ground::codec::{SEAL, encode, seal};

    fn sample() -> FactRecord {
        FactRecord {
            id: 0x0102,
            valid_at: -2,
            valid_to: OPEN,
            recorded_ms: 5,
            superseded_by: 0,
            invalidated_by: 7,
            session: 8,
            turn: 9,
            subject: 10,
            text: "I live in Oslo.".to_owned(),
            quote: "live in Oslo".to_owned(),
            predicate: "lives_in".to_owned(),
            object: "Oslo".to_owned(),
            source_name: "Ada".to_owned(),
            confidence: 0.5,
            salience: 718,
            kind: 2,
            source: 4,
            flags: INFERRED | GROUNDED | USER_PIN,
            clock_confidence: 2,
        }
    }

    #[test]
    fn a_fact_comes_back() {
        let record = sample();
        let bytes = encode(&record).unwrap();
        assert_eq!(FactRecord::read(0x0102, &bytes).unwrap(), record);
        let view = FactRecord::view(0x0102, &bytes).unwrap();
        assert_eq!((view.text, view.quote), ("I live in Oslo.", Some("live in Oslo")));
        assert_eq!((view.predicate, view.object), ("lives_in", Some("Oslo")));
        assert_eq!(view.source, FactSource::Named("Ada".into()));
        assert_eq!((view.kind, view.clock), (FactKind::Supersedes, Confidence::Good));
        assert_eq!((view.valid_at, view.valid_to, view.superseded_by), (-2, None, None));
        assert_eq!(view.invalidated_by, Some(FactId(7)));
        assert_eq!((view.session, view.turn, view.subject), (Some(8), Some(9), Some(EntityId(10))));
        assert!(view.inferred && view.grounded && view.latest);
        assert_eq!((view.salience, view.confidence, view.pinned), (7.18, 0.5, Pin::User));
        assert_eq!(view.to_fact().text, view.text);
    }

    /// `FORMAT.md`, FactRecord, written out by hand: texts first, the root after them.
    #[test]
    fn fact_record_bytes_are_those_of_the_format() {
        let bytes = encode(&sample()).unwrap();
        let root = &bytes[bytes.len() - SEAL - 122..bytes.len() - SEAL];
        assert_eq!(root[..8], [2, 1, 0, 0, 0, 0, 0, 0]);
        assert_eq!(root[8..16], (-2_i64).to_le_bytes());
        assert_eq!(root[16..24], [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f]);
        for (at, expected) in [(24, 5_u64), (32, 0), (40, 7), (48, 8), (56, 9), (64, 10)] {
            assert_eq!(root[at..at + 8], expected.to_le_bytes());
        }
        assert_eq!(root[72..76], [0x80 | 15, 0, 0, 0]);
        let distance = i32::from_le_bytes(root[76..80].try_into().unwrap());
        let start = bytes.len() as i64 - SEAL as i64 - 122 + 72 + i64::from(distance);
        assert_eq!(bytes[start as usize..][..15], *b"I live in Oslo.");
        assert_eq!(root[88..96], *b"lives_in");
        assert_eq!(root[96..104], *b"Oslo\xff\xff\xff\xff");
        assert_eq!(root[104..112], *b"Ada\xff\xff\xff\xff\xff");
        assert_eq!(root[112..116], 0.5_f32.to_le_bytes());
        assert_eq!(root[116..118], 718_u16.to_le_bytes());
        assert_eq!(root[118..], [2, 4, 19, 2]);
    }

    #[test]
    fn the_other_records_come_back() {
        let entity = EntityRecord {
            id: 3,
            recorded_ms: 4,
            name: "Acme".to_owned(),
            kind: "company".to_owned(),
            key: "acme".to_owned(),
        };
        let bytes = encode(&entity).unwrap();
        let read = EntityRecord::read(3, &bytes).unwrap();
        assert_eq!((&*read.key, read.recorded_ms), ("acme", 4));
        assert_eq!((&*read.name, &*read.kind), ("Acme", "company"));
        assert!(EntityRecord::read(4, &bytes).is_err());
        let bytes = encode(&UsageRecord { id: 3, count: 5, last_ms: 6 }).unwrap();
        assert_eq!(UsageRecord::read(3, &bytes).unwrap(), Usage { count: 5, last_ms: Some(6) });
        assert!(UsageRecord::read(4, &bytes).is_err());
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

        /// Behind a right check, too, any bytes are a fact or an error.
        #[test]
        fn a_record_changed_and_sealed_again_is_read_or_refused(
            at: prop::sample::Index, flip in 1..=u8::MAX,
        ) {
            let mut bytes = encode(&sample()).unwrap().to_vec();
            bytes.truncate(bytes.len() - SEAL);
            let at = at.index(bytes.len());
            bytes[at] ^= flip;
            prop_assert!(FactRecord::view(0x0102, &bytes).is_err());
            bytes.extend(seal(&bytes));
            if let Ok(view) = FactRecord::view(0x0102, &bytes) {
                prop_assert!(view.text.len() < bytes.len());
                prop_assert!(view.valid_to.is_none_or(|end| end >= view.valid_at));
            }
        }
    }
}
