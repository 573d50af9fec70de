use garret_core::model::ModelFacts;
use proptest::prelude::*;

use super::*;

row! {
    /// All kinds of cells.
    struct Fact = "fact: " { who: Text<8>, sure: Percent, words: Text<40>, quote: Text<3> }
}

row! {
    /// A line of one text.
    struct Point = "- " { text: Text<60> }
}

row! {
    /// A line of one number.
    struct Score = "score: " { percent: Percent }
}

form! {
    /// A form with a line of every kind.
    struct Sheet {
        core points: Point, 1, 4;
        core facts: Fact, 0, 3;
        extended scores: Score, 0, 1;
    }
}

const FILLED: &str = "- bees\n- hives\nfact: user | 90 | likes honey | yes\nscore: none\n";

#[test]
fn a_filled_form_is_read() {
    let sheet = Sheet::read(FILLED, Size::Extended).unwrap();
    let points: Vec<_> = sheet.points.iter().map(|point| point.text.as_str()).collect();
    assert_eq!(points, ["bees", "hives"]);
    let [fact] = &sheet.facts[..] else { panic!("{:?}", sheet.facts) };
    assert_eq!((fact.who.as_str(), fact.sure.get()), ("user", 90));
    assert_eq!(fact.words.as_str(), "likes honey");
    assert!(sheet.scores.is_empty());
}

#[test]
fn a_form_that_is_filled_wrongly_names_the_line() {
    let read = |text| Sheet::read(text, Size::Core).unwrap_err();
    let missing = FormError::Missing { line: 1, label: "- ", found: 0, least: 1 };
    assert_eq!(read("Sure! Here is a summary."), missing);
    assert_eq!(read(""), missing);
    assert_eq!(
        read("- a\nfact: user | 101 | b | c"),
        FormError::Cells { line: 2, label: "fact: " }
    );
    assert_eq!(
        read("- a\nfact: everybody | 1 | b | c"),
        FormError::Cells { line: 2, label: "fact: " }
    );
    assert_eq!(read("- a\nfact: user | 1 | b"), FormError::Cells { line: 2, label: "fact: " });
    assert_eq!(read("- a\n- b\n- c\n- d\n- e"), FormError::Unexpected { line: 5 });
    assert_eq!(read("- a\nscore: 1"), FormError::Unexpected { line: 2 });
}

#[test]
fn only_a_large_model_in_a_large_window_is_asked_for_more() {
    let size =
        |n_ctx, parameters| Size::suited(ModelFacts { n_ctx, fingerprint: [0; 32], parameters });
    assert_eq!(size(16_384, Some(2_000_000_000)), Size::Extended);
    assert_eq!(size(8_192, Some(7_000_000_000)), Size::Core);
    assert_eq!(size(32_768, Some(1_500_000_000)), Size::Core);
    assert_eq!(size(32_768, None), Size::Core);
}

proptest! {
    #[test]
    fn what_the_grammar_allows_is_read(choices in prop::collection::vec(any::<u32>(), 0..400)) {
        for size in [Size::Core, Size::Extended] {
            let grammar = Sheet::grammar(size);
            let text = gbnf::generate(&grammar, &choices);
            let sheet = Sheet::read(&text, size);
            prop_assert!(sheet.is_ok(), "{text:?}: {sheet:?}");
        }
    }

    #[test]
    fn any_text_gets_an_answer(text in "(- |fact: |score: |none|user| \\| |[0-9]|\\PC|\n){0,40}") {
        let _ = Sheet::read(&text, Size::Extended);
    }
}

/// Writes a text that a grammar allows, by a list of choices.
mod gbnf {
    use std::collections::HashMap;
    use std::iter::{Cycle, Peekable};
    use std::slice::Iter;
    use std::str::Chars;

    pub(super) fn generate(grammar: &str, choices: &[u32]) -> String {
        let rules = grammar.lines().filter_map(|line| line.split_once(" ::="));
        let rules: HashMap<_, _> =
            rules.map(|(name, body)| (name, alternatives(&mut body.chars().peekable()))).collect();
        let all = [choices, &[0]].concat();
        let mut writer = Writer { rules: &rules, choices: all.iter().cycle(), text: String::new() };
        writer.alternatives(&rules["root"]);
        writer.text
    }

    type Alternatives = Vec<Vec<(Item, usize, usize)>>;

