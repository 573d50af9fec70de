//! Writes as values, which can be kept in the journal and applied again.

use garret_core::time::WallTime;
use serde::{Deserialize, Serialize};

use crate::facts::record::source_parts;
use crate::facts::salience;
use crate::facts::table::kind_byte;
use crate::facts::timeline::OPEN;
use crate::facts::view::{FactSource, Link, LinkKind, NewFact, Node};
use crate::ground::error::WriteError;
use crate::ground::fact_error::FactError;
use crate::ground::fact_id::{EntityId, FactId};
use crate::ground::limits::{MAX_BYTES, MAX_NAME_BYTES};
use crate::ground::stamp::byte_of;

/// One write of facts and what belongs to them. Add variants at the end, and change none that is
/// there: journals hold them by place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum FactOp<'a> {
    /// Facts are stored, all or none.
    #[serde(borrow)]
    Add(Vec<Draft<'a>>),
    /// A fact takes another one's place.
    Supersede { old: u64, new: Draft<'a> },
    /// A fact ends at a moment.
    Retract { fact: u64, at_ms: i64 },
    /// A fact gives its place to one that says the same, and stays true.
    Retire { loser: u64, survivor: u64 },
    /// A link between two things.
    Link(RawLink),
    /// Facts were of use: each with the moment.
    Touch(Vec<(u64, i64)>),
    /// A fact is pinned, or isn't any more.
    Pin { fact: u64, pin: u8 },
}

/// A fact to be stored, checked and rated. Numbers of 0 and empty texts stand for what isn't there.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Draft<'a> {
    pub(crate) text: &'a str,
    pub(crate) source: u8,
    pub(crate) source_name: &'a str,
    pub(crate) session: &'a str,
    pub(crate) turn: u64,
    pub(crate) quote: &'a str,
    pub(crate) subject: &'a str,
    pub(crate) subject_type: &'a str,
    pub(crate) predicate: &'a str,
    pub(crate) object: &'a str,
    pub(crate) valid_at: Option<i64>,
    pub(crate) valid_to: Option<i64>,
    pub(crate) inferred: bool,
    pub(crate) derived_from: Vec<u64>,
    pub(crate) salience: u16,
    pub(crate) confidence: f32,
    pub(crate) recorded_ms: i64,
    pub(crate) clock: u8,
}

/// A link by numbers: 0 and a fact's, or 1 and an entity's.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct RawLink {
    from: (u8, u64),
    kind: u8,
    to: (u8, u64),
}

impl<'a> Draft<'a> {
    /// Checks and rates `fact`, told at `at`.
    pub(crate) fn new(fact: &'a NewFact<'_>, at: WallTime) -> Result<Self, WriteError> {
        check(fact)?;
        let (source, source_name) = source_parts(&fact.source);
        let by_user = fact.source == FactSource::User;
        let inferred = fact.inferred;
        let salience = match fact.salience {
            Some(salience) => hundredths(salience),
            None => salience::rate(fact.text, by_user, inferred),
        };
        Ok(Self {
            text: fact.text,
            source,
            source_name,
            session: fact.origin.map_or("", |origin| origin.session.as_str()),
            turn: fact.origin.map_or(0, |origin| origin.turn),
            quote: trimmed(fact.quote),
            subject: trimmed(fact.subject),
            subject_type: trimmed(fact.subject_type),
            predicate: trimmed(fact.predicate),
            object: trimmed(fact.object),
            valid_at: fact.valid_at,
            valid_to: fact.valid_to,
            inferred,
            derived_from: fact.derived_from.iter().map(|fact| fact.0).collect(),
            salience,
            confidence: fact.confidence.unwrap_or(1.0),
            recorded_ms: at.unix_ms,
            clock: byte_of(at.confidence),
        })
    }
}

fn check(fact: &NewFact<'_>) -> Result<(), WriteError> {
    let source = match &fact.source {
        FactSource::Named(name) => name,
        _ => "",
    };
    for (what, bytes, max) in [
        ("the fact", fact.text.len(), MAX_BYTES),
        ("the quote", fact.quote.map_or(0, str::len), MAX_BYTES),
        ("the object", fact.object.map_or(0, str::len), MAX_BYTES),
        ("the subject", fact.subject.map_or(0, str::len), MAX_NAME_BYTES),
        ("the subject's type", fact.subject_type.map_or(0, str::len), MAX_NAME_BYTES),
        ("the predicate", fact.predicate.map_or(0, str::len), MAX_NAME_BYTES),
        ("the source", source.len(), MAX_NAME_BYTES),
    ] {
        if bytes > max {
            return Err(WriteError::TooLarge { what, bytes, max });
        }
    }
    if fact.text.trim().is_empty() {
        return Err(FactError::Blank.into());
    }
    if let (Some(valid_at), Some(valid_to)) = (fact.valid_at, fact.valid_to.or(Some(OPEN)))
        && valid_to <= valid_at
    {
        return Err(FactError::EndsBeforeStart { valid_at, valid_to }.into());
    }
    for (what, value, max) in
        [("the salience", fact.salience, 10.0), ("the confidence", fact.confidence, 1.0)]
    {
        if let Some(value) = value.filter(|value| !(0.0..=max).contains(value)) {
            return Err(FactError::OutOfRange { what, value, max }.into());
        }
    }
    Ok(())
}

