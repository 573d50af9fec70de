//! The account of a comparison.

use garret::agent::Outcome;
use garret::receipt::{ReceiptReport, RoundReport};
use garret_core::id::{SessionId, TurnSeq};
use garret_language::local_time;
use serde::Serialize;

/// One of the two that answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// The side with memory, companions and summaries.
    Garret,
    /// The same model without them.
    Baseline,
}

impl Side {
    /// Returns the sides in the order in which they answer the prompt of this number, from 1: each
    /// goes first every other time.
    pub const fn order(prompt: u64) -> [Self; 2] {
        match prompt % 2 {
            1 => [Self::Garret, Self::Baseline],
            _ => [Self::Baseline, Self::Garret],
        }
    }

    /// Returns the name that people read.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Garret => "With Garret",
            Self::Baseline => "Without Garret",
        }
    }
}

/// The answer of one side to a prompt.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Answer {
    /// The side answered.
    Measured(Box<MeasuredReply>),
    /// The side failed.
    Failed {
        /// The reason.
        error: String,
    },
    /// The side wasn't asked: the program was stopped before.
    Skipped {
        /// Always true.
        skipped: bool,
    },
}

impl Answer {
    /// One that wasn't asked.
    pub const SKIPPED: Self = Self::Skipped { skipped: true };

    /// Returns the cost of the answer, if there is one.
    pub fn measured(&self) -> Option<&MeasuredReply> {
        match self {
            Self::Measured(measured) => Some(measured),
            _ => None,
        }
    }
}

/// A reply and what it cost; sizes in tokens.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MeasuredReply {
    /// The reply's text.
    pub reply: String,
    /// The reason for which the reply ended.
    pub finish: &'static str,
    /// The prompt.
    pub prompt_tokens: u32,
    /// Tokens of the prompt that were in the KV cache.
    pub reused_tokens: u32,
    /// Tokens decoded before the reply could go on: of the prompt, and of what was looked up.
    pub prefilled_tokens: u32,
    /// Tokens generated.
    pub reply_tokens: u32,
    /// Milliseconds from the message to the first token.
    pub first_token_ms: Option<f64>,
    /// Milliseconds from the message to the end.
    pub total_ms: f64,
    /// The account of the prompt.
    pub receipt: ReceiptReport,
    /// Lookups on the way.
    pub tools: Vec<RoundReport>,
}

impl From<&Outcome> for MeasuredReply {
    fn from(outcome: &Outcome) -> Self {
        let receipt = ReceiptReport::new(&outcome.receipt, &outcome.memory);
        let looked_up: u32 = outcome.rounds.iter().map(|round| round.prefilled_tokens).sum();
        Self {
            reply: outcome.reply.clone(),
            finish: outcome.finish.as_str(),
            prompt_tokens: receipt.prompt_tokens,
            reused_tokens: receipt.reused_tokens,
            prefilled_tokens: receipt.prefilled_tokens.saturating_add(looked_up),
            reply_tokens: receipt.reply_tokens,
            first_token_ms: outcome.timing.first_us.map(milliseconds),
            total_ms: milliseconds(outcome.timing.total_us),
            receipt,
            tools: outcome.rounds.clone(),
        }
    }
}

/// A prompt and both answers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Record {
    /// The prompt's number in this run, from 1.
    pub prompt: u64,
    /// The conversation.
    pub session: String,
    /// The turn in Garret's conversation, if Garret answered.
    pub turn: Option<TurnSeq>,
    /// The moment at which the prompt was asked.
    pub at: Option<String>,
    /// The prompt.
    pub user: String,
    /// The side that answered first.
    pub first: Side,
    /// Garret's answer.
    pub garret: Answer,
    /// The baseline's.
    pub baseline: Answer,
}

impl Record {
    /// A prompt of this number that was asked at a moment, in milliseconds since 1970, and that
    /// nobody has answered yet.
    pub fn new(prompt: u64, session: &SessionId, user: &str, at_ms: i64) -> Self {
        Self {
            prompt,
            session: session.as_str().to_owned(),
            turn: None,
            at: local_time::format(at_ms, "%Y-%m-%dT%H:%M:%S%.3f%:z"),
            user: user.to_owned(),
            first: Side::order(prompt)[0],
            garret: Answer::SKIPPED,
            baseline: Answer::SKIPPED,
        }
    }

    /// The answer of one side.
    pub const fn answer(&self, side: Side) -> &Answer {
        match side {
            Side::Garret => &self.garret,
            Side::Baseline => &self.baseline,
        }
    }

