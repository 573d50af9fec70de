//! Output of the program for scripts, read strictly: an unknown, missing or doubled key is an
//! error, and every receipt is added up.

use std::collections::BTreeMap;

use serde::Deserialize;

/// One answer of `garret chat --json`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    /// Name of the conversation.
    pub session: String,
    /// Number of the turn, from 1.
    pub turn: u64,
    /// The words of the model.
    pub reply: String,
    /// `stop`, `length` or `cancelled`.
    pub finish: String,
    /// The account of the turn.
    pub receipt: Receipt,
    /// Lookups of the model on the way.
    #[serde(default)]
    pub tools: Vec<Round>,
    /// Companions that the model asked for.
    #[serde(default)]
    pub companions: Vec<String>,
}

/// Something that was looked up; sizes in tokens.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Round {
    /// The call.
    pub call: String,
    /// The message with the result.
    pub tokens: u64,
    /// True if it had to be shortened.
    pub shortened: bool,
    /// Of the prompt that went on with it, found in the KV cache.
    pub reused_tokens: u64,
    /// Of that prompt, decoded.
    pub prefilled_tokens: u64,
}

/// The output of `garret memory search --json`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Searched {
    /// The best first.
    pub hits: Vec<Hit>,
    /// Messages that were searched.
    pub searched: u64,
    /// Microseconds that it took.
    pub took_us: u64,
}

/// A message found.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hit {
    /// `SESSION/TURN/SOURCE` of a message, `f12` of a fact.
    pub id: String,
    /// The part that is closest to the query.
    pub text: String,
    /// Its worth.
    pub score: f64,
    /// `user` or `assistant`.
    pub source: String,
    /// Name of the conversation.
    pub session: Option<String>,
    /// Number of the turn.
    pub turn: Option<u64>,
    /// When it was said.
    pub valid_at: Option<String>,
    /// When it stopped being true: never, for what was said.
    pub valid_to: Option<String>,
    /// The terms of which the score is the sum.
    pub parts: BTreeMap<String, f64>,
}

/// The account of one answer; all sizes in tokens.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Receipt {
    /// The window.
    pub n_ctx: u64,
    /// The prompt.
    pub prompt_tokens: u64,
    /// Of the prompt, found in the KV cache.
    pub reused_tokens: u64,
    /// Of the prompt, decoded for this turn.
    pub prefilled_tokens: u64,
    /// The reply.
    pub reply_tokens: u64,
    /// Kept free for the reply.
    pub reply_reserve: u64,
    /// Parts of the prompt.
    pub blocks: Vec<Block>,
    /// Contents that are stored and not shown to the model.
    pub omitted: Vec<Omitted>,
    /// Messages that were remembered.
    pub memory: Vec<String>,
}

/// A part of a prompt.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Block {
    /// `system`, `history`, `memory` or `message`.
    pub name: String,
    /// Its size.
    pub tokens: u64,
    /// Most it could have taken.
    pub ceiling: u64,
}

/// Something that the prompt doesn't show.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Omitted {
    /// Of what kind.
    pub what: String,
    /// The number of them.
    pub count: u64,
    /// The reason.
    pub why: String,
}

/// One turn of `garret session show --json`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Said {
    /// Number of the turn, from 1.
    pub turn: u64,
    /// When it was accepted, in words.
    pub accepted: String,
    /// The user's message.
    pub user: String,
    /// The reply, if there is one.
    pub reply: Option<String>,
    /// Why the reply ended.
    pub finish: Option<String>,
}

/// One conversation of `garret session list --json`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Listed {
    /// Its name.
    pub session: String,
    /// Turns in it.
    pub turns: u64,
    /// When it began, in words.
    pub created: String,
    /// When it was last used, in words.
    pub updated: String,
}

/// A message and both answers, as `garret chat --ab --json` prints them.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "`garret_cli::ab` documents every field")]
pub struct Compared {
    pub prompt: u64,
    pub session: String,
    pub turn: Option<u64>,
    pub at: Option<String>,
    pub user: String,
    pub first: String,
    pub garret: Measured,
    pub baseline: Measured,
}

