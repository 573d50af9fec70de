//! What the tag scanner makes of outputs, and that it doesn't matter how they are cut.

mod scan_common;

use garret_core::scan::{Companion, Companions, Scan, TagDefect, TagScanner, is_quoted};
use scan_common::{Ev, add, scan, scan_whole, text};

fn tool(verb: &str, payload: &str, raw: &str) -> Ev {
    Ev::Tool(verb.into(), payload.into(), raw.into())
}

fn stripped(raw: &str) -> Ev {
    Ev::Stripped(raw.into(), TagDefect::Unclosed)
}

fn companions(list: &[Companion], raw: &str) -> Ev {
    Ev::Companions(list.iter().fold(Companions::default(), |set, &one| set.with(one)), raw.into())
}

/// Outputs that are nothing but tags of one verb and payload.
const SPELLINGS: &[(&str, &str, &str)] = &[
    ("<<garret-tool: search bees>>", "search", "bees"),
    ("<<garret-tool:search bees>>", "search", "bees"),
    ("<< \tGARRET-Tool :\n Search   bees and\nwasps \n>>", "Search", "bees and\nwasps"),
    ("<<garret-tool: memory>>", "memory", ""),
    ("<<garret-tool: search \"bees\">>", "search", "bees"),
    ("<<garret-tool: search 'bees' >>", "search", "bees"),
    ("<<garret-tool: search\"a >> b\">>", "search", "a >> b"),
    ("<<garret-tool: search \"a >>\nb> \nc\" >>", "search", "a >>\nb> \nc"),
    ("<<garret-tool: search 'it's >> here'>>", "search", "'it's >> here'"),
    ("<<garret-tool: search \"a\" or \"b\">>", "search", "\"a\" or \"b\""),
    ("<<garret-tool: search \"bees>>", "search", "\"bees"),
    ("<<garret-tool: search \">>", "search", "\""),
    ("<<garret-tool: search a > b -> c>>", "search", "a > b -> c"),
    ("<<garret-tool: search a << b < c>>", "search", "a << b < c"),
    ("<<garret-tool: search a <b>>", "search", "a <b"),
    ("<<garret-tool: search `x` ```y```>>", "search", "`x` ```y```"),
    (
        "<<garret-tool: search \u{8702}\u{871C} e\u{301} \u{1F41D}\u{200D}\u{1F36F}>>",
        "search",
        "\u{8702}\u{871C} e\u{301} \u{1F41D}\u{200D}\u{1F36F}",
    ),
    ("<<garret-tool: forget-confirm 1a2b>>", "forget-confirm", "1a2b"),
    ("<<garret_tool: search bees>>", "search", "bees"),
    ("<<garret tool: search bees>>", "search", "bees"),
    ("<<garret - tool: search bees>>", "search", "bees"),
    ("<<garret-tools: search bees>>", "search", "bees"),
    ("<<garret-tool search bees>>", "search", "bees"),
    ("<garret-tool: search bees>>", "search", "bees"),
    ("<<garret-tool: search bees>", "search", "bees"),
    ("<garret tool search bees>", "search", "bees"),
    ("<garret_tool: search \"a > b\">", "search", "a > b"),
    ("<<garret-tool: search a > b>", "search", "a > b"),
    ("<<garret-tool: search a->b >", "search", "a->b"),
];

