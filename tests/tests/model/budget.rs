//! The window's promises with real tokenizers: two families, all scripts, control characters, text
//! that spells special tokens, huge messages, windows from 2,048 to 32,768.

use std::sync::{Arc, LazyLock, Mutex};

use garret_core::assemble::{CountedText, Input, NO_REPLY, PastReply, Scratch, Turn, assemble};
use garret_core::budget::Budget;
use garret_core::prompt::{EncodeError, Message, PromptEncoder, Role};
use garret_core::shorten::{ShownText, shorten};
use garret_core::token::{Token, TokenBuf, TokenBytes};
use garret_llm::check::check_chat;
use garret_llm::encoder::Encoder;
use garret_llm::template::ChatTemplate;
use garret_llm::vocab::Vocabulary;
use garret_llm::{Backend, Model, ModelOptions};
use garret_tests::models::{GEMMA, STARTER, find};
use proptest::prelude::*;

struct Family {
    encoder: Mutex<Encoder<Model>>,
    /// Ids that only the template may put into a prompt.
    structure: Vec<Token>,
}

static SMOLLM2: LazyLock<Option<Family>> = LazyLock::new(|| {
    let path = find(STARTER)?;
    let template = check_chat(&path).unwrap().chat_template;
    Some(Family::load(&path, &template))
});

/// Gemma's own layout of turns; the model of the tests is a base model and brings no template.
const GEMMA_TEMPLATE: &str = "{{ bos_token }}{% for m in messages %}\
    {% if m['role'] == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}\
    {% set role = 'model' if m['role'] == 'assistant' else m['role'] %}\
    {{ '<start_of_turn>' + role + '\n' + m['content'] | trim + '<end_of_turn>\n' }}{% endfor %}\
    {% if add_generation_prompt %}{{ '<start_of_turn>model\n' }}{% endif %}";

static GEMMA3: LazyLock<Option<Family>> =
    LazyLock::new(|| find(GEMMA).map(|path| Family::load(&path, GEMMA_TEMPLATE)));

impl Family {
    fn load(path: &std::path::Path, template: &str) -> Self {
        let backend = Backend::start().unwrap();
        let options = ModelOptions { gpu_layers: 0, use_mmap: true };
        let model = Model::load(backend, path, options).unwrap();
        let specials = model.specials();
        let spelled = ["<|im_start|>", "<|im_end|>", "<start_of_turn>", "<end_of_turn>"];
        let structure = specials
            .tokens
            .iter()
            .filter(|token| spelled.contains(&token.text.as_str()))
            .map(|token| token.id)
            .collect();
        let template = ChatTemplate::compile(template, &specials).unwrap();
        Self { encoder: Mutex::new(Encoder::new(Arc::clone(&model), template)), structure }
    }
}

/// A conversation to be put into a prompt.
#[derive(Clone, Debug)]
struct Talk {
    window: u32,
    system: String,
    turns: Vec<(String, Option<String>)>,
    message: String,
}

fn piece() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => "[A-Za-z ,.]{1,80}",
        2 => "\\PC{1,40}",
        1 => "[\\p{Han}\\p{Hangul}\\p{Hiragana}\\p{Arabic}\\p{Devanagari}\\p{Thai}]{1,30}",
        1 => "[\\x00-\\x1f\\x7f]{1,10}",
        1 => prop::sample::select(vec![
            "<|im_start|>system\n", "<|im_end|>", "<start_of_turn>model\n", "<end_of_turn>",
            "<bos>", "<eos>", "<|endoftext|>", "<<garret-tool: x>>", "</s>", "[INST]",
            "\u{1f469}\u{200d}\u{1f4bb}\u{1f3fd}", "\u{feff}", "\u{202e}", "e\u{301}\u{323}",
        ]).prop_map(str::to_owned),
    ]
}

fn text(pieces: std::ops::Range<usize>) -> impl Strategy<Value = String> {
    prop::collection::vec(piece(), pieces).prop_map(|pieces| pieces.concat())
}

/// A message of up to 200,000 characters made of one short pattern.
fn long() -> impl Strategy<Value = String> {
    let pattern = prop::sample::select(vec![
        "word ",
        "<",
        "\u{1f41d}",
        "\u{4e2d}\u{6587}",
        "aB3$ ",
        "\n",
        "<|im_end|>",
        "0",
    ]);
    (pattern, 1_usize..200_000)
        .prop_map(|(pattern, chars)| pattern.chars().cycle().take(chars).collect())
}

fn talk() -> impl Strategy<Value = Talk> {
    let turn = (text(1..6), prop::option::weighted(0.9, text(1..8)));
    let turns = prop_oneof![
        3 => prop::collection::vec(turn, 0..24),
        1 => prop::collection::vec((long(), Just(Some("ok".to_owned()))), 0..3),
    ];
    let message = prop_oneof![4 => text(1..8), 1 => long()];
    (2_048_u32..=32_768, text(0..4), turns, message)
        .prop_map(|(window, system, turns, message)| Talk { window, system, turns, message })
}

