//! The search for a pattern, turn by turn, the newest first.

use garret_core::id::{SessionId, TurnSeq};
use garret_storage::TurnView;
use regex_lite::Regex;

use super::answer::{Answer, Entry, date};
use super::call::{Call, Page, Place};
use super::context::{Context, ToolError};

/// The turns to read, and the page of finds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Range<'a> {
    pub(super) place: &'a Place,
    pub(super) page: Page,
    /// Turns before this one alone.
    pub(super) before: Option<TurnSeq>,
}

/// Finds of one reading.
#[derive(Debug, Default)]
pub(super) struct PatternFinds {
    pub(super) entries: Vec<Entry>,
    /// Finds that were passed over.
    skipped: usize,
    /// True when there is at least one more find.
    more: bool,
    /// The turn before which nothing was read any more, because enough was.
    unread: Option<(SessionId, TurnSeq)>,
    bytes: usize,
}

/// Finds where `regex` matches.
pub(super) fn regex(
    context: &Context<'_>,
    call: &Call,
    regex: &Regex,
    range: &Range<'_>,
) -> Result<Answer, ToolError> {
    let found = scan(context, range, |text| {
        let found = regex.find(text)?;
        Some((text.get(..found.start())?.chars().count(), found.as_str().chars().count()))
    })?;
    let PatternFinds { entries, skipped, more, unread, .. } = found;
    let mut answer = Answer { call: call.to_string(), ..Answer::default() };
    if let Some((session, turn)) = unread {
        answer.note = format!("Turns before turn {turn} of {session} were not read yet.");
        let mut on = call.clone();
        if let Call::Grep { place, before, page, .. } = &mut on {
            (*place, *before, page.skip) = (Place::Session(session), Some(turn), 0);
        }
        answer.next = Some(on.to_string());
    } else if entries.is_empty() {
        answer.note = match skipped {
            0 => "Nothing that was said matches.".to_owned(),
            count => format!("There are only {count}."),
        };
    }
    if more {
        answer.next = Some(call.skipping(range.page.skip.saturating_add(range.page.k)));
    }
    let at = range.page.skip..;
    answer.entries =
        at.zip(entries).map(|(at, entry)| Entry { resume: call.skipping(at), ..entry }).collect();
    Ok(answer)
}

/// Reads turns, the newest first, and takes each text in which `find` finds something: the number
/// of characters before it and in it.
pub(super) fn scan(
    context: &Context<'_>,
    range: &Range<'_>,
    mut find: impl FnMut(&str) -> Option<(usize, usize)>,
) -> Result<PatternFinds, ToolError> {
    let sessions = match context.place(range.place)? {
        Some(session) => vec![session.clone()],
        None => context.store.sessions()?.into_iter().map(|info| info.id).collect(),
    };
    let mut scanned = PatternFinds::default();
    for session in &sessions {
        context.store.with_turns(session, 1, |views| {
            let earlier = views.iter().rev().filter(|view| {
                range.before.is_none_or(|before| view.seq < before)
                    && !context.is_current(session, view.seq)
            });
            for view in earlier {
                if scanned.is_enough(session, view, range.page) {
                    return;
                }
                scanned.read(session, view, range.page, &mut find);
            }
        })?;
        if scanned.more || scanned.unread.is_some() {
            break;
        }
    }
    Ok(scanned)
}

impl PatternFinds {
    /// Returns true when nothing more is to be read. With [`READ_BYTES`] read, `view` is where to
    /// go on.
    fn is_enough(&mut self, session: &SessionId, view: &TurnView<'_>, page: Page) -> bool {
        let reply = view.reply.map_or(0, |reply| reply.text.len());
        let bytes = self.bytes.saturating_add(view.user.len()).saturating_add(reply);
        if self.bytes > 0 && bytes > READ_BYTES && !self.more {
            self.unread = Some((session.clone(), view.seq.saturating_add(1)));
        }
        self.bytes = bytes;
        self.more || self.unread.is_some() || self.entries.len() > page.k
    }

    fn read(
        &mut self,
        session: &SessionId,
        view: &TurnView<'_>,
        page: Page,
        find: &mut impl FnMut(&str) -> Option<(usize, usize)>,
    ) {
        let reply = view.reply.map(|reply| ("assistant", reply.text, reply.finished_ms));
        let user = (view.speaker.unwrap_or("user"), view.user, view.accepted_ms);
        for (source, text, at_ms) in reply.into_iter().chain([user]) {
            let Some((before, length)) = find(text) else { continue };
            if self.skipped < page.skip {
                self.skipped += 1;
            } else if self.entries.len() == page.k {
                self.more = true;
            } else {
                let mut entry = Entry::said(session, view.seq, source);
                if source == "assistant" && view.speaker == Some(source) {
                    entry.id = format!("{session}/{}/user", view.seq);
                }
                entry.date = Some(date(at_ms));
                around(text, before, length, &mut entry);
                self.entries.push(entry);
            }
        }
    }
}

/// Puts the characters around a find into `entry`.
fn around(text: &str, before: usize, length: usize, entry: &mut Entry) {
    let from = before.saturating_sub(AROUND);
    let to = before.saturating_add(length.min(AROUND)).saturating_add(AROUND);
    entry.text = text.chars().skip(from).take(to - from).collect();
    entry.cut_before = from > 0;
    entry.cut_after = text.chars().nth(to).is_some();
}

/// Bytes of turns that one call reads.
pub(super) const READ_BYTES: usize = 4 << 20;
/// Characters shown before and behind a find.
const AROUND: usize = 120;
