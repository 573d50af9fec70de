//! The count of turns that can't be had any more, word for word.

use std::collections::HashMap;
use std::error::Error;

use garret::agent::Agent;
use garret::tools::{self, Call, Context, Place};
use garret_core::id::SessionId;
use garret_llm::Model;
use garret_llm::encoder::Encoder;

use super::scripted::ScriptedModel;
use crate::talk;

/// Counts the turns of 1 to `turns` that are neither in the last prompt, whose history begins with
/// turn `from`, nor under exactly one leaf from which `expand` gives their exact words.
pub(super) fn lost(
    agent: &Agent<ScriptedModel, Encoder<Model>>,
    session: &SessionId,
    turns: u64,
    from: u64,
    model: &ScriptedModel,
) -> Result<u64, Box<dyn Error>> {
    let prompt = model.last_prompt();
    let mut found: HashMap<u64, u32> = HashMap::new();
    for leaf in agent.store().summaries(session)?.iter().filter(|summary| summary.depth == 0) {
        let call = Call::ExpandSummary { summary: leaf.id.0, from: None, place: Place::Here };
        let context = Context { session: Some(session), ..Context::new(agent.store()) };
        let answer = tools::run(&context, &call)?;
        let says = |turn, source: &str, text: &str| {
            answer.entries.iter().any(|entry| {
                (entry.turn, entry.source.as_deref()) == (Some(turn), Some(source))
                    && entry.text == text
            })
        };
        for turn in leaf.from..=leaf.to {
            let whole = says(turn, "user", &talk::message(turn))
                && says(turn, "assistant", talk::reply(turn).trim_end());
            *found.entry(turn).or_default() += u32::from(whole);
        }
    }
    let in_prompt = |turn: u64| {
        let reply = turn == turns || prompt.contains(talk::reply(turn).trim_end());
        turn >= from && prompt.contains(talk::message(turn).trim_end()) && reply
    };
    let is_kept = |turn: &u64| match found.get(turn) {
        None => in_prompt(*turn),
        Some(leaves) => *leaves == 1,
    };
    Ok((1..=turns).filter(|turn| !is_kept(turn)).count() as u64)
}
