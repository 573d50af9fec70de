//! `prefill`: what a conversation with companions costs in tokens that are prefilled.
//!
//! Garret's are those that the model says it decoded, before the first token of a reply and, in
//! idle time, by kind. Beside them stands what a server prefills that gets the same work as
//! separate requests and reuses the longest prefix that a request has in common with what its slot
//! holds; see [`slots`]. What it would never be asked, to bring the conversation into the cache, it
//! isn't.

mod short;
mod slots;

use std::error::Error;
use std::path::PathBuf;

use clap::Args;
use garret::Cancel;
use garret::agent::Agent;
use garret::config::Config;
use garret::open::Plan;
use garret_core::id::SessionId;
use garret_core::model::{ChatModel as _, ModelRole};
use garret_core::receipt::{BlockName, Receipt};
use garret_core::token::Token;
use garret_llm::Model;
use garret_llm::encoder::Encoder;

use crate::record::{Call, Recorder};
use crate::report::{MissedTargets, Report, Target, Unit};
use crate::statistics::{median, percentile};
use crate::{answers, conditions, talk};
use short::ShortModel;
use slots::{Server, Shape, common};

/// Options of `prefill`.
#[derive(Args)]
pub(crate) struct Options {
    /// Chat model [default: the starter model]
    #[arg(long, value_name = "FILE")]
    model: Option<PathBuf>,
    /// Turns
    #[arg(long, default_value_t = 200)]
    turns: u64,
    /// Window in tokens
    #[arg(long, default_value_t = 8_192)]
    window: u32,
    /// Most tokens of a reply
    #[arg(long, default_value_t = 32)]
    max_tokens: u32,
    /// Write what companions answer by rule; their prompts are decoded all the same
    #[arg(long)]
    scripted_companions: bool,
}

/// Measures and prints.
pub(crate) fn run(options: &Options) -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let flags = vec![
        ("window", options.window.to_string()),
        ("max_tokens", options.max_tokens.to_string()),
    ];
    let config = conditions::configuration(folder.path(), options.model.as_deref(), flags)?;
    let mut bench = Bench::new(&config, options.scripted_companions)?;
    println!("\n turn  prompt | prefilled: message + block  before the reply  in idle time");
    for turn in 1..=options.turns {
        bench.turn(turn)?;
    }
    Ok(bench.report(options)?)
}