/// Whole outputs and their events.
fn outputs() -> Vec<(String, Vec<Ev>)> {
    use Companion::{Compact, Infer};
    let mut outputs: Vec<(String, Vec<Ev>)> = Vec::new();
    for &(raw, verb, payload) in SPELLINGS {
        outputs.push((raw.into(), vec![tool(verb, payload, raw)]));
        let lines = format!("\u{e9}\n{raw}\n\n<");
        outputs.push((lines, vec![text("\u{e9}\n"), tool(verb, payload, raw), text("\n\n<")]));
    }
    for (raw, list) in [
        ("<<garret-companions: compact, infer>>", vec![Compact, Infer]),
        ("<<garret-companions: INFER>>", vec![Infer]),
        ("<<garret-companions:compact research,infer,>>", vec![Compact, Infer]),
        ("<<garret-companions: research>>", vec![]),
        ("<< garret_companion compact\n>>", vec![Compact]),
        ("<garret companions: infer>", vec![Infer]),
        ("<garret-companions>", vec![]),
    ] {
        outputs.push((raw.into(), vec![companions(&list, raw)]));
    }
    let (bees, wasps) = ("<<garret-tool: search bees>>", "<<garret-tool: read wasps>>");
    let (b, w) = (tool("search", "bees", bees), tool("read", "wasps", wasps));
    let mut add = |output: String, events: Vec<Ev>| outputs.push((output, events));

    // Tags next to each other and to text.
    add(format!("{bees}{wasps}"), vec![b.clone(), w.clone()]);
    add(format!("<{bees}>{wasps}<<"), vec![text("<"), b.clone(), text(">"), w.clone(), text("<<")]);
    add(format!("\\{bees}"), vec![text("\\"), b.clone()]);
    add(format!("<<garret-{bees}"), vec![text("<<garret-"), b.clone()]);
    let single = "<<garret-tool: search bees>";
    let s = tool("search", "bees", single);
    add(format!("{single} or so {wasps}"), vec![s.clone(), text(" or so "), w.clone()]);
    add(format!("{single} if 5 > 3\r\nYes"), vec![s.clone(), text(" if 5 > 3\r\nYes")]);

    // Unclosed tags.
    let open = "<<garret-tool: search bees\nand wasps";
    add(format!("a {open}"), vec![text("a "), stripped(open)]);
    add(format!("{open}\r\n \t\r\nb"), vec![stripped(open), text("\r\n \t\r\nb")]);
    add(format!("{open} \n{wasps}"), vec![stripped(&format!("{open} \n")), w.clone()]);
    add(
        "<<garret-tool: search \"bees\n\n>>".into(),
        vec![stripped("<<garret-tool: search \"bees"), text("\n\n>>")],
    );
    add(
        format!("<<garret-tool: say \"a>> {bees}\n\n"),
        vec![tool("say", "\"a", "<<garret-tool: say \"a>>"), text(" "), b.clone(), text("\n\n")],
    );
    for cut in
        ["<<garret-tool", "<<garret-tool:", "<garret-to", "<<garret_", "<<garret-companions: c"]
    {
        add(format!("a{cut}"), vec![text("a"), stripped(cut)]);
    }
    let no_verb = |raw: &str| Ev::Stripped(raw.into(), TagDefect::NoVerb);
    for raw in ["<<garret-tool: >>", "<<garret-tool>>", "<<garret-tool: \"\">>"] {
        add(format!("{raw}."), vec![no_verb(raw), text(".")]);
    }

    // Code.
    for code in [
        format!("`{bees}`"),
        format!("``a ` {bees}\n`` b"),
        format!("`a ``b {bees} c``"),
        format!("```\n{bees}\n```"),
        format!("a\n~~~ sh {bees}\n{wasps}\n\n{bees}\n~~~~ \nb"),
        format!("````\n```\n{bees}\n````\n"),
        format!("```\n~~~\n{bees}\n``` x\n{bees}"),
        format!("   ```\n{bees}"),
        format!("> ```\n> {bees}\n"),
        format!("- a\n  1. ```sh\n     {bees}\n     ```\n"),
        "a `<<garret-tool: VERB` b\n".to_owned(),
        format!("```sh {bees}```\n"),
    ] {
        add(code.clone(), vec![text(&code)]);
    }
    for (before, after) in [
        ("```\ncode\n```\n", "\n"),
        ("~~~\n```\n~~~\n", ""),
        ("> ~~~\n> code\n", ""),
        ("- ```\n  code\n  ```\n", ""),
        ("it`s ", " so"),
        ("it`s ", "\n\n`"),
        ("`code` and ", ""),
        ("\\`", "`"),
        ("``a`b`` ", "`"),
        ("`a ``b`` ", " ``` "),
        ("```code``` ", ""),
        ("a ~~~ ", "\n~~~"),
        ("~~ ", "~~"),
        ("> `\n\n", "`"),
        ("**bold** ", ""),
    ] {
        let events = [text(before), b.clone(), text(after)];
        let events = events.into_iter().filter(|event| *event != text("")).collect();
        add(format!("{before}{bees}{after}"), events);
    }
    outputs
}

