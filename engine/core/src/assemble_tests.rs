//! Assembly with one token a byte, where every length can be predicted.

use std::string::{String, ToString};
use std::vec;
use std::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::shorten::shorten;
use crate::testing::{ASSISTANT, ByteEncoder, END, opened};

/// Everything a test wants to know of a prompt, free of borrows.
struct Seen {
    messages: Vec<(&'static str, String)>,
    receipt: Receipt,
}

fn see(
    window: u32,
    system: &str,
    turns: &[(String, Option<String>)],
    message: &str,
    keep_from: Option<TurnSeq>,
) -> Result<Seen, AssembleError<core::convert::Infallible>> {
    remembering(window, system, turns, "", message, keep_from)
}

fn remembering(
    window: u32,
    system: &str,
    turns: &[(String, Option<String>)],
    memory: &str,
    message: &str,
    keep_from: Option<TurnSeq>,
) -> Result<Seen, AssembleError<core::convert::Infallible>> {
    let parts = [part(BlockName::Memory, memory)];
    let volatile = Volatile { text: memory, parts: &parts };
    given(window, [system, ""], turns, volatile, message, keep_from, 0)
}

fn given(
    window: u32,
    [system, tracked]: [&str; 2],
    turns: &[(String, Option<String>)],
    volatile: Volatile<'_>,
    message: &str,
    keep_from: Option<TurnSeq>,
    a_day: usize,
) -> Result<Seen, AssembleError<core::convert::Infallible>> {
    let budget = Budget::for_window(window).unwrap();
    let limit = budget.message_text() as usize;
    let users: Vec<_> =
        turns.iter().map(|(user, _)| shorten(&mut ByteEncoder, user, limit).unwrap()).collect();
    let days: Vec<_> = (0..turns.len()).map(|at| day_of(at, a_day)).collect();
    let history: Vec<_> = users
        .iter()
        .zip(turns)
        .zip(&days)
        .zip(1..)
        .map(|(((user, (_, reply)), day), seq)| Turn {
            seq,
            user,
            day: counted(day),
            reply: reply.as_deref().map(|text| PastReply { text, tokens: TokenBytes::default() }),
            cost: user.content().len() + reply_bytes(reply) + 4,
        })
        .collect();
    let message = shorten(&mut ByteEncoder, message, limit).unwrap();
    let [system, tracked] = [system, tracked].map(counted);
    let shown = input(system.text, &history, &message);
    let input = Input { tracked, keep_from, volatile, ..shown };
    let mut messages = vec![Message::new(Role::User, ""); 2 * turns.len() + 2];
    let mut ends = vec![0; messages.len()];
    let mut tokens = vec![Token(0); budget.prompt_limit() as usize];
    let scratch = Scratch { messages: &mut messages, ends: &mut ends, tokens: &mut tokens };
    let slot = assemble(&budget, &mut ByteEncoder, &input, scratch)?;
    let total = slot.receipt.prompt_tokens + budget.reply_reserve + budget.companion_reserve;
    assert!(total <= window, "{total} of {window}");
    assert_eq!(slot.tokens.len(), slot.receipt.prompt_tokens as usize);
    let blocks: u32 = slot.receipt.blocks.iter().map(|block| block.tokens).sum();
    assert_eq!(blocks, slot.receipt.prompt_tokens);
    Ok(Seen { messages: decode(slot.tokens), receipt: slot.receipt })
}

fn input<'a>(system: &'a str, history: &'a [Turn<'a>], message: &'a ShownText<'a>) -> Input<'a> {
    Input { system: counted(system), history, ..Input::new(message) }
}

fn counted(text: &str) -> CountedText<'_> {
    CountedText::new(&mut ByteEncoder, text).unwrap()
}

fn part(name: BlockName, text: &str) -> Part {
    Part { name, tokens: text.len() as u32, ceiling: 192 }
}

impl Seen {
    fn block(&self, name: BlockName) -> Block {
        *self.receipt.block(name).unwrap()
    }
}

fn decode(tokens: &[Token]) -> Vec<(&'static str, String)> {
    let (last, body) = tokens.split_last().unwrap();
    assert_eq!(*last, ASSISTANT);
    body.split_inclusive(|token| *token == END)
        .map(|part| {
            let bytes = part[1..part.len() - 1].iter().map(|token| token.0 as u8).collect();
            (opened(part[0]), String::from_utf8(bytes).unwrap())
        })
        .collect()
}

/// The day of the turn at `at` when there are `a_day` of them each day; 0 for turns without one.
fn day_of(at: usize, a_day: usize) -> String {
    at.checked_div(a_day).map_or_else(String::new, |day| std::format!("[day {day}]\n"))
}

