//! Layout of a prompt, made of segments: special tokens by id, and runs of text between them.

use std::ops::Range;

use garret_core::token::Token;

use super::{ChatTemplate, Segment, Turn, common_prefix};
use crate::vocab::SpecialToken;

/// A part of a prompt that goes to the tokenizer, or past it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// A special token of the scaffolding.
    Special(Token),
    /// Text between two special tokens, to be tokenised in one go with special tokens off.
    Run(String),
    /// The place of the tokens kept for the turn with this index.
    Kept(usize),
}

/// A prompt, ready to be tokenised.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    /// Parts of the prompt.
    pub items: Vec<Item>,
    /// Numbers of items up to the end of each turn. An item that holds text of two turns belongs to
    /// the later one.
    pub ends: Vec<usize>,
}

/// A content in the whole text.
struct Span {
    range: Range<usize>,
    turn: usize,
    kept: bool,
}

/// A place where the text is cut.
enum Cut<'a> {
    Special(usize, &'a SpecialToken),
    Kept(usize, usize),
}

pub(super) struct Builder<'a> {
    template: &'a ChatTemplate,
    turns: &'a [Turn<'a>],
    text: String,
    spans: Vec<Span>,
    items: Vec<(Item, usize)>,
}

impl<'a> Builder<'a> {
    pub(super) fn new(
        template: &'a ChatTemplate,
        turns: &'a [Turn<'a>],
        segments: &[Segment<'_>],
    ) -> Self {
        let text = String::new();
        let spans = Vec::new();
        let items = Vec::new();
        let mut builder = Self { template, turns, text, spans, items };
        segments.iter().for_each(|segment| builder.append(segment));
        builder
    }

    pub(super) fn build(mut self) -> Layout {
        self.cut();
        self.begin();
        let bounds = self.bounds();
        let mut ends = Vec::with_capacity(bounds.len());
        let mut count = 0;
        for (turn, bound) in bounds.into_iter().enumerate() {
            while self.items.get(count).is_some_and(|(item, end)| {
                *end <= bound && !matches!(item, Item::Kept(owner) if *owner > turn)
            }) {
                count += 1;
            }
            ends.push(count);
        }
        Layout { items: self.items.into_iter().map(|(item, _)| item).collect(), ends }
    }

    fn append(&mut self, segment: &Segment<'_>) {
        match segment {
            Segment::Scaffold(text) => self.text.push_str(text),
            Segment::Content(turn, body) => {
                let kept = self.turns.get(*turn).is_some_and(|turn| turn.kept);
                if kept {
                    self.restore_header();
                }
                let start = self.text.len();
                if !kept {
                    self.text.push_str(body);
                }
                self.spans.push(Span { range: start..self.text.len(), turn: *turn, kept });
            }
        }
    }

    /// Puts what the model saw before it generated a reply in place of what history shows there.
    fn restore_header(&mut self) {
        let headers = &self.template.headers;
        let from = self.spans.last().map_or(0, |span| span.range.end);
        let gap = self.text.get(from..).unwrap_or_default();
        let shown = gap.strip_suffix(headers.shown.as_str()).map(str::len);
        if let Some(len) = shown.or_else(|| self.after_last(gap)) {
            self.text.truncate(from + len);
            self.text.push_str(&headers.asked);
        }
    }

    /// Returns where what belongs to the last content ends in `gap`, which begins after it.
    fn after_last(&self, gap: &str) -> Option<usize> {
        let turn = self.turns.get(self.spans.last()?.turn)?;
        let trailer = self.template.trailers.of(turn.role);
        let end = turn.content.get(turn.content.trim_end().len()..).unwrap_or_default();
        [common_prefix(gap, end).len(), 0]
            .into_iter()
            .find(|at| gap.get(*at..).is_some_and(|rest| rest.starts_with(trailer)))
            .map(|at| at + trailer.len())
    }

