//! The files themselves: pages of the database, and the journal.

use redb::ReadableDatabase as _;

use crate::files::backend::{Adapter, Link, Stage};
use crate::ground::database::{builder, contain, discard};
use crate::ground::error::Fault;
use crate::ground::table::{META, key};
use crate::journal::Unusable;
use crate::journal::op::Op;
use crate::open::{Open, is_new};
use crate::verify::report::{Advice, Report};

/// Reads every page of what the medium holds by now, without what waits in the journal. Nothing is
/// written: what a database wants to repair stays in memory and is dropped.
pub(crate) fn pages(open: &mut Open, report: &mut Report) -> Result<(), Fault> {
    let medium = open.link.medium();
    if is_new(&*medium).map_err(Fault::Medium)? {
        return Ok(());
    }
    let link = Link::new(medium.clone(), Stage::new(medium.len().map_err(Fault::Medium)?));
    let clean = contain(|| {
        let mut database = builder().create_with_backend(Adapter(link.clone()))?;
        let clean = database.check_integrity();
        discard(database);
        Ok(clean?)
    });
    link.cut();
    let wrong = "file of the records (a page is wrong)";
    match clean {
        Ok(true) => {}
        Ok(false) => report.add(wrong, "list of free pages", Advice::Restore),
        // The database that is in use isn't this one, and may well go on.
        Err(Fault::Corrupted(why) | Fault::Engine(why)) if link.failure().is_none() => {
            report.add(wrong, why, Advice::Restore);
        }
        Err(fault) => return Err(link.failure().map_or(fault, Fault::Medium)),
    }
    Ok(())
}

/// Tells whether the journal's file holds the writes that follow the records, and no others.
pub(crate) fn journal(open: &mut Open, report: &mut Report) -> Result<(), Fault> {
    let meta = open.database.begin_read()?.open_table(META)?;
    let folded = open.journal.last_folded();
    let stored = meta.get(key::JOURNAL)?;
    if stored.is_none_or(|bytes| bytes.value() != folded.to_bytes()) {
        report.add("table `meta` (not the last write)", "`journal`", Advice::Restore);
    }
    report.checked.pending = open.journal.pending();
    let (last, replay) = match open.journal.again() {
        Ok(read) => read,
        Err(Unusable::Medium(error)) => return Err(Fault::Medium(error)),
        Err(Unusable::OtherNamespace(found)) => {
            let what = format!("journal (of namespace `{}`)", found.escape_debug());
            report.add(what, "its header", Advice::Restore);
            return Ok(());
        }
        Err(Unusable::NewerFormat(version)) => {
            let what = format!("journal (of version {version})");
            report.add(what, "its header", Advice::Restore);
            return Ok(());
        }
        Err(Unusable::Refused(why)) => {
            report.add("journal (it can't be followed)", format!("it {why}"), Advice::Restore);
            return Ok(());
        }
    };
    if last != open.journal.last() {
        let key = format!("it ends with write {}, not {}", last.seq, open.journal.last().seq);
        report.add("journal (it isn't whole)", key, Advice::Restore);
    }
    for (at, payload) in replay.frames() {
        if Op::decode(payload).is_none() {
            let key = format!("write {}", at.seq);
            report.add("journal (a write that isn't known)", key, Advice::Restore);
        }
    }
    Ok(())
}
