//! The scanner against a reference that sees the whole text: it cuts strings where the scanner
//! walks over bytes, and works out the Markdown before each `<` anew from everything shown so far.

mod scan_common;

use garret_core::scan::{Companion, Companions, TagDefect};
use proptest::prelude::*;
use scan_common::{Ev, add_text, scan, scan_whole};

/// Stands for a tag in the text shown so far: something that is no white space.
const TAG: char = '\u{1}';

fn reference(shown: &mut String, rest: &str, events: &mut Vec<Ev>) {
    let (text, rest) = rest.split_at(rest.find('<').unwrap_or(rest.len()));
    shown.push_str(text);
    if !text.is_empty() {
        add_text(events, text.as_bytes());
    }
    if rest.is_empty() {
        return;
    }
    let found = if in_fence(shown) { None } else { tag(rest) };
    match found.filter(|_| !in_span(shown, rest)) {
        None => {
            shown.push('<');
            add_text(events, b"<");
            reference(shown, &rest[1..], events);
        }
        Some((len, event)) => {
            shown.push(TAG);
            events.push(event);
            reference(shown, &rest[len..], events);
        }
    }
}

/// What opened a fence.
struct Fence {
    run: String,
    indent: usize,
    quotes: usize,
}

impl Fence {
    fn is_closed_by(&self, line: &str) -> bool {
        let (_, indent, own) = containers(line, self.quotes, false);
        let mark = own.trim_end_matches([' ', '\t', '\r']);
        mark.len() >= self.run.len()
            && mark.chars().all(|c| self.run.starts_with(c))
            && indent <= self.indent + 3
    }
}

/// For each line of `shown`, whether it belongs to a fence.
fn fenced_lines(shown: &str) -> Vec<bool> {
    let mut open: Option<Fence> = None;
    let mut fenced = Vec::new();
    for line in shown.split('\n') {
        let inside = open.filter(|fence| containers(line, fence.quotes, false).0 >= fence.quotes);
        let closed = inside.as_ref().is_some_and(|fence| fence.is_closed_by(line));
        open = inside.or_else(|| fence(line));
        fenced.push(open.is_some());
        open = open.filter(|_| !closed);
    }
    fenced
}

/// Whether what follows `shown` on its last line belongs to a fence.
fn in_fence(shown: &str) -> bool {
    fenced_lines(shown).ends_with(&[true])
}

/// The fence that `line` opens.
fn fence(line: &str) -> Option<Fence> {
    let (quotes, indent, own) = containers(line, usize::MAX, true);
    let mark = own.chars().next().filter(|c| "`~".contains(*c))?;
    let info = own.trim_start_matches(mark);
    let run = own[..own.len() - info.len()].to_owned();
    let opens = run.len() >= 3 && !(mark == '`' && info.contains('`'));
    opens.then_some(Fence { run, indent, quotes })
}

/// The number of `>` before the line's own text, the columns after the last of them, and that text.
fn containers(line: &str, most_quotes: usize, markers: bool) -> (usize, usize, &str) {
    let (mut quotes, mut indent, mut own) = (0, 0, line);
    loop {
        let blanks = own.trim_start_matches([' ', '\t', '\r']);
        let columns = |c| if c == '\t' { 4 } else { usize::from(c == ' ') };
        indent += own[..own.len() - blanks.len()].chars().map(columns).sum::<usize>();
        own = blanks;
        if let Some(rest) = own.strip_prefix('>').filter(|_| quotes < most_quotes) {
            (quotes, indent, own) = (quotes + 1, 0, rest);
        } else if markers && own.starts_with("-") && own[1..].starts_with([' ', '\t', '\r']) {
            (indent, own) = (indent + 1, &own[1..]);
        } else {
            return (quotes, indent, own);
        }
    }
}

/// Whether a run of backticks in the paragraph at the end of `shown` has an equal one in `rest`.
fn in_span(shown: &str, rest: &str) -> bool {
    let mut paragraph = Vec::new();
    let mut lines = shown.split('\n').zip(fenced_lines(shown)).peekable();
    while let Some((line, fenced)) = lines.next() {
        let is_border = ["", "-"].contains(&containers(line, usize::MAX, true).2);
        if fenced || (is_border && lines.peek().is_some()) {
            paragraph.clear();
        } else {
            paragraph.push(line);
        }
    }
    let is_blank = |line: &str| line.trim_matches([' ', '\t', '\r']).is_empty();
    let breaks: Vec<usize> = rest.match_indices('\n').map(|(at, _)| at).collect();
    let end = breaks.windows(2).find(|pair| is_blank(&rest[pair[0] + 1..pair[1]]));
    let ahead = runs(&rest[..end.map_or(rest.len(), |pair| pair[0])]);
    // Runs before a tag had no partner behind it, or it wouldn't have been one.
    let paragraph = paragraph.join("\n");
    let since_tag = paragraph.rsplit(TAG).next().unwrap_or_default();
    pending(&runs(since_tag)).iter().any(|len| ahead.contains(len))
}

