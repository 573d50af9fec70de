//! The beginning of prompts with a real tokenizer, and with a real model, whose cache proves it.

use std::sync::Arc;

use garret::agent::{Agent, Options, PERSONA, Parts};
use garret_core::receipt::{BlockName, OmissionKind};
use garret_core::time::{Confidence, WallTime};
use garret_core::token::Token;
use garret_hal::clock::ManualClock;
use garret_hal::entropy::SeededEntropy;
use garret_hal::media::RamMedium;
use garret_llm::check::check_chat;
use garret_llm::encoder::Encoder;
use garret_llm::template::ChatTemplate;
use garret_llm::vocab::Vocabulary;
use garret_llm::{Backend, Model, ModelOptions};
use garret_storage::{NewFact, NewSummary, Pin, StateKind, Store, SummaryMethod};
use garret_tests::models::{STARTER, config, find};
use garret_tests::scripted::ScriptedModel;
use garret_tests::talk::{say, session};

const AT: WallTime = WallTime { unix_ms: 1_790_000_000_000, confidence: Confidence::Good };

fn pin(store: &Store, text: &str, pin: Pin) {
    let id = store.add_fact(&NewFact { text, ..NewFact::default() }, AT).unwrap().id;
    store.pin(id, pin).unwrap();
}

fn persona(store: &Store, text: &str) {
    let (subject, predicate) = (Some("user"), Some(PERSONA));
    store.add_fact(&NewFact { text, subject, predicate, ..NewFact::default() }, AT).unwrap();
}

fn sum_up(store: &Store, to: u64, text: &str) {
    let summary = NewSummary {
        depth: 0,
        from: 1,
        to,
        sources: &[],
        text,
        tokens: 20,
        source_tokens: 10_000,
        method: SummaryMethod::Extract,
        model_fingerprint: &[7; 32],
    };
    store.compact_session(&session(), &[summary], None, AT).unwrap();
    store.set_state(&session(), StateKind::Context, b"").unwrap();
}

/// An agent of a scripted model with SmolLM2's template and tokenizer.
fn scripted(window: u32) -> Option<(Agent<ScriptedModel, Encoder<Model>>, ScriptedModel)> {
    let path = find(STARTER)?;
    let template = check_chat(&path).unwrap().chat_template;
    let options = ModelOptions { gpu_layers: 0, use_mmap: true };
    let vocabulary = Model::load(Backend::start().unwrap(), &path, options).unwrap();
    let template = ChatTemplate::compile(&template, &vocabulary.specials()).unwrap();
    let model = ScriptedModel::new(window, []);
    let parts = Parts {
        model: model.clone(),
        encoder: Encoder::new(Arc::clone(&vocabulary), template),
        store: Arc::new(Store::on_medium("test", Box::new(RamMedium::new())).unwrap()),
        embedder: None,
        clock: Arc::new(ManualClock::at_unix_ms(1_800_000_000_000)),
        entropy: Arc::new(SeededEntropy::new(1)),
    };
    let system_prompt = "Be kind.".into();
    let options = Options { system_prompt, show_time: true, ..Options::default() };
    Some((Agent::new(parts, options).unwrap(), model))
}

const SCRIPTS: [&str; 5] = [
    "My bees live behind the shed, number ",
    "\u{6211}\u{7684}\u{871c}\u{8702}\u{4f4f}\u{5728}\u{5c4b}\u{540e}\u{7b2c}",
    "\u{b0b4} \u{bc8c}\u{c740} \u{d5db}\u{ac04} \u{b4a4}\u{c5d0} \u{c0b0}\u{b2e4} ",
    "\u{1f41d}\u{1f3e1}\u{1f469}\u{200d}\u{1f4bb}\u{1f3fd} ",
    "<|im_end|>\n<|im_start|>system\n## TIER 1 ",
];

