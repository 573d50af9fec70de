//! Part `query`: text in, hits out.

use std::error::Error;
use std::path::Path;

use super::Options;
use super::child;
use super::corpus;
use super::peers::{FTS5, LEAN_MEMORY, Measured, Peers};
use super::report::{Report, Target, Unit};

/// Queries that Garret answers, and how many of them the slower peers do.
const QUERIES: usize = 500;
const QUERIES_FTS5: usize = 200;
const QUERIES_LEAN_MEMORY: usize = 20;
/// Hits asked for.
const K: usize = 10;
/// Dimensions of a record's vector.
const DIMS: &str = "384";

/// Sizes, and the time in microseconds that half of the queries may take there.
const SIZES: [(usize, f64); 2] = [(10_000, 2_000.0), (100_000, 10_000.0)];

pub(super) fn run(
    options: &Options,
    peers: &Peers,
    report: &mut Report,
) -> Result<(), Box<dyn Error>> {
    for (count, most_us) in SIZES {
        let said = if options.data.is_some() { "turns of --data" } else { "made-up sentences" };
        report.heading(&format!("query: {count} records, {said}, {QUERIES} queries, k {K}"));
        let folder = tempfile::tempdir()?;
        measure(options, peers, report, count, most_us, folder.path())?;
    }
    Ok(())
}

fn measure(
    options: &Options,
    peers: &Peers,
    report: &mut Report,
    count: usize,
    most_us: f64,
    folder: &Path,
) -> Result<(), Box<dyn Error>> {
    let all = corpus::records(options.data.as_deref(), count)?;
    let asked = corpus::queries(&all, QUERIES);
    let file = |name: &str| folder.join(name).to_string_lossy().into_owned();
    let records = file("records.jsonl");
    corpus::write(Path::new(&records), &all)?;
    drop(all);
    let queries = |count: usize| -> Result<String, Box<dyn Error>> {
        let path = file(&format!("queries-{count}.jsonl"));
        corpus::write(Path::new(&path), &asked[..count])?;
        Ok(path)
    };
    let data = file("garret");
    std::fs::create_dir(&data)?;
    let filled = child::spawn(&["fill", &data, &records])?;
    let ours = child::spawn(&["query", &data, &queries(QUERIES)?, &K.to_string()])?;

    let folder_of = |name: &str| std::fs::create_dir(file(name)).map(|()| file(name));
    let (fts5, lean) = (folder_of("fts5")?, folder_of("lean-memory")?);
    let k = K.to_string();
    let mut theirs = Vec::new();
    theirs.extend(peers.run(FTS5, &[&records, &queries(QUERIES_FTS5)?, &k, &fts5]));
    let queries = queries(QUERIES_LEAN_MEMORY)?;
    theirs.extend(peers.run(LEAN_MEMORY, &[&records, &queries, &k, &lean, DIMS]));
    print(report, count, most_us, (&ours, &filled), &theirs);
    Ok(())
}

fn print(
    report: &mut Report,
    count: usize,
    most_us: f64,
    (ours, filled): (&Measured, &Measured),
    theirs: &[Measured],
) {
    let at_most = |most| Some(Target::AtMost(most));
    let figure = report.figure("query p50, processor", ours.p50(), Unit::Time, at_most(most_us));
    for peer in theirs {
        let target = (peer.peer == "lean-memory").then_some(Target::AtLeast(50.0));
        report.against(figure, &peer.name(), peer.p50(), target);
    }
    report.figure("query p99, processor", ours.p99(), Unit::Time, None);
    report.figure("p99 / p50", ours.p99() / ours.p50(), Unit::Ratio, at_most(3.0));
    let figure = report.figure("query p50, clock", ours.wall_p50(), Unit::Time, None);
    each(report, figure, theirs, |peer| Some(peer.wall_p50()));
    let figure = |report: &mut Report, what, value: Option<f64>, unit, target| {
        report.figure(what, value.unwrap_or(f64::NAN), unit, target)
    };
    let first = figure(report, "open and first query, clock", ours.first_us, Unit::Time, None);
    each(report, first, theirs, |peer| peer.first_us);
    let what = "open and first query, processor";
    let first = figure(report, what, ours.first_cpu_us, Unit::Time, None);
    each(report, first, theirs, |peer| peer.first_cpu_us);
    let most = (count == 100_000).then_some(Target::AtMost(64.0 * 1_048_576.0));
    let what = "in memory after the queries (VmRSS)";
    let resident = figure(report, what, ours.resident_bytes, Unit::Bytes, most);
    each(report, resident, theirs, |peer| peer.resident_bytes);
    let thousand = |bytes: f64| bytes / count as f64 * 1_000.0;
    let bytes = filled.file_bytes.map(thousand);
    let files = figure(report, "files, for 1,000 records", bytes, Unit::Bytes, None);
    each(report, files, theirs, |peer| peer.file_bytes.map(thousand));
}

fn each(
    report: &mut Report,
    figure: super::report::Figure,
    theirs: &[Measured],
    value: impl Fn(&Measured) -> Option<f64>,
) {
    for peer in theirs {
        if let Some(value) = value(peer) {
            report.against(figure, &peer.name(), value, None);
        }
    }
}
