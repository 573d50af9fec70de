//! Vectors for what has none yet, made while somebody watches.

use std::error::Error;
use std::io::IsTerminal;
use std::time::Duration;

use garret::config::Config;
use garret::embed::{Embed, embed_all};
use garret::open;
use garret_storage::Store;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use crate::output;

/// `garret memory embed`.
pub(super) fn run(config: &Config, store: &Store, json: bool) -> Result<(), Box<dyn Error>> {
    let embedder = open::attached_embedder(config, store)?.ok_or_else(|| {
        format!(
            "there is no embedder: give --embedder FILE, or put {} into {}",
            open::STARTER_EMBEDDER,
            config.models_dir.value.display()
        )
    })?;
    let embedded = all(store, &*embedder)?;
    if json {
        return output::say_json(&Report { embedded, vectors: vectors(store) });
    }
    output::say(&format!("{embedded} vectors made"))?;
    Ok(())
}

#[derive(Serialize)]
struct Report {
    /// Vectors that were made now.
    embedded: usize,
    /// Vectors that there are.
    vectors: usize,
}

/// Gives everything a vector if there is an embedder. What is stored stays stored if that fails.
pub(super) fn after_import(config: &Config, store: &Store) {
    let made = match open::attached_embedder(config, store) {
        Ok(Some(embedder)) => all(store, &*embedder).map(drop),
        Ok(None) => return,
        Err(error) => Err(error.into()),
    };
    if let Err(error) = made {
        output::note(&format!("(no vectors yet: {error}; `garret memory embed` tries again)"));
    }
}

/// The same where little was added and nobody wants to wait for what others left.
pub(super) fn after_add(config: &Config, store: &Store) {
    if open::embedder_file(config).is_none() {
        return;
    }
    match open::attached_embedder(config, store).map_err(Box::<dyn Error>::from) {
        Ok(Some(embedder)) => match store.unembedded(FEW + 1) {
            Ok(units) if units.len() > FEW => {
                output::note("(much has no vector yet: `garret memory embed` makes them)");
            }
            Ok(_) => {
                if let Err(error) = embed_all(store, &*embedder, &mut |_| true) {
                    output::note(&format!("(no vector yet: {error})"));
                }
            }
            Err(error) => output::note(&format!("(no vector yet: {error})")),
        },
        Ok(None) => {}
        Err(error) => output::note(&format!("(no vector yet: {error})")),
    }
}

/// Texts that are embedded without being asked for.
const FEW: usize = 64;

fn all(store: &Store, embedder: &dyn Embed) -> Result<usize, Box<dyn Error>> {
    let stats = store.stats()?;
    let units = stats.turns + stats.replies + stats.facts.all;
    let lacking = units.saturating_sub(u64::try_from(vectors(store)).unwrap_or(0));
    let bar = bar(lacking);
    let embedded = embed_all(store, embedder, &mut |done| {
        bar.set_position(u64::try_from(done).unwrap_or(u64::MAX));
        true
    });
    bar.finish_and_clear();
    Ok(embedded?)
}

fn bar(units: u64) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        if units > 0 {
            output::note(&format!("(making {units} vectors; `garret memory embed` resumes this)"));
        }
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(units);
    let style = "{bar:40} {pos} of {len} vectors, {eta} left (`garret memory embed` resumes this)";
    if let Ok(style) = ProgressStyle::with_template(style) {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(100));
    bar
}

/// Vectors of the embedder that is set.
pub(super) fn vectors(store: &Store) -> usize {
    store.with_vectors(|vectors| vectors.len()).unwrap_or(0)
}
