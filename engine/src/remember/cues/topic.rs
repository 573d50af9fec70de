//! Changes of the topic from one message to the next.

use crate::embed::{self, Embed};

/// Returns whether `now` is about something else than `before`: their vectors' cosine is below 0.4.
/// `None` where that can't be known: without words, or when the embedder fails.
pub fn topic_changed(embedder: &dyn Embed, before: &str, now: &str) -> Option<bool> {
    let vectors = embed::vectors(embedder, &[before, now]);
    let vectors =
        vectors.inspect_err(|error| tracing::debug!(%error, "the topic isn't known")).ok()?;
    let [before, now] = vectors.as_slice() else { return None };
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
    let lengths = (dot(before, before) * dot(now, now)).sqrt();
    let cosine = dot(before, now) / lengths;
    cosine.is_finite().then_some(cosine < SAME_TOPIC)
}

/// Cosine from which on two messages are about the same.
const SAME_TOPIC: f32 = 0.4;
