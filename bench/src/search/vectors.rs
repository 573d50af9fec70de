//! Part `vectors`: the ten nearest of many vectors.

use std::error::Error;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use garret_core::medium::{Medium, MediumError};
use garret_hal::kernels;
use garret_hal::media::FileMedium;
use garret_llm::{Backend, Embedder, PoolingOptions};
use garret_storage::vectors::{Rotation, Side, Spec, UnitKey, VectorStore};

use super::{Options, corpus, process};
use crate::machine::{read_rate, status_bytes, thread_time, timed};
use crate::peers::{FAISS, Figures, Peers, SQLITE_VEC, USEARCH};
use crate::report::{Report, Target, Unit};
use crate::statistics::median;
use crate::synthetic::{Source, exact, recall};

/// The embedder's fingerprint in the files.
const FINGERPRINT: [u8; 32] = [1; 32];
const DIMS: usize = 384;
const COARSE: usize = 128;
const PAGE: usize = 4_096;
const K: usize = 10;

/// Vectors that a rotation is learned from, drawn apart from those that are searched.
const SAMPLE: usize = 4_096;
/// Texts that are embedded to draw vectors like theirs.
const TEXTS: usize = 1_600;
/// Vectors added at once.
const BATCH: usize = 1_000;

pub(super) fn run(
    options: &Options,
    peers: &Peers,
    report: &mut Report,
) -> Result<(), Box<dyn Error>> {
    report.heading("vectors: the machine, and the coarse scan alone");
    let bandwidth = scan(report);
    let (mut source, like) = source(options)?;
    let sample: Vec<_> = source.draw(SAMPLE).chunks_exact(DIMS).map(<[f32]>::to_vec).collect();
    let (rotation, took) = timed(|| Rotation::learn(&sample, COARSE));
    let rotation = rotation.ok_or("no rotation could be learned")?;
    report.figure(&format!("learning from {SAMPLE} vectors"), took.cpu_us, Unit::Time, None);
    let mut sizes = vec![(10_000, 300), (100_000, 100)];
    if options.million {
        sizes.push((1_000_000, 30));
    }
    for (count, queries) in sizes {
        report.heading(&format!("vectors: {count} x {DIMS}, drawn like {like}, top {K}"));
        let case = Case::new(&mut source, count, queries)?;
        let ours = case.garret(&rotation)?;
        let theirs = case.peers(peers);
        case.print(report, &ours, &theirs, bandwidth);
    }
    Ok(())
}

/// Scans int8 rows with Garret's kernels, and reads the same bytes with nothing but sums, by turns;
/// the bandwidth. Another buffer of as many bytes can be a quarter faster or slower to read.
fn scan(report: &mut Report) -> f64 {
    const ROWS: usize = 1 << 20;
    const STEP: usize = 8_192;
    let kernels = kernels::detect();
    let rows: Vec<i8> =
        (0..ROWS * COARSE + PAGE).map(|i| ((i % 251) as u8 as i8).max(-127)).collect();
    // They begin with a page, as those of a file do.
    let start = rows.as_ptr().align_offset(PAGE).min(PAGE);
    let rows = &rows[start..][..ROWS * COARSE];
    let query = &rows[..COARSE];
    let mut products = vec![0; STEP];
    let mut scanned = Vec::new();
    let mut read = Vec::new();
    for _ in 0..15 {
        read.push(read_rate(rows));
        let ((), took) = timed(|| {
            for rows in rows.chunks_exact(STEP * COARSE) {
                kernels.dot_rows_i8(query, rows, black_box(&mut products));
            }
        });
        scanned.push(rows.len() as f64 / (took.cpu_us / 1e6));
    }
    let scanned = median(&scanned);
    let read = median(&read);
    report.figure("bytes one thread reads from memory", read, Unit::Bandwidth, None);
    report.figure("bytes of coarse rows it scans", scanned, Unit::Bandwidth, None);
    let target = Some(Target::AtLeast(0.85));
    report.figure("share of what it can read", scanned / read, Unit::Ratio, target);
    read
}