/// Outputs without any tag.
const TEXTS: &[&str] = &[
    "",
    "Just text.",
    "<",
    "<<",
    "<<<",
    ">>",
    "<<garret",
    "<<garret ",
    "<<garrett-tool: x>>",
    "<<garret-toolbox: x>>",
    "<<garret-tool/search>>",
    "<<garret-fool: x>>",
    "<\u{FF1C}garret-tool: x>>",
    "<<<garret<<garret <<garret",
    "<<\ngarret-tool: x>>",
    "< < garret",
    "a << b >> c",
    "vector<vector<int>> x; y <<= 2; std::cout << \"a\" << std::endl;",
    "<p class=\"a\">b</p><br/><!-- c --><garret>",
    "```\n<<garret",
    "tail `",
    "\u{1F600}<\u{1F600}<<\u{4F60}<<g\u{e9}rret",
    "\r\n\t<<\r\n",
];

#[test]
fn outputs_give_their_events() {
    for (output, events) in outputs() {
        assert_eq!(scan_whole(&output), events, "{output:?}");
    }
}

#[test]
fn text_without_tags_comes_out_byte_for_byte() {
    for output in TEXTS {
        let events = scan_whole(output);
        assert_eq!(events, if output.is_empty() { vec![] } else { vec![text(output)] });
    }
    let bytes: Vec<u8> = (0..=255).chain([b'<', 0xFF, b'<', b'g', 0xF0, b'<']).collect();
    assert_eq!(scan_whole(&bytes), [Ev::Text(bytes)]);
}

/// All outputs, and mixtures of them that put tags into every context.
fn all_outputs() -> Vec<String> {
    let mut all: Vec<String> = TEXTS.iter().map(|text| text.to_string()).collect();
    all.extend(outputs().into_iter().map(|(output, _)| output));
    for glue in ["", " ", "\n", "\n\n", "`"] {
        all.extend(TEXTS.windows(2).map(|pair| pair.join(glue)));
        all.extend(
            SPELLINGS.windows(3).map(|three| [three[0].0, three[1].0, three[2].0].join(glue)),
        );
    }
    all
}

#[test]
fn cut_at_every_byte_into_two_pieces_or_single_bytes_nothing_changes() {
    for output in all_outputs() {
        let bytes = output.as_bytes();
        let whole = scan_whole(bytes);
        for cut in 0..=bytes.len() {
            let (head, tail) = bytes.split_at(cut);
            assert_eq!(scan([head, tail]), whole, "{output:?} cut at {cut}");
        }
        assert_eq!(scan(bytes.chunks(1)), whole, "{output:?} byte by byte");
    }
}

#[test]
fn cut_at_every_two_bytes_into_three_pieces_nothing_changes() {
    for output in all_outputs().iter().filter(|output| output.len() <= 72) {
        let bytes = output.as_bytes();
        let whole = scan_whole(bytes);
        for first in 0..=bytes.len() {
            for second in first..=bytes.len() {
                let pieces = [&bytes[..first], &bytes[first..second], &bytes[second..]];
                assert_eq!(scan(pieces), whole, "{output:?} cut at {first} and {second}");
            }
        }
    }
}

/// What is held back after `output`, and the text shown until then.
fn held_after(output: &str) -> (usize, String) {
    let mut scanner = TagScanner::new();
    let mut events = Vec::new();
    scanner.push(output.as_bytes(), &mut |scan| add(&mut events, scan));
    let shown: Vec<u8> = events
        .into_iter()
        .flat_map(|event| match event {
            Ev::Text(text) => text,
            other => format!("{other:?}").into_bytes(),
        })
        .collect();
    (scanner.held(), String::from_utf8_lossy(&shown).into_owned())
}

