//! Frames: a prompt without the texts that are stored anyway, which is what the template wrote around
//! them.
//!
//! ```
//! use garret::trace::Frames;
//!
//! let texts = ["Be kind.", "Hello"];
//! let prompt = b"<s>Be kind.</s><u>Hello</u><a>";
//! let frames = Frames::of(prompt, &[15, 27], &texts);
//! assert_eq!(frames.prompt(&texts).unwrap(), prompt);
//! ```
//!
//! The prompt is told back byte for byte from the same texts, whatever the template does: a text that
//! it changed is kept as part of what it wrote. That the texts are the same is checked.
//!
//! A template repeats itself, so a conversation of any length takes some two hundred bytes; and it
//! repeats itself from turn to turn, so most of that is kept once ([`Frames::relative_to`]), and with
//! it what a template writes of tools.

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// The bytes of a prompt around its texts, of which most are stored once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frames {
    /// The different pieces.
    pub pieces: Vec<Piece>,
    /// The places of the pieces that stand for each text, in order.
    pub runs: Vec<Run>,
    /// The bytes after the last text.
    pub tail: Vec<u8>,
    /// The first bytes of the SHA-256 of the prompt.
    pub check: [u8; 8],
}

/// The bytes before a text, and how the text follows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Piece {
    /// The bytes that the template wrote.
    pub before: Vec<u8>,
    /// The form in which the text follows.
    pub shows: Shows,
}

/// The form in which a text stands in a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Shows {
    /// The text as it is.
    Whole,
    /// The text without white space at its ends.
    Trimmed,
    /// The text is changed or missing; the bytes that stand for it belong to the next piece.
    Nothing,
    /// The piece at this place of another list says both.
    AsIn(u32),
}

/// Pieces that follow each other again and again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// Places in [`Frames::pieces`].
    pub pieces: Vec<u32>,
    /// Number of repetitions.
    pub times: u32,
}

/// A part of a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stretch<'a> {
    /// Written by the template; of the text of this index, or, behind the last one, of none.
    Template(usize, &'a [u8]),
    /// The text of this index.
    Text(usize, &'a str),
}

impl Stretch<'_> {
    /// Returns the bytes of the part.
    pub const fn bytes(&self) -> &[u8] {
        match self {
            Self::Template(_, bytes) => bytes,
            Self::Text(_, text) => text.as_bytes(),
        }
    }
}

impl Frames {
    /// Takes `texts` out of `prompt`, in which the `i`th message ends before byte `ends[i]`. Of a text
    /// that stands in its message twice, since the template writes the same, the first is taken.
    pub fn of(prompt: &[u8], ends: &[usize], texts: &[impl AsRef<str>]) -> Self {
        Self::between(prompt, ends, texts, || None)
    }

    /// Takes `texts` out of `prompt` like [`Frames::of`]. Where a text stands at two places, `gaps` tells
    /// which is the text's: the bytes before the first text, between two of them and after the last.
    pub fn between(
        prompt: &[u8],
        ends: &[usize],
        texts: &[impl AsRef<str>],
        gaps: impl FnOnce() -> Option<Vec<Vec<u8>>>,
    ) -> Self {
        let mut frames = Self { check: check(prompt), ..Self::default() };
        let mut order = Vec::with_capacity(texts.len());
        let mut from = 0;
        let mut untold = Some(gaps);
        let mut told = Vec::new();
        for (i, text) in texts.iter().enumerate() {
            let text = text.as_ref();
            let rest = message(prompt, from, ends.get(i..).unwrap_or_default(), text);
            let mut placed = None;
            if is_ambiguous(rest, text) {
                told = untold.take().map_or(told, |gaps| gaps().unwrap_or_default());
                placed = told.get(i).and_then(|gap| frames.placed(rest, text, gap));
            }
            let (piece, length) = placed.unwrap_or_else(|| frames.piece(rest, text));
            order.push(piece);
            from += length;
        }
        frames.tail = prompt.get(from..).unwrap_or_default().to_vec();
        frames.runs = runs(&order);
        frames
    }