/// Returns the source that vectors are drawn from, and its description.
fn source(options: &Options) -> Result<(Source, &'static str), Box<dyn Error>> {
    let Some(embedder) = &options.embedder else {
        return Ok((Source::decaying(DIMS, 19), "a made-up spectrum"));
    };
    let embedder = Embedder::load(
        Backend::start()?,
        embedder,
        PoolingOptions { threads: 1, ..PoolingOptions::default() },
    )?;
    let texts = corpus::records(options.data.as_deref(), 10_000)?;
    let some: Vec<&str> =
        texts.iter().step_by(10_000 / TEXTS).map(|record| &*record.text).take(TEXTS).collect();
    let mut vectors = Vec::with_capacity(some.len());
    for texts in some.chunks(16) {
        vectors.extend(embedder.embed(texts)?);
    }
    let source = Source::like(&vectors, 19).ok_or("no texts to embed")?;
    if vectors.iter().any(|vector| vector.len() != DIMS) {
        return Err(format!("an embedder of {DIMS} dimensions is needed").into());
    }
    Ok((source, "the embedder's of --data"))
}

/// Vectors, queries and what should be found.
struct Case {
    rows: Vec<f32>,
    queries: Vec<f32>,
    wanted: Vec<Vec<i64>>,
    folder: tempfile::TempDir,
}

impl Case {
    fn new(source: &mut Source, count: usize, queries: usize) -> Result<Self, Box<dyn Error>> {
        let rows = source.draw(count);
        let queries = source.draw(queries);
        let wanted = exact(&rows, &queries, DIMS, K);
        Ok(Self { rows, queries, wanted, folder: tempfile::tempdir()? })
    }

    fn count(&self) -> usize {
        self.rows.len() / DIMS
    }

    fn garret(&self, rotation: &Rotation) -> Result<Figures, Box<dyn Error>> {
        let rotation = Some(rotation.clone());
        let spec = Spec { fingerprint: FINGERPRINT, dims: DIMS, rotation };
        let folder = self.folder.path().to_owned();
        let files = move |side, create| open(&folder, side, create);
        let mut store = VectorStore::open(files, kernels::detect(), Some(spec))?;
        let keys = (0..).map(|id| UnitKey::Fact { id });
        let units: Vec<_> = keys.zip(self.rows.chunks_exact(DIMS)).collect();
        let before = thread_time();
        for some in units.chunks(BATCH) {
            store.insert(some)?;
        }
        store.flush()?;
        let spent = (thread_time() - before).as_secs_f64();
        let mut measured =
            Figures { inserts_per_s: Some(units.len() as f64 / spent), ..Figures::default() };
        store.search(&self.queries[..DIMS], K, &|_| true)?;
        for query in self.queries.chunks_exact(DIMS) {
            let (found, took) = timed(|| store.search(query, K, &|_| true));
            let id = |key| if let UnitKey::Fact { id } = key { id as i64 } else { -1 };
            measured.ids.push(found?.iter().map(|hit| id(hit.key)).collect());
            measured.wall_us.push(took.wall_us);
            measured.cpu_us.push(took.cpu_us);
        }
        drop(store);
        let folder = self.folder.path();
        let queries = write(folder, "queries.f32", &self.queries)?;
        let alone =
            process::spawn(&["nearest", &folder.to_string_lossy(), &queries.to_string_lossy()])?;
        (measured.resident_bytes, measured.mapped_bytes) =
            (alone.resident_bytes, alone.mapped_bytes);
        Ok(measured)
    }

    fn peers(&self, peers: &Peers) -> Vec<Figures> {
        let paths = [("rows.f32", &self.rows), ("queries.f32", &self.queries)]
            .map(|(name, numbers)| write(self.folder.path(), name, numbers));
        let [Ok(rows), Ok(queries)] = paths else { return Vec::new() };
        let rows = rows.to_string_lossy();
        let queries = queries.to_string_lossy();
        let arguments = [&*rows, &*queries, &DIMS.to_string(), &K.to_string()];
        // A million vectors take an HNSW index many minutes.
        let scripts = [SQLITE_VEC, FAISS, USEARCH];
        let some = if self.count() > 100_000 { &scripts[..2] } else { &scripts[..] };
        some.iter().filter_map(|script| peers.run(*script, &arguments)).collect()
    }

