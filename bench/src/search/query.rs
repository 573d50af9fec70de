//! Part `query`: text in, hits out.

use std::error::Error;
use std::path::Path;

use super::Options;
use super::corpus;
use super::process;
use crate::lines;
use crate::peers::{FTS5, Figures, LEAN_MEMORY, Peers};
use crate::report::{Figure, Report, Target, Unit};
use crate::stand_in;

/// Queries that Garret answers, and how many of them the slower peers do.
const QUERIES: usize = 500;
const QUERIES_FTS5: usize = 200;
const QUERIES_LEAN_MEMORY: usize = 20;
/// Hits asked for.
const K: usize = 10;

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
    lines::write(Path::new(&records), &all)?;
    drop(all);
    let queries = |count: usize| -> Result<String, Box<dyn Error>> {
        let path = file(&format!("queries-{count}.jsonl"));
        lines::write(Path::new(&path), &asked[..count])?;
        Ok(path)
    };
    let data = file("garret");
    std::fs::create_dir(&data)?;
    let filled = process::spawn(&["fill", &data, &records])?;
    let asked_all = queries(QUERIES)?;
    let k = K.to_string();
    let words = process::spawn(&["query", &data, &asked_all, &k])?;
    let embedded = process::spawn(&["embed", &data])?;
    let hybrid = process::spawn(&["query", "--vectors", &data, &asked_all, &k])?;

    let folder_of = |name: &str| std::fs::create_dir(file(name)).map(|()| file(name));
    let fts5 = folder_of("fts5")?;
    let lean = folder_of("lean-memory")?;
    let mut theirs = Vec::new();
    theirs.extend(peers.run(FTS5, &[&records, &queries(QUERIES_FTS5)?, &k, &fts5]));
    let queries = queries(QUERIES_LEAN_MEMORY)?;
    theirs.extend(
        peers.run(LEAN_MEMORY, &[&records, &queries, &k, &lean, &stand_in::DIMS.to_string()]),
    );
    let ours = GarretFigures { count, most_us, filled, words, embedded, hybrid };
    ours.print(report, &theirs);
    Ok(())
}

/// Garret's own figures.
struct GarretFigures {
    count: usize,
    most_us: f64,
    filled: Figures,
    words: Figures,
    embedded: Figures,
    hybrid: Figures,
}

impl GarretFigures {
    fn print(&self, report: &mut Report, theirs: &[Figures]) {
        let Self { count, most_us, .. } = *self;
        let figure = |report: &mut Report, what, value: Option<f64>, unit, target| {
            report.figure(what, value.unwrap_or(f64::NAN), unit, target)
        };
        let at_most = |most| Some(Target::AtMost(most));
        let p50 = Some(self.hybrid.p50());
        let time = figure(report, "hybrid query p50, processor", p50, Unit::Time, at_most(most_us));
        for peer in theirs {
            let target = (peer.peer == "lean-memory").then_some(Target::AtLeast(50.0));
            report.against(time, &peer.name(), peer.p50(), target);
        }
        let p99 = self.hybrid.p99();
        figure(report, "hybrid query p99, processor", Some(p99), Unit::Time, None);
        let ratio = Some(p99 / self.hybrid.p50());
        figure(report, "p99 / p50", ratio, Unit::Ratio, at_most(3.0));
        let p50 = Some(self.hybrid.wall_p50());
        let time = figure(report, "hybrid query p50, clock", p50, Unit::Time, None);
        each(report, time, theirs, |peer| Some(peer.wall_p50()));
        let p50 = Some(self.words.p50());
        let time = figure(report, "query by words alone p50, processor", p50, Unit::Time, None);
        each(report, time, theirs, |peer| Some(peer.p50()));
        let p99 = Some(self.words.p99());
        figure(report, "query by words alone p99, processor", p99, Unit::Time, None);
        for (what, first) in [
            ("open and first query, clock", Figures::first as fn(&Figures) -> Option<f64>),
            ("open and first query, processor", Figures::first_cpu),
        ] {
            let time = figure(report, what, first(&self.hybrid), Unit::Time, None);
            each(report, time, theirs, first);
        }
        let most = (count == 100_000).then_some(Target::AtMost(64.0 * 1_048_576.0));
        let what = "in memory after the queries (VmRSS)";
        let resident = figure(report, what, self.hybrid.resident_bytes, Unit::Bytes, most);
        each(report, resident, theirs, |peer| peer.resident_bytes);
        let what = "in memory, by words alone";
        figure(report, what, self.words.resident_bytes, Unit::Bytes, None);
        let thousand = |bytes: f64| bytes / count as f64 * 1_000.0;
        let bytes = self.filled.file_bytes.map(thousand);
        let files = figure(report, "files, for 1,000 records", bytes, Unit::Bytes, None);
        each(report, files, theirs, |peer| peer.file_bytes.map(thousand));
        let bytes = self.embedded.file_bytes.map(thousand);
        let files = figure(report, "files with vectors", bytes, Unit::Bytes, None);
        each(report, files, theirs, |peer| peer.file_bytes.map(thousand));
        let rate = self.filled.inserts_per_s;
        let rate =
            figure(report, "records stored a second of processor time", rate, Unit::Rate, None);
        each(report, rate, theirs, |peer| peer.inserts_per_s);
        let what = "vectors stored a second of processor time";
        figure(report, what, self.embedded.inserts_per_s, Unit::Rate, None);
    }
}

fn each(
    report: &mut Report,
    figure: Figure,
    theirs: &[Figures],
    value: impl Fn(&Figures) -> Option<f64>,
) {
    for peer in theirs {
        if let Some(value) = value(peer) {
            report.against(figure, &peer.name(), value, None);
        }
    }
}
