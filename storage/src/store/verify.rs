//! Looking at everything that there is.

use garret_core::medium::MediumError;
use redb::ReadTransaction;

use crate::ground::database::contain;
use crate::ground::error::{Fault, ReadError};
use crate::open::Open;
use crate::search::check::unit_name;
use crate::store::Store;
use crate::vectors::VectorError;
use crate::verify::report::{Advice, Report};
use crate::verify::{OF_FACTS, Section, conversations, files, note, summaries};

impl Store {
    /// Looks at everything: each page, each record's check, whether the tables agree with each
    /// other, whether facts are in order, and whether the journal follows the records. It changes
    /// nothing. Damage is reported, never an error.
    ///
    /// Reading all pages of the file, at first, makes others wait; the rest doesn't.
    ///
    /// # Errors
    /// [`ReadError::Medium`] when the device doesn't answer.
    pub fn verify(&self) -> Result<Report, ReadError> {
        let mut report = Report::default();
        let conversations: [(&str, Section); 6] = [
            ("sessions", conversations::sessions),
            ("turns and replies", conversations::turns),
            ("speakers and imports", conversations::imported),
            ("what was forgotten", conversations::forgotten),
            ("summaries", summaries::summaries),
            ("states and traces", summaries::states),
        ];
        self.files(&mut report)?;
        for (name, check) in conversations.into_iter().chain(OF_FACTS) {
            self.section(name, check, &mut report)?;
        }
        self.index(&mut report)?;
        self.vectors(&mut report)?;
        Ok(report)
    }

    fn index(&self, report: &mut Report) -> Result<(), ReadError> {
        let checked = contain(|| Ok(self.derived.check(|at_once| self.snapshot_with(at_once))));
        match checked.map_err(ReadError::from).flatten() {
            Ok(None) => Ok(()),
            Ok(Some(checked)) => {
                report.checked.indexed = checked.units;
                for (what, key) in checked.wrong {
                    report.add(what, key, Advice::Reopen);
                }
                Ok(())
            }
            Err(error) => note("text index", Err(error), report),
        }
    }

    fn vectors(&self, report: &mut Report) -> Result<(), ReadError> {
        match self.wrong_vectors() {
            Ok(None) => {}
            Ok(Some((wrong, looked_at))) => {
                report.checked.vectors = u64::try_from(looked_at).unwrap_or(u64::MAX);
                for unit in wrong {
                    report.add("vector", unit_name(unit), Advice::Vectors);
                }
            }
            Err(VectorError::Medium(error)) if error != MediumError::OutOfRange => {
                return Err(ReadError::Medium(error));
            }
            Err(error) => {
                report.add("vectors (can't be read)", error.to_string(), Advice::Vectors);
            }
        }
        Ok(())
    }

    fn files(&self, report: &mut Report) -> Result<(), ReadError> {
        type Section = fn(&mut Open, &mut Report) -> Result<(), Fault>;
        let sections: [(&str, Section); 2] =
            [("file of the records", files::pages), ("journal", files::journal)];
        for (name, check) in sections {
            let done = self.reading(|open| check(open, report).map(Ok));
            note(name, done, report)?;
        }
        Ok(())
    }

    /// One part of the check, by what a snapshot shows.
    fn section(
        &self,
        name: &str,
        check: impl Fn(&ReadTransaction, &mut Report) -> Result<(), Fault>,
        report: &mut Report,
    ) -> Result<(), ReadError> {
        let before = report.clone();
        let done = self.on_snapshot(|transaction, _| {
            report.clone_from(&before);
            check(transaction, report)
        });
        note(name, done, report)
    }
}
