//! A driver that writes every frame back after a delay: `bench-slow MICROSECONDS`. It reads one
//! part at a time, as the drivers of the original do, so waiting frames stay in its pipe. IO.

use std::io::{Read, Write};
use std::time::{Duration, Instant};

use anyhow::Context;

fn main() -> anyhow::Result<()> {
    let microseconds = std::env::args()
        .nth(1)
        .context("usage: bench-slow MICROSECONDS")?;
    let each = Duration::from_micros(microseconds.parse()?);
    // Unbuffered: `Stdin` has a buffer and reads more than requested.
    let mut stdin =
        std::fs::File::from(std::os::fd::AsFd::as_fd(&std::io::stdin()).try_clone_to_owned()?);
    let mut stdout = std::io::stdout().lock();
    loop {
        let mut frame = Vec::new();
        for _ in ["header", "message"] {
            let mut length = [0; 2];
            if stdin.read_exact(&mut length).is_err() {
                return Ok(());
            }
            let mut part = vec![0; u16::from_be_bytes(length).into()];
            stdin.read_exact(&mut part)?;
            frame.extend(length);
            frame.extend(part);
        }
        // Sleeping takes longer than requested.
        let begin = Instant::now();
        while begin.elapsed() < each {
            std::thread::sleep(each / 10);
        }
        stdout.write_all(&frame)?;
        stdout.flush()?;
    }
}
