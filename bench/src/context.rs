//! `context`: whether the turns that answer a question are in the prompt that asks it.
//!
//! Data is in the format of `locomo`. Conversations are imported with the names of who spoke, each
//! as one session, and the question is asked at its end. The prompt is what the agent gives to the
//! model, decoded; no model runs, only its tokenizer. With `--joined` all conversations are one
//! session.

use std::error::Error;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context as TaskContext, Poll};

use clap::Args;
use garret::Cancel;
use garret::agent::{Agent, Options as AgentOptions, Parts};
use garret::config::Config;
use garret::embed::{self, Embed};
use garret::open::{self, Plan};
use garret_core::id::SessionId;
use garret_core::model::{ChatModel, Event, Finish, ModelFacts, Reply, Request};
use garret_core::time::{Confidence, WallTime};
use garret_core::token::Token;
use garret_hal::clock::ManualClock;
use garret_hal::entropy::SystemEntropy;
use garret_hal::media::RamMedium;
use garret_llm::encoder::Encoder;
use garret_llm::template::ChatTemplate;
use garret_llm::vocab::Vocabulary as _;
use garret_llm::{Backend, Model, ModelOptions};
use garret_storage::search::Speaker;
use garret_storage::{ImportedTurn, Part, Store};
use serde::Serialize;

use crate::locomo::data::{self, Question, Turn};
use crate::statistics::{median, percentile};
use crate::{conditions, lines};

/// Options of `context`.
#[derive(Args)]
pub(crate) struct Options {
    /// Folder with `locomo_turns.jsonl` and `locomo_questions.jsonl`
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// Write the prompts, one JSON object for each question: `{"id":...,"prompt":...,"tokens":...}`
    #[arg(long, value_name = "FILE")]
    run: Option<PathBuf>,
    /// Chat model, for its tokenizer and template [default: the starter model]
    #[arg(long, value_name = "FILE")]
    model: Option<PathBuf>,
    /// Search by meaning as well, with this embedder
    #[arg(long, value_name = "GGUF")]
    embedder: Option<PathBuf>,
    /// Window in tokens
    #[arg(long, default_value_t = 8_192)]
    window: u32,
    /// Most tokens of what is remembered, one run for each
    #[arg(long, value_delimiter = ',', default_values_t = [250, 500, 1_000, 2_000, 2_560])]
    memory_tokens: Vec<u32>,
    /// All conversations in one session
    #[arg(long)]
    joined: bool,
    /// Ask every n-th question only
    #[arg(long, default_value_t = 1)]
    every: usize,
}

#[derive(Serialize)]
struct AskedQuestion<'a> {
    id: &'a str,
    prompt: String,
    tokens: u32,
    ms: f64,
}

/// One question's result.
struct Row {
    /// Share of the evidence that stands in the prompt.
    found: f64,
    category: u8,
    prompt_tokens: u32,
    memory_tokens: u32,
    ms: f64,
}

/// Measures and prints.
pub(crate) fn run(options: &Options) -> Result<(), Box<dyn Error>> {
    let turns = data::turns(&options.data)?;
    let questions = data::questions(&options.data)?;
    let folder = tempfile::tempdir()?;
    let config = configuration(options, folder.path())?;
    let bench = Bench::new(options, &config, &turns)?;
    println!(
        "evidence in the prompt, window {}, {} histories",
        options.window,
        bench.histories.len()
    );
    for memory in &options.memory_tokens {
        let mut rows = Vec::new();
        let mut asked = Vec::new();
        for question in questions.iter().step_by(options.every.max(1)) {
            let (row, one) = bench.ask(&config, question, *memory)?;
            rows.push(row);
            asked.push(one);
        }
        report(*memory, &rows);
        if let Some(path) = &options.run {
            lines::write(path, &asked)?;
        }
    }
    Ok(())
}

fn configuration(options: &Options, data: &std::path::Path) -> Result<Config, Box<dyn Error>> {
    let mut flags = vec![("window", options.window.to_string())];
    let embedder = options.embedder.as_ref().map(|path| path.display().to_string());
    flags.push(("embedder", embedder.unwrap_or_else(|| "off".into())));
    conditions::configuration(data, options.model.as_deref(), flags)
}

