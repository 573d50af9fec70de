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
//! # Why does a stored turn have no hash of its text?
//!
//! Its check is one: eight bytes of the SHA-256 of its key and of all that the record holds. It tells
//! damage, a record under another one's key and a turn that isn't the one it was (a deleted session
//! begun again) as well as 32 more bytes did, which were a tenth of what an SD card had to write for
//! a message.
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
//! # Why does what is remembered stand in the newest message, and in no later prompt?
//!
//! Found by the message, it differs every turn; anywhere else it would change the prompt's prefix and
//! cost a prefill of all that follows. The stored message is the user's words alone, so the next
//! prompt has the turn without the block: the cache then holds words that must go, and the turn is
//! prefilled once more, from the user's words to the end of the reply. The model's thread does that
//! after the reply, while nobody waits; the next message stops it wherever it is.
//!
//! # When is a conversation compacted, and how much of it?
//!
//! When the prompt is at `compact_at` percent (80) of what it can hold, or turns fell out of it: then
//! it must be. When the model asks, or the topic changes and a quarter of what history can take lies
//! outside the tail: then it suits. And in idle time once half of what history can take lies outside
//! the tail: then it costs nobody anything, and the next turns decode faster, since depth costs speed.
//! Half, and not less, because every compaction changes the prompt's prefix, writes to the card and
//! takes verbatim turns, the better evidence, out of the prompt. What stays verbatim is a quarter:
//! that much recency was enough where evidence in the prompt was measured.
//!
//! # Why is a summary stored before the prompt uses it?
//!
//! The prompt that begins with it must be prefilled, and the user may type meanwhile. So summaries
//! are stored as they are made, the new prompt is prefilled on a sequence of its own, and the record of
//! what prompts begin with is written last. Interrupted anywhere, the next turn finds the old prompt
//! in the cache, and no summary is made twice. Until then turns are both in the prompt and under a
//! summary, which loses nothing. A record written together with the summary would have the next turn
//! wait for the prefill.
//!
//! # What if a summary is bad?
//!
//! It is asked for as lines under a grammar, so that it ends and holds no thoughts; figures that
//! aren't in what it sums up, echoes of the instruction and lines that look like orders are taken out.
//! What is empty, cut off or too long then is asked for again, shorter, and after that made without
//! the model from the sentences with names and figures. An error of the model is no summary: nothing
//! is written, and the model is left alone for half a minute, then twice as long, and after five in a
//! row for half an hour. Whatever a summary says, `expand` leads to the words.
//!
//! # Why is what is tracked kept as text, and not looked up at every turn?
//!
//! Whatever changes in the system message changes the whole prefix, and every token after it is
//! prefilled again. So what is pinned, what the user is like and the highlights are put into words
//! when a compaction changes the prefix anyway, and those words are a record of the session: they
//! survive a restart, and the next prompt begins as the last one did. What was pinned since, and
//! which facts of the record no longer hold, costs a line in the newest message until then.
//!
//! # Why does the model get the time with every message?
//!
//! A model that isn't told the date makes one up. In the system message the time would change the
//! prefix; on some turns alone it would be missing when it is asked for. In the newest message it
//! costs 25 tokens of SmolLM2, a tenth of a second of prefill on two cores, and has the turn
//! brought into the cache once more while nobody waits, as a remembered block does. Where that is too
//! much, for scripts that leave no time between messages, `show_time = false` turns it off.
//!
//! # Why does history name its days?
//!
//! "They swarm on Sunday", said in May and asked about in June, became the Sunday to come: of all that a
//! prompt said about time there was only now. So the first message of each day that history shows has
//! a line with the day before it. It depends on the turns alone, so it is the same in every prompt
//! until history begins elsewhere; the newest message has none, since the time stands there already.
//! The trace keeps the lines, because the user may live in another time zone when it is read.
//!
//! # Why is the reranker's order merged with the search's, and not taken as it is?
//!
//! A cross-encoder reads a message without those around it, and the search knows more than that: what
//! was asked before it, who spoke, when. A reply of "Yes, in May." is nothing to a model that doesn't
//! see the question. So both orders count alike, by ranks, which need no scale: the numbers of one
//! model are logits, of another probabilities, and no data at hand could fit a weight for each. How
//! likely a hit is to answer stays what the search says, so a reranker never makes something out of
//! nothing, and a chat that remembers nothing for small talk goes on doing so.
//!
//! # Why do pins have a ceiling, and the rest of the tracked block a floor?
//!
//! Forty pinned facts once pushed everything else out of such a block, and then each other. A share of
//! the block is kept for what the user is like and one for highlights; pins have the rest, the user's
//! first. A record that has no room is named, so that it can be asked for, and counted in the receipt;
//! none is cut, since half a fact can say the opposite of the whole.
//!
//! # Why doesn't a turn fork the main sequence for that?
//!
//! What is common to the turn and to the clean conversation is kept either way, and what differs must
//! be decoded either way: a fork saves nothing and holds cells twice. Only for a model with a
//! running state, which can't be taken back, would a fork save a prefill of the whole conversation;
//! such a model does best with `memory_tokens = 0`.
//!
//! # Why is every line of a remembered text marked?
//!
//! It may hold anything, the block's closing line too. With a mark at the beginning of each of its
//! lines it can't look like anything but a quote, whatever is in it, and nothing in it needs to be
//! recognised.
//!
//! # Why do rules decide that there is a fact, and not the model?
//!
//! Small models find the value of a given question nearly always and can't say that there is none:
//! asked one slot at a time they made up 18 to 44 facts in ten dialogues. A rule sees that somebody
//! says where they live; where its value ends isn't plain, the model copies the value out, under a
//! grammar that allows nothing but words of the message. So a fact that nobody said can't arise.
//!
//! # Why does a contradiction not cause a compaction?
//!
//! A compaction changes the prompt's prefix, and the next turn has to pay for that. What a
//! contradiction needs is that the message is read for facts, which touches no prefix. It counts only
//! where subject and relation are the same and the values can't both hold: shared words and differing
//! numbers, which an earlier rule went by, were right in one of eight alarms.
//!
//! # Why must turns and days agree before a fact is forgotten?
//!
//! By turns alone, thirty messages of one evening would forget the morning; by days alone, a holiday
//! would. A forgotten fact is merely not recalled, and coming up again makes it fresh.
//!
//! # Why are tools told of only to larger models?
//!
//! The instructions take some 170 tokens of every prompt, and a small model that is told of tools uses
//! them at the wrong time: SmolLM2-135M writes about tags, or a tag and an invented result behind it;
//! Qwen2.5-Coder-1.5B answers from what it looked up when it is asked for something old, but looks up
//! "My name is Ada and I live in Oslo" three times and says nothing. So `tools = auto` is on from 2.5
//! billion parameters, which is a guess: no such model was tried. It takes a window of 4,096 tokens,
//! below which a result has no room. What a tag looks like is stripped from every reply in any case.
//!
//! They stand behind the user's instructions and end with what holds for most messages: told of tools
//! first, Qwen2.5-Coder-1.5B answered nearly everything with an apology.
//!
//! # Why is there one known form of native tool calls?
//!
//! A call must be found while it streams, held back from the user, told from a quotation and from code,
//! and answered in the template's role for it. That is worth having where it can be shown to work:
//! the form of Hermes and Qwen 2.5 (`<tool_call>` around a JSON object) is the commonest, and Qwen's
//! weights know it. A template is tried, not recognised by name: it must show all tools, the marks of a
//! call, and the answer of a tool behind the call. Where it doesn't (Llama 3, Mistral, templates
//! without tools), where the marks are control tokens, which stand for no text, or where telling
//! takes more than 450 tokens of a window under 32,768, tags do the same. The answer of a tool is data in
//! either form: what spells a mark in it is plain text.
//!
//! # Why is a companion's own model known by its content?
//!
//! A copy of the chat model under another path has the same weights, so a second context of it would
//! cost its memory again and read the conversation again, for the same answers. Files of one length
//! are hashed (the hash is remembered), and one that is equal stays a fork.
//!
//! # Why does `--once` not work on after its answer?
//!
//! A script waits for the program to end. What must be done at once is done (the message and the reply
//! are durable, a full prompt is compacted); facts and summaries are nobody's wish at that moment and
//! take a model many seconds. `garret session settle` does them when the owner of the machine says so. It
//! doesn't infer: a guess is for the next message, which may come in a day or never.
//!
//! # Why is a reply without words asked for again under a grammar?
//!
//! A small model that used up its tools writes one more tag, which isn't shown: the user saw nothing at
//! all. Telling it that there are no more tools often doesn't help. Under a grammar without `<` the
//! same prompt, which is in the cache, gives words. Only a model that fails at that, too, gets a
//! sentence of ours in its place, which says that it is ours. It is shown and not stored: it would be
//! remembered, summed up and shown to the model again as words of its own.
//!
//! # Why is a result part of no later prompt?
//!
//! It was needed for one reply, and that reply is kept. With results in history the window would
//! fill with quotes of what is stored anyway, each of them twice. The rounds are appended to the
//! turn's prompt in the cache, so that nothing is prefilled twice within the turn; afterwards the
//! clean turn takes their place.
//!
//! # Why is what the model saw kept as what the template wrote, and not as text or tokens?
//!
//! A prompt of 8,192 tokens a turn would wear a card for what is stored already: nearly all of it is
//! earlier turns. What stands between them is the template's, always the same, and takes some two
//! hundred bytes. With it a prompt can be told byte for byte by a program that has no model, and a check
//! says whether it is the very same.
//!
//! # Why does a comparison have a second context, and not a sequence of its own?
//!
//! Sequences share the cells of one cache. Two conversations that each fill the window don't fit into
//! it, and whoever is pushed out prefills everything again: then neither side is measured as it would
//! be alone, and `--ab` changes what it is to measure. The weights are shared; the second cache costs
//! memory only while comparing.
//!
//! # Why is a tag compared with every text in the prompt before it is obeyed?
//!
//! A model repeats what it reads. The scanner knows code and fences; whether a tag outside of them
//! is the model's own wish can only be told by looking whether it stands, in whatever spelling, in
//! the user's messages, in what is remembered or in a result. A call that the user spelled out is
//! therefore not run by the model either: the user has the same tools as commands. A model writes
//! what it reads in plain letters, so that what isn't seen, what looks like a letter of ASCII and what
//! is escaped makes no difference.
