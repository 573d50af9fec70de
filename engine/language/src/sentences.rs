//! Sentences of a message and the words in them, without what the message quotes.

use std::ops::Range;

use crate::scripts::is_unspaced;

/// A message, read without what is quoted in it.
#[derive(Debug)]
pub struct Text<'a> {
    /// The whole message, which ranges point into.
    pub whole: &'a str,
    /// The sentences, in their order; the parts around a quotation are sentences by themselves.
    pub sentences: Vec<Sentence>,
}

/// A sentence: what stands between two marks that end one.
#[derive(Debug, Default)]
pub struct Sentence {
    /// The words, contractions taken apart.
    pub words: Vec<Word>,
    /// Ends with a question mark.
    pub question: bool,
}

/// A word in lower case; one that is a contraction gives two or three of the same place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    /// The word in lower case, with straight apostrophes.
    pub text: String,
    /// Bytes of the message that it was read from.
    pub at: Range<usize>,
    /// More than white space stands between it and the next word.
    pub ends_clause: bool,
    /// Begins with a capital.
    pub capital: bool,
}

impl<'a> Text<'a> {
    /// Reads a message.
    pub fn new(whole: &'a str) -> Self {
        let mut sentences = Vec::new();
        for own in own_words(whole) {
            split(whole, own, &mut sentences);
        }
        Self { whole, sentences }
    }

    /// Counts the words; of a script without spaces, four letters count as one.
    pub fn count(&self) -> usize {
        let of = |word: &Word| {
            let wide = self
                .whole
                .get(word.at.clone())
                .map_or(0, |text| text.chars().filter(|c| is_unspaced(*c)).count());
            if wide > 4 { wide.div_ceil(4) } else { 1 }
        };
        let words = self.sentences.iter().flat_map(|sentence| &sentence.words);
        let mut last = None;
        let fresh = |word: &&Word| last.replace(word.at.start) != Some(word.at.start);
        words.filter(fresh).map(of).sum()
    }

    /// Returns all words, one after another.
    pub fn words(&self) -> impl Iterator<Item = &Word> {
        self.sentences.iter().flat_map(|sentence| &sentence.words)
    }

    /// Returns true where one of a list of phrases stands in a sentence.
    pub fn has_any(&self, phrases: &str) -> bool {
        let sentences = self.sentences.iter();
        sentences.map(|sentence| &sentence.words).any(|words| {
            (0..words.len()).any(|at| starts(words.get(at..).unwrap_or_default(), phrases))
        })
    }

    /// Returns true where one of a list of parts, of a script without spaces, is in a sentence.
    pub fn holds_any(&self, parts: &str) -> bool {
        self.sentences.iter().filter_map(|sentence| sentence.range()).any(|range| {
            let text = self.whole.get(range).unwrap_or_default();
            parts.split(", ").any(|part| text.contains(part))
        })
    }
}

impl Sentence {
    /// Returns the bytes from the first word to the last; `None` without words.
    pub fn range(&self) -> Option<Range<usize>> {
        Some(self.words.first()?.at.start..self.words.last()?.at.end)
    }
}

/// Returns true for a word of `list`, whose words stand with a comma and a space between them.
pub fn among(list: &str, word: &str) -> bool {
    list.split(", ").any(|listed| listed == word)
}

/// Returns true where `words` begin with a phrase of `list`, written as for [`among`].
pub fn starts(words: &[Word], list: &str) -> bool {
    list.split(", ").any(|phrase| begins(words, phrase))
}

fn begins(words: &[Word], phrase: &str) -> bool {
    let mut words = words.iter();
    phrase.split(' ').all(|part| words.next().is_some_and(|word| word.text == part))
}

/// Returns true for a mark that ends a sentence, or a line.
pub const fn is_sentence_end(c: char) -> bool {
    matches!(c, '.' | '!' | '?' | '\n' | '\u{3002}' | '\u{ff01}' | '\u{ff1f}' | '\u{964}')
}

/// Returns the parts of a text that aren't quoted: not in a fence of code, not after `>`, not between
/// quotation marks of one line.
fn own_words(text: &str) -> Vec<Range<usize>> {
    let mut own = Vec::new();
    let mut fenced = false;
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let range = start..start + line.len();
        start = range.end;
        let bare = line.trim_start();
        if bare.starts_with("```") || bare.starts_with("~~~") {
            fenced = !fenced;
        } else if !fenced && !bare.starts_with('>') {
            unquoted(line, range.start, &mut own);
        }
    }
    own
}

