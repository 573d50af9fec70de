//! What the cache holds, and what a request finds in it.
use crate::support::runtime::*;
use garret_core::model::{ChatModel, Event, Finish, ModelRole, Reply};
use garret_core::token::Token;
use garret_llm::{LlamaChat, MAX_EVENTS};

/// Five turns of a conversation prefill the new tokens of each turn and no others.
#[test]
fn five_turns_prefill_only_what_is_new() {
    let Some(chat) = chat(2_048, 64) else { return };
    let model = chat.model();
    let questions = ["Who are you?", "Why?", "Name a colour.", "And another one.", "Thank you!"];
    let mut prompt = Vec::new();
    let mut held = 0;
    for (turn, question) in questions.into_iter().enumerate() {
        prompt.extend(ask(model, question));
        let reply = run(&chat, request(ModelRole::Main, &prompt, 12)).unwrap();
        assert_eq!(reply.reused as usize, held, "turn {turn}");
        assert_eq!(reply.prefilled as usize, prompt.len() - held, "turn {turn}");
        prompt.extend(&reply.tokens);
        // The last token of a reply that was cut off has not been decoded.
        held = prompt.len() - usize::from(reply.finish == Finish::Length);
        prompt.extend(tokens(model, "<|im_end|>\n"));
    }
    assert!(held > 60, "there was something to reuse");
}

/// The same prompt again costs one token, a changed one what follows the change.
#[test]
fn a_changed_prompt_is_decoded_from_the_change() {
    let Some(chat) = chat(512, 64) else { return };
    let first = prose(chat.model(), "Once upon a time", 200);
    let cost = |prompt: &[Token]| {
        let reply = run(&chat, request(ModelRole::Main, prompt, 3)).unwrap();
        (reply.reused, reply.prefilled)
    };
    assert_eq!(cost(&first), (0, 200));
    assert_eq!(cost(&first), (199, 1));
    let mut changed = first.clone();
    changed[150] = first[151];
    assert_ne!(changed, first);
    assert_eq!(cost(&changed), (150, 50));
    assert_eq!(cost(&first[..100]), (99, 1));
    // The shorter prompt took the rest away.
    let (reused, prefilled) = cost(&first);
    assert!((100..=103).contains(&reused), "{reused}");
    assert_eq!(reused + prefilled, 200);
}

/// A request for no tokens prefills and says nothing; the next one finds what it did, and so does one
/// that comes before it is done.
#[test]
fn a_prompt_can_be_brought_in_ahead_of_the_request() {
    let Some(chat) = chat(1_024, 64) else { return };
    let model = chat.model();
    let conversation = prose(model, "<|im_start|>user\nListen:", 600);
    let ahead = run(&chat, request(ModelRole::Main, &conversation, 0)).unwrap();
    assert_eq!((ahead.reused, ahead.prefilled), (0, 600));
    assert_eq!((ahead.tokens.len(), ahead.finish), (0, Finish::Length));
    let mut turn = conversation;
    turn.extend(ask(model, "Go on."));
    let next = run(&chat, request(ModelRole::Main, &turn, 2)).unwrap();
    assert_eq!((next.reused, next.prefilled as usize), (600, turn.len() - 600));
    let other = prose(model, "<|im_start|>user\nNow this:", 900);
    drop(chat.start(request(ModelRole::Main, &other, 0)).unwrap());
    let next = run(&chat, request(ModelRole::Main, &other, 1)).unwrap();
    assert_eq!(next.reused + next.prefilled, 900);
}

/// Whatever a companion does on its fork, the main sequence gives the same logits bit for bit, and
/// the next turn finds all of it.
#[test]
fn a_companion_leaves_the_main_sequence_as_it_was() {
    let Some(chat) = chat(1_024, 64) else { return };
    let model = chat.model();
    let conversation = prose(model, "<|im_start|>user\nListen:", 300);
    chat.next_logits(ModelRole::Main, &conversation).unwrap();
    // From here on both runs decode the last token alone: the same split of batches.
    let before = chat.next_logits(ModelRole::Main, &conversation).unwrap();
    for role in [ModelRole::Compactor, ModelRole::Inferrer] {
        let mut prompt = conversation.clone();
        prompt.extend(ask(model, "Summarise this in one sentence."));
        let summary = run(&chat, request(role, &prompt, 10)).unwrap();
        assert_eq!(summary.reused, 300, "{role:?} shares the conversation");
        assert_eq!(summary.prefilled as usize, prompt.len() - 300);
        let after = chat.next_logits(ModelRole::Main, &conversation).unwrap();
        assert!(before == after, "{role:?} changed the main sequence");
    }
    let mut turn = conversation;
    turn.extend(ask(model, "Go on."));
    let next = run(&chat, request(ModelRole::Main, &turn, 2)).unwrap();
    assert_eq!(next.reused, 300);
}

