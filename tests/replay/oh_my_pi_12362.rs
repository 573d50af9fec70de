//! oh-my-pi#12362: a recap of the conversation sent the whole context to the model once more, and then
//! a second time because the first answer was thrown away.
//!
//! A companion is asked on a fork of the conversation's cache: it decodes its instruction and no turn
//! again.

use garret::agent::{Options, When};
use garret_core::model::ModelRole;
use garret_tests::scripted::{Act, ScriptedModel};
use garret_tests::talk::{say, session, texts};

use crate::agent;

#[test]
fn a_summary_decodes_its_instruction_alone() {
    let model =
        ScriptedModel::new(8_192, []).companions(|_, _| Act::Say("- bees were counted\n".into()));
    let mut agent = agent(&model, Options { compact_at: 80, ..Options::default() });
    for turn in 0..45 {
        say(&mut agent, &format!("Remark {turn}: the hive by the fence holds {turn}00 bees."));
    }
    let done = smol::block_on(agent.summarise(&session(), When::Asked));
    assert!(done.leaves > 0, "{done:?}");
    let asked = model.asked();
    let asked: Vec<_> = asked.iter().filter(|asked| asked.role == ModelRole::Compactor).collect();
    assert_eq!(asked.len(), done.calls as usize, "no answer was thrown away");
    let mut whole = 0;
    for asked in asked {
        let instruction = texts(&asked.prompt).pop().unwrap().len();
        assert!(asked.prompt.len() - asked.reused <= instruction + 80, "{asked:?}");
        whole += asked.prompt.len() / 2;
    }
    assert!(whole > 500, "the context was worth sharing: {whole}");
}
