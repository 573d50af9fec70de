//! Taking in conversations that were held elsewhere.

use redb::ReadableDatabase as _;

use crate::conversations::import::{
    Imported, ImportedTurn, MAX_BATCH_BYTES, name_of, said, unknown,
};
use crate::ground::error::WriteError;
use crate::ground::limits::{MAX_NAME_BYTES, check_size};
use crate::journal::apply::Outcome;
use crate::journal::op::Op;
use crate::store::Store;
use crate::store::turns::unexpected;

impl Store {
    /// Takes in turns of conversations that were held elsewhere, in their order, all or none; they
    /// are durable when this returns. One step costs about as much as any other write, so many
    /// turns at a time are much faster: 1,000 are a good number.
    ///
    /// ```
    /// # use garret_core::time::{Confidence, WallTime};
    /// # use garret_hal::media::RamMedium;
    /// use garret_storage::{ImportedTurn, Store, search::Speaker};
    ///
    /// # let store = Store::on_medium("home", Box::new(RamMedium::new()))?;
    /// let session = "letters".parse()?;
    /// let at = WallTime { unix_ms: 1_683_550_800_000, confidence: Confidence::Good };
    /// let ada = Speaker::Named("Ada");
    /// let text = "The bees have swarmed.";
    /// let turn = ImportedTurn { session: &session, speaker: ada, text, at, id: Some("1:1") };
    /// assert_eq!(store.import_turns(&[turn])?.added, 1);
    /// assert_eq!(store.import_turns(&[turn])?.skipped, 1);
    /// store.with_turns(&session, 1, |turns| assert_eq!(turns[0].speaker, Some("Ada")))?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`WriteError`]; nothing of the batch is stored then, save as that type says.
    pub fn import_turns(&self, turns: &[ImportedTurn<'_>]) -> Result<Imported, WriteError> {
        let mut total = 0_usize;
        for turn in turns {
            check_size("a turn", turn.text.len())?;
            let name = name_of(turn.speaker).map_or(0, str::len);
            if name > MAX_NAME_BYTES {
                let what = "a speaker's name";
                return Err(WriteError::TooLarge { what, bytes: name, max: MAX_NAME_BYTES });
            }
            total = total.saturating_add(turn.text.len());
        }
        if total > MAX_BATCH_BYTES {
            let what = "the batch";
            return Err(WriteError::TooLarge { what, bytes: total, max: MAX_BATCH_BYTES });
        }
        self.writing(|open| {
            // What is there already isn't written anywhere again, least of all what was forgotten.
            let new = unknown(&open.database.begin_read()?, turns)?;
            if new.is_empty() {
                return Ok(Ok(Imported { added: 0, skipped: turns.len() }));
            }
            let op = Op::Import(new.iter().map(|turn| said(turn)).collect());
            let places = match open.perform(&op)? {
                Ok(Outcome::Imported(places)) => places,
                other => return unexpected(other),
            };
            let added = places.iter().flatten().count();
            Ok(Ok(Imported { added, skipped: turns.len() - added }))
        })
    }
}
