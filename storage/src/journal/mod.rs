//! The journal: writes that are durable, but not among the records on the medium yet.
//!
//! A write is acknowledged once its frame is durable here, which moves one block and no metadata:
//! the file is filled with zeros in advance and used again from its start after each fold.
//! `FORMAT.md`, "Journal", has the bytes.
//!
//! Meanwhile the database holds the same write in memory, committed without durability. A fold
//! commits all of them durably, together with their place in the order; from then on their frames
//! are stale. When a store is opened, the frames that follow that place are applied again.

use std::ops::Range;
use std::sync::Arc;

use garret_core::medium::{Medium, MediumError};

use crate::files::backend::length;
use crate::files::part::{Media, Part};
use crate::ground::position::{Check, Position};
use crate::journal::frame::{FRAME, Frame};

pub(crate) mod apply;
pub(crate) mod frame;
pub(crate) mod op;

/// The journal of an open store.
pub(crate) struct Journal {
    media: Arc<Media>,
    namespace: String,
    file: Option<JournalFile>,
    /// The records on the medium hold everything up to here.
    folded: Position,
    /// The last write.
    last: Position,
    /// True if the records on the medium are such that frames can follow: there, and of this
    /// version. Else a program of another version would not see them.
    ready: bool,
    /// True if anything was written since it was opened.
    wrote: bool,
    /// True if stale frames hold what was removed.
    unclean: bool,
}

struct JournalFile {
    medium: Arc<dyn Medium>,
    key: Check,
    /// Bytes that are written at least: [`SMALL`] where the device allows it, else [`BLOCK`].
    block: u64,
    /// The place where the next frame goes.
    end: u64,
    /// Bytes that lie before it in its block, where blocks are small.
    tail: Vec<u8>,
    /// Bytes that are there to be written over.
    room: u64,
    /// Frames that were found when it was opened. Whether the device has them isn't known, so the
    /// next frame is written together with them.
    unsure: Vec<u8>,
}

/// Frames to be applied again.
#[derive(Default)]
pub(crate) struct Replay {
    bytes: Vec<u8>,
    payloads: Vec<(Position, Range<usize>)>,
}

impl Replay {
    /// Each write's place and payload, in order.
    pub(crate) fn frames(&self) -> impl Iterator<Item = (Position, &[u8])> {
        self.payloads.iter().map(|(at, range)| (*at, self.bytes.get(range.clone()).unwrap_or(&[])))
    }
}

/// Why a journal can't be used.
pub(crate) enum Unusable {
    Medium(MediumError),
    OtherNamespace(String),
    NewerFormat(u32),
    /// Its state or action; and what to do.
    Refused(String),
}

impl Journal {
    /// Looks for writes that follow `folded`, which is where the records on the medium end. Nothing
    /// is written or created.
    pub(crate) fn open(
        media: &Arc<Media>,
        namespace: &str,
        folded: Position,
        ready: bool,
    ) -> Result<(Self, Replay), Unusable> {
        let mut journal = Self {
            media: media.clone(),
            namespace: namespace.to_owned(),
            file: None,
            folded,
            last: folded,
            ready,
            wrote: false,
            unclean: false,
        };
        if !media.has(Part::Journal) || !media.exists(Part::Journal) {
            return Ok((journal, Replay::default()));
        }
        let medium = media.open(Part::Journal)?;
        let len = medium.len()?.min(MAX_LEN);
        let mut bytes = vec![0; usize::try_from(len).unwrap_or(0)];
        medium.read_at(0, &mut bytes)?;
        let Some((version, key)) = read_header(&bytes, namespace)? else {
            return Ok((journal, Replay::default()));
        };
        // They are there before the header is.
        if len < EXTENT {
            return Err(Unusable::Refused(format!(
                "was cut short, to {len} bytes, and what was accepted last may be lost: restore it \
                 from a backup, or move it away to go on without"
            )));
        }
        let run = bytes.split_off(HEADER.min(bytes.len()));
        let (replay, end) = find(key, run, folded)?;
        journal.last = replay.payloads.last().map_or(folded, |(at, _)| *at);
        // Where all are stale, the next one overwrites them.
        let kept = if replay.payloads.is_empty() { 0 } else { end };
        let unsure = replay.bytes.get(..kept).unwrap_or_default().to_vec();
        let end = HEADER_U64 + length(&unsure);
        let block = if version < SMALL_SINCE { BLOCK } else { block_of(&*medium) };
        let tail = Vec::new();
        journal.file = Some(JournalFile { medium, key, block, end, tail, room: len, unsure });
        Ok((journal, replay))
    }

