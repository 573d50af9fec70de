//! Pins that nobody asked for: facts that are always shown, and those that give way when they are too
//! many.

use std::cmp::Ordering;

use garret_core::time::WallTime;
use garret_storage::{Fact, FactId, Pin, Store, Usage};

use super::cues::is_trait;
use super::extract::{KeepError, KeepOutcome};

/// Most pinned facts, the user's included, before those that nobody asked for give way.
pub const MAX_PINNED: usize = 18;

/// Pins the facts just kept that are worth it: those that nothing may be answered without, and those
/// that the user said again. A fact that isn't grounded or sure is never pinned.
///
/// # Errors
/// [`KeepError`].
pub fn pin(store: &Store, kept: &[KeepOutcome]) -> Result<(), KeepError> {
    for kept in kept {
        let (id, again) = match kept {
            KeepOutcome::New(id) | KeepOutcome::Already(id) => (*id, false),
            KeepOutcome::Known(id) => (*id, true),
            KeepOutcome::Ended(_) => continue,
        };
        let Some(fact) = store.fact(id)? else { continue };
        let is_trait = fact.predicate == "about" && fact.object.as_deref().is_some_and(is_trait);
        let vital = is_trait || VITAL.contains(&&*fact.predicate);
        let sure = fact.grounded && fact.confidence >= SURE && !fact.inferred && fact.latest;
        if sure && fact.pinned == Pin::None && (vital || again) {
            store.pin(id, Pin::Auto)?;
        }
    }
    Ok(())
}

/// Takes automatic pins away until at most `most` facts are pinned; returns how many. Pins of the user
/// stay.
///
/// # Errors
/// [`KeepError`].
pub fn cap(store: &Store, now: WallTime, most: usize) -> Result<usize, KeepError> {
    let pinned = store.pinned(now)?;
    let over = pinned.len().saturating_sub(most);
    if over == 0 {
        return Ok(0);
    }
    let mut automatic = Vec::new();
    for fact in pinned.iter().filter(|fact| fact.pinned == Pin::Auto) {
        automatic.push((fact, store.usage(fact.id)?));
    }
    let given = least(automatic, over);
    for id in &given {
        store.pin(*id, Pin::None)?;
    }
    Ok(given.len())
}

/// Returns the first to give way: the least sure, then the longest unused, then the oldest.
fn least(mut facts: Vec<(&Fact, Usage)>, count: usize) -> Vec<FactId> {
    facts.sort_by(|(a, used_a), (b, used_b)| {
        let by_confidence = a.confidence.partial_cmp(&b.confidence).unwrap_or(Ordering::Equal);
        by_confidence
            .then_with(|| used_a.last_ms.cmp(&used_b.last_ms))
            .then_with(|| a.recorded_at.cmp(&b.recorded_at))
            .then_with(|| a.id.cmp(&b.id))
    });
    facts.into_iter().take(count).map(|(fact, _)| fact.id).collect()
}

/// Relations that nothing may be answered without, beside traits of the user.
const VITAL: [&str; 3] = ["name", "allergic_to", "lives_in"];
/// Confidence from which on a fact is pinned.
const SURE: f32 = 0.9;
