//! Facts: short statements with a date, a source and a place in time.
//!
//! Facts are only added. None is changed or overwritten: one that isn't true any more gets an end
//! and points to what replaced it, so that the store can tell what was true at any moment.
//!
//! A fact may be about a subject (Ada) and say one thing about it, its predicate (lives in) and
//! object (Oslo). Subject and predicate are its **slot**. Of most predicates a subject has one
//! object at a time, and a newer fact ends the older; of some, such as `likes`, it has many
//! ([`is_multi_valued`]), and only naming a fact replaces it. The order of writing doesn't matter:
//! an older event told later gets its place before the newer one. Saying again what holds already
//! writes nothing. What was inferred never takes the place of what was said.
//!
//! Facts outlive the session in which they were said; they keep its number.
//!
//! Limits: facts about one subject don't extend to others; a subject is known by its name and type
//! alone; a retracted fact leaves a gap, it doesn't bring back the one before it.

mod close;
mod error;
mod ground;
mod id;
pub(crate) mod key;
pub(crate) mod lane;
mod op;
pub(crate) mod read;
pub(crate) mod record;
mod salience;
mod store;
pub(crate) mod table;
#[cfg(test)]
mod tests;
pub(crate) mod timeline;
mod view;
mod write;

pub use error::FactError;
pub use id::{EntityId, FactId, FactIdError};
pub use key::is_multi_valued;
pub(crate) use op::FactOp;
pub use op::MAX_NAME_BYTES;
pub use view::{
    Added, Entity, Fact, FactFilter, FactKind, FactPage, FactSource, FactView, Link, LinkKind,
    NewFact, Node, Origin, Outcome, Usage,
};
pub(crate) use write::{Effect, apply};
