//! What goes in and what comes out.

use std::borrow::Cow;
use std::fmt;

use garret_core::id::{SessionId, TurnSeq};
use garret_core::time::Confidence;

use crate::ground::fact_id::{EntityId, FactId};

/// The effect of a fact on those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FactKind {
    /// Says something by itself.
    Asserts,
    /// Says one more thing of that kind about its subject.
    Extends,
    /// Ended another fact when it was written.
    Supersedes,
    /// Was inferred, not said.
    Derives,
}

impl FactKind {
    /// The name on the wire: `asserts`, `extends`, `supersedes` or `derives`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Asserts => "asserts",
            Self::Extends => "extends",
            Self::Supersedes => "supersedes",
            Self::Derives => "derives",
        }
    }

    pub(crate) const fn to_byte(self) -> u8 {
        match self {
            Self::Asserts => 0,
            Self::Extends => 1,
            Self::Supersedes => 2,
            Self::Derives => 3,
        }
    }

    pub(crate) const fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            0 => Some(Self::Asserts),
            1 => Some(Self::Extends),
            2 => Some(Self::Supersedes),
            3 => Some(Self::Derives),
            _ => None,
        }
    }
}

/// True if a fact stands in every prompt, as far as there is room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Pin {
    /// It doesn't.
    #[default]
    None,
    /// A rule or a companion chose it.
    Auto,
    /// The user did.
    User,
}

impl Pin {
    /// The name on the wire: `none`, `auto` or `user`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Auto => "auto",
            Self::User => "user",
        }
    }

    pub(crate) const fn to_byte(self) -> u8 {
        match self {
            Self::None => 0,
            Self::Auto => 1,
            Self::User => 2,
        }
    }

    pub(crate) const fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            0 => Some(Self::None),
            1 => Some(Self::Auto),
            2 => Some(Self::User),
            _ => None,
        }
    }
}

/// The one who said it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum FactSource<'a> {
    /// The user.
    #[default]
    User,
    /// The model.
    Assistant,
    /// A tool's output.
    Tool,
    /// A document.
    Document,
    /// Somebody else, by name. One of the names of the others stands for that one.
    Named(Cow<'a, str>),
}

impl<'a> FactSource<'a> {
    /// The source of this name: `user`, `assistant`, `tool`, `document`, or anybody else.
    pub fn from_name(name: impl Into<Cow<'a, str>>) -> Self {
        let name = name.into();
        match &*name {
            "user" => Self::User,
            "assistant" => Self::Assistant,
            "tool" => Self::Tool,
            "document" => Self::Document,
            _ => Self::Named(name),
        }
    }

    /// Its name; [`FactSource::from_name`] turns it back.
    pub fn as_str(&self) -> &str {
        match self {
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Tool => "tool",
            Self::Document => "document",
            Self::Named(name) => name,
        }
    }

    /// The same source, holding its own name.
    pub fn into_owned(self) -> FactSource<'static> {
        match self {
            Self::User => FactSource::User,
            Self::Assistant => FactSource::Assistant,
            Self::Tool => FactSource::Tool,
            Self::Document => FactSource::Document,
            Self::Named(name) => FactSource::Named(Cow::Owned(name.into_owned())),
        }
    }
}

impl fmt::Display for FactSource<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The turn in which a fact was said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin<'a> {
    /// Its session.
    pub session: &'a SessionId,
    /// Its number there.
    pub turn: TurnSeq,
}