fn reply_bytes(reply: &Option<String>) -> usize {
    reply.as_deref().filter(|text| !text.trim().is_empty()).unwrap_or(NO_REPLY).len()
}

fn talk(turns: usize, bytes: usize) -> Vec<(String, Option<String>)> {
    (0..turns)
        .map(|i| (std::format!("{i} {}", "u".repeat(bytes)), Some("r".repeat(bytes))))
        .collect()
}

#[test]
fn everything_is_there_while_it_fits() {
    let seen = see(2_048, "be kind", &talk(3, 50), "hello", None).unwrap();
    assert_eq!(seen.messages.len(), 8);
    assert_eq!(seen.messages[0].1, "be kind");
    assert_eq!(seen.messages[7].1, "hello");
    assert_eq!(seen.receipt.history_from, Some(1));
    assert!(seen.receipt.omitted.is_empty());
}

#[test]
fn an_unanswered_turn_is_shown_with_a_note() {
    let turns = [("lost?".to_string(), None)];
    let seen = see(2_048, "", &turns, "hello", None).unwrap();
    let texts: Vec<_> = seen.messages.iter().map(|(_, text)| text.as_str()).collect();
    assert_eq!(texts, ["lost?", NO_REPLY, "hello"]);
}

#[test]
fn an_empty_reply_counts_as_none() {
    let turns = [("hello?".to_string(), Some(" \n".to_string()))];
    let seen = see(2_048, "", &turns, "hello", None).unwrap();
    assert_eq!(seen.messages[1].1, NO_REPLY);
}

/// A turn that takes more than the share that is filled again was once dropped though it fitted,
/// and with it all of history, for good.
#[test]
fn the_newest_turn_stays_whenever_it_fits() {
    let turns = talk(4, 500);
    let seen = see(2_048, "s", &turns, &"m".repeat(250), Some(1)).unwrap();
    assert_eq!(seen.receipt.history_from, Some(4));
    let history = seen.block(BlockName::History);
    assert!(history.tokens * 8 > history.ceiling * 5);
}

/// Costs that are a little too low must not make history give way one turn at a time.
#[test]
fn underestimated_costs_still_drop_in_bulk() {
    let user = ShownText::whole("uuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuu");
    let history: Vec<_> = (1..=14)
        .map(|seq| Turn { seq, user: &user, day: counted(""), reply: None, cost: 97 })
        .collect();
    let budget = Budget::for_window(2_048).unwrap();
    let message = ShownText::whole("hello");
    let input = Input { keep_from: Some(1), ..input("s", &history, &message) };
    let mut messages = vec![Message::new(Role::User, ""); 30];
    let mut ends = vec![0; 30];
    let mut tokens = vec![Token(0); 2_048];
    let scratch = Scratch { messages: &mut messages, ends: &mut ends, tokens: &mut tokens };
    let slot = assemble(&budget, &mut ByteEncoder, &input, scratch).unwrap();
    let from = slot.receipt.history_from.unwrap();
    assert!((5..=8).contains(&from), "{from}");
}

#[test]
fn a_full_window_drops_in_bulk_and_then_stays() {
    let turns = talk(40, 40);
    let full = see(2_048, "s", &turns[..30], "hello", Some(1)).unwrap();
    let from = full.receipt.history_from.unwrap();
    assert!(from > 1);
    for n in 31..34 {
        let later = see(2_048, "s", &turns[..n], "hello", Some(from)).unwrap();
        assert_eq!(later.receipt.history_from, Some(from), "after {n} turns");
    }
}

/// Where a conversation doesn't say its days, "on Sunday" is any Sunday.
#[test]
fn each_day_is_named_once_and_so_is_that_of_the_oldest_turn_shown() {
    let user = ShownText::whole("u").by("Ada");
    let reply = Some(PastReply { text: "r", tokens: TokenBytes::default() });
    let days = ["[Sun]\n", "[Sun]\n", "", "[Mon]\n", "[Mon]\n"].map(counted);
    let turns = [1, 2, 3, 4, 5].map(|seq| Turn {
        seq,
        user: &user,
        day: days[seq as usize - 1],
        reply,
        cost: 9,
    });
    let said = |history: &[Turn<'_>]| {
        let asked = ShownText::whole("q");
        let all =
            messages(&input("", history, &asked), history).map(|m| m.content.parts().collect());
        let all: Vec<String> = all.collect();
        all.chunks(2).map(|pair| pair[0].clone()).collect::<Vec<_>>()
    };
    let sunday = "[Sun]\nAda: u";
    let monday = "[Mon]\nAda: u";
    assert_eq!(said(&turns), [sunday, "Ada: u", "Ada: u", monday, "Ada: u", "q"]);
    assert_eq!(said(&turns[1..]), [sunday, "Ada: u", monday, "Ada: u", "q"]);
    assert_eq!(said(&turns[4..]), [monday, "q"]);
}

