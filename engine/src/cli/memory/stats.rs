//! How much is remembered, and in how many bytes.

use std::error::Error;

use garret_storage::{Part, Store};
use serde::Serialize;

use crate::cli::output;

/// `garret memory stats`.
pub(super) fn run(store: &Store, json: bool) -> Result<(), Box<dyn Error>> {
    let stats = Stats::of(store)?;
    if json { output::say_json(&stats) } else { Ok(output::say(&stats.for_people())?) }
}

#[derive(Serialize)]
struct Stats {
    namespace: String,
    sessions: usize,
    turns: u64,
    facts: u64,
    /// Of those, the ones that nothing replaced and that have no end.
    latest_facts: u64,
    entities: usize,
    /// Writes that are durable in the journal and not yet among the records.
    pending: u64,
    files: Vec<File>,
}

#[derive(Serialize)]
struct File {
    name: String,
    bytes: u64,
}

impl Stats {
    fn of(store: &Store) -> Result<Self, Box<dyn Error>> {
        let sessions = store.sessions()?;
        let (mut facts, mut latest_facts) = (0, 0);
        store.for_each_fact(|fact| {
            facts += 1;
            latest_facts += u64::from(fact.latest);
        })?;
        Ok(Self {
            namespace: store.namespace().to_owned(),
            sessions: sessions.len(),
            turns: sessions.iter().map(|session| session.turns).sum(),
            facts,
            latest_facts,
            entities: store.entities()?.len(),
            pending: store.pending()?,
            files: files(store)?,
        })
    }

    fn for_people(&self) -> String {
        let mut text = format!(
            "namespace   {}\nsessions    {}\nturns       {}\nfacts       {} ({} hold now)\n\
             entities    {}\nin journal  {}",
            self.namespace,
            self.sessions,
            self.turns,
            self.facts,
            self.latest_facts,
            self.entities,
            self.pending
        );
        for file in &self.files {
            text += &format!("\n{:>11} bytes  {}", file.bytes, file.name);
        }
        text
    }
}

/// The files of the namespace that are there.
fn files(store: &Store) -> std::io::Result<Vec<File>> {
    let Some(records) = store.path() else { return Ok(Vec::new()) };
    let mut files = Vec::new();
    for part in [Part::Records, Part::Journal, Part::Coarse, Part::Full, Part::Index] {
        let path = records.with_extension(part.extension());
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        match path.metadata() {
            Ok(found) => files.push(File { name, bytes: found.len() }),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(files)
}
