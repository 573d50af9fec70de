//! Measurements of Garret, each a ratio within one run on one machine.
//!
//! `cargo run --release -p garret-bench -- turns` prints the tokens prefilled and the time to the
//! first token of every turn of a scripted conversation, beside re-sending everything each turn.
//! `cargo run --release -p garret-bench -- soak` holds a conversation of a thousand turns with a
//! scripted model and counts what is lost, how long prompts get and what a turn costs without a
//! model. `cargo run --release -p garret-bench -- prefill` counts the tokens that a conversation
//! and its companions have prefilled, beside the same work as separate requests. `cargo run
//! --release -p garret-bench -- resume` prints how soon a long conversation goes on after a
//! restart, and `preempt` how long a message waits for a companion that is at work. `cargo run
//! --release -p garret-bench -- companions` asks a small model as companions are asked and counts
//! the answers that parse and the quotes that are the user's. `cargo run --release -p garret-bench
//! -- locomo --data DIR` prints how often search finds the turns that answer a question, and fits
//! the weights of its ranking. `cargo run --release -p garret-bench -- context --data DIR` prints
//! how often the prompt that asks a question shows the turns that answer it. `cargo run --release
//! -p garret-bench -- rotation --embedder GGUF --texts FILE` learns the basis of an embedder's
//! coarse vectors. `cargo run --release -p garret-bench -- search --peers` prints how fast memory
//! is found and kept, beside what people use today. Results and how they were obtained are in
//! `bench/README.md`.
//!
//! The exit status is 0 when everything was measured and every target met, 3 when a target was
//! missed, 1 when something couldn't be measured, 2 for arguments that make no sense.

mod answers;
mod companions;
mod conditions;
mod context;
mod fit;
mod lines;
mod locomo;
mod machine;
mod peers;
mod preempt;
mod prefill;
mod record;
mod report;
mod resume;
mod rotation;
mod script;
mod search;
mod soak;
mod stand_in;
mod statistics;
mod synthetic;
mod talk;
mod turns;
mod vectors;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(version, about = "Measures Garret")]
struct Cli {
    #[command(subcommand)]
    measurement: Measurement,
}

#[derive(Subcommand)]
enum Measurement {
    /// A scripted conversation: tokens prefilled and time to first token, turn by turn
    Turns(turns::Options),
    /// A thousand turns on a scripted model: what is lost, how long prompts get, what a turn costs
    Soak(soak::Options),
    /// A conversation with companions: tokens prefilled by kind, beside separate requests
    Prefill(prefill::Options),
    /// A long conversation after a restart: the time to its first token with and without a snapshot
    Resume(resume::Options),
    /// The wait of a user's message for a companion that is at work
    Preempt(preempt::Options),
    /// Small models as companions: whether what they write parses, and whom it quotes
    Companions(companions::Options),
    /// Questions about long conversations: how often search finds the turns that answer them
    Locomo(locomo::Options),
    /// Questions about long conversations: whether the prompt shows the turns that answer them
    Context(context::Options),
    /// The basis of an embedder's coarse vectors, learned from texts
    Rotation(rotation::Options),
    /// Latency, memory, bytes written and rates of search and storage, beside peers
    Search(search::Options),
    /// A process of `search`'s own
    #[command(hide = true)]
    Child {
        #[command(subcommand)]
        task: search::Task,
    },
}

fn main() -> ExitCode {
    garret_hal::heap::bound();
    let measured = match Cli::parse().measurement {
        Measurement::Turns(options) => turns::run(&options),
        Measurement::Soak(options) => soak::run(&options),
        Measurement::Prefill(options) => prefill::run(&options),
        Measurement::Resume(options) => resume::run(&options),
        Measurement::Preempt(options) => preempt::run(&options),
        Measurement::Companions(options) => companions::run(&options),
        Measurement::Locomo(options) => locomo::run(&options),
        Measurement::Context(options) => context::run(&options),
        Measurement::Rotation(options) => rotation::run(&options),
        Measurement::Search(options) => search::run(&options),
        Measurement::Child { task } => search::run_child(&task),
    };
    match measured {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.is::<report::MissedTargets>() => ExitCode::from(MISSED),
        Err(error) => {
            eprintln!("garret-bench: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Exit status of a measurement that missed a target.
const MISSED: u8 = 3;