/// A fact to be stored. Only `text` is needed:
///
/// ```
/// use garret_storage::NewFact;
/// let fact = NewFact {
///     text: "I live in Oslo.",
///     subject: Some("user"),
///     predicate: Some("lives_in"),
///     object: Some("Oslo"),
///     ..NewFact::default()
/// };
/// ```
#[derive(Clone, Debug, Default)]
pub struct NewFact<'a> {
    /// The statement, kept unchanged.
    pub text: &'a str,
    /// The one who said it.
    pub source: FactSource<'a>,
    /// The place where it was said; session and turn must be there.
    pub origin: Option<Origin<'a>>,
    /// The words it rests on. With an `origin` they are looked for in what its source said in that
    /// turn; of a tool or a document, and of somebody named in a turn of the user's, in all of it.
    pub quote: Option<&'a str>,
    /// The person or thing that it is about. Without one it's a plain note.
    pub subject: Option<&'a str>,
    /// The type of the subject; things of one name and different types are different.
    pub subject_type: Option<&'a str>,
    /// The relation to the subject, such as `lives_in`; `about` where nothing is given.
    pub predicate: Option<&'a str>,
    /// The value, such as `Oslo`; the text where nothing is given.
    pub object: Option<&'a str>,
    /// From when on it is true, in milliseconds since 1970; from when it was said where nothing
    /// is given.
    pub valid_at: Option<i64>,
    /// Until when it is true, where that is known.
    pub valid_to: Option<i64>,
    /// True if it was inferred rather than said.
    pub inferred: bool,
    /// The facts that it was inferred from or sums up: it ends when the first of them does.
    pub derived_from: &'a [FactId],
    /// Its weight in memory, 0 to 10; rated by rules where nothing is given.
    pub salience: Option<f32>,
    /// Its certainty, 0 to 1; 1 where nothing is given.
    pub confidence: Option<f32>,
}

/// The result of storing a fact.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Added {
    /// The fact that says it now.
    pub id: FactId,
    /// True if that is a new one.
    pub outcome: Outcome,
    /// Facts that it replaced, with their retired duplicates.
    pub superseded: Vec<FactId>,
    /// Facts that had been derived from those, and ended with them.
    pub invalidated: Vec<FactId>,
}

/// True if a fact was new.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Outcome {
    /// It was written.
    Stored,
    /// A fact that holds at that time says the same already: no fact was written.
    Restated,
}

/// A fact, read in place.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct FactView<'a> {
    /// Its number.
    pub id: FactId,
    /// The statement, unchanged.
    pub text: &'a str,
    /// Its effect when it was written.
    pub kind: FactKind,
    /// True if it was inferred rather than said.
    pub inferred: bool,
    /// The one who said it.
    pub source: FactSource<'a>,
    /// The number of the session in which it was said. It stays when the session is deleted.
    pub session: Option<u64>,
    /// The turn there.
    pub turn: Option<TurnSeq>,
    /// The words it rests on.
    pub quote: Option<&'a str>,
    /// True if those words were found in the turn when the fact was written.
    pub grounded: bool,
    /// The person or thing that it is about.
    pub subject: Option<EntityId>,
    /// The relation to the subject; empty when it has none.
    pub predicate: &'a str,
    /// The value; `None` where that is the text.
    pub object: Option<&'a str>,
    /// From when on it is true, in milliseconds since 1970.
    pub valid_at: i64,
    /// From when on it isn't true any more. Equal to `valid_at` when it never was.
    pub valid_to: Option<i64>,
    /// The fact that replaced it.
    pub superseded_by: Option<FactId>,
    /// The fact whose coming ended it, where it had been derived from one that was replaced; or
    /// that one itself where it was retracted.
    pub invalidated_by: Option<FactId>,
    /// True if nothing replaced it and it has no end.
    pub latest: bool,
    /// Wall clock when it was written, in milliseconds since 1970.
    pub recorded_at: i64,
    /// The trust that this clock deserved.
    pub clock: Confidence,
    /// Its weight in memory, 0 to 10.
    pub salience: f32,
    /// Its certainty, 0 to 1.
    pub confidence: f32,
    /// True if it stands in every prompt, as far as there is room.
    pub pinned: Pin,
}

impl FactView<'_> {
    /// Tells whether it is true at a moment, in milliseconds since 1970.
    pub fn holds_at(&self, at_ms: i64) -> bool {
        holds(self.valid_at, self.valid_to, at_ms)
    }

    /// The same fact, independent of the store.
    pub fn to_fact(&self) -> Fact {
        Fact {
            id: self.id,
            text: self.text.to_owned(),
            kind: self.kind,
            inferred: self.inferred,
            source: self.source.clone().into_owned(),
            session: self.session,
            turn: self.turn,
            quote: self.quote.map(str::to_owned),
            grounded: self.grounded,
            subject: self.subject,
            predicate: self.predicate.to_owned(),
            object: self.object.map(str::to_owned),
            valid_at: self.valid_at,
            valid_to: self.valid_to,
            superseded_by: self.superseded_by,
            invalidated_by: self.invalidated_by,
            latest: self.latest,
            recorded_at: self.recorded_at,
            clock: self.clock,
            salience: self.salience,
            confidence: self.confidence,
            pinned: self.pinned,
        }
    }
}

