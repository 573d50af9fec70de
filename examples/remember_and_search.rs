//! Remembers, searches and forgets without any model, on the store alone: no llama.cpp is compiled for
//! a program like this one.
//!
//! `cargo run -p garret-examples --bin garret-remember-and-search`

use garret_core::time::{Confidence, WallTime};
use garret_hal::media::RamMedium;
use garret_storage::search::Search;
use garret_storage::{NewFact, Selection, Store};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Here a namespace is memory that goes with the program; `Store::open` has one in files, each
    // write durable when it returns.
    let store = Store::on_medium("home", Box::new(RamMedium::new()))?;
    let garden = "garden".parse()?;

    // What people say are turns of a session. A search finds them at once.
    store.accept(&garden, "The bees swarmed, they hang in the oak.", day(1))?;
    store.accept(&garden, "Marta brings the cake on Friday.", day(2))?;
    for hit in store.find(&Search::new("where are the bees?", 3))?.hits {
        println!("found {}: {} ({:.2})", hit.id, hit.text, hit.relevance);
    }

    // What is true from some day on are facts. A newer one ends the older and overwrites nothing.
    let lives_in = |text, city| NewFact {
        text,
        subject: Some("user"),
        predicate: Some("lives_in"),
        object: Some(city),
        ..NewFact::default()
    };
    store.add_fact(&lives_in("I live in Oslo.", "Oslo"), day(3))?;
    let bergen = store.add_fact(&lives_in("I moved to Bergen.", "Bergen"), day(9))?;
    for fact in store.history(bergen.id)? {
        let now = if fact.latest { ", now" } else { "" };
        println!("known {}: {}{now}", fact.id, fact.text);
    }
    let then = Search { as_of: Some(day(5).unix_ms), ..Search::new("where do I live?", 1) };
    println!("on day 5: {}", store.find(&then)?.hits[0].text);

    // Forgetting reaches every byte of every file; a dry run says what would go.
    let marta = Selection { pattern: Some("marta"), ..Selection::default() };
    for item in store.erase(&marta, day(10), true)?.items {
        println!("would forget {} ({} bytes)", item.id, item.bytes);
    }
    store.erase(&marta, day(10), false)?;
    println!("traces of it: {}", store.verify_erased(b"Marta")?.len());
    Ok(())
}

/// Returns a day of January 1970; a program takes the time from `garret_hal::clock::SystemClock`.
fn day(day: i64) -> WallTime {
    WallTime { unix_ms: day * 86_400_000, confidence: Confidence::Good }
}
