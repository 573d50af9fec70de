//! `companions`: what small models write when they are asked as companions.
//!
//! Every call is made on one of the dialogues of `tests/data/gate_dialogues.txt`, with the prompts
//! and grammars that the agent uses. Calls of the inferrer and calls that copy a value alternate;
//! the compactor's forms are the other kind of call there is, and their grammars are made the same
//! way.

use std::error::Error;
use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use garret::anticipate::reading::{Inference, Reading, instruction, most_tokens};
use garret::companion::form::{Form as _, Size};
use garret::companion::{Answer, ask};
use garret::open::Plan;
use garret::remember::cues::{self, Statement};
use garret::remember::extract::{
    COPY_TOKENS, HeardStatement, copied, copy_grammar, copy_instruction,
};
use garret_core::model::{ChatModel, ModelRole};
use garret_core::prompt::{Message, PromptEncoder, Role};
use garret_core::time::{Confidence, WallTime};
use garret_core::token::{Token, TokenBuf};
use garret_llm::encoder::Encoder;
use garret_llm::{LlamaChat, Model};

use crate::conditions;
use crate::statistics::median;

/// Options of `companions`.
#[derive(Args)]
pub(crate) struct Options {
    /// Chat model [default: the starter model]
    #[arg(long, value_name = "FILE")]
    model: Option<PathBuf>,
    /// Calls, of both kinds together
    #[arg(long, default_value_t = 300)]
    calls: usize,
    /// Make no more calls after these many minutes
    #[arg(long, value_name = "MINUTES")]
    minutes: Option<u64>,
    /// Ask for all lines instead of the core ones
    #[arg(long)]
    extended: bool,
    /// Print every answer
    #[arg(long)]
    show: bool,
}

/// Measures and prints.
pub(crate) fn run(options: &Options) -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let flags = vec![("window", WINDOW.to_string())];
    let config = conditions::configuration(folder.path(), options.model.as_deref(), flags)?;
    let plan = Plan::new(&config)?;
    let (model, encoder) = plan.load(&config)?;
    conditions::print(&config, &plan, model.facts());
    let mut bench = Bench { model, encoder, tokens: vec![Token(0); WINDOW], show: options.show };
    let dialogues = dialogues()?;
    let told = statements(&dialogues);
    let size = if options.extended { Size::Extended } else { Size::Core };
    let mut readings = Readings::default();
    let mut copies = Copies::default();
    let began = Instant::now();
    let late = || options.minutes.is_some_and(|most| began.elapsed().as_secs() >= 60 * most);
    for call in 0..options.calls {
        if late() {
            break;
        }
        let nth = call / 2;
        match told.get(nth % told.len().max(1)) {
            Some((dialogue, text, statement)) if call % 2 == 1 => {
                let dialogue = &dialogues[*dialogue];
                bench.copy(dialogue, text, statement, &mut copies)?;
            }
            _ => bench.infer(&dialogues[nth % dialogues.len()], size, &mut readings)?,
        }
    }
    readings.print();
    copies.print();
    let parsed = readings.parsed + copies.parsed;
    let calls = readings.calls + copies.calls;
    println!("all calls: {parsed} of {calls} parse");
    Ok(())
}

/// A dialogue: the user's messages and the replies between them.
struct Dialogue {
    /// True where it was judged that thinking about the dialogue is worth the time.
    infer: bool,
    user: Vec<String>,
    replies: Vec<String>,
}

struct Bench {
    model: LlamaChat,
    encoder: Encoder<Model>,
    tokens: Vec<Token>,
    show: bool,
}

/// The results of the inferrer's calls.
#[derive(Default)]
struct Readings {
    calls: usize,
    parsed: usize,
    cut: usize,
    guesses: usize,
    grounded: usize,
    /// Dialogues worth thinking about, and others.
    worth: [usize; 2],
    won: [usize; 2],
    tokens: Vec<f64>,
    ms: Vec<f64>,
}

/// The results of calls that copy a value.
#[derive(Default)]
struct Copies {
    calls: usize,
    parsed: usize,
    grounded: usize,
    /// Calls whose value's end is plain to the rule; `alike` counts those of them that copy it
    /// alike.
    plain: usize,
    alike: usize,
    ms: Vec<f64>,
}

impl Bench {
    fn infer(
        &mut self,
        dialogue: &Dialogue,
        size: Size,
        sums: &mut Readings,
    ) -> Result<(), Box<dyn Error>> {
        let grammar = Reading::grammar(size);
        let (answer, ms) = self.ask(dialogue, instruction(size), &grammar, most_tokens(size))?;
        sums.calls += 1;
        sums.ms.push(ms);
        sums.tokens.push(f64::from(answer.generated));
        sums.cut += usize::from(answer.finish == garret_core::model::Finish::Length);
        let said: Vec<&str> = dialogue.user.iter().map(String::as_str).collect();
        let Ok(read) = Inference::read(&answer.text, size, &said) else {
            println!("doesn't parse: {:?}", answer.text);
            return Ok(());
        };
        sums.parsed += 1;
        sums.guesses += read.guesses.len();
        sums.grounded += read.guesses.iter().filter(|guess| guess.grounded).count();
        let of = usize::from(!dialogue.infer);
        sums.worth[of] += 1;
        sums.won[of] += usize::from(read.likeliest().is_some());
        Ok(())
    }

