//! The template engine, with its bounds, and the placeholders that keep content out of it.
//!
//! Fuel bounds what a template may do, but not every operation is charged for in full. So parsing
//! and each rendering have a thread of their own, which is left behind when it takes too long.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use garret_core::prompt::Role;
use jiff::civil::DateTime;
use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Kwargs, Value};
use minijinja::{AutoEscape, Environment, Error, ErrorKind, State, UndefinedBehavior, context};

use super::{Segment, TemplateError, Turn};
use crate::vocab::Specials;

/// A message as the template sees it: one turn, or several merged ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Slot {
    pub(super) role: Role,
    pub(super) turns: Vec<usize>,
}

/// A compiled template and what it may refer to.
#[derive(Debug)]
pub(super) struct Jinja {
    environment: Arc<Environment<'static>>,
    /// True once a rendering was left behind; there are no more after it.
    hung: AtomicBool,
    bos: String,
    eos: String,
    /// Start of every placeholder; the source doesn't contain it.
    mark: String,
}

impl Jinja {
    pub(super) fn compile(
        source: &str,
        specials: &Specials,
        now: DateTime,
    ) -> Result<Self, TemplateError> {
        if source.len() > MAX_SOURCE_BYTES {
            let message = format!("its source has {} bytes", source.len());
            return Err(TemplateError::Syntax { message });
        }
        let environment = environment(now).map_err(|error| syntax(&error))?;
        let environment = add_template(environment, without_generation_tags(source))?;
        let spelling = |token: &Option<(_, String)>| {
            token.as_ref().map(|(_, text)| text.clone()).unwrap_or_default()
        };
        Ok(Self {
            environment: Arc::new(environment),
            hung: AtomicBool::new(false),
            bos: spelling(&specials.bos),
            eos: spelling(&specials.eos),
            mark: unused_mark(source),
        })
    }

    /// Renders `slots` of `turns` and takes the result apart at the placeholders.
    pub(super) fn render<'a>(
        &self,
        turns: &[Turn<'a>],
        slots: &[Slot],
        tools: &Value,
        reply_follows: bool,
    ) -> Result<Vec<Segment<'a>>, TemplateError> {
        let mut expected = vec![false; turns.len()];
        let messages: Vec<Value> = slots
            .iter()
            .map(|slot| {
                let content = self.content(turns, slot, &mut expected);
                context! { role => slot.role.as_str(), content }
            })
            .collect();
        let text = self.run(messages, tools.clone(), reply_follows)?;
        let segments = self.take_apart(&text, turns);
        for segment in &segments {
            if let Segment::Content(index, _) = segment
                && let Some(missing) = expected.get_mut(*index)
            {
                *missing = false;
            }
        }
        match expected.iter().position(|missing| *missing) {
            Some(index) => Err(TemplateError::Dropped { index }),
            None => Ok(segments),
        }
    }

    /// The text that stands for a slot's content in the template.
    fn content(&self, turns: &[Turn<'_>], slot: &Slot, expected: &mut [bool]) -> String {
        let mut content = String::new();
        for index in &slot.turns {
            let Some(turn) = turns.get(*index) else { continue };
            if !content.is_empty() {
                content.push_str(BLANK_LINE);
            }
            let body = turn.content.trim();
            if body.is_empty() && !turn.kept {
                content.push_str(turn.content);
                continue;
            }
            if let Some(flag) = expected.get_mut(*index) {
                *flag = true;
            }
            let (lead, trail) = if turn.kept { ("", "") } else { ends(turn.content) };
            content.push_str(&format!("{lead}{}{index}{MARK_END}{trail}", self.mark));
        }
        content
    }

    fn run(
        &self,
        messages: Vec<Value>,
        tools: Value,
        reply_follows: bool,
    ) -> Result<String, TemplateError> {
        let refused = |message: String| TemplateError::Refused { message };
        if self.hung.load(Ordering::Relaxed) {
            return Err(refused(NoAnswer::TooLong.to_string()));
        }
        let context = context! {
            messages,
            add_generation_prompt => reply_follows,
            bos_token => self.bos.as_str(),
            eos_token => self.eos.as_str(),
            tools,
            documents => (),
        };
        let environment = self.environment.clone();
        let rendered = with_patience(STACK_BYTES, move || {
            environment.get_template(NAME).and_then(|template| template.render(context))
        });
        match rendered {
            Ok(text) => text.map_err(|error| refused(describe(&error))),
            Err(error) => {
                self.hung.fetch_or(matches!(error, NoAnswer::TooLong), Ordering::Relaxed);
                Err(refused(error.to_string()))
            }
        }
    }

    fn take_apart<'a>(&self, text: &str, turns: &[Turn<'a>]) -> Vec<Segment<'a>> {
        let mut segments = Vec::new();
        let mut scaffold = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(self.mark.as_str()) {
            let (before, marked) = rest.split_at(at);
            scaffold.push_str(before);
            rest = marked.get(self.mark.len()..).unwrap_or_default();
            let Some((number, after)) = rest.split_once(MARK_END) else { continue };
            let index = number.parse::<usize>().ok();
            let Some((index, turn)) = index.and_then(|at| Some((at, turns.get(at)?))) else {
                continue;
            };
            if !scaffold.is_empty() {
                segments.push(Segment::Scaffold(std::mem::take(&mut scaffold)));
            }
            let body = if turn.kept { turn.content } else { turn.content.trim() };
            segments.push(Segment::Content(index, body));
            rest = after;
        }
        scaffold.push_str(rest);
        if !scaffold.is_empty() {
            segments.push(Segment::Scaffold(scaffold));
        }
        segments
    }
}

