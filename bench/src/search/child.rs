//! Garret's side in a process of its own, as each peer has one: what it holds in memory is then
//! only its own, and it can be killed.

use std::error::Error;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use clap::Subcommand;
use garret_core::time::{Confidence, WallTime};
use garret_hal::media::FileMedium;
use garret_storage::Store;

use super::corpus::{self, Query, Record};
use super::machine::{process_time, status_bytes, timed};
use super::peers::{Measured, measured};

/// What such a process does.
#[derive(Subcommand)]
pub(crate) enum Task {
    /// Stores the records; closes the store, or waits to be killed
    Fill {
        folder: PathBuf,
        records: PathBuf,
        #[arg(long)]
        hang: bool,
    },
    /// Opens the store and answers the queries
    Query { folder: PathBuf, queries: PathBuf, k: usize },
    /// Opens the store and reads the last record
    Reopen { folder: PathBuf },
}

/// Does it, and prints what was measured.
pub(crate) fn run(task: &Task) -> Result<(), Box<dyn Error>> {
    let measured = match task {
        Task::Fill { folder, records, hang } => fill(folder, records, *hang)?,
        Task::Query { folder, queries, k } => query(folder, queries, *k)?,
        Task::Reopen { folder } => reopen(folder)?,
    };
    println!("{}", serde_json::to_string(&measured)?);
    Ok(())
}

/// Has a process do it.
pub(super) fn spawn(arguments: &[&str]) -> Result<Measured, Box<dyn Error>> {
    measured(command(arguments)?)
}

/// Has a process fill a store, and kills it when all is acknowledged.
pub(super) fn fill_and_kill(folder: &Path, records: &Path) -> Result<(), Box<dyn Error>> {
    let (folder, records) = (folder.to_string_lossy(), records.to_string_lossy());
    let mut command = command(&["fill", "--hang", &folder, &records])?;
    let mut child = Killed(command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?);
    let mut ready = [0];
    child.0.stdout.take().ok_or("no output")?.read_exact(&mut ready)?;
    Ok(())
}

struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn command(arguments: &[&str]) -> Result<Command, Box<dyn Error>> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("child").args(arguments);
    Ok(command)
}

/// The store that is measured.
pub(super) fn open(folder: &Path) -> Result<Store, Box<dyn Error>> {
    Ok(Store::open(folder, "bench", |path| Ok(Box::new(FileMedium::open(path)?)))?)
}

fn fill(folder: &Path, records: &Path, hang: bool) -> Result<Measured, Box<dyn Error>> {
    let records: Vec<Record> = corpus::load(records)?;
    let store = open(folder)?;
    let before = process_time();
    add(&store, &records)?;
    let spent = process_time() - before;
    if hang {
        let mut out = std::io::stdout();
        out.write_all(b".")?;
        out.flush()?;
        // Until this process is killed, or the one that would is gone.
        std::io::stdin().read_exact(&mut [0]).unwrap_or_default();
    }
    drop(store);
    Ok(Measured {
        inserts_per_s: Some(records.len() as f64 / spent.as_secs_f64()),
        file_bytes: Some(folder_bytes(folder)?),
        ..garret()
    })
}

/// Adds `records`, each acknowledged as durable.
pub(super) fn add(store: &Store, records: &[Record]) -> Result<(), Box<dyn Error>> {
    for record in records {
        let at = WallTime { unix_ms: record.at_ms, confidence: Confidence::Good };
        store.accept(&record.session.parse()?, &record.text, at)?;
    }
    Ok(())
}

/// Bytes of all files in `folder` and below.
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

fn query(folder: &Path, queries: &Path, k: usize) -> Result<Measured, Box<dyn Error>> {
    let queries: Vec<Query> = corpus::load(queries)?;
    let warm = queries.first().ok_or("no queries")?;
    let (store, first) = timed(|| -> Result<_, Box<dyn Error>> {
        let store = open(folder)?;
        store.search(&warm.text, None, k)?;
        Ok(store)
    });
    let store = store?;
    let mut measured =
        Measured { first_us: Some(first.wall_us), first_cpu_us: Some(first.cpu_us), ..garret() };
    for query in &queries {
        let (found, took) = timed(|| store.search(&query.text, None, k));
        found?;
        measured.wall_us.push(took.wall_us);
        measured.cpu_us.push(took.cpu_us);
    }
    measured.resident_bytes = status_bytes("VmRSS");
    Ok(measured)
}

fn reopen(folder: &Path) -> Result<Measured, Box<dyn Error>> {
    let before = process_time();
    let store = open(folder)?;
    let latest = store.latest_session()?.ok_or("nothing in it")?;
    let text = store.with_turns(&latest.id, latest.turns, |turns| turns.len())?;
    let spent = (process_time() - before).as_secs_f64() * 1e6;
    if text != 1 {
        return Err(format!("session {} lost its turn {}", latest.id, latest.turns).into());
    }
    Ok(Measured { cpu_us: vec![spent], ..garret() })
}

fn garret() -> Measured {
    let version = env!("CARGO_PKG_VERSION").to_owned();
    Measured { peer: "Garret".to_owned(), version, ..Measured::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filled_store_answers_and_reopens() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name| folder.path().join(name);
        let records = corpus::records(None, 60).unwrap();
        corpus::write(&path("records"), &records).unwrap();
        corpus::write(&path("queries"), &corpus::queries(&records, 5)).unwrap();
        let data = path("data");
        std::fs::create_dir(&data).unwrap();
        let filled = fill(&data, &path("records"), false).unwrap();
        assert!(filled.file_bytes.unwrap() > 0.0 && filled.inserts_per_s.unwrap() > 0.0);
        assert_eq!(query(&data, &path("queries"), 10).unwrap().wall_us.len(), 5);
        assert_eq!(reopen(&data).unwrap().cpu_us.len(), 1);
    }
}
