//! Names of speakers: who is meant by a query.

use garret_language::casefold;

use crate::search::query::Query;
use crate::search::unit::Speaker;

/// The one who speaks in an index.
#[derive(Debug)]
pub(crate) struct Names {
    /// By number; the first two have none.
    speakers: Vec<Known>,
}

#[derive(Debug, Default)]
struct Known {
    /// Folded, word by word.
    words: Vec<String>,
    /// Units by them.
    units: u32,
}

/// Numbers of the speakers without a name.
pub(crate) const USER: u16 = 0;
pub(crate) const ASSISTANT: u16 = 1;

impl Default for Names {
    fn default() -> Self {
        Self { speakers: vec![Known::default(), Known::default()] }
    }
}

impl Names {
    /// The number of a speaker, new or known; `None` when there are too many.
    pub(crate) fn number(&mut self, speaker: Speaker<'_>) -> Option<u16> {
        let name = match speaker {
            Speaker::User => return Some(USER),
            Speaker::Assistant => return Some(ASSISTANT),
            Speaker::Named(name) => casefold(name),
        };
        let words: Vec<String> = name.split_whitespace().map(str::to_owned).collect();
        let known = self.speakers.iter().skip(2).position(|known| known.words == words);
        let number = u16::try_from(known.map_or(self.speakers.len(), |at| at + 2)).ok()?;
        if known.is_none() {
            self.speakers.push(Known { words, units: 0 });
        }
        Some(number)
    }

    /// The speakers of a folded name. The assistant is two where a turn of its own was imported,
    /// besides replies.
    pub(crate) fn find(&self, name: &str) -> Vec<u16> {
        let unnamed = match name {
            "user" => Some(USER),
            "assistant" => Some(ASSISTANT),
            _ => None,
        };
        let is = |known: &Known| known.words.iter().map(String::as_str).eq(name.split_whitespace());
        let named = (0..).zip(&self.speakers).skip(2).filter(|(_, known)| is(known));
        unnamed.into_iter().chain(named.map(|(number, _)| number)).collect()
    }

    /// Names of those who have any, folded.
    pub(crate) fn all(&self) -> impl Iterator<Item = String> {
        self.speakers.iter().filter(|known| known.units > 0).map(|known| known.words.join(" "))
    }

    /// Counts speakers have a number.
    pub(crate) fn len(&self) -> usize {
        self.speakers.len()
    }

    /// The name of each speaker from that of a number on, folded; empty where nobody speaks so any
    /// more.
    pub(crate) fn from(&self, first: u16) -> impl Iterator<Item = String> {
        let speakers = self.speakers.iter().skip(usize::from(first));
        speakers.map(|known| if known.units > 0 { known.words.join(" ") } else { String::new() })
    }

    /// Gives the next number to a speaker, by a folded name.
    pub(crate) fn put_back(&mut self, name: &str) {
        let words = name.split_whitespace().map(str::to_owned).collect();
        self.speakers.push(Known { words, units: 0 });
    }

    /// There is one more unit by a speaker.
    pub(crate) fn spoke(&mut self, speaker: u16) {
        if let Some(known) = self.speakers.get_mut(usize::from(speaker)) {
            known.units += 1;
        }
    }

    /// There is one less.
    pub(crate) fn left(&mut self, speaker: u16) {
        if let Some(known) = self.speakers.get_mut(usize::from(speaker)) {
            known.units = known.units.saturating_sub(1);
        }
    }

    /// The one speaker whom a query names: by the whole name or, if nobody else has it, a word of
    /// it.
    pub(crate) fn named(&self, query: &Query) -> Option<u16> {
        let named = |(number, known): (u16, &Known)| {
            let named = match number {
                USER => query.has(&["i", "me", "my", "mine", "user"]),
                ASSISTANT => query.has(&["you", "your", "yours", "assistant"]),
                _ => self.names(query, known),
            };
            (named && known.units > 0).then_some(number)
        };
        let mut all = (0..).zip(&self.speakers).filter_map(named);
        all.next().filter(|_| all.next().is_none())
    }

    fn names(&self, query: &Query, known: &Known) -> bool {
        let words = &known.words;
        let whole = !words.is_empty() && query.names.windows(words.len()).any(|some| some == words);
        let own = |word: &String| {
            let others = self.speakers.iter().filter(|other| other.units > 0);
            let others = others.filter(|other| other.words.contains(word)).count();
            word.len() > 2 && others <= 1
        };
        whole || words.iter().any(|word| own(word) && query.names.contains(word))
    }

    /// Tells whether a folded word is a speaker's name, or part of it.
    pub(crate) fn has(&self, word: &str) -> bool {
        let known = self.speakers.iter().filter(|known| known.units > 0);
        known.flat_map(|known| &known.words).any(|name| name == word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use garret_language::Language;

    fn named(names: &[&str], query: &str) -> Option<u16> {
        let mut known = Names::default();
        for name in names {
            let number = known.number(Speaker::Named(name)).unwrap();
            known.spoke(number);
        }
        known.named(&Query::new(query, &[Language::English], None))
    }

    #[test]
    fn a_speaker_is_named_by_the_whole_name_or_a_word_of_their_own() {
        let two = ["Project Manager", "Project Lead"];
        assert_eq!(named(&two, "What did the project manager say?"), Some(2));
        assert_eq!(named(&two, "What did the lead say?"), Some(3));
        assert_eq!(named(&two, "What is the project about?"), None, "both have the word");
        assert_eq!(named(&two, "Does the manager like the lead?"), None, "two are named");
        assert_eq!(named(&["Ada"], "What does Ada's brother do?"), Some(2));
        assert_eq!(named(&["Ada"], "Is Canada cold?"), None);
        // A common word that begins a question, or stands in it, names nobody.
        assert_eq!(named(&["Will"], "Will it rain, and when will it stop?"), None);
        assert_eq!(named(&["Will", "May"], "What did Will see?"), Some(2));
    }

    #[test]
    fn whoever_left_is_not_named() {
        let mut names = Names::default();
        let ada = names.number(Speaker::Named("Ada")).unwrap();
        names.spoke(ada);
        let query = Query::new("Ada", &[], None);
        assert_eq!(names.named(&query), Some(ada));
        names.left(ada);
        assert_eq!(names.named(&query), None);
        assert!(!names.has("ada"));
    }
}
