//! `/why`: the receipt of the last turn, for people.

use std::error::Error;

use garret_core::id::SessionId;

use super::output;
use crate::agent::LastReceipt;
use crate::open::LocalAgent;

/// Prints the receipt of the newest answered turn.
pub(super) fn print(agent: &LocalAgent, session: &SessionId) -> Result<(), Box<dyn Error>> {
    match agent.last_receipt(session)? {
        Some(last) => output::say(explain(&last).trim_end())?,
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
    if receipt.omitted.is_empty() {
        text += "Nothing was left out.\n";
    }
    for omitted in &receipt.omitted {
        text += &format!("Left out: {} {}: {}.\n", omitted.count, omitted.what, omitted.why);
    }
    text
}
