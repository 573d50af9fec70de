//! Templates, special tokens and an independent rendering to compare with.

use garret_core::prompt::Role;
use garret_core::token::Token;
use garret_llm::template::{Segment, Turn};
use garret_llm::vocab::{SpecialKind, SpecialToken, Specials};
use minijinja::value::Value;
use minijinja::{Environment, Error, ErrorKind};

/// A template under test.
pub(crate) struct Family {
    pub(crate) name: &'static str,
    pub(crate) source: &'static str,
    pub(crate) bos: &'static str,
    pub(crate) eos: &'static str,
    /// Whether it shows system messages in front by itself.
    pub(crate) system: bool,
}

macro_rules! family {
    ($name:literal, $bos:literal, $eos:literal, system: $system:literal) => {
        Family {
            name: $name,
            source: include_str!(concat!("../templates/", $name, ".jinja")),
            bos: $bos,
            eos: $eos,
            system: $system,
        }
    };
}

/// All of them.
pub(crate) const FAMILIES: [Family; 11] = [
    family!("chatml", "<|im_start|>", "<|im_end|>", system: true),
    family!("llama3", "<|begin_of_text|>", "<|eot_id|>", system: true),
    family!("gemma2", "<bos>", "<eos>", system: false),
    family!("gemma3", "<bos>", "<eos>", system: true),
    family!("mistral-v1", "<s>", "</s>", system: false),
    family!("mistral-v3", "<s>", "</s>", system: false),
    family!("mistral-v7", "<s>", "</s>", system: true),
    family!("phi3", "<s>", "<|endoftext|>", system: true),
    family!("phi4", "<|endoftext|>", "<|im_end|>", system: true),
    family!("qwen2.5", "<|endoftext|>", "<|im_end|>", system: true),
    family!("qwen3", "<|endoftext|>", "<|im_end|>", system: true),
];

/// Control tokens of all families but those that plain-text templates lack.
const CONTROL: [&str; 26] = [
    "<s>",
    "</s>",
    "<bos>",
    "<eos>",
    "<|begin_of_text|>",
    "<|start_header_id|>",
    "<|end_header_id|>",
    "<|eot_id|>",
    "<|im_start|>",
    "<|im_sep|>",
    "<|im_end|>",
    "<|endoftext|>",
    "<start_of_turn>",
    "<end_of_turn>",
    "<|system|>",
    "<|user|>",
    "<|assistant|>",
    "<|end|>",
    "[SYSTEM_PROMPT]",
    "[/SYSTEM_PROMPT]",
    "[INST]",
    "[/INST]",
    "<|fim_prefix|>",
    "<|fim_suffix|>",
    "<pad>",
    "<unk>",
];

/// Special tokens as the models of `family` have them.
pub(crate) fn specials(family: &Family) -> Specials {
    let knows = |text: &&&str| family.name != "mistral-v1" || !text.contains("INST");
    let mut tokens: Vec<SpecialToken> = CONTROL
        .iter()
        .filter(knows)
        .enumerate()
        .map(|(at, text)| special(256 + at as i32, text, SpecialKind::Control))
        .collect();
    for token in &mut tokens {
        token.ends_generation = token.text == family.eos;
        token.strips_right =
            family.name == "phi3" && !["<s>", "<|endoftext|>"].contains(&&*token.text);
    }
    for (at, text) in ["<think>", "</think>", "<tool_call>", "</tool_call>"].into_iter().enumerate()
    {
        tokens.push(special(300 + at as i32, text, SpecialKind::UserDefined));
    }
    let id = |text: &str| {
        tokens.iter().find(|token| token.text == text).map(|token| (token.id, text.to_owned()))
    };
    let (bos, eos) = (id(family.bos), id(family.eos));
    Specials { tokens, bos, eos, add_bos: false }
}

pub(crate) fn special(id: i32, text: &str, kind: SpecialKind) -> SpecialToken {
    SpecialToken {
        id: Token(id),
        text: text.to_owned(),
        kind,
        ends_generation: false,
        strips_left: false,
        strips_right: false,
    }
}

pub(crate) fn turn(role: Role, content: &str) -> Turn<'_> {
    Turn { role, content, kept: false }
}

