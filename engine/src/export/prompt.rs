//! The prompt of a turn, told from what is stored.

use garret_core::id::TurnSeq;
use garret_core::shorten::ShownText;
use garret_storage::TurnView;
use serde::Serialize;

use crate::prompt::history::{unanswered, words};
use crate::receipt::ReceiptReport;
use crate::trace::{Around, Cut, Shape, Stretch, Trace};

/// The prompt of a turn on the wire.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Prompt {
    /// True when the segments are the very text that the model was given.
    pub(super) exact: bool,
    pub(super) segments: Vec<Segment>,
}

/// A part of a prompt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Segment {
    pub(super) block: String,
    pub(super) by: &'static str,
    pub(super) turn: Option<TurnSeq>,
    pub(super) text: String,
}

/// A text of the prompt and what it is made of.
struct Source {
    text: String,
    parts: Vec<Label>,
}

/// A part of a text: whose it is, and how many bytes it has.
#[derive(Clone)]
struct Label {
    block: String,
    by: &'static str,
    turn: Option<TurnSeq>,
    bytes: usize,
}

impl AsRef<str> for Source {
    fn as_ref(&self) -> &str {
        &self.text
    }
}

impl Prompt {
    /// Makes the prompt of the last of `views`, which are all of its turns, under a system message.
    pub(super) fn read(
        trace: &Trace,
        receipt: Option<&ReceiptReport>,
        system: Option<&str>,
        views: &[TurnView<'_>],
    ) -> Self {
        let none = Shape::default();
        let shape = trace.shape.as_ref().unwrap_or(&none);
        let mut sources = Vec::new();
        sources
            .extend(system.filter(|text| !text.is_empty()).map(|text| instructions(text, trace)));
        let Some((newest, history)) = views.split_last() else {
            return Self { exact: false, segments: Vec::new() };
        };
        sources.extend(history.iter().flat_map(|view| turn(view, shape)));
        sources.push(message(newest, trace, shape, receipt));
        let stretches = trace.shape.as_ref().and_then(|shape| shape.frames.stretches(&sources));
        let exact = system.is_some() && stretches.is_some();
        let whole = || {
            let texts = sources.iter().enumerate();
            texts.map(|(i, source)| Stretch::Text(i, &source.text)).collect()
        };
        let stretches = stretches.unwrap_or_else(whole);
        let segments = stretches.iter().flat_map(|stretch| segments(stretch, &sources));
        Self { exact, segments: segments.filter(|segment| !segment.text.is_empty()).collect() }
    }
}

/// Returns the system message with its parts.
fn instructions(text: &str, trace: &Trace) -> Source {
    let instructions = trace.shape.as_ref().map_or(text.len(), |shape| shape.instructions);
    let label = |block: &str, bytes| Label { block: block.into(), by: GARRET, turn: None, bytes };
    let tracked = text.len().saturating_sub(instructions);
    let parts = vec![label("system", instructions), label("tracked", tracked)];
    Source { text: text.to_owned(), parts }
}

/// Returns the two messages of an earlier turn with their parts.
fn turn(view: &TurnView<'_>, shape: &Shape) -> [Source; 2] {
    let label = |by, bytes| Label { block: "history".into(), by, turn: Some(view.seq), bytes };
    let source = |by, text: String| Source { parts: vec![label(by, text.len())], text };
    let day = shape.days.iter().find(|dated| dated.turn == view.seq);
    let day = day.map(|dated| dated.day.as_str()).unwrap_or_default();
    let said = shown(view, &shape.cuts);
    let parts = vec![label(GARRET, day.len()), label("user", said.len())];
    let user = Source { text: [day, &said].concat(), parts };
    let reply = view.reply.as_ref().filter(|reply| !reply.text.trim().is_empty());
    let reply = match reply {
        Some(reply) => source("assistant", reply.text.to_owned()),
        None => source(GARRET, unanswered(view).to_owned()),
    };
    [user, reply]
}

/// Returns the newest message with its parts.
fn message(
    view: &TurnView<'_>,
    trace: &Trace,
    shape: &Shape,
    receipt: Option<&ReceiptReport>,
) -> Source {
    let user = shown(view, &shape.cuts);
    let blocks = receipt.map(|receipt| receipt.blocks.as_slice()).unwrap_or_default();
    let names = blocks.iter().map(|block| block.name.as_str());
    let mut names = names.skip_while(|name| *name != "history").skip(1);
    let label = |bytes: &usize| {
        let name = names.next().unwrap_or("volatile");
        Label { block: name.into(), by: GARRET, turn: None, bytes: *bytes }
    };
    let known: usize = shape.volatile.iter().sum();
    let rest = trace.volatile.len().saturating_sub(known);
    let mut parts: Vec<_> = shape.volatile.iter().map(label).collect();
    parts.push(Label { block: "volatile".into(), by: GARRET, turn: None, bytes: rest });
    let turn = Some(view.seq);
    let bytes = user.len();
    parts.push(Label { block: "message".into(), by: "user", turn, bytes });
    Source { text: [&*trace.volatile, &user].concat(), parts }
}

/// Returns a message as the prompt shows it.
fn shown(view: &TurnView<'_>, cuts: &[Cut]) -> String {
    let shown = match cuts.iter().find(|cut| cut.turn == view.seq) {
        Some(cut) => ShownText::cut(words(view), cut.head, cut.tail),
        None => ShownText::whole(words(view)),
    };
    shown.by(view.speaker.unwrap_or_default()).content().parts().collect()
}

/// Returns the segments of a stretch: of a text one for each of its parts.
fn segments(stretch: &Stretch<'_>, sources: &[Source]) -> Vec<Segment> {
    match stretch {
        Stretch::Template(at, bytes) => {
            let block = sources.get(*at).and_then(|source| source.parts.first());
            let block = block.map_or("message", |label| label.block.as_str()).to_owned();
            let text = String::from_utf8_lossy(bytes).into_owned();
            vec![Segment { block, by: TEMPLATE, turn: None, text }]
        }
        Stretch::Text(at, shown) => {
            let Some(source) = sources.get(*at) else { return Vec::new() };
            let text = &source.text;
            // White space at its ends may be missing.
            let trimmed = text.len() - text.trim_start().len();
            let start = if shown.len() == text.len() { 0 } else { trimmed };
            let end = start + shown.len();
            let mut from = 0;
            let parts = source.parts.iter().map(|label| {
                let to = from + label.bytes;
                let first = from.clamp(start, end);
                let last = to.clamp(start, end);
                from = to;
                let text = text.get(first..last).unwrap_or_default().to_owned();
                let Label { block, by, turn, .. } = label.clone();
                Segment { block, by, turn, text }
            });
            parts.collect()
        }
    }
}

/// Returns the message with a tool's result, and what the template wrote around it.
pub(super) fn result(around: &Around, text: &str) -> Vec<Segment> {
    let written = |bytes| String::from_utf8_lossy(bytes).into_owned();
    let parts = [
        (TEMPLATE, written(&around.before)),
        (GARRET, text.to_owned()),
        (TEMPLATE, written(&around.after)),
    ];
    let parts = parts.into_iter().filter(|(_, text)| !text.is_empty());
    let segment = |(by, text)| Segment { block: "result".into(), by, turn: None, text };
    parts.map(segment).collect()
}

const TEMPLATE: &str = "template";
const GARRET: &str = "garret";
