//! The program `garret`.

fn main() -> std::process::ExitCode {
    garret_cli::main()
}
