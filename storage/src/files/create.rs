//! What a medium holds before it is opened, and how a new store comes into being.
//!
//! redb can't open a file whose creation was cut short. So a new store is made in memory and then
//! written in the order of `FORMAT.md`, "Creation", which can be recognised at every moment.

use std::collections::VecDeque;
use std::sync::Arc;

use garret_core::medium::{Medium, MediumError};

use crate::files::backend::{Adapter, BLOCK_U64, Image, Link, Operation, Stage};
use crate::ground::database::{builder, contain};
use crate::ground::error::Fault;
use crate::ground::position::Position;
use crate::ground::table;
use crate::ground::table::{FORMAT, META, key};

/// The kind of file that the first bytes tell of.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// Nothing was ever written.
    New,
    /// A creation was cut short, before anything was stored.
    Unfinished,
    /// A database of redb.
    Database,
    /// Something else.
    Foreign,
}

/// Looks at the first bytes.
pub(crate) fn classify(medium: &dyn Medium) -> Result<Found, MediumError> {
    let len = medium.len()?.min(MARK_LEN);
    let mut head = MARK;
    let head = head.get_mut(..usize::try_from(len).unwrap_or(0)).unwrap_or_default();
    medium.read_at(0, head)?;
    let each = |of: fn(u8, u8, u8) -> bool| {
        head.iter().zip(MARK).zip(MAGIC).all(|((byte, mark), magic)| of(*byte, mark, magic))
    };
    Ok(if *head == MAGIC {
        Found::Database
    } else if len == MARK_LEN && each(|byte, mark, magic| byte == mark || byte == magic) {
        Found::Unfinished
    } else if medium.len()? <= MARK_LEN && each(|byte, mark, _| byte == mark || byte == 0) {
        Found::New
    } else {
        Found::Foreign
    })
}

/// A stage that shows an empty store of `namespace`, and writes it when it is performed.
pub(crate) fn stage(namespace: &str) -> Result<Stage, Fault> {
    let image = image(namespace)?;
    let mut waiting = VecDeque::from([write(0, &MARK), Operation::Sync]);
    waiting.push_back(Operation::SetLen(image.len));
    // Blocks that aren't there belong to no page; what an earlier attempt left in them is never
    // read.
    for (index, block) in &image.blocks {
        let skip = if *index == 0 { MARK.len() } else { 0 };
        let offset = index * BLOCK_U64 + if *index == 0 { MARK_LEN } else { 0 };
        waiting.push_back(write(offset, &block[skip..]));
    }
    waiting.extend([Operation::Sync, write(0, &MAGIC), Operation::Sync]);
    Ok(Stage::of(image, waiting))
}

/// The bytes of an empty store.
fn image(namespace: &str) -> Result<Image, Fault> {
    let link = Link::new(Arc::new(Nothing), Stage::new(0));
    contain(|| {
        let database = builder().create_with_backend(Adapter(link.clone()))?;
        let transaction = database.begin_write()?;
        {
            let mut meta = transaction.open_table(META)?;
            meta.insert(key::FORMAT, FORMAT.as_slice())?;
            meta.insert(key::NAMESPACE, namespace.as_bytes())?;
            meta.insert(key::NEXT_SESSION, 1_u64.to_le_bytes().as_slice())?;
            meta.insert(key::ACTIVITY, 0_u64.to_le_bytes().as_slice())?;
            meta.insert(key::JOURNAL, Position::default().to_bytes().as_slice())?;
        }
        table::make_all(&transaction)?;
        transaction.commit()?;
        // Closing writes the last of it.
        drop(database);
        Ok(())
    })?;
    link.take_image().ok_or_else(|| Fault::Engine("a new store could not be made".to_owned()))
}

fn write(offset: u64, bytes: &[u8]) -> Operation {
    Operation::Write { offset, bytes: bytes.to_vec() }
}

/// First bytes of a file whose creation isn't finished.
pub(crate) const MARK: [u8; 9] = *b"GarretNEW";
const MARK_LEN: u64 = 9;
/// First bytes of a redb database.
pub(crate) const MAGIC: [u8; 9] = *b"redb\x1a\x0a\xa9\x0d\x0a";

/// A medium without room; the stage on it is all there is.
struct Nothing;

impl Medium for Nothing {
    fn len(&self) -> Result<u64, MediumError> {
        Ok(0)
    }

    fn read_at(&self, _offset: u64, _out: &mut [u8]) -> Result<(), MediumError> {
        Err(MediumError::OutOfRange)
    }

    fn write_at(&self, _offset: u64, _bytes: &[u8]) -> Result<(), MediumError> {
        Err(MediumError::Full)
    }

    fn set_len(&self, _len: u64) -> Result<(), MediumError> {
        Err(MediumError::Full)
    }

    fn sync(&self) -> Result<(), MediumError> {
        Ok(())
    }
}
