//! A model that answers by rule, in the tokens of a real one, and remembers no prompt but the last.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use garret_core::model::{ChatModel, Event, Finish, ModelFacts, ModelRole, Reply, Request};
use garret_core::token::Token;
use garret_llm::Model;
use garret_llm::vocab::Vocabulary as _;

use crate::talk;

/// See the module. Clones share what was asked and what is to be said.
#[derive(Clone)]
pub(crate) struct Scripted {
    vocab: Arc<Model>,
    n_ctx: u32,
    shared: Arc<Mutex<Shared>>,
}

/// What it was asked so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Asked {
    /// Requests whose prompt and longest answer exceed the window.
    pub(crate) overflows: u32,
    /// Requests for a summary.
    pub(crate) summaries: u32,
    /// Requests for what the user is after, or for the value of a fact.
    pub(crate) inferences: u32,
    /// New beginnings of the prompt.
    pub(crate) rebases: u32,
}

#[derive(Default)]
struct Shared {
    script: VecDeque<Vec<Token>>,
    last: Vec<Token>,
    asked: Asked,
}

impl Scripted {
    pub(crate) fn new(vocab: Arc<Model>, n_ctx: u32) -> Self {
        Self { vocab, n_ctx, shared: Arc::default() }
    }

    /// Has the next replies to the user be these.
    pub(crate) fn say(&self, texts: &[&str]) {
        let tokens: Vec<_> = texts.iter().map(|text| self.tokens(text)).collect();
        self.shared().script.extend(tokens);
    }

    pub(crate) fn asked(&self) -> Asked {
        self.shared().asked
    }

    /// The text of the last prompt that was answered to the user.
    pub(crate) fn last_prompt(&self) -> String {
        self.text(&self.shared().last)
    }

    fn text(&self, tokens: &[Token]) -> String {
        let bytes: Vec<u8> = tokens.iter().flat_map(|token| self.vocab.piece(*token)).collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    fn tokens(&self, text: &str) -> Vec<Token> {
        let mut tokens = Vec::new();
        // Only a text of a gibibyte is too long; those here are a few lines.
        let _ = self.vocab.tokenize(text, &mut tokens);
        tokens
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a companion answers.
    fn companion(&self, request: &Request<'_>) -> String {
        match (request.role, request.grammar) {
            (ModelRole::Compactor, _) => summary(&self.text(request.prompt)),
            (_, Some(grammar)) if grammar.contains("guess: ") => READING.to_owned(),
            (_, Some(grammar)) => format!("value: {}\n", first_word(grammar)),
            _ => String::new(),
        }
    }
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

impl ChatModel for Scripted {
    type Reply = Said;
    type Error = Overflow;

    fn facts(&self) -> ModelFacts {
        ModelFacts { n_ctx: self.n_ctx, fingerprint: [7; 32] }
    }

    fn start(&self, request: Request<'_>) -> Result<Said, Overflow> {
        let tokens = match request.role {
            ModelRole::Main | ModelRole::Rebase => Vec::new(),
            _ => self.tokens(&self.companion(&request)),
        };
        let mut shared = self.shared();
        let most = request.prompt.len() + request.max_tokens as usize;
        if most > self.n_ctx as usize {
            shared.asked.overflows += 1;
            return Err(Overflow { tokens: most, n_ctx: self.n_ctx });
        }
        let tokens = match request.role {
            ModelRole::Main if request.max_tokens > 0 => {
                shared.last.clear();
                shared.last.extend_from_slice(request.prompt);
                shared.script.pop_front().unwrap_or_default()
            }
            ModelRole::Compactor => {
                shared.asked.summaries += 1;
                tokens
            }
            ModelRole::Rebase => {
                shared.asked.rebases += 1;
                tokens
            }
            ModelRole::Main => tokens,
            _ => {
                shared.asked.inferences += 1;
                tokens
            }
        };
        drop(shared);
        let cut = tokens.len() > request.max_tokens as usize;
        let prefilled = Event::Prefilled {
            reused: 0,
            prefilled: u32::try_from(request.prompt.len()).unwrap_or(u32::MAX),
        };
        let pieces = tokens.into_iter().take(request.max_tokens as usize);
        let pieces = pieces.map(|token| Event::Piece { token, bytes: self.vocab.piece(token) });
        let end = if cut || request.max_tokens == 0 { Finish::Length } else { Finish::Stop };
        let events = [prefilled].into_iter().chain(pieces).chain([Event::Finished(end)]);
        Ok(Said { events: events.collect() })
    }
}

/// A prompt and its answer don't fit into the window.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("{tokens} tokens were asked of a window of {n_ctx}")]
pub(crate) struct Overflow {
    tokens: usize,
    n_ctx: u32,
}

/// An answer, which is there at once.
pub(crate) struct Said {
    events: VecDeque<Event<Vec<u8>>>,
}

impl Reply for Said {
    type Bytes = Vec<u8>;
    type Error = Overflow;

    fn poll_event(
        &mut self,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Event<Vec<u8>>, Overflow>>> {
        Poll::Ready(self.events.pop_front().map(Ok))
    }

    fn cancel(&self) {}
}

/// Lines of a summary.
const LINES: u64 = 5;
/// What the inferrer answers.
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
    use super::*;

    #[test]
    fn a_summary_is_of_the_turns_that_are_asked_for() {
        let many = summary("Sum up this. Sum up the notes below (turns 3 to 22, 8 May 2023), so");
        assert_eq!(many.lines().count(), 5, "{many}");
        assert!(many.starts_with(&format!("- {}", &talk::message(3)[..40])), "{many}");
        assert_eq!(summary("Sum up it (turn 4, 8 May 2023), so").lines().count(), 1);
    }

    #[test]
    fn copied_values_begin_with_the_first_word() {
        assert_eq!(first_word("root ::= \"value: \" (w0)\nw0 ::= \"Oslo\" (s1 w1)?\n"), "Oslo");
    }
}
