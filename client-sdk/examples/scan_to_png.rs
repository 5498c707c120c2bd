//! Takes one scan and writes it to a file as a picture.
//!
//! ```sh
//! cargo run --release -- demo                     # in one terminal
//! cargo run --example scan_to_png                 # in another, then look at scan.png
//! cargo run --example scan_to_png -- other.png
//! ```

#![allow(clippy::print_stdout, clippy::print_stderr)] // For people.

use std::env;
use std::fs;
use std::process::ExitCode;
use std::time::Duration;

use amber_sdk::blocking::Client;
use amber_sdk::picture;

/// A laser that was off needs some time for the first scan.
const PATIENCE: Duration = Duration::from_secs(3);

const HELP: &str = "\
Takes one laser scan and writes it to a PNG picture.

Usage: scan_to_png [FILE]

FILE is scan.png by default. AMBER_MEDIATOR is the address of the mediator [default:
127.0.0.1:26233].";

fn main() -> ExitCode {
    if let Some("-h" | "--help") = env::args().nth(1).as_deref() {
        println!("{HELP}");
        return ExitCode::SUCCESS;
    }
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(words) => {
            eprintln!("{words}");
            ExitCode::FAILURE
        }
    }
}

/// The error is a text for people.
fn run() -> Result<(), String> {
    let file = env::args().nth(1).unwrap_or_else(|| "scan.png".into());
    let mediator = env::var("AMBER_MEDIATOR").unwrap_or_else(|_| "127.0.0.1".into());
    let client = Client::connect(mediator).map_err(|error| error.explained())?;
    let laser = client.hokuyo(0).with_deadline(PATIENCE);
    let scan = laser.scan().map_err(|error| error.explained())?;
    let png = picture::png(&scan, None).map_err(|error| format!("error: no picture: {error}"))?;
    fs::write(&file, png).map_err(|error| {
        format!("error: cannot write {file}: {error}\nhint: name another file as an argument")
    })?;
    let (seen, all) = (scan.valid_points().count(), scan.points().len());
    println!("wrote {file}: {seen} of {all} points have a distance");
    client.close();
    Ok(())
}
