//! The pending inference that one turn leaves for the next, shown once, as an inference.

use garret_core::id::TurnSeq;
use serde::{Deserialize, Serialize};

use super::reading::Inference;
use crate::state;
use garret_language::grounding::content_words;

/// The inferences that are kept between two turns of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InferenceState {
    /// The inference that waits for the next turn.
    pub waiting: Option<PendingInference>,
    /// The inference that the newest turn consumed, which it may have confirmed.
    pub consumed: Option<ConsumedInference>,
}

/// An inference, as far as a next turn can use it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingInference {
    /// The newest turn it was inferred from.
    pub turn: TurnSeq,
    /// Intents that the user may have, with percents, the likeliest first; empty when the message means
    /// just what it says.
    pub guesses: Vec<(u8, String)>,
    /// The user's words that show the likeliest, as far as they said them.
    pub quote: String,
    /// The question that they would ask straight out.
    pub really: String,
    /// Thoughts that lead there.
    pub chain: Vec<String>,
    /// Questions that may come, with answers.
    pub next: Vec<(String, String)>,
}

/// A pending inference that was consumed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConsumedInference {
    /// The turn that consumed it.
    pub by: TurnSeq,
    /// The turn's prompt showed it.
    pub shown: bool,
    /// The inference.
    pub inference: PendingInference,
}

impl PendingInference {
    /// Takes from an inference what a next turn can use; `None` when that is nothing.
    pub fn new(turn: TurnSeq, inference: &Inference) -> Option<Self> {
        let likeliest = inference.likeliest();
        let worth = inference.guesses.iter().filter(|guess| guess.percent >= WORTH);
        let worth = worth.take(if likeliest.is_some() { 3 } else { 0 });
        let guesses: Vec<_> = worth.map(|guess| (guess.percent, guess.intent.clone())).collect();
        let really = if likeliest.is_some() { inference.really.clone() } else { String::new() };
        let chain = if likeliest.is_some() { inference.chain.clone() } else { Vec::new() };
        let quote = likeliest.filter(|guess| guess.grounded).map(|guess| guess.quote.clone());
        let next = inference.next.clone();
        let pending = Self { turn, guesses, quote: quote.unwrap_or_default(), really, chain, next };
        (!pending.guesses.is_empty() || !pending.next.is_empty()).then_some(pending)
    }

    /// Returns whether it has to do with a message: they share a word that says what they are about.
    pub fn concerns(&self, message: &str) -> bool {
        let words = content_words(&self.text());
        content_words(message).iter().any(|word| words.contains(word))
    }

    /// Returns all its words, for comparing it with a message.
    pub fn text(&self) -> String {
        let guesses = self.guesses.iter().map(|(_, intent)| intent.as_str());
        let next = self.next.iter().flat_map(|(question, answer)| [&**question, &**answer]);
        let parts = [&*self.quote, &*self.really].into_iter().chain(guesses).chain(next);
        parts.collect::<Vec<_>>().join(" ")
    }

    /// Returns the inference line by line, what matters most first.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if !self.really.is_empty() {
            lines.push(format!("really asking: {}", self.really));
        }
        for (percent, intent) in &self.guesses {
            lines.push(format!("may want ({percent}%): {intent}"));
        }
        for (question, answer) in &self.next {
            lines.push(format!("may ask: {question} -> {answer}"));
        }
        if !self.chain.is_empty() {
            lines.push(format!("because: {}", self.chain.join(" -> ")));
        }
        lines
    }

    /// Returns the block in which a turn shows the first `most` lines, without an end of line after its
    /// last one.
    pub fn block(&self, most: usize) -> String {
        let lines = self.lines();
        let marked = lines.iter().take(most).map(|line| format!("> {line}"));
        let block = std::iter::once(HEAD.to_owned()).chain(marked).chain([FOOT.to_owned()]);
        block.collect::<Vec<_>>().join("\n")
    }

    /// Returns the expected question that `message` asks: half of its words are there.
    pub fn asked(&self, message: &str) -> Option<&(String, String)> {
        let message = content_words(message);
        self.next.iter().find(|(question, _)| {
            let words = content_words(question);
            let there = words.iter().filter(|word| message.contains(word)).count();
            there >= 2 && there * 2 >= words.len()
        })
    }
}

impl InferenceState {
    /// Has turn `by`, whose message is `message`, consume what waits: the inference if it concerns the
    /// message, by its words or by `similar` that compares both.
    pub fn consume(
        &mut self,
        by: TurnSeq,
        message: &str,
        similar: impl FnOnce(&str, &str) -> bool,
    ) -> Option<PendingInference> {
        let pending = self.waiting.take()?;
        let shown = pending.concerns(message) || similar(&pending.text(), message);
        self.consumed = Some(ConsumedInference { by, shown, inference: pending.clone() });
        shown.then_some(pending)
    }

    /// Returns what `message`, of turn `turn`, confirms: an answered question that it asks, or what the user
    /// really asked if it says so just after that was shown.
    pub fn confirmed(&self, turn: TurnSeq, message: &str) -> Option<String> {
        let consumed = self.consumed.as_ref()?;
        if turn == consumed.by {
            let (question, answer) = consumed.inference.asked(message)?;
            return Some(format!("The user asked, as was expected: {question} Answer: {answer}"));
        }
        let agreed = consumed.shown && turn == consumed.by + 1 && agrees(message);
        let really = &consumed.inference.really;
        (agreed && !really.is_empty())
            .then(|| format!("What the user really asked, as they confirmed: {really}"))
    }

