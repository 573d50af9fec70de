//! The plain rule that the gate came from, with its own cues of one language.
//!
//! Its pinned facts come from a model; here every earlier message of the user's that isn't a question
//! is one. Without an embedder it compared hashes of the texts.

use garret::remember::cues;
use garret_tests::dialogues::Dialogue;

use super::{Said, Topic, fill};

pub(super) fn said(dialogue: &Dialogue, topic: Topic<'_>) -> Said {
    let (mut infer_score, mut compact_score) = (0.0_f32, 0.0_f32);
    let (mut infer_loud, mut compact_loud) = (false, false);
    let mut spans = 0;
    let mut said = Said::default();
    for (at, text) in dialogue.user.iter().enumerate() {
        let seen = cues::read(text);
        spans = (spans + seen.dates.len() + seen.spans.len()).min(5);
        let before = &dialogue.user[..at];
        let changed = before.last().and_then(|before| topic(before, text)).unwrap_or(false);
        let pinned = before.iter().filter(|text| !text.trim_end().ends_with('?'));
        let clash = pinned.into_iter().any(|fact| contradicts(fact, text));
        let signals = seen.signals();
        infer_score *= 0.5;
        if seen.freshness {
            let tied = seen.anaphora > 0.0 || changed || signals.anchored;
            infer_score += if tied { 0.7 } else { 0.25 };
        }
        infer_score += 0.45 * seen.anaphora.min(0.5) + 0.35 * seen.hedge.min(0.5);
        if changed && seen.words <= 6 {
            infer_score += 0.5;
        }
        compact_score *= 0.8;
        let fill = fill(dialogue, at);
        if fill >= 0.65 {
            compact_score += 2.0 * (fill - 0.65) + 0.1 * spans as f32;
        }
        if clash {
            infer_score += 0.7;
            compact_score += 0.5;
        }
        let infer = infer_score >= if infer_loud { 0.3 } else { 0.6 };
        let compact = compact_score >= if compact_loud { 0.15 } else { 0.3 } || fill >= 0.8;
        if compact {
            spans = 0;
        }
        (infer_loud, compact_loud) = (infer, compact);
        said = Said { infer, compact, contradiction: clash };
    }
    said
}

/// A word in common, and a negation in one of them only or numbers that differ.
fn contradicts(fact: &str, text: &str) -> bool {
    let words = |text: &str| -> Vec<String> {
        let lower = text.to_lowercase();
        lower.split(|c: char| !c.is_alphanumeric()).map(str::to_owned).collect()
    };
    let (fact_words, text_words) = (words(fact), words(text));
    let substantive = |word: &&String| word.len() >= 4 && !STOP.contains(&&***word);
    let shared = fact_words.iter().filter(substantive).any(|word| text_words.contains(word));
    let numbers = |words: &[String]| -> std::collections::BTreeSet<String> {
        words.iter().filter(|word| word.parse::<u64>().is_ok()).cloned().collect()
    };
    let (a, b) = (numbers(&fact_words), numbers(&text_words));
    let numbers = !a.is_empty() && !b.is_empty() && a != b;
    let negated = |text: &str| cues::read(text).negation;
    shared && (negated(fact) != negated(text) || numbers)
}

/// A cosine of vectors made of hashes is that of chance: below any threshold.
#[allow(clippy::unnecessary_wraps, reason = "it stands for an embedder, which may fail")]
pub(super) fn hashed_topic(before: &str, now: &str) -> Option<bool> {
    Some(before.to_lowercase() != now.to_lowercase())
}

const STOP: [&str; 16] = [
    "that", "this", "with", "have", "what", "from", "your", "about", "they", "them", "there",
    "would", "could", "which", "when", "some",
];
