//! A reply as it grows: its shown text, its wishes and its tokens.

use garret_core::receipt::Receipt;
use garret_core::scan::{Companion, Companions, Scan, TagKind, TagScanner};
use garret_core::token::Token;
use garret_core::utf8::Utf8Stream;

use crate::receipt::RoundReport;
use crate::trace::{Around, Exchange};

/// A reply as it grows. A character that its end cuts in two is left out of the text; the ids of
/// its first half are kept.
pub(super) struct ReplyDraft {
    pub(super) receipt: Receipt,
    /// Ids of the messages in the prompt's block of memory.
    pub(super) memory: Vec<String>,
    /// The text that was shown, of all rounds.
    pub(super) text: String,
    /// Companions that the model asked for.
    pub(super) companions: Companions,
    /// The lookups on the way.
    pub(super) rounds: Vec<RoundReport>,
    /// The words of the model and the results, on the way.
    pub(super) exchanges: Vec<Exchange>,
    /// The bytes that the template wrote around the results.
    pub(super) around: Vec<Around>,
    /// The words of the model at first, if none of them could be shown and it was asked again.
    pub(super) given_up: Option<String>,
    /// The text is a sentence that stands for words of the model.
    pub(super) wordless: bool,
    /// Time of its first token by the monotonic clock, in microseconds.
    pub(super) first_us: Option<u64>,
    /// A tag of a tool ends the round.
    pub(super) armed: bool,
    native: bool,
    round: Round,
    /// The text before this round, which has no tokens of this round.
    before: bool,
    /// The generated tokens were given up, and the model asked again.
    again: bool,
}

/// The tokens generated since the last prompt.
struct Round {
    tokens: Vec<Token>,
    /// A control token was generated. Such a reply is kept as text alone: put back by its
    /// ids, it would be structure in every later prompt.
    structural: bool,
    /// Something was generated that isn't shown.
    stripped: bool,
    scanner: TagScanner,
    utf8: Utf8Stream,
    asked: Option<Asked>,
    /// The byte of the whole text where it begins.
    from: usize,
}

impl Round {
    fn new(from: usize, native: bool) -> Self {
        Self {
            tokens: Vec::new(),
            structural: false,
            stripped: false,
            scanner: if native { TagScanner::with_calls() } else { TagScanner::new() },
            utf8: Utf8Stream::new(),
            asked: None,
            from,
        }
    }
}

/// A tag of a tool, and the bytes behind it in the same token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Asked {
    /// The tag as it was spelled.
    pub(super) raw: Vec<u8>,
    pub(super) wish: Wish,
    behind: Vec<u8>,
}

/// A model's request to a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Wish {
    /// A tag of ours: its verb and what follows that.
    Tag(String, String),
    /// A call in the form of its own template: JSON.
    Call(String),
}

impl ReplyDraft {
    /// Creates an empty draft; `native` when the model may call tools in the form of its own template.
    pub(super) fn new(receipt: Receipt, memory: Vec<String>, native: bool) -> Self {
        Self {
            receipt,
            memory,
            text: String::new(),
            companions: Companions::default(),
            rounds: Vec::new(),
            exchanges: Vec::new(),
            around: Vec::new(),
            given_up: None,
            wordless: false,
            first_us: None,
            armed: false,
            native,
            round: Round::new(0, native),
            before: false,
            again: false,
        }
    }

    /// Takes the cost of a prompt: the turn's own, or that behind the newest lookup.
    pub(super) fn prefilled(&mut self, reused: u32, prefilled: u32) {
        let first = self.round.tokens.is_empty();
        match self.rounds.last_mut() {
            // A quoted tag was passed over: the prompt is the same and what was generated.
            _ if !first => {}
            // So is it when the model is asked again; what that costs comes on top.
            Some(round) if self.again => round.prefilled_tokens += prefilled,
            None if self.again => self.receipt.prefilled_tokens += prefilled,
            Some(round) => {
                round.reused_tokens = reused;
                round.prefilled_tokens = prefilled;
            }
            None => {
                self.receipt.reused_tokens = reused;
                self.receipt.prefilled_tokens = prefilled;
            }
        }
    }

    /// Takes a generated token; returns whether the round ends here, behind the tag of a tool.
    pub(super) fn push(
        &mut self,
        token: Token,
        bytes: &[u8],
        on_text: &mut dyn FnMut(&str),
    ) -> bool {
        self.round.tokens.push(token);
        self.round.structural |= bytes.is_empty();
        self.receipt.reply_tokens += 1;
        let mut scanner = std::mem::take(&mut self.round.scanner);
        scanner.push(bytes, &mut |scan| self.take(scan, on_text));
        self.round.scanner = scanner;
        self.round.asked.is_some()
    }

