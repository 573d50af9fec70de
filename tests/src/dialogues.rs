//! Short dialogues with what ought to happen after the last message, from
//! `tests/data/gate_dialogues.txt`.

/// A dialogue and its labels.
#[derive(Clone, Debug, Default)]
pub struct Dialogue {
    /// Its number in the file.
    pub number: usize,
    /// Share of the window that is in use at the last message.
    pub fill: f32,
    /// Thinking about it is worth the time.
    pub infer: bool,
    /// Older turns should be summarised.
    pub compact: bool,
    /// The last message can't be true beside what was said before.
    pub contradiction: bool,
    /// The user's messages, oldest first.
    pub user: Vec<String>,
}

/// All dialogues.
///
/// # Panics
/// When the file isn't as its head says.
pub fn dialogues() -> Vec<Dialogue> {
    let mut all: Vec<Dialogue> = Vec::new();
    for line in include_str!("../data/gate_dialogues.txt").lines() {
        if let Some(head) = line.strip_prefix("# ") {
            all.push(labels(head));
        } else if let Some(text) = line.strip_prefix("u: ") {
            all.last_mut().expect("a head comes first").user.push(unescaped(text));
        } else {
            let known = line.is_empty() || line.starts_with("//") || line.starts_with("a: ");
            assert!(known, "what is this line? {line}");
        }
    }
    all
}

fn labels(head: &str) -> Dialogue {
    let mut words = head.split(' ');
    let number = words.next().and_then(|number| number.parse().ok()).expect("a number");
    let mut dialogue = Dialogue { number, fill: 0.1, ..Dialogue::default() };
    for word in words {
        match word.split_once('=') {
            Some(("fill", fill)) => dialogue.fill = fill.parse().expect("a share"),
            None if word == "infer" => dialogue.infer = true,
            None if word == "compact" => dialogue.compact = true,
            None if word == "contradiction" => dialogue.contradiction = true,
            _ => panic!("an unknown label: {word}"),
        }
    }
    dialogue
}

fn unescaped(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("\\u{") {
        let (digits, after) = after.split_once('}').expect("an escape ends");
        plain.push_str(before);
        let code = u32::from_str_radix(digits, 16).expect("hexadecimal digits");
        plain.push(char::from_u32(code).expect("a character"));
        rest = after;
    }
    plain + rest
}