#[test]
fn only_what_can_become_a_tag_is_held_back() {
    for (shown, held) in [
        ("a ", "<"),
        ("a <", "<<"),
        ("a ", "<< garret_to"),
        ("", "<<garret-tool: search x > y"),
        ("it`s ", "<<garret-tool: search x>>"),
        ("<<garret-f", ""),
        ("<garret-toolx", ""),
        ("< b", ""),
        ("a << b", ""),
        ("```\n<<garret-tool: search", ""),
        ("`<<garret-tool: VERB` b", ""),
    ] {
        assert_eq!(held_after(&format!("{shown}{held}")), (held.len(), shown.to_owned()));
    }
}

#[test]
fn a_tag_is_reported_with_its_last_byte() {
    let mut scanner = TagScanner::new();
    scanner.push(b"<<garret-tool: search bees>", &mut |scan| panic!("early: {scan:?}"));
    let mut tags = 0;
    scanner.push(b">", &mut |scan| tags += usize::from(matches!(scan, Scan::Tag(_))));
    assert_eq!(tags, 1);
}

/// A tag of exactly `len` bytes.
fn tag_of(len: usize) -> String {
    let (opener, closer) = ("<<garret-tool: save ", ">>");
    let payload = len - opener.len() - closer.len();
    format!("{opener}{}{closer}", "x".repeat(payload))
}

#[test]
fn the_longest_tag_is_a_tag_and_a_longer_one_is_text() {
    let longest = tag_of(TagScanner::MAX_TAG_BYTES);
    let longer = tag_of(TagScanner::MAX_TAG_BYTES + 1);
    for after in ["", ">", " tail", "\n\n"] {
        let output = format!("{longest}{after}");
        for chunk in [1, 7, 1_000, 4_096] {
            let events = scan(output.as_bytes().chunks(chunk));
            assert!(
                matches!(&events[0], Ev::Tool(verb, _, raw)
                if verb == "save" && raw == longest.as_bytes()),
                "{events:?}"
            );
            assert_eq!(events.get(1), Some(&text(after)).filter(|_| !after.is_empty()));
            let output = format!("{longer}{after}");
            assert_eq!(scan(output.as_bytes().chunks(chunk)), [text(&output)]);
        }
    }
}

#[test]
fn a_tag_inside_what_was_too_long_for_one_is_found() {
    let bees = "<<garret-tool: search bees>>";
    let head = format!("<<garret-tool: save \"{}", "y".repeat(500));
    let tail = "z".repeat(1_000);
    let output = format!("{head} {bees} {tail}");
    // The quotation hides the inner tag until it turns out to have no end.
    let opened = stripped(&format!("{head} "));
    let found = tool("search", "bees", bees);
    for chunk in [1, 100, 4_096] {
        let expected = [opened.clone(), found.clone(), text(&format!(" {tail}"))];
        assert_eq!(scan(output.as_bytes().chunks(chunk)), expected);
    }
}

#[test]
fn a_scanner_is_new_after_finish() {
    let mut scanner = TagScanner::new();
    scanner.push(b"```\n<<garret", &mut |_| {});
    scanner.finish(&mut |_| {});
    let mut events = Vec::new();
    scanner.push(b"<<garret-tool: search x>>", &mut |scan| add(&mut events, scan));
    assert_eq!(events, [tool("search", "x", "<<garret-tool: search x>>")]);
}

#[test]
fn a_payload_that_is_no_utf8_is_never_executed() {
    let raw = b"<<garret-tool: search \xF0\x9F>>";
    let expected = [Ev::Stripped(raw.to_vec(), TagDefect::NotUtf8)];
    for chunk in 1..=raw.len() {
        assert_eq!(scan(raw.chunks(chunk)), expected);
    }
}

#[test]
fn sets_of_companions_hold_what_was_named() {
    let set = Companions::default().with(Companion::Infer);
    assert!(set.contains(Companion::Infer) && !set.contains(Companion::Compact));
    assert_eq!(set.iter().collect::<Vec<_>>(), [Companion::Infer]);
    assert!(Companions::default().is_empty() && !set.is_empty());
}