    fn print(&self, report: &mut Report, ours: &Figures, theirs: &[Figures], bandwidth: f64) {
        let count = self.count();
        let coarse = (count * COARSE) as f64;
        // 10 ms where a core reads 20 GB/s.
        let most = 10_000.0 * 20e9 / bandwidth;
        let target = (count == 1_000_000).then_some(Target::AtMost(most));
        let time = report.figure("search p50, processor", ours.p50(), Unit::Time, target);
        for peer in theirs {
            let least = match &*peer.peer {
                "sqlite-vec" => 40.0,
                "faiss Flat" => 5.0,
                _ => 0.5,
            };
            report.against(time, &peer.name(), peer.p50(), Some(Target::AtLeast(least)));
        }
        report.figure("search p99, processor", ours.p99(), Unit::Time, None);
        report.figure("search p50, clock", ours.wall_p50(), Unit::Time, None);
        let rate = coarse / (ours.p50() / 1e6);
        report.figure("coarse bytes / p50", rate, Unit::Bandwidth, None);
        let most = (count == 1_000_000).then_some(Target::AtMost(160e6));
        let resident = ours.resident_bytes.unwrap_or(f64::NAN);
        report.figure("in memory after the queries (VmRSS)", resident, Unit::Bytes, most);
        let mapped = ours.mapped_bytes.unwrap_or(f64::NAN);
        report.figure("of these mapped from files (RssFile)", mapped, Unit::Bytes, None);
        let share = recall(&ours.ids, &self.wanted);
        let what = format!("recall@{K} of exact");
        let share = report.figure(&what, share, Unit::Ratio, Some(Target::AtLeast(0.99)));
        for peer in theirs {
            report.against(share, &peer.name(), recall(&peer.ids, &self.wanted), None);
        }
        let inserts = ours.inserts_per_s.unwrap_or(f64::NAN);
        let inserts = report.figure("inserts", inserts, Unit::Rate, None);
        for peer in theirs {
            let target = (peer.peer == "usearch HNSW").then_some(Target::AtLeast(50.0));
            report.against(inserts, &peer.name(), peer.inserts_per_s.unwrap_or(f64::NAN), target);
        }
    }
}

/// Opens the vectors in `folder` and answers `queries`: what a process that does nothing else holds
/// in memory.
pub(super) fn nearest(folder: &Path, queries: &Path) -> Result<Figures, Box<dyn Error>> {
    let bytes = std::fs::read(queries)?;
    let number = |bytes: &[u8]| bytes.try_into().map_or(f32::NAN, f32::from_le_bytes);
    let queries: Vec<f32> = bytes.chunks_exact(4).map(number).collect();
    let spec = Spec { fingerprint: FINGERPRINT, dims: DIMS, rotation: None };
    let folder = folder.to_owned();
    let files = move |side, create| open(&folder, side, create);
    let store = VectorStore::open(files, kernels::detect(), Some(spec))?;
    let mut measured = Figures::default();
    for query in queries.chunks_exact(DIMS) {
        let (found, took) = timed(|| store.search(query, K, &|_| true));
        found?;
        measured.cpu_us.push(took.cpu_us);
    }
    measured.resident_bytes = status_bytes("VmRSS");
    measured.mapped_bytes = status_bytes("RssFile");
    Ok(measured)
}

fn open(folder: &Path, side: Side, create: bool) -> Result<Option<Arc<dyn Medium>>, MediumError> {
    let path = folder.join(match side {
        Side::Coarse => "coarse",
        Side::Whole => "whole",
    });
    if !create && !path.exists() {
        return Ok(None);
    }
    Ok(Some(Arc::new(FileMedium::open(&path)?)))
}

/// The numbers as little-endian bytes, for the peers.
fn write(folder: &Path, name: &str, numbers: &[f32]) -> Result<PathBuf, std::io::Error> {
    let path = folder.join(name);
    let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    std::fs::write(&path, bytes)?;
    Ok(path)
}