    /// Returns the place of the piece with which `rest` begins, if that is `gap` and `text` after it, and its
    /// length with `text`.
    fn placed(&mut self, rest: &[u8], text: &str, gap: &[u8]) -> Option<(u32, usize)> {
        let behind = rest.strip_prefix(gap)?;
        let shown = [Shows::Whole, Shows::Trimmed].into_iter().find_map(|shows| {
            let shown = shows.of(text)?;
            behind.starts_with(shown.as_bytes()).then_some((shows, shown.len()))
        });
        let (shows, shown) = shown?;
        let at = self.place(Piece { before: gap.to_vec(), shows });
        Some((u32::try_from(at).unwrap_or(u32::MAX), gap.len() + shown))
    }

    /// Returns the place of a piece, which is added if it isn't there.
    fn place(&mut self, piece: Piece) -> usize {
        let same = self.pieces.iter().position(|other| *other == piece);
        same.unwrap_or_else(|| {
            self.pieces.push(piece);
            self.pieces.len() - 1
        })
    }

    /// Leaves out the pieces that are in `others`, which are whole, and names their places.
    pub fn relative_to(&mut self, others: &[Piece]) {
        for piece in &mut self.pieces {
            let same = others.iter().position(|other| other == piece);
            if let Some(at) = same.and_then(|at| u32::try_from(at).ok()) {
                *piece = Piece { before: Vec::new(), shows: Shows::AsIn(at) };
            }
        }
    }

    /// Puts in again what [`Frames::relative_to`] left out, from the same `others`.
    pub fn complete(&mut self, others: &[Piece]) {
        for piece in &mut self.pieces {
            let Shows::AsIn(at) = piece.shows else { continue };
            let other = usize::try_from(at).ok().and_then(|at| others.get(at));
            *piece = other.unwrap_or(piece).clone();
        }
    }

    /// Returns the place of the piece with which `rest` begins, and its length with `text`.
    fn piece(&mut self, rest: &[u8], text: &str) -> (u32, usize) {
        let known = self.pieces.iter().enumerate().find_map(|(at, piece)| {
            let shown = piece.shows.of(text)?.as_bytes();
            let fits = rest.strip_prefix(&*piece.before)?.starts_with(shown);
            fits.then_some((at, piece.before.len() + shown.len()))
        });
        let (at, length) = known.unwrap_or_else(|| {
            let found = [Shows::Whole, Shows::Trimmed].into_iter().find_map(|shows| {
                let shown = shows.of(text)?.as_bytes();
                Some((find(rest, shown)?, shows, shown.len()))
            });
            let (before, shows, shown) = found.unwrap_or((0, Shows::Nothing, 0));
            let piece = Piece { before: rest.get(..before).unwrap_or_default().to_vec(), shows };
            (self.place(piece), before + shown)
        });
        (u32::try_from(at).unwrap_or(u32::MAX), length)
    }

    /// Returns the parts of the prompt of `texts`, in order; `None` when there are more or fewer of them than
    /// there were, or other ones.
    pub fn stretches<'a>(&'a self, texts: &'a [impl AsRef<str>]) -> Option<Vec<Stretch<'a>>> {
        let order = self.runs.iter().flat_map(|run| {
            let times = usize::try_from(run.times).unwrap_or(usize::MAX);
            std::iter::repeat_n(&run.pieces, times).flatten()
        });
        let mut order = order.map(|at| self.pieces.get(usize::try_from(*at).ok()?));
        let mut parts = Vec::new();
        let mut hash = Sha256::new();
        for (i, text) in texts.iter().enumerate() {
            let piece = order.next()??;
            parts.push(Stretch::Template(i, &piece.before));
            parts.extend(piece.shows.of(text.as_ref()).map(|shown| Stretch::Text(i, shown)));
        }
        parts.push(Stretch::Template(texts.len(), &self.tail));
        parts.retain(|part| !part.bytes().is_empty());
        parts.iter().for_each(|part| hash.update(part.bytes()));
        let same = hash.finalize().starts_with(&self.check);
        (order.next().is_none() && same).then_some(parts)
    }

    /// Returns the prompt of `texts`; `None` when they aren't those that the frames were made of.
    pub fn prompt(&self, texts: &[impl AsRef<str>]) -> Option<Vec<u8>> {
        let parts = self.stretches(texts)?;
        Some(parts.iter().flat_map(Stretch::bytes).copied().collect())
    }
}

