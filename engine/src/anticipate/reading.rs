//! The inferrer's form, and the reading of its answer.

use crate::companion::form::{Form, FormError, Percent, Size, Text, form, row};
use garret_language::grounding::{content_words, is_grounded};

row! {
    /// The likelihood that the message means just what it says.
    pub struct Plain = "plain: " {
        /// The likelihood in percent.
        pub percent: Percent,
    }
}

row! {
    /// A guess at what the user may be after instead.
    pub struct Guess = "guess: " {
        /// The likelihood in percent.
        pub percent: Percent,
        /// The user's words that show it.
        pub quote: Text<40>,
        /// The intent that they may have.
        pub intent: Text<60>,
    }
}

row! {
    /// A thought that leads there.
    pub struct Because = "because: " {
        /// The thought in a few words.
        pub text: Text<60>,
    }
}

row! {
    /// The question that they would ask straight out.
    pub struct Really = "really: " {
        /// The question.
        pub text: Text<80>,
    }
}

row! {
    /// A question that they may ask next.
    pub struct Next = "next: " {
        /// The question.
        pub question: Text<60>,
        /// A short answer to it.
        pub answer: Text<80>,
    }
}

form! {
    /// The inferrer's answer.
    pub struct Reading {
        /// The guess that the message means just what it says.
        core plain: Plain, 1, 1;
        /// Three other guesses.
        core guesses: Guess, 3, 3;
        /// The thoughts that lead to the likeliest.
        extended chain: Because, 0, 6;
        /// The likeliest as a question.
        core really: Really, 1, 1;
        /// Two questions that may come.
        core next: Next, 0, 2;
    }
}

/// Most tokens of an answer: as many as its form allows characters, so that even one written digit by
/// digit isn't cut off.
pub const fn most_tokens(size: Size) -> u32 {
    match size {
        Size::Core => 800,
        Size::Extended => 1_280,
    }
}

/// Returns the inferrer's instruction about the end of a conversation.
pub const fn instruction(size: Size) -> &'static str {
    match size {
        Size::Core => CORE,
        Size::Extended => EXTENDED,
    }
}

const CORE: &str = "\
Don't answer my last message. Work out what I may be after, in this form:
plain: how likely it means just what it says, 0 to 100
guess: how likely | my own words that show it | what I may want instead
really: what I would ask straight out
next: what I may ask next | a short answer
Write three lines guess and two lines next.";

const EXTENDED: &str = "\
Don't answer my last message. Work out what I may be after, in this form:
plain: how likely it means just what it says, 0 to 100
guess: how likely | my own words that show it | what I may want instead
because: one step of the thought that leads to the likeliest
really: what I would ask straight out
next: what I may ask next | a short answer
Write three lines guess, up to six lines because and two lines next. Copy my words exactly.";

/// An answer that was checked against what the user said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inference {
    /// Likelihood that the message means just what it says, in percent.
    pub plain: u8,
    /// Other guesses, the likeliest first.
    pub guesses: Vec<Hypothesis>,
    /// The thoughts that lead to the likeliest.
    pub chain: Vec<String>,
    /// The likeliest as a question.
    pub really: String,
    /// Questions that may come, with answers.
    pub next: Vec<(String, String)>,
}

/// A guess at what a user may be after.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hypothesis {
    /// Likelihood in percent; at most [`MAX_UNGROUNDED`] unless it is grounded.
    pub percent: u8,
    /// The words that are to show it.
    pub quote: String,
    /// The user said those words.
    pub grounded: bool,
    /// The intent that they may have.
    pub intent: String,
}

