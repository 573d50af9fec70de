//! The arguments. Every key of the configuration is a flag of the commands that use it.

pub(super) mod memory;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Arg, ArgMatches, Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use garret::config::KEYS;
use memory::Memory;

/// The command that was asked for, with its settings.
#[derive(Debug)]
pub(super) struct Invocation {
    pub(super) command: Command,
    /// Keys of the configuration given as flags, as text.
    pub(super) flags: Vec<(&'static str, String)>,
    pub(super) config_file: Option<PathBuf>,
}

/// A local model that remembers.
#[derive(Debug, Parser)]
#[command(name = "garret", version, arg_required_else_help = true)]
struct Cli {
    /// Configuration file [default: ~/.config/garret/config.toml, if it is there]
    #[arg(long = "config", value_name = "FILE", global = true, env = "GARRET_CONFIG")]
    config_file: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Talk to the model; what is said is kept
    Chat(Chat),
    /// List, show, search, rename or delete conversations
    Session(Session),
    /// Store, find and look at what is remembered; no model is needed
    Memory(Box<Memory>),
    /// List the models there are, or check one
    Models(Models),
    /// Show every setting and where it comes from
    Config(ConfigCommand),
    /// Find out whether this machine and its model work
    Doctor,
}

#[derive(Debug, Args)]
pub(super) struct Chat {
    /// Conversation to go on with, or to begin [default: a new one]
    #[arg(long, value_name = "ID")]
    pub(super) session: Option<String>,
    /// Go on with the conversation that was last used
    #[arg(long = "continue", conflicts_with = "session")]
    pub(super) resume: bool,
    /// Answer one message and end
    #[arg(long, value_name = "TEXT", conflicts_with = "stdin")]
    pub(super) once: Option<String>,
    /// Answer each line of standard input
    #[arg(long)]
    pub(super) stdin: bool,
    /// Print one JSON object for each answer (with --once or --stdin)
    #[arg(long)]
    pub(super) json: bool,
    /// Answer each message twice, with and without Garret, and compare
    #[arg(long)]
    pub(super) ab: bool,
    /// Write the comparison to a new file: JSON lines, or Markdown where it ends with .md
    #[arg(long, value_name = "FILE", requires = "ab")]
    pub(super) ab_export: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(super) struct Session {
    #[command(subcommand)]
    pub(super) action: SessionAction,
}

#[derive(Debug, Subcommand)]
pub(super) enum SessionAction {
    /// Conversations, the last used first
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Every message of a conversation
    Show {
        /// Its name
        id: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Give a conversation another name
    Rename {
        /// Its name
        id: String,
        /// Its new name
        new: String,
    },
    /// Remove a conversation and all its messages
    Delete {
        /// Its name
        id: String,
    },
    /// Write down a conversation with everything that the model saw in each turn
    Export(SessionExport),
    /// Find words, or a pattern between slashes, in what was said
    Grep(ToolArgs),
    /// Describe a summary (s3) or a turn (turn 12) without its text
    Describe(ToolArgs),
    /// The exact turns under a summary (s3), or the exact words of a turn (turn 12)
    Expand(ToolArgs),
    /// The newest turns, the newest last: how many
    Timeline(ToolArgs),
    /// Do the idle work that scripts left no time for: vectors, facts and summaries; nothing is
    /// inferred
    #[command(alias = "settle")]
    CatchUp {
        /// Names of the conversations [default: all]
        ids: Vec<String>,
    },
}

#[derive(Debug, Args)]
pub(super) struct SessionExport {
    /// Its name
    pub(super) id: String,
    /// Markdown for people, or JSON, which is exact [default: as the file is called, else markdown]
    #[arg(long)]
    pub(super) format: Option<ExportFormat>,
    /// A file, replaced when the export is whole [default: standard output]
    #[arg(long, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
    /// This turn alone
    #[arg(long, value_name = "N")]
    pub(super) turn: Option<u64>,
}

/// The form in which a conversation is written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum ExportFormat {
    /// Markdown, for people
    Markdown,
    /// JSON, for programs, and exact
    Json,
}

/// A tool's arguments.
#[derive(Debug, Args)]
pub(super) struct ToolArgs {
    /// Name of the conversation
    pub(super) id: String,
    /// Words of the request; in=all, k=N, skip=N and before=TURN narrow it
    pub(super) words: Vec<String>,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct Models {
    #[command(subcommand)]
    pub(super) action: ModelsAction,
}

#[derive(Debug, Subcommand)]
pub(super) enum ModelsAction {
    /// Models in the models folder
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Say what a file is and whether it can be used here
    Check {
        /// A GGUF file
        file: PathBuf,
        /// Use to check for [default: whatever the file is for]
        #[arg(long)]
        role: Option<ModelUse>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

/// A use of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum ModelUse {
    /// Answers
    Chat,
    /// Turns texts into vectors
    Embedder,
    /// Says how well texts answer
    Reranker,
}

#[derive(Debug, Args)]
pub(super) struct ConfigCommand {
    #[command(subcommand)]
    pub(super) action: ConfigAction,
}

#[derive(Debug, Subcommand)]
pub(super) enum ConfigAction {
    /// Every key with its value and origin
    Show {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

/// Parses the arguments of the program.
pub(super) fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Invocation, clap::Error> {
    let matches = command().try_get_matches_from(args)?;
    let flags = flags(&matches);
    let Cli { config_file, command } = Cli::from_arg_matches(&matches)?;
    if let Command::Chat(Chat { json: true, once: None, stdin: false, .. }) = &command {
        let problem = "--json needs --once TEXT or --stdin";
        return Err(Cli::command().error(clap::error::ErrorKind::MissingRequiredArgument, problem));
    }
    Ok(Invocation { command, flags, config_file })
}

/// The command with a flag for each key that a subcommand uses.
fn command() -> clap::Command {
    let all: Vec<_> = KEYS.iter().map(|key| key.name).collect();
    Cli::command()
        .mut_subcommand("chat", |command| with_keys(command, &all))
        .mut_subcommand("session", |command| {
            let some = ["data", "namespace", "log"];
            let others: Vec<_> = all.iter().copied().filter(|key| !some.contains(key)).collect();
            with_keys(command, &some).mut_subcommand("catch-up", |below| with_keys(below, &others))
        })
        .mut_subcommand("memory", |command| {
            with_keys(
                command,
                &[
                    "embedder",
                    "reranker",
                    "models_dir",
                    "data",
                    "namespace",
                    "batch_threads",
                    "gpu_layers",
                    "log",
                ],
            )
        })
        .mut_subcommand("models", |command| {
            with_keys(command, &["models_dir", "window", "kv_type", "batch", "log"])
        })
        .mut_subcommand("config", |command| with_keys(command, &all))
        .mut_subcommand("doctor", |command| with_keys(command, &all))
}

fn with_keys(command: clap::Command, names: &[&'static str]) -> clap::Command {
    let keys = KEYS.iter().filter(|key| names.contains(&key.name));
    command.args(keys.map(|key| {
        Arg::new(key.name)
            .long(key.name.replace('_', "-"))
            .value_name("VALUE")
            .help(key.help)
            .help_heading("Settings")
            .allow_negative_numbers(true)
            .global(true)
    }))
}

/// The keys that were given, from whichever subcommand has them.
fn flags(matches: &ArgMatches) -> Vec<(&'static str, String)> {
    let mut found = Vec::new();
    let mut level = Some(matches);
    while let Some(matches) = level {
        for key in KEYS {
            let given = matches.try_get_one::<String>(key.name).ok().flatten();
            if let Some(value) = given.filter(|_| !found.iter().any(|(name, _)| *name == key.name))
            {
                found.push((key.name, value.clone()));
            }
        }
        level = matches.subcommand().map(|(_, below)| below);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::memory::MemoryAction;
    use super::*;

    fn parsed(line: &str) -> Result<Invocation, clap::Error> {
        parse(line.split(' ').map(OsString::from))
    }

    #[test]
    fn the_command_is_consistent() {
        command().debug_assert();
    }

    #[test]
    fn a_key_is_a_flag_wherever_it_is_used() {
        let chat = parsed("garret chat --max-tokens 9 --once hi").unwrap();
        assert_eq!(chat.flags, [("max_tokens", "9".to_owned())]);
        let list = parsed("garret session list --data d").unwrap();
        assert_eq!(list.flags, [("data", "d".to_owned())]);
        assert!(parsed("garret session list --temperature 1").is_err());
    }

    #[test]
    fn json_needs_a_script() {
        assert!(parsed("garret chat --json").is_err());
        assert!(parsed("garret chat --json --stdin").is_ok());
    }

    #[test]
    fn what_is_searched_for_may_begin_with_a_hyphen() {
        for args in [&["-40 bees"][..], &["--json", "-40 bees"], &["-40 bees", "--json"]] {
            let line = [&["garret", "memory", "search"], args].concat();
            let parsed = parse(line.into_iter().map(OsString::from)).unwrap();
            let Command::Memory(memory) = parsed.command else { panic!("{args:?}") };
            let MemoryAction::Search(search) = memory.action else { panic!("{args:?}") };
            assert_eq!((&*search.text, search.json), ("-40 bees", args.len() == 2), "{args:?}");
        }
    }
}
