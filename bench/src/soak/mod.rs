//! `soak`: a conversation that goes on and on, with a model that costs nothing.
//!
//! The model answers by rule, the embedder is a stand-in, and everything else is what a user has:
//! the tokenizer and template of a real model, a store on disk, companions in idle time. So the
//! time of a turn is the engine's own, and whatever is lost is lost by the engine.

mod coverage;
mod scripted;

use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use clap::Args;
use garret::Cancel;
use garret::agent::{Agent, Parts};
use garret::config::Config;
use garret::embed;
use garret::open::{self, Plan};
use garret_core::id::SessionId;
use garret_hal::clock::ManualClock;
use garret_hal::entropy::SeededEntropy;
use garret_llm::encoder::Encoder;
use garret_llm::template::ChatTemplate;
use garret_llm::vocab::Vocabulary as _;
use garret_llm::{Backend, Model, ModelOptions};

use crate::machine::{process_time, status_bytes};
use crate::report::{Report, Target, Unit};
use crate::stand_in::StandIn;
use crate::statistics::{median, percentile, slope};
use crate::{conditions, machine, talk};
use scripted::ScriptedModel;

/// Options of `soak`.
#[derive(Args)]
pub(crate) struct Options {
    /// Turns
    #[arg(long, default_value_t = 1_000)]
    turns: u64,
    /// Window in tokens
    #[arg(long, default_value_t = 8_192)]
    window: u32,
    /// Chat model, for its tokenizer and template [default: the starter model]
    #[arg(long, value_name = "FILE")]
    model: Option<PathBuf>,
}

/// Measures and prints.
pub(crate) fn run(options: &Options) -> Result<(), Box<dyn Error>> {
    machine::print();
    let folder = tempfile::tempdir()?;
    let flags = vec![("window", options.window.to_string()), ("tools", "on".into())];
    let config = conditions::configuration(folder.path(), options.model.as_deref(), flags)?;
    let mut bench = Bench::new(&config)?;
    println!("model    scripted, in the tokens of {}", bench.name);
    println!(
        "\n turns  prompt (median, most)  turn ms (median, p95)  idle ms  summaries  MiB (RssAnon)"
    );
    let mut rows: Vec<Row> = Vec::new();
    for turn in 1..=options.turns {
        rows.push(bench.turn(turn)?);
        if turn.is_multiple_of(100) || turn == options.turns {
            let newest = &rows[rows.len().saturating_sub(100)..];
            print_rows(turn, newest, bench.model.asked().summaries);
        }
    }
    let mut report = Report::default();
    bench.report(&rows, &mut report)?;
    Ok(report.finish()?)
}

struct Bench {
    agent: Agent<ScriptedModel, Encoder<Model>>,
    model: ScriptedModel,
    clock: ManualClock,
    session: SessionId,
    /// The tokenizer's model.
    name: String,
}

/// One turn and the idle time after it.
struct Row {
    prompt: u32,
    /// The turn with which history begins.
    from: u64,
    /// Turns that are in the prompt or under a summary end before this one, if any doesn't.
    gap: bool,
    /// Milliseconds on the processor.
    turn_ms: f64,
    /// The same on the clock: the disk's time, too.
    wall_ms: f64,
    idle_ms: f64,
    /// Bytes in memory that aren't mapped from files.
    resident: f64,
}

impl Bench {
    fn new(config: &Config) -> Result<Self, Box<dyn Error>> {
        let plan = Plan::new(config)?;
        let vocab = Model::load(Backend::start()?, &plan.path, ModelOptions::default())?;
        let template = ChatTemplate::compile(&plan.info.chat_template, &vocab.specials())?;
        let store = Arc::new(open::store(config)?);
        embed::attach(&store, &StandIn, garret_hal::kernels::detect())?;
        let model = ScriptedModel::new(Arc::clone(&vocab), plan.n_ctx);
        let clock = ManualClock::at_unix_ms(1_790_000_000_000);
        let parts = Parts {
            model: model.clone(),
            encoder: Encoder::new(vocab, template),
            store,
            embedder: Some(Arc::new(StandIn)),
            clock: Arc::new(clock.clone()),
            entropy: Arc::new(SeededEntropy::new(1)),
        };
        let options = conditions::options(config, &parts.model);
        let agent = Agent::new(parts, options)?;
        Ok(Self { agent, model, clock, session: "soak".parse()?, name: plan.info.name })
    }

