//! `search`: how fast memory is found and kept, beside what people use today.
//!
//! Each part measures Garret and its peers in one run on one machine and prints ratios. Peers are
//! Python packages in an environment of their own, made in the target folder by the first run with
//! `--peers`; each runs in a process of its own, on one thread. What a figure means, and the
//! figures themselves, are in `bench/README.md`.

mod child;
mod corpus;
mod durability;
mod loopback;
mod process;
mod query;
mod vectors;

use std::error::Error;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

pub(crate) use child::{Task, run as run_child};

use crate::machine;
use crate::peers::Peers;
use crate::report::Report;

/// Options of `search`.
#[derive(Args)]
pub(crate) struct Options {
    /// Measure this part alone; may be given several times [default: all]
    #[arg(long, value_name = "NAME")]
    part: Vec<Part>,
    /// Measure the peers too; the first run installs them with pip, which needs a network
    #[arg(long)]
    peers: bool,
    /// Folder with `chitchat_turns.jsonl` or `locomo_turns.jsonl` [default: made-up sentences]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Embedder whose vectors of `--data` the vectors are drawn like [default: made-up spectrum]
    #[arg(long, value_name = "GGUF", requires = "data")]
    embedder: Option<PathBuf>,
    /// A million vectors, and a million records to reopen, too
    #[arg(long)]
    million: bool,
}

/// A group of figures.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Nearest vectors: latency, recall, scan rate, inserts
    Vectors,
    /// Text in, hits out: latency, memory
    Query,
    /// Bytes written for a durable add, import rate, file size, reopening
    Durability,
}

/// Measures and prints.
pub(crate) fn run(options: &Options) -> Result<(), Box<dyn Error>> {
    machine::print();
    let peers = if options.peers { Peers::prepare() } else { Peers::none() };
    let mut report = Report::default();
    for part in Part::value_variants() {
        if !options.part.is_empty() && !options.part.contains(part) {
            continue;
        }
        match part {
            Part::Vectors => vectors::run(options, &peers, &mut report)?,
            Part::Query => query::run(options, &peers, &mut report)?,
            Part::Durability => durability::run(options, &peers, &mut report)?,
        }
    }
    Ok(report.finish()?)
}
