//! Why a fact is not taken.

use crate::ground::fact_id::{EntityId, FactId};

/// Why a fact, a link or a change of one was refused; nothing was written.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum FactError {
    /// Its text has no characters but white space.
    #[error("a fact needs words: give it a text")]
    Blank,
    /// It would end before it begins.
    #[error(
        "the fact would end at {valid_to} ms, not after its start at {valid_at} ms: give a later \
         end, or none"
    )]
    EndsBeforeStart {
        /// Its start, in milliseconds since 1970.
        valid_at: i64,
        /// Its end, likewise.
        valid_to: i64,
    },
    /// A rating out of its range, or not a number.
    #[error("{what} is {value}, it must be a number from 0 to {max}")]
    OutOfRange {
        /// The number that is out of range.
        what: &'static str,
        /// The number that was given.
        value: f32,
        /// Highest that is taken.
        max: f32,
    },
    /// It has a predicate, an object or a type of subject, but no subject.
    #[error("the fact has {what} but no subject: say whom or what it is about")]
    NoSubject {
        /// The thing that it has.
        what: &'static str,
    },
    /// There is no such fact.
    #[error("there is no fact {fact}: list the facts to see those that exist")]
    UnknownFact {
        /// The id asked for.
        fact: FactId,
    },
    /// There is no such entity.
    #[error("there is no entity {entity}: list the entities to see those that exist")]
    UnknownEntity {
        /// The id asked for.
        entity: EntityId,
    },
    /// Something has replaced it already.
    #[error("fact {fact} was replaced by {by} already: supersede {by} instead")]
    AlreadySuperseded {
        /// The fact to be replaced.
        fact: FactId,
        /// The fact that replaced it.
        by: FactId,
    },
    /// Something has replaced it, so that it can't be pinned.
    #[error("fact {fact} was replaced by {by}: pin {by} instead")]
    NotCurrent {
        /// The fact to be pinned.
        fact: FactId,
        /// The fact that replaced it.
        by: FactId,
    },
    /// One of the two isn't current, or they are about different things.
    #[error(
        "fact {loser} can't be retired as a duplicate of {survivor}: both must be current, have \
         the same subject and predicate, and be different facts"
    )]
    NotDuplicates {
        /// The one that was to go.
        loser: FactId,
        /// The one that was to stay.
        survivor: FactId,
    },
}
