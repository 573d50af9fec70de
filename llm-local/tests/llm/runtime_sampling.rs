//! Which tokens are chosen: seeds, grammars, characters.
use crate::support::runtime::*;
use garret_core::model::{ChatModel, Finish, ModelRole, Request, Sampling};
use garret_core::token::Token;
use garret_llm::{ChatError, LlamaChat};

fn hot(seed: u32) -> Sampling {
    Sampling { temperature: 1.2, top_k: 0, top_p: 1.0, min_p: 0.0, seed, ..Sampling::default() }
}

fn follow(
    chat: &LlamaChat,
    prompt: &[Token],
    seed: u32,
    grammar: &str,
) -> Result<Outcome, ChatError> {
    let grammar = Some(grammar);
    let role = ModelRole::Main;
    run(chat, Request { role, prompt, max_tokens: 120, sampling: hot(seed), grammar })
}

#[test]
fn a_reply_follows_its_grammar() {
    let Some(chat) = chat(512, 64) else { return };
    let prompt = ask(chat.model(), "Do you like rain? Answer freely.");
    let mut answers = std::collections::BTreeSet::new();
    for seed in 0..12 {
        let reply = follow(&chat, &prompt, seed, r#"root ::= "yes" | "no" | "maybe so""#).unwrap();
        assert_eq!(reply.finish, Finish::Stop);
        answers.insert(reply.text());
    }
    assert!(answers.iter().all(|answer| ["yes", "no", "maybe so"].contains(&answer.as_str())));
    assert!(answers.len() > 1, "the choice is the model's: {answers:?}");
}

#[test]
fn a_structured_reply_follows_its_grammar() {
    let Some(chat) = chat(512, 64) else { return };
    let prompt = ask(chat.model(), "Describe a person.");
    let grammar = r#"
        root ::= "{\"name\": \"" name "\", \"age\": " age "}"
        name ::= [A-Z] [a-z]{1,9}
        age  ::= [1-9] [0-9]?
    "#;
    for seed in 0..6 {
        let reply = follow(&chat, &prompt, seed, grammar).unwrap();
        let text = reply.text();
        assert_eq!(reply.finish, Finish::Stop, "{text}");
        let inside = text.strip_prefix("{\"name\": \"").and_then(|text| text.strip_suffix('}'));
        let (name, age) = inside.unwrap().split_once("\", \"age\": ").expect(&text);
        assert!(name.starts_with(|c: char| c.is_ascii_uppercase()), "{text}");
        assert!(name[1..].bytes().all(|byte| byte.is_ascii_lowercase()), "{text}");
        assert!((2..=10).contains(&name.len()), "{text}");
        assert!((1..=99).contains(&age.parse::<u8>().unwrap()), "{text}");
    }
}

/// A control token's name would match the grammar, but it isn't text and so can't be part of it.
#[test]
fn no_control_token_slips_through_a_grammar() {
    let Some(chat) = chat(512, 64) else { return };
    // The likeliest token after this is `<|im_start|>`.
    let prompt = tokens(chat.model(), "<|im_start|>user\nHello<|im_end|>\n");
    let likely = chat.next_logits(ModelRole::Main, &prompt).unwrap();
    let likely = Token(likeliest(&likely) as i32);
    assert_eq!(chat.model().piece(likely), b"", "the prompt must invite a control token");
    for seed in 0..4 {
        let reply = follow(&chat, &prompt, seed, "root ::= [a-z<>|_]{4,20}").unwrap();
        let text = reply.text();
        assert!((4..=20).contains(&text.len()), "{text}");
        assert!(text.bytes().all(|byte| b"<>|_".contains(&byte) || byte.is_ascii_lowercase()));
        assert!(reply.tokens.iter().all(|token| !chat.model().piece(*token).is_empty()));
    }
}

#[test]
fn a_grammar_that_cannot_be_used_is_refused_at_the_start() {
    let Some(chat) = chat(512, 64) else { return };
    let prompt = ask(chat.model(), "Hello!");
    let nested = format!("root ::= {}\"x\"{}", "(".repeat(100_000), ")".repeat(100_000));
    let shallow_but_deep = format!("root ::= {}\"x\"{}", "(".repeat(5_000), ")".repeat(5_000));
    let chain: String = (0..5_000).map(|n| format!("r{n} ::= r{}\n", n + 1)).collect();
    let too_long_a_chain = format!("root ::= r0\n{chain}");
    let bad = [
        "",
        "not a grammar",
        "start ::= \"x\"",
        "root ::= unknown",
        "root ::= \"unclosed",
        "root ::= [a-",
        "root ::= root \"x\" | \"y\"",
        "root ::= \"x\"{3000}",
        "root ::= \"\0\"",
        &nested,
        &shallow_but_deep,
        &too_long_a_chain,
    ];
    for grammar in bad {
        let refused = follow(&chat, &prompt, 0, grammar);
        let start: String = grammar.chars().take(30).collect();
        assert!(matches!(refused, Err(ChatError::Grammar(_))), "{start}: {refused:?}");
    }
    // A long chain that does end is fine, and nothing was broken before.
    let ends = format!("root ::= r0\n{}r3000 ::= \"ok\"\n", chain_to(3_000));
    assert_eq!(follow(&chat, &prompt, 0, &ends).unwrap().text(), "ok");
}

fn chain_to(end: usize) -> String {
    (0..end).map(|n| format!("r{n} ::= r{}\n", n + 1)).collect()
}

/// Only the split of batches may change the logits, so the runs compared here have the same.
#[test]
fn a_seed_reproduces_a_reply() {
    let Some(chat) = chat(512, 64) else { return };
    let prompt = ask(chat.model(), "Tell me about the sea.");
    let say = |seed| {
        let role = ModelRole::Main;
        let sampling = Sampling { seed, ..Sampling::default() };
        let request = Request { role, prompt: &prompt, max_tokens: 16, sampling, grammar: None };
        run(&chat, request).unwrap().tokens
    };
    say(0);
    assert_eq!(say(7), say(7));
    let replies: std::collections::BTreeSet<_> = (0..6).map(say).collect();
    assert!(replies.len() > 1, "six seeds gave one reply");
}

/// llama.cpp takes the largest seed for the wish to be surprised.
#[test]
fn the_largest_seed_is_a_seed() {
    let Some(chat) = chat(512, 64) else { return };
    let prompt = ask(chat.model(), "Tell me about the sea.");
    let role = ModelRole::Main;
    let sampling = hot(u32::MAX);
    let request = Request { role, prompt: &prompt, max_tokens: 16, sampling, grammar: None };
    let say = || run(&chat, request).unwrap().tokens;
    // The first decodes the whole prompt, the others its last token.
    say();
    assert_eq!(say(), say());
}

/// Logits divided by next to nothing would be infinite.
#[test]
fn a_temperature_of_next_to_nothing_picks_the_likeliest() {
    let Some(chat) = chat(512, 64) else { return };
    let prompt = ask(chat.model(), "Tell me about the sea.");
    let say = |temperature| {
        let sampling = Sampling { temperature, top_k: 0, top_p: 1.0, min_p: 0.0, ..greedy() };
        let role = ModelRole::Main;
        let request = Request { role, prompt: &prompt, max_tokens: 8, sampling, grammar: None };
        run(&chat, request).unwrap().tokens
    };
    say(0.0);
    let likeliest = say(0.0);
    for temperature in [1e-3, 1e-4, 1e-20, f32::MIN_POSITIVE, 1e-42] {
        assert_eq!(say(temperature), likeliest, "{temperature:e}");
    }
}

/// With the whole vocabulary to choose from, the repeat penalty and its look at the prompt's tail
/// change what is said.
#[test]
fn the_repeat_penalty_sees_the_prompt() {
    let Some(chat) = chat(512, 64) else { return };
    let prompt = tokens(chat.model(), &" heron".repeat(40));
    let say = |repeat_penalty, repeat_last_n| {
        let role = ModelRole::Main;
        let sampling = Sampling { repeat_penalty, repeat_last_n, ..greedy() };
        run(&chat, Request { role, prompt: &prompt, max_tokens: 1, sampling, grammar: None })
            .unwrap()
            .tokens
    };
    let plain = say(1.0, 64);
    assert!(prompt.contains(&plain[0]), "the model must want to repeat itself");
    assert_eq!(say(1.0, 0), plain);
    assert_eq!(say(5.0, 0), plain, "without memory there is nothing to punish");
    assert_ne!(say(5.0, 64), plain);
}

/// Pieces may hold parts of characters, but joined they are UTF-8.
#[test]
fn joined_pieces_are_characters() {
    let Some(chat) = chat(512, 64) else { return };
    let questions = [
        "Repeat exactly: \u{1f98a}\u{1f41d}\u{1f30a}",
        "\u{8bf7}\u{7528}\u{4e2d}\u{6587}\u{4ecb}\u{7ecd}\u{5317}\u{4eac}\u{3002}",
        "\u{65e5}\u{672c}\u{8a9e}\u{3067}\u{8a71}\u{3057}\u{3066}\u{304f}\u{3060}\u{3055}\u{3044}",
    ];
    let mut wide = 0;
    for question in questions {
        let prompt = ask(chat.model(), question);
        let reply = run(&chat, request(ModelRole::Main, &prompt, 40)).unwrap();
        // The limit may cut the last character; nothing else may be broken.
        if let Err(error) = std::str::from_utf8(&reply.bytes) {
            assert_eq!(error.error_len(), None, "{:?}", reply.text());
            assert_eq!(reply.finish, Finish::Length);
        }
        wide += reply.text().chars().filter(|c| !c.is_ascii()).count();
    }
    assert!(wide > 0, "no reply had a character of more than one byte");
}

#[test]
fn parameters_out_of_range_are_refused() {
    let Some(chat) = chat(512, 64) else { return };
    let prompt = ask(chat.model(), "Hello!");
    let bad = [
        Sampling { temperature: f32::NAN, ..greedy() },
        Sampling { temperature: -1.0, ..greedy() },
        Sampling { top_p: 1.5, ..greedy() },
        Sampling { min_p: f32::INFINITY, ..greedy() },
        Sampling { repeat_penalty: 0.0, ..greedy() },
        Sampling { repeat_last_n: u32::MAX, ..greedy() },
    ];
    for sampling in bad {
        let role = ModelRole::Main;
        let request = Request { role, prompt: &prompt, max_tokens: 1, sampling, grammar: None };
        let refused = chat.start(request).map(drop);
        assert!(matches!(refused, Err(ChatError::BadParameter { .. })), "{sampling:?}");
    }
    // Extremes that are in range work.
    let extreme = Sampling { temperature: 5.0, top_k: u32::MAX, top_p: 0.0, min_p: 1.0, ..hot(1) };
    let role = ModelRole::Main;
    let request =
        Request { role, prompt: &prompt, max_tokens: 2, sampling: extreme, grammar: None };
    assert!(run(&chat, request).is_ok());
}