    /// Makes items of the text between all cuts.
    fn cut(&mut self) {
        let template = self.template;
        let mut cuts = Vec::new();
        let mut from = 0;
        for span in &self.spans {
            cut_scaffold(template, &self.text, from..span.range.start, &mut cuts);
            if span.kept {
                cuts.push(Cut::Kept(span.range.start, span.turn));
            }
            from = span.range.end;
        }
        cut_scaffold(template, &self.text, from..self.text.len(), &mut cuts);
        let mut position = 0;
        let mut strip = false;
        for cut in cuts {
            let (start, end, item) = match cut {
                Cut::Special(start, token) => {
                    (start, start + token.text.len(), Item::Special(token.id))
                }
                Cut::Kept(at, turn) => (at, at, Item::Kept(turn)),
            };
            let (left, right) = match cut {
                Cut::Special(_, token) => (token.strips_left, token.strips_right),
                Cut::Kept(..) => (false, false),
            };
            self.push_run(position..start, strip, left);
            self.items.push((item, end));
            (position, strip) = (end, right);
        }
        self.push_run(position..self.text.len(), strip, false);
    }

    fn push_run(&mut self, range: Range<usize>, strip_left: bool, strip_right: bool) {
        let end = range.end;
        let mut run = self.text.get(range).unwrap_or_default();
        if strip_left {
            run = run.trim_start_matches(is_c_space);
        }
        if strip_right {
            run = run.trim_end_matches(is_c_space);
        }
        if !run.is_empty() {
            self.items.push((Item::Run(run.to_owned()), end));
        }
    }

    /// Puts the token in front that every prompt of this model begins with, unless it is there.
    fn begin(&mut self) {
        let Some((bos, _)) = self.template.bos.as_ref().filter(|_| self.template.add_bos) else {
            return;
        };
        let bos = Item::Special(*bos);
        if self.items.first().is_none_or(|(item, _)| *item != bos) {
            self.items.insert(0, (bos, 0));
        }
    }

    /// Byte position where each turn ends.
    fn bounds(&self) -> Vec<usize> {
        let mut bounds = Vec::with_capacity(self.turns.len());
        let mut last = 0;
        for (index, turn) in self.turns.iter().enumerate() {
            let merged = self.template.is_merged(self.turns, index);
            let trailer = if merged { "" } else { self.template.trailers.of(turn.role) };
            let next = self.next_start(index);
            let own = self.spans.iter().rev();
            let own = own.filter(|span| span.turn == index && span.range.end <= next);
            let end = match own.map(|span| span.range.end).next() {
                Some(end) => end + self.trailer_len(end..next, trailer),
                None if merged => last,
                None => self.after_trailer(last..next, trailer).unwrap_or(last),
            };
            last = end.max(last);
            bounds.push(last);
        }
        bounds
    }

    /// Returns where the first content after turn `index` begins.
    fn next_start(&self, index: usize) -> usize {
        let later = self.spans.iter().find(|span| span.turn > index);
        later.map_or(self.text.len(), |span| span.range.start)
    }

    fn trailer_len(&self, gap: Range<usize>, trailer: &str) -> usize {
        common_prefix(self.text.get(gap).unwrap_or_default(), trailer).len()
    }

    /// End of the first `trailer` in `gap`: how a turn without a placeholder is told.
    fn after_trailer(&self, gap: Range<usize>, trailer: &str) -> Option<usize> {
        let at = self.text.get(gap.clone())?.find(trailer).filter(|_| !trailer.is_empty())?;
        Some(gap.start + at + trailer.len())
    }
}

/// Finds the special tokens in one stretch of scaffolding.
fn cut_scaffold<'a>(
    template: &'a ChatTemplate,
    text: &str,
    range: Range<usize>,
    cuts: &mut Vec<Cut<'a>>,
) {
    let scaffold = text.get(range.clone()).unwrap_or_default();
    let found = template.cuts.find(scaffold).into_iter();
    cuts.extend(found.map(|spelled| Cut::Special(range.start + spelled.start, spelled.token)));
}

/// White space as `isspace` of C sees it, which is what llama.cpp strips.
fn is_c_space(c: char) -> bool {
    matches!(c, ' ' | '\t'..='\r')
}
