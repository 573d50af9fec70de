//! Pinning facts, and where a pin goes when its fact is replaced.

use crate::facts::lane::load;
use crate::facts::record::FactRecord;
use crate::facts::view::Pin;
use crate::facts::write::Writer;
use crate::ground::error::{Abort, WriteError};
use crate::ground::fact_error::FactError;
use crate::ground::fact_id::FactId;

impl Writer<'_> {
    /// Pins a fact. A rule's pin leaves the user's as it is.
    pub(crate) fn pin(&mut self, fact: u64, pin: Pin) -> Result<(), Abort<WriteError>> {
        let record = self.known(fact)?;
        if pin != Pin::None && record.superseded_by != 0 {
            let (fact, by) = (FactId(fact), FactId(record.superseded_by));
            return Err(FactError::NotCurrent { fact, by }.into());
        }
        let pin = if pin == Pin::None { pin } else { pin.max(record.pin()) };
        self.repin(record, pin)
    }

    /// Gives the pin of a fact that is replaced to its heir; to what replaced that, if anything
    /// did. Where the heir isn't stored yet, it gets the pin by [`inherit`](Self::inherit).
    pub(crate) fn bequeath(&mut self, mut heir: u64, pin: Pin) -> Result<(), Abort<WriteError>> {
        if pin == Pin::None {
            return Ok(());
        }
        // There is no circle: the way along all heirs ends.
        while let Some(record) = load(&self.facts, heir)? {
            if record.superseded_by == 0 {
                if self.ended.contains(&heir) {
                    return Ok(());
                }
                let pin = pin.max(record.pin());
                return self.repin(record, pin);
            }
            heir = record.superseded_by;
        }
        let waiting = self.bequests.entry(heir).or_default();
        *waiting = pin.max(*waiting);
        Ok(())
    }

    /// Gives a fact that is about to be stored what was bequeathed to it. One that was replaced by
    /// then passes it on.
    pub(crate) fn inherit(&mut self, record: &mut FactRecord) -> Result<(), Abort<WriteError>> {
        let pin = self.bequests.remove(&record.id).unwrap_or_default().max(record.pin());
        if record.superseded_by == 0 {
            record.set_pin(pin);
            return Ok(());
        }
        record.set_pin(Pin::None);
        self.bequeath(record.superseded_by, pin)
    }

    fn repin(&mut self, before: FactRecord, pin: Pin) -> Result<(), Abort<WriteError>> {
        let mut after = before.clone();
        after.set_pin(pin);
        if after == before { Ok(()) } else { self.update(&before, &after) }
    }
}
