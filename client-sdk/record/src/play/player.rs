//! Selects the due messages. PURE except for the files.

use std::collections::BTreeSet;
use std::io::{Read, Seek};
use std::sync::Arc;
use std::time::Instant;

use amber_proto::Device;
use amber_proto::feed::Direction;
use prost::Message;

use super::clock::Clock;
use super::reader::{Next, Reader};
use super::recorded::{Recorded, What};
use super::wire::outer;
use crate::recording::GapFact;
use crate::{Error, GapInfo};

/// The number of DATA in `DriverMsg.MsgType`.
const DATA: u64 = amber_proto::MsgType::Data as u64;

/// An event in a recording.
#[derive(Clone, Debug, PartialEq)]
pub enum Played {
    /// A device publishes a message.
    Published {
        /// The device.
        device: Device,
        /// The recorded ids of the clients that got it.
        clients: Vec<i32>,
        /// The message.
        message: Vec<u8>,
    },
    /// An encoded `amber.mediator_proto.Event`.
    Event(Vec<u8>),
    /// Messages are missing here.
    Gap(GapInfo),
    /// A part of the file is damaged: what is wrong, and the messages that are left out.
    Damaged(String, GapInfo),
    /// The recording starts again.
    Again,
    /// The recording has ended; the player pauses.
    End,
}

/// Plays a recording: see [`Player::poll`].
pub struct Player<F> {
    recorded: Arc<Recorded>,
    channels: BTreeSet<u16>,
    clock: Clock,
    repeats: bool,
    files: Vec<F>,
    reader: Reader,
    next: Option<(u64, Played)>,
    /// The next message is due, although the clock is paused.
    steps: bool,
    /// The end was reported.
    ended: bool,
}

impl<F: Read + Seek> Player<F> {
    /// A paused player at the start of a recording, for these devices. The files are in the order of
    /// [`Recorded::join`].
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn new(
        recorded: Arc<Recorded>,
        files: Vec<F>,
        devices: &BTreeSet<Device>,
        repeats: bool,
    ) -> Result<Self, Error> {
        let channels = recorded.channels_where(|channel| match channel.what {
            What::Frames(device, Direction::FromDriver) => devices.contains(&device),
            What::Frames(_, Direction::ToDriver) => false,
            What::Events | What::Gaps => true,
        });
        let clock = Clock::new(recorded.span());
        let reader = Reader::new(&recorded, &channels, clock.span().first_ns);
        let mut player = Self {
            recorded,
            channels,
            clock,
            repeats,
            files,
            reader,
            next: None,
            steps: false,
            ended: false,
        };
        player.advance()?;
        Ok(player)
    }

    /// Its clock.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// When to call [`Player::poll`]; `None` while nothing will happen.
    pub fn due(&self, now: Instant) -> Option<Instant> {
        match &self.next {
            Some(_) if self.steps => Some(now),
            Some((time_ns, _)) => self.clock.when(*time_ns),
            None if self.ended => None,
            None => self.clock.when(self.clock.span().end_ns()),
        }
    }

    /// The current event, with its time in nanoseconds since 1970. Call it until it returns `None`.
    ///
    /// # Errors
    /// The file cannot be read. The player is paused then, and can jump.
    pub fn poll(&mut self, now: Instant) -> Result<Option<(u64, Played)>, Error> {
        let position_ns = self.clock.position_ns(now);
        let is_due = |time_ns: u64| self.steps || time_ns <= position_ns;
        if let Some((time_ns, played)) = self.next.take_if(|(time_ns, _)| is_due(*time_ns)) {
            if std::mem::take(&mut self.steps) {
                self.clock.jump(now, time_ns);
            }
            if let Err(error) = self.advance() {
                self.clock.pause(now);
                return Err(error);
            }
            return Ok(Some((time_ns, played)));
        }
        self.steps = false;
        let is_over = self.next.is_none() && position_ns >= self.clock.span().end_ns();
        if !is_over || self.ended {
            return Ok(None);
        }
        if self.repeats {
            let first_ns = self.clock.span().first_ns;
            self.jump(now, first_ns)?;
            return Ok(Some((first_ns, Played::Again)));
        }
        self.clock.pause(now);
        self.ended = true;
        Ok(Some((position_ns, Played::End)))
    }

    /// Runs. At the end, restarts.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn resume(&mut self, now: Instant) -> Result<(), Error> {
        if self.ended {
            self.jump(now, self.clock.span().first_ns)?;
        }
        self.clock.resume(now);
        Ok(())
    }

    /// Stands still.
    pub fn pause(&mut self, now: Instant) {
        self.clock.pause(now);
    }

    /// Changes the rate.
    pub fn set_rate(&mut self, now: Instant, rate: f64) {
        self.clock.set_rate(now, rate);
    }

    /// Pauses, and lets one message happen.
    pub fn step(&mut self, now: Instant) {
        self.clock.pause(now);
        self.steps = self.next.is_some();
    }

    /// Jumps forwards or backwards.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn jump_by(&mut self, now: Instant, by_ms: i64) -> Result<(), Error> {
        let to_ns = self.clock.jump_by(now, by_ms);
        self.jump(now, to_ns)
    }

    /// Jumps to a time, in nanoseconds since 1970. The next events are those from then on.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn jump(&mut self, now: Instant, to_ns: u64) -> Result<(), Error> {
        self.clock.jump(now, to_ns);
        self.steps = false;
        self.ended = false;
        let from_ns = self.clock.position_ns(now);
        self.reader = Reader::new(&self.recorded, &self.channels, from_ns);
        self.advance()
    }

    /// Finds the next event.
    fn advance(&mut self) -> Result<(), Error> {
        self.next = None;
        let channels = &self.recorded.channels;
        while self.next.is_none() {
            let found = &mut self.next;
            let (reader, files) = (&mut self.reader, &mut self.files);
            let any = reader.next(&self.recorded, files, |next| {
                let (time_ns, channel, data) = match next {
                    Next::Message(time_ns, channel, data) => (time_ns, channel, data),
                    Next::Damaged(what, gap) => {
                        *found = Some((gap.first_ns, Played::Damaged(what, gap)));
                        return;
                    }
                };
                let channel = channels.get(&channel);
                let played = channel.and_then(|channel| match channel.what {
                    What::Frames(device, _) => {
                        let (framing, message) = channel.stored.message(data)?;
                        let outer = outer(&message)?;
                        let is_published = outer.msg_type == DATA && outer.ack == 0;
                        (is_published && framing.dropped.is_none()).then(|| Played::Published {
                            device,
                            clients: framing.clients,
                            message: message.into_owned(),
                        })
                    }
                    What::Events => Some(Played::Event(data.to_vec())),
                    What::Gaps => Some(Played::Gap((&GapFact::decode(data).ok()?).into())),
                });
                *found = played.map(|played| (time_ns, played));
            })?;
            if !any {
                break;
            }
        }
        Ok(())
    }
}
