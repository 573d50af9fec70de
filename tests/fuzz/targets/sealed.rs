//! Parsers behind a checksum: an input is what is checked, and the checksum is made right, since a
//! mutation never would.

use garret_storage::Part;
use sha2::{Digest as _, Sha256};

use super::files::{bundle, bundles, file, read_with};

fn check(parts: &[&[u8]]) -> [u8; 8] {
    let mut hasher = Sha256::new();
    parts.iter().for_each(|part| hasher.update(part));
    hasher.finalize()[..8].try_into().unwrap()
}

fn length(bytes: &[u8], at: usize) -> Option<usize> {
    let length = bytes.get(at..at + 4)?.try_into().ok()?;
    usize::try_from(u32::from_le_bytes(length)).ok()
}

/// Where frames begin in a journal; the bytes before are its header.
const FRAMES: usize = 4_096;

/// Frames of a journal: where each begins and the length of its payload.
fn frames(journal: &[u8]) -> Vec<(usize, usize)> {
    let key = &journal[20..28];
    let mut frames = Vec::new();
    let mut end = FRAMES;
    let whole = |at: usize| {
        let n = length(journal, at)?;
        let frame = journal.get(at..at.checked_add(20)?.checked_add(n)?)?;
        let sum = journal.get(at + 20 + n..at + 28 + n)?;
        (n > 0 && check(&[key, frame]) == sum).then_some((at, n))
    };
    while let Some((at, n)) =
        [end, end.next_multiple_of(512), end.next_multiple_of(4_096)].into_iter().find_map(whole)
    {
        frames.push((at, n));
        end = at + 28 + n;
    }
    frames
}

/// A write with this payload, whole and in its place behind those that wait in the journal.
pub(super) fn journal_write(payload: &[u8]) {
    let mut journal = file(Part::Journal);
    let (at, n) = frames(&journal).pop().unwrap();
    let end = at + 28 + n;
    let number = u64::from_le_bytes(journal[at + 4..at + 12].try_into().unwrap()) + 1;
    let key: Vec<u8> = journal[20..28].into();
    // The last check may end with zeros that were cut off.
    journal.resize(end, 0);
    let before = journal[end - 8..].to_vec();
    journal.resize(end.next_multiple_of(4_096), 0);
    let length = u32::try_from(payload.len()).unwrap().to_le_bytes();
    let frame = [&length[..], &number.to_le_bytes(), &before, payload].concat();
    journal.extend_from_slice(&frame);
    journal.extend_from_slice(&check(&[&key, &frame]));
    read_with(Part::Journal, &journal);
}

pub(super) fn journal_writes() -> Vec<Vec<u8>> {
    let journal = file(Part::Journal);
    let writes: Vec<_> = frames(&journal)
        .into_iter()
        .map(|(at, n)| journal[at + 20..at + 20 + n].to_vec())
        .collect();
    assert!(writes.len() > 2, "{} writes wait", writes.len());
    writes
}

/// A bundle whose checks were left out.
pub(super) fn bundle_record(unsealed: &[u8]) {
    let name = unsealed.get(20..22).map_or(0, |n| usize::from(u16::from_le_bytes([n[0], n[1]])));
    let mut rest = unsealed;
    let mut sealed = Vec::new();
    let mut seal = |bytes: &[u8]| {
        sealed.extend_from_slice(bytes);
        let sum = check(&[&sealed]);
        sealed.extend_from_slice(&sum);
    };
    let mut next = (22 + name).min(rest.len());
    loop {
        let (part, after) = rest.split_at(next);
        seal(part);
        rest = after;
        if rest.is_empty() {
            break;
        }
        next = length(rest, 0).map_or(rest.len(), |n| n.saturating_add(4).min(rest.len()));
    }
    bundle(&sealed);
}

pub(super) fn bundle_records() -> Vec<Vec<u8>> {
    let sealed = bundles().swap_remove(0);
    let mut unsealed = Vec::new();
    let mut at = 0;
    let mut next = 22 + usize::from(u16::from_le_bytes([sealed[20], sealed[21]]));
    loop {
        unsealed.extend_from_slice(&sealed[at..at + next]);
        at += next + 8;
        let Some(n) = length(&sealed, at) else { break };
        next = 4 + n;
    }
    assert_eq!(at, sealed.len(), "the bundle is read to its end");
    vec![unsealed]
}