    fn turn(&mut self, turn: u64) -> Result<Row, Box<dyn Error>> {
        let text = talk::message(turn);
        let reply = talk::reply(turn);
        let call = talk::call(turn);
        let said: Vec<&str> = call.iter().map(String::as_str).chain([reply.as_str()]).collect();
        self.model.say(&said);
        let stop = Cancel::new();
        let began = Instant::now();
        let before = process_time();
        let answered = smol::block_on(self.agent.turn(&self.session, &text, &stop, &mut |_| {}));
        let spent = process_time() - before;
        let wall = began.elapsed();
        let outcome = answered?;
        if outcome.turn != turn || outcome.reply.trim() != reply.trim() {
            return Err(format!("turn {turn} came back as {outcome:?}").into());
        }
        let from = outcome.receipt.history_from.unwrap_or(turn);
        let gap = from > self.agent.store().frontier(&self.session)? + 1;
        let before = process_time();
        smol::block_on(self.agent.idle(&self.session));
        let idle = process_time() - before;
        self.clock.advance_us(MINUTES_A_TURN * 60_000_000);
        Ok(Row {
            prompt: outcome.receipt.prompt_tokens,
            from,
            gap,
            turn_ms: spent.as_secs_f64() * 1e3,
            wall_ms: wall.as_secs_f64() * 1e3,
            idle_ms: idle.as_secs_f64() * 1e3,
            resident: status_bytes("RssAnon").unwrap_or(f64::NAN),
        })
    }

    fn report(&self, rows: &[Row], report: &mut Report) -> Result<(), Box<dyn Error>> {
        let turns = rows.len() as u64;
        report.heading(&format!("soak: {turns} turns, window {}", self.agent.budget().n_ctx));
        let asked = self.model.asked();
        let count = |value: u64| value as f64;
        let none = Some(Target::AtMost(0.0));
        let overflows = u64::from(asked.overflows);
        report.figure("requests beyond the window", count(overflows), Unit::Count, none);
        let from = rows.last().map_or(1, |row| row.from);
        let lost = coverage::lost(&self.agent, &self.session, turns, from, &self.model)?;
        report.figure("turns lost", count(lost), Unit::Count, none);
        let gaps = rows.iter().filter(|row| row.gap).count();
        report.figure("turns whose prompt has a gap before it", gaps as f64, Unit::Count, none);
        self.report_prompts(rows, report);
        report_times(rows, report);
        let store = self.agent.store();
        let summaries = store.summaries(&self.session)?;
        let depth = summaries.iter().map(|summary| summary.depth).max().unwrap_or(0);
        report.figure("summaries", summaries.len() as f64, Unit::Count, None);
        report.figure("depth of the deepest", f64::from(depth), Unit::Count, None);
        report.figure("summaries asked for", f64::from(asked.summaries), Unit::Count, None);
        report.figure(
            "inferences and values asked for",
            f64::from(asked.inferences),
            Unit::Count,
            None,
        );
        report.figure("new beginnings of the prompt", f64::from(asked.rebases), Unit::Count, None);
        report.figure("files", store.disk_len()? as f64, Unit::Bytes, None);
        Ok(())
    }

    fn report_prompts(&self, rows: &[Row], report: &mut Report) {
        if rows.len() < COMPARABLE {
            return;
        }
        let late = rows.get(WARM..).unwrap_or_default();
        let tokens: Vec<_> = late.iter().map(|row| f64::from(row.prompt)).collect();
        let limit = f64::from(self.agent.budget().prompt_limit());
        let most = percentile(&tokens, 1.0);
        let target = Some(Target::AtMost(limit));
        report.figure("longest prompt from turn 200 on, tokens", most, Unit::Count, target);
        let growth = slope(&tokens) * tokens.len() as f64 / limit;
        let target = Some(Target::AtMost(0.05));
        report.figure(
            "growth of a fitted line over these turns / limit",
            growth,
            Unit::Ratio,
            target,
        );
    }
}