fn environment(now: DateTime) -> Result<Environment<'static>, Error> {
    let mut environment = Environment::new();
    let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build()?;
    environment.set_syntax(syntax);
    environment.set_undefined_behavior(UndefinedBehavior::Lenient);
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    environment.set_recursion_limit(RECURSION_LIMIT);
    environment.set_debug(false);
    environment.set_fuel(Some(FUEL));
    environment.set_unknown_method_callback(method);
    environment.add_filter("tojson", to_json);
    environment.add_function("raise_exception", |message: String| -> Result<String, Error> {
        Err(Error::new(ErrorKind::InvalidOperation, message))
    });
    environment.add_function("strftime_now", move |format: String| {
        jiff::fmt::strtime::format(format.as_bytes(), now)
            .map_err(|error| Error::new(ErrorKind::InvalidOperation, error.to_string()))
    });
    Ok(environment)
}

/// Reason why there is no answer from a thread.
#[derive(Debug, thiserror::Error)]
enum NoAnswer {
    #[error("it takes too long")]
    TooLong,
    #[error("the template engine failed")]
    Panicked,
    #[error("there is no thread for it: {0}")]
    NoThread(#[from] std::io::Error),
}

/// Runs `work` on a thread with a stack of its own. One that takes too long is left behind; nobody
/// listens when it ends.
fn with_patience<T: Send + 'static>(
    stack_bytes: usize,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, NoAnswer> {
    let (sender, done) = mpsc::sync_channel(1);
    thread::Builder::new().stack_size(stack_bytes).spawn(move || {
        let _ = sender.send(work());
    })?;
    done.recv_timeout(PATIENCE).map_err(|error| match error {
        mpsc::RecvTimeoutError::Timeout => NoAnswer::TooLong,
        mpsc::RecvTimeoutError::Disconnected => NoAnswer::Panicked,
    })
}

/// Parses `source` on a stack that its deepest nesting can't exhaust, and gives up on it after a
/// while: the parser follows `not not not ...` one call for each without a limit, and folds
/// `- - - ...` in quadratic time.
fn add_template(
    mut environment: Environment<'static>,
    source: String,
) -> Result<Environment<'static>, TemplateError> {
    let stack_bytes = STACK_BYTES + source.len() * PARSER_STACK_PER_BYTE;
    let parsed = with_patience(stack_bytes, move || {
        environment.add_template_owned(NAME, source).map(|()| environment)
    });
    let parsed = parsed.map_err(|error| TemplateError::Syntax { message: error.to_string() })?;
    parsed.map_err(|error| syntax(&error))
}

/// Methods of Python's types, less widths that the engine would believe.
fn method(
    state: &mut State<'_, '_>,
    value: &Value,
    name: &str,
    args: &[Value],
) -> Result<Value, Error> {
    if name == "format" && value.as_str().is_some_and(has_huge_field) {
        return Err(Error::new(ErrorKind::InvalidOperation, "a format has a huge number in it"));
    }
    minijinja_contrib::pycompat::unknown_method_callback(state, value, name, args)
}

