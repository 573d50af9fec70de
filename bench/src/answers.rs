//! Answers of companions by rule: in the forms that are asked for, at no cost.

use garret_core::model::{ModelRole, Request};
use garret_core::token::Token;
use garret_llm::Model;
use garret_llm::vocab::Vocabulary as _;

use crate::talk;

/// The text of `tokens`.
pub(crate) fn text(vocab: &Model, tokens: &[Token]) -> String {
    let bytes: Vec<u8> = tokens.iter().flat_map(|token| vocab.piece(*token)).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The tokens of `text`.
pub(crate) fn tokens(vocab: &Model, text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    // Only a text of a gibibyte is too long; those here are a few lines.
    let _ = vocab.tokenize(text, &mut tokens);
    tokens
}

/// The answer of a companion about a conversation of [`talk`].
pub(crate) fn of_companion(vocab: &Model, request: &Request<'_>) -> String {
    match (request.role, request.grammar) {
        (ModelRole::Compactor, _) => summary(&text(vocab, request.prompt)),
        (_, Some(grammar)) if asks_for_guesses(grammar) => READING.to_owned(),
        (_, Some(grammar)) => format!("value: {}\n", first_word(grammar)),
        _ => String::new(),
    }
}

/// Returns true for the inferrer's grammar; others are for a value that is copied.
pub(crate) fn asks_for_guesses(grammar: &str) -> bool {
    grammar.contains("guess: ")
}

/// A line for each of a few turns that are to be summed up, in the words of the user.
fn summary(prompt: &str) -> String {
    let asked = prompt.rsplit_once("Sum up ").map_or(prompt, |(_, asked)| asked);
    let range = asked.split_once("(turn").map_or("", |(_, range)| range);
    let mut numbers = range.split(|c: char| !c.is_ascii_digit()).filter_map(|n| n.parse().ok());
    let from: u64 = numbers.next().unwrap_or(1);
    let to = numbers.next().filter(|to| range.starts_with('s') && *to > from).unwrap_or(from);
    let step = usize::try_from((to - from) / LINES + 1).unwrap_or(1);
    let line = |turn| {
        let words: String = talk::message(turn).chars().filter(|c| *c != '\n').take(150).collect();
        format!("- {}\n", words.trim_end())
    };
    (from..=to).step_by(step).map(line).collect()
}

/// The first word that a grammar of copied values allows.
fn first_word(grammar: &str) -> &str {
    let word = grammar.split_once("w0 ::= \"").and_then(|(_, rest)| rest.split_once('"'));
    word.map_or("", |(word, _)| word)
}

/// Lines of a summary.
const LINES: u64 = 5;
/// The inferrer's answer.
const READING: &str = "\
plain: 60
guess: 30 | What do you think | to hear that all is well
guess: 20 | today | to plan the next visit
guess: 10 | looked at | to be praised
really: Is everything all right with it?
next: When do I look again? | In a week.
";

#[cfg(test)]
mod tests {
    use garret::anticipate::reading::{Inference, Reading};
    use garret::companion::form::{Form as _, Size};
    use garret::remember::extract::copy_grammar;

    use super::*;

    #[test]
    fn a_summary_is_of_the_turns_that_are_asked_for() {
        let many = summary("Sum up this. Sum up the notes below (turns 3 to 22, 8 May 2023), so");
        assert_eq!(many.lines().count(), 5, "{many}");
        assert!(many.starts_with(&format!("- {}", &talk::message(3)[..40])), "{many}");
        assert_eq!(summary("Sum up it (turn 4, 8 May 2023), so").lines().count(), 1);
    }

    #[test]
    fn guesses_and_values_are_in_their_forms() {
        assert!(asks_for_guesses(&Reading::grammar(Size::Core)));
        assert!(Inference::read(READING, Size::Core, &["What do you think today?"]).is_ok());
        let grammar = copy_grammar("Oslo in May");
        assert!(!asks_for_guesses(&grammar));
        assert_eq!(first_word(&grammar), "Oslo");
    }
}
