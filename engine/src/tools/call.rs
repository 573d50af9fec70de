//! A call of a tool, as it is written: `expand s3 from 12`.

use std::fmt;

use garret_core::id::{SessionId, TurnSeq};
use regex_lite::{Regex, RegexBuilder};

/// One call of a tool.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Call {
    /// `grep`: the places where these words or this pattern stand.
    Grep {
        /// The words or the pattern.
        pattern: Pattern,
        /// The conversations to read.
        place: Place,
        /// The part of the list.
        page: Page,
        /// The turn before which a regular expression is looked for.
        before: Option<TurnSeq>,
    },
    /// `lookup`: what answers these words best, by word and by meaning, in everything that is
    /// remembered.
    Lookup {
        /// Any text.
        words: String,
        /// The part of the list.
        page: Page,
    },
    /// `describe`: the properties of a summary or a turn, without its text.
    Describe {
        /// The summary or the turn.
        target: Target,
        /// The conversation.
        place: Place,
    },
    /// The exact turns under a summary, from one of them on.
    ExpandSummary {
        /// The number of the summary.
        summary: u64,
        /// The turn to begin with.
        from: Option<TurnSeq>,
        /// The conversation.
        place: Place,
    },
    /// The exact words of a turn, from a character on.
    ExpandTurn {
        /// The number of the turn.
        turn: TurnSeq,
        /// Characters to leave out: those of the message, then those of the reply.
        from: usize,
        /// The conversation.
        place: Place,
    },
    /// The newest turns, the newest last.
    Timeline {
        /// The number of turns.
        count: usize,
        /// Only turns before this one.
        before: Option<TurnSeq>,
        /// The conversation.
        place: Place,
    },
    /// The pinned facts.
    Pinned {
        /// The part of the list.
        page: Page,
    },
    /// `entity`: what is known about somebody or something.
    Entity {
        /// The name of whom or what it is about.
        name: String,
        /// The part of the list.
        page: Page,
    },
}

/// The name of a summary or of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// `s3`: a summary of the session.
    Summary(u64),
    /// `turn 12`.
    Turn(TurnSeq),
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Summary(id) => write!(f, "s{id}"),
            Self::Turn(turn) => write!(f, "turn {turn}"),
        }
    }
}

/// The text that `grep` looks for.
#[derive(Clone, Debug)]
pub enum Pattern {
    /// Words in any order, or anything letter by letter.
    Words(String),
    /// Between slashes, `i` behind them for any case.
    Regex(Regex, String),
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Words(words) => f.write_str(words),
            Self::Regex(_, written) => f.write_str(written),
        }
    }
}

/// The conversation that a call is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Place {
    /// The conversation of whoever calls.
    #[default]
    Here,
    /// Another conversation of the same namespace.
    Session(SessionId),
    /// All conversations of the namespace.
    Everywhere,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Here => Ok(()),
            Self::Session(id) => write!(f, " in={id}"),
            Self::Everywhere => f.write_str(" in=all"),
        }
    }
}

/// The part of a list that is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// Most entries, 1 to [`Page::MOST`].
    pub k: usize,
    /// The number of first entries to leave out.
    pub skip: usize,
}

impl Page {
    /// Most entries of one call.
    pub const MOST: usize = 50;

    /// The first `k`, or as many of them as there can be.
    pub fn first(k: usize) -> Self {
        Self { k: k.clamp(1, Self::MOST), skip: 0 }
    }
}

impl Call {
    /// Reads a call: its verb and what follows that.
    ///
    /// # Errors
    /// [`CallError`] says how the call is written.
    pub fn parse(verb: &str, payload: &str) -> Result<Self, CallError> {
        let verb = verb.to_ascii_lowercase();
        let options = Options::read(payload);
        match verb.as_str() {
            "grep" => options.grep(),
            "lookup" | "search" | "find" | "recall" => options.lookup(),
            "describe" => options.describe(),
            "expand" | "show" | "read" | "open" => options.expand(),
            "timeline" | "history" => options.timeline(),
            "pinned" | "pins" => Ok(Self::Pinned { page: options.page(MANY) }),
            "entity" | "who" => options.entity(),
            _ => Err(CallError::Unknown { verb: shortened(&verb) }),
        }
    }

