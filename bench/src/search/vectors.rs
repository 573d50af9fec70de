//! Part `vectors`: the ten nearest of many vectors.

use std::error::Error;
use std::path::{Path, PathBuf};

use super::Options;
use super::machine;
use super::peers::{FAISS, Measured, Peers, SQLITE_VEC, USEARCH};
use super::report::{Report, Unit};
use super::synthetic::{Source, exact, recall};

const DIMS: usize = 384;
const K: usize = 10;

pub(super) fn run(
    options: &Options,
    peers: &Peers,
    report: &mut Report,
) -> Result<(), Box<dyn Error>> {
    let bandwidth = machine::Bandwidth::new().pass();
    report.heading("vectors: the machine");
    report.figure("bytes one thread reads from memory", bandwidth, Unit::Bandwidth, None);
    let mut sizes = vec![(10_000, 300), (100_000, 100)];
    if options.million {
        sizes.push((1_000_000, 30));
    }
    let mut source = Source::decaying(DIMS, 19);
    for (count, queries) in sizes {
        let drawn = "a made-up spectrum";
        report.heading(&format!("vectors: {count} x {DIMS}, drawn from {drawn}, top {K}"));
        measure(peers, report, &mut source, count, queries)?;
    }
    Ok(())
}

fn measure(
    peers: &Peers,
    report: &mut Report,
    source: &mut Source,
    count: usize,
    queries: usize,
) -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let rows = source.draw(count);
    let queries = source.draw(queries);
    let wanted = exact(&rows, &queries, DIMS, K);
    let (rows, queries) =
        (write(folder.path(), "rows.f32", &rows)?, write(folder.path(), "queries.f32", &queries)?);
    let (rows, queries) = (rows.to_string_lossy(), queries.to_string_lossy());
    let (dims, k) = (DIMS.to_string(), K.to_string());
    let arguments = [&*rows, &*queries, &*dims, &*k];
    let mut theirs: Vec<Measured> = Vec::new();
    theirs.extend(peers.run(SQLITE_VEC, &arguments));
    theirs.extend(peers.run(FAISS, &arguments));
    theirs.extend(peers.run(USEARCH, &arguments));
    for peer in &theirs {
        report.figure(&peer.name(), peer.p50(), Unit::Time, None);
        report.figure("  recall", recall(&peer.ids, &wanted), Unit::Ratio, None);
    }
    Ok(())
}

/// The numbers as little-endian bytes, for the peers.
fn write(folder: &Path, name: &str, numbers: &[f32]) -> Result<PathBuf, Box<dyn Error>> {
    let path = folder.join(name);
    let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    std::fs::write(&path, bytes)?;
    Ok(path)
}
