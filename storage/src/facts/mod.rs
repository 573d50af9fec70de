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
//! ```
//! use garret_core::time::{Confidence, WallTime};
//! use garret_hal::media::RamMedium;
//! use garret_storage::{FactFilter, NewFact, Store};
//!
//! # let store = Store::on_medium("home", Box::new(RamMedium::new()))?;
//! let day = |day: i64| WallTime { unix_ms: day * 86_400_000, confidence: Confidence::Good };
//! let lives_in = |city| NewFact {
//!     text: city,
//!     subject: Some("Ada"),
//!     predicate: Some("lives_in"),
//!     ..NewFact::default()
//! };
//! let rome = store.add_fact(&lives_in("Rome"), day(9))?;
//! // Told later, true earlier.
//! let earlier = NewFact { valid_at: Some(day(2).unix_ms), ..lives_in("Oslo") };
//! let oslo = store.add_fact(&earlier, day(10))?;
//!
//! let on_day_5 = FactFilter { as_of: Some(day(5).unix_ms), ..FactFilter::default() };
//! assert_eq!(store.facts(&on_day_5)?.facts[0].id, oslo.id);
//! let history = store.history(rome.id)?;
//! assert_eq!((&*history[0].text, history[0].superseded_by), ("Oslo", Some(rome.id)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Facts outlive the session in which they were said; they keep its number.
//!
//! Measured on x86_64, release build, journal and records in memory, processor time: adding a fact
//! 0.044 ms (0.030 the thousandth value of a slot, 0.050 the thousandth revision, 0.017 in batches
//! of 1,000); reading all of 32,000 in place 8 ms; 840 bytes of file each.
//!
//! Limits: facts about one subject don't extend to others; a subject is known by its name and type
//! alone; a retracted fact leaves a gap, it doesn't bring back the one before it.

pub(crate) mod close;
pub(crate) mod erase;
pub(crate) mod ground;
pub(crate) mod key;
pub(crate) mod lane;
pub(crate) mod op;
pub(crate) mod pin;
pub(crate) mod read;
pub(crate) mod record;
pub(crate) mod restore;
pub(crate) mod salience;
pub(crate) mod table;
#[cfg(test)]
mod tests;
pub(crate) mod timeline;
pub(crate) mod view;
pub(crate) mod write;

pub(crate) use crate::facts::key::fold_case;
pub use crate::facts::key::is_multi_valued;
pub(crate) use crate::facts::op::FactOp;
pub(crate) use crate::facts::read::{
    each_entity, entity, entity_extent, fact, for_each, links_of, of_turn, usage,
};
pub(crate) use crate::facts::record::{EntityRecord, FactRecord};
pub use crate::facts::view::{
    Added, Entity, Fact, FactFilter, FactKind, FactPage, FactSource, FactView, Link, LinkKind,
    NewFact, Node, Origin, Outcome, Pin, Usage,
};
pub(crate) use crate::facts::write::{Effect, apply};
pub use crate::ground::fact_error::FactError;
pub(crate) use crate::ground::fact_id::number_after;
pub use crate::ground::fact_id::{EntityId, FactId, FactIdError};
pub use crate::ground::limits::MAX_NAME_BYTES;
