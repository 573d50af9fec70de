//! The program `garret`: a chat in the terminal, and commands for scripts.
//!
//! Replies and results go to stdout; everything else goes to stderr. The program's own `main` is
//! one call of [`main`](fn@main). A command is a variant in `args`, which documents it for
//! `--help`, and a module of its name, which does it with the library `garret`; nothing here
//! decides what is remembered or what a model sees.
//!
//! Dependencies that the library doesn't have: `clap` (arguments), `rustyline` (line editing),
//! `indicatif` (a bar while much is imported), `async-signal` (Ctrl-C as a stream), `rustix`
//! (restoring the terminal), `unicode-width` (columns of text), `tracing-subscriber` (log lines to
//! stderr).

#![forbid(unsafe_code)]

pub mod ab;
mod args;
mod catch_up;
mod chat;
mod config;
mod dates;
mod doctor;
mod export;
mod lines;
mod memory;
mod models;
mod new_file;
mod output;
mod session;
mod session_name;
mod tools;

use std::process::ExitCode;

use garret::config::{
    Config, ConfigError, Home, Sources, default_file, device_profile, environment,
};
use garret_hal::heap;

use self::args::{Command, Invocation};

/// Runs the program and gives its exit status: 0 when it did what was asked, 1 when it couldn't,
/// 2 when it wasn't asked properly, 130 when it was interrupted.
pub fn main() -> ExitCode {
    heap::bound();
    let invocation = match args::parse(std::env::args_os()) {
        Ok(invocation) => invocation,
        Err(error) => {
            // Help and version are "errors" that belong on stdout; clap knows which.
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { 2 } else { 0 });
        }
    };
    let config = match configuration(&invocation) {
        Ok(config) => config,
        Err(error) => {
            output::complain(&error);
            return ExitCode::from(2);
        }
    };
    if let Err(error) = output::log_to_stderr(&config.log.value) {
        output::complain(&error);
        return ExitCode::from(2);
    }
    let result = match &invocation.command {
        Command::Chat(chat) => chat::run(&config, chat),
        Command::Session(session) => session::run(&config, session),
        Command::Memory(memory) => memory::run(&config, memory),
        Command::Models(models) => models::run(&config, models),
        Command::Config(show) => config::run(&config, show),
        Command::Doctor => doctor::run(&config),
    };
    match result {
        Ok(code) => code,
        Err(error) => {
            if !output::is_closed_pipe(error.as_ref()) {
                output::complain(error.as_ref());
            }
            ExitCode::FAILURE
        }
    }
}

/// The exit status of a command that ran, or the reason why it couldn't.
type CommandResult = Result<ExitCode, Box<dyn std::error::Error>>;

fn configuration(invocation: &Invocation) -> Result<Config, ConfigError> {
    let home = Home::from_environment(|name| std::env::var_os(name));
    let file = default_file(invocation.config_file.as_deref(), &home)?;
    Config::resolve(Sources {
        flags: invocation.flags.clone(),
        environment: environment()?,
        file,
        device: device_profile(),
        home,
    })
}
