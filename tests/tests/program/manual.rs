//! The examples of the README and the guide: each command works as it is written there, and each
//! transcript is what comes.

use std::path::Path;
use std::process::Output;

use garret_tests::program::{Place, built, stdout, succeeded};

/// The file that both speak of.
const TURNS: &str = concat!(
    r#"{"session":"garden","speaker":"Ada","text":"The bees swarmed yesterday.","#,
    r#""at":"2024-05-31T18:20:00Z"}"#,
    "\n",
    r#"{"session":"kitchen","role":"user","text":"Marta brings the cake.","#,
    r#""at":"2024-06-01T08:00:00Z"}"#,
    "\n",
);

/// Runs a line as a shell does, in a folder of its own, with both outputs in one.
fn shell(place: &Place, line: &str) -> Output {
    let mut command = place.program("garret", &[]);
    // The program's own settings come from variables, which the shell passes on.
    let path = built("garret").parent().map(Path::to_path_buf).unwrap();
    let mut shell = std::process::Command::new("/bin/sh");
    shell.env_clear().envs(command.get_envs().filter_map(|(k, v)| Some((k, v?))));
    shell.env("PATH", format!("{}:/usr/bin:/bin", path.display()));
    command = shell;
    command.current_dir(place.home()).args(["-c", &format!("exec 2>&1; {line}")]);
    command.stdin(std::process::Stdio::null()).output().unwrap()
}

fn page(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    std::fs::read_to_string(root.join(path)).unwrap().replace("\\\n", "")
}

/// "The first command fails on a machine it was not tried on": whatever the README says to type is
/// typed here, in its order.
#[test]
fn the_commands_of_the_readme_work_as_they_are_written() {
    let Some(place) = Place::new() else { return };
    std::fs::write(place.home().join("turns.jsonl"), TURNS).unwrap();
    let page = page("README.md");
    let lines: Vec<_> = page
        .lines()
        .filter_map(|line| line.strip_prefix("    "))
        .filter(|l| l.starts_with("garret "))
        .collect();
    assert!(lines.len() > 10, "{lines:?}");
    for line in lines {
        let output = shell(&place, line);
        assert!(output.status.success(), "{line}: {}", stdout(&output));
    }
    assert!(place.home().join("kitchen.md").exists());
}

#[test]
fn the_transcript_of_the_guide_is_what_comes() {
    let Some(place) = Place::new() else { return };
    std::fs::write(place.home().join("turns.jsonl"), TURNS).unwrap();
    let page = page("engine/src/manual/guide.md");
    assert!(page.contains(TURNS), "the guide shows the file that is imported");
    let transcript = page.split("```").find(|block| block.starts_with("text\n$ ")).unwrap();
    let steps = transcript.trim_start_matches("text\n").split("$ ").skip(1);
    for (command, shown) in steps.map(|step| step.split_once('\n').unwrap()) {
        let came = succeeded(&shell(&place, command));
        assert_eq!(without_scores(&came), without_scores(shown), "{command}");
    }
}

/// Takes away how likely hits are: that changes with every weight of the ranking.
fn without_scores(text: &str) -> String {
    text.split(" (0.").map(|part| part.split_once(")\n").map_or(part, |(_, rest)| rest)).collect()
}
