//! Whether everything in a namespace is as it should be.
//!
//! Each part is read through a snapshot of its own, so that others can write meanwhile, and row by
//! row. Memory is needed for a few numbers of each session, and of each fact that gave its place to
//! an older one.

pub(crate) mod conversations;
pub(crate) mod facts;
pub(crate) mod files;
pub(crate) mod references;
pub(crate) mod report;
pub(crate) mod summaries;

use garret_core::medium::MediumError;
use redb::ReadTransaction;

use crate::ground::error::{Fault, PAGE, ReadError, unless_damaged};
use crate::verify::report::Advice;

pub use crate::verify::report::{Checked, Problem, Report};

/// A part of the check that needs a snapshot.
pub(crate) type Section = fn(&ReadTransaction, &mut Report) -> Result<(), Fault>;

pub(crate) const OF_FACTS: [(&str, Section); 4] = [
    ("facts", facts::facts),
    ("slots of facts", facts::slots),
    ("tables that lead to facts", references::of_facts),
    ("entities and links", references::of_entities),
];

/// Returns what is wrong with facts and all that belongs to them, in words.
pub(crate) fn check_facts(transaction: &ReadTransaction) -> Result<Vec<String>, Fault> {
    let mut report = Report::default();
    OF_FACTS.iter().try_for_each(|(_, check)| check(transaction, &mut report))?;
    let problems = report.problems.into_iter();
    Ok(problems.map(|problem| format!("{}, {}", problem.what, problem.key)).collect())
}

/// Takes damage into the report; what is left is a device that doesn't answer.
pub(crate) fn note(
    name: &str,
    done: Result<(), ReadError>,
    report: &mut Report,
) -> Result<(), ReadError> {
    match done {
        Ok(()) => {}
        // A file that was cut short.
        Err(ReadError::Medium(error @ MediumError::OutOfRange)) => {
            report.add(format!("{name} (can't be read)"), error.to_string(), Advice::Restore);
        }
        Err(ReadError::Damaged { what: PAGE, key }) => {
            report.add(format!("{name} (a page of the database is wrong)"), key, Advice::Restore);
        }
        Err(ReadError::Damaged { what, key }) => report.add(what, key, Advice::Restore),
        Err(ReadError::Engine(why)) => {
            report.add(format!("{name} (can't be read)"), why, Advice::Restore);
        }
        Err(error) => return Err(error),
    }
    Ok(())
}

/// Returns what was read, unless it is damaged, which is reported.
fn readable<T>(
    read: Result<T, Fault>,
    advice: Advice,
    report: &mut Report,
) -> Result<Option<T>, Fault> {
    unless_damaged(read, |what, key| report.add(what, key, advice))
}