/// Lengths of all runs of backticks.
fn runs(text: &str) -> Vec<usize> {
    text.split(|c| c != '`').map(str::len).filter(|&len| len > 0).collect()
}

/// Lengths of the runs without a partner: a run pairs with the next equal one, and those between
/// are inside. Behind a run that isn't closed yet the next ones pair likewise.
fn pending(runs: &[usize]) -> Vec<usize> {
    let Some((first, rest)) = runs.split_first() else { return Vec::new() };
    if let Some(partner) = rest.iter().position(|len| len == first) {
        return pending(&rest[partner + 1..]);
    }
    let odd = |len: &&usize| rest.iter().filter(|other| other == len).count() % 2 == 1;
    rest.iter().filter(odd).chain([first]).copied().collect()
}

/// The tag at the beginning of `rest`: its length and event.
fn tag(rest: &str) -> Option<(usize, Ev)> {
    let Some((name, from)) = opener(rest) else {
        return cut_opener(rest)
            .then(|| (rest.len(), Ev::Stripped(rest.into(), TagDefect::Unclosed)));
    };
    let end = blank_line(rest, from).unwrap_or(rest.len());
    let body = &rest[..end];
    let skip = from + quotation(&body[from..]).filter(|_| name == "tool").unwrap_or(0);
    let (stop, closed) = close(rest, end, skip);
    let open_quote = name == "tool" && skip == from && starts_quoted(&body[from..]);
    let (stop, closed) = match (open_quote, quotation_missing(&body[from..])) {
        (true, true) => close(rest, end, from),
        _ => (stop, closed),
    };
    let Some((inner, len)) = closed else {
        let raw = rest[..stop].strip_suffix('\r').filter(|_| rest[stop..].starts_with('\n'));
        let raw = raw.unwrap_or(&rest[..stop]);
        return Some((raw.len(), Ev::Stripped(raw.into(), TagDefect::Unclosed)));
    };
    let (raw, inner) = (rest.as_bytes()[..len].to_vec(), rest[from..inner].trim_ascii());
    if name == "companion" {
        let has = |name: &str| {
            inner.split(|c: char| !c.is_alphanumeric()).any(|one| one.eq_ignore_ascii_case(name))
        };
        let set = Companion::ALL.into_iter().filter(|one| has(one.as_str()));
        return Some((len, Ev::Companions(set.fold(Companions::default(), Companions::with), raw)));
    }
    let end = inner.find(|c: char| !is_verb(c)).unwrap_or(inner.len());
    let (verb, payload) = (&inner[..end], inner[end..].trim_ascii());
    let event = match verb {
        "" => Ev::Stripped(raw, TagDefect::NoVerb),
        _ => Ev::Tool(verb.into(), strip_quotes(payload).into(), raw),
    };
    Some((len, event))
}

fn is_verb(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '-' || c == '_'
}

fn strip_quotes(payload: &str) -> &str {
    for quote in ["\"", "'"] {
        if let [before, inner, after] = payload.split(quote).collect::<Vec<_>>().as_slice()
            && before.is_empty()
            && after.is_empty()
        {
            return inner;
        }
    }
    payload
}

/// The singular of the tag's name and the length of its opener.
fn opener(rest: &str) -> Option<(&'static str, usize)> {
    let lower = rest.to_ascii_lowercase();
    let at = lower.strip_prefix("<<").or(lower.strip_prefix('<'))?;
    let after = at.trim_start_matches([' ', '\t']).strip_prefix("garret")?;
    let kind = after.trim_start_matches([' ', '\t', '-', '_']);
    let separator = &after[..after.len() - kind.len()];
    if separator.is_empty() || separator.matches(['-', '_']).count() > 1 {
        return None;
    }
    for name in ["companion", "tool"] {
        let Some(after) = kind.strip_prefix(name) else { continue };
        let after = after.strip_prefix('s').unwrap_or(after);
        let trimmed = after.trim_start_matches([' ', '\t']);
        if let Some(body) = trimmed.strip_prefix(':') {
            return Some((name, rest.len() - body.len()));
        }
        let separated = trimmed.len() < after.len() || after.starts_with(['>', '\n', '\r']);
        return (separated && !trimmed.is_empty()).then_some((name, rest.len() - trimmed.len()));
    }
    None
}

/// Whether `rest` is an opener that the end cuts off behind its hyphen: some ending completes it.
fn cut_opener(rest: &str) -> bool {
    let endings = ["tool:", "ool:", "ol:", "l:", "companion:", "ompanion:", "mpanion:", "panion:"];
    let more = ["anion:", "nion:", "ion:", "on:", "n:", ":"];
    let hyphen = rest.contains(['-', '_']) || rest.to_ascii_lowercase().contains("tool");
    let named = hyphen || rest.to_ascii_lowercase().contains("companion");
    named
        && endings.iter().chain(&more).any(|ending| {
            let whole = format!("{rest}{ending}");
            opener(&whole).is_some_and(|(_, len)| len == whole.len())
        })
}

