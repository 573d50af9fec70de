//! Public incidents of other systems, each replayed against this one.
//!
//! One file a case, named by project and number of the report. It opens with what happened there
//! and what has to hold here. A case runs on a scripted model where the logic alone is at stake, on
//! a small real one where the tokenizer, the cache or the sampler is, and on the whole program
//! where two processes meet. Cases that need the insides of a crate stand in that crate's own tests
//! and are named there in the same way, so that `grep -rn 'redb#620' --include=*.rs` finds all of
//! them. Defects that were found in sherlock-context 1.12.2 and nobody numbered go by W and a
//! number; what searches of a memory get wrong is in `storage/tests/storage/pitfalls.rs`.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "helpers of tests fail as tests do"
)]

mod continue_878;
mod crush_2551;
mod home_assistant_147150;
mod letta_957;
mod llama_cpp_12295;
mod llama_cpp_17284;
mod llama_cpp_21831;
mod llama_cpp_24382;
mod llama_cpp_3969;
mod llama_cpp_9383;
mod lossless_claw_502;
mod lossless_claw_755;
mod lossless_claw_784;
mod mcp_servers_4797;
mod mem0_4536;
mod mem0_4573;
mod oh_my_pi_12362;
mod ollama_17427;
mod ollama_8531;
mod omlx_2990;
mod open_webui_24401;
mod open_webui_28316;
mod open_webui_6677;
mod redb_620;
mod sherlock_context_w4;

use std::path::Path;
use std::sync::Arc;

use garret::agent::{Agent, Options};
use garret::open::LocalAgent;
use garret_core::gate::Mode;
use garret_core::model::{ChatModel as _, Event, Finish, ModelRole, Reply as _, Request, Sampling};
use garret_core::time::{Confidence, WallTime};
use garret_core::token::Token;
use garret_hal::media::RamMedium;
use garret_llm::{Backend, ChatOptions, LlamaChat, Model, ModelOptions};
use garret_storage::{Store, StoredFinish};
use garret_tests::models::{STARTER, config, find};
use garret_tests::scripted::ScriptedModel;
use garret_tests::talk::{TestAgent, parts, session};

/// A moment before all that tests say.
const AT: WallTime = WallTime { unix_ms: 1_790_000_000_000, confidence: Confidence::Good };

/// A store in memory.
fn store() -> Arc<Store> {
    Arc::new(Store::on_medium("test", Box::new(RamMedium::new())).unwrap())
}

/// An agent on a scripted model and `store`.
fn agent_on(store: &Arc<Store>, model: &ScriptedModel, options: Options) -> TestAgent {
    Agent::new(parts(model, Arc::clone(store)), options).unwrap()
}

/// An agent on a scripted model and a store of its own.
fn agent(model: &ScriptedModel, options: Options) -> TestAgent {
    agent_on(&store(), model, options)
}

/// Companions at every turn, nothing recalled, and early summaries.
fn attentive() -> Options {
    Options {
        system_prompt: "Be kind.".into(),
        memory_tokens: Some(0),
        compact_at: 80,
        companions: Mode::Turbo,
        ..Options::default()
    }
}

/// The words of a reply, how it ended, and how many ids are kept of it.
type Stored = (String, StoredFinish, usize);

/// Messages and their replies, as they are stored.
fn stored(agent: &TestAgent) -> Vec<(String, Option<Stored>)> {
    let read = agent.store().with_turns(&session(), 1, |views| {
        let reply = |view: &garret_storage::TurnView<'_>| {
            view.reply.map(|reply| (reply.text.to_owned(), reply.finish, reply.tokens.len()))
        };
        views.iter().map(|view| (view.user.to_owned(), reply(view))).collect()
    });
    read.unwrap()
}

/// An agent on the starter model, which answers with few tokens and never by chance; nothing where
/// the model is missing.
fn real(data: &Path, settings: &[(&'static str, &str)]) -> Option<LocalAgent> {
    let few = [&[("max_tokens", "4")], settings].concat();
    Some(garret::open::agent(&config(&find(STARTER)?, data, &few)).unwrap())
}

/// A real model without an agent, on one thread; nothing where it is missing.
fn chat(model: &str, options: ChatOptions) -> Option<LlamaChat> {
    let model = Model::load(Backend::start().unwrap(), &find(model)?, ModelOptions::default());
    let small = ChatOptions { n_batch: 64, n_ubatch: 64, threads: 1, batch_threads: 1, ..options };
    Some(LlamaChat::spawn(model.unwrap(), small).unwrap())
}

/// The tokens of `text` for a real model.
fn tokens(chat: &LlamaChat, text: &str) -> Vec<Token> {
    let tokens = chat.model().llama().vocab().tokenize(text.as_bytes(), false, false);
    tokens.into_iter().map(|token| Token(token.0)).collect()
}

/// The work of a real model on a prompt.
struct Answer {
    reused: u32,
    prefilled: u32,
    tokens: usize,
    text: String,
    finish: Finish,
}

/// The likeliest answer of a real model.
fn answer(chat: &LlamaChat, prompt: &[Token], max_tokens: u32, grammar: Option<&str>) -> Answer {
    let sampling = Sampling { temperature: 0.0, ..Sampling::default() };
    let request = Request { role: ModelRole::Main, prompt, max_tokens, sampling, grammar };
    let mut reply = chat.start(request).unwrap();
    let mut said = Vec::new();
    let mut tokens = 0;
    let mut read = (0, 0);
    loop {
        match smol::block_on(std::future::poll_fn(|cx| reply.poll_event(cx))).unwrap().unwrap() {
            Event::Prefilled { reused, prefilled } => read = (reused, prefilled),
            Event::Piece { bytes, .. } => {
                said.extend_from_slice(&bytes);
                tokens += 1;
            }
            Event::Finished(finish) => {
                let text = String::from_utf8_lossy(&said).into_owned();
                return Answer { reused: read.0, prefilled: read.1, tokens, text, finish };
            }
        }
    }
}

/// A prompt of a scripted model as text, without its structure.
fn text(prompt: &[Token]) -> String {
    let bytes = prompt.iter().filter_map(|token| u8::try_from(token.0).ok()).collect();
    String::from_utf8(bytes).unwrap()
}