    /// Takes a side's answer.
    pub fn set(&mut self, side: Side, outcome: Result<&Outcome, String>) {
        if let (Side::Garret, Ok(outcome)) = (side, &outcome) {
            self.turn = Some(outcome.turn);
        }
        let answer = match outcome {
            Ok(outcome) => Answer::Measured(Box::new(outcome.into())),
            Err(error) => Answer::Failed { error },
        };
        match side {
            Side::Garret => self.garret = answer,
            Side::Baseline => self.baseline = answer,
        }
    }
}

/// The account of all prompts of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Summary {
    /// The number of prompts.
    pub prompts: u64,
    /// Garret's side.
    pub garret: Totals,
    /// The baseline's.
    pub baseline: Totals,
}

impl Summary {
    /// Takes a record in.
    pub fn add(&mut self, record: &Record) {
        self.prompts += 1;
        let sides = [(&mut self.garret, &record.garret), (&mut self.baseline, &record.baseline)];
        for (totals, answer) in sides {
            if let Some(measured) = answer.measured() {
                totals.add(measured);
            }
        }
    }
}

/// Sums over the prompts that a side answered.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Totals {
    /// The number of answers.
    pub answered: u64,
    /// Tokens of all prompts.
    pub prompt_tokens: u64,
    /// Tokens that were prefilled while the user waited.
    pub prefilled_tokens: u64,
    /// Tokens that were generated.
    pub reply_tokens: u64,
    /// The median of the times to the first token, in milliseconds.
    pub first_token_ms: Option<f64>,
    /// The sum of the times to the end, in milliseconds.
    pub total_ms: f64,
    #[serde(skip)]
    firsts: Vec<f64>,
}

impl Totals {
    fn add(&mut self, measured: &MeasuredReply) {
        self.answered += 1;
        self.prompt_tokens += u64::from(measured.prompt_tokens);
        self.prefilled_tokens += u64::from(measured.prefilled_tokens);
        self.reply_tokens += u64::from(measured.reply_tokens);
        self.total_ms += measured.total_ms;
        if let Some(first) = measured.first_token_ms {
            let at = self.firsts.partition_point(|other| *other < first);
            self.firsts.insert(at, first);
            self.first_token_ms = median(&self.firsts);
        }
    }
}

/// The middle of sorted numbers, or the mean of the two in the middle.
fn median(sorted: &[f64]) -> Option<f64> {
    let upper = sorted.get(sorted.len() / 2)?;
    let lower = sorted.get((sorted.len() - 1) / 2)?;
    Some(f64::midpoint(*lower, *upper))
}

fn milliseconds(us: u64) -> f64 {
    us as f64 / 1_000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(prefilled: u32, first: Option<f64>) -> Answer {
        let receipt = ReceiptReport {
            n_ctx: 2_048,
            prompt_tokens: 100,
            reused_tokens: 0,
            prefilled_tokens: prefilled,
            reply_tokens: 7,
            reply_reserve: 64,
            blocks: Vec::new(),
            omitted: Vec::new(),
            memory: Vec::new(),
        };
        Answer::Measured(Box::new(MeasuredReply {
            reply: "ok".into(),
            finish: "stop",
            prompt_tokens: 100,
            reused_tokens: 0,
            prefilled_tokens: prefilled,
            reply_tokens: 7,
            first_token_ms: first,
            total_ms: 10.0,
            receipt,
            tools: Vec::new(),
        }))
    }

    #[test]
    fn each_side_goes_first_every_other_time() {
        let first: Vec<_> = (1..=4).map(|prompt| Side::order(prompt)[0]).collect();
        assert_eq!(first, [Side::Garret, Side::Baseline, Side::Garret, Side::Baseline]);
        assert!((1..=4).all(|prompt| Side::order(prompt)[0] != Side::order(prompt)[1]));
    }

    #[test]
    fn a_summary_counts_what_was_answered() {
        let session = "s".parse().unwrap();
        let mut summary = Summary::default();
        for (prompt, first) in [(1, Some(30.0)), (2, Some(10.0)), (3, None), (4, Some(20.0))] {
            let mut record = Record::new(prompt, &session, "Hello", 0);
            record.garret = measured(5, first);
            if prompt == 4 {
                record.baseline = Answer::Failed { error: "no".into() };
            } else if prompt < 3 {
                record.baseline = measured(50, first);
            }
            summary.add(&record);
        }
        let Totals { answered, prompt_tokens, prefilled_tokens, reply_tokens, .. } = summary.garret;
        assert_eq!((answered, prompt_tokens, prefilled_tokens, reply_tokens), (4, 400, 20, 28));
        assert_eq!(summary.garret.first_token_ms, Some(20.0));
        assert_eq!((summary.baseline.answered, summary.baseline.prefilled_tokens), (2, 100));
        assert_eq!((summary.baseline.first_token_ms, summary.prompts), (Some(20.0), 4));
    }
}
