//! omlx#2990: a model that was held to JSON wrote white space between two values until its tokens ran
//! out, since the grammar allowed any number of blanks.
//!
//! The grammars of companions allow no unbounded run of white space: an answer under them ends by
//! itself and has no blank line, also of a model that would go on with blanks.

use garret::anticipate::reading::Reading;
use garret::companion::form::{Form as _, Size};
use garret_core::model::{ChatModel as _, Event, Finish, ModelRole, Reply as _, Request, Sampling};
use garret_core::token::Token;
use garret_llm::{Backend, ChatOptions, LlamaChat, Model, ModelOptions};
use garret_tests::models::{STARTER, find};

#[test]
fn an_answer_under_a_grammar_is_no_loop_of_white_space() {
    let Some(path) = find(STARTER) else { return };
    let model = Model::load(Backend::start().unwrap(), &path, ModelOptions::default()).unwrap();
    let options = ChatOptions {
        n_ctx: 1_024,
        n_batch: 64,
        n_ubatch: 64,
        threads: 1,
        batch_threads: 1,
        ..ChatOptions::default()
    };
    // What comes before is blank, so that the likeliest token is a blank, too.
    let prompt = model.llama().vocab().tokenize(" \n \n".repeat(40).as_bytes(), false, false);
    let prompt: Vec<_> = prompt.into_iter().map(|token| Token(token.0)).collect();
    let chat = LlamaChat::spawn(model, options).unwrap();
    for size in [Size::Core, Size::Extended] {
        let grammar = Reading::grammar(size);
        let request = Request {
            role: ModelRole::Inferrer,
            prompt: &prompt,
            max_tokens: 300,
            sampling: Sampling { temperature: 0.0, ..Sampling::default() },
            grammar: Some(&grammar),
        };
        let mut reply = chat.start(request).unwrap();
        let mut said = Vec::new();
        let mut finish = None;
        while let Some(event) = smol::block_on(std::future::poll_fn(|cx| reply.poll_event(cx))) {
            match event.unwrap() {
                Event::Piece { bytes, .. } => said.extend_from_slice(bytes.as_ref()),
                Event::Finished(how) => finish = Some(how),
                _ => {}
            }
        }
        let said = String::from_utf8_lossy(&said);
        assert!(said.starts_with("plain: "), "{said:?}");
        assert_eq!(finish, Some(Finish::Stop), "{said:?}");
        let blank = said.lines().find(|line| line.trim().is_empty());
        assert_eq!(blank, None, "{said:?}");
    }
}
