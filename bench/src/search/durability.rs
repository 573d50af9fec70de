//! Part `durability`: what it costs that nothing is lost.

use std::error::Error;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use redb::{Database, TableDefinition};

use super::Options;
use super::child;
use super::corpus::{self, Record};
use super::loopback::Loopback;
use super::process;
use crate::peers::{Figures, Peers, SQLITE_WAL};
use crate::report::{Report, Target, Unit};
use crate::statistics::median;
use crate::{lines, machine};

/// Bytes that a device writes at least: an SD card, and a disk that writes whole pages.
const SECTORS: [usize; 2] = [512, PAGE];
const PAGE: usize = 4_096;

/// Syncs that are measured, bytes of an add, and how many adds may share a sync.
const SYNCS: usize = 2_048;
/// Syncs before those that are measured, so that files have their size: as many as are folded at
/// once, and more.
const BEFORE: usize = 2_100;
const BYTES: usize = 160;
const GROUP: usize = 16;
/// Records of an import.
const IMPORTED: usize = 20_000;

pub(super) fn run(
    options: &Options,
    peers: &Peers,
    report: &mut Report,
) -> Result<(), Box<dyn Error>> {
    for sector in SECTORS {
        match Loopback::mount(1 << 30, sector) {
            Ok(device) => written(&device, sector, peers, report)?,
            Err(error) => report.note(&format!("bytes that reach the device: left out: {error}")),
        }
    }
    import(options, report)?;
    let count = if options.million { 1_000_000 } else { 100_000 };
    reopen(options, report, count)
}

/// Bytes that reach the device for each durable add, to files that have been used for a while.
fn written(
    device: &Loopback,
    sector: usize,
    peers: &Peers,
    report: &mut Report,
) -> Result<(), Box<dyn Error>> {
    report.heading(&format!(
        "durability: adds of {BYTES} bytes, ext4 on a loop device with sectors of {sector} bytes"
    ));
    let small = sector < PAGE;
    for group in [1, GROUP] {
        let (acknowledged, whole) = garret_bytes(device, group)?;
        let theirs = peers_bytes(device, peers, group)?;
        let (name, most) = if group == 1 { ("alone", 4_500.0) } else { ("16 a sync", 500.0) };
        // A page for each sync is more than a seventh of what SQLite writes; and together with the
        // records, the texts of a group are written twice.
        let (least, least_acknowledged) = match group {
            1 => (small.then_some(Target::AtLeast(7.0)), None),
            _ => (None, small.then_some(Target::AtLeast(7.0))),
        };
        let target = (small || group == 1).then_some(Target::AtMost(most));
        let what = format!("bytes on the device for an add, {name}");
        for (what, bytes, target, least) in [
            (&*what, whole, target, least),
            ("  of these for its acknowledgement", acknowledged, None, least_acknowledged),
        ] {
            let figure = report.figure(what, bytes, Unit::Bytes, target);
            for (name, bytes) in &theirs {
                report.against(figure, name, *bytes, least);
            }
        }
    }
    Ok(())
}

/// Bytes for each add of those beside us.
fn peers_bytes(
    device: &Loopback,
    peers: &Peers,
    group: usize,
) -> Result<Vec<(String, f64)>, Box<dyn Error>> {
    let count = SYNCS * group;
    let each = |bytes: f64| bytes / count as f64;
    let path = folder(device, "redb", group)?;
    let database = Database::create(path.join("said.redb"))?;
    redb_adds(&database, BEFORE * group, group)?;
    let (added, bytes) = device.written(|| {
        let added = redb_adds(&database, count, group);
        drop(database);
        added
    })?;
    added?;
    let mut all = vec![("redb, durable commits".to_owned(), each(bytes))];

    let file = folder(device, "sqlite", group)?.join("wal.db");
    let file = file.to_string_lossy();
    let bytes = BYTES.to_string();
    let shared = group.to_string();
    let adds = |count: usize| peers.run(SQLITE_WAL, &[&file, &count.to_string(), &bytes, &shared]);
    if adds(BEFORE * group).is_some()
        && let (Some(sqlite), bytes) = device.written(|| adds(count))?
    {
        all.push((sqlite.name(), each(bytes)));
    }
    Ok(all)
}

