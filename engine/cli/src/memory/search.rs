//! Finding what was said.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;
use std::time::Instant;

use garret::config::Config;
use garret::embed::{self, Embed};
use garret::open::{self, LocalAgent};
use garret::rerank::{self, Reranking};
use garret_core::id::SessionId;
use garret_core::time::{Clock as _, Confidence};
use garret_hal::clock::SystemClock;
use garret_storage::search::{Found, Hit, NAMES, Search};
use garret_storage::{Part, Store};
use serde::Serialize;

use crate::args::memory::Search as Args;
use crate::dates::when;
use crate::output;

/// `garret memory search`.
pub(super) fn run(config: &Config, store: &Store, search: &Args) -> Result<(), Box<dyn Error>> {
    let session = search.session.as_deref().map(str::parse::<SessionId>).transpose()?;
    if let Some(id) = &session
        && store.session(id)?.is_none()
    {
        return Err(format!("there is no conversation `{id}`: see `garret session list`").into());
    }
    let embedder = embedder(config, store)?;
    let reranker = match search.rerank {
        Some(0) => None,
        _ => open::reranker(config)?,
    };
    if reranker.is_none() && search.rerank.is_some_and(|top| top > 0) {
        return Err("there is no reranker: give --reranker FILE".into());
    }
    let reranking = reranker.as_ref().map(|by| {
        let top = search.rerank.map_or(rerank::TOP, usize::from);
        Reranking { top, ..Reranking::new(by) }
    });
    let kinds: Vec<_> = search.kind.iter().flat_map(|kind| kind.kinds()).copied().collect();
    let began = Instant::now();
    let vector = embedder.and_then(|embedder| embed::query(store, &*embedder, &search.text));
    let wanted = Search {
        session: session.as_ref(),
        source: search.source.as_deref(),
        kinds: &kinds,
        as_of: search.as_of,
        replaced: search.replaced,
        now: now(),
        vector: vector.as_deref(),
        ..Search::new(&search.text, search.k.into())
    };
    let found = rerank::find(store, &wanted, reranking)?;
    let took = began.elapsed();
    if search.json {
        output::say_json(&SearchReport {
            hits: found.hits.iter().map(ListedHit::from).collect(),
            searched: found.searched,
            took_us: u64::try_from(took.as_micros()).unwrap_or(u64::MAX),
        })?;
    } else {
        tell(&found, search.explain)?;
    }
    Ok(())
}

/// Prints the best hits for `text` in all conversations.
pub(crate) fn find(agent: &LocalAgent, text: &str) -> Result<(), Box<dyn Error>> {
    let store = agent.store();
    let embedder = agent.embedder();
    let vector = embedder.and_then(|embedder| embed::query(store, embedder, text));
    let search = Search { now: now(), vector: vector.as_deref(), ..Search::new(text, FIND) };
    tell(&rerank::find(store, &search, agent.reranker().map(Reranking::new))?, false)
}

/// The embedder, where there are vectors to compare with: it takes a moment to load.
fn embedder(config: &Config, store: &Store) -> Result<Option<Arc<dyn Embed>>, Box<dyn Error>> {
    let vectors = store.path().map(|path| path.with_extension(Part::Full.extension()));
    if vectors.is_some_and(|path| path.exists()) {
        return Ok(open::attached_embedder(config, store)?);
    }
    Ok(None)
}

/// Returns the present moment in milliseconds since 1970, if the clock can be trusted.
pub(super) fn now() -> Option<i64> {
    let now = SystemClock::new().wall();
    (now.confidence != Confidence::Wrong).then_some(now.unix_ms)
}

/// The number of hits that `/find` prints.
const FIND: usize = 5;

fn tell(found: &Found, explain: bool) -> Result<(), Box<dyn Error>> {
    if found.hits.is_empty() {
        let things = if found.searched == 1 { "message or fact" } else { "messages and facts" };
        output::note(&format!("Nothing found in {} {things}.", found.searched));
    }
    for (hit, number) in found.hits.iter().zip(1..) {
        output::say(&for_people(hit, number, explain))?;
    }
    Ok(())
}

