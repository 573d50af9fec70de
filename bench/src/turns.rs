//! `turns`: a scripted conversation, Garret beside re-sending everything each turn.
//!
//! Both run on the same model in the same process, each with a context of its own. Garret answers a
//! message; then the very prompt it decoded is given to the other context, whose cache was filled
//! with something else before, as a program does that sends the whole conversation to a model that
//! keeps nothing. New tokens of a turn are those of its prompt that were neither in the prompt
//! before nor in the reply to it.

use std::error::Error;
use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use garret::Cancel;
use garret::agent::Agent;
use garret::config::Config;
use garret::open::Plan;
use garret_core::id::SessionId;
use garret_core::model::{ChatModel, Event, ModelRole, Reply, Request, Sampling};
use garret_core::receipt::BlockName;
use garret_core::token::Token;
use garret_llm::encoder::Encoder;
use garret_llm::{LlamaChat, Model};

use crate::conditions;
use crate::record::Recorder;
use crate::script::MESSAGES;
use crate::statistics::{median, percentile};

/// Options of `turns`.
#[derive(Args)]
pub(crate) struct Options {
    /// Chat model [default: the starter model]
    #[arg(long, value_name = "FILE")]
    model: Option<PathBuf>,
    /// Turns, at most 40
    #[arg(long, default_value_t = 40)]
    turns: usize,
    /// Window in tokens
    #[arg(long, default_value_t = 8_192)]
    window: u32,
    /// Most tokens of a reply
    #[arg(long, default_value_t = 32)]
    max_tokens: u32,
}

/// Measures and prints.
pub(crate) fn run(options: &Options) -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let flags = vec![
        ("window", options.window.to_string()),
        ("max_tokens", options.max_tokens.to_string()),
        ("temperature", "0".to_owned()),
        ("seed", "1".to_owned()),
    ];
    let config = conditions::configuration(folder.path(), options.model.as_deref(), flags)?;
    let plan = Plan::new(&config)?;
    let (chat, encoder) = plan.load(&config)?;
    let (other, _) = plan.load(&config)?;
    conditions::print(&config, &plan, chat.facts());
    let mut bench = Bench::new(&config, chat, encoder, other)?;
    println!(
        "\nturn  prompt     new | Garret: prefilled  first ms  at rest | re-sent: prefilled  first ms"
    );
    let messages = MESSAGES.iter().take(options.turns.clamp(2, MESSAGES.len()));
    let rows = messages.enumerate().map(|(i, text)| bench.turn(i + 1, text));
    let rows = rows.collect::<Result<Vec<_>, _>>()?;
    summarise(&rows);
    Ok(())
}

struct Bench {
    agent: Agent<Recorder<LlamaChat>, Encoder<Model>>,
    recorder: Recorder<LlamaChat>,
    other: LlamaChat,
    session: SessionId,
    /// Tokens that were in the cache after the last turn.
    known: u32,
    /// Turn with which the last prompt's history began.
    from: u64,
}

/// One turn, measured both ways.
struct Row {
    new: u32,
    prefilled: u32,
    first_ms: f64,
    resent_prefilled: u32,
    resent_first_ms: f64,
    /// True where history begins as in the turn before.
    history_fits: bool,
}

impl Bench {
    fn new(
        config: &Config,
        chat: LlamaChat,
        encoder: Encoder<Model>,
        other: LlamaChat,
    ) -> Result<Self, Box<dyn Error>> {
        let recorder = Recorder::new(chat);
        let parts = conditions::parts(config, recorder.clone(), encoder)?;
        let options = conditions::options(config, &parts.model);
        let agent = Agent::new(parts, options)?;
        Ok(Self { agent, recorder, other, session: "bench".parse()?, known: 0, from: 1 })
    }

