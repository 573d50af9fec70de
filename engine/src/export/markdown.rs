//! The export for people. Stored texts stand in fences that they can't end.

use std::io::{self, Write};

use super::head::Head;
use super::prompt::{Prompt, Segment};
use super::turn::{Companions, Fact, Model, Receipt, Reply, Round, Summary, Turn};
use crate::escape_control::escape_control;

/// Writes what stands above the turns.
pub(super) fn head(out: &mut dyn Write, head: &Head<'_>, turns: u64) -> io::Result<()> {
    writeln!(out, "# Conversation {}\n", code(head.session))?;
    if !head.title.is_empty() {
        writeln!(out, "Title: {}\n", code(head.title))?;
    }
    let created = head.created.as_deref().unwrap_or("at an unknown time");
    writeln!(out, "- turns: {turns}\n- begun: {created}")?;
    if let Some(exported) = &head.exported {
        writeln!(out, "- exported: {exported}")?;
    }
    writeln!(
        out,
        "\nEach turn has the prompt that the model was given, block by block, with what the chat \
         template wrote. Control characters are shown as pictures."
    )
}

/// Writes a turn.
pub(super) fn turn(out: &mut dyn Write, turn: &Turn) -> io::Result<()> {
    writeln!(out, "\n## Turn {}\n", turn.turn)?;
    facts_of(out, turn)?;
    if let Some(user) = &turn.user {
        let by = turn.speaker.as_deref();
        writeln!(
            out,
            "\n### {}\n",
            by.map_or("User".into(), |name| format!("Said by {}", code(name)))
        )?;
        fence(out, user)?;
    }
    if let Some(reply) = &turn.reply {
        writeln!(out, "\n### Reply\n")?;
        fence(out, &reply.text)?;
    }
    if let Some(wrote) = &turn.wrote {
        writeln!(out, "\nThe model wrote this, of which tags are not shown:\n")?;
        fence(out, wrote)?;
    }
    if let Some(given_up) = &turn.given_up {
        writeln!(out, "\nIt was asked twice: of this nothing could be shown:\n")?;
        fence(out, given_up)?;
    }
    match &turn.receipt {
        Some(it) => receipt(out, it)?,
        None if turn.prompt.is_some() => writeln!(out, "\n### Prompt")?,
        None => {}
    }
    if let Some(why) = turn.no_prompt {
        let lead = if turn.prompt.is_some() { "The prompt isn't exact" } else { "No prompt" };
        writeln!(out, "\n{lead}: {why}.")?;
    }
    turn.prompt.as_ref().map_or(Ok(()), |it| prompt(out, it))?;
    turn.rounds.iter().try_for_each(|it| round(out, it))?;
    turn.companions.as_ref().map_or(Ok(()), |it| companions(out, it))?;
    learned(out, &turn.facts)?;
    turn.summaries.iter().try_for_each(|it| summary(out, it))
}

/// Writes when a turn was, how it ended, and by which model.
fn facts_of(out: &mut dyn Write, turn: &Turn) -> io::Result<()> {
    if let Some(accepted) = &turn.accepted {
        let sure = match turn.clock {
            Some("good") | None => String::new(),
            Some(clock) => format!(" (clock: {clock})"),
        };
        writeln!(out, "- accepted: {accepted}{sure}")?;
    }
    let Some(Reply { finish, finished, model, first_token_ms, total_ms, .. }) = &turn.reply else {
        return writeln!(out, "- {}", turn.state);
    };
    writeln!(out, "- answered: {}, {finish}", finished.as_deref().unwrap_or("at an unknown time"))?;
    if let Some(total) = total_ms {
        let first = first_token_ms.map(|ms| format!("first token after {}, ", seconds(ms)));
        writeln!(out, "- took: {}in all {}", first.unwrap_or_default(), seconds(*total))?;
    }
    writeln!(out, "- model: {}", named(model))
}

fn receipt(out: &mut dyn Write, receipt: &Receipt) -> io::Result<()> {
    let report = &receipt.report;
    let prompt = report.prompt_tokens;
    let window = report.n_ctx;
    writeln!(out, "\n### Prompt: {prompt} tokens in a window of {window}\n")?;
    writeln!(out, "| block | tokens | ceiling |\n|---|--:|--:|")?;
    for block in &report.blocks {
        writeln!(out, "| {} | {} | {} |", block.name, block.tokens, block.ceiling)?;
    }
    writeln!(
        out,
        "\n- from the KV cache: {}, prefilled: {}\n- reply: {} tokens of {} reserved; reserved for \
         companions: {}",
        report.reused_tokens,
        report.prefilled_tokens,
        report.reply_tokens,
        report.reply_reserve,
        receipt.companion_reserve
    )?;
    if let Some(made_at) = receipt.made_at {
        writeln!(out, "- the beginning of the prompt was made for turn {made_at}")?;
    }
    for omitted in &report.omitted {
        writeln!(out, "- left out: {} {}: {}", omitted.count, omitted.what, omitted.why)?;
    }
    for id in &report.memory {
        writeln!(out, "- remembered: {}", code(id))?;
    }
    Ok(())
}

