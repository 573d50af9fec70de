//! Whether an index agrees with the records.

use redb::{ReadTransaction, ReadableTable as _};

use crate::conversations::record::{ReplyRecord, SessionRecord, TurnRecord, speaker, turn_name};
use crate::facts;
use crate::facts::FactId;
use crate::ground::error::Fault;
use crate::ground::table::{REPLIES, SESSIONS, SPEAKERS, TURNS, TurnKey, seq_of, turn_key};
use crate::search::derived::{AtOnce, Derived, Kept, time};
use crate::search::reading::Reading;
use crate::search::unit::{Speaker, Unit};
use crate::vectors::UnitKey;

/// The result of a look at an index.
#[derive(Debug, Default)]
pub(crate) struct Checked {
    /// Units in it.
    pub(crate) units: u64,
    /// Faults, and where they are.
    pub(crate) wrong: Vec<(&'static str, String)>,
}

impl Derived {
    /// Compares the index with the records: how many units it has, and of about [`SAMPLE`] of them
    /// every term. `None` where nothing was searched yet.
    pub(crate) fn check<E: From<Fault>>(
        &self,
        snapshot: impl FnOnce(AtOnce<'_>) -> Result<ReadTransaction, E>,
    ) -> Result<Option<Checked>, E> {
        if !self.is_kept() {
            return Ok(None);
        }
        self.with(snapshot, |kept, transaction| Ok(Some(check(kept, transaction)?)))
    }
}

/// Units that are looked at closely.
const SAMPLE: usize = 128;

fn check(kept: &Kept, transaction: &ReadTransaction) -> Result<Checked, Fault> {
    let step = (kept.index.len() / SAMPLE).max(1);
    let (mut checked, mut expected) = (Checked::default(), 0_usize);
    each_unit(transaction, &mut |key, unit| {
        expected += 1;
        if !expected.is_multiple_of(step) {
            return;
        }
        match kept.index.document(key) {
            None => checked.wrong.push(("text index (it lacks a message or fact)", unit_name(key))),
            Some(document) => {
                let counts = Reading::of(unit).counts;
                let holds = |(term, count): (&String, &u32)| {
                    kept.index.postings.postings(term).any(|found| found == (document, *count))
                };
                if !counts.iter().all(holds) {
                    checked.wrong.push(("text index (it lacks a word)", unit_name(key)));
                }
            }
        }
    })?;
    let found = kept.index.len();
    checked.units = u64::try_from(found).unwrap_or(u64::MAX);
    if found != expected {
        let key = format!("{found} messages and facts in it, {expected} in the records");
        checked.wrong.push(("text index (its length)", key));
    }
    Ok(checked)
}

/// Says how problems name a message or a fact.
pub(crate) fn unit_name(key: UnitKey) -> String {
    match key {
        UnitKey::Words { session, turn } => turn_name(session, turn),
        UnitKey::Reply { session, turn } => format!("reply to {}", turn_name(session, turn)),
        UnitKey::Fact { id } => FactId(id).to_string(),
    }
}

/// Hands everything that can be searched to `take`, with its key.
fn each_unit(
    transaction: &ReadTransaction,
    take: &mut dyn FnMut(UnitKey, &Unit<'_>),
) -> Result<(), Fault> {
    let (turns, replies) = (transaction.open_table(TURNS)?, transaction.open_table(REPLIES)?);
    let speakers = transaction.open_table(SPEAKERS)?;
    for entry in transaction.open_table(SESSIONS)?.iter()? {
        let (id, bytes) = entry?;
        let Ok(record) = SessionRecord::read(id.value(), bytes.value()) else { continue };
        let session = record.number;
        if record.into_info().is_err() {
            continue;
        }
        let (first, last) = (turn_key(session, 0), turn_key(session, u64::MAX));
        for entry in turns.range::<&TurnKey>(&first..=&last)? {
            let (key, bytes) = entry?;
            let turn = seq_of(key.value());
            let name = speakers.get(key.value())?;
            let name = name.as_ref().map(|name| speaker(session, turn, name.value())).transpose();
            let (Ok(name), Ok(view)) = (name, TurnRecord::view(session, turn, bytes.value()))
            else {
                continue;
            };
            let speaker = name.map_or(Speaker::User, Speaker::Named);
            let at_ms = time(view.accepted_ms, view.clock);
            let unit = Unit { session, turn, speaker, at_ms, text: view.user };
            take(UnitKey::Words { session, turn }, &unit);
        }
        for entry in replies.range::<&TurnKey>(&first..=&last)? {
            let (key, bytes) = entry?;
            let turn = seq_of(key.value());
            let Ok(view) = ReplyRecord::view(session, turn, bytes.value()) else { continue };
            let (speaker, at_ms) = (Speaker::Assistant, time(view.finished_ms, view.clock));
            let unit = Unit { session, turn, speaker, at_ms, text: view.text };
            take(UnitKey::Reply { session, turn }, &unit);
        }
    }
    facts::for_each(transaction, |fact| {
        let FactId(id) = fact.id;
        let (speaker, at_ms) = (Speaker::User, Some(fact.valid_at));
        let turn = fact.turn.unwrap_or(0);
        let unit = Unit { session: 0, turn, speaker, at_ms, text: fact.text };
        take(UnitKey::Fact { id }, &unit);
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NewFact;
    use crate::store::Store;
    use garret_core::time::{Confidence, WallTime};
    use garret_hal::media::RamMedium;

    /// Returns what the store says of its index, after `spoil` had its way with it.
    fn wrong(spoil: impl FnOnce(&mut Kept)) -> Vec<(&'static str, String)> {
        let store = Store::on_medium("n", Box::new(RamMedium::new())).unwrap();
        let at = WallTime { unix_ms: 5, confidence: Confidence::Good };
        for text in ["My bees swarmed.", "It rained.", "The queen is well."] {
            store.accept(&"s".parse().unwrap(), text, at).unwrap();
        }
        store.add_fact(&NewFact { text: "Ada keeps bees.", ..NewFact::default() }, at).unwrap();
        let report = store.verify().unwrap();
        assert_eq!((report.checked.indexed, &*report.problems), (0, &[][..]));
        store.search("bees", None, 3).unwrap();
        let mut slot = store.derived.kept.lock().unwrap();
        spoil(slot.as_mut().unwrap());
        drop(slot);
        let checked = store.derived.check(|at_once| store.snapshot_with(at_once));
        let checked = checked.unwrap().unwrap();
        let report = store.verify().unwrap();
        assert_eq!(report.checked.indexed, checked.units);
        assert_eq!(report.problems.len(), checked.wrong.len());
        checked.wrong
    }

    #[test]
    fn an_index_that_agrees_is_right() {
        assert_eq!(wrong(|_| {}), []);
    }

    #[test]
    fn what_an_index_lacks_is_told() {
        let told = wrong(|kept| kept.index.remove_facts(&[1]));
        let length = "3 messages and facts in it, 4 in the records".to_owned();
        assert_eq!(
            told,
            [
                ("text index (it lacks a message or fact)", "f1".to_owned()),
                ("text index (its length)", length)
            ]
        );
        let told = wrong(|kept| {
            kept.index.remove(1);
            for (turn, text) in
                [(1, "My bees swarmed."), (2, "It snowed."), (3, "The queen is well.")]
            {
                let (speaker, at_ms) = (Speaker::User, Some(5));
                kept.index.add(&Unit { session: 1, turn, speaker, at_ms, text });
            }
        });
        assert_eq!(
            told,
            [("text index (it lacks a word)", "turn 2 of session number 1".to_owned())]
        );
    }
}