impl Shows {
    /// Returns the part of a text that is shown.
    fn of(self, text: &str) -> Option<&str> {
        match self {
            Self::Whole => Some(text),
            Self::Trimmed => Some(text.trim()),
            Self::Nothing | Self::AsIn(_) => None,
        }
    }
}

/// Returns the part of a prompt from byte `from` on in which the message with `text` ends. A message that the
/// template shows in the next one ends where it begins; one whose end is white space may, by `ends`, end
/// before it.
fn message<'p>(prompt: &'p [u8], from: usize, ends: &[usize], text: &str) -> &'p [u8] {
    let later = ends.iter().copied().filter(|end| *end > from).chain([prompt.len()]);
    let mut parts = later.take(2).map(|end| prompt.get(from..end).unwrap_or_default());
    let first = parts.next().unwrap_or_default();
    let has = |part: &[u8]| find(part, text.trim().as_bytes()).is_some();
    if has(first) { first } else { parts.find(|part| has(part)).unwrap_or(first) }
}

/// Returns whether `text` stands in a message at two places.
fn is_ambiguous(message: &[u8], text: &str) -> bool {
    let places = |shown: &str| {
        let windows = message.len().checked_sub(shown.len()).map_or(0..0, |last| 0..last + 1);
        let at = |at: &usize| message.get(*at..).is_some_and(|it| it.starts_with(shown.as_bytes()));
        windows.filter(at).take(2).count()
    };
    let whole = places(text);
    whole > 1 || (whole == 0 && places(text.trim()) > 1)
}

/// Returns where `part` begins in `whole`.
pub(crate) fn find(whole: &[u8], part: &[u8]) -> Option<usize> {
    let last = whole.len().checked_sub(part.len())?;
    (0..=last).find(|at| whole.get(*at..).is_some_and(|rest| rest.starts_with(part)))
}

fn check(prompt: &[u8]) -> [u8; 8] {
    let hash = Sha256::digest(prompt);
    std::array::from_fn(|at| hash.get(at).copied().unwrap_or_default())
}

