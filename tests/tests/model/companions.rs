//! Companions: forks of the live conversation, on a scripted model, where every token can be read
//! back, and on a real one.

use std::path::Path;
use std::sync::Arc;

use garret::agent::{Agent, Options, When};
use garret::companion::Question;
use garret::open::LocalAgent;
use garret::remember::extract::{copied, copy_grammar};
use garret_core::model::{Finish, ModelRole};
use garret_core::receipt::BlockName;
use garret_hal::media::RamMedium;
use garret_storage::Store;
use garret_tests::models::{STARTER, config, find};
use garret_tests::program::only;
use garret_tests::scripted::{Act, ScriptedModel};
use garret_tests::talk::{TestAgent, parts, say, session, texts};

fn agent(model: &ScriptedModel) -> TestAgent {
    let store = Store::on_medium("test", Box::new(RamMedium::new())).unwrap();
    let parts = parts(model, Arc::new(store));
    let options = Options { system_prompt: "Be kind.".into(), ..Options::default() };
    Agent::new(parts, options).unwrap()
}

fn question(instruction: &str) -> Question<'_> {
    Question { role: ModelRole::Compactor, instruction, grammar: None, max_tokens: 64 }
}

#[test]
fn a_fork_decodes_what_is_asked_and_nothing_else() {
    let model = ScriptedModel::new(8_192, [Act::Say("Fine.".into()), Act::Say("Good.".into())]);
    let mut agent = agent(&model);
    say(&mut agent, "Hello.");
    say(&mut agent, "My bees are well.");
    for (to, turns) in [(None, 2), (Some(1), 1)] {
        let before = model.asked().len();
        let answer = smol::block_on(agent.ask_about(&session(), to, &question("What now?")));
        assert_eq!(answer.unwrap().unwrap().text, "- noted\n");
        let asked = only(model.asked().into_iter().skip(before).collect());
        let conversation = ["Be kind.", "Hello.", "Fine.", "My bees are well.", "Good."];
        let expected = [&conversation[..1 + 2 * turns], &["What now?"]].concat();
        assert_eq!(texts(&asked.prompt), expected);
        // The end of the reply, the message's two marks and the opening of the answer.
        let asked_alone = "What now?".len() + 4;
        assert!(asked.prompt.len() - asked.reused <= asked_alone, "{asked:?}");
    }
}

#[test]
fn there_is_no_fork_of_nothing() {
    let model = ScriptedModel::new(8_192, []);
    let mut agent = agent(&model);
    let answer = smol::block_on(agent.ask_about(&session(), None, &question("What now?")));
    assert_eq!(answer, Ok(None));
    assert!(model.asked().is_empty());
}

/// Prompt, answer and the rest of the conversation fit into the window together, to the token.
#[test]
fn a_fork_that_does_not_fit_beside_the_conversation_is_not_asked() {
    let model = ScriptedModel::new(2_048, []);
    let mut agent = agent(&model);
    let outcome = say(&mut agent, &"word ".repeat(60));
    // The live conversation and the mark that ends the reply.
    let live = outcome.receipt.prompt_tokens + outcome.receipt.reply_tokens + 1;
    let instruction = "x".repeat(300);
    let mut ask = |max_tokens| {
        let question = Question { max_tokens, ..question(&instruction) };
        smol::block_on(agent.ask_about(&session(), None, &question)).unwrap().is_some()
    };
    let left = 2_048 - live - (300 + 3);
    assert!(ask(left));
    assert!(!ask(left + 1));
}

/// An agent on a real model with a window of 2,048 tokens.
fn real(model: &Path, data: &Path) -> LocalAgent {
    let config = config(model, data, &[("window", "2048"), ("max_tokens", "12")]);
    garret::open::agent(&config).unwrap()
}

/// On llama.cpp the cells of the conversation are shared, its cache stays as it was, and the answer
/// is what the grammar allows.
#[test]
fn a_real_model_answers_under_a_grammar_on_a_fork() {
    let Some(model) = find(STARTER) else { return };
    let folder = tempfile::tempdir().unwrap();
    let mut agent = real(&model, folder.path());
    say(&mut agent, "My bees made honey today and I am so happy.");
    let second = say(&mut agent, "How do I keep it?").receipt;
    smol::block_on(agent.idle(&session()));
    let system = second.blocks[0].tokens;
    let mut most = 0;
    let words = "glad or sad";
    let grammar = copy_grammar(words);
    let instruction = "How does the user feel, glad or sad?";
    for to in [None, Some(1)] {
        let question = Question {
            role: ModelRole::Inferrer,
            instruction,
            grammar: Some(&grammar),
            max_tokens: 120,
        };
        let answer = smol::block_on(agent.ask_about(&session(), to, &question)).unwrap().unwrap();
        assert!(answer.reused > system, "{answer:?}");
        most = answer.reused.max(most);
        assert!(answer.prefilled < 24, "{answer:?}");
        assert_eq!(answer.finish, Finish::Stop);
        assert!(copied(&answer.text, words).is_some(), "{answer:?}");
    }
    let third = say(&mut agent, "Thank you.").receipt;
    assert!(third.reused_tokens >= most, "the conversation stayed in the cache: {third:?}");
}

/// A real model sums up the older turns on a fork, and the turn after that finds the new prompt in
/// the cache: it decodes what only it has, and the rest was decoded while nobody waited.
#[test]
fn a_real_model_compacts_a_conversation() {
    let Some(model) = find(STARTER) else { return };
    let folder = tempfile::tempdir().unwrap();
    let mut agent = real(&model, folder.path());
    let topics = ["my seven hives", "the old shed", "my sister Ada", "the trip to Kent"];
    for n in 0..14 {
        let topic = topics[n % topics.len()];
        let text =
            format!("Day {n}: today I thought of {topic} and paid {} pounds for it.", n * 13);
        say(&mut agent, &text);
    }
    let before = smol::block_on(agent.idle(&session())).summaries;
    let done = smol::block_on(agent.summarise(&session(), When::Asked));
    let leaves = before.leaves + done.leaves;
    assert!(leaves > 0 && !before.failed && !done.failed, "{before:?} {done:?}");
    let summaries = agent.store().summaries(&session()).unwrap();
    for summary in &summaries {
        assert!(!summary.text.trim().is_empty() && summary.tokens < summary.source_tokens);
        eprintln!(
            "{} {}-{} by {}: {}",
            summary.id,
            summary.from,
            summary.to,
            summary.method.as_str(),
            summary.text
        );
    }
    let calls = before.calls + done.calls;
    let (reused, prefilled) = (before.reused + done.reused, before.prefilled + done.prefilled);
    assert!(calls > 0 && prefilled < 200 * calls && reused > 0, "{before:?} {done:?}");
    let next = say(&mut agent, "What did I pay for?").receipt;
    let stays = [BlockName::System, BlockName::Tracked, BlockName::History];
    let new: u32 = next
        .blocks
        .iter()
        .filter(|block| !stays.contains(&block.name))
        .map(|block| block.tokens)
        .sum();
    assert!(next.prefilled_tokens <= new + 2, "{next:?}");
    let frontier = agent.store().frontier(&session()).unwrap();
    assert_eq!(next.history_from, Some(frontier + 1));
}