    /// Returns the bytes of the record; none where nothing is kept.
    pub fn to_bytes(&self) -> Vec<u8> {
        if *self == Self::default() { Vec::new() } else { state::encode(self) }
    }

    /// Reads a record; nothing is kept in one of another version or a damaged one.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        state::decode(bytes).unwrap_or_default()
    }
}

impl state::Record for InferenceState {
    const VERSION: u8 = 1;
}

/// Returns whether a message begins with a yes that is more than politeness.
fn agrees(message: &str) -> bool {
    let lower = message.trim_start().to_lowercase();
    AGREEMENTS.split(", ").any(|yes| {
        lower.strip_prefix(yes).is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
    })
}

const AGREEMENTS: &str = "exactly, yes exactly, yes, that's right, that's it, that's what i meant, \
     right, correct, precisely, you got it, genau, ja genau, stimmt, exactement, c'est \u{e7}a, \
     exacto, eso es, \u{b9de}\u{c544}\u{c694}, \u{305d}\u{306e}\u{901a}\u{308a}";
const HEAD: &str = "[Inferred, not said by the user. Answer the message itself first; use this only \
     if it helps.]";
const FOOT: &str = "[End of what is inferred]";
/// Percent from which on a guess is shown beside a likelier one.
const WORTH: u8 = 20;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::anticipate::reading::Hypothesis;

    fn pending() -> PendingInference {
        let guess = |percent, intent: &str| Hypothesis {
            percent,
            quote: "so much work".into(),
            grounded: true,
            intent: intent.into(),
        };
        let inference = Inference {
            plain: 30,
            guesses: vec![guess(70, "to give the garden up"), guess(20, "help"), guess(5, "rest")],
            chain: Vec::new(),
            really: "May I give the garden up?".into(),
            next: vec![("Which plants need no watering?".into(), "Lavender and thyme.".into())],
        };
        PendingInference::new(4, &inference).unwrap()
    }

    #[test]
    fn a_pending_inference_is_consumed_once_and_shown_only_where_it_belongs() {
        let mut kept = InferenceState { waiting: Some(pending()), consumed: None };
        let shown = kept.clone().consume(5, "what about the garden then?", |_, _| false);
        assert_eq!(shown, Some(pending()));
        assert_eq!(kept.consume(5, "what is 2 and 2?", |_, _| false), None);
        assert_eq!(kept.waiting, None);
        assert_eq!(kept.consume(6, "the garden", |_, _| true), None);
        let mut kept = InferenceState { waiting: Some(pending()), consumed: None };
        assert!(kept.consume(5, "and the beds?", |_, _| true).is_some());
    }

    #[test]
    fn a_plain_meaning_leaves_the_questions_alone() {
        let inference = Inference { plain: 90, ..Inference::default() };
        assert_eq!(PendingInference::new(1, &inference), None);
        let next = vec![("What else?".into(), "Nothing.".into())];
        let pending = PendingInference::new(1, &Inference { next, ..inference }).unwrap();
        assert!(pending.guesses.is_empty() && pending.really.is_empty());
        assert!(!pending.block(9).contains("really asking"));
    }

    #[test]
    fn the_block_says_that_it_is_inferred_on_lines_of_its_own() {
        let block = pending().block(9);
        assert!(block.starts_with("[Inferred, not said by the user."));
        let inner: Vec<_> = block.lines().collect();
        assert!(inner[1..inner.len() - 1].iter().all(|line| line.starts_with("> ")), "{block}");
    }

    #[test]
    fn asking_what_was_expected_or_saying_yes_confirms() {
        let mut kept = InferenceState { waiting: Some(pending()), consumed: None };
        kept.consume(5, "the garden: which plants need no watering?", |_, _| false);
        let asked = kept.confirmed(5, "the garden: which plants need no watering?").unwrap();
        assert!(asked.contains("Lavender"));
        assert_eq!(kept.confirmed(5, "tell me a joke"), None);
        assert!(
            kept.confirmed(6, "Exactly, how did you know").unwrap().contains("give the garden")
        );
        assert_eq!(kept.confirmed(6, "yesterday I was out"), None);
        assert_eq!(kept.confirmed(7, "Exactly"), None);
    }

    #[test]
    fn records_come_back_and_others_carry_nothing() {
        let mut kept = InferenceState { waiting: Some(pending()), consumed: None };
        kept.consume(5, "garden", |_, _| false);
        kept.waiting = Some(pending());
        let bytes = kept.to_bytes();
        assert_eq!(InferenceState::from_bytes(&bytes), kept);
        for end in 0..bytes.len() {
            assert_eq!(
                InferenceState::from_bytes(&bytes[..end]),
                InferenceState::default(),
                "cut at {end}"
            );
        }
        assert_eq!(
            InferenceState::from_bytes(&[&[2], &bytes[1..]].concat()),
            InferenceState::default()
        );
        assert!(InferenceState::default().to_bytes().is_empty());
    }
}
