//! What a model is told of the tools it has: the beginning of its instructions.

use std::sync::Arc;

/// The instructions of a model that has tools: `system_prompt`, then how they are used. What comes
/// last is what small models hold on to: that most messages need no tool.
pub(super) fn with_tools(system_prompt: &str) -> Arc<str> {
    match system_prompt {
        "" => PROTOCOL.into(),
        text => [text, "\n\n", PROTOCOL].concat().into(),
    }
}

/// How tools are used. Small models follow the examples more than the words, so each verb has one.
pub(super) const PROTOCOL: &str = "\
Everything said is stored. Only when the user asks for something from earlier that is not shown here, \
reply with one of these tags alone, and the result comes in the next message:
<<garret-tool: lookup WORDS>> what was said or is known about something
<<garret-tool: grep WORDS>> where exactly these words were said
<<garret-tool: expand turn 12>> all words of a turn; expand s3: the turns under summary s3
<<garret-tool: timeline 5>> the newest turns
<<garret-tool: entity NAME>> facts about a person or thing
<<garret-tool: pinned>> pinned facts
In all other cases just answer.";
