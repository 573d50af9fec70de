//! `preempt`: how long a message of the user waits for a companion that is at work.
//!
//! A companion reads a long prompt, or writes, when a request of the main role comes whose prompt
//! is in the cache but for a few tokens. What that takes longer than with nothing else to do is
//! what the user waits for the companion; beside it stands the time of one decode of a whole batch,
//! measured in turn with it.

use std::error::Error;
use std::path::PathBuf;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use clap::Args;
use garret::config::Config;
use garret::open::Plan;
use garret_core::model::{ChatModel as _, Event, ModelRole, Reply as _, Request, Sampling};
use garret_core::token::Token;
use garret_llm::vocab::Vocabulary as _;
use garret_llm::{LlamaChat, LlamaReply, Model};

use crate::report::{Report, Target, Unit};
use crate::statistics::{median, percentile};
use crate::synthetic::Random;
use crate::{conditions, talk};

/// Options of `preempt`.
#[derive(Args)]
pub(crate) struct Options {
    /// Chat model [default: the starter model]
    #[arg(long, value_name = "FILE")]
    model: Option<PathBuf>,
    /// Messages that come while a companion reads, and as many while one writes
    #[arg(long, default_value_t = 20)]
    messages: usize,
    /// Tokens of the conversation
    #[arg(long, default_value_t = 1_500)]
    tokens: usize,
}

/// Measures and prints.
pub(crate) fn run(options: &Options) -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let flags = vec![("window", WINDOW.to_string())];
    let config = conditions::configuration(folder.path(), options.model.as_deref(), flags)?;
    let bench = Bench::new(&config, options.tokens)?;
    let mut report = Report::default();
    for (what, at) in [("reads", CompanionWork::Reading), ("writes", CompanionWork::Writing)] {
        let rounds = (0..options.messages.max(1)).map(|n| bench.round(at, n as u64));
        let rounds = rounds.collect::<Result<Vec<_>, _>>()?;
        let rounds: Vec<_> = rounds.into_iter().flatten().collect();
        print(&mut report, what, bench.batch, &rounds);
    }
    Ok(report.finish()?)
}

/// The work of the companion as the message comes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CompanionWork {
    Reading,
    Writing,
}

/// One message, in milliseconds.
struct Round {
    /// Time to the first token with a companion at work.
    disturbed: f64,
    /// Time to the first token with nothing else to do.
    alone: f64,
    /// One decode of a whole batch.
    batch: f64,
}

struct Bench {
    chat: LlamaChat,
    conversation: Vec<Token>,
    /// The question that only companions are asked.
    question: Vec<Token>,
    batch: usize,
}

impl Bench {
    fn new(config: &Config, tokens: usize) -> Result<Self, Box<dyn Error>> {
        let plan = Plan::new(config)?;
        let (chat, _) = plan.load(config)?;
        conditions::print(config, &plan, chat.facts());
        let conversation = said(chat.model(), 1, tokens)?;
        let batch = config.batch.value as usize;
        let question = said(chat.model(), 500, QUESTION_BATCHES * batch)?;
        let bench = Self { chat, conversation, question, batch };
        bench.first(&bench.conversation)?;
        Ok(bench)
    }

    /// `None` when the companion had finished before the message came.
    fn round(&self, at: CompanionWork, number: u64) -> Result<Option<Round>, Box<dyn Error>> {
        let batch = self.answer(BATCHES + number, self.batch)?;
        let alone = self.answer(ALONE + number, SHORT)?;
        let asked = match at {
            CompanionWork::Reading => self.question.len(),
            CompanionWork::Writing => SHORT,
        };
        let prompt = [&self.conversation[..], &self.question[..asked]].concat();
        let mut companion = self.start(ModelRole::Compactor, &prompt, ANSWER)?;
        if at == CompanionWork::Writing {
            next(&mut companion)?;
            next(&mut companion)?;
        }
        // At a moment of a batch that no other message has.
        let most = if at == CompanionWork::Reading { QUESTION_BATCHES as f64 - 1.0 } else { 0.5 };
        std::thread::sleep(Duration::from_secs_f64(
            batch / 1e3 * most * Random::new(number).unit(),
        ));
        let disturbed = self.answer(DISTURBED + number, SHORT)?;
        let at_work = is_at_work(&mut companion, at)?;
        Ok(at_work.then_some(Round { disturbed, alone, batch }))
    }

