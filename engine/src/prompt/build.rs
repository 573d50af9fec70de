//! Putting a prompt together: what is fixed of the session, its history, the volatile block and the
//! user's words, with as much of memory as finds room.

use garret_core::assemble::{self, AssembleError, Input, Scratch};
use garret_core::budget::Budget;
use garret_core::id::TurnSeq;
use garret_core::prompt::{Message, PromptEncoder, Role};
use garret_core::receipt::{Omission, OmissionKind, Receipt};
use garret_core::token::Token;

use super::memory::{MemoryBlock, Recall};
use super::volatile::Volatile;
use crate::trace::record::ObservedPrompt;

/// A prompt at the beginning of a buffer of tokens.
pub(crate) struct Prompt {
    pub(crate) receipt: Receipt,
    /// Tokens of the prompt.
    pub(crate) length: usize,
    /// The text before the user's words, for this turn alone.
    pub(crate) volatile: String,
    /// Ids of the messages in its block of memory.
    pub(crate) memory: Vec<String>,
    /// The prompt as its trace will tell it.
    pub(crate) observed: ObservedPrompt,
}

/// The tools with which a prompt is put together.
pub(crate) struct Workbench<'b, E> {
    pub(crate) budget: &'b Budget,
    pub(crate) encoder: &'b mut E,
    /// The buffer of the prompt, as long as the window.
    pub(crate) tokens: &'b mut [Token],
}

/// Assembles the prompt of `turn` from `input`, with the block of this turn and what `recall` finds
/// beside it.
pub(crate) fn build<E: PromptEncoder>(
    bench: &mut Workbench<'_, E>,
    turn: TurnSeq,
    input: &Input<'_>,
    mut volatile: Volatile,
    recall: &mut Recall<'_>,
) -> Result<Prompt, AssembleError<E::Error>> {
    let mut draft = bench.assemble(input, &volatile)?;
    // Beside memory history may have to give way; what it no longer shows may then be remembered.
    for _ in 0..2 {
        let from = draft.receipt.history_from;
        let block = recall.block(bench.encoder, from)?;
        if block.ids.is_empty() {
            note_left_out(&mut draft.receipt, block.left_out);
            break;
        }
        volatile.remember(bench.encoder, block)?;
        let input = Input { keep_from: from.or(input.keep_from), ..*input };
        match bench.assemble(&input, &volatile) {
            Ok(with) => draft = with,
            Err(reason) => {
                tracing::warn!(%reason, "nothing is remembered: the block doesn't fit");
                volatile.remember(bench.encoder, MemoryBlock::EMPTY)?;
                draft = bench.assemble(&input, &volatile)?;
                break;
            }
        }
        if draft.receipt.history_from == from {
            break;
        }
    }
    let Draft { receipt, length, ends } = draft;
    let text = volatile.text();
    let shown = assemble::Volatile { text: &text, parts: &[] };
    let input = Input { volatile: shown, ..*input };
    let tokens = bench.tokens.get(..length).unwrap_or(bench.tokens);
    let from = receipt.history_from;
    let observed = ObservedPrompt::new(&input, turn, from, tokens, ends, volatile.bytes());
    let memory = volatile.remembered().to_vec();
    Ok(Prompt { receipt, length, volatile: text, memory, observed })
}

/// An assembled prompt that isn't observed yet.
struct Draft {
    receipt: Receipt,
    length: usize,
    /// End of each message in the tokens.
    ends: Vec<usize>,
}

impl<E: PromptEncoder> Workbench<'_, E> {
    fn assemble(
        &mut self,
        input: &Input<'_>,
        volatile: &Volatile,
    ) -> Result<Draft, AssembleError<E::Error>> {
        let text = volatile.text();
        let parts = volatile.parts();
        let found = Omission { what: OmissionKind::Found, count: volatile.found_and_left_out() };
        let omitted: Vec<_> = input.omitted.iter().copied().chain([found]).collect();
        let shown = assemble::Volatile { text: &text, parts: &parts };
        let input = Input { volatile: shown, omitted: &omitted, ..*input };
        let mut messages = vec![Message::new(Role::User, ""); 2 * input.history.len() + 2];
        let mut ends = vec![0; messages.len()];
        let scratch = Scratch { messages: &mut messages, ends: &mut ends, tokens: self.tokens };
        let slot = assemble::assemble(self.budget, self.encoder, &input, scratch)?;
        let length = slot.tokens.len();
        let receipt = slot.receipt;
        Ok(Draft { receipt, length, ends })
    }
}

/// Accounts for messages that were found and aren't in the prompt at all.
fn note_left_out(receipt: &mut Receipt, count: u64) {
    if count > 0 {
        // One of each kind, and room for as many.
        let _ = receipt.omitted.push(Omission { what: OmissionKind::Found, count });
    }
}
