//! Turns as they were said: `expand`, `timeline`, and `describe` for one of them.

use garret_core::id::{SessionId, TurnSeq};
use garret_storage::{Summary, TurnView};

use super::answer::{Answer, Entry, PartialText, date};
use super::call::{Call, Place};
use super::context::{Context, ToolError};

/// The exact words of a turn, without the first `from` characters.
pub(super) fn expand_turn(
    context: &Context<'_>,
    call: &Call,
    turn: TurnSeq,
    from: usize,
    place: &Place,
) -> Result<Answer, ToolError> {
    let session = context.one(place)?;
    let entries = context.store.with_turns(session, turn.max(1), |views| {
        let view = views.first().filter(|view| view.seq == turn)?;
        let spoken = NamedTurn { session, place, view, then: None };
        Some((spoken.entries(from), spoken.length(), view.reply.is_none()))
    })?;
    let Some((entries, length, open)) = entries else {
        return no_turn(context, call, session, turn);
    };
    let mut answer = Answer { call: call.to_string(), entries, ..Answer::default() };
    if answer.entries.is_empty() {
        answer.note = format!("Turn {turn} has only {length} characters.");
    } else if open && context.turn != Some(turn) {
        answer.note = "The turn has no reply.".to_owned();
    }
    Ok(answer)
}

/// The exact turns of `range` from `from` on. `then` writes the call that begins with a turn.
pub(super) fn exact(
    context: &Context<'_>,
    session: &SessionId,
    place: &Place,
    range: std::ops::RangeInclusive<TurnSeq>,
    then: impl Fn(TurnSeq) -> String,
) -> Result<Vec<Entry>, ToolError> {
    let from = *range.start();
    let to = *range.end();
    Ok(context.store.with_turns(session, from.max(1), |views| {
        let views = views.iter().take_while(|view| view.seq <= to);
        let entries = views.flat_map(|view| {
            let after = (view.seq < to).then(|| then(view.seq + 1));
            let mut entries = NamedTurn { session, place, view, then: after }.entries(0);
            if let Some(first) = entries.first_mut() {
                first.resume = then(view.seq);
            }
            entries
        });
        entries.collect()
    })?)
}

/// A turn and how it is named.
struct NamedTurn<'a> {
    session: &'a SessionId,
    place: &'a Place,
    view: &'a TurnView<'a>,
    /// The call that gives what comes after it.
    then: Option<String>,
}

impl NamedTurn<'_> {
    /// Characters of message and reply.
    fn length(&self) -> usize {
        let reply = self.view.reply.map_or(0, |reply| reply.text.chars().count());
        self.view.user.chars().count() + reply
    }

    /// Message and reply without the first `from` characters of both together.
    fn entries(&self, from: usize) -> Vec<Entry> {
        let view = self.view;
        let user = (view.speaker.unwrap_or("user"), view.user, view.accepted_ms);
        let reply = view.reply.map(|reply| ("assistant", reply.text, reply.finished_ms));
        let mut base = 0;
        let mut entries = Vec::new();
        for (at, (source, text, at_ms)) in [user].into_iter().chain(reply).enumerate() {
            let length = text.chars().count();
            let skip = from.saturating_sub(base).min(length);
            if skip < length || (length == 0 && from == 0) {
                let mut entry = self.entry(source, text, skip, base + skip);
                let who = if at == 0 { "user" } else { "assistant" };
                entry.id = format!("{}/{}/{who}", self.session, view.seq);
                entry.date = Some(date(at_ms));
                entries.push(entry);
            }
            base += length;
        }
        entries
    }

    fn entry(&self, source: &str, text: &str, skip: usize, base: usize) -> Entry {
        let place = self.place.to_string();
        let cut = PartialText { turn: self.view.seq, place, base, then: self.then.clone() };
        Entry {
            text: text.chars().skip(skip).collect(),
            cut_before: skip > 0,
            resume: cut.resume(0),
            cut: Some(cut),
            ..Entry::said(self.session, self.view.seq, source)
        }
    }
}

