//! The same prompts with and without Garret, side by side.
//!
//! The [`Baseline`] is what a chat program without Garret does: the same model, window, sampling
//! and system prompt, the same tools if there are any, the day's date, and the newest whole turns
//! that fit. It has no memory of other conversations, no companions and no summaries, and nothing
//! is kept free for them. It is the same turn loop with all of that off.
//!
//! # What makes it fair
//!
//! - Each side has a context of its own on the same weights. Neither side's prompt pushes the other's
//!   out of a KV cache, so each prefills exactly what it would alone. It costs a second KV cache of
//!   memory.
//! - They run one after the other, each with all threads, and take turns in going first
//!   ([`Side::order`]).
//! - The baseline is told the date in its system message, where it doesn't change the prefix from one
//!   prompt to the next; told with every message, as Garret tells the time, it would prefill each turn
//!   twice. The date is that of the day on which the program was started.
//! - When history is full, the baseline drops the oldest turns in bulk, as Garret does: dropping one a
//!   turn would prefill the whole window every time.
//! - Times run from the message to the first token and to the end, with all that each side does in
//!   between: Garret's search, its counting, its durable writes.
//! - What Garret does while nobody waits isn't in its times or tokens, as no reader waits for it; the
//!   baseline has nothing to do then.
//!
//! # What is kept apart
//!
//! The baseline's conversation is in memory alone, with its own replies, and ends with the program.
//! A conversation that is continued begins with all its turns as Garret has them. The baseline's
//! tools find what was said in its own conversation.
//!
//! # What is written
//!
//! [`Record`] is one line of JSON for each prompt, [`Summary`] the last line, within an object:
//!
//! ```text
//! {"prompt": 1, "session": name, "turn": number in Garret's conversation?, "at": moment?,
//!  "user": text, "first": "garret" or "baseline", "garret": SIDE, "baseline": SIDE}
//! ...
//! {"summary": {"prompts": n, "garret": TOTALS, "baseline": TOTALS}}
//!
//! SIDE    {"reply", "finish", "prompt_tokens", "reused_tokens", "prefilled_tokens", "reply_tokens",
//!          "first_token_ms"?, "total_ms", "receipt", "tools"}; or {"error": text}; or {"skipped": true}
//!          when the program was stopped before. Prefilled are all tokens that the user waited for,
//!          those after a tool's result too. `receipt` and `tools` as `garret chat --json` has them.
//! TOTALS  {"answered", "prompt_tokens", "prefilled_tokens", "reply_tokens", "first_token_ms"?
//!          (median), "total_ms" (sum)}
//! ```

mod baseline;
mod report;
mod write;

pub use baseline::{Baseline, BaselineError, plain};
pub use report::{Answer, MeasuredReply, Record, Side, Summary, Totals};
pub use write::{Export, NewFile};
