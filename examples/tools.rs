//! Tools: those of Garret, asked by a person, and one of the program's own beside them, asked by a model.
//!
//! An agent has Garret's tools by itself (`--tools on`). This program has its own loop around a model:
//! it finds tags in what the model streams, and answers them.
//!
//! `cargo run -p garret-examples --bin garret-tools`

use garret::core::scan::{Scan, TagKind, TagScanner};
use garret::core::time::{Confidence, WallTime};
use garret::hal::media::RamMedium;
use garret::storage::Store;
use garret::tools::{self, Call, Context};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let store = Store::on_medium("home", Box::new(RamMedium::new()))?;
    let garden = "garden".parse()?;
    let at = WallTime { unix_ms: 0, confidence: Confidence::Good };
    store.accept(&garden, "The bees swarmed at noon.", at)?;
    store.accept(&garden, "We took them home at dusk.", at)?;
    let context = Context { session: Some(&garden), ..Context::new(&store) };

    // A person writes a call as a line.
    println!("timeline 2\n{}", answer(&context, "timeline", "2"));

    // A model streams it as a tag, in pieces that may end anywhere. Tags are never shown.
    let mut scanner = TagScanner::new();
    let mut shown = String::new();
    let mut asked = Vec::new();
    let mut sink = |scan: Scan<'_>| match scan {
        Scan::Text(text) => shown += &String::from_utf8_lossy(text),
        Scan::Tag(tag) => {
            if let TagKind::Tool { verb, payload } = tag.kind {
                asked.push((verb.to_owned(), payload.to_owned()));
            }
        }
        Scan::Stripped(_) => {}
    };
    for piece in ["Let me see. <<garret-", "tool: grep noon>>", "<<garret-tool: hives>>"] {
        scanner.push(piece.as_bytes(), &mut sink);
    }
    scanner.finish(&mut sink);
    println!("the user sees: {shown}");
    for (verb, payload) in asked {
        println!("{verb} {payload}\n{}", answer(&context, &verb, &payload));
    }
    Ok(())
}

/// Answers a call: `hives` is the program's own, all others are Garret's. An error is an answer, too.
fn answer(context: &Context<'_>, verb: &str, payload: &str) -> String {
    if verb == "hives" {
        return "  seven hives, all well".into();
    }
    let call = match Call::read(&format!("{verb} {payload}")) {
        Ok(call) => call,
        Err(error) => return format!("  {error}"),
    };
    match tools::run(context, &call) {
        Ok(answer) => {
            answer.entries.iter().map(|entry| format!("  {}: {}\n", entry.id, entry.text)).collect()
        }
        Err(error) => format!("  {error}"),
    }
}