    /// Shows what was held back because it could have become a tag.
    pub(super) fn finish(&mut self, on_text: &mut dyn FnMut(&str)) {
        let mut scanner = std::mem::take(&mut self.round.scanner);
        scanner.finish(&mut |scan| self.take(scan, on_text));
    }

    fn take(&mut self, scan: Scan<'_>, on_text: &mut dyn FnMut(&str)) {
        match scan {
            Scan::Text(bytes) => match &mut self.round.asked {
                Some(asked) => asked.behind.extend_from_slice(bytes),
                None => self.show(bytes, on_text),
            },
            Scan::Stripped(_) => self.round.stripped = true,
            Scan::Tag(tag) => {
                self.round.stripped = true;
                match tag.kind {
                    TagKind::Companions(asked) => {
                        self.companions = asked.iter().fold(self.companions, Companions::with);
                    }
                    TagKind::Tool { verb, payload } => {
                        self.ask(tag.raw, Wish::Tag(verb.to_owned(), payload.to_owned()));
                    }
                    TagKind::Call { json } => self.ask(tag.raw, Wish::Call(json.to_owned())),
                }
            }
        }
    }

    /// Takes the first wish of a round in which there may be one.
    fn ask(&mut self, raw: &[u8], wish: Wish) {
        if self.armed && self.round.asked.is_none() {
            self.round.asked = Some(Asked { raw: raw.to_vec(), wish, behind: Vec::new() });
        }
    }

    fn show(&mut self, bytes: &[u8], on_text: &mut dyn FnMut(&str)) {
        let Self { text, round, before, .. } = self;
        round.utf8.push(bytes, &mut |piece: &str| {
            if std::mem::take(before) && !text.ends_with(char::is_whitespace) {
                text.push_str(PAUSE);
                on_text(PAUSE);
                round.from = text.len();
            }
            text.push_str(piece);
            on_text(piece);
        });
    }

    /// Returns the tag that ended the round, if one did.
    pub(super) const fn asked(&self) -> Option<&Asked> {
        self.round.asked.as_ref()
    }

    /// Returns the text that was shown in this round.
    pub(super) fn said(&self) -> &str {
        self.text.get(self.round.from..).unwrap_or_default()
    }

    /// Returns the tokens that were generated in this round.
    pub(super) fn generated(&self) -> &[Token] {
        &self.round.tokens
    }

    /// Shows what follows a tag that isn't obeyed: the model goes on where it was.
    pub(super) fn go_on(&mut self, on_text: &mut dyn FnMut(&str)) {
        if let Some(asked) = self.round.asked.take() {
            self.show(&asked.behind, on_text);
        }
    }

    /// Begins the next round: what was generated is part of its prompt, and so is the result.
    pub(super) fn next_round(&mut self, report: RoundReport, exchange: Exchange, around: Around) {
        self.exchanges.push(exchange);
        self.around.push(around);
        self.rounds.push(report);
        self.before = !self.text.is_empty();
        self.round = Round::new(self.text.len(), self.native);
    }

    /// Returns whether nothing was shown but white space.
    pub(super) fn is_blank(&self) -> bool {
        self.text.trim().is_empty()
    }

    /// Gives up what was generated in this round, which begins again.
    pub(super) fn begin_again(&mut self) {
        // The text before has no tokens of this round.
        self.round = Round { stripped: true, ..Round::new(self.text.len(), self.native) };
        self.armed = false;
        self.again = true;
    }

    /// Shows a text in place of words that the model didn't write.
    pub(super) fn say(&mut self, text: &str, on_text: &mut dyn FnMut(&str)) {
        self.round.stripped = true;
        self.wordless = true;
        self.show(text.as_bytes(), on_text);
    }

    /// Returns the token ids of the text, where they spell exactly that; else none.
    pub(super) fn tokens(&self) -> &[Token] {
        let exact = !self.round.stripped && !self.round.structural && self.round.from == 0;
        if exact { &self.round.tokens } else { &[] }
    }

    /// Returns whether the model asked for a companion.
    pub(super) const fn asks(&self, companion: Companion) -> bool {
        self.companions.contains(companion)
    }

    /// Returns whether there is something to be kept.
    pub(super) fn has_begun(&self) -> bool {
        !self.round.tokens.is_empty() || !self.rounds.is_empty()
    }

    /// Returns whether the cache holds something that no later prompt has.
    pub(super) fn strayed(&self) -> bool {
        self.round.stripped || !self.rounds.is_empty()
    }
}

/// Stands between the words before a lookup and those after it.
const PAUSE: &str = "\n\n";