/// The whole prompt as the template itself renders it with content in place.
pub(crate) fn whole(
    source: &str,
    bos: &str,
    eos: &str,
    turns: &[Turn<'_>],
    reply_follows: bool,
) -> Result<String, Error> {
    let mut environment = Environment::new();
    let syntax = minijinja::syntax::SyntaxConfig::builder()
        .trim_blocks(true)
        .lstrip_blocks(true)
        .build()
        .unwrap();
    environment.set_syntax(syntax);
    environment.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
    environment.add_function("raise_exception", |message: String| -> Result<String, Error> {
        Err(Error::new(ErrorKind::InvalidOperation, message))
    });
    environment.add_function("strftime_now", |_: String| "26 Jul 2024");
    let messages: Vec<Value> = turns
        .iter()
        .map(|turn| minijinja::context! { role => turn.role.as_str(), content => turn.content })
        .collect();
    let none = Value::from(());
    environment.render_str(
        source,
        minijinja::context! {
            messages, tools => none, bos_token => bos, eos_token => eos,
            add_generation_prompt => reply_follows,
        },
    )
}

/// What `segments` are when joined.
pub(crate) fn joined(segments: &[Segment<'_>]) -> String {
    segments
        .iter()
        .map(|segment| match segment {
            Segment::Scaffold(text) => text.as_str(),
            Segment::Content(_, text) => text,
        })
        .collect()
}

/// `turns` with system messages put before the next user message.
pub(crate) fn merged(turns: &[Turn<'_>]) -> Vec<(Role, String)> {
    let mut out: Vec<(Role, String)> = Vec::new();
    let mut system = String::new();
    for turn in turns {
        match turn.role {
            Role::System if !turn.content.trim().is_empty() => {
                system = format!("{}\n\n", turn.content);
            }
            Role::System => {}
            Role::User => {
                out.push((Role::User, std::mem::take(&mut system) + turn.content));
            }
            role => out.push((role, turn.content.to_owned())),
        }
    }
    out
}

/// Texts that spell no special token, in many scripts and shapes.
pub(crate) const BENIGN: [&str; 34] = [
    "Hello",
    "Hello, world! How are you today?",
    " leading space",
    "trailing space ",
    "  two  spaces  everywhere  ",
    "\nleading newline",
    "trailing newline\n",
    "\n\n\nmany\n\n\nnewlines\n\n\n",
    "\ttab\tand\ttab\t",
    "line one\nline two\r\nline three\rline four",
    "fn main() {\n    println!(\"{}\", 1 << 3);\n}\n",
    "def f(x):\n\treturn {'a': [1, 2, 3]}[x]\n\n",
    "<html><body class=\"x\">a &amp; b</body></html>",
    "if a < b && c > d || e != f { g |= h; }",
    "3.14159 and 1,000,000 and 0x1F and 1e-9",
    "Grusse aus K\u{f6}ln, na\u{ef}ve caf\u{e9}",
    "\u{41f}\u{440}\u{438}\u{432}\u{435}\u{442}, \u{43c}\u{438}\u{440}!",
    "\u{4f60}\u{597d}\u{ff0c}\u{4e16}\u{754c}\u{3002}",
    "\u{3053}\u{3093}\u{306b}\u{3061}\u{306f} \u{30ab}\u{30bf}\u{30ab}\u{30ca}",
    "\u{c548}\u{b155}\u{d558}\u{c138}\u{c694}",
    "\u{645}\u{631}\u{62d}\u{628}\u{627} \u{628}\u{627}\u{644}\u{639}\u{627}\u{644}\u{645}",
    "\u{5e9}\u{5dc}\u{5d5}\u{5dd}",
    "\u{928}\u{92e}\u{938}\u{94d}\u{924}\u{947}",
    "\u{e2a}\u{e27}\u{e31}\u{e2a}\u{e14}\u{e35}",
    "\u{1f600}\u{1f468}\u{200d}\u{1f469}\u{200d}\u{1f467}\u{1f3fd} \u{2764}\u{fe0f}",
    "e\u{301}\u{323} combining",
    "\u{feff}byte order mark",
    "\u{a0}no-break space\u{a0}",
    "\u{2003}em space\u{3000}",
    "control \u{1}\u{7f}\u{85} characters",
    "{{ messages }} {% raise %} {# no #}",
    "user\nassistant\nsystem\n",
    "system",
    "'quotes' \"double\" `back` \\ back\\slash \\n",
];
