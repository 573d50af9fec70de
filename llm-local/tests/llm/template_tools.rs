//! Templates that tell of tools in a form of their own, and those that don't.

use garret_core::prompt::Role::{Assistant, System, Tool, User};
use garret_core::prompt::{ParameterKind, ToolParameter, ToolSpec};
use garret_core::token::Token;
use garret_llm::template::{ChatTemplate, Item};
use garret_llm::vocab::SpecialKind;

use crate::support::template::{FAMILIES, Family, joined, special, specials, turn};

const TOOLS: [ToolSpec<'static>; 2] = [
    ToolSpec {
        name: "lookup",
        description: "what is known",
        parameters: &[
            ToolParameter { name: "words", kind: ParameterKind::Text },
            ToolParameter { name: "count", kind: ParameterKind::Integer },
        ],
    },
    ToolSpec { name: "pinned", description: "pinned facts", parameters: &[] },
];

const SHOWN: &str = r#"
{"type": "function", "function": {"name": "lookup", "description": "what is known", "parameters": {"type": "object", "properties": {"words": {"type": "string"}, "count": {"type": "integer"}}, "required": ["words", "count"]}}}
{"type": "function", "function": {"name": "pinned", "description": "pinned facts", "parameters": {"type": "object", "properties": {}, "required": []}}}
"#;

fn family(name: &str) -> &'static Family {
    FAMILIES.iter().find(|family| family.name == name).unwrap()
}

fn compile(name: &str) -> ChatTemplate {
    ChatTemplate::compile(family(name).source, &specials(family(name))).unwrap()
}

#[test]
fn only_the_known_form_is_used() {
    for family in &FAMILIES {
        let mut template = compile(family.name);
        let plain = template.render(&[turn(System, "s"), turn(User, "u")], true).unwrap();
        let plain = joined(&plain);
        assert_eq!(template.set_tools(&TOOLS), family.name == "qwen2.5", "{}", family.name);
        let told = template.render(&[turn(System, "s"), turn(User, "u")], true).unwrap();
        assert_eq!(joined(&told) != plain, family.name == "qwen2.5", "{}", family.name);
    }
}

/// A call that is written in control tokens can't be read, so such a model isn't told of tools.
#[test]
fn calls_that_cannot_be_read_are_not_asked_for() {
    let family = family("qwen2.5");
    let mut specials = specials(family);
    specials.tokens.push(special(399, "<tool_call>", SpecialKind::Control));
    specials.tokens.retain(|token| token.id != Token(302));
    let mut template = ChatTemplate::compile(family.source, &specials).unwrap();
    assert!(!template.set_tools(&TOOLS));
}

#[test]
fn tools_stand_in_the_system_message_and_go_again() {
    let mut template = compile("qwen2.5");
    let turns = [turn(System, "Be brief."), turn(User, "Hi."), turn(Assistant, "Yes?")];
    let before = joined(&template.render(&turns, false).unwrap());
    assert!(template.set_tools(&TOOLS));
    let told = joined(&template.render(&turns, false).unwrap());
    let (system, rest) = told.split_once("<|im_end|>\n").unwrap();
    assert!(system.starts_with("<|im_start|>system\nBe brief.\n\n# Tools\n"), "{system}");
    assert!(system.contains(SHOWN), "{system}");
    assert_eq!(rest, before.split_once("<|im_end|>\n").unwrap().1, "nothing else changed");
    let alone = joined(&template.render(&turns[1..], false).unwrap());
    assert!(!alone.contains("lookup"), "there is no system message for them: {alone}");
    assert!(template.set_tools(&[]));
    assert_eq!(joined(&template.render(&turns, false).unwrap()), before);
}

/// The system message ends behind the tools, so that they are counted with it.
#[test]
fn a_system_message_ends_behind_its_tools() {
    let mut template = compile("qwen2.5");
    assert!(template.set_tools(&TOOLS));
    let layout = template.layout(&[turn(System, "s"), turn(User, "u")], true).unwrap();
    let text = |items: &[Item]| -> String {
        items
            .iter()
            .map(|item| match item {
                Item::Run(text) => text.as_str(),
                _ => "|",
            })
            .collect()
    };
    let system = text(&layout.items[..layout.ends[0]]);
    assert!(system.starts_with("|system\ns\n\n# Tools") && system.ends_with("\n||\n"), "{system}");
    assert!(text(&layout.items[layout.ends[0]..]).starts_with("|user\nu|"));
}

#[test]
fn an_answer_follows_what_was_called() {
    let mut template = compile("qwen2.5");
    assert!(template.set_tools(&TOOLS));
    let called = [turn(User, "Hi."), turn(Assistant, "<tool_call>x</tool_call>")];
    let before = joined(&template.render(&called, false).unwrap());
    let answered = [&called[..], &[turn(Tool, "<tool_response>y")]].concat();
    let after = joined(&template.render(&answered, true).unwrap());
    let added = after.strip_prefix(&before).unwrap();
    let expected = "<|im_start|>user\n<tool_response>\n<tool_response>y\n</tool_response><|im_end|>\n\
                    <|im_start|>assistant\n";
    assert_eq!(added, expected);
    // What spells a mark of the template within a content isn't one.
    let layout = template.layout(&answered, true).unwrap();
    assert!(!layout.items.contains(&Item::Special(Token(302))), "{layout:?}");
}
