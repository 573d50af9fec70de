//! `garret memory stats`: the number of things remembered, and their bytes.

use std::collections::BTreeMap;
use std::error::Error;

use garret::config::Config;
use garret::open;
use garret_storage::{Stats, Store};
use serde::Serialize;

use super::embed;
use crate::output;

/// `garret memory stats`.
pub(super) fn run(config: &Config, store: &Store, json: bool) -> Result<(), Box<dyn Error>> {
    let embedder = open::attached_embedder(config, store)?.is_some();
    let vectors = embedder.then(|| embed::vectors(store));
    let stats = Report::new(store.namespace(), &store.stats()?, vectors);
    if json { output::say_json(&stats) } else { Ok(output::say(&stats.for_people())?) }
}

#[derive(Serialize)]
struct Report<'a> {
    namespace: &'a str,
    sessions: u64,
    turns: u64,
    replies: u64,
    facts: Facts,
    entities: u64,
    links: u64,
    /// Facts that are pinned.
    pinned: u64,
    summaries: u64,
    /// Turns of which it is kept what the model saw.
    traces: u64,
    /// Vectors of the configured embedder; `None` without one.
    vectors: Option<usize>,
    /// Writes that are durable in the journal and not yet among the records.
    pending: u64,
    /// The bytes of each file, by the end of its name.
    bytes: BTreeMap<&'static str, u64>,
    total_bytes: u64,
}

#[derive(Serialize)]
struct Facts {
    all: u64,
    latest: u64,
    superseded: u64,
    ended: u64,
    damaged: u64,
}

impl<'a> Report<'a> {
    fn new(namespace: &'a str, stats: &Stats, vectors: Option<usize>) -> Self {
        let facts = stats.facts;
        Self {
            namespace,
            sessions: stats.sessions,
            turns: stats.turns,
            replies: stats.replies,
            facts: Facts {
                all: facts.all,
                latest: facts.latest,
                superseded: facts.superseded,
                ended: facts.ended,
                damaged: facts.damaged,
            },
            entities: stats.entities,
            links: stats.links,
            pinned: stats.pinned,
            summaries: stats.summaries,
            traces: stats.traces,
            vectors,
            pending: stats.pending,
            bytes: stats.bytes.iter().map(|(part, bytes)| (part.extension(), *bytes)).collect(),
            total_bytes: stats.total_bytes(),
        }
    }

    fn for_people(&self) -> String {
        let Facts { all, latest, superseded, ended, damaged } = self.facts;
        let mut text = format!("namespace  {}\n", self.namespace);
        let mut line = |name: &str, value: String| text += &format!("{name:<10} {value}\n");
        line("sessions", self.sessions.to_string());
        line("turns", format!("{} with {} replies", self.turns, self.replies));
        let pinned = self.pinned;
        line(
            "facts",
            format!("{all}: {latest} hold, {superseded} replaced, {ended} ended; {pinned} pinned"),
        );
        line("summaries", format!("{} with {} traces of turns", self.summaries, self.traces));
        if damaged > 0 {
            line("damaged", format!("{damaged} facts: see `garret memory verify`"));
        }
        line("entities", format!("{} with {} links", self.entities, self.links));
        let vectors = self.vectors.map(|vectors| vectors.to_string());
        line("vectors", vectors.unwrap_or_else(|| "no embedder: words alone".into()));
        line("journal", format!("{} writes", self.pending));
        let files = self.bytes.iter().map(|(name, bytes)| format!("{name} {bytes}"));
        let files: Vec<_> = files.collect();
        line("bytes", format!("{} ({})", self.total_bytes, files.join(", ")));
        text.truncate(text.trim_end().len());
        text
    }
}