    /// Reads a whole line, `expand s3 from 12`.
    ///
    /// # Errors
    /// As [`Call::parse`].
    pub fn read(line: &str) -> Result<Self, CallError> {
        let line = line.trim();
        let (verb, payload) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        Self::parse(verb, payload)
    }

    /// Returns the line of the same call with the first `skip` entries left out.
    pub(super) fn skipping(&self, skip: usize) -> String {
        let mut call = self.clone();
        match &mut call {
            Self::Grep { page, .. }
            | Self::Lookup { page, .. }
            | Self::Pinned { page }
            | Self::Entity { page, .. } => page.skip = skip,
            _ => {}
        }
        call.to_string()
    }

    /// The verbs, as the protocol and errors list them.
    pub const VERBS: [&'static str; 7] =
        ["grep", "lookup", "expand", "describe", "timeline", "pinned", "entity"];
}

/// Writes a call as it is read, with defaults only where they differ.
impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Grep { pattern, place, page, before } => {
                write!(f, "grep {pattern}{place}")?;
                write_page(f, *page, FEW)?;
                write_before(f, *before)
            }
            Self::Lookup { words, page } => {
                write!(f, "lookup {words}")?;
                write_page(f, *page, FEW)
            }
            Self::Describe { target, place } => write!(f, "describe {target}{place}"),
            Self::ExpandSummary { summary, from, place } => {
                write!(f, "expand s{summary}")?;
                from.map_or(Ok(()), |from| write!(f, " from {from}"))?;
                write!(f, "{place}")
            }
            Self::ExpandTurn { turn, from, place } => {
                write!(f, "expand turn {turn}")?;
                if *from > 0 {
                    write!(f, " from {from}")?;
                }
                write!(f, "{place}")
            }
            Self::Timeline { count, before, place } => {
                write!(f, "timeline {count}")?;
                write_before(f, *before)?;
                write!(f, "{place}")
            }
            Self::Pinned { page } => {
                f.write_str("pinned")?;
                write_page(f, *page, MANY)
            }
            Self::Entity { name, page } => {
                write!(f, "entity {name}")?;
                write_page(f, *page, MANY)
            }
        }
    }
}

fn write_page(f: &mut fmt::Formatter<'_>, page: Page, usual: usize) -> fmt::Result {
    if page.k != usual {
        write!(f, " k={}", page.k)?;
    }
    if page.skip > 0 {
        write!(f, " skip={}", page.skip)?;
    }
    Ok(())
}

fn write_before(f: &mut fmt::Formatter<'_>, before: Option<TurnSeq>) -> fmt::Result {
    before.map_or(Ok(()), |turn| write!(f, " before={turn}"))
}

/// The reason for which a text is no call.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// No tool has this verb.
    #[error("there is no tool `{verb}`: there are {}", Call::VERBS.join(", "))]
    Unknown {
        /// The verb as it was written.
        verb: String,
    },
    /// Something is missing or can't be read.
    #[error("`{verb}` is written {usage}")]
    Usage {
        /// The verb.
        verb: &'static str,
        /// The form in which such a call is written.
        usage: &'static str,
    },
    /// The text isn't the JSON of a call.
    #[error(
        r#"a call is written {{"name": "lookup", "arguments": {{"words": "the bees"}}}}, with one of {}"#,
        Call::VERBS.join(", ")
    )]
    Json,
    /// The conversation can't be called that.
    #[error("`in=` takes the name of a conversation, or all")]
    Place,
    /// The pattern can't be used.
    #[error("the pattern can't be used: {reason}")]
    Pattern {
        /// The fault in the pattern.
        reason: String,
    },
}

/// A payload, taken apart: words, and `key=value` before and behind them.
struct Options<'a> {
    words: &'a str,
    place: Option<Result<Place, CallError>>,
    k: Option<usize>,
    skip: usize,
    before: Option<TurnSeq>,
}