/// A companion's logits are those of the same prompt on the main sequence, up to rounding.
#[test]
fn a_fork_sees_what_it_shares() {
    let Some(chat) = chat(1_024, 64) else { return };
    let shared = prose(chat.model(), "The code word is heron.", 200);
    let mut prompt = shared.clone();
    prompt.extend(ask(chat.model(), "What is the code word?"));
    chat.next_logits(ModelRole::Main, &shared).unwrap();
    let forked = chat.next_logits(ModelRole::Compactor, &prompt).unwrap();
    let main = chat.next_logits(ModelRole::Main, &prompt).unwrap();
    let apart = forked.iter().zip(&main).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(apart < 1.0, "{apart}");
    let blind = chat.next_logits(ModelRole::Main, &prompt[shared.len()..]).unwrap();
    let differs = blind.iter().zip(&main).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(differs > 2.0, "the shared part must matter: {differs}");
}

/// A reply that is dropped makes room for the next request.
#[test]
fn dropping_a_reply_cancels_it() {
    let Some(chat) = chat(1_024, 64) else { return };
    let prompt = counting(chat.model());
    let mut reply = chat.start(request(ModelRole::Main, &prompt, 900)).unwrap();
    for _ in 0..3 {
        next_event(&mut reply).unwrap().unwrap();
    }
    drop(reply);
    let again = run(&chat, request(ModelRole::Main, &prompt, 5)).unwrap();
    assert_eq!(again.tokens.len(), 5);
    assert_eq!(again.reused as usize, prompt.len() - 1);
}

/// A reader that reads nothing holds up neither another main request nor a companion, and gets its
/// whole reply when it reads at last.
#[test]
fn a_stalled_reader_holds_up_nobody() {
    let Some(chat) = chat(512, 64) else { return };
    let prompt = counting(chat.model());
    let wanted = MAX_EVENTS as u32 + 20;
    let mut stalled = chat.start(request(ModelRole::Main, &prompt, wanted)).unwrap();
    for role in [ModelRole::Main, ModelRole::Inferrer, ModelRole::Main] {
        assert_eq!(run(&chat, request(role, &prompt[4..], 5)).unwrap().tokens.len(), 5, "{role:?}");
    }
    let late = drain(&mut stalled).unwrap();
    assert_eq!((late.reused + late.prefilled) as usize, prompt.len());
    assert_eq!((late.tokens.len(), late.finish), (wanted as usize, Finish::Length));
}

/// A stalled reply can be cancelled.
#[test]
fn a_stalled_reply_can_be_cancelled() {
    let Some(chat) = chat(512, 64) else { return };
    let prompt = counting(chat.model());
    let mut stalled = chat.start(request(ModelRole::Main, &prompt, 300)).unwrap();
    // The next main request gets its turn only once the first has stalled.
    run(&chat, request(ModelRole::Main, &prompt[4..], 2)).unwrap();
    stalled.cancel();
    let cancelled = drain(&mut stalled).unwrap();
    assert_eq!(cancelled.finish, Finish::Cancelled);
    assert_eq!(cancelled.tokens.len(), MAX_EVENTS - 1);
}

/// Fills a window of 512 with a companion that holds about 360 cells and waits for its reader.
fn crowd(chat: &LlamaChat) -> garret_llm::LlamaReply {
    let prompt = prose(chat.model(), "A companion's own words, shared with nobody:", 300);
    let mut companion = chat.start(request(ModelRole::Compactor, &prompt, 150)).unwrap();
    let first = next_event(&mut companion).unwrap().unwrap();
    assert_eq!(first, Event::Prefilled { reused: 0, prefilled: 300 });
    companion
}

/// The main role takes cells from a parked companion, which starts over when there is room again.
#[test]
fn main_evicts_a_parked_companion() {
    let Some(chat) = chat(512, 64) else { return };
    let mut companion = crowd(&chat);
    let large = prose(chat.model(), "The main role needs room:", 400);
    let main = run(&chat, request(ModelRole::Main, &large, 3)).unwrap();
    assert_eq!((main.reused, main.prefilled), (0, 400));
    // A short prompt gives the cells back before the companion goes on.
    run(&chat, request(ModelRole::Main, &ask(chat.model(), "Hello!"), 2)).unwrap();
    let seen = vec![Event::Prefilled { reused: 0, prefilled: 300 }];
    let finished = drain_after(&mut companion, seen).unwrap();
    assert!(finished.finish == Finish::Stop || finished.tokens.len() == 150);
}

/// Without room a companion gets an error; the main sequence stays whole.
#[test]
fn a_companion_without_room_gets_an_error() {
    let Some(chat) = chat(512, 64) else { return };
    let large = prose(chat.model(), "The main role was here first:", 400);
    run(&chat, request(ModelRole::Main, &large, 1)).unwrap();
    let other = prose(chat.model(), "A companion's own words, shared with nobody:", 300);
    let error = run(&chat, request(ModelRole::Inferrer, &other, 3)).unwrap_err();
    assert_eq!(error, garret_llm::ChatError::NoRoom);
    let main = run(&chat, request(ModelRole::Main, &large, 1)).unwrap();
    assert_eq!((main.reused, main.prefilled), (399, 1));
}