/// A fact; see [`FactView`] for its fields.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
#[allow(missing_docs)] // They are those of `FactView`.
pub struct Fact {
    pub id: FactId,
    pub text: String,
    pub kind: FactKind,
    pub inferred: bool,
    pub source: FactSource<'static>,
    pub session: Option<u64>,
    pub turn: Option<TurnSeq>,
    pub quote: Option<String>,
    pub grounded: bool,
    pub subject: Option<EntityId>,
    pub predicate: String,
    pub object: Option<String>,
    pub valid_at: i64,
    pub valid_to: Option<i64>,
    pub superseded_by: Option<FactId>,
    pub invalidated_by: Option<FactId>,
    pub latest: bool,
    pub recorded_at: i64,
    pub clock: Confidence,
    pub salience: f32,
    pub confidence: f32,
    pub pinned: Pin,
}

impl Fact {
    /// Tells whether it is true at a moment, in milliseconds since 1970.
    pub fn holds_at(&self, at_ms: i64) -> bool {
        holds(self.valid_at, self.valid_to, at_ms)
    }
}

fn holds(valid_at: i64, valid_to: Option<i64>, at_ms: i64) -> bool {
    valid_at <= at_ms && valid_to.is_none_or(|end| at_ms < end)
}

/// Somebody or something that facts are about.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Entity {
    /// Its number.
    pub id: EntityId,
    /// Its name as it was first written.
    pub name: String,
    /// Its type; empty where that wasn't said.
    pub kind: String,
    /// Wall clock when it was first named, in milliseconds since 1970.
    pub recorded_at: i64,
}

/// The number of times a fact was of use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Usage {
    /// The number of times.
    pub count: u64,
    /// The moment when last, in milliseconds since 1970.
    pub last_ms: Option<i64>,
}

/// One end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Node {
    /// A fact.
    Fact(FactId),
    /// An entity.
    Entity(EntityId),
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fact(fact) => fact.fmt(f),
            Self::Entity(entity) => entity.fmt(f),
        }
    }
}

/// The meaning of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum LinkKind {
    /// It was inferred from the other, or sums it up.
    DerivedFrom,
    /// It is about the same as the other.
    Related,
    /// It adds to the other.
    Extends,
    /// It speaks against the other.
    Contradicts,
    /// It is a part of the other.
    PartOf,
}

impl LinkKind {
    pub(crate) const ALL: [Self; 5] =
        [Self::DerivedFrom, Self::Related, Self::Extends, Self::Contradicts, Self::PartOf];

    /// The name on the wire, such as `derived_from`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::DerivedFrom => "derived_from",
            Self::Related => "related",
            Self::Extends => "extends",
            Self::Contradicts => "contradicts",
            Self::PartOf => "part_of",
        }
    }
}

/// A link between two things.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Link {
    /// The place where it starts.
    pub from: Node,
    /// Its meaning.
    pub kind: LinkKind,
    /// The place where it leads.
    pub to: Node,
}

/// A choice of facts to list. The default lists all.
#[derive(Clone, Debug, Default)]
pub struct FactFilter<'a> {
    /// Only those that are true at this moment, in milliseconds since 1970.
    pub as_of: Option<i64>,
    /// Only those that nothing replaced and that have no end.
    pub latest: bool,
    /// Only those of this kind.
    pub kind: Option<FactKind>,
    /// Only those of this source.
    pub source: Option<FactSource<'a>>,
    /// Only those about whoever has this name, of whatever type.
    pub subject: Option<&'a str>,
    /// Only those of this predicate.
    pub predicate: Option<&'a str>,
    /// Only those said in this session.
    pub session: Option<&'a SessionId>,
    /// Only those after this one: the last of the page before.
    pub after: Option<FactId>,
    /// Most facts in the page; 0 for [`FactFilter::PAGE`].
    pub limit: usize,
}

impl FactFilter<'_> {
    /// Facts in a page where nothing else was asked for.
    pub const PAGE: usize = 100;
}

/// Some of the facts asked for, in the order of writing.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct FactPage {
    /// The facts.
    pub facts: Vec<Fact>,
    /// The value of `after` for the next page; `None` when there is none.
    pub next: Option<FactId>,
}