/// One answer of a [`Compared`] message.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "`garret_cli::ab` documents every field")]
pub struct Measured {
    pub reply: String,
    pub finish: String,
    pub prompt_tokens: u64,
    pub reused_tokens: u64,
    pub prefilled_tokens: u64,
    pub reply_tokens: u64,
    pub first_token_ms: Option<f64>,
    pub total_ms: f64,
    pub receipt: Receipt,
    pub tools: Vec<Round>,
}

/// The end of such an output.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "`garret_cli::ab` documents every field")]
pub struct ComparedAll {
    pub prompts: u64,
    pub garret: Totals,
    pub baseline: Totals,
}

/// One side of [`ComparedAll`].
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "`garret_cli::ab` documents every field")]
pub struct Totals {
    pub answered: u64,
    pub prompt_tokens: u64,
    pub prefilled_tokens: u64,
    pub reply_tokens: u64,
    pub first_token_ms: Option<f64>,
    pub total_ms: f64,
}

impl ComparedAll {
    /// Reads a whole comparison: its messages, and what they come to.
    ///
    /// # Panics
    /// When it isn't exactly one.
    pub fn read(lines: &str) -> (Vec<Compared>, Self) {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Last {
            summary: ComparedAll,
        }
        let (all, last) = lines.trim_end().rsplit_once('\n').expect("a message and a summary");
        (objects(all), object::<Last>(last).summary)
    }
}

/// The output of `garret session export --format json`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exported {
    format: String,
    version: u32,
    /// Name of the conversation.
    pub session: String,
    title: String,
    created: Option<String>,
    exported: Option<String>,
    /// Its turns.
    pub turns: Vec<ExportedTurn>,
}

/// A turn with all that the model saw in it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "`garret::export` documents every field")]
pub struct ExportedTurn {
    pub turn: u64,
    pub state: String,
    pub accepted: Option<String>,
    pub clock: Option<String>,
    pub speaker: Option<String>,
    pub user: Option<String>,
    pub reply: Option<ExportedReply>,
    pub prompt: Option<ExportedPrompt>,
    pub no_prompt: Option<String>,
    pub rounds: Vec<ExportedRound>,
    pub wrote: Option<String>,
    pub given_up: Option<String>,
    pub receipt: Option<ExportedReceipt>,
    pub companions: Option<ExportedCompanions>,
    pub facts: Vec<ExportedFact>,
    pub summaries: Vec<ExportedSummary>,
}

/// A part of [`ExportedTurn`].
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "`garret::export` documents every field")]
pub struct ExportedReply {
    pub text: String,
    pub finish: String,
    pub finished: Option<String>,
    pub model: ExportedModel,
    pub first_token_ms: Option<f64>,
    pub total_ms: Option<f64>,
}

/// A part of [`ExportedTurn`].
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "`garret::export` documents every field")]
pub struct ExportedModel {
    pub sha256: String,
    pub file: Option<String>,
}

/// A part of [`ExportedTurn`].
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "`garret::export` documents every field")]
pub struct ExportedPrompt {
    pub exact: bool,
    pub segments: Vec<ExportedSegment>,
}

/// A part of [`ExportedTurn`].
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "`garret::export` documents every field")]
pub struct ExportedSegment {
    pub block: String,
    pub by: String,
    pub turn: Option<u64>,
    pub text: String,
}

/// A part of [`ExportedTurn`].
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "`garret::export` documents every field")]
pub struct ExportedRound {
    pub call: String,
    pub wrote: String,
    pub segments: Vec<ExportedSegment>,
    pub tokens: Option<u64>,
    pub shortened: Option<bool>,
    pub reused_tokens: Option<u64>,
    pub prefilled_tokens: Option<u64>,
}