/// Bytes for each add: until it is acknowledged, and with all that follows from it.
fn garret_bytes(device: &Loopback, group: usize) -> Result<(f64, f64), Box<dyn Error>> {
    let path = folder(device, "garret", group)?;
    let add = |store: &_, syncs| match group {
        1 => child::accept(store, &texts(syncs)),
        _ => child::import(store, &texts(syncs * group), group),
    };
    add(&child::open(&path)?, BEFORE)?;
    let store = child::open(&path)?;
    // So few that none are folded into the records meanwhile.
    let (added, acknowledged) = device.written(|| add(&store, FEW))?;
    added?;
    let (added, all) = device.written(|| add(&store, SYNCS - FEW))?;
    added?;
    let ((), closed) = device.written(|| drop(store))?;
    let whole = acknowledged + all + closed;
    Ok((acknowledged / (FEW * group) as f64, whole / (SYNCS * group) as f64))
}

/// Syncs before the first checkpoint of the journal.
const FEW: usize = 200;

fn folder(device: &Loopback, name: &str, group: usize) -> Result<PathBuf, std::io::Error> {
    let folder = device.path().join(format!("{name}-{group}"));
    std::fs::create_dir(&folder)?;
    Ok(folder)
}

fn texts(count: usize) -> Vec<Record> {
    let one = |number: usize| Record {
        session: "bench".to_owned(),
        speaker: "Ada".to_owned(),
        at_ms: number as i64,
        text: "x".repeat(BYTES),
    };
    (0..count).map(one).collect()
}

/// Measures what redb alone takes, committing each group as durable.
fn redb_adds(database: &Database, count: usize, group: usize) -> Result<(), Box<dyn Error>> {
    const TABLE: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("said");
    let numbers: Vec<_> = (0..count as u64).collect();
    for group in numbers.chunks(group) {
        let transaction = database.begin_write()?;
        {
            let mut table = transaction.open_table(TABLE)?;
            for number in group {
                table.insert(number, [0x78; BYTES].as_slice())?;
            }
        }
        transaction.commit()?;
    }
    Ok(())
}

/// Records that a second takes when they come together.
fn import(options: &Options, report: &mut Report) -> Result<(), Box<dyn Error>> {
    let batch = child::BATCH;
    report.heading(&format!("import: {IMPORTED} records, {batch} at a time, without an embedder"));
    let records = corpus::records(options.data.as_deref(), IMPORTED)?;
    let round = |_| -> Result<(f64, f64), Box<dyn Error>> {
        let folder = tempfile::tempdir()?;
        let store = child::open(folder.path())?;
        let before = machine::process_time();
        let began = Instant::now();
        child::import(&store, &records, batch)?;
        drop(store);
        let cpu = machine::process_time() - before;
        let wall = began.elapsed();
        let rate = |time: Duration| records.len() as f64 / time.as_secs_f64();
        Ok((rate(cpu), rate(wall)))
    };
    let rounds = (0..3).map(round).collect::<Result<Vec<_>, _>>()?;
    let middle = |of: fn(&(f64, f64)) -> f64| median(&rounds.iter().map(of).collect::<Vec<_>>());
    let target = Some(Target::AtLeast(20_000.0));
    report.figure("records a second of processor time", middle(|one| one.0), Unit::Rate, target);
    report.figure("records a second on the clock", middle(|one| one.1), Unit::Rate, None);
    Ok(())
}

/// Processor time of opening what a killed process left.
fn reopen(options: &Options, report: &mut Report, count: usize) -> Result<(), Box<dyn Error>> {
    report.heading(&format!("reopen: {count} records, the process that stored them killed"));
    let folder = tempfile::tempdir()?;
    let data = folder.path().join("data");
    let file = folder.path().join("records.jsonl");
    std::fs::create_dir(&data)?;
    let records = corpus::records(options.data.as_deref(), count)?;
    lines::write(&file, &records)?;
    let last = records.last().map_or("", |record| &record.session);
    process::fill_and_kill(&data, &file)?;
    // Each time as it was left: reading writes nothing.
    let open = |_| process::spawn(&["reopen", &data.to_string_lossy(), last]);
    let opened = (0..5).map(open).collect::<Result<Vec<_>, _>>()?;
    let time = median(&opened.iter().map(Figures::p50).collect::<Vec<_>>());
    let target = Some(Target::AtMost(50_000.0));
    report.figure("open and read the last record, processor", time, Unit::Time, target);
    Ok(())
}