struct Bench {
    agent: Agent<Recorder<ShortModel>, Encoder<Model>>,
    recorder: Recorder<ShortModel>,
    session: SessionId,
    /// Tokens decoded before the first token for each that was new, turn by turn.
    foreground: Vec<f64>,
    spent: PrefilledTokens,
    /// Prompts without any cache.
    resent: u64,
    servers: [(&'static str, Server); 4],
    compactions: u32,
}

/// Tokens prefilled by Garret.
#[derive(Default)]
struct PrefilledTokens {
    replies: u64,
    settled: u64,
    rebased: u64,
    summaries: u64,
    guesses: u64,
    values: u64,
}

impl PrefilledTokens {
    fn add(&mut self, call: &Call) {
        let grammar = call.grammar.as_deref().unwrap_or_default();
        let kind = match call.role {
            ModelRole::Main if call.max_tokens > 0 => &mut self.replies,
            ModelRole::Main => &mut self.settled,
            ModelRole::Rebase => &mut self.rebased,
            ModelRole::Compactor => &mut self.summaries,
            _ if answers::asks_for_guesses(grammar) => &mut self.guesses,
            _ => &mut self.values,
        };
        *kind += u64::from(call.prefilled);
    }

    fn background(&self) -> u64 {
        let Self { settled, rebased, summaries, guesses, values, .. } = self;
        settled + rebased + summaries + guesses + values
    }
}

impl Bench {
    fn new(config: &Config, answers: bool) -> Result<Self, Box<dyn Error>> {
        let plan = Plan::new(config)?;
        let (model, encoder) = plan.load(config)?;
        conditions::print(config, &plan, model.facts());
        let recorder = Recorder::new(ShortModel { model, answers });
        let parts = conditions::parts(config, recorder.clone(), encoder)?;
        let options = conditions::options(config, &parts.model);
        let agent = Agent::new(parts, options)?;
        let servers = [
            ("prompts of their own, one slot", Server::new(Shape::Own, false)),
            ("prompts of their own, a slot a role", Server::new(Shape::Own, true)),
            ("Garret's prompts, one slot", Server::new(Shape::Forked, false)),
            ("Garret's prompts, a slot a role", Server::new(Shape::Forked, true)),
        ];
        Ok(Self {
            agent,
            recorder,
            session: "bench".parse()?,
            foreground: Vec::new(),
            spent: PrefilledTokens::default(),
            resent: 0,
            servers,
            compactions: 0,
        })
    }

    fn turn(&mut self, turn: u64) -> Result<(), Box<dyn Error>> {
        let stop = Cancel::new();
        let text = talk::message(turn);
        let answered = smol::block_on(self.agent.turn(&self.session, &text, &stop, &mut |_| {}));
        let receipt = answered?.receipt;
        let idled = smol::block_on(self.agent.idle(&self.session));
        self.compactions += u32::from(idled.summaries.rebased > 0);
        let calls = self.recorder.take();
        let before = self.spent.background();
        self.account(&calls);
        let new = new_tokens(&receipt);
        if turn > 1 {
            self.foreground.push(f64::from(receipt.prefilled_tokens) / f64::from(new.max(1)));
        }
        println!(
            "{turn:>5} {:>7} | {new:>26} {:>17} {:>13}",
            receipt.prompt_tokens,
            receipt.prefilled_tokens,
            self.spent.background() - before,
        );
        Ok(())
    }

    fn account(&mut self, calls: &[Call]) {
        // The conversation as the companions of this turn go on from it.
        let mut live: Vec<Token> = Vec::new();
        for call in calls {
            self.spent.add(call);
            if call.role == ModelRole::Main {
                live = [&call.prompt[..], &call.answer].concat();
            }
            if call.max_tokens == 0 {
                continue;
            }
            self.resent += call.prompt.len() as u64;
            let shared = common(&live, &call.prompt);
            for (_, server) in &mut self.servers {
                server.send(call, shared);
            }
        }
    }

    fn report(&self, options: &Options) -> Result<(), MissedTargets> {
        let mut report = Report::default();
        let by = if options.scripted_companions { "by rule" } else { "by the model" };
        report.heading(&format!(
            "prefill: {} turns, {} compactions, companions answered {by}",
            options.turns, self.compactions
        ));
        let target = Some(Target::AtMost(1.1));
        let ratio = "before the reply / message and volatile block";
        let half = median(&self.foreground);
        let most = percentile(&self.foreground, 0.95);
        report.figure(&format!("{ratio}, median"), half, Unit::Ratio, target);
        report.figure(&format!("{ratio}, p95"), most, Unit::Ratio, target);
        let spent = &self.spent;
        let kinds = [
            ("tokens prefilled before replies", spent.replies),
            ("in idle time: turns as history shows them", spent.settled),
            ("in idle time: new beginnings of the prompt", spent.rebased),
            ("in idle time: for summaries", spent.summaries),
            ("in idle time: for what the user is after", spent.guesses),
            ("in idle time: for values of facts", spent.values),
        ];
        for (what, tokens) in kinds {
            report.figure(what, tokens as f64, Unit::Count, None);
        }
        let all = (spent.replies + spent.background()) as f64;
        let all = report.figure("tokens prefilled in all", all, Unit::Count, None);
        for (at, (name, server)) in self.servers.iter().enumerate() {
            // A device that holds one window has one slot.
            let target = (at == 0).then_some(Target::AtLeast(5.0));
            report.against(all, name, server.prefilled as f64, target);
        }
        report.against(all, "without a cache", self.resent as f64, None);
        report.finish()
    }
}

/// Tokens of the user's message and what stands before it for this turn alone.
fn new_tokens(receipt: &Receipt) -> u32 {
    use BlockName::{Carry, Memory, Message, Pinned, Time};
    let blocks = [Time, Pinned, Carry, Memory, Message].map(|name| receipt.block(name));
    blocks.into_iter().flatten().map(|block| block.tokens).sum()
}