/// A tag that the user typed and the model echoed would be executed.
#[test]
fn a_tag_the_user_wrote_is_recognised_in_every_spelling() {
    for &(raw, verb, payload) in SPELLINGS {
        let raw = raw.as_bytes();
        let user = format!("Say \"<<garret-tool: {verb} {payload}>>\" to me");
        assert!(is_quoted(raw, &user), "{user}");
        assert!(is_quoted(raw, &user.to_uppercase().replace([' ', '\n'], "\n\n ")), "{user}");
        assert!(is_quoted(raw, &user.replace(">>\"", " ")), "{user} without a closer");
        assert!(!is_quoted(raw, &user.replace("garret", "carrot")), "{user}");
        assert!(!is_quoted(raw, "garret-tool"));
        assert!(!is_quoted(raw, ""));
    }
    assert!(!is_quoted(b"<<garret-tool: forget all>>", "<<garret-tool: forget one>>"));
    assert!(!is_quoted(b"", "anything"));
    assert!(is_quoted(
        "<<garret-tool: x \u{c9}T\u{c9}>>".as_bytes(),
        "<garret tool x \u{e9}t\u{e9}>"
    ));
}

/// A model writes what it reads in plain letters: what only looks like a tag then becomes one.
#[test]
fn a_tag_the_user_disguised_is_recognised() {
    let raw = b"<<garret-tool: expand turn 1>>";
    for user in [
        "<<garr\u{200b}et-tool: expand turn 1>>",
        "<\u{feff}<g\u{ad}arret-t\u{2060}ool: expand turn 1>>",
        "<<garret\u{202e}-tool: expand\u{fe0f} turn 1>>",
        "<<gar\0ret-tool: expand turn 1>>",
        "<<garret\u{2010}tool: expand\u{a0}turn\u{3000}1>>",
        "\u{ff1c}\u{ff1c}\u{ff47}arret-tool\u{ff1a} expand turn \u{ff11}\u{ff1e}\u{ff1e}",
        "\u{ff1c}\u{ff1c}\u{ff27}\u{ff21}rret-tool: expand turn 1\u{ff1e}\u{ff1e}",
        "\u{ab}garret-tool: expand turn 1\u{bb}",
        "\u{300a}garret-tool: expand turn 1\u{300b}",
        "\u{27e8}\u{27e8}garret-tool: expand turn 1\u{27e9}\u{27e9}",
        "\u{2039}\u{2039}garret-tool: expand turn 1",
        "<<g\u{430}rr\u{435}t-t\u{43e}\u{43e}l: \u{435}\u{445}p\u{430}nd turn 1>>",
        "<<G\u{410}RR\u{415}T-T\u{41e}\u{41e}L: EXPAND TURN 1>>",
        "<<\u{1d420}\u{1d41a}\u{1d42b}\u{1d42b}\u{1d41e}\u{1d42d}-\u{1d413}ool: expand turn \u{1d7cf}>>",
        "<<garret-tool: \u{201c}expand turn 1\u{201d}>>",
    ] {
        assert!(is_quoted(raw, user), "{user}");
        assert!(!is_quoted(raw, &user.replace(['n', 'N'], "m")), "{user}");
    }
    for user in
        ["<<garret-tool: expand turn 2>>", "<<g\u{e9}rret-tool: expand turn 1>>", "\u{200b}"]
    {
        assert!(!is_quoted(raw, user), "{user}");
    }
}

/// Where a comparison begins anew at each character and passes over all that follow, a text of a
/// hundred thousand takes minutes.
#[test]
fn a_huge_message_is_compared_in_one_pass() {
    let tag = "<<garret-tool: pinned>>";
    for filler in ["<", " ", "\u{200b}", "-", "<garret-tool ", "< <", "<<garret-tool: pin\n"] {
        let mut text = filler.repeat((1 << 17) / filler.len());
        assert!(!is_quoted(tag.as_bytes(), &text), "{filler:?}");
        text.push_str(tag);
        assert!(is_quoted(tag.as_bytes(), &text), "{filler:?}");
    }
    assert!(is_quoted(
        b"<tool_call>{\"a\": 1}</tool_call>",
        &format!("{}{{a: 1}}", " ".repeat(1 << 17))
    ));
}