/// Where the first blank line behind `from` begins: at the line break before it.
fn blank_line(rest: &str, from: usize) -> Option<usize> {
    rest.match_indices('\n')
        .map(|(at, _)| at)
        .filter(|&at| at >= from)
        .find(|&at| rest[at + 1..].trim_start_matches([' ', '\t', '\r']).starts_with('\n'))
}

/// The body from its payload on.
fn payload(body: &str) -> &str {
    body.trim_ascii_start().trim_start_matches(is_verb).trim_ascii_start()
}

fn starts_quoted(body: &str) -> bool {
    payload(body).starts_with(['"', '\''])
}

/// Length of `body` up to the end of the quotation its payload begins with.
fn quotation(body: &str) -> Option<usize> {
    let quoted = payload(body);
    let quote = quoted.chars().next().filter(|c| "\"'".contains(*c))?;
    let ends = |at: &usize| quoted[at + 1..].trim_ascii_start().starts_with('>');
    let end = quoted.match_indices(quote).map(|(at, _)| at).skip(1).find(ends)?;
    Some(body.len() - quoted.len() + end + 1)
}

fn quotation_missing(body: &str) -> bool {
    quotation(body).is_none()
}

/// Where the search for a closer in `rest[from..end]` stops, and the closer's beginning and end.
fn close(rest: &str, end: usize, from: usize) -> (usize, Option<(usize, usize)>) {
    let body = &rest[..end];
    let next = body
        .match_indices('<')
        .map(|(at, _)| at)
        .find(|&at| at >= from && (opener(&rest[at..]).is_some()));
    let stop = next.unwrap_or(body.len());
    let mut start = from;
    for line in body[from..stop].split_inclusive('\n') {
        if let Some(at) = line.find(">>") {
            return (stop, Some((start + at, start + at + 2)));
        }
        let spaced = |at: usize| body[..start + at].ends_with(|c: char| c.is_ascii_whitespace());
        let likely = |at: &usize| {
            let after = line[at + 1..].chars().next();
            after.is_none_or(|c| c.is_ascii_whitespace()) && !spaced(*at)
        };
        let singles: Vec<usize> = line.match_indices('>').map(|(at, _)| at).collect();
        // In front of the next tag's `<` no white space ends the line.
        let likely = |at: &usize| likely(at) && (start + at + 1 < stop || next.is_none());
        if let Some(at) = singles.iter().copied().find(likely).or(singles.last().copied()) {
            return (stop, Some((start + at, start + at + 1)));
        }
        start += line.len();
    }
    (stop, None)
}

fn outputs() -> impl Strategy<Value = String> {
    let parts = prop::sample::select(vec![
        "<",
        "<<",
        "<<<",
        ">",
        ">>",
        "garret",
        "-",
        "_",
        " ",
        "  ",
        "\t",
        "tool",
        "companions",
        "tools",
        ":",
        "search",
        "compact",
        "infer",
        "\"",
        "'",
        "`",
        "``",
        "```",
        "~~~",
        "````",
        "\n",
        "\n\n",
        "\r\n",
        "a",
        "\u{e9}",
        "\u{4F60}\u{597D}",
        "\u{1F41D}",
        "x > y",
        "p->q",
        "<<garret-tool: search bees>>",
        "<<garret-tool: search \"a >> b\">>",
        "<garret tool ",
        "<<garret-companions: infer, compact>>",
        "<<garret_tool: ",
        "<<garret-tool",
        "\n```\n",
        "\n~~~\n",
        "\">>",
        "' >",
        "> ",
        ">\n",
        "vector<vector<int>>",
        "a << b >> c",
        "<<garret-",
        "`<<garret-tool: x>>`",
        "\n   ```sh\n",
        "GARRET-TOOL",
    ]);
    prop::collection::vec(parts, 0..28).prop_map(|parts| parts.concat())
}

fn expected(output: &str) -> Vec<Ev> {
    let mut events = Vec::new();
    reference(&mut String::new(), output, &mut events);
    events
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6_000))]

    #[test]
    fn any_splice_agrees_with_the_reference(output in outputs(), chunk in 1_usize..12) {
        let expected = expected(&output);
        prop_assert_eq!(&scan_whole(&output), &expected);
        prop_assert_eq!(scan(output.as_bytes().chunks(chunk)), expected);
    }

    #[test]
    fn any_bytes_without_an_opener_come_out_as_they_are(
        bytes in prop::collection::vec(any::<u8>(), 0..3_000),
        chunk in 1_usize..2_000,
    ) {
        let events = scan(bytes.chunks(chunk));
        let text = if bytes.is_empty() { vec![] } else { vec![Ev::Text(bytes)] };
        prop_assert_eq!(events, text);
    }
}