/// Returns the same order in fewer numbers: pairs that are repeated, such as a question's and an answer's.
fn runs(order: &[u32]) -> Vec<Run> {
    let mut runs = Vec::new();
    let mut rest = order;
    while let Some(first) = rest.first() {
        let pair = rest.get(..2).unwrap_or(rest);
        let times = rest.chunks_exact(2).take_while(|next| *next == pair).count();
        let (pieces, times) = if times > 1 { (pair, times) } else { (&[*first][..], 1) };
        let length = pieces.len() * times;
        runs.push(Run { pieces: pieces.to_vec(), times: u32::try_from(times).unwrap_or(u32::MAX) });
        rest = rest.get(length..).unwrap_or_default();
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A conversation as a template shows it, and where its messages end.
    fn rendered(texts: &[String], trim: bool) -> (Vec<u8>, Vec<usize>) {
        let (mut prompt, mut ends) = (b"<s>".to_vec(), Vec::new());
        for (i, text) in texts.iter().enumerate() {
            let text = if trim { text.trim() } else { text };
            let role = if i % 2 == 0 { "user" } else { "assistant" };
            prompt.extend_from_slice(format!("<{role}>{text}</{role}>\n").as_bytes());
            ends.push(prompt.len());
        }
        prompt.extend_from_slice(b"<assistant>");
        (prompt, ends)
    }

    #[test]
    fn a_long_conversation_takes_few_bytes() {
        let texts: Vec<String> = (0..401).map(|n| format!("text {n}")).collect();
        let (prompt, ends) = rendered(&texts, false);
        let frames = Frames::of(&prompt, &ends, &texts);
        assert_eq!(frames.prompt(&texts).unwrap(), prompt);
        let bytes = postcard::to_allocvec(&frames).unwrap();
        assert!(bytes.len() < 120, "{} bytes", bytes.len());
    }

    #[test]
    fn a_text_that_is_shown_in_the_next_message_is_found_there() {
        let texts = ["Be kind.", "Hello"];
        let prompt = b"<u>Be kind.\n\nHello</u><a>";
        let frames = Frames::of(prompt, &[0, 22], &texts);
        assert_eq!(frames.prompt(&texts).unwrap(), prompt);
        assert!(frames.pieces.iter().all(|piece| piece.shows == Shows::Whole));
    }

    #[test]
    fn a_text_is_found_behind_the_end_that_its_message_is_said_to_have() {
        let texts = ["Hello", "Well? "];
        let prompt = b"<u>Hello</u><u>Well? </u><a>";
        let frames = Frames::of(prompt, &[12, 15], &texts);
        assert!(frames.pieces.iter().all(|piece| piece.shows == Shows::Whole), "{frames:?}");
        assert_eq!(frames.prompt(&texts).unwrap(), prompt);
    }

    #[test]
    fn a_text_that_the_template_changed_is_kept_as_it_was_shown() {
        let texts = ["hello", "HELLO again"];
        let prompt = b"<u>Hello</u><u>hello AGAIN</u><a>";
        let frames = Frames::of(prompt, &[12, 30], &texts);
        assert_eq!(frames.prompt(&texts).unwrap(), prompt);
    }

    /// A message may say what the template writes around it.
    #[test]
    fn a_text_that_the_template_writes_too_is_found_at_its_place() {
        let texts = ["user", "assistant", "er", "t", "u", "/user>\n"].map(str::to_owned);
        let (prompt, ends) = rendered(&texts, false);
        let mut gaps: Vec<Vec<u8>> = Vec::new();
        let (marked, _) = rendered(&texts.clone().map(|_| "~".to_owned()), false);
        gaps.extend(marked.split(|byte| *byte == b'~').map(<[u8]>::to_vec));
        let frames = Frames::between(&prompt, &ends, &texts, || Some(gaps.clone()));
        let parts = frames.stretches(&texts).unwrap();
        let written = parts.iter().filter_map(|part| match part {
            Stretch::Template(at, bytes) => Some((*at, bytes.to_vec())),
            Stretch::Text(..) => None,
        });
        assert_eq!(written.collect::<Vec<_>>(), gaps.into_iter().enumerate().collect::<Vec<_>>());
    }

    #[test]
    fn pieces_of_another_prompt_are_kept_once() {
        let texts: Vec<String> = (0..9).map(|n| format!("text {n}")).collect();
        let (prompt, ends) = rendered(&texts, false);
        let base = Frames::of(&prompt, &ends, &texts);
        let mut later = base.clone();
        later.relative_to(&base.pieces);
        let bytes = |frames: &Frames| postcard::to_allocvec(frames).unwrap().len();
        assert!(bytes(&later) < bytes(&base) - 20, "{later:?}");
        assert_eq!(later.prompt(&texts), None, "nothing is guessed");
        later.complete(&base.pieces);
        assert_eq!(later, base);
    }

    #[test]
    fn other_texts_are_no_prompt() {
        let texts = ["one", "two"].map(str::to_owned);
        let (prompt, ends) = rendered(&texts, false);
        let frames = Frames::of(&prompt, &ends, &texts);
        assert!(frames.prompt(&["one"]).is_none(), "one is missing");
        assert!(frames.prompt(&["one", "two", "three"]).is_none(), "one more");
        assert!(frames.prompt(&["one", "too"]).is_none(), "one differs");
    }

    proptest! {
        #[test]
        fn any_prompt_comes_back(
            texts in prop::collection::vec("[ \n]{0,2}(user|<|>|assistant|\\PC){0,6}[ \n]{0,2}", 0..9),
            trim: bool,
        ) {
            let (prompt, ends) = rendered(&texts, trim);
            let frames = Frames::of(&prompt, &ends, &texts);
            prop_assert_eq!(frames.prompt(&texts), Some(prompt));
        }

        /// Wherever messages are said to end, and whatever the prompt has of the texts.
        #[test]
        fn bytes_that_are_no_rendering_come_back(
            prompt in prop::collection::vec(any::<u8>(), 0..60),
            ends in prop::collection::vec(0_usize..80, 0..4),
            texts in prop::collection::vec("\\PC{0,3}", 0..5),
        ) {
            let frames = Frames::of(&prompt, &ends, &texts);
            prop_assert_eq!(frames.prompt(&texts), Some(prompt));
        }
    }
}
