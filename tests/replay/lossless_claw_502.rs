//! lossless-claw#502: a prompt ended with a reply, or held no message of the user at all, and models
//! refused it; sherlock-context 1.12.2, W9: history began with a reply in every third prompt.
//!
//! Whoever failed to answer, and whoever spoke first in what was imported: after the system message the
//! user and the model take turns, the user first and last, and none of them says nothing.

use std::sync::Arc;

use garret_hal::media::{Faults, FaultyMedium};
use garret_storage::search::Speaker;
use garret_storage::{ImportedTurn, Store};
use garret_tests::bytes;
use garret_tests::scripted::{Act, ScriptedModel};
use garret_tests::talk::{session, turn};
use proptest::prelude::*;

use crate::{AT, agent_on, attentive};

/// One thing that becomes part of a conversation.
#[derive(Clone, Debug)]
enum Event {
    Say(String, Vec<Act>),
    Import(Vec<(u8, String)>),
    Restart,
}

fn event() -> impl Strategy<Value = Event> {
    let act = prop_oneof![
        3 => "\\PC{0,40}".prop_map(Act::Say),
        1 => Just(Act::Say(String::new())),
        1 => Just(Act::Say("<<garret-tool: pinned>>".into())),
        1 => "[a-z]{0,20}".prop_map(Act::Fail),
        1 => Just(Act::Refuse),
    ];
    let text = "(\\PC|\\x00|[\n\t ]){1,60}".prop_map(|text| format!(".{text}"));
    let imported = prop::collection::vec((0..4_u8, "(\\PC|[\n ]){0,30}"), 1..5);
    prop_oneof![
        5 => (text, prop::collection::vec(act, 1..3)).prop_map(|(text, acts)| Event::Say(text, acts)),
        2 => imported.prop_map(Event::Import),
        1 => Just(Event::Restart),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn the_user_and_the_model_take_turns_in_every_prompt(
        events in prop::collection::vec(event(), 1..25),
    ) {
        let medium = FaultyMedium::new(Faults::default());
        let model = ScriptedModel::new(8_192, []);
        let open = || Store::on_medium("test", Box::new(medium.clone())).unwrap();
        let mut talk = agent_on(&Arc::new(open()), &model, attentive());
        for event in events {
            match event {
                Event::Say(text, acts) => {
                    acts.into_iter().for_each(|act| model.then(act));
                    // Whether it is answered isn't what this is about.
                    let _ = turn(&mut talk, &session(), &text);
                }
                Event::Import(said) => {
                    let session = session();
                    let said: Vec<_> = said.iter().map(|(speaker, text)| {
                        let speaker = match speaker {
                            0 => Speaker::User,
                            1 => Speaker::Assistant,
                            2 => Speaker::Named("Ada"),
                            _ => Speaker::Named("[Bo]\n> "),
                        };
                        ImportedTurn { session: &session, speaker, text, at: AT, id: None }
                    }).collect();
                    talk.store().import_turns(&said).unwrap();
                }
                Event::Restart => {
                    drop(talk);
                    talk = agent_on(&Arc::new(open()), &model, attentive());
                }
            }
        }
        for prompt in model.prompts() {
            let messages = bytes::read(&prompt);
            prop_assert_eq!(messages[0].0, "system");
            for (n, (role, text)) in messages[1..].iter().enumerate() {
                prop_assert_eq!(*role, if n % 2 == 0 { "user" } else { "assistant" });
                prop_assert!(!text.trim().is_empty(), "{:?}", messages);
            }
            prop_assert_eq!(messages.last().unwrap().0, "user");
        }
    }
}
