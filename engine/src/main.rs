//! The program `garret`.

fn main() -> std::process::ExitCode {
    garret::cli::main()
}
