//! `/why`: the receipt of the last turn, and what the last compaction did, for people.

use std::error::Error;

use garret::agent::{LastReceipt, SessionPrefix};
use garret::open::LocalAgent;
use garret::receipt::{CompanionsReport, RoundReport};
use garret_core::id::SessionId;
use garret_core::model::ModelFacts;
use garret_core::scan::Companion;

use crate::output;

/// Prints the receipt of the newest answered turn.
pub(super) fn print(agent: &LocalAgent, session: &SessionId) -> Result<(), Box<dyn Error>> {
    match agent.last_receipt(session)? {
        Some(last) => {
            let mut text = explain(&last);
            if let Some(context) = agent.session_prefix(session)? {
                text += &explain_beginning(&context);
            }
            output::say(text.trim_end())?;
            if let Some(compaction) = agent.last_summary_run(session)? {
                output::say(&format!("Compaction: {compaction}."))?;
            }
            if let Some(protocol) = agent.tool_protocol() {
                output::say(&format!("Tools: told of and called as {protocol}."))?;
            }
            for companion in Companion::ALL {
                if let Some(facts) = agent.own_model(companion) {
                    output::say(&explain_own(companion, facts))?;
                }
            }
        }
        None => output::say("No turn of this conversation was answered yet.")?,
    }
    Ok(())
}

fn explain(last: &LastReceipt) -> String {
    let receipt = &last.receipt.report;
    let companion = last.receipt.companion_reserve;
    let free =
        receipt.n_ctx.saturating_sub(receipt.prompt_tokens + receipt.reply_reserve + companion);
    let mut text = format!("Turn {}, window {} tokens\n", last.turn, receipt.n_ctx);
    text += "  block               tokens   ceiling\n";
    for block in &receipt.blocks {
        text += &format!("  {:<18} {:>7}   {:>7}\n", block.name, block.tokens, block.ceiling);
    }
    text += &format!("  {:<18} {:>7}\n", "prompt", receipt.prompt_tokens);
    text += &format!("    reused           {:>9}   from the KV cache\n", receipt.reused_tokens);
    text += &format!("    prefilled        {:>9}\n", receipt.prefilled_tokens);
    text += &format!(
        "  {:<18} {:>7}   {:>7} reserved\n",
        "reply", receipt.reply_tokens, receipt.reply_reserve
    );
    text += &format!("  {:<18} {:>7}   {:>7} reserved\n", "companions", 0, companion);
    text += &format!("  {:<18} {:>7}\n", "free", free);
    for id in &receipt.memory {
        text += &format!("Remembered: {id}\n");
    }
    for round in &last.receipt.rounds {
        text += &looked_up(round);
    }
    if !last.receipt.asked.is_empty() {
        text += &format!("The model asked for: {}.\n", last.receipt.asked.join(", "));
    }
    if receipt.omitted.is_empty() {
        text += "Nothing was left out.\n";
    }
    for omitted in &receipt.omitted {
        text += &format!("Left out: {} {}: {}.\n", omitted.count, omitted.what, omitted.why);
    }
    text + &companions(&last.receipt.companions)
}

/// Says which companions were to run after the turn, and what was noticed.
fn companions(report: &CompanionsReport) -> String {
    let CompanionsReport { infer, compact, extract, .. } = *report;
    let due = [(infer, "infer"), (compact, "compact"), (extract, "read for facts")];
    let due: Vec<_> = due.iter().filter(|(due, _)| *due).map(|(_, name)| *name).collect();
    let due = if due.is_empty() { "none".to_owned() } else { due.join(", ") };
    let noticed = match report.reasons.join(", ") {
        reasons if reasons.is_empty() => "nothing was noticed".to_owned(),
        reasons => format!("noticed: {}", reasons.replace('_', " ")),
    };
    format!("Companions: {due} ({noticed}).\n")
}

/// Says that a companion doesn't go on from the conversation.
fn explain_own(companion: Companion, facts: ModelFacts) -> String {
    let name = companion.as_str();
    let hash: String = facts.fingerprint.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    format!(
        "Companion {name}: a model of its own ({hash}..., window {}), told what was said as a text; \
         nothing of the conversation's KV cache is used.",
        facts.n_ctx
    )
}

/// Says what stands in the system message, since when, and what history begins with.
fn explain_beginning(prefix: &SessionPrefix) -> String {
    let list = |letter: char, ids: &[u64]| {
        let ids: Vec<_> = ids.iter().map(|id| format!("{letter}{id}")).collect();
        if ids.is_empty() { "none".to_owned() } else { ids.join(", ") }
    };
    let facts = list('f', &prefix.facts);
    let summaries = list('s', &prefix.summaries);
    let mut text = format!(
        "The prompt begins as it was made for turn {}: facts {facts}; summaries {summaries}.\n",
        prefix.made_at
    );
    if let Some(covered) = prefix.from.checked_sub(1).filter(|turn| *turn > 0) {
        text += &format!(
            "Summaries cover turns 1-{covered}; the last prompt before had {} tokens.\n",
            prefix.before
        );
    }
    text
}

fn looked_up(round: &RoundReport) -> String {
    let RoundReport { call, tokens, reused_tokens, prefilled_tokens, .. } = round;
    let shortened = if round.shortened { ", shortened" } else { "" };
    format!(
        "Looked up: {call}: {tokens} tokens{shortened}; went on with {reused_tokens} reused, \
         {prefilled_tokens} prefilled\n"
    )
}
