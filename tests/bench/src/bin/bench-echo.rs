//! A driver that writes every frame back unchanged. IO.
//!
//! `bench-echo` echoes; `bench-echo pub CLIENTS BYTES HERTZ` also publishes messages of this size
//! to all clients, once it knows that many.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use amber_bench::probe;
use amber_proto::{DriverHdr, Frame, Header, MsgType};
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_gettime};
use prost::Message;

fn main() -> anyhow::Result<()> {
    let words: Vec<_> = std::env::args().skip(1).collect();
    let mut publisher = match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => None,
        ["pub", clients, bytes, hertz] => Some(Publisher {
            wanted: clients.parse()?,
            hertz: hertz.parse()?,
            message: probe::message(MsgType::Data, bytes.parse()?),
            clients: Vec::new(),
            since: None,
            published: 0,
        }),
        _ => anyhow::bail!("usage: bench-echo [pub CLIENTS BYTES HERTZ]"),
    };
    let mut stdin = File::from(std::io::stdin().as_fd().try_clone_to_owned()?);
    let mut stdout = File::from(std::io::stdout().as_fd().try_clone_to_owned()?);
    let mut bytes = vec![0; 1 << 18];
    let mut have = 0;
    loop {
        if let Some(publisher) = &mut publisher
            && let Some(wait) = publisher.publish(&mut stdout)?
        {
            let mut input = [PollFd::new(stdin.as_fd(), PollFlags::POLLIN)];
            if ppoll(&mut input, Some(TimeSpec::from(wait)), None)? == 0 {
                continue;
            }
        }
        let count = stdin.read(&mut bytes[have..])?;
        if count == 0 {
            return Ok(());
        }
        have += count;
        let mut whole = 0;
        while let Some(frame) = Frame::from_stream(&bytes[whole..have]) {
            if let Some(publisher) = &mut publisher {
                publisher.note(frame)?;
            }
            whole += frame.wire_len();
        }
        stdout.write_all(&bytes[..whole])?;
        bytes.copy_within(whole..have, 0);
        have -= whole;
    }
}

struct Publisher {
    wanted: usize,
    hertz: f64,
    message: Vec<u8>,
    clients: Vec<i32>,
    since: Option<Instant>,
    published: u32,
}

impl Publisher {
    fn note(&mut self, frame: Frame<'_>) -> anyhow::Result<()> {
        for id in Header::parse(frame.header)?.client_ids() {
            if !self.clients.contains(&id.0) {
                self.clients.push(id.0);
            }
        }
        Ok(())
    }

    /// Publishes what is due. Returns the time until the next publication, once publishing has
    /// started.
    fn publish(&mut self, out: &mut File) -> anyhow::Result<Option<Duration>> {
        if self.clients.len() < self.wanted {
            return Ok(None);
        }
        let since = *self.since.get_or_insert_with(Instant::now);
        let next = |published: u32| Duration::from_secs_f64(f64::from(published) / self.hertz);
        while next(self.published) <= since.elapsed() {
            // The load generator uses the same clock.
            let now = Duration::from(clock_gettime(ClockId::CLOCK_MONOTONIC)?);
            probe::stamp(&mut self.message, now.as_nanos() as u64, self.published);
            let header = DriverHdr {
                client_ids: self.clients.clone(),
                ..DriverHdr::default()
            }
            .encode_to_vec();
            let mut frame = Vec::new();
            Frame {
                header: &header,
                message: &self.message,
            }
            .encode(&mut frame)?;
            out.write_all(&frame)?;
            self.published += 1;
        }
        Ok(Some(next(self.published).saturating_sub(since.elapsed())))
    }
}