/// Adds the parts of a line outside of quotation marks and code spans; a mark without its partner quotes
/// nothing.
fn unquoted(line: &str, offset: usize, own: &mut Vec<Range<usize>>) {
    let mut from = 0;
    while let Some(rest) = line.get(from..) {
        let opening = rest.char_indices().find_map(|(at, c)| Some((at, c, closing(c)?)));
        let quoted = opening.and_then(|(at, open, close)| {
            let inner = at + open.len_utf8();
            let end = rest.get(inner..)?.find(close)?;
            Some((at, inner + end + close.len_utf8()))
        });
        let Some((at, end)) = quoted else {
            own.push(offset + from..offset + line.len());
            return;
        };
        own.push(offset + from..offset + from + at);
        from += end;
    }
}

const fn closing(open: char) -> Option<char> {
    match open {
        '"' | '`' => Some(open),
        '\u{201c}' => Some('\u{201d}'),
        '\u{201e}' => Some('\u{201c}'),
        '\u{ab}' => Some('\u{bb}'),
        '\u{300c}' => Some('\u{300d}'),
        _ => None,
    }
}

/// Adds the sentences of a part.
fn split(whole: &str, part: Range<usize>, sentences: &mut Vec<Sentence>) {
    let text = whole.get(part.clone()).unwrap_or_default();
    let mut sentence = Sentence::default();
    let mut word: Option<usize> = None;
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let next = chars.peek().map(|(_, c)| *c);
        let inside = word.is_some() && next.is_some_and(char::is_alphanumeric);
        if c.is_alphanumeric()
            || (inside && matches!(c, '\'' | '\u{2019}' | '-' | '.' | '_' | '@' | '/'))
        {
            word.get_or_insert(at);
            continue;
        }
        if let Some(start) = word.take() {
            expand(whole, part.start + start..part.start + at, &mut sentence.words);
        }
        let last = sentence.words.last_mut();
        match c {
            c if is_sentence_end(c) => {
                sentence.question |= matches!(c, '?' | '\u{ff1f}');
                let done = std::mem::take(&mut sentence);
                // `?!` and `...`: the second mark belongs to the same sentence.
                match sentences.last_mut() {
                    Some(before) if done.words.is_empty() => before.question |= done.question,
                    _ => sentences.push(done),
                }
            }
            c if c.is_whitespace() || c == '\'' || c == '\u{2019}' => {}
            _ => last.into_iter().for_each(|word| word.ends_clause = true),
        }
    }
    if let Some(start) = word {
        expand(whole, part.start + start..part.end, &mut sentence.words);
    }
    if !sentence.words.is_empty() {
        sentences.push(sentence);
    }
    if let Some(last) = sentences.last_mut().and_then(|sentence| sentence.words.last_mut()) {
        last.ends_clause = true;
    }
}

/// Adds a word, or the words of a contraction.
fn expand(whole: &str, at: Range<usize>, words: &mut Vec<Word>) {
    let written = whole.get(at.clone()).unwrap_or_default();
    let capital = written.starts_with(char::is_uppercase);
    let lower = written.to_lowercase().replace('\u{2019}', "'");
    let mut add = |text: &str| {
        words.push(Word { text: text.to_owned(), at: at.clone(), ends_clause: false, capital });
    };
    if let Some((_, full)) = CONTRACTIONS.iter().find(|(short, _)| *short == lower) {
        full.split(' ').for_each(add);
        return;
    }
    match lower.split_once('\'') {
        Some((head, tail)) if among(FRENCH, head) => [head, tail].into_iter().for_each(add),
        Some((head, "s")) => [head, "'s"].into_iter().for_each(add),
        Some((head, "ve")) => [head, "have"].into_iter().for_each(add),
        Some((head, "re")) => [head, "are"].into_iter().for_each(add),
        Some((head, "ll")) => [head, "will"].into_iter().for_each(add),
        Some((head, "d")) => [head, "would"].into_iter().for_each(add),
        Some((head, "t")) if head.ends_with('n') => {
            [head.trim_end_matches('n'), "not"].into_iter().for_each(add);
        }
        _ => add(&lower),
    }
}

const CONTRACTIONS: [(&str, &str); 17] = [
    ("i'm", "i am"),
    ("im", "i am"),
    ("ive", "i have"),
    ("dont", "do not"),
    ("doesnt", "does not"),
    ("didnt", "did not"),
    ("isnt", "is not"),
    ("can't", "can not"),
    ("cant", "can not"),
    ("cannot", "can not"),
    ("won't", "will not"),
    ("wont", "will not"),
    ("shan't", "shall not"),
    ("it's", "it is"),
    ("that's", "that is"),
    ("what's", "what is"),
    ("there's", "there is"),
];

const FRENCH: &str = "j, m, l, d, n, c, s, t, qu, aujourd";