    /// Reads the medium's journal again: the writes that follow the records there. They are the
    /// ones that this journal holds if their last is its [last](Self::last).
    pub(crate) fn again(&self) -> Result<(Position, Replay), Unusable> {
        let (journal, replay) = Self::open(&self.media, &self.namespace, self.folded, self.ready)?;
        Ok((journal.last, replay))
    }

    /// The last write that is among the records on the medium.
    pub(crate) fn last_folded(&self) -> Position {
        self.folded
    }

    /// Writes that aren't among the records on the medium.
    pub(crate) fn pending(&self) -> u64 {
        self.last.seq - self.folded.seq
    }

    /// Whether enough waits for a fold before the store is closed. One that was only read stays as
    /// it is.
    pub(crate) fn folds_at_end(&self) -> bool {
        self.wrote && self.pending() >= CLOSE_OPS
    }

    /// Tells whether a fold is due.
    pub(crate) fn is_long(&self) -> bool {
        self.pending() >= FOLD_OPS || self.bytes() >= FOLD_BYTES
    }

    /// Tells whether so much waits that a fold is worth it while nothing else is to be done.
    pub(crate) fn is_half_full(&self) -> bool {
        self.pending() >= FOLD_OPS / 2 || self.bytes() >= FOLD_BYTES / 2
    }

    /// Bytes of frames since the last fold.
    fn bytes(&self) -> u64 {
        self.file.as_ref().map_or(0, |file| file.end - HEADER_U64)
    }

    /// The last write.
    pub(crate) fn last(&self) -> Position {
        self.last
    }

    /// Makes the next write durable. False where it has to go to the records directly: they aren't
    /// ready, it is large, or there is no room for the journal to grow.
    ///
    /// After an error it isn't known whether the write is there.
    pub(crate) fn append(&mut self, payload: &[u8]) -> Result<bool, MediumError> {
        let takes = self.ready && self.media.has(Part::Journal);
        if !takes || FRAME + payload.len() > MAX_FRAME {
            return Ok(false);
        }
        if self.file.is_none() {
            self.file = JournalFile::create(&self.media, &self.namespace, self.last.check)?;
        }
        let Some(file) = &mut self.file else { return Ok(false) };
        let (frame, at) = frame::encode(file.key, self.last, payload);
        let start = start_of(file.end, length(&frame), file.block);
        if !file.make_room(start + length(&frame))? {
            return Ok(false);
        }
        file.append(start, &frame)?;
        (self.last, self.wrote) = (at, true);
        Ok(true)
    }

    /// The place of the next write, when that doesn't go through the journal.
    pub(crate) fn next(&self, payload: &[u8]) -> Position {
        let key = self.file.as_ref().map_or(Check::default(), |file| file.key);
        frame::place(key, self.last, payload)
    }

    /// The records on the medium hold everything up to `at`: the frames are stale.
    pub(crate) fn folded(&mut self, at: Position) {
        (self.folded, self.last, self.ready) = (at, at, true);
        if let Some(file) = &mut self.file {
            file.end = HEADER_U64;
            file.tail.clear();
            file.unsure.clear();
        }
    }

    /// Something was removed, and the records on the medium are without it.
    pub(crate) fn soil(&mut self) {
        self.unclean = self.file.is_some();
    }

    /// Tells whether stale frames hold what was removed.
    pub(crate) fn is_unclean(&self) -> bool {
        self.unclean
    }

    /// Overwrites all stale frames. Only right after a fold.
    pub(crate) fn wipe(&mut self) -> Result<(), MediumError> {
        if let Some(file) = &self.file {
            let frames = file.room.saturating_sub(HEADER_U64);
            file.medium.write_at(HEADER_U64, &vec![0; usize::try_from(frames).unwrap_or(0)])?;
            file.medium.sync()?;
        }
        self.unclean = false;
        Ok(())
    }
}

impl JournalFile {
    /// A journal without frames; `None` where there is no room for it.
    fn create(media: &Media, namespace: &str, key: Check) -> Result<Option<Self>, MediumError> {
        let medium = match media.open(Part::Journal) {
            Err(MediumError::Full) => return Ok(None),
            medium => medium?,
        };
        let (block, tail, unsure) = (block_of(&*medium), Vec::new(), Vec::new());
        let mut file = Self { medium, key, block, end: HEADER_U64, tail, room: 0, unsure };
        if !file.grow()? {
            return Ok(None);
        }
        // Only now, so that what follows a header that was cut short is known to be zeros.
        file.medium.write_at(0, &header(namespace, key))?;
        file.medium.sync()?;
        Ok(Some(file))
    }

