//! Why Garret is built the way it is, as questions and answers.
//!
//! # Why is the whole prompt encoded again each turn, instead of adding up the parts?
//!
//! Because sums of separately counted parts are wrong by a few tokens now and then: tokenizers merge
//! across the seams. A prompt is rendered and tokenised as one, cut only at special tokens, and what
//! is counted is what is decoded. Runs between special tokens are cached by their text, so a long
//! history costs look-ups, not tokenisation. Counts of single turns only decide where to begin.
//!
//! # Why does history lose its oldest turns in bulk?
//!
//! Dropping one turn a turn changes the prompt's prefix every time, and then nothing in the KV cache
//! can be reused: every turn prefills the whole window. When history is full it is cut to five
//! eighths of its room at once, and begins with the same turn until it is full again. The receipt
//! of a turn remembers where history began, so this survives a restart.
//!
//! # Why are a reply's token ids stored beside its text?
//!
//! A model may generate ids that its tokenizer would not choose for the same text. Tokenising the
//! reply again would then differ from what the cache holds, from that point on. The ids are used
//! only for the model (by the SHA-256 of its file) that generated them.
//!
//! A reply in which the model generated a control token is kept as text alone: put back by its ids,
//! that token would be structure in every later prompt, though nobody sees it.
//!
//! # Why does an unanswered message get a note in place of a reply?
//!
//! After a power cut a message may have no reply. Many templates refuse two user messages in a row,
//! and an empty reply in the prompt teaches a small model to answer nothing. The note is
//! [`garret_core::assemble::NO_REPLY`]; the store keeps the turn as it is, without a reply.
//!
//! # Why does the newest message have a ceiling, and the system prompt a refusal?
//!
//! A pasted book must not push the conversation out: it is stored whole and shown as head, marker
//! and tail, the same way in every later turn. Instructions can't be halved that way without
//! changing their meaning, so a system prompt that is too long is refused at the start.
//!
//! # Why are control characters in replies shown as pictures?
//!
//! A model's output is data. An escape sequence in it could clear the screen or imitate the
//! program's own words; on a terminal it is made visible instead. JSON carries it unchanged.
//!
//! # Why does a turn without a volatile block decode on the main sequence?
//!
//! The design keeps a clean conversation on one sequence and forks it for retrieved memory and
//! hypotheses. Until there is such matter, the fork would be identical, so it isn't made.
