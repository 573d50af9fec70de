//! Counts what a namespace holds, checks it, and lists its conversations; the namespace is the one that
//! `GARRET_DATA` and `GARRET_NAMESPACE` name.
//!
//! `cargo run -p garret-examples --bin garret-statistics`

use garret::config::{Config, Sources};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let config = Config::resolve(Sources::of_process()?)?;
    let store = garret::open::existing_store(&config)?;

    let stats = store.stats()?;
    println!("{} sessions, {} turns, {} replies", stats.sessions, stats.turns, stats.replies);
    println!("{} facts, of which {} hold", stats.facts.all, stats.facts.latest);
    println!("{} summaries, {} vectors", stats.summaries, stats.vectors);
    println!("{} bytes in {} files", stats.total_bytes(), stats.bytes.len());

    for session in store.sessions()? {
        println!("  {}: {} turns", session.id, session.turns);
    }
    println!(
        "{}",
        if store.verify()?.is_clean() { "nothing is wrong" } else { "run garret memory verify" }
    );
    Ok(())
}