/// Checks every promise of a prompt for this conversation.
fn keeps_its_promises(family: &Family, talk: &Talk) -> Result<(), TestCaseError> {
    let mut encoder = family.encoder.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let encoder = &mut *encoder;
    let budget = Budget::for_window(talk.window).unwrap();
    let limit = budget.message_text() as usize;
    let show = |encoder: &mut Encoder<Model>, text| shorten(encoder, text, limit).unwrap();
    let users: Vec<ShownText<'_>> =
        talk.turns.iter().map(|(user, _)| show(encoder, user)).collect();
    let message = shorten(encoder, &talk.message, limit).unwrap();
    let days = ["[Sunday 3 May 2026]\n", "[Monday 4 May 2026]\n", ""];
    let days = days.map(|day| CountedText::new(encoder, day).unwrap());
    let history: Vec<_> = (1..)
        .zip(users.iter().zip(&talk.turns))
        .map(|(seq, (user, (_, reply)))| {
            let tokens = TokenBytes::default();
            let reply = reply.as_deref().map(|text| PastReply { text, tokens });
            let reply = reply.filter(|reply| !reply.text.trim().is_empty());
            let text = reply.map_or(NO_REPLY, |reply| reply.text);
            let said = Message::new(Role::User, user.content());
            let cost = encode(encoder, &[said, Message::new(Role::Assistant, text)]).len();
            Turn { seq, user, day: days[seq as usize / 4 % 3], reply, cost }
        })
        .collect();
    let system = CountedText::new(encoder, &talk.system).unwrap();
    let input = Input { system, history: &history, ..Input::new(&message) };
    let mut messages = vec![Message::new(Role::User, ""); 2 * history.len() + 2];
    let mut ends = vec![0; messages.len()];
    let mut tokens = vec![Token(0); budget.prompt_limit() as usize];
    let scratch = Scratch { messages: &mut messages, ends: &mut ends, tokens: &mut tokens };
    let slot = assemble(&budget, encoder, &input, scratch).unwrap();
    let receipt = &slot.receipt;
    let reserved = budget.reply_reserve + budget.companion_reserve;
    prop_assert!(receipt.prompt_tokens + reserved <= talk.window);
    prop_assert_eq!(receipt.blocks.iter().map(|b| b.tokens).sum::<u32>(), receipt.prompt_tokens);
    let run = slot.tokens.to_vec();
    let shown = receipt.history_from.map_or(0, |from| talk.turns.len() + 1 - from as usize);
    let from = talk.turns.len() - shown;

    // The same messages, put together by hand, give the same run: the system prompt, whole turns
    // from a user message on, and the newest message are what the prompt holds.
    let mut expected = Vec::new();
    if !talk.system.is_empty() {
        expected.push(Message::new(Role::System, talk.system.as_str()));
    }
    let mut day = "";
    for turn in &history[from..] {
        let mark = if turn.day.text == day { "" } else { turn.day.text };
        day = turn.day.text;
        expected.push(Message::new(Role::User, turn.user.content_after(mark)));
        let reply = turn.reply.map_or(NO_REPLY, |reply| reply.text);
        expected.push(Message::new(Role::Assistant, reply));
    }
    expected.push(Message::new(Role::User, message.content()));
    let by_hand = encode(encoder, &expected);
    prop_assert_eq!(&run, &by_hand);

    // Structure comes from the template alone: as many structural ids as with harmless contents.
    let harmless: Vec<_> = expected.iter().map(|m| Message::new(m.role, "x")).collect();
    let count = |run: &[Token]| run.iter().filter(|t| family.structure.contains(t)).count();
    prop_assert_eq!(count(&run), count(&encode(encoder, &harmless)));
    Ok(())
}

fn encode(encoder: &mut Encoder<Model>, messages: &[Message<'_>]) -> Vec<Token> {
    let mut tokens = vec![Token(0); 40_000];
    let mut run = TokenBuf::new(&mut tokens);
    match encoder.encode(messages, &mut run, &mut []) {
        Ok(()) => run.as_slice().to_vec(),
        Err(EncodeError::Full) => panic!("a prompt that fits a window fits 40,000 tokens"),
        Err(error) => panic!("{error}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(160))]

    #[test]
    fn prompts_for_smollm2_keep_their_promises(talk in talk()) {
        if let Some(family) = &*SMOLLM2 {
            keeps_its_promises(family, &talk)?;
        }
    }

    #[test]
    fn prompts_for_gemma_keep_their_promises(talk in talk()) {
        if let Some(family) = &*GEMMA3 {
            keeps_its_promises(family, &talk)?;
        }
    }
}

/// sherlock-context 1.12.2, W10: a message of 200,000 characters made a prompt of 53,700 tokens in a window
/// of 8,192.
#[test]
fn a_message_of_200_000_characters_fits_the_smallest_window() {
    for family in [&*SMOLLM2, &*GEMMA3].into_iter().flatten() {
        for pattern in ["word ", "\u{1f41d}", "<", "\u{4e2d}"] {
            let message = pattern.chars().cycle().take(200_000).collect();
            let talk = Talk {
                window: 2_048,
                system: "Be kind.".into(),
                turns: vec![("hi".into(), Some("ho".into()))],
                message,
            };
            keeps_its_promises(family, &talk).unwrap();
        }
    }
}
