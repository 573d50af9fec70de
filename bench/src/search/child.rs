//! Garret's side in a process of its own, as each peer has one: what it holds in memory is then
//! only its own, and it can be killed.

use std::error::Error;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Subcommand;
use garret_core::time::{Confidence, WallTime};
use garret_hal::media::FileMedium;
use garret_storage::search::{Search, Speaker};
use garret_storage::{ImportedTurn, Store};

use super::corpus::{Query, Record};
use super::vectors;
use crate::machine::{process_time, status_bytes, timed};
use crate::peers::Figures;
use crate::{lines, stand_in};

/// The task of a process of Garret's.
#[derive(Subcommand)]
pub(crate) enum Task {
    /// Stores the records; closes the store, or waits to be killed
    Fill {
        folder: PathBuf,
        records: PathBuf,
        #[arg(long)]
        hang: bool,
    },
    /// Gives every record of the store a vector
    Embed { folder: PathBuf },
    /// Opens the store and answers the queries
    Query {
        folder: PathBuf,
        queries: PathBuf,
        k: usize,
        /// Search by the queries' vectors, too
        #[arg(long)]
        vectors: bool,
    },
    /// Opens the vectors of a folder and answers queries
    Nearest { folder: PathBuf, queries: PathBuf },
    /// Opens the store and reads the last turn of a session
    Reopen { folder: PathBuf, session: String },
}

/// Does a task, and prints what was measured.
pub(crate) fn run(task: &Task) -> Result<(), Box<dyn Error>> {
    let measured = match task {
        Task::Fill { folder, records, hang } => fill(folder, records, *hang)?,
        Task::Embed { folder } => embed(folder)?,
        Task::Query { folder, queries, k, vectors } => query(folder, queries, *k, *vectors)?,
        Task::Nearest { folder, queries } => vectors::nearest(folder, queries)?,
        Task::Reopen { folder, session } => reopen(folder, session)?,
    };
    println!("{}", serde_json::to_string(&measured)?);
    Ok(())
}

/// Opens the store that is measured.
pub(super) fn open(folder: &Path) -> Result<Store, Box<dyn Error>> {
    Ok(Store::open(folder, "bench", |path| Ok(Box::new(FileMedium::open(path)?)))?)
}

/// Stores records in batches. To `hang`, the last of them one by one, so that they are in the
/// journal alone when the process is killed.
fn fill(folder: &Path, records: &Path, hang: bool) -> Result<Figures, Box<dyn Error>> {
    let records: Vec<Record> = lines::read(records)?;
    let store = open(folder)?;
    let last = if hang { LAST.min(records.len()) } else { 0 };
    let (batches, singles) = records.split_at(records.len() - last);
    let before = process_time();
    import(&store, batches, BATCH)?;
    let spent = process_time() - before;
    import(&store, singles, 1)?;
    if hang {
        let mut out = std::io::stdout();
        out.write_all(b".")?;
        out.flush()?;
        // Until this process is killed, or the one that would is gone.
        std::io::stdin().read_exact(&mut [0]).unwrap_or_default();
    }
    drop(store);
    Ok(Figures {
        inserts_per_s: Some(batches.len() as f64 / spent.as_secs_f64()),
        file_bytes: Some(folder_bytes(folder)?),
        ..garret()
    })
}

/// Records that are imported at once.
pub(super) const BATCH: usize = 1_000;
/// Records that are in the journal alone when a process is killed.
const LAST: usize = 200;

/// Adds `records`, each group of them acknowledged as durable.
pub(super) fn import(
    store: &Store,
    records: &[Record],
    group: usize,
) -> Result<(), Box<dyn Error>> {
    for group in records.chunks(group) {
        let sessions = group.iter().map(|record| record.session.parse());
        let sessions = sessions.collect::<Result<Vec<_>, _>>()?;
        let turn = |(record, session)| {
            let Record { speaker, text, at_ms: unix_ms, .. }: &Record = record;
            let at = WallTime { unix_ms: *unix_ms, confidence: Confidence::Good };
            ImportedTurn { session, speaker: Speaker::Named(speaker), text, at, id: None }
        };
        let turns: Vec<_> = group.iter().zip(&sessions).map(turn).collect();
        let added = store.import_turns(&turns)?.added;
        if added != turns.len() {
            return Err(format!("{added} of {} records were stored", turns.len()).into());
        }
    }
    Ok(())
}