fn report(memory: u32, rows: &[Row]) {
    let mean = |rows: &mut dyn Iterator<Item = &Row>| {
        let (sum, count) = rows.fold((0.0, 0_u32), |(sum, n), row| (sum + row.found, n + 1));
        sum / f64::from(count.max(1))
    };
    let answerable = mean(&mut rows.iter().filter(|row| row.category != 5));
    let all = mean(&mut rows.iter());
    let of = |pick: &dyn Fn(&Row) -> f64| rows.iter().map(pick).collect::<Vec<_>>();
    let used = of(&|row| f64::from(row.memory_tokens));
    let ms = of(&|row| row.ms);
    let prompt = of(&|row| f64::from(row.prompt_tokens));
    println!(
        "memory {memory:5}  EIC {answerable:.4} (categories 1-4)  {all:.4} (all)  \
         tokens: memory {:.0} (median) {:.0} (mean), prompt {:.0} (median) {:.0} (most)  \
         assembled in {:.1} ms (median) {:.1} (p95)",
        median(&used),
        used.iter().sum::<f64>() / (used.len().max(1) as f64),
        median(&prompt),
        percentile(&prompt, 1.0),
        median(&ms),
        percentile(&ms, 0.95),
    );
}

/// The files of a store, to be asked more than once.
struct History {
    conv: String,
    session: SessionId,
    images: Vec<Vec<u8>>,
    end_ms: i64,
}

struct Bench<'t> {
    turns: &'t [Turn],
    model: Arc<Model>,
    template: String,
    embedder: Option<Arc<dyn Embed>>,
    histories: Vec<History>,
}

impl<'t> Bench<'t> {
    fn new(options: &Options, config: &Config, turns: &'t [Turn]) -> Result<Self, Box<dyn Error>> {
        let plan = Plan::new(config)?;
        let model = Model::load(Backend::start()?, &plan.path, ModelOptions::default())?;
        let embedder = open::embedder(config)?.map(|one| Arc::new(one) as Arc<dyn Embed>);
        let template = plan.info.chat_template.clone();
        let mut bench = Self { turns, model, template, embedder, histories: Vec::new() };
        let mut conversations: Vec<_> = turns.iter().map(|turn| turn.conv.as_str()).collect();
        conversations.dedup();
        let joined = [String::from("all")];
        let groups: Vec<(String, Vec<&str>)> = if options.joined {
            vec![(joined[0].clone(), conversations)]
        } else {
            conversations.into_iter().map(|conv| (conv.to_owned(), vec![conv])).collect()
        };
        for (name, conversations) in groups {
            let history = bench.tell(&name, &conversations)?;
            bench.histories.push(history);
        }
        Ok(bench)
    }

    /// Stores what was said in some conversations, one after another.
    fn tell(&self, name: &str, conversations: &[&str]) -> Result<History, Box<dyn Error>> {
        let media: Vec<RamMedium> = Part::ALL.iter().map(|_| RamMedium::new()).collect();
        let store = store_on(&media)?;
        let session: SessionId = name.parse()?;
        let mut end_ms = 0;
        for conv in conversations {
            for turn in self.turns.iter().filter(|turn| turn.conv == *conv) {
                let at = WallTime { unix_ms: turn.at_ms()?, confidence: Confidence::Good };
                end_ms = end_ms.max(at.unix_ms);
                let speaker = Speaker::Named(&turn.speaker);
                let text = turn.whole();
                let said = ImportedTurn { session: &session, speaker, text: &text, at, id: None };
                store.import_turns(&[said])?;
            }
        }
        if let Some(embedder) = &self.embedder {
            embed::attach(&store, &**embedder, garret_hal::kernels::detect())?;
            embed::embed_all(&store, &**embedder, &mut |_| true)?;
        }
        drop(store);
        let images = media.iter().map(RamMedium::snapshot).collect();
        let conv = if let [one] = conversations { (*one).to_owned() } else { String::new() };
        Ok(History { conv, session, images, end_ms })
    }