    /// Milliseconds to the first token of the answer to a message of `tokens`, whose words no other
    /// message has.
    fn answer(&self, number: u64, tokens: usize) -> Result<f64, Box<dyn Error>> {
        let new = said(self.chat.model(), number, tokens)?;
        self.first(&[&self.conversation[..], &new].concat())
    }

    fn first(&self, prompt: &[Token]) -> Result<f64, Box<dyn Error>> {
        let began = Instant::now();
        let mut reply = self.start(ModelRole::Main, prompt, 1)?;
        next(&mut reply)?;
        Ok(began.elapsed().as_secs_f64() * 1e3)
    }

    fn start(
        &self,
        role: ModelRole,
        prompt: &[Token],
        max_tokens: u32,
    ) -> Result<LlamaReply, Box<dyn Error>> {
        let sampling = Sampling { temperature: 0.0, ..Sampling::default() };
        Ok(self.chat.start(Request { role, prompt, max_tokens, sampling, grammar: None })?)
    }
}

/// The next event of a reply.
fn next(reply: &mut LlamaReply) -> Result<Event<Vec<u8>>, Box<dyn Error>> {
    let event = smol::block_on(smol::future::poll_fn(|cx| reply.poll_event(cx)));
    Ok(event.ok_or("the reply ended early")??)
}

/// Returns true while a companion does what it was to be disturbed in.
fn is_at_work(companion: &mut LlamaReply, at: CompanionWork) -> Result<bool, Box<dyn Error>> {
    let mut context = Context::from_waker(Waker::noop());
    while let Poll::Ready(event) = companion.poll_event(&mut context) {
        match event.transpose()? {
            Some(Event::Piece { .. }) if at == CompanionWork::Writing => {}
            _ => return Ok(false),
        }
    }
    Ok(true)
}

/// Exactly `count` tokens of what is said from `turn` on.
fn said(model: &Model, turn: u64, count: usize) -> Result<Vec<Token>, Box<dyn Error>> {
    let mut tokens = Vec::new();
    for turn in turn.. {
        model.tokenize(&talk::message(turn), &mut tokens)?;
        if tokens.len() >= count {
            break;
        }
    }
    tokens.truncate(count);
    Ok(tokens)
}

fn print(report: &mut Report, what: &str, batch: usize, rounds: &[Round]) {
    let count = rounds.len();
    report.heading(&format!("preempt: {count} messages that come while a companion {what}"));
    let of = |pick: fn(&Round) -> f64| rounds.iter().map(pick).collect::<Vec<_>>();
    let decode = median(&of(|round| round.batch));
    let alone = median(&of(|round| round.alone));
    let title = format!("one decode of {batch} tokens, median");
    report.figure(&title, decode * 1e3, Unit::Time, None);
    report.figure("a message with nothing else to do, median", alone * 1e3, Unit::Time, None);
    let waits: Vec<_> = rounds.iter().map(|round| (round.disturbed - alone).max(0.0)).collect();
    for (name, share) in [("median", 0.5), ("p95", 0.95), ("most", 1.0)] {
        let wait = percentile(&waits, share);
        report.figure(&format!("it waits longer by, {name}"), wait * 1e3, Unit::Time, None);
        let target = (share < 1.0).then_some(Target::AtMost(1.0));
        report.figure(&format!("that / one decode, {name}"), wait / decode, Unit::Ratio, target);
    }
}

/// Tokens of the window.
const WINDOW: u32 = 4_096;
/// Tokens of a message.
const SHORT: usize = 8;
/// Batches that a companion reads.
const QUESTION_BATCHES: usize = 6;
/// Most tokens that it writes.
const ANSWER: u32 = 400;
/// Turns from which the words of messages are taken, so that no two have the same.
const BATCHES: u64 = 10_000;
const ALONE: u64 = 20_000;
const DISTURBED: u64 = 30_000;