/// Adds `records` one by one as what the user said, as a conversation does.
pub(super) fn accept(store: &Store, records: &[Record]) -> Result<(), Box<dyn Error>> {
    for record in records {
        let at = WallTime { unix_ms: record.at_ms, confidence: Confidence::Good };
        store.accept(&record.session.parse()?, &record.text, at)?;
    }
    Ok(())
}

/// Counts the bytes of all files in `folder` and below.
pub(super) fn folder_bytes(folder: &Path) -> Result<f64, Box<dyn Error>> {
    let mut bytes = 0.0;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        bytes +=
            if metadata.is_dir() { folder_bytes(&entry.path())? } else { metadata.len() as f64 };
    }
    Ok(bytes)
}

fn embed(folder: &Path) -> Result<Figures, Box<dyn Error>> {
    let store = open(folder)?;
    stand_in::set(&store)?;
    let mut count = 0;
    let mut spent = Duration::ZERO;
    loop {
        let texts = store.unembedded(10_000)?;
        if texts.is_empty() {
            break;
        }
        let embedded = |(key, text): (_, String)| (key, stand_in::embed(&text));
        let vectors: Vec<_> = texts.into_iter().map(embedded).collect();
        let before = process_time();
        count += store.add_vectors(&vectors)?;
        store.tend_vectors()?;
        spent += process_time() - before;
    }
    Ok(Figures {
        inserts_per_s: Some(f64::from(u32::try_from(count)?) / spent.as_secs_f64()),
        file_bytes: Some(folder_bytes(folder)?),
        ..garret()
    })
}

/// Answers queries. The vector of each is made before its time begins.
fn query(
    folder: &Path,
    queries: &Path,
    k: usize,
    vectors: bool,
) -> Result<Figures, Box<dyn Error>> {
    let queries: Vec<Query> = lines::read(queries)?;
    let embedded: Vec<_> = queries.iter().map(|query| stand_in::embed(&query.text)).collect();
    let mut asked = queries.iter().zip(&embedded).map(|(query, vector)| Search {
        vector: vectors.then_some(&**vector),
        ..Search::new(&query.text, k)
    });
    let warm = asked.clone().next().ok_or("no queries")?;
    let (store, first) = timed(|| -> Result<_, Box<dyn Error>> {
        let store = open(folder)?;
        if vectors {
            stand_in::set(&store)?;
        }
        store.find(&warm)?;
        Ok(store)
    });
    let store = store?;
    let mut measured =
        Figures { first_us: Some(first.wall_us), first_cpu_us: Some(first.cpu_us), ..garret() };
    asked.try_for_each(|query| {
        let (found, took) = timed(|| store.find(&query));
        measured.wall_us.push(took.wall_us);
        measured.cpu_us.push(took.cpu_us);
        found.map(drop)
    })?;
    measured.resident_bytes = status_bytes("VmRSS");
    Ok(measured)
}

fn reopen(folder: &Path, session: &str) -> Result<Figures, Box<dyn Error>> {
    let session = session.parse()?;
    let before = process_time();
    let store = open(folder)?;
    let last = store.session(&session)?.ok_or("the session is lost")?.turns;
    let read = store.with_turns(&session, last, |turns| turns.len())?;
    let spent = (process_time() - before).as_secs_f64() * 1e6;
    if read != 1 {
        return Err(format!("session {session} lost its turn {last}").into());
    }
    Ok(Figures { cpu_us: vec![spent], ..garret() })
}

fn garret() -> Figures {
    let version = env!("CARGO_PKG_VERSION").to_owned();
    Figures { peer: "Garret".to_owned(), version, ..Figures::default() }
}

#[cfg(test)]
mod tests {
    use super::super::corpus;
    use super::*;

    #[test]
    fn a_filled_store_answers_and_reopens() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name| folder.path().join(name);
        let records = corpus::records(None, 60).unwrap();
        lines::write(&path("records"), &records).unwrap();
        lines::write(&path("queries"), corpus::queries(&records, 5)).unwrap();
        let data = path("data");
        std::fs::create_dir(&data).unwrap();
        let filled = fill(&data, &path("records"), false).unwrap();
        assert!(filled.file_bytes.unwrap() > 0.0 && filled.inserts_per_s.unwrap() > 0.0);
        assert_eq!(query(&data, &path("queries"), 10, false).unwrap().wall_us.len(), 5);
        assert!(embed(&data).unwrap().inserts_per_s.unwrap() > 0.0);
        assert_eq!(query(&data, &path("queries"), 10, true).unwrap().wall_us.len(), 5);
        assert_eq!(reopen(&data, &records[59].session).unwrap().cpu_us.len(), 1);
        assert!(reopen(&data, "another").is_err());
    }
}
