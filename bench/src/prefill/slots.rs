//! A server that keeps the newest request of each slot, its prompt and its answer: what it
//! prefills.
//!
//! llama.cpp's server reuses, with its prompt cache, the longest prefix that a request and its slot
//! have in common. Nothing is decoded here: tokens are compared and counted.

use garret_core::model::ModelRole;
use garret_core::token::Token;

use crate::record::Call;

/// The slots of one server, and what it prefilled.
pub(super) struct Server {
    /// The form of companions' requests.
    shape: Shape,
    /// A slot for each role, else one for all.
    by_role: bool,
    slots: [Vec<Token>; 3],
    pub(super) prefilled: u64,
}

/// A form of companions' requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// The conversation as the main role sends it, and what is asked after it: Garret's own
    /// prompts.
    Forked,
    /// The question first, as a companion's own instructions, and the conversation after it.
    Own,
}

impl Server {
    pub(super) fn new(shape: Shape, by_role: bool) -> Self {
        Self { shape, by_role, slots: Default::default(), prefilled: 0 }
    }

    /// Sends a request whose first `shared` tokens are the conversation's.
    pub(super) fn send(&mut self, call: &Call, shared: usize) {
        let slot = match call.role {
            _ if !self.by_role => 0,
            ModelRole::Main => 0,
            ModelRole::Compactor => 1,
            _ => 2,
        };
        let (conversation, asked) = call.prompt.split_at(shared.min(call.prompt.len()));
        let prompt = match (call.role, self.shape) {
            (ModelRole::Main, _) | (_, Shape::Forked) => call.prompt.clone(),
            (_, Shape::Own) => [asked, conversation].concat(),
        };
        let held = &mut self.slots[slot];
        // The last token is decoded anyway: what follows it is wanted.
        let most = prompt.len().saturating_sub(1);
        let reused = common(held, &prompt).min(most);
        self.prefilled += (prompt.len() - reused) as u64;
        *held = prompt;
        held.extend_from_slice(&call.answer);
    }
}

/// Length of the longest common prefix.
pub(super) fn common(a: &[Token], b: &[Token]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(role: ModelRole, prompt: &[i32], answer: &[i32]) -> Call {
        let tokens = |ids: &[i32]| ids.iter().map(|id| Token(*id)).collect();
        let prompt = tokens(prompt);
        let answer = tokens(answer);
        Call { role, prompt, max_tokens: 9, grammar: None, prefilled: 0, answer }
    }

    fn prefilled(shape: Shape, by_role: bool, calls: &[(Call, usize)]) -> u64 {
        let mut server = Server::new(shape, by_role);
        calls.iter().for_each(|(call, shared)| server.send(call, *shared));
        server.prefilled
    }

    #[test]
    fn a_slot_reuses_what_its_newest_request_began_with() {
        use ModelRole::{Compactor, Main};
        let calls = [
            (call(Main, &[1, 2, 3], &[4]), 3),
            (call(Compactor, &[1, 2, 3, 4, 90, 91], &[8]), 4),
            (call(Main, &[1, 2, 3, 4, 5], &[6]), 5),
        ];
        // All of the first, the question, the last word.
        assert_eq!(prefilled(Shape::Forked, false, &calls), 3 + 2 + 1);
        assert_eq!(prefilled(Shape::Forked, true, &calls), 3 + 6 + 1);
        assert_eq!(prefilled(Shape::Own, false, &calls), 3 + 6 + 5);
        assert_eq!(prefilled(Shape::Own, true, &calls), 3 + 6 + 1);
    }

    #[test]
    fn the_last_token_is_never_reused() {
        let same = call(ModelRole::Main, &[1, 2, 3], &[]);
        assert_eq!(prefilled(Shape::Forked, false, &[(same.clone(), 3), (same, 3)]), 3 + 1);
    }
}
