//! The smallest program that embeds Garret: answers its arguments and remembers having done so.
//!
//! `GARRET_MODEL=model.gguf cargo run --release -p garret-examples --bin garret-ask -- What did I ask?`

use std::io::Write;

use garret::Cancel;
use garret::config::{Config, Sources};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    garret::hal::heap::bound();
    let message = std::env::args().skip(1).collect::<Vec<_>>().join(" ");
    let config = Config::resolve(Sources::of_process()?)?;
    let mut agent = garret::open::agent(&config)?;
    let session = "example".parse()?;
    let mut print = |piece: &str| {
        // A closed terminal is no reason to lose the turn.
        let _ = write!(std::io::stdout(), "{piece}").and_then(|()| std::io::stdout().flush());
    };
    let outcome = smol::block_on(agent.turn(&session, &message, &Cancel::new(), &mut print))?;
    println!("\n[turn {}: {} prompt tokens]", outcome.turn, outcome.receipt.prompt_tokens);
    Ok(())
}