/// Returns whether a replacement field of `format`, such as `{:>8}`, has a number above
/// [`MAX_WIDTH`].
fn has_huge_field(format: &str) -> bool {
    let fields = format.split('{').skip(1).filter_map(|field| field.split('}').next());
    let mut numbers = fields.flat_map(|field| field.split(|c: char| !c.is_ascii_digit()));
    numbers.any(|number| {
        !number.is_empty() && !number.parse::<u32>().is_ok_and(|width| width <= MAX_WIDTH)
    })
}

/// The engine's `tojson`, less indents that it would believe.
fn to_json(
    state: &State<'_, '_>,
    value: &Value,
    indent: Option<Value>,
    named: Kwargs,
) -> Result<Value, Error> {
    let indent = match indent {
        Some(indent) => Some(indent),
        None => named.get::<Option<Value>>("indent")?,
    };
    let is_huge = |indent: &Value| {
        indent.is_number() && indent.as_usize().is_none_or(|indent| indent > MAX_INDENT)
    };
    if indent.as_ref().is_some_and(is_huge) {
        return Err(Error::new(ErrorKind::InvalidOperation, "tojson is to indent too far"));
    }
    let json = minijinja::filters::tojson(value, indent, named)?;
    let bytes = json.as_str().map_or(0, str::len);
    state.consume_fuel(u64::try_from(bytes / BYTES_PER_FUEL).unwrap_or(u64::MAX))?;
    Ok(json)
}

/// Replaces the `generation` blocks that training templates mark replies with, and that change
/// nothing in the text, by blocks that the engine knows.
fn without_generation_tags(source: &str) -> String {
    let mut text = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(at) = rest.find("{%") {
        let (before, tag) = rest.split_at(at);
        text.push_str(before);
        let Some(len) = tag.find("%}").map(|end| end + 2) else { break };
        let (tag, after) = tag.split_at(len);
        let word =
            tag.trim_start_matches(['{', '%', '-', '+']).trim_end_matches(['}', '%', '-', '+']);
        match word.trim() {
            "generation" => text.push_str(&tag.replace("generation", "if true")),
            "endgeneration" => text.push_str(&tag.replace("endgeneration", "endif")),
            _ => text.push_str(tag),
        }
        rest = after;
    }
    text.push_str(rest);
    text
}

/// A word of letters and digits that `source` doesn't contain.
fn unused_mark(source: &str) -> String {
    (0_u32..)
        .map(|n| format!("garretslot{n}n"))
        .find(|mark| !source.contains(mark.as_str()))
        .unwrap_or_default()
}

/// White space before and after the body of `content`.
fn ends(content: &str) -> (&str, &str) {
    let body = content.trim_start();
    let lead = content.get(..content.len() - body.len()).unwrap_or_default();
    let trail = body.get(body.trim_end().len()..).unwrap_or_default();
    (lead, trail)
}

fn syntax(error: &Error) -> TemplateError {
    TemplateError::Syntax { message: describe(error) }
}

/// The engine's message, with the line it speaks of.
fn describe(error: &Error) -> String {
    let mut text = error.detail().map_or_else(|| error.kind().to_string(), str::to_owned);
    if let Some(line) = error.line() {
        text.push_str(&format!(" (line {line})"));
    }
    text
}

const NAME: &str = "chat";
const MARK_END: char = 'x';
const BLANK_LINE: &str = "\n\n";
/// Largest source; the templates of published models have less than 20 KiB.
const MAX_SOURCE_BYTES: usize = 1 << 16;
/// Time that parsing or one rendering may take; with real templates they take milliseconds.
const PATIENCE: Duration = Duration::from_secs(10);
/// Stack of a rendering, and of a parser before its source is counted.
const STACK_BYTES: usize = 2 << 20;
/// Stack for each byte of source; one byte can be one level of nesting.
const PARSER_STACK_PER_BYTE: usize = 4 << 10;
/// Depth of nested blocks and calls; real templates stay below 20, and a macro counts several.
const RECURSION_LIMIT: usize = 120;
/// Fuel of one rendering: one unit for an instruction or for 64 bytes made, so this bounds memory
/// as well (64 MB). Real templates use below 1,000, and 100 per message.
const FUEL: u64 = 1_000_000;
/// Bytes that one unit of fuel pays for.
const BYTES_PER_FUEL: usize = 64;
/// Largest number in a field of `format`.
const MAX_WIDTH: u32 = 1_000;
/// Deepest indent of one level of JSON.
const MAX_INDENT: usize = 16;
