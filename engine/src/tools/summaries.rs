//! Summaries: what they cover and cost, and the exact turns under them.

use garret_core::id::{SessionId, TurnSeq};
use garret_storage::{Summary, SummaryId};

use super::answer::{Answer, Entry, date};
use super::call::{Call, Place};
use super::context::{Context, ToolError};
use super::turns::exact;

/// Describes a summary: what it covers, when that was, its sources, and what it costs to expand it.
pub(super) fn describe(
    context: &Context<'_>,
    call: &Call,
    id: u64,
    place: &Place,
) -> Result<Answer, ToolError> {
    let session = context.one(place)?;
    let Some(summary) = context.store.summary(session, SummaryId(id))? else {
        return none(context, call, session, id);
    };
    let cost = cost(context, session, &summary)?;
    let expand = Call::ExpandSummary { summary: id, from: None, place: place.clone() };
    let entry = Entry {
        id: summary.id.to_string(),
        about: about(&summary),
        text: summary.text,
        ..Entry::default()
    };
    let note = format!("Its exact turns have about {cost} tokens: {expand}");
    Ok(Answer { call: call.to_string(), entries: vec![entry], note, ..Answer::default() })
}

/// The exact turns under a summary, from one of them on.
pub(super) fn expand(
    context: &Context<'_>,
    call: &Call,
    id: u64,
    from: Option<TurnSeq>,
    place: &Place,
) -> Result<Answer, ToolError> {
    let session = context.one(place)?;
    let Some(summary) = context.store.summary(session, SummaryId(id))? else {
        return none(context, call, session, id);
    };
    let covered = summary.from..=summary.to;
    let from = from.unwrap_or(summary.from).max(summary.from);
    if !covered.contains(&from) {
        let first = covered.start();
        let last = covered.end();
        return Ok(Answer::note(call, format!("s{id} covers turns {first} to {last}.")));
    }
    let then = |turn| {
        Call::ExpandSummary { summary: id, from: Some(turn), place: place.clone() }.to_string()
    };
    let entries = exact(context, session, place, from..=summary.to, then)?;
    let note = if entries.is_empty() { "These turns were forgotten." } else { "" };
    Ok(Answer { entries, ..Answer::note(call, note) })
}

fn about(summary: &Summary) -> String {
    let Summary { depth, from, to, tokens, source_tokens, .. } = summary;
    let mut about = vec![
        format!("summary of turns {from} to {to}"),
        match summary.latest_ms {
            0 => "undated".to_owned(),
            latest => format!("{} to {}", date(summary.earliest_ms), date(latest)),
        },
    ];
    if summary.sources.is_empty() {
        about.push(format!("depth {depth}, made from the turns"));
    } else {
        let sources: Vec<_> = summary.sources.iter().map(SummaryId::to_string).collect();
        about.push(format!("depth {depth}, made from {}", sources.join(" ")));
    }
    about.extend(summary.parent.map(|parent| format!("part of {parent}")));
    about.push(format!("{tokens} tokens for {source_tokens}, {}", summary.method.as_str()));
    about.join(", ")
}

/// Tokens of all turns under a summary, as they were counted when its leaves were made.
fn cost(context: &Context<'_>, session: &SessionId, of: &Summary) -> Result<u64, ToolError> {
    let all = context.store.summaries(session)?;
    let leaves = all.iter().filter(|one| one.depth == 0 && one.from >= of.from && one.to <= of.to);
    Ok(leaves.map(|leaf| u64::from(leaf.source_tokens)).sum())
}

/// Says which summaries there are.
fn none(
    context: &Context<'_>,
    call: &Call,
    session: &SessionId,
    id: u64,
) -> Result<Answer, ToolError> {
    let all = context.store.summaries(session)?;
    let newest = all.iter().map(|summary| summary.id.0).max();
    Ok(Answer::note(
        call,
        match newest {
            None => "Nothing of this conversation was summed up yet.".to_owned(),
            Some(newest) => format!("There is no summary s{id}: the newest is s{newest}."),
        },
    ))
}