    /// Tells whether there is room up to `end`, after making it if need be.
    fn make_room(&mut self, end: u64) -> Result<bool, MediumError> {
        while end > self.room {
            if self.room + EXTENT > MAX_LEN || !self.grow()? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Writes one more extent of zeros, and syncs them: what overwrites them moves no metadata.
    fn grow(&mut self) -> Result<bool, MediumError> {
        match self.medium.write_at(self.room, &vec![0; EXTENT_BYTES]) {
            Err(MediumError::Full) => {
                // Who else needs the room gets it back; it does no harm where this fails.
                let _ = self.medium.set_len(self.room);
                return Ok(false);
            }
            written => written?,
        }
        self.medium.sync()?;
        self.room += EXTENT;
        Ok(true)
    }

    fn append(&mut self, start: u64, frame: &[u8]) -> Result<(), MediumError> {
        let (from, mut bytes) = self.before(start);
        bytes.extend(frame);
        let len = bytes.len();
        if self.block == SMALL {
            bytes.resize(len.next_multiple_of(SMALL_BYTES), 0);
        }
        self.medium.write_durably(from, &bytes)?;
        self.end = start + length(frame);
        if self.block == SMALL {
            bytes.truncate(len);
            self.tail = bytes.split_off(len / SMALL_BYTES * SMALL_BYTES);
        }
        Ok(())
    }

    /// Returns what is written together with a frame at `start`, and where that begins.
    fn before(&mut self, start: u64) -> (u64, Vec<u8>) {
        if self.unsure.is_empty() {
            let shares = !start.is_multiple_of(self.block);
            let tail = if shares { std::mem::take(&mut self.tail) } else { Vec::new() };
            return (start - length(&tail), tail);
        }
        let mut all = std::mem::take(&mut self.unsure);
        all.resize(usize::try_from(start - HEADER_U64).unwrap_or(0), 0);
        (HEADER_U64, all)
    }
}

/// Where a frame of `len` bytes goes that follows what ends at `end`: in the next block, if it lies
/// in fewer then. A device writes whole blocks.
fn start_of(end: u64, len: u64, block: u64) -> u64 {
    let within = end % block;
    if (within + len).div_ceil(block) > len.div_ceil(block) {
        end.next_multiple_of(block)
    } else {
        end
    }
}

/// The blocks of a journal on `medium`: one of the two sizes at which a reader looks for frames.
fn block_of(medium: &dyn Medium) -> u64 {
    if medium.block() <= SMALL_BYTES { SMALL } else { BLOCK }
}

/// The first bytes of a journal.
fn header(namespace: &str, key: Check) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend(VERSION.to_le_bytes());
    bytes.extend(key);
    bytes.extend(u16::try_from(namespace.len()).unwrap_or(u16::MAX).to_le_bytes());
    bytes.extend(namespace.as_bytes());
    bytes.extend(crate::ground::codec::seal(&bytes));
    bytes
}

/// Version and key of the journal in `bytes`; `None` where its creation wasn't finished.
fn read_header(bytes: &[u8], namespace: &str) -> Result<Option<(u32, Check)>, Unusable> {
    let ours = |(byte, magic): (&u8, &u8)| byte == magic || *byte == 0;
    if !bytes.iter().zip(&MAGIC).all(ours) {
        return Err(Unusable::Refused(
            "is something else: it doesn't begin like a journal; move it away".to_owned(),
        ));
    }
    let parsed = (|| {
        let rest = bytes.strip_prefix(&MAGIC)?;
        let (version, rest) = rest.split_first_chunk()?;
        let (key, rest) = rest.split_first_chunk::<8>()?;
        let (len, rest) = rest.split_first_chunk()?;
        let name = rest.get(..usize::from(u16::from_le_bytes(*len)))?;
        let checked = MAGIC.len() + 4 + 8 + 2 + name.len();
        let seal = bytes.get(checked..)?.first_chunk::<8>()?;
        let whole = crate::ground::codec::seal(bytes.get(..checked)?) == *seal;
        whole.then_some((u32::from_le_bytes(*version), *key, name))
    })();
    let Some((version, key, name)) = parsed else {
        if bytes.iter().skip(HEADER).all(|byte| *byte == 0) {
            return Ok(None);
        }
        return Err(Unusable::Refused(
            "is damaged at its start, and what was accepted last may be in it: restore it from a \
             backup, or move it away to go on without"
                .to_owned(),
        ));
    };
    if version > VERSION {
        return Err(Unusable::NewerFormat(version));
    }
    if name != namespace.as_bytes() {
        return Err(Unusable::OtherNamespace(String::from_utf8_lossy(name).into_owned()));
    }
    Ok(Some((version, key)))
}

/// Returns what of the frames in `run` follows `folded`, and the length of all that are in a row.
fn find(key: Check, run: Vec<u8>, folded: Position) -> Result<(Replay, usize), Unusable> {
    let (mut end, mut last, mut payloads) = (0, None::<Position>, Vec::new());
    while let Some((start, frame)) = next_frame(key, &run, end, last) {
        if last.is_none() && frame.at.seq > folded.seq.saturating_add(1) {
            let why = format!(
                "begins with write {} although the records end with {}",
                frame.at.seq, folded.seq
            );
            return Err(misplaced(&why));
        }
        check_place(&frame, folded)?;
        end = start + frame.len();
        if frame.at.seq > folded.seq {
            let payload = start + frame::HEAD;
            payloads.push((frame.at, payload..payload + frame.payload.len()));
        }
        last = Some(frame.at);
    }
    let reached = last.map_or(folded.seq, |last| last.seq.max(folded.seq));
    let rest = run.get(end..).unwrap_or_default();
    if let Some(later) = frame::find_above(key, rest, reached, MAX_FRAME) {
        return Err(Unusable::Refused(format!(
            "is damaged: write {} can't be read although write {later} can, and both were \
             acknowledged; restore it from a backup, or move it away to go on without what \
             follows write {}",
            reached + 1,
            folded.seq
        )));
    }
    Ok((Replay { bytes: run, payloads }, end))
}

/// The frame after `last`, which ends at `end`, and where it starts: there, or in the next block of
/// either size.
/// What else lies there was left from before the journal was used anew.
fn next_frame(
    key: Check,
    run: &[u8],
    end: usize,
    last: Option<Position>,
) -> Option<(usize, Frame<'_>)> {
    let follows = |frame: &Frame<'_>| {
        last.is_none_or(|last| frame.at.seq == last.seq + 1 && frame.after == last.check)
    };
    let places = [1, SMALL_BYTES, BLOCK_BYTES].map(|block| end.next_multiple_of(block));
    places.into_iter().find_map(|start| {
        let frame = Frame::decode(key, run.get(start..)?)?;
        follows(&frame).then_some((start, frame))
    })
}