/// The `count` newest turns before `before`, the newest last, each with how it begins.
pub(super) fn timeline(
    context: &Context<'_>,
    call: &Call,
    count: usize,
    before: Option<TurnSeq>,
    place: &Place,
) -> Result<Answer, ToolError> {
    let session = context.one(place)?;
    let (entries, older) = context.store.with_turns(session, 1, |views| {
        let earlier = views.iter().filter(|view| {
            before.is_none_or(|before| view.seq < before) && !context.is_current(session, view.seq)
        });
        let earlier: Vec<_> = earlier.collect();
        let older = earlier.len().saturating_sub(count);
        let shown = earlier.get(older..).unwrap_or_default();
        let entries = shown.iter().map(|view| {
            let resume = Call::Timeline { count, before: Some(view.seq), place: place.clone() };
            Entry { resume: resume.to_string(), ..begun(session, view) }
        });
        (entries.collect::<Vec<_>>(), older)
    })?;
    let Some(first) = entries.first() else {
        return Ok(Answer::note(call, "Nothing was said before that."));
    };
    let next = (older > 0).then(|| first.resume.clone());
    Ok(Answer { call: call.to_string(), entries, next, newest: true, ..Answer::default() })
}

/// A turn with how its message and its reply begin.
fn begun(session: &SessionId, view: &TurnView<'_>) -> Entry {
    let mut entry = Entry::said(session, view.seq, view.speaker.unwrap_or("user"));
    entry.date = Some(date(view.accepted_ms));
    entry.id = format!("{session}/{}", view.seq);
    entry.text = beginning(view.user);
    match view.reply {
        Some(reply) => entry.text.extend(["\nassistant: ", &*beginning(reply.text)]),
        None => entry.about = "no reply".to_owned(),
    }
    entry
}

/// The first words of a text, on one line.
fn beginning(text: &str) -> String {
    let words: Vec<_> = text.split_whitespace().take(BEGINNING).collect();
    let line = words.join(" ");
    let short: String = line.chars().take(BEGINNING).collect();
    let cut = short.len() < line.len() || words.len() == BEGINNING;
    if cut { short + "..." } else { short }
}

/// Describes a turn.
pub(super) fn describe_turn(
    context: &Context<'_>,
    call: &Call,
    turn: TurnSeq,
    place: &Place,
) -> Result<Answer, ToolError> {
    let session = context.one(place)?;
    let entry = context.store.with_turns(session, turn.max(1), |views| {
        let view = views.first().filter(|view| view.seq == turn)?;
        let reply = match (view.reply, view.reply_damaged) {
            (Some(reply), _) => {
                let characters = reply.text.chars().count();
                format!("reply of {characters} characters ({})", reply.finish.as_str())
            }
            (None, true) => "its reply is damaged".to_owned(),
            (None, false) => "no reply".to_owned(),
        };
        let mut entry = Entry::said(session, turn, view.speaker.unwrap_or("user"));
        entry.id = format!("{session}/{turn}");
        entry.date = Some(date(view.accepted_ms));
        entry.about = format!("message of {} characters, {reply}", view.user.chars().count());
        Some(entry)
    })?;
    let Some(mut entry) = entry else { return no_turn(context, call, session, turn) };
    let summaries = context.store.summaries(session)?;
    let covers = |one: &&Summary| one.depth == 0 && (one.from..=one.to).contains(&turn);
    if let Some(leaf) = summaries.iter().find(covers) {
        entry.about.push_str(&format!(", summed up by {}", leaf.id));
    }
    let note = format!("Its words: {}", Call::ExpandTurn { turn, from: 0, place: place.clone() });
    Ok(Answer { call: call.to_string(), entries: vec![entry], note, ..Answer::default() })
}

/// Says which turns there are.
fn no_turn(
    context: &Context<'_>,
    call: &Call,
    session: &SessionId,
    turn: TurnSeq,
) -> Result<Answer, ToolError> {
    let turns = context.store.session(session)?.map_or(0, |info| info.turns);
    let what = match turns {
        _ if (1..=turns).contains(&turn) => "was forgotten or can't be read",
        _ => "isn't there",
    };
    Ok(Answer::note(call, format!("Turn {turn} {what}: the conversation has turns 1 to {turns}.")))
}

/// Most words and characters of a text in a timeline.
const BEGINNING: usize = 160;