impl<'a> Options<'a> {
    fn read(payload: &'a str) -> Self {
        let place = None;
        let k = None;
        let before = None;
        let mut options = Self { words: payload.trim(), place, k, skip: 0, before };
        while let Some(rest) = options.take_first().or_else(|| options.take_last()) {
            options.words = rest.trim();
        }
        options
    }

    fn take_first(&mut self) -> Option<&'a str> {
        let (word, rest) = split_word(self.words);
        self.take(word).then_some(rest)
    }

    fn take_last(&mut self) -> Option<&'a str> {
        let at = self.words.rfind(char::is_whitespace)?;
        let (rest, word) = self.words.split_at(at);
        self.take(word.trim()).then_some(rest)
    }

    fn take(&mut self, word: &str) -> bool {
        let Some((key, value)) = word.split_once('=') else { return false };
        let number = number(value);
        match (key.to_ascii_lowercase().as_str(), number) {
            ("k" | "n", Some(number)) => self.k = Some(size(number)),
            ("skip", Some(number)) => self.skip = size(number),
            ("before", Some(number)) => self.before = Some(number),
            ("in", _) if !value.is_empty() => self.place = Some(place(value)),
            _ => return false,
        }
        true
    }

    fn page(&self, usual: usize) -> Page {
        Page { skip: self.skip, ..Page::first(self.k.unwrap_or(usual)) }
    }

    fn place(&mut self) -> Result<Place, CallError> {
        self.place.take().unwrap_or(Ok(Place::Here))
    }

    /// The conversation, where it must be one.
    fn one_place(&mut self) -> Result<Place, CallError> {
        match self.place()? {
            Place::Everywhere => Err(CallError::Place),
            place => Ok(place),
        }
    }

    fn grep(mut self) -> Result<Call, CallError> {
        let place = self.place()?;
        let page = self.page(FEW);
        let pattern = match as_regex(self.words) {
            _ if self.words.is_empty() => return Err(usage("grep", GREP)),
            Some((source, any_case)) => {
                Pattern::Regex(compile(source, any_case)?, self.words.to_owned())
            }
            None => Pattern::Words(self.words.to_owned()),
        };
        Ok(Call::Grep { pattern, place, page, before: self.before })
    }

    fn lookup(self) -> Result<Call, CallError> {
        if self.words.is_empty() {
            return Err(usage("lookup", LOOKUP));
        }
        Ok(Call::Lookup { words: self.words.to_owned(), page: self.page(FEW) })
    }

    fn entity(self) -> Result<Call, CallError> {
        if self.words.is_empty() {
            return Err(usage("entity", ENTITY));
        }
        Ok(Call::Entity { name: self.words.to_owned(), page: self.page(MANY) })
    }

    fn describe(mut self) -> Result<Call, CallError> {
        let place = self.one_place()?;
        match target(self.words) {
            Some((target, "")) => Ok(Call::Describe { target, place }),
            _ => Err(usage("describe", DESCRIBE)),
        }
    }

    fn expand(mut self) -> Result<Call, CallError> {
        let place = self.one_place()?;
        let bad = || usage("expand", EXPAND);
        let (target, rest) = target(self.words).ok_or_else(bad)?;
        let from = match split_word(rest) {
            ("", _) => None,
            (word, rest) if word.eq_ignore_ascii_case("from") => {
                let rest = rest.trim_start_matches(|c: char| !c.is_ascii_digit() && c != '-');
                Some(number(rest).ok_or_else(bad)?)
            }
            _ => return Err(bad()),
        };
        Ok(match target {
            Target::Summary(summary) => Call::ExpandSummary { summary, from, place },
            Target::Turn(turn) => Call::ExpandTurn { turn, from: size(from.unwrap_or(0)), place },
        })
    }

    fn timeline(mut self) -> Result<Call, CallError> {
        let place = self.one_place()?;
        let words = strip_word(self.words, "last");
        let (count, rest) = match split_word(words) {
            ("", _) => (self.k.unwrap_or(MANY), ""),
            (word, rest) if word.eq_ignore_ascii_case("before") => {
                self.before = Some(number(rest).ok_or_else(|| usage("timeline", TIMELINE))?);
                (self.k.unwrap_or(MANY), "")
            }
            (word, rest) => (size(number(word).ok_or_else(|| usage("timeline", TIMELINE))?), rest),
        };
        let rest = strip_word(rest, "before");
        if !rest.is_empty() {
            self.before = Some(number(rest).ok_or_else(|| usage("timeline", TIMELINE))?);
        }
        Ok(Call::Timeline { count: count.clamp(1, LONGEST), before: self.before, place })
    }
}

