//! omlx#2990: a model that was held to JSON wrote white space between two values until its tokens ran
//! out, since the grammar allowed any number of blanks.
//!
//! The grammars of companions allow no unbounded run of white space: an answer under them ends by
//! itself and has no blank line, also of a model that would go on with blanks.

use garret::anticipate::reading::Reading;
use garret::companion::form::{Form as _, Size};
use garret_core::model::Finish;
use garret_llm::ChatOptions;
use garret_tests::models::STARTER;

use crate::{answer, chat, tokens};

#[test]
fn an_answer_under_a_grammar_is_no_loop_of_white_space() {
    let options = ChatOptions { n_ctx: 1_024, ..ChatOptions::default() };
    let Some(chat) = chat(STARTER, options) else { return };
    // What comes before is blank, so that the likeliest token is a blank, too.
    let prompt = tokens(&chat, &" \n \n".repeat(40));
    for size in [Size::Core, Size::Extended] {
        let answer = answer(&chat, &prompt, 300, Some(&Reading::grammar(size)));
        assert!(answer.text.starts_with("plain: "), "{:?}", answer.text);
        assert_eq!(answer.finish, Finish::Stop, "{:?}", answer.text);
        let blank = answer.text.lines().find(|line| line.trim().is_empty());
        assert_eq!(blank, None, "{:?}", answer.text);
    }
}
