//! `resume`: a long conversation after a restart, with its snapshot and without.
//!
//! The conversation is told to the store, answered once, kept as the program keeps it when it ends,
//! and gone on with by agents whose model is loaded anew, each on a copy of the same files.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::Args;
use garret::Cancel;
use garret::agent::Agent;
use garret::config::Config;
use garret::open::{self, Plan};
use garret_core::id::SessionId;
use garret_core::model::ChatModel as _;
use garret_core::prompt::{Content, PromptEncoder as _};
use garret_core::receipt::Receipt;
use garret_core::time::{Confidence, WallTime};
use garret_llm::encoder::Encoder;
use garret_llm::{LlamaChat, Model};
use garret_storage::{NewReply, Store, StoredFinish};

use crate::report::{MissedTargets, Report, Target, Unit};
use crate::{conditions, talk};

/// Options of `resume`.
#[derive(Args)]
pub(crate) struct Options {
    /// Chat model [default: the starter model]
    #[arg(long, value_name = "FILE")]
    model: Option<PathBuf>,
    /// Tokens of the conversation, about
    #[arg(long, default_value_t = 6_000)]
    tokens: usize,
    /// Window in tokens
    #[arg(long, default_value_t = 8_192)]
    window: u32,
}

type Talk = Agent<LlamaChat, Encoder<Model>>;

/// Measures and prints.
pub(crate) fn run(options: &Options) -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let [kept, with, without] = ["kept", "with", "without"].map(|name| folder.path().join(name));
    fs::create_dir(&kept)?;
    let config = configuration(options, &kept)?;
    let session: SessionId = "bench".parse()?;
    let snapshot_bytes = keep(&config, options.tokens, &session)?;
    copy(&kept, &with)?;
    copy(&kept, &without)?;
    let read = go_on(&configuration(options, &without)?, &session, false)?;
    let resumed = go_on(&configuration(options, &with)?, &session, true)?;
    Ok(print(snapshot_bytes, &read, &resumed)?)
}

fn configuration(options: &Options, data: &Path) -> Result<Config, Box<dyn Error>> {
    let flags = vec![
        ("window", options.window.to_string()),
        ("max_tokens", MAX_TOKENS.to_string()),
        // The conversation is to be in the prompt, all of it and nothing else.
        ("memory_tokens", "0".into()),
        ("compact_at", "0".into()),
        ("companions", "off".into()),
    ];
    conditions::configuration(data, options.model.as_deref(), flags)
}

/// Tells the store a conversation, answers a message, and keeps what the model holds of it; bytes
/// of that.
fn keep(config: &Config, tokens: usize, session: &SessionId) -> Result<usize, Box<dyn Error>> {
    let plan = Plan::new(config)?;
    let (model, mut encoder) = plan.load(config)?;
    conditions::print(config, &plan, model.facts());
    let store = open::store(config)?;
    tell(&store, &mut encoder, tokens, session)?;
    drop(store);
    let parts = conditions::parts(config, model, encoder)?;
    let options = conditions::options(config, &parts.model);
    let mut agent = Agent::new(parts, options)?;
    first_token(&mut agent, session, "Where were we?")?;
    smol::block_on(agent.idle(session));
    let snapshot = agent.snapshot(session, 0, u64::MAX).ok_or("there is nothing to keep")?;
    if !snapshot.write()? {
        return Err("the snapshot wasn't written".into());
    }
    Ok(snapshot.bytes())
}

/// Stores turns until they have `tokens`.
fn tell(
    store: &Store,
    encoder: &mut Encoder<Model>,
    tokens: usize,
    session: &SessionId,
) -> Result<(), Box<dyn Error>> {
    let at = WallTime { unix_ms: 1_790_000_000_000, confidence: Confidence::Good };
    let mut told = 0;
    for turn in 1.. {
        let text = talk::message(turn);
        let reply = talk::reply(turn);
        for text in [&text, &reply] {
            told += encoder.count(&Content::from(text.as_str()), tokens)? + SCAFFOLD;
        }
        if told > tokens {
            break;
        }
        let turn = store.accept(session, &text, at)?;
        let reply = NewReply {
            text: &reply,
            tokens: &[],
            model_fingerprint: &[0; 32],
            finish: StoredFinish::Stop,
            at,
            receipt: b"",
            trace: b"",
        };
        store.reply(session, turn, reply)?;
    }
    Ok(())
}

/// A restart, and what it took.
struct Restart {
    /// Seconds until the model is loaded.
    load: f64,
    /// Seconds until the snapshot is in its cache.
    resume: f64,
    /// Seconds from the user's message to the first token.
    first: f64,
    prompt: u32,
    reused: u32,
}

/// Loads the model and answers a message, after what there is a snapshot of is brought back if
/// `resumes`.
fn go_on(config: &Config, session: &SessionId, resumes: bool) -> Result<Restart, Box<dyn Error>> {
    let began = Instant::now();
    let (model, encoder) = Plan::new(config)?.load(config)?;
    let parts = conditions::parts(config, model, encoder)?;
    let options = conditions::options(config, &parts.model);
    let mut agent = Agent::new(parts, options)?;
    let load = began.elapsed().as_secs_f64();
    let began = Instant::now();
    if resumes && agent.resume(session) == 0 {
        return Err("the snapshot wasn't used".into());
    }
    let resume = began.elapsed().as_secs_f64();
    let (first, receipt) = first_token(&mut agent, session, "What did I look at last?")?;
    let prompt = receipt.prompt_tokens;
    let reused = receipt.reused_tokens;
    Ok(Restart { load, resume, first, prompt, reused })
}

/// Answers a message; seconds to the first words, and the receipt.
fn first_token(
    agent: &mut Talk,
    session: &SessionId,
    text: &str,
) -> Result<(f64, Receipt), Box<dyn Error>> {
    let stop = Cancel::new();
    let began = Instant::now();
    let mut first = None;
    let mut listen = |_: &str| {
        first.get_or_insert_with(|| began.elapsed());
    };
    let outcome = smol::block_on(agent.turn(session, text, &stop, &mut listen))?;
    Ok((first.unwrap_or_else(|| began.elapsed()).as_secs_f64(), outcome.receipt))
}

fn copy(from: &Path, to: &Path) -> Result<(), Box<dyn Error>> {
    fs::create_dir(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        fs::copy(entry.path(), to.join(entry.file_name()))?;
    }
    Ok(())
}

fn print(bytes: usize, read: &Restart, resumed: &Restart) -> Result<(), MissedTargets> {
    let mut report = Report::default();
    report.heading(&format!("resume: a prompt of {} tokens after a restart", resumed.prompt));
    let time = |restart: &Restart| (restart.resume + restart.first) * 1e6;
    let figure = report.figure("snapshot and first token", time(resumed), Unit::Time, None);
    let target = Some(Target::AtLeast(10.0));
    report.against(figure, "by prefill", time(read), target);
    report.figure("of it, reading the snapshot", resumed.resume * 1e6, Unit::Time, None);
    let decoded = |restart: &Restart| f64::from(restart.prompt - restart.reused);
    let figure = report.figure("tokens decoded", decoded(resumed), Unit::Count, None);
    report.against(figure, "by prefill", decoded(read), None);
    report.figure("size of the snapshot", bytes as f64, Unit::Bytes, None);
    let figure =
        report.figure("loading the model, beside that", resumed.load * 1e6, Unit::Time, None);
    report.against(figure, "without the snapshot", read.load * 1e6, None);
    report.finish()
}

/// Most tokens of a reply.
const MAX_TOKENS: u32 = 8;
/// Tokens that a template puts around a message, about.
const SCAFFOLD: usize = 6;
