//! Packs and unpacks the kept corpus for `scripts/fuzz`, and runs targets with random inputs. IO.
//!
//! ```text
//! amber-fuzz list
//! amber-fuzz unpack TARGET FOLDER    writes the kept inputs there
//! amber-fuzz pack TARGET FOLDER      keeps the inputs of the folder instead
//! amber-fuzz run TARGET COUNT SEED   feeds COUNT random inputs
//! ```

#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::path::Path;
use std::process::ExitCode;

use amber_fuzz::{Target, targets};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(lines) => {
            for line in lines {
                println!("{line}");
            }
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[String]) -> Result<Vec<String>, String> {
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["list"] => Ok(targets().map(|target| target.name.to_owned()).collect()),
        ["unpack", name, folder] => (target(name)?.unpack(Path::new(folder)))
            .map(|()| vec![])
            .map_err(|error| format!("{folder}: {error}")),
        ["pack", name, folder] => (target(name)?.pack(Path::new(folder)))
            .map(|count| vec![format!("{name}: {count} inputs are kept")])
            .map_err(|error| format!("{folder}: {error}")),
        ["run", name, count, seed] => run_many(name, count, seed).map(|line| vec![line]),
        _ => Err(
            "amber-fuzz list | unpack TARGET FOLDER | pack TARGET FOLDER | run TARGET COUNT SEED"
                .into(),
        ),
    }
}

fn target(name: &str) -> Result<Target, String> {
    Target::named(name).ok_or_else(|| format!("no target '{name}'; `amber-fuzz list` shows them"))
}

fn run_many(name: &str, count: &str, seed: &str) -> Result<String, String> {
    let number = |text: &str| {
        text.parse::<u64>()
            .map_err(|error| format!("{text}: {error}"))
    };
    let summary = target(name)?.run_many(number(count)?, number(seed)?)?;
    Ok(format!(
        "{name}: {} inputs of seed {seed} without a failure in {:.0} s",
        summary.inputs,
        summary.took.as_secs_f64(),
    ))
}