/// Tells whether a frame belongs to the store whose records end at `folded`.
fn check_place(frame: &Frame<'_>, folded: Position) -> Result<(), Unusable> {
    let next = folded.seq.saturating_add(1);
    let why = match frame.at.seq {
        seq if seq == folded.seq && frame.at.check != folded.check => {
            format!("has another write {seq} than the records")
        }
        seq if seq == next && frame.after != folded.check => {
            format!("goes on from another write {} than the records", folded.seq)
        }
        _ => return Ok(()),
    };
    Err(misplaced(&why))
}

fn misplaced(why: &str) -> Unusable {
    Unusable::Refused(format!(
        "{why}: one of the two files was replaced; put back the one that belongs to the other, or \
         move the journal away to go on without what is in it"
    ))
}

impl From<MediumError> for Unusable {
    fn from(error: MediumError) -> Self {
        Self::Medium(error)
    }
}

/// Writes that wait before they are folded, which writes some 40 pages besides the records' own.
/// Applying so many facts again, when a store is opened, took 30 ms on an x86_64 server; messages
/// take a third of that.
const FOLD_OPS: u64 = 2_048;
/// Bytes of frames that wait before they are folded. Applying 6,100 short messages again that filled
/// them, in groups of 16, took 18 ms beside other programs.
const FOLD_BYTES: u64 = 3 << 19;
/// Writes that are folded when the store is closed; fewer wait for the next time.
const CLOSE_OPS: u64 = 32;

/// Version of the journal's format: the store's, as it was when the journal's last changed.
const VERSION: u32 = 3;
const MAGIC: [u8; 16] = *b"Garret journal\r\n";
/// The first of them whose frames may lie in blocks of [`SMALL`].
const SMALL_SINCE: u32 = 3;
/// Bytes that are written at least: a page of a system's cache.
const BLOCK: u64 = 4_096;
const BLOCK_BYTES: usize = 4_096;
/// The same, of a device that is written to past that.
const SMALL: u64 = 512;
const SMALL_BYTES: usize = 512;
/// Bytes before the first frame.
const HEADER: usize = BLOCK_BYTES;
const HEADER_U64: u64 = BLOCK;
/// Largest frame. Beyond, writing twice costs more than a commit of the database.
const MAX_FRAME: usize = 64 << 10;
/// Bytes that the file grows by.
const EXTENT_BYTES: usize = 128 << 10;
const EXTENT: u64 = 128 << 10;
/// Most bytes it has; more than [`FOLD_BYTES`] so that writing goes on for a while when folding
/// fails.
const MAX_LEN: u64 = 2 << 20;
