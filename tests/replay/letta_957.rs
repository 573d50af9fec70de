//! letta#957: a conversation that had outgrown the window was to be summed up by the same model, and
//! the request to do so outgrew the window too; nothing could be said any more.
//!
//! A summary is asked for in pieces that fit. A scripted model panics when a request doesn't.

use garret::agent::{Options, When};
use garret_core::model::ModelRole;
use garret_tests::scripted::{Act, ScriptedModel};
use garret_tests::talk::{say, session, tell};

use crate::{AT, agent_on, store};

#[test]
fn a_conversation_of_six_windows_is_summed_up_in_pieces() {
    let store = store();
    let turns = 60;
    for turn in 0..turns {
        let user = format!("Remark {turn}: {}", "the hive holds bees. ".repeat(4 + turn % 20));
        tell(&store, &session(), &user, "I noted that.", AT);
    }
    let model = ScriptedModel::new(2_048, [])
        .companions(|_, _| Act::Say("- the bees in the hive were counted\n".into()));
    let mut agent = agent_on(&store, &model, Options { compact_at: 80, ..Options::default() });
    say(&mut agent, "How many bees are there?");
    let mut frontier = 0;
    while let now = store.frontier(&session()).unwrap()
        && (now == 0 || now > frontier)
    {
        frontier = now;
        // Each time it ends when it has taken long enough.
        smol::block_on(agent.summarise(&session(), When::Asked));
    }
    assert!(frontier > turns as u64 * 2 / 3, "{frontier} of {turns} turns");
    let asked = model.asked();
    let asked: Vec<_> = asked.iter().filter(|asked| asked.role == ModelRole::Compactor).collect();
    assert!(asked.len() > 10, "{} requests", asked.len());
    assert!(store.summaries(&session()).unwrap().iter().all(|summary| !summary.text.is_empty()));
    say(&mut agent, "Thank you.");
}