/// A hit on the wire.
#[derive(Serialize)]
struct ListedHit<'a> {
    id: &'a str,
    text: &'a str,
    score: f64,
    source: &'a str,
    session: Option<&'a str>,
    turn: Option<u64>,
    valid_at: Option<String>,
    valid_to: Option<String>,
    /// The hit that this one is linked to, where it is found for that.
    #[serde(skip_serializing_if = "Option::is_none")]
    through: Option<&'a str>,
    parts: BTreeMap<&'static str, f64>,
}

#[derive(Serialize)]
struct SearchReport<'a> {
    hits: Vec<ListedHit<'a>>,
    searched: usize,
    took_us: u64,
}

impl<'a> From<&'a Hit> for ListedHit<'a> {
    fn from(hit: &'a Hit) -> Self {
        Self {
            id: &hit.id,
            text: &hit.text,
            score: rounded(hit.score),
            source: &hit.source,
            session: hit.session.as_ref().map(SessionId::as_str),
            turn: hit.turn,
            valid_at: hit.at_ms.map(when),
            valid_to: hit.valid_to.map(when),
            through: hit.through.as_deref(),
            parts: parts(hit).chain(factors(hit)).chain(reranked(hit)).collect(),
        }
    }
}

fn for_people(hit: &Hit, number: usize, explain: bool) -> String {
    let at = hit.at_ms.map_or_else(|| "at an unknown time".to_owned(), when);
    let place = match (&hit.session, hit.turn) {
        (Some(session), Some(turn)) => format!("{session}, turn {turn}"),
        _ => hit.id.clone(),
    };
    let source = &hit.source;
    let before = if hit.cut_before { "..." } else { "" };
    let after = if hit.cut_after { "..." } else { "" };
    // A message on one line, whatever was in it.
    let text: Vec<_> = hit.text.split_whitespace().collect();
    let text = text.join(" ");
    let score = hit.score;
    let mut lines = format!("{number}. {place}, {source}, {at} ({score:.2})\n");
    lines.push_str(&format!("   {before}{text}{after}"));
    if explain {
        let parts = parts(hit).filter(|(_, part)| *part != 0.0);
        let parts: Vec<_> = parts.map(|(name, part)| format!("{name} {part:.2}")).collect();
        lines.push_str(&format!("\n   = {}", parts.join(" + ")));
        let factors: Vec<_> = factors(hit)
            .chain(reranked(hit))
            .map(|(name, factor)| format!("{name} {factor:.2}"))
            .collect();
        lines.push_str(&format!("\n   : {}", factors.join(", ")));
        if let Some(through) = &hit.through {
            lines.push_str(&format!(", linked to {through}"));
        }
    }
    lines
}

fn parts(hit: &Hit) -> impl Iterator<Item = (&'static str, f64)> {
    NAMES.iter().zip(hit.parts).map(|(name, part)| (*name, rounded(part)))
}

/// Returns the reranker's part in a hit's score, where one was asked.
fn reranked(hit: &Hit) -> impl Iterator<Item = (&'static str, f64)> {
    hit.rerank.into_iter().map(|score| ("rerank", rounded(score)))
}

/// Returns the parts that a hit's score is made of.
fn factors(hit: &Hit) -> impl Iterator<Item = (&'static str, f64)> {
    let factors =
        [("relevance", hit.relevance), ("recency", hit.recency), ("importance", hit.importance)];
    factors.into_iter().map(|(name, factor)| (name, rounded(factor)))
}

/// Rounds to four places: what is beyond them says nothing.
fn rounded(value: f32) -> f64 {
    let rounded = (f64::from(value) * 1e4).round() / 1e4;
    // Not -0.
    rounded + 0.0
}