/// A salience from 0 to 10 in hundredths.
fn hundredths(salience: f32) -> u16 {
    // In range: it was checked.
    (salience * 100.0).round() as u16
}

fn trimmed(text: Option<&str>) -> &str {
    text.unwrap_or("").trim()
}

impl From<Link> for RawLink {
    fn from(link: Link) -> Self {
        let raw = |node| match node {
            Node::Fact(FactId(id)) => (0, id),
            Node::Entity(EntityId(id)) => (1, id),
        };
        Self { from: raw(link.from), kind: kind_byte(link.kind), to: raw(link.to) }
    }
}

impl RawLink {
    /// The link, if this is one.
    pub(crate) fn link(self) -> Option<Link> {
        let node = |(tag, id)| match tag {
            0 => Some(Node::Fact(FactId(id))),
            1 => Some(Node::Entity(EntityId(id))),
            _ => None,
        };
        let kind = *LinkKind::ALL.get(usize::from(self.kind))?;
        Some(Link { from: node(self.from)?, kind, to: node(self.to)? })
    }
}

#[cfg(test)]
mod tests {
    use garret_core::time::Confidence;

    use super::*;

    const AT: WallTime = WallTime { unix_ms: 1_767_225_600_000, confidence: Confidence::Good };

    #[test]
    fn an_operation_comes_back_from_its_bytes() {
        let fact = NewFact {
            text: "I live in Oslo.",
            source: FactSource::Named("Ada".into()),
            subject: Some(" user "),
            predicate: Some("lives_in"),
            valid_to: Some(7),
            derived_from: &[FactId(3)],
            salience: Some(7.25),
            ..NewFact::default()
        };
        let draft = Draft::new(&fact, AT).unwrap();
        assert_eq!((draft.subject, draft.salience, draft.turn), ("user", 725, 0));
        let (from, to) = (Node::Fact(FactId(1)), Node::Entity(EntityId(2)));
        let link = Link { from, kind: LinkKind::PartOf, to };
        for op in [
            FactOp::Add(vec![draft.clone(), draft.clone()]),
            FactOp::Supersede { old: 4, new: draft },
            FactOp::Retract { fact: 5, at_ms: -6 },
            FactOp::Retire { loser: 7, survivor: 8 },
            FactOp::Link(link.into()),
            FactOp::Touch(vec![(1, 2), (3, -4)]),
            FactOp::Pin { fact: 9, pin: 2 },
        ] {
            let bytes = postcard::to_allocvec(&op).unwrap();
            assert_eq!(postcard::from_bytes::<FactOp<'_>>(&bytes).unwrap(), op);
        }
        assert_eq!(RawLink::from(link).link(), Some(link));
    }

    /// Every fact that the user told lost a point for not being the user's in a system before ours.
    #[test]
    fn the_users_words_count_as_the_users() {
        let rated = |source| {
            let fact = NewFact { text: "I live in Oslo.", source, ..NewFact::default() };
            Draft::new(&fact, AT).unwrap().salience
        };
        let user = rated(FactSource::User);
        for source in [FactSource::Assistant, FactSource::Tool, FactSource::from_name("Ada")] {
            assert_eq!(rated(source), user - 100);
        }
        assert_eq!(rated(FactSource::from_name("user")), user);
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_advice() {
        let fact = || NewFact { text: "x", ..NewFact::default() };
        let refused = |fact: NewFact<'_>| Draft::new(&fact, AT).unwrap_err().to_string();
        for (fact, advice) in [
            (NewFact { text: " \n", ..fact() }, "give it a text"),
            (NewFact { valid_at: Some(5), valid_to: Some(5), ..fact() }, "later end"),
            (NewFact { valid_at: Some(i64::MAX), ..fact() }, "later end"),
            (NewFact { salience: Some(10.1), ..fact() }, "from 0 to 10"),
            (NewFact { confidence: Some(f32::NAN), ..fact() }, "from 0 to 1"),
            (NewFact { subject: Some(&"x".repeat(1_025)), ..fact() }, "split it"),
        ] {
            let error = refused(fact);
            assert!(error.contains(advice), "{error}");
        }
    }
}