#[test]
fn wrong_costs_only_cost_time() {
    let user = ShownText::whole("uuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuuu");
    let history: Vec<_> = (1..=200)
        .map(|seq| Turn { seq, user: &user, day: counted(""), reply: None, cost: 0 })
        .collect();
    let budget = Budget::for_window(2_048).unwrap();
    let message = ShownText::whole("hello");
    let input = input("s", &history, &message);
    let mut messages = vec![Message::new(Role::User, ""); 402];
    let mut ends = vec![0; 402];
    let mut tokens = vec![Token(0); 2_048];
    let scratch = Scratch { messages: &mut messages, ends: &mut ends, tokens: &mut tokens };
    let slot = assemble(&budget, &mut ByteEncoder, &input, scratch).unwrap();
    assert!(slot.tokens.len() <= budget.prompt_limit() as usize);
    assert!(slot.receipt.block(BlockName::History).unwrap().tokens > 0);
}

#[test]
fn a_long_system_prompt_is_refused_not_cut() {
    let refused = see(2_048, &"s".repeat(257), &[], "hello", None);
    assert_eq!(refused.err(), Some(AssembleError::SystemTooLong { ceiling: 256 }));
}

#[test]
fn small_buffers_are_an_error_or_a_shorter_history() {
    let budget = Budget::for_window(2_048).unwrap();
    let user = ShownText::whole("u");
    let message = ShownText::whole("hello");
    let history =
        [1, 2, 3].map(|seq| Turn { seq, user: &user, day: counted(""), reply: None, cost: 9 });
    let input = input("s", &history, &message);
    for room in 0..8 {
        let mut messages = vec![Message::new(Role::User, ""); room];
        let mut ends = vec![0; room];
        let mut tokens = vec![Token(0); 2_048];
        let scratch = Scratch { messages: &mut messages, ends: &mut ends, tokens: &mut tokens };
        match assemble(&budget, &mut ByteEncoder, &input, scratch) {
            Err(error) => assert_eq!((error, room < 2), (AssembleError::Scratch, true)),
            Ok(slot) => {
                let left_out = slot.receipt.omitted.first().map_or(0, |o| o.count as usize);
                assert_eq!(left_out, 3 - (room - 2) / 2);
            }
        }
    }
}

#[test]
fn memory_stands_before_the_words_and_history_gives_way_to_it() {
    let memory = "m".repeat(190);
    let seen = remembering(2_048, "s", &talk(1, 20), &memory, "hello", None).unwrap();
    assert_eq!(seen.messages[3].1, memory.clone() + "hello");
    let [history, block, message] =
        [BlockName::History, BlockName::Memory, BlockName::Message].map(|name| seen.block(name));
    assert_eq!((block.tokens, block.ceiling), (190, 192));
    assert_eq!(message.tokens, "hello".len() as u32 + 3);
    let without = see(2_048, "s", &talk(1, 20), "hello", None).unwrap();
    assert_eq!(without.block(BlockName::History).ceiling - history.ceiling, 190);
    let turns = talk(4, 160);
    let (with, without) = (
        remembering(2_048, "s", &turns, &memory, "hello", Some(1)).unwrap().receipt,
        see(2_048, "s", &turns, "hello", Some(1)).unwrap().receipt,
    );
    assert!(with.history_from > without.history_from, "{with:?} {without:?}");
}

/// What the next prompt begins with is known once the reply is.
#[test]
fn a_settled_conversation_is_how_the_next_prompt_begins() {
    let user = ShownText::whole("u");
    let reply = Some(PastReply { text: "r", tokens: TokenBytes::default() });
    let history = [1, 2].map(|seq| Turn { seq, user: &user, day: counted(""), reply, cost: 9 });
    let budget = Budget::for_window(2_048).unwrap();
    let mut messages = [Message::new(Role::User, ""); 6];
    let mut ends = [0; 6];
    let mut tokens = vec![Token(0); 2_048];
    let scratch = Scratch { messages: &mut messages, ends: &mut ends, tokens: &mut tokens };
    let settled = conversation(&mut ByteEncoder, "s", &history, scratch).unwrap().to_vec();
    let message = ShownText::whole("hello");
    let volatile = Volatile { text: "m", parts: &[part(BlockName::Memory, "m")] };
    let omitted = [Omission { what: OmissionKind::Found, count: 3 }];
    let input = Input { volatile, omitted: &omitted, ..input("s", &history, &message) };
    let scratch = Scratch { messages: &mut messages, ends: &mut ends, tokens: &mut tokens };
    let slot = assemble(&budget, &mut ByteEncoder, &input, scratch).unwrap();
    assert_eq!(slot.tokens[..settled.len()], settled);
    let before: u32 = slot.receipt.blocks[..3].iter().map(|block| block.tokens).sum();
    assert_eq!(settled.len() as u32, before);
    assert_eq!(slot.receipt.omitted[..], omitted);
}

