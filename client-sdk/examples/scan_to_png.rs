//! Takes one scan and writes it to a file as a picture.
//!
//! ```sh
//! cargo run --release -- demo                     # in one terminal
//! cargo run --example scan_to_png                 # in another, then look at scan.png
//! cargo run --example scan_to_png -- other.png
//! ```

#![allow(clippy::print_stdout)] // For people.

use std::env;
use std::error::Error;
use std::fs;
use std::time::Duration;

use amber_client::blocking::Client;
use amber_client::picture;

/// A laser that was off needs a moment.
const PATIENCE: Duration = Duration::from_secs(3);

fn main() -> Result<(), Box<dyn Error>> {
    let file = env::args().nth(1).unwrap_or_else(|| "scan.png".into());
    let mediator = env::var("AMBER_MEDIATOR").unwrap_or_else(|_| "127.0.0.1:26233".into());
    let client = Client::connect(mediator)?;
    let scan = client.hokuyo(0).with_deadline(PATIENCE).scan()?;
    fs::write(&file, picture::png(&scan, None)?)?;
    let (seen, all) = (scan.valid_points().count(), scan.points().len());
    println!("{seen} of {all} points met something: {file}");
    client.close();
    Ok(())
}
