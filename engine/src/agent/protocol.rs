//! What a model is told of the tools it has: the beginning of its instructions.

use std::sync::Arc;

/// The instructions of a model that has tools: how they are used, then `system_prompt`.
pub(super) fn with_tools(system_prompt: &str) -> Arc<str> {
    match system_prompt {
        "" => PROTOCOL.into(),
        text => [PROTOCOL, "\n\n", text].concat().into(),
    }
}

/// How tools are used. Small models follow the examples more than the words, so each verb has one.
pub(super) const PROTOCOL: &str = "\
You see only a part of this conversation; all of it is stored, and tools find what you don't see. \
To use a tool, reply with its tag alone:
<<garret-tool: lookup WORDS>> what was said or is known about something, in any conversation
<<garret-tool: grep WORDS>> where exactly these words were said in this conversation
<<garret-tool: expand turn 12>> all words of a turn; expand s3: the turns under summary s3
<<garret-tool: timeline 5>> the newest turns
<<garret-tool: entity NAME>> facts about a person or thing
<<garret-tool: pinned>> pinned facts
The result comes in the next message. Use a tool only if the user asks for something from earlier \
that you don't see here. Never promise to look something up: write the tag. Greetings, thanks and \
general questions need no tool: just answer.";