fn report_times(rows: &[Row], report: &mut Report) {
    let of = |rows: &[Row], pick: fn(&Row) -> f64| -> Vec<f64> { rows.iter().map(pick).collect() };
    let cpu = of(rows, |row| row.turn_ms);
    let target = Some(Target::AtMost(5_000.0));
    report.figure(
        "a turn without the model, processor, median",
        median(&cpu) * 1e3,
        Unit::Time,
        target,
    );
    report.figure("the same, p95", percentile(&cpu, 0.95) * 1e3, Unit::Time, None);
    let wall = median(&of(rows, |row| row.wall_ms));
    report.figure("the same on the clock, median", wall * 1e3, Unit::Time, None);
    let idle = of(rows, |row| row.idle_ms);
    report.figure(
        "idle work after a turn, processor, median",
        median(&idle) * 1e3,
        Unit::Time,
        None,
    );
    let resident = rows.last().map_or(f64::NAN, |row| row.resident);
    report.figure("in memory at the end (RssAnon)", resident, Unit::Bytes, None);
    if rows.len() < COMPARABLE {
        return report.note(&format!(
            "what grows isn't told: that takes {COMPARABLE} turns, the last 100 beside 100 to 200"
        ));
    }
    let early = rows.get(100..200).unwrap_or_default();
    let last = rows.get(rows.len().saturating_sub(100)..).unwrap_or_default();
    let ratio = |pick: fn(&Row) -> f64| median(&of(last, pick)) / median(&of(early, pick));
    let target = Some(Target::AtMost(1.5));
    report.figure(
        "last 100 turns / turns 100 to 200",
        ratio(|row| row.turn_ms),
        Unit::Ratio,
        target,
    );
    report.figure(
        "the same, last 100 turns / 100 to 200",
        ratio(|row| row.idle_ms),
        Unit::Ratio,
        None,
    );
    let target = Some(Target::AtMost(1.1));
    let growth = ratio(|row| row.resident);
    report.figure("in memory, last 100 turns / 100 to 200", growth, Unit::Ratio, target);
}

fn print_rows(turn: u64, rows: &[Row], summaries: u32) {
    let of = |pick: fn(&Row) -> f64| rows.iter().map(pick).collect::<Vec<_>>();
    let prompt = of(|row| f64::from(row.prompt));
    let turn_ms = of(|row| row.turn_ms);
    println!(
        "{turn:>6} {:>8.0} {:>14.0} {:>15.2} {:>7.2} {:>8.2} {summaries:>10} {:>14.1}",
        median(&prompt),
        percentile(&prompt, 1.0),
        median(&turn_ms),
        percentile(&turn_ms, 0.95),
        median(&of(|row| row.idle_ms)),
        rows.last().map_or(f64::NAN, |row| row.resident) / 1048576.0,
    );
}

/// Turns from which on the last hundred are others than those they are compared with, which begin
/// after the first hundred: fewer tell nothing of growth.
const COMPARABLE: usize = 300;
/// Turns before prompts are as long as they get.
const WARM: usize = 199;
/// Minutes from one turn to the next.
const MINUTES_A_TURN: u64 = 9;

#[cfg(test)]
mod tests {
    use super::*;

    /// Turns each of which costs as much as all before it together.
    fn rows(count: usize) -> Vec<Row> {
        let row = |number: usize| Row {
            prompt: 100,
            from: 1,
            gap: false,
            turn_ms: number as f64 / 1e3,
            wall_ms: 1.0,
            idle_ms: 1.0,
            resident: number as f64,
        };
        (0..count).map(row).collect()
    }

    #[test]
    fn growth_is_told_of_as_many_turns_as_tell_of_it() {
        for (turns, missed) in [(120, 0), (299, 0), (300, 2), (900, 2)] {
            let mut report = Report::default();
            report_times(&rows(turns), &mut report);
            let named = report.finish().err().map_or(0, |missed| missed.0);
            assert_eq!(named, missed, "{turns} turns");
        }
    }
}
