//! What a bundle is made of, whichever way it is written.
//!
//! The order is: counters; the ledger of what was forgotten; each session followed by its turns, a
//! turn by its reply, that by its trace; then what imports called them; its summaries, by number; entities; facts in the order of their numbers; use of facts; links;
//! the end. Numbers are those of the namespace that was exported.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::ground::stamp::Stamp;

/// One frame, or one line. A frame names a variant by its place in this list and a field by its
/// place in the variant: add variants at the end, and change none that is there.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Record<'a> {
    Counters(Counters),
    #[serde(borrow)]
    Session(Session<'a>),
    Turn(Turn<'a>),
    Reply(Reply<'a>),
    Imported(Imported),
    Entity(Entity<'a>),
    Fact(Box<Fact<'a>>),
    Usage(Usage),
    Link(Link),
    End(End),
    /// One from before there were summaries, or of a time when there were none.
    Erasure(Erasure),
    Forgotten(Forgotten),
    Erased(Erased),
    Trace(Trace<'a>),
    Summary(Box<Summary<'a>>),
}

/// The numbers that the namespace would have given next; all others are below these.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Counters {
    pub(crate) next_session: u64,
    /// Highest rank of a session.
    pub(crate) activity: u64,
    pub(crate) next_fact: u64,
    pub(crate) next_entity: u64,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Session<'a> {
    pub(crate) number: u64,
    #[serde(borrow)]
    pub(crate) id: Cow<'a, str>,
    pub(crate) title: Cow<'a, str>,
    pub(crate) created_ms: i64,
    pub(crate) updated_ms: i64,
    pub(crate) turns: u64,
    pub(crate) activity: u64,
}

/// Of the session before it.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Turn<'a> {
    pub(crate) seq: u64,
    #[serde(borrow)]
    pub(crate) text: Cow<'a, str>,
    /// The one who said it, if not the user.
    pub(crate) speaker: Option<Cow<'a, str>>,
    pub(crate) at: Stamp,
}

/// Of the turn before it.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Reply<'a> {
    #[serde(borrow)]
    pub(crate) text: Cow<'a, str>,
    /// i32, little-endian.
    pub(crate) tokens: Cow<'a, [u8]>,
    pub(crate) model_fingerprint: [u8; 32],
    pub(crate) finish: u8,
    pub(crate) at: Stamp,
    pub(crate) receipt: Cow<'a, [u8]>,
}

/// The name that an import gave a turn, or its reply, of the session before it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Imported {
    pub(crate) seq: u64,
    pub(crate) name: [u8; 16],
}

/// A turn that was forgotten, of the session before it, in its place; and the number of the
/// erasure.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Forgotten {
    pub(crate) seq: u64,
    pub(crate) erasure: u64,
}

/// An erasure, field by field as in an ErasureRecord.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Erasure {
    pub(crate) number: u64,
    pub(crate) at_ms: i64,
    pub(crate) sessions: u64,
    pub(crate) turns: u64,
    pub(crate) replies: u64,
    pub(crate) receipts: u64,
    pub(crate) titles: u64,
    pub(crate) facts: u64,
    pub(crate) entities: u64,
    pub(crate) links: u64,
    pub(crate) bytes: u64,
    pub(crate) clock_confidence: u8,
}

/// An erasure of summaries, states and traces, too.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Erased {
    pub(crate) erasure: Erasure,
    pub(crate) summaries: u64,
    pub(crate) states: u64,
    pub(crate) traces: u64,
}

/// The prompt that the model saw when it gave the reply before it.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Trace<'a> {
    #[serde(borrow)]
    pub(crate) bytes: Cow<'a, [u8]>,
}

/// Of the session before it.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Summary<'a> {
    pub(crate) id: u64,
    pub(crate) depth: u8,
    pub(crate) first: u64,
    pub(crate) last: u64,
    pub(crate) sources: Vec<u64>,
    #[serde(borrow)]
    pub(crate) text: Cow<'a, str>,
    pub(crate) tokens: u32,
    pub(crate) source_tokens: u32,
    pub(crate) method: u8,
    pub(crate) model_fingerprint: [u8; 32],
    pub(crate) made: Stamp,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Entity<'a> {
    pub(crate) id: u64,
    #[serde(borrow)]
    pub(crate) name: Cow<'a, str>,
    pub(crate) kind: Cow<'a, str>,
    pub(crate) recorded_ms: i64,
}

/// A fact, field by field as in a FactRecord: numbers of 0 and empty texts stand for what isn't
/// there.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Fact<'a> {
    pub(crate) id: u64,
    pub(crate) valid_at: i64,
    pub(crate) valid_to: i64,
    pub(crate) recorded_ms: i64,
    pub(crate) superseded_by: u64,
    pub(crate) invalidated_by: u64,
    pub(crate) session: u64,
    pub(crate) turn: u64,
    pub(crate) subject: u64,
    #[serde(borrow)]
    pub(crate) text: Cow<'a, str>,
    pub(crate) quote: Cow<'a, str>,
    pub(crate) predicate: Cow<'a, str>,
    pub(crate) object: Cow<'a, str>,
    pub(crate) source_name: Cow<'a, str>,
    pub(crate) confidence: f32,
    pub(crate) salience: u16,
    pub(crate) kind: u8,
    pub(crate) source: u8,
    pub(crate) flags: u8,
    pub(crate) clock_confidence: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Usage {
    pub(crate) fact: u64,
    pub(crate) count: u64,
    pub(crate) last_ms: i64,
}

/// A link: a node is 0 and a fact's number, or 1 and an entity's.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Link {
    pub(crate) from: (u8, u64),
    pub(crate) kind: u8,
    pub(crate) to: (u8, u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct End {
    pub(crate) counts: BundleCounts,
    /// SHA-256 of all bytes before the frame or the line. A line that people changed needs none.
    pub(crate) sha256: Option<[u8; 32]>,
}

/// Counts of a bundle's contents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct BundleCounts {
    /// Sessions.
    pub sessions: u64,
    /// Turns of all sessions.
    pub turns: u64,
    /// Replies.
    pub replies: u64,
    /// Facts.
    pub facts: u64,
    /// Entities.
    pub entities: u64,
    /// Links.
    pub links: u64,
    /// Records of all kinds, these and those that belong to them.
    pub records: u64,
}

impl BundleCounts {
    pub(crate) fn count(&mut self, record: &Record<'_>) {
        self.records += 1;
        let kind = match record {
            Record::Session(_) => &mut self.sessions,
            Record::Turn(_) => &mut self.turns,
            Record::Reply(_) => &mut self.replies,
            Record::Fact(_) => &mut self.facts,
            Record::Entity(_) => &mut self.entities,
            Record::Link(_) => &mut self.links,
            Record::Counters(_)
            | Record::Erasure(_)
            | Record::Erased(_)
            | Record::Trace(_)
            | Record::Summary(_)
            | Record::Forgotten(_)
            | Record::Imported(_)
            | Record::Usage(_)
            | Record::End(_) => return,
        };
        *kind += 1;
    }
}