/// A part of [`ExportedTurn`].
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "`garret::export` documents every field")]
pub struct ExportedReceipt {
    pub n_ctx: u64,
    pub prompt_tokens: u64,
    pub reused_tokens: u64,
    pub prefilled_tokens: u64,
    pub reply_tokens: u64,
    pub reply_reserve: u64,
    pub blocks: Vec<Block>,
    pub omitted: Vec<Omitted>,
    pub memory: Vec<String>,
    pub companion_reserve: u64,
    pub history_from: Option<u64>,
    pub made_at: Option<u64>,
}

/// A part of [`ExportedTurn`].
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "`garret::export` documents every field")]
pub struct ExportedCompanions {
    pub due: Vec<String>,
    pub noticed: Vec<String>,
    pub asked: Vec<String>,
}

/// A part of [`ExportedTurn`].
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "`garret::export` documents every field")]
pub struct ExportedFact {
    pub id: String,
    pub text: String,
    pub source: String,
    pub quote: Option<String>,
    pub inferred: bool,
    pub recorded: Option<String>,
}

/// A part of [`ExportedTurn`].
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "`garret::export` documents every field")]
pub struct ExportedSummary {
    pub id: String,
    pub depth: u8,
    pub from: u64,
    pub to: u64,
    pub text: String,
    pub tokens: u64,
    pub method: String,
    pub model: ExportedModel,
    pub made: Option<String>,
}

impl Exported {
    /// Reads an export.
    ///
    /// # Panics
    /// When it isn't exactly one.
    pub fn read(text: &str) -> Self {
        let exported: Self = object(text);
        assert_eq!((exported.format.as_str(), exported.version), ("garret-session", 1));
        exported
    }
}

impl Answer {
    /// Reads one line and adds its receipt up.
    ///
    /// # Panics
    /// When the line isn't exactly such an object, or the sums don't agree.
    pub fn read(line: &str) -> Self {
        let answer: Self = object(line);
        let receipt = &answer.receipt;
        let sum: u64 = receipt.blocks.iter().map(|block| block.tokens).sum();
        assert_eq!(sum, receipt.prompt_tokens, "blocks make the prompt up: {line}");
        let decoded = receipt.reused_tokens + receipt.prefilled_tokens;
        // Only a reply that was stopped before its first token has a prompt decoded in part.
        let silent = answer.finish == "cancelled" && receipt.reply_tokens == 0;
        let whole = decoded == receipt.prompt_tokens || silent;
        assert!(whole && decoded <= receipt.prompt_tokens, "reused or prefilled: {line}");
        assert!(receipt.prompt_tokens + receipt.reply_reserve <= receipt.n_ctx, "fits: {line}");
        assert!(receipt.reply_tokens <= receipt.reply_reserve, "as reserved: {line}");
        let within = |block: &Block| block.tokens <= block.ceiling;
        assert!(receipt.blocks.iter().all(within), "under the ceilings: {line}");
        assert!(["stop", "length", "cancelled"].contains(&answer.finish.as_str()), "{line}");
        answer
    }

    /// Reads all lines of an output.
    ///
    /// # Panics
    /// When [`Answer::read`] does, and when the last line has no end.
    pub fn read_all(output: &str) -> Vec<Self> {
        assert!(output.is_empty() || output.ends_with('\n'), "whole lines: {output}");
        output.lines().map(Self::read).collect()
    }

    /// Tokens of the block called `name`; 0 when there is none.
    pub fn block(&self, name: &str) -> u64 {
        let named = self.receipt.blocks.iter().filter(|block| block.name == name);
        named.map(|block| block.tokens).sum()
    }
}

/// Reads every line as an object of type `T`.
///
/// # Panics
/// When a line isn't one.
pub fn objects<T: serde::de::DeserializeOwned>(output: &str) -> Vec<T> {
    output.lines().map(object).collect()
}

fn object<T: serde::de::DeserializeOwned>(line: &str) -> T {
    serde_json::from_str(line).unwrap_or_else(|error| panic!("{error} in: {line}"))
}
