//! The store against a reference model: under random operations, power cuts at every moment, full
//! and failing media, damaged files, other processes and older files.

// Clippy allows these in test functions, but not in what they call.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod bundle;
mod bundle_import;
mod costs;
mod crash;
mod damage;
mod everything;
mod everything_model;
mod facts;
mod facts_crash;
mod facts_model;
mod facts_operations;
mod fixture;
mod forget;
mod full;
mod hostile;
mod import;
mod index;
mod index_crash;
mod journal;
mod lock;
mod model;
mod operations;
mod pins;
mod pitfalls;
#[cfg(unix)]
mod read_only;
mod rewrite;
mod search;
mod search_facts;
mod search_links;
mod search_threads;
mod snapshot;
mod summaries;
mod summaries_model;
mod summaries_operations;
mod vectors;
mod vectors_crash;
mod vectors_store;
mod verify;
mod waiting;

/// `usual`, as many as CI has time for, unless the environment asks for others: `PROPTEST_CASES=5000`
/// is a long run.
fn cases(usual: u32) -> u32 {
    let asked = std::env::var("PROPTEST_CASES").ok();
    asked.and_then(|cases| cases.parse().ok()).unwrap_or(usual)
}
