//! Fading: how present facts are, by their age and use.

use garret_core::decay::{Age, Stage};
use garret_storage::search::Hit;
use garret_storage::{Fact, FactId, Pin, ReadError, Store};

/// Returns how present a fact is at `now_ms`, in milliseconds since 1970; fresh where that is `None`,
/// since the clock can't be trusted.
///
/// # Errors
/// [`ReadError`].
pub fn stage(store: &Store, fact: &Fact, now_ms: Option<i64>) -> Result<Stage, ReadError> {
    let Some(now_ms) = now_ms else { return Ok(Stage::Fresh) };
    let usage = store.usage(fact.id)?;
    let last_ms = usage.last_ms.unwrap_or(i64::MIN).max(fact.recorded_at);
    let pinned = fact.pinned != Pin::None;
    let turns = match usage.last_ms {
        Some(_) => None,
        None => turns_since(store, fact)?,
    };
    Ok(Age { turns, uses: usage.count, pinned, ..Age::since(last_ms, now_ms) }.stage())
}

/// Returns the turns of its session since a fact was said.
fn turns_since(store: &Store, fact: &Fact) -> Result<Option<u64>, ReadError> {
    let (Some(session), Some(turn)) = (fact.session, fact.turn) else { return Ok(None) };
    let Some(session) = store.session_of_number(session)? else { return Ok(None) };
    Ok(store.session(&session)?.map(|info| info.turns.saturating_sub(turn)))
}

/// Leaves dormant facts out of `hits`, and calls those inferred that are.
///
/// # Errors
/// [`ReadError`].
pub fn sift(store: &Store, hits: Vec<Hit>, now_ms: Option<i64>) -> Result<Vec<Hit>, ReadError> {
    let mut kept = Vec::with_capacity(hits.len());
    for mut hit in hits {
        if let Ok(id) = hit.id.parse::<FactId>()
            && let Some(fact) = store.fact(id)?
        {
            if stage(store, &fact, now_ms)? == Stage::Dormant {
                continue;
            }
            if fact.inferred {
                hit.source = "inferred, not said".to_owned();
            }
        }
        kept.push(hit);
    }
    Ok(kept)
}