/// The segments, those of one block together.
fn prompt(out: &mut dyn Write, prompt: &Prompt) -> io::Result<()> {
    for block in prompt.segments.chunk_by(|a, b| a.block == b.block) {
        let name = block.first().map_or("", |segment| segment.block.as_str());
        let turns: Vec<_> = block.iter().filter_map(|segment| segment.turn).collect();
        let turns = match (turns.first(), turns.last()) {
            (Some(first), Some(last)) if first != last => format!(", turns {first} to {last}"),
            (Some(only), _) => format!(", turn {only}"),
            _ => String::new(),
        };
        writeln!(out, "\n#### {name}{turns}\n")?;
        fence(out, &joined(block))?;
    }
    Ok(())
}

fn round(out: &mut dyn Write, round: &Round) -> io::Result<()> {
    writeln!(out, "\n### Looked up: {}\n", code(&round.call))?;
    if let Some(tokens) = round.tokens {
        let shortened = if round.shortened == Some(true) { ", shortened" } else { "" };
        let reused = round.reused_tokens.unwrap_or(0);
        let prefilled = round.prefilled_tokens.unwrap_or(0);
        writeln!(
            out,
            "- {tokens} tokens{shortened}; went on with {reused} from the KV cache, {prefilled} \
             prefilled\n"
        )?;
    }
    writeln!(out, "The model wrote:\n")?;
    fence(out, &round.wrote)?;
    writeln!(out, "\nand was given:\n")?;
    fence(out, &joined(&round.segments))
}

fn companions(out: &mut dyn Write, companions: &Companions) -> io::Result<()> {
    let list = |names: &[String]| match names {
        [] => "none".to_owned(),
        names => names.join(", ").replace('_', " "),
    };
    let due: Vec<String> = companions.due.iter().map(|name| (*name).to_owned()).collect();
    writeln!(out, "\n### Companions\n")?;
    writeln!(out, "- due: {}\n- noticed: {}", list(&due), list(&companions.noticed))?;
    writeln!(out, "- asked for by the model: {}", list(&companions.asked))
}

fn learned(out: &mut dyn Write, facts: &[Fact]) -> io::Result<()> {
    if facts.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n### Facts from this turn")?;
    for fact in facts {
        let how = if fact.inferred { "inferred" } else { "said" };
        writeln!(out, "\n{} ({how}; source: {}):\n", fact.id, code(&fact.source))?;
        fence(out, &fact.text)?;
    }
    Ok(())
}

fn summary(out: &mut dyn Write, summary: &Summary) -> io::Result<()> {
    let Summary { id, from, to, tokens, method, .. } = summary;
    writeln!(out, "\n### Summary {id} of turns {from} to {to}\n")?;
    let made = summary.made.as_deref().unwrap_or("at an unknown time");
    writeln!(out, "- made: {made}, {method}, {tokens} tokens, by {}\n", named(&summary.model))?;
    fence(out, &summary.text)
}

fn joined(segments: &[Segment]) -> String {
    segments.iter().map(|segment| segment.text.as_str()).collect()
}

fn named(model: &Model) -> String {
    let short = model.sha256.get(..16).unwrap_or(&model.sha256);
    match &model.file {
        Some(file) => format!("{} (SHA-256 {short}...)", code(file)),
        None => format!("SHA-256 {short}..."),
    }
}

fn seconds(ms: f64) -> String {
    format!("{:.2} s", ms / 1_000.0)
}

/// Writes a stored text in a fence that is longer than any run of backticks in it.
pub fn fence(out: &mut dyn Write, text: &str) -> io::Result<()> {
    let text = escape_control(text);
    let fence = "`".repeat((longest_run(&text) + 1).max(3));
    let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    writeln!(out, "{fence}text\n{text}{end}{fence}")
}

/// Returns a stored text as code within a line.
pub fn code(text: &str) -> String {
    let text = escape_control(text).replace(['\n', '\t'], " ");
    let ticks = "`".repeat(longest_run(&text) + 1);
    let pad =
        if text.is_empty() || text.starts_with('`') || text.ends_with('`') { " " } else { "" };
    format!("{ticks}{pad}{text}{pad}{ticks}")
}

/// Length of the longest run of backticks.
fn longest_run(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn fenced(text: &str) -> String {
        let mut out = Vec::new();
        fence(&mut out, text).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_text_with_fences_stays_in_its_own() {
        assert_eq!(fenced("a"), "```text\na\n```\n");
        assert_eq!(fenced("```rust\nx\n````\n"), "`````text\n```rust\nx\n````\n`````\n");
        assert_eq!(fenced(""), "```text\n```\n");
        assert_eq!(fenced("\u{1b}[2J"), "```text\n\u{241b}[2J\n```\n");
    }

    #[test]
    fn a_text_within_a_line_stays_in_it() {
        assert_eq!(code("kitchen"), "`kitchen`");
        assert_eq!(code("a`b"), "``a`b``");
        assert_eq!(code("`x\ny"), "`` `x y ``");
    }

    proptest! {
        /// The first line that could close the fence is the last one.
        #[test]
        fn no_text_ends_its_fence(text in "(`{1,5}|~|\n|[a-z ]|\\PC){0,30}") {
            let fenced = fenced(&text);
            let opening = fenced.lines().next().unwrap();
            let ticks = opening.bytes().take_while(|byte| *byte == b'`').count();
            let closes = |line: &str| {
                let line = line.trim();
                line.len() >= ticks && line.bytes().all(|byte| byte == b'`')
            };
            let closing = fenced.lines().skip(1).position(closes);
            prop_assert_eq!(closing, Some(fenced.lines().count() - 2));
        }
    }
}