proptest! {
    #[test]
    fn every_prompt_keeps_the_guarantees(
        window in 2_048_u32..9_000,
        system in "[a-z ]{0,256}",
        tracked in "|[a-z ]{1,128}",
        turns in prop::collection::vec(("\\PC{0,300}", prop::option::of("\\PC{0,300}")), 0..60),
        volatile in ("|[a-z ]{1,40}", "|[a-z ]{1,20}", "|[a-z ]{1,150}", "|[a-z ]{1,20}"),
        message in "\\PC{0,80}|[a-z]{2000,4000}",
        keep_from in prop::option::of(0_u64..70),
        a_day in 0_usize..5,
    ) {
        let names = [BlockName::Time, BlockName::Pinned, BlockName::Carry, BlockName::Memory];
        let texts = [&volatile.0, &volatile.1, &volatile.2, &volatile.3];
        let parts = [0, 1, 2, 3].map(|i| part(names[i], texts[i]));
        let volatile: String = texts.map(String::as_str).concat();
        let block = Volatile { text: &volatile, parts: &parts };
        let seen = given(window, [&system, &tracked], &turns, block, &message, keep_from, a_day);
        let seen = seen.unwrap();
        let whole = system.clone() + &tracked;
        let system_shown = usize::from(!whole.is_empty());
        if system_shown == 1 {
            prop_assert_eq!(&seen.messages[0], &("system", whole));
            prop_assert_eq!(seen.block(BlockName::Tracked).tokens as usize, tracked.len());
        }
        let (last, before) = seen.messages.split_last().unwrap();
        prop_assert_eq!(last.0, "user");
        for (name, text) in names.iter().zip(texts) {
            prop_assert_eq!(seen.block(*name).tokens as usize, text.len());
        }
        prop_assert!(last.1.starts_with(&volatile));
        let last = &last.1[volatile.len()..];
        match Budget::for_window(window).unwrap().message_text() as usize {
            limit if message.len() <= limit => prop_assert_eq!(last, &message),
            limit => {
                prop_assert!(last.len() <= limit);
                prop_assert!(last.starts_with(&message[..limit / 4]));
                prop_assert!(last.ends_with(&message[message.len() - limit / 8..]));
                prop_assert!(seen.receipt.omitted.iter().any(|o| o.what == OmissionKind::MessageMiddle));
            }
        }
        let history = &before[system_shown..];
        prop_assert_eq!(history.len() % 2, 0, "whole turns");
        for (i, (role, _)) in history.iter().enumerate() {
            prop_assert_eq!(*role, ["user", "assistant"][i % 2], "history starts with the user");
        }
        let shown = history.len() / 2;
        let left_out = seen.receipt.omitted.iter().find(|o| o.what == OmissionKind::OldTurns);
        prop_assert_eq!(left_out.map_or(0, |o| o.count as usize), turns.len() - shown);
        // What is left out didn't fit: with one turn more, history would take over five eighths of
        // its room; and the newest turn is left out only if it alone exceeds that room.
        let kept_from = keep_from.map_or(0, |seq| seq.saturating_sub(1) as usize);
        let considered = turns.len().saturating_sub(kept_from);
        if shown < considered {
            let used = seen.block(BlockName::History);
            let at = turns.len() - shown - 1;
            let (user, reply) = &turns[at];
            // A mark that the turn after it has moves to it.
            let same = shown > 0 && day_of(at, a_day) == day_of(at + 1, a_day);
            let day = if same { 0 } else { day_of(at, a_day).len() };
            let next = user.len() + reply_bytes(reply) + 4 + day;
            if shown == 0 {
                prop_assert!(next > used.ceiling as usize, "{next} fits {}", used.ceiling);
            } else {
                prop_assert!((used.tokens as usize + next) * 8 > used.ceiling as usize * 5 - 40);
            }
        }
        let mut before = String::new();
        for (pair, at) in history.chunks(2).zip(turns.len() - shown..) {
            let ((user, reply), day) = (&turns[at], day_of(at, a_day));
            let mark = if day == before { "" } else { &day };
            if user.len() <= 320 {
                prop_assert_eq!(&pair[0].1, &[mark, user].concat());
            }
            let said = reply.as_deref().filter(|text| !text.trim().is_empty());
            prop_assert_eq!(&pair[1].1, said.unwrap_or(NO_REPLY));
            before = day;
        }
    }
}