    fn copy(
        &mut self,
        dialogue: &Dialogue,
        text: &str,
        statement: &Statement,
        sums: &mut Copies,
    ) -> Result<(), Box<dyn Error>> {
        let session = "bench".parse()?;
        let accepted = WallTime { unix_ms: 0, confidence: Confidence::Wrong };
        let told = HeardStatement {
            session: &session,
            turn: 1,
            message: text,
            accepted,
            statement,
            hedged: false,
        };
        let words = text.get(statement.object_at.clone()).unwrap_or_default();
        let (answer, ms) =
            self.ask(dialogue, &copy_instruction(&told), &copy_grammar(words), COPY_TOKENS)?;
        sums.calls += 1;
        sums.ms.push(ms);
        let value = copied(&answer.text, words);
        sums.parsed += usize::from(value.is_some());
        sums.grounded += usize::from(value.is_some_and(|value| text.contains(value)));
        if statement.plain {
            sums.plain += 1;
            sums.alike += usize::from(value == Some(&*statement.object));
        }
        Ok(())
    }

    /// Asks about the end of a dialogue; the answer, and milliseconds.
    fn ask(
        &mut self,
        dialogue: &Dialogue,
        instruction: &str,
        grammar: &str,
        max_tokens: u32,
    ) -> Result<(Answer, f64), Box<dyn Error>> {
        let mut messages = vec![Message::new(Role::System, "Be brief.")];
        let replies = dialogue.replies.iter().map(String::as_str).chain(["I see."]);
        for (user, reply) in dialogue.user.iter().zip(replies) {
            messages.push(Message::new(Role::User, user.as_str()));
            messages.push(Message::new(Role::Assistant, reply));
        }
        messages.push(Message::new(Role::User, instruction));
        let mut ends = vec![0; messages.len()];
        let mut run = TokenBuf::new(&mut self.tokens);
        self.encoder.encode(&messages, &mut run, &mut ends)?;
        let length = run.len();
        let start = Instant::now();
        let prompt = &self.tokens[..length];
        let asked = ask(&self.model, ModelRole::Inferrer, prompt, Some(grammar), max_tokens);
        let answer = smol::block_on(asked)?;
        if self.show {
            println!("{}\n{}", dialogue.user.last().map_or("", |text| text), answer.text);
        }
        Ok((answer, start.elapsed().as_secs_f64() * 1_000.0))
    }
}

impl Readings {
    fn print(&self) {
        println!(
            "\ninferrer: {} calls, {} parse, {} cut off; {} of {} guesses quote the user ({:.0}%)",
            self.calls,
            self.parsed,
            self.cut,
            self.grounded,
            self.guesses,
            100.0 * share(self.grounded, self.guesses),
        );
        println!(
            "a guess wins in {} of {} dialogues worth thinking about and in {} of {} others",
            self.won[0], self.worth[0], self.won[1], self.worth[1],
        );
        println!("tokens {:.0}, ms {:.0} (medians)", median(&self.tokens), median(&self.ms));
    }
}

impl Copies {
    fn print(&self) {
        println!(
            "\ncopied values: {} calls, {} parse, {} are the user's words; {} of {} as the rule has \
             them; ms {:.0} (median)",
            self.calls,
            self.parsed,
            self.grounded,
            self.alike,
            self.plain,
            median(&self.ms),
        );
    }
}

fn share(part: usize, whole: usize) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// Every statement of a user, with the dialogue and the message it is in.
fn statements(dialogues: &[Dialogue]) -> Vec<(usize, String, Statement)> {
    let all = dialogues
        .iter()
        .enumerate()
        .flat_map(|(at, dialogue)| dialogue.user.iter().map(move |text| (at, text)));
    all.flat_map(|(at, text)| {
        cues::read(text).statements.into_iter().map(move |told| (at, text.clone(), told))
    })
    .collect()
}

fn dialogues() -> Result<Vec<Dialogue>, Box<dyn Error>> {
    let mut all: Vec<Dialogue> = Vec::new();
    for line in include_str!("../../tests/data/gate_dialogues.txt").lines() {
        if let Some(head) = line.strip_prefix("# ") {
            let infer = head.split(' ').any(|label| label == "infer");
            all.push(Dialogue { infer, user: Vec::new(), replies: Vec::new() });
        } else if let (Some(last), Some((who, text))) = (all.last_mut(), line.split_once(": ")) {
            let text = unescaped(text)?;
            if who == "u" { last.user.push(text) } else { last.replies.push(text) }
        }
    }
    Ok(all)
}

/// Escapes as in Rust, turned into characters.
fn unescaped(text: &str) -> Result<String, Box<dyn Error>> {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("\\u{") {
        let (digits, after) = after.split_once('}').ok_or("an escape without an end")?;
        plain.push_str(before);
        let code = u32::from_str_radix(digits, 16)?;
        plain.push(char::from_u32(code).ok_or("an escape that is no character")?);
        rest = after;
    }
    Ok(plain + rest)
}

/// Tokens of the window.
const WINDOW: usize = 4_096;