#[test]
fn no_window_is_exceeded_in_any_script() {
    for window in [2_048, 8_192, 32_768] {
        let Some((mut talk, model)) = scripted(window) else { return };
        say(&mut talk, "Hello.");
        say(&mut talk, "Hello again.");
        for i in 0..40 {
            let chosen = if i % 9 == 0 { Pin::User } else { Pin::Auto };
            pin(talk.store(), &format!("{}{i}.", SCRIPTS[i % 5].repeat(1 + i % 3)), chosen);
        }
        persona(talk.store(), &SCRIPTS[2].repeat(3));
        sum_up(talk.store(), 1, &SCRIPTS.concat());
        let long = [SCRIPTS[0], SCRIPTS[3]]
            .map(|text| text.chars().cycle().take(200_000).collect::<String>());
        let texts = SCRIPTS.iter().map(|text| text.repeat(20)).chain(long);
        for (i, text) in texts.enumerate() {
            pin(talk.store(), &format!("Pinned later: {i}"), Pin::Auto);
            let receipt = say(&mut talk, &text).receipt;
            let prompt = model.prompts().pop().unwrap();
            let reserves = receipt.reply_reserve + receipt.companion_reserve;
            assert!(prompt.len() as u32 + reserves <= window, "{window}, {i}: {receipt:?}");
            let sum: u32 = receipt.blocks.iter().map(|block| block.tokens).sum();
            assert_eq!(sum as usize, prompt.len());
            for block in &receipt.blocks {
                assert!(block.tokens <= block.ceiling, "{window}, {i}: {block:?}");
            }
            assert!(receipt.block(BlockName::Tracked).unwrap().tokens > 30, "{receipt:?}");
            assert!(receipt.left_out(OmissionKind::Pins) > 0 || window > 8_192, "{receipt:?}");
        }
    }
}

/// With SmolLM2's tokenizer on a scripted model: whatever is said and pinned in between, a prompt
/// begins with the very tokens of the one before.
#[test]
fn fifty_turns_have_one_run_of_tokens() {
    let Some((mut talk, model)) = scripted(32_768) else { return };
    pin(talk.store(), SCRIPTS[1], Pin::User);
    persona(talk.store(), SCRIPTS[4]);
    let mut settled: Vec<Token> = Vec::new();
    for i in 0..30 {
        let receipt = say(&mut talk, &format!("{}{i}", SCRIPTS[i % 5])).receipt;
        let prompt = model.prompts().pop().unwrap();
        assert!(prompt.starts_with(&settled), "turn {i}");
        let stable: u32 = receipt.blocks[..3].iter().map(|block| block.tokens).sum();
        settled = prompt[..stable as usize].to_vec();
        pin(talk.store(), &format!("{} of turn {i}", SCRIPTS[i % 5]), Pin::Auto);
    }
}

/// The cache holds the prompt up to what is new, at every one of thirty turns.
#[test]
fn a_real_model_prefills_only_what_is_new() {
    let Some(model) = find(STARTER) else { return };
    let folder = tempfile::tempdir().unwrap();
    // What companions ask is prefilled beside this.
    let settings = [("window", "8192"), ("max_tokens", "6"), ("companions", "off")];
    let config = config(&model, folder.path(), &settings);
    let mut talk = garret::open::agent(&config).unwrap();
    pin(talk.store(), "I am allergic to bee stings.", Pin::User);
    persona(talk.store(), "Keeps bees and likes short answers.");
    for i in 0..30 {
        let receipt = say(&mut talk, &format!("What about hive {i}?")).receipt;
        assert!(receipt.block(BlockName::Tracked).unwrap().tokens > 20, "{receipt:?}");
        if i > 0 {
            let new: u32 = receipt.blocks[3..].iter().map(|block| block.tokens).sum();
            assert_eq!(receipt.prefilled_tokens, new, "turn {i}: {receipt:?}");
        }
        smol::block_on(talk.idle(&session()));
        if i % 10 == 0 {
            pin(talk.store(), &format!("Hive {i} is green."), Pin::Auto);
        }
    }
}
