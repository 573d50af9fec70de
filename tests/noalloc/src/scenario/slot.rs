//! A window is divided, a long message shortened, a prompt assembled and accounted for.

use garret_core::assemble::{
    CountedText, Input, Part, PastReply, Scratch, Turn, Volatile, assemble,
};
use garret_core::budget::Budget;
use garret_core::prompt::{Message, Role};
use garret_core::receipt::{BlockName, Omission, OmissionKind};
use garret_core::shorten::{ShownText, shorten};
use garret_core::testing::ByteEncoder;
use garret_core::token::{Token, TokenBytes};

/// Every profile and the windows between divide without a rest.
pub(crate) fn windows_are_divided() -> bool {
    (Budget::MIN_WINDOW..40_000).step_by(61).all(|n_ctx| {
        let parts = Budget::for_window(n_ctx)
            .map(|budget| budget.prompt_limit() + budget.reply_reserve + budget.companion_reserve);
        parts == Ok(n_ctx)
    })
}

/// More turns than fit, and a message longer than its ceiling.
pub(crate) fn a_prompt_is_assembled() -> bool {
    try_assembly().is_some_and(|right| right)
}

fn try_assembly() -> Option<bool> {
    let budget = Budget::for_window(Budget::MIN_WINDOW).ok()?;
    let mut encoder = ByteEncoder;
    let limit = usize::try_from(budget.message_text()).ok()?;
    let message = shorten(&mut encoder, LONG, limit).ok()?;
    let user = ShownText::whole("What do bees do in winter, and how can I help them through it?");
    let reply = PastReply { text: "They cluster.", tokens: TokenBytes::default() };
    let day = CountedText::new(&mut encoder, "[Sunday 3 May 2026]\n").ok()?;
    let turn = |seq| Turn { seq, user: &user, day, reply: Some(reply), cost: 90 };
    let history: [Turn<'_>; TURNS] =
        core::array::from_fn(|i| turn(u64::try_from(i).map_or(0, |i| i + 1)));
    let known = CountedText::new(&mut encoder, "[You know this: bees sleep.]").ok()?;
    let parts = [Part { name: BlockName::Memory, tokens: known.tokens, ceiling: 64 }];
    let input = Input {
        system: CountedText::new(&mut encoder, "Be brief.").ok()?,
        tracked: CountedText::new(&mut encoder, "[Pinned] Ada keeps bees.").ok()?,
        history: &history,
        older: 3,
        volatile: Volatile { text: known.text, parts: &parts },
        omitted: &[Omission { what: OmissionKind::Found, count: 1 }],
        ..Input::new(&message)
    };
    let scratch = Scratch {
        messages: &mut [Message::new(Role::User, ""); 2 * TURNS + 2],
        ends: &mut [0; 2 * TURNS + 2],
        tokens: &mut [Token(0); 2_048],
    };
    let slot = assemble(&budget, &mut encoder, &input, scratch).ok()?;
    let receipt = &slot.receipt;
    let sum: u32 = receipt.blocks.iter().map(|block| block.tokens).sum();
    let left_out = |what| receipt.omitted.iter().find(|o| o.what == what).map(|o| o.count);
    let first = receipt.history_from?;
    Some(
        usize::try_from(sum).ok()? == slot.tokens.len()
            && sum <= budget.prompt_limit()
            && left_out(OmissionKind::Found) == Some(1)
            && left_out(OmissionKind::OldTurns) == Some(first - 1 + 3)
            && left_out(OmissionKind::MessageMiddle).is_some_and(|count| count > 0),
    )
}

const TURNS: usize = 30;

/// 2,000 characters, over the ceiling of the smallest window.
const LONG: &str = match core::str::from_utf8(&[b'z'; 2_000]) {
    Ok(text) => text,
    Err(_) => "",
};