impl Inference {
    /// Reads an answer about a user who said `said`, the newest last.
    ///
    /// # Errors
    /// [`FormError`] for an answer that doesn't follow the grammar.
    pub fn read(answer: &str, size: Size, said: &[&str]) -> Result<Self, FormError> {
        let reading = Reading::read(answer, size)?;
        let check = |guess: Guess| {
            let grounded = is_grounded(guess.quote.as_str(), said);
            let most = if grounded { 100 } else { MAX_UNGROUNDED };
            Hypothesis {
                percent: guess.percent.get().min(most),
                quote: guess.quote.into_string(),
                grounded,
                intent: guess.intent.into_string(),
            }
        };
        let mut guesses: Vec<_> = reading.guesses.into_iter().map(check).collect();
        guesses.retain(|guess| !echoes(&guess.intent, size));
        guesses.sort_by_key(|guess| std::cmp::Reverse(guess.percent));
        let really = reading.really.into_iter().map(|really| really.text.into_string());
        let is_own = |(question, answer): &(String, String)| {
            !echoes(question, size) && !echoes(answer, size)
        };
        let pair = |next: Next| (next.question.into_string(), next.answer.into_string());
        Ok(Self {
            plain: reading.plain.first().map_or(100, |plain| plain.percent.get()),
            guesses,
            chain: reading.chain.into_iter().map(|because| because.text.into_string()).collect(),
            really: really.filter(|really| !echoes(really, size)).collect(),
            next: reading.next.into_iter().map(pair).filter(is_own).collect(),
        })
    }

    /// The likeliest guess, if it is likelier than that the message means just what it says.
    pub fn likeliest(&self) -> Option<&Hypothesis> {
        self.guesses.first().filter(|guess| guess.percent > self.plain && guess.percent >= LIKELY)
    }
}

/// Returns whether a text says nothing that isn't in the instruction: the smallest models fill a form
/// in with its own words.
fn echoes(text: &str, size: Size) -> bool {
    let asked = content_words(instruction(size));
    content_words(text).iter().all(|word| asked.contains(word))
}

/// Percent that a guess has at most whose words the user didn't say.
pub const MAX_UNGROUNDED: u8 = 35;
/// Percent below which a guess isn't worth a line.
pub const LIKELY: u8 = 40;

#[cfg(test)]
mod tests {
    use super::*;

    const ANSWER: &str = "\
plain: 30
guess: 20 | nothing like it | a holiday
guess: 70 | so much work | to be told that giving up is fine
guess: 90 | my garden is big | a smaller garden
really: May I give the garden up?
next: What grows by itself? | Herbs and berries.
next: none
";

    #[test]
    fn guesses_are_ranked_by_what_the_user_said() {
        let said = ["I'm having second thoughts about the garden, it's so much work."];
        let answer = ANSWER.replace("next: none\n", "");
        let read = Inference::read(&answer, Size::Core, &said).unwrap();
        let guesses: Vec<_> = read.guesses.iter().map(|g| (g.percent, g.grounded)).collect();
        assert_eq!(guesses, [(70, true), (35, false), (20, false)]);
        assert_eq!(read.likeliest().unwrap().quote, "so much work");
        assert_eq!(read.next, [("What grows by itself?".into(), "Herbs and berries.".into())]);
        assert_eq!(read.really, "May I give the garden up?");
    }

    #[test]
    fn the_plain_meaning_wins_unless_a_grounded_guess_is_likelier() {
        let said = ["so much work"];
        let answer = ANSWER.replace("next: none\n", "");
        let plain = answer.replace("plain: 30", "plain: 70");
        let read = Inference::read(&plain, Size::Core, &said).unwrap();
        assert_eq!(read.likeliest(), None);
        let unsaid = Inference::read(&answer, Size::Core, &["hello"]).unwrap();
        assert_eq!(unsaid.likeliest(), None, "35 percent aren't enough for a line");
    }

    /// SmolLM2-135M answers like this.
    #[test]
    fn a_form_filled_in_with_its_own_words_says_nothing() {
        let answer = "plain: 10\nguess: 90 | my own words | what I may want instead\n\
                      guess: 90 | a | what I may ask again\nguess: 9 | a | 100\n\
                      really: what I would ask straight out\nnext: what I may ask next | a short answer\n";
        let read = Inference::read(answer, Size::Core, &["my own words"]).unwrap();
        assert!(read.next.is_empty() && read.really.is_empty(), "{read:?}");
        assert_eq!(read.likeliest(), None);
    }

    #[test]
    fn what_is_no_form_is_no_inference() {
        for answer in ["", "plain: 30\n", "I think you want a holiday.", "plain: many\n"] {
            assert!(Inference::read(answer, Size::Core, &[]).is_err(), "{answer}");
        }
    }
}