    fn turn(&mut self, number: usize, text: &str) -> Result<Row, Box<dyn Error>> {
        let stop = Cancel::new();
        let mut first = None;
        let began = Instant::now();
        let mut listen = |_: &str| {
            first.get_or_insert_with(|| began.elapsed());
        };
        let turn = self.agent.turn(&self.session, text, &stop, &mut listen);
        let outcome = smol::block_on(turn)?;
        let first_ms = first.unwrap_or_else(|| began.elapsed()).as_secs_f64() * 1e3;
        let receipt = &outcome.receipt;
        let calls = self.recorder.take();
        let prompt = calls.into_iter().rev().find(|call| call.max_tokens > 0);
        let prompt = prompt.ok_or("nothing was asked of the model")?.prompt;
        let (resent_prefilled, resent_first_ms) = self.resend(&prompt)?;
        let row = Row {
            new: receipt.prompt_tokens.saturating_sub(self.known),
            prefilled: receipt.prefilled_tokens,
            first_ms,
            resent_prefilled,
            resent_first_ms,
            history_fits: receipt.history_from.is_none_or(|from| from == self.from),
        };
        // What is remembered is new in every prompt; nobody types while the rest is brought in.
        let volatile = [BlockName::Time, BlockName::Memory].map(|name| receipt.block(name));
        let volatile: u32 = volatile.into_iter().flatten().map(|block| block.tokens).sum();
        self.known = receipt.prompt_tokens - volatile + receipt.reply_tokens;
        self.from = receipt.history_from.unwrap_or(1);
        let idle = smol::block_on(self.agent.idle(&self.session)).prefilled;
        println!(
            "{number:>4} {:>7} {:>7} | {:>17} {:>9.0} {idle:>8} | {:>18} {:>9.0}",
            receipt.prompt_tokens,
            row.new,
            row.prefilled,
            row.first_ms,
            resent_prefilled,
            resent_first_ms
        );
        Ok(row)
    }

    /// Decodes `prompt` on the other context from nothing; tokens prefilled and milliseconds to the
    /// first token.
    fn resend(&self, prompt: &[Token]) -> Result<(u32, f64), Box<dyn Error>> {
        // A prompt that shares no prefix with any other makes the cache worthless.
        let foreign: Vec<_> = prompt.iter().rev().take(2).copied().collect();
        self.first_token(&foreign)?;
        let began = Instant::now();
        let prefilled = self.first_token(prompt)?;
        Ok((prefilled, began.elapsed().as_secs_f64() * 1e3))
    }

    fn first_token(&self, prompt: &[Token]) -> Result<u32, Box<dyn Error>> {
        let sampling = Sampling { temperature: 0.0, ..Sampling::default() };
        let role = ModelRole::Main;
        let request = Request { role, prompt, max_tokens: 1, sampling, grammar: None };
        let mut reply = self.other.start(request)?;
        let mut decoded = 0;
        smol::block_on(async {
            while let Some(event) = smol::future::poll_fn(|cx| reply.poll_event(cx)).await {
                if let Event::Prefilled { prefilled, .. } = event? {
                    decoded = prefilled;
                }
            }
            Ok(decoded)
        })
    }
}

fn summarise(rows: &[Row]) {
    // The first turn has no history to reuse; a turn that finds the window full re-sends by design.
    let fitting: Vec<_> = rows.iter().skip(1).filter(|row| row.history_fits).collect();
    let per_new: Vec<_> =
        fitting.iter().map(|row| f64::from(row.prefilled) / f64::from(row.new.max(1))).collect();
    let tokens: Vec<_> = fitting
        .iter()
        .map(|row| f64::from(row.resent_prefilled) / f64::from(row.prefilled.max(1)))
        .collect();
    let time: Vec<_> = fitting.iter().map(|row| row.resent_first_ms / row.first_ms).collect();
    let (ours, theirs): (u32, u32) =
        rows.iter().fold((0, 0), |(a, b), row| (a + row.prefilled, b + row.resent_prefilled));
    println!("\nover {} turns that go on from the one before:", fitting.len());
    let line = |what: &str, values: &[f64]| {
        println!(
            "{what:<44} median {:>6.2}  p95 {:>6.2}",
            median(values),
            percentile(values, 0.95)
        );
    };
    line("tokens prefilled / tokens new (Garret)", &per_new);
    line("tokens prefilled, re-sent / Garret", &tokens);
    line("time to first token, re-sent / Garret", &time);
    println!("all turns: {ours} tokens prefilled by Garret, {theirs} when re-sent");
}