const fn usage(verb: &'static str, usage: &'static str) -> CallError {
    CallError::Usage { verb, usage }
}

/// The first word and what follows it.
fn split_word(text: &str) -> (&str, &str) {
    let text = text.trim();
    text.split_once(char::is_whitespace).map_or((text, ""), |(word, rest)| (word, rest.trim()))
}

fn strip_word<'a>(text: &'a str, word: &str) -> &'a str {
    let (first, rest) = split_word(text);
    if first.eq_ignore_ascii_case(word) { rest } else { text }
}

/// A whole number: what is below 0 is 0, what is too large is the largest there is.
fn number(text: &str) -> Option<u64> {
    let text = text.trim().trim_end_matches(['.', ',', ';', ')', ']']);
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    Some(if text.starts_with('-') { 0 } else { digits.parse().unwrap_or(u64::MAX) })
}

fn size(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

fn place(value: &str) -> Result<Place, CallError> {
    match value {
        "all" => Ok(Place::Everywhere),
        "here" => Ok(Place::Here),
        id => id.parse().map(Place::Session).map_err(|_| CallError::Place),
    }
}

/// `s3`, `s 3`, `summary 3`, `turn 12`, `t12` or `12`, and what follows.
fn target(text: &str) -> Option<(Target, &str)> {
    let text = text.trim().trim_start_matches(['#', '[']);
    let letters = text.len() - text.trim_start_matches(|c: char| c.is_ascii_alphabetic()).len();
    let (name, rest) = text.split_at(letters);
    // `turn-3` is a way to write it; `turn -3` is no turn.
    let rest = rest.strip_prefix(['-', '_']).unwrap_or(rest);
    let (digits, rest) = split_word(rest.trim_start_matches(['#', ' ']));
    let id = number(digits).filter(|_| !digits.starts_with(['-', '+']))?;
    let target = match name.to_ascii_lowercase().as_str() {
        "s" | "summary" | "sum" => Target::Summary(id),
        "" | "t" | "turn" => Target::Turn(id),
        _ => return None,
    };
    Some((target, rest))
}

/// Returns the text between the slashes of `/bees?/i`, and true when the `i` is there.
fn as_regex(text: &str) -> Option<(&str, bool)> {
    let inner = text.strip_prefix('/')?;
    let (inner, any_case) = match inner.strip_suffix("/i") {
        Some(inner) => (inner, true),
        None => (inner.strip_suffix('/')?, false),
    };
    (!inner.is_empty()).then_some((inner, any_case))
}

fn compile(source: &str, any_case: bool) -> Result<Regex, CallError> {
    if source.len() > PATTERN_BYTES {
        let reason = format!("it has {} bytes, and {PATTERN_BYTES} are the most", source.len());
        return Err(CallError::Pattern { reason });
    }
    let mut builder = RegexBuilder::new(source);
    builder.case_insensitive(any_case).size_limit(PROGRAM_BYTES).nest_limit(NESTING);
    builder.build().map_err(|error| CallError::Pattern { reason: error.to_string() })
}

/// The beginning of what somebody took for a verb.
fn shortened(verb: &str) -> String {
    verb.chars().take(24).collect()
}

const GREP: &str = "`grep WORDS` or `grep /REGEX/`, with in=all for every conversation";
const LOOKUP: &str = "`lookup WORDS`";
const DESCRIBE: &str = "`describe s3` for a summary or `describe turn 12`";
const EXPAND: &str =
    "`expand s3`, `expand s3 from 12`, `expand turn 12` or `expand turn 12 from 400`";
const TIMELINE: &str = "`timeline`, `timeline 5` or `timeline 5 before=40`";
const ENTITY: &str = "`entity NAME`";

/// Entries of a search where nothing is asked for.
const FEW: usize = 5;
/// Entries of a list where nothing is asked for.
const MANY: usize = 10;
/// Longest timeline.
const LONGEST: usize = 200;
/// Longest pattern.
const PATTERN_BYTES: usize = 500;
/// Largest program a pattern may be compiled to: it bounds the steps a character can take.
const PROGRAM_BYTES: usize = 16 << 10;
/// Deepest nesting of a pattern.
const NESTING: u32 = 32;

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> String {
        match Call::read(line) {
            Ok(call) => call.to_string(),
            Err(error) => format!("error: {error}"),
        }
    }

    #[test]
    fn calls_are_read_as_they_are_written() {
        for line in [
            "grep bees",
            "grep bees and honey in=all k=7 skip=5",
            "grep /b(e+)s?/i in=kitchen before=9",
            "grep C++ && a||b",
            "lookup what is my name k=1",
            "describe s3",
            "describe turn 12 in=kitchen",
            "expand s3 from 12",
            "expand turn 12 from 900",
            "expand turn 12",
            "timeline 5",
            "timeline 5 before=40",
            "pinned skip=3",
            "entity Ada Lovelace",
        ] {
            assert_eq!(read(line), line);
        }
    }

    #[test]
    fn other_spellings_mean_the_same() {
        for (line, same) in [
            ("EXPAND S3", "expand s3"),
            ("expand summary 3", "expand s3"),
            ("expand turn12 from char 40", "expand turn 12 from 40"),
            ("expand #12", "expand turn 12"),
            ("show s3 from turn 9", "expand s3 from 9"),
            ("search k=3 bees", "lookup bees k=3"),
            ("timeline last 10", "timeline 10"),
            ("timeline", "timeline 10"),
            ("timeline 3 before 9", "timeline 3 before=9"),
            ("timeline before 9", "timeline 10 before=9"),
            ("grep n=2 bees", "grep bees k=2"),
            ("grep x = 3", "grep x = 3"),
            ("grep a=b", "grep a=b"),
        ] {
            assert_eq!(read(line), same);
        }
    }

    #[test]
    fn numbers_out_of_range_are_brought_into_it() {
        for (line, same) in [
            ("lookup bees k=0", "lookup bees k=1"),
            ("lookup bees k=-7", "lookup bees k=1"),
            ("lookup bees k=99999999999999999999999", "lookup bees k=50"),
            ("timeline -3", "timeline 1"),
            ("timeline 99999999999999999999999", "timeline 200"),
            ("expand turn 99999999999999999999999", "expand turn 18446744073709551615"),
            ("expand turn 3 from -4", "expand turn 3"),
        ] {
            assert_eq!(read(line), same);
        }
    }

    #[test]
    fn what_is_no_call_says_how_it_is_written() {
        for line in [
            "grep",
            "grep in=all",
            "lookup  ",
            "describe",
            "describe bees",
            "expand",
            "expand s",
            "expand turn -3",
            "expand s3 until 9",
            "expand s3 in=all",
            "expand s3 from",
            "timeline soon",
            "entity",
            "forget turn 3",
            "",
            "grep /(/",
        ] {
            assert!(Call::read(line).is_err(), "{line}");
        }
        assert!(read("fetch x").contains("grep, lookup, expand"));
    }

    #[test]
    fn a_pattern_that_would_grow_is_refused() {
        for bomb in ["(((a{1,99}){1,99}){1,99})", "(a*)*{1000}", &"(".repeat(200), &"a".repeat(501)]
        {
            let refused = Call::read(&format!("grep /{bomb}/"));
            assert!(matches!(refused, Err(CallError::Pattern { .. })), "{bomb}: {refused:?}");
        }
    }
}
