//! Takes in a conversation that was held elsewhere, and takes everything somewhere else.
//!
//! `cargo run -p garret-examples --bin garret-import-and-export`

use garret_core::time::{Confidence, WallTime};
use garret_hal::media::RamMedium;
use garret_storage::search::Speaker;
use garret_storage::{Format, ImportedTurn, Store, Taken};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let home = Store::on_medium("home", Box::new(RamMedium::new()))?;
    let letters = "letters".parse()?;
    let said = [
        (Speaker::Named("Ada"), "The bees have swarmed.", "1"),
        (Speaker::Assistant, "Take a box and wait for dusk.", "2"),
        (Speaker::User, "Did they stay?", "3"),
    ];
    let turns = said.map(|(speaker, text, id)| ImportedTurn {
        session: &letters,
        speaker,
        text,
        at: WallTime { unix_ms: 1_683_550_800_000, confidence: Confidence::Good },
        // By its id a message is taken in once, so an import that was cut short is simply repeated.
        id: Some(id),
    });
    println!("{} taken in", home.import_turns(&turns)?.added);
    println!("{} taken in again", home.import_turns(&turns)?.added);

    // A bundle holds everything, and any later version of Garret takes it in, all of it or nothing.
    let mut bundle = Vec::new();
    let counts = home.export(&mut bundle, Format::Bundle)?;
    println!("exported: {} session, {} turns", counts.sessions, counts.turns);
    let away = Store::on_medium("away", Box::new(RamMedium::new()))?;
    away.import(&*bundle, Taken::Refuse)?;
    assert!(away.verify()?.is_clean());

    // Where a session of that name is there already, the new one gets another.
    let report = away.import(&*bundle, Taken::Rename)?;
    let (old, new) = &report.renamed[0];
    println!("imported again: {old} is {new}");

    // JSON Lines hold the same, for people and other programs.
    let mut lines = Vec::new();
    home.export(&mut lines, Format::Lines)?;
    let turn =
        String::from_utf8(lines)?.lines().find(|line| line.contains("swarmed")).map(str::to_owned);
    println!("{}", turn.unwrap_or_default());
    Ok(())
}
