//! A conversation, each turn with its receipt: what the prompt held, what the cache saved, what was
//! left out. Each argument is a message.
//!
//! `GARRET_MODEL=model.gguf cargo run --release -p garret-examples --bin garret-receipts -- "My name
//! is Ada." "What is my name?"`

use garret::Cancel;
use garret::config::{Config, Sources};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    garret::hal::heap::bound();
    let config = Config::resolve(Sources::of_process()?)?;
    let mut agent = garret::open::agent(&config)?;
    let session = "receipts".parse()?;
    for message in std::env::args().skip(1) {
        println!("> {message}");
        let outcome = smol::block_on(agent.turn(&session, &message, &Cancel::new(), &mut |_| ()))?;
        println!("{}", outcome.reply);

        let receipt = &outcome.receipt;
        for block in &receipt.blocks {
            println!("  {:<8} {:>5} of {:>5}", block.name.as_str(), block.tokens, block.ceiling);
        }
        println!("  prompt   {:>5} of {:>5}", receipt.prompt_tokens, agent.budget().prompt_limit());
        println!("  read     {:>5}, the others were in the cache", receipt.prefilled_tokens);
        println!("  reply    {:>5} of {:>5}", receipt.reply_tokens, receipt.reply_reserve);
        for omission in &receipt.omitted {
            println!(
                "  left out {:>5} {}: {}",
                omission.count,
                omission.what.what(),
                omission.what.why()
            );
        }

        // Between turns there is time: the next one has nothing left to read but its own words. A
        // program drops this future when its user types.
        let idled = smol::block_on(agent.idle(&session));
        println!("  idle     {:>5} tokens read, {} facts found", idled.prefilled, idled.extracted);
    }
    Ok(())
}
