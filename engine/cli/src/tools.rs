//! The model's tools for the user: `garret session grep` and its like, `/grep` and its like.

use std::error::Error;

use garret::embed::Embed;
use garret::tools::{self, Call, Context};
use garret_core::id::SessionId;
use garret_core::time::{Clock as _, Confidence};
use garret_hal::clock::SystemClock;
use garret_storage::Store;

use super::args::ToolArgs;
use super::output;

/// `garret session VERB SESSION WORDS`.
pub(super) fn run(store: &Store, verb: &str, args: &ToolArgs) -> Result<(), Box<dyn Error>> {
    let session: SessionId = args.id.parse()?;
    if store.session(&session)?.is_none() {
        return Err(
            format!("there is no conversation `{session}`: see `garret session list`").into()
        );
    }
    let call = Call::parse(verb, &args.words.join(" "))?;
    tell(store, None, &session, &call, args.json)
}

/// A command of the conversation: its verb and what follows it.
pub(super) fn command(
    store: &Store,
    embedder: Option<&dyn Embed>,
    session: &SessionId,
    verb: &str,
    payload: &str,
) -> Result<(), Box<dyn Error>> {
    let call = Call::parse(verb, payload)?;
    tell(store, embedder, session, &call, false)
}

fn tell(
    store: &Store,
    embedder: Option<&dyn Embed>,
    session: &SessionId,
    call: &Call,
    json: bool,
) -> Result<(), Box<dyn Error>> {
    let now = SystemClock::new().wall();
    let now = (now.confidence != Confidence::Wrong).then_some(now.unix_ms);
    let context = Context { embedder, session: Some(session), now, ..Context::new(store) };
    let answer = tools::run(&context, call)?;
    if json {
        return output::say_json(&answer);
    }
    Ok(output::say(&answer.for_people(session.as_str()))?)
}
