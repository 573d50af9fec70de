//! A message of the user waits for a companion at most one decode, counted in decodes of the real
//! model, whatever the companion is doing.
//!
//! The model's thread says before every decode that it begins one. It is held there when a
//! companion is in the middle of its work, until the user's message has come to the model. That
//! takes a subscriber of the whole process, so this program has one test and stays apart from
//! `model`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};

use garret::agent::{Agent, Options};
use garret::companion::Question;
use garret_core::model::{ChatModel, ModelFacts, ModelRole, Request, Sampling};
use garret_hal::clock::ManualClock;
use garret_hal::entropy::SeededEntropy;
use garret_hal::media::RamMedium;
use garret_llm::check::check_chat;
use garret_llm::encoder::Encoder;
use garret_llm::template::ChatTemplate;
use garret_llm::vocab::Vocabulary;
use garret_llm::{Backend, ChatError, ChatOptions, LlamaChat, LlamaReply, Model, ModelOptions};
use garret_storage::Store;
use garret_tests::models::{STARTER, find};
use garret_tests::talk::{say, session};
use smol::future::or;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// Tokens of a decode.
const BATCH: u32 = 64;

/// A gate at which the model's thread waits before a decode.
struct Gate {
    /// Decodes that began since it was last set.
    begun: usize,
    /// Before which of them it waits.
    hold: Option<Hold>,
}

struct Hold {
    at: usize,
    arrived: smol::channel::Sender<()>,
    go: Receiver<()>,
}

static GATE: Mutex<Gate> = Mutex::new(Gate { begun: 0, hold: None });

/// Has the model's thread wait before its decode number `at` from now on: where to learn that it
/// does, and how to let it go on.
fn hold(at: usize) -> (smol::channel::Receiver<()>, SyncSender<()>) {
    let ((arrived, wait), (open, go)) = (smol::channel::bounded(1), sync_channel(1));
    *GATE.lock().unwrap() = Gate { begun: 0, hold: Some(Hold { at, arrived, go }) };
    (wait, open)
}

struct Watch;

impl Subscriber for Watch {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "garret_llm::decode"
    }
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, _: &Event<'_>) {
        let mut gate = GATE.lock().unwrap();
        gate.begun += 1;
        let begun = gate.begun;
        let held = gate.hold.take_if(|hold| hold.at == begun);
        drop(gate);
        if let Some(Hold { arrived, go, .. }) = held {
            arrived.try_send(()).unwrap();
            go.recv().unwrap();
        }
    }
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

/// The model, which is let go on as soon as it was asked for a reply.
#[derive(Clone)]
struct Released {
    model: LlamaChat,
    open: Arc<Mutex<Option<SyncSender<()>>>>,
}

impl ChatModel for Released {
    type Reply = LlamaReply;
    type Error = ChatError;

    fn facts(&self) -> ModelFacts {
        self.model.facts()
    }

    fn start(&self, request: Request<'_>) -> Result<LlamaReply, ChatError> {
        let role = request.role;
        let reply = self.model.start(request)?;
        if role == ModelRole::Main
            && let Some(open) = self.open.lock().unwrap().take()
        {
            GATE.lock().unwrap().begun = 0;
            open.send(()).unwrap();
        }
        Ok(reply)
    }
}

fn agent() -> Option<(Agent<Released, Encoder<Model>>, Released)> {
    let path = find(STARTER)?;
    let model = Model::load(Backend::start().unwrap(), &path, ModelOptions::default()).unwrap();
    let template = check_chat(&path).unwrap().chat_template;
    let template = ChatTemplate::compile(&template, &model.specials()).unwrap();
    let encoder = Encoder::new(Arc::clone(&model), template);
    let options = ChatOptions {
        n_ctx: 2_048,
        n_batch: BATCH,
        n_ubatch: BATCH,
        // Test machines are busy, and threads that wait for each other spin.
        threads: 1,
        batch_threads: 1,
        ..ChatOptions::default()
    };
    let model = LlamaChat::spawn(model, options).unwrap();
    let model = Released { model, open: Arc::default() };
    let parts = garret::agent::Parts {
        model: model.clone(),
        encoder,
        store: Arc::new(Store::on_medium("test", Box::new(RamMedium::new())).unwrap()),
        embedder: None,
        clock: Arc::new(ManualClock::at_unix_ms(1_800_000_000_000)),
        entropy: Arc::new(SeededEntropy::new(1)),
    };
    let sampling = Sampling { temperature: 0.0, ..Sampling::default() };
    // One token a reply: what is decoded then is the prompt alone.
    let options = Options { max_tokens: Some(1), sampling, ..Options::default() };
    Some((Agent::new(parts, options).unwrap(), model))
}

#[test]
fn a_message_waits_for_one_decode_of_a_companion_at_most() {
    tracing::subscriber::set_global_default(Watch).unwrap();
    let Some((mut agent, model)) = agent() else { return };
    say(&mut agent, "My bees live behind the shed, and there are two hives of them.");
    let long = "Say what I told you of the bees, the hives, the shed and all the rest. ".repeat(20);
    let reads = 4;
    for (instruction, at) in [(&*long, 1), (&long, 3), ("Count up: 1 2 3 4 5 6 7 8 9", reads + 6)] {
        let (arrived, open) = hold(at);
        *model.open.lock().unwrap() = Some(open);
        let question =
            Question { role: ModelRole::Compactor, instruction, grammar: None, max_tokens: 200 };
        let session = session();
        let work = async { agent.ask_about(&session, None, &question).await.unwrap().is_some() };
        let busy = async {
            arrived.recv().await.unwrap();
            false
        };
        assert!(!smol::block_on(or(work, busy)), "the companion was done before decode {at}");
        let receipt = say(&mut agent, "And how many hives have I got?").receipt;
        // The decode that was held is the one that the message may wait for.
        let decodes = GATE.lock().unwrap().begun;
        assert_eq!(decodes, receipt.prefilled_tokens.div_ceil(BATCH) as usize, "{receipt:?}");
    }
}
