//! The command `amber sim` as a separate program. IO.
//!
//! ```sh
//! cargo run -p amber-sim --example sim -- --map lab.roson
//! ```

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;

#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    options: amber_sim::cli::Options,
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    match amber_sim::cli::run(&cli.options, cli.json) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            let mut err = std::io::stderr().lock();
            // Errors while writing to stderr cannot be reported.
            let _ = writeln!(err, "error: {failure}");
            if let Some(hint) = &failure.hint {
                let _ = writeln!(err, "hint: {hint}");
            }
            ExitCode::from(if failure.wrong_request { 2 } else { 1 })
        }
    }
}