    fn ask<'q>(
        &self,
        config: &Config,
        question: &'q Question,
        memory: u32,
    ) -> Result<(Row, AskedQuestion<'q>), Box<dyn Error>> {
        let history = self.histories.iter().find(|one| one.conv == question.conv);
        let history = history.or(self.histories.first()).ok_or("there is no history")?;
        let media: Vec<_> =
            history.images.iter().map(|image| RamMedium::from_bytes(image.clone())).collect();
        let store = Arc::new(store_on(&media)?);
        if let Some(embedder) = &self.embedder {
            embed::attach(&store, &**embedder, garret_hal::kernels::detect())?;
        }
        let template = ChatTemplate::compile(&self.template, &self.model.specials())?;
        let silent = SilentModel::new(config.window.value.unwrap_or(8_192));
        let clock = ManualClock::at_unix_ms(history.end_ms + 60_000);
        let parts = Parts {
            model: silent.clone(),
            encoder: Encoder::new(Arc::clone(&self.model), template),
            store: Arc::clone(&store),
            embedder: self.embedder.clone(),
            clock: Arc::new(clock),
            entropy: Arc::new(SystemEntropy),
        };
        let options = AgentOptions {
            system_prompt: config.system_prompt.value.as_str().into(),
            memory_tokens: Some(memory),
            show_time: config.show_time.value,
            ..AgentOptions::default()
        };
        let mut agent = Agent::new(parts, options)?;
        // The index is made at the first search of a process, not at each turn.
        store.find(&garret_storage::search::Search::new("warm", 1))?;
        let stop = Cancel::new();
        let began = std::time::Instant::now();
        let mut ignore = |_: &str| {};
        let turn = agent.turn(&history.session, &question.question, &stop, &mut ignore);
        let outcome = smol::block_on(turn)?;
        let ms = began.elapsed().as_secs_f64() * 1e3;
        let bytes: Vec<u8> =
            silent.last().iter().flat_map(|token| self.model.piece(*token)).collect();
        let prompt = String::from_utf8_lossy(&bytes).replacen(&question.question, "", 1);
        let tokens = outcome.receipt.prompt_tokens;
        let memory_tokens =
            outcome.receipt.blocks.iter().find(|block| block.name.as_str() == "memory");
        let row = Row {
            found: self.found(question, &prompt),
            category: question.category,
            prompt_tokens: tokens,
            memory_tokens: memory_tokens.map_or(0, |block| block.tokens),
            ms,
        };
        Ok((row, AskedQuestion { id: &question.id, prompt, tokens, ms }))
    }

    /// The share of a question's evidence whose text stands in `prompt`.
    fn found(&self, question: &Question, prompt: &str) -> f64 {
        let prompt = folded(prompt);
        let evidence = self
            .turns
            .iter()
            .filter(|turn| turn.conv == question.conv && question.evidence.contains(&turn.dia_id));
        let (found, all) = evidence.fold((0_u32, 0_u32), |(found, all), turn| {
            (found + u32::from(prompt.contains(&folded(&turn.text))), all + 1)
        });
        f64::from(found) / f64::from(all.max(1))
    }
}

fn folded(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn store_on(media: &[RamMedium]) -> Result<Store, Box<dyn Error>> {
    let media = media.to_vec();
    let place = |part: Part| Part::ALL.iter().position(|other| *other == part);
    Ok(Store::on_media("bench", move |part| {
        let medium = place(part).and_then(|place| media.get(place));
        // `Part::ALL` has every part, and there is a medium for each.
        Ok(Box::new(medium.cloned().unwrap_or_default()))
    })?)
}

/// A model that says nothing and keeps the last prompt.
#[derive(Clone)]
struct SilentModel {
    n_ctx: u32,
    last: Arc<Mutex<Vec<Token>>>,
}

impl SilentModel {
    fn new(n_ctx: u32) -> Self {
        Self { n_ctx, last: Arc::default() }
    }

    fn last(&self) -> Vec<Token> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl ChatModel for SilentModel {
    type Reply = EmptyReply;
    type Error = std::convert::Infallible;

    fn facts(&self) -> ModelFacts {
        ModelFacts { n_ctx: self.n_ctx, fingerprint: [0; 32], parameters: None }
    }

    fn start(&self, request: Request<'_>) -> Result<EmptyReply, Self::Error> {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = request.prompt.to_vec();
        Ok(EmptyReply { events: 0 })
    }
}

/// A reply that ends at once.
struct EmptyReply {
    events: u8,
}

impl Reply for EmptyReply {
    type Bytes = Vec<u8>;
    type Error = std::convert::Infallible;

    fn poll_event(
        &mut self,
        _: &mut TaskContext<'_>,
    ) -> Poll<Option<Result<Event<Vec<u8>>, Self::Error>>> {
        self.events = self.events.saturating_add(1);
        Poll::Ready(match self.events {
            1 => Some(Ok(Event::Prefilled { reused: 0, prefilled: 0 })),
            2 => Some(Ok(Event::Finished(Finish::Stop))),
            _ => None,
        })
    }

    fn cancel(&self) {}
}