    enum Item {
        Literal(String),
        /// None of the characters in these ranges.
        Not(Vec<(char, char)>),
        Of(Vec<(char, char)>),
        Rule(String),
        Group(Alternatives),
    }

    fn alternatives(input: &mut Peekable<Chars<'_>>) -> Alternatives {
        let mut all = vec![Vec::new()];
        while let Some(c) = input.next() {
            let item = match c {
                ' ' => continue,
                '|' => {
                    all.push(Vec::new());
                    continue;
                }
                ')' => break,
                '(' => Item::Group(alternatives(input)),
                '"' => Item::Literal(until(input, '"').into_iter().map(|(c, _)| c).collect()),
                '[' => class(input),
                first => {
                    let mut name = String::from(first);
                    while let Some(c) = input.next_if(|c| c.is_alphanumeric()) {
                        name.push(c);
                    }
                    Item::Rule(name)
                }
            };
            let (least, most) = repetition(input);
            all.last_mut().unwrap().push((item, least, most));
        }
        all
    }

    fn repetition(input: &mut Peekable<Chars<'_>>) -> (usize, usize) {
        if input.next_if_eq(&'?').is_some() {
            return (0, 1);
        }
        if input.next_if_eq(&'{').is_none() {
            return (1, 1);
        }
        let inside: String = input.by_ref().take_while(|c| *c != '}').collect();
        let (least, most) = inside.split_once(',').unwrap();
        (least.parse().unwrap(), most.parse().unwrap())
    }

    fn class(input: &mut Peekable<Chars<'_>>) -> Item {
        let not = input.next_if_eq(&'^').is_some();
        let mut chars = until(input, ']').into_iter().peekable();
        let mut ranges = Vec::new();
        while let Some((from, _)) = chars.next() {
            let to = match chars.next_if_eq(&('-', false)) {
                Some(_) => chars.next().unwrap().0,
                None => from,
            };
            ranges.push((from, to));
        }
        if not { Item::Not(ranges) } else { Item::Of(ranges) }
    }

    /// Characters up to `end`, and whether each was escaped.
    fn until(input: &mut Peekable<Chars<'_>>, end: char) -> Vec<(char, bool)> {
        let mut chars = Vec::new();
        loop {
            match input.next().unwrap() {
                c if c == end => return chars,
                '\\' => {
                    let c = match input.next().unwrap() {
                        'n' => '\n',
                        'x' => hex(input, 2),
                        'u' => hex(input, 4),
                        other => other,
                    };
                    chars.push((c, true));
                }
                c => chars.push((c, false)),
            }
        }
    }

    fn hex(input: &mut Peekable<Chars<'_>>, digits: usize) -> char {
        let digits: String = input.by_ref().take(digits).collect();
        char::from_u32(u32::from_str_radix(&digits, 16).unwrap()).unwrap()
    }

    struct Writer<'a> {
        rules: &'a HashMap<&'a str, Alternatives>,
        choices: Cycle<Iter<'a, u32>>,
        text: String,
    }

    impl Writer<'_> {
        fn choose(&mut self, below: usize) -> usize {
            *self.choices.next().unwrap() as usize % below
        }

        fn alternatives(&mut self, all: &Alternatives) {
            let chosen = self.choose(all.len());
            for (item, least, most) in &all[chosen] {
                for _ in 0..least + self.choose(most - least + 1) {
                    self.item(item);
                }
            }
        }

        fn item(&mut self, item: &Item) {
            match item {
                Item::Literal(text) => self.text.push_str(text),
                Item::Of(ranges) => {
                    let (from, to) = ranges[self.choose(ranges.len())];
                    let offset = self.choose(to as usize - from as usize + 1) as u32;
                    self.text.push(char::from_u32(from as u32 + offset).unwrap());
                }
                Item::Not(ranges) => {
                    // Neighbours of what is excluded are likeliest to be excluded wrongly.
                    let near = ranges[self.choose(ranges.len())].1 as u32 + 1;
                    let near = near + self.choose(90) as u32;
                    let outside = |c: &char| ranges.iter().all(|(a, b)| !(*a..=*b).contains(c));
                    let found = (near..).filter_map(char::from_u32).find(outside);
                    self.text.push(found.unwrap());
                }
                Item::Rule(name) => {
                    let rules = self.rules;
                    self.alternatives(&rules[name.as_str()]);
                }
                Item::Group(all) => self.alternatives(all),
            }
        }
    }
}
