//! The actions of clients and driver processes. PURE.

use std::net::SocketAddr;
use std::time::Duration;

use amber_proto::{Device, DeviceMessage, FrameCodec, MsgType};
use bytes::BytesMut;
use tokio_util::codec::Decoder;

use super::{Event, World};
use crate::Broken;
use crate::clients::{Client, Raw, RawClientKind, Sdk, Turn};
use crate::invariant::{Check, Invariant, broken};
use crate::messages;
use crate::process::Life;
use crate::weather::about;

impl World {
    pub(super) fn arrives_soon(&mut self, at: SocketAddr) {
        let pause = *self.rng.choice(&[20, 200, 1500]).unwrap_or(&200);
        let delay = about(&mut self.rng, Duration::from_millis(pause));
        self.agenda.plan(delay, Event::Arrives(at));
    }

    /// A client starts at an address that another one may have used.
    pub(super) fn arrives(&mut self, at: SocketAddr) -> Check {
        if self.clients.contains_key(&at) || self.lost == Some(at) {
            return Ok(());
        }
        if self.model.knows(at) {
            self.summary
                .count("clients at the address of a client that is still known");
        }
        self.arrivals += 1;
        let number = self.arrivals;
        let now = self.agenda.now();
        let kind = match self.rng.u8(0..8) {
            _ if self.calm => None,
            0 | 1 => Some(RawClientKind::Old),
            2 => Some(RawClientKind::Operator),
            3 => Some(RawClientKind::Nuisance),
            _ => None,
        };
        self.say(|| format!("{at}: client {number} starts, {kind:?}"));
        let turn = match kind {
            Some(kind) => {
                self.summary.count("clients without an SDK");
                let raw = Raw::new(kind, &mut self.rng);
                self.clients.insert(at, (number, Client::Raw(raw)));
                Turn::default()
            }
            None => {
                self.summary.count("clients with the SDK");
                let (sdk, turn) = Sdk::connect(now, &mut self.rng);
                self.clients
                    .insert(at, (number, Client::Sdk(Box::new(sdk))));
                turn
            }
        };
        self.take_turn(at, Ok(turn))?;
        self.plan_act(at, number);
        Ok(())
    }

    fn plan_act(&mut self, at: SocketAddr, number: u64) {
        let delay = about(&mut self.rng, self.weather.pace);
        self.agenda.plan(delay, Event::Acts(at, number));
    }

    pub(super) fn client_acts(&mut self, at: SocketAddr, number: u64) -> Check {
        let now = self.agenda.now();
        let Some((known, client)) = self.clients.get_mut(&at) else {
            return Ok(());
        };
        if *known != number || self.quiet.is_some() {
            return Ok(());
        }
        let turn = client.act(now, &mut self.rng, &mut self.tokens);
        self.take_turn(at, Ok(turn))?;
        self.plan_act(at, number);
        Ok(())
    }

    pub(super) fn client_receives(&mut self, at: SocketAddr, bytes: &[u8]) -> Check {
        let now = self.agenda.now();
        let Some((_, client)) = self.clients.get_mut(&at) else {
            return Ok(());
        };
        let turn = client.receive(now, bytes);
        self.take_turn(at, turn)
    }

    pub(super) fn client_refused(&mut self, at: SocketAddr) -> Check {
        let now = self.agenda.now();
        let Some((_, client)) = self.clients.get_mut(&at) else {
            return Ok(());
        };
        self.summary.count("refusals received by clients");
        let turn = client.refused(now);
        self.take_turn(at, turn)
    }

    pub(super) fn client_timeout(&mut self, at: SocketAddr) -> Check {
        let now = self.agenda.now();
        let Some((_, client)) = self.clients.get_mut(&at) else {
            return Ok(());
        };
        let turn = client.timeout(now);
        let next = client.next_timeout();
        if next.is_some_and(|next| next <= now) {
            // Process what is due now; otherwise time would not advance.
            self.summary
                .count("timeouts of clients that are due again at once");
        }
        self.take_turn(at, turn)
    }

    fn take_turn(&mut self, at: SocketAddr, turn: Result<Turn, Broken>) -> Check {
        let turn = turn.map_err(|broken| Broken {
            what: format!("{at}: {}", broken.what),
            ..broken
        })?;
        if let Some((_, client)) = self.clients.get(&at) {
            client.check(self.agenda.now())?;
        }
        for bytes in turn.sent {
            self.say(|| format!("{at} sends {}", show(&bytes)));
            self.send_to_mediator(at, bytes);
        }
        if turn.leaves {
            self.client_leaves(at);
        }
        Ok(())
    }

    /// A program ends; another may use its address.
    pub(super) fn client_leaves(&mut self, at: SocketAddr) {
        self.say(|| format!("{at}: the client ends"));
        self.summary.count("clients that ended");
        if let Some((_, Client::Sdk(sdk))) = self.clients.remove(&at) {
            let (answered, failed) = sdk.ended;
            self.summary
                .count_many("calls that were answered", answered);
            self.summary.count_many("calls that failed", failed);
        }
        self.arrives_soon(at);
    }

    /// A process reads some of its stdin.
    pub(super) fn process_reads(&mut self, pid: u32) -> Check {
        let now = self.agenda.now();
        let Some(process) = self
            .processes
            .get_mut(&pid)
            .filter(|process| !process.ended)
        else {
            return Ok(());
        };
        process.planned.reads = false;
        if !process.reads(now) {
            // It may have too much unwritten output; it tries again.
            if !process.hangs(now) {
                self.plan_read(pid, Duration::from_millis(200));
            }
            return Ok(());
        }
        let most = match self.rng.u8(0..4) {
            0 => self.rng.usize(1..20),
            _ => 65_536,
        };
        let (frames, life) = process.read(most);
        let mut out = Vec::new();
        for bytes in frames {
            self.summary.mix(&bytes);
            self.model.reads(pid, &bytes)?;
            let Some(process) = self.processes.get_mut(&pid) else {
                break;
            };
            let packet = FrameCodec.decode(&mut BytesMut::from(&bytes[..]));
            let Ok(Some(packet)) = packet else {
                let what = format!("{pid} reads a frame that its SDK rejects");
                return Err(broken(Invariant::FramesWhole, what));
            };
            process
                .program
                .frame(now, packet, &mut self.tokens, &mut out);
            self.say(|| format!("process {pid} reads {}", show(&bytes)));
        }
        self.speaks(pid, &out);
        if let Life::Ends(code) = life {
            self.process_dies(pid, code);
            return Ok(());
        }
        let Some(process) = self.processes.get(&pid) else {
            return Ok(());
        };
        let key = process.key;
        let waits = (self.core.as_mut())
            .and_then(|core| core.queue_mut(key))
            .map(|queue| !queue.is_empty());
        if waits == Some(false) && process.has_read_all() && self.children.get(&key) == Some(&pid) {
            self.model.has_read_all(pid)?;
        }
        let (empty, eof) = (
            process.stdin.as_ref().is_none_or(|pipe| pipe.is_empty()),
            process.eof,
        );
        if !empty {
            let slow = if process.vices.slow { 400 } else { 2 };
            self.plan_read(pid, Duration::from_millis(slow));
        } else if eof && !process.vices.ignores_eof {
            self.process_dies(pid, 0);
        }
        self.plan_writable(pid);
        Ok(())
    }

    /// A process has output.
    pub(super) fn speaks(&mut self, pid: u32, out: &[u8]) {
        let Some(process) = self.processes.get_mut(&pid) else {
            return;
        };
        process.backlog.extend_from_slice(out);
        if !process.backlog.is_empty() && !process.planned.writes {
            process.planned.writes = true;
            let delay = about(&mut self.rng, Duration::from_micros(500));
            self.agenda.plan(delay, Event::Writes(pid));
        }
    }

    /// A process writes some of its output to stdout.
    pub(super) fn process_writes(&mut self, pid: u32) -> Check {
        let now = self.agenda.now();
        let Some(process) = self
            .processes
            .get_mut(&pid)
            .filter(|process| !process.ended)
        else {
            return Ok(());
        };
        process.planned.writes = false;
        if process.hangs(now) && process.vices.half_frame.is_none() && self.rng.bool() {
            // Output in transit when it began to hang may still arrive.
            return Ok(());
        }
        let most = match self.rng.u8(0..3) {
            0 => self.rng.usize(1..12),
            _ => 65_536,
        };
        let life = process.write(most);
        let more = !process.backlog.is_empty() && process.stdout.has_room();
        self.plan_shell_read(pid);
        if let Life::Ends(code) = life {
            self.summary.count("processes that died while writing");
            self.process_dies(pid, code);
        } else if more {
            self.speaks(pid, &[]);
        }
        Ok(())
    }

    /// A process acts without input.
    pub(super) fn process_due(&mut self, pid: u32) -> Check {
        let now = self.agenda.now();
        let Some(process) = self.processes.get_mut(&pid) else {
            return Ok(());
        };
        let life = process.misbehave(now);
        let mut out = Vec::new();
        if !process.hangs(now) && process.program.next_due().is_some_and(|due| due <= now) {
            process.program.due(now, &mut self.tokens, &mut out);
        }
        let (no_stdin, closed) = (process.stdin.is_none(), process.stdout_closed);
        self.speaks(pid, &out);
        if no_stdin {
            self.summary.count("processes that closed their stdin");
            self.plan_writable(pid);
        }
        if closed {
            self.plan_shell_read(pid);
        }
        if let Life::Ends(code) = life {
            self.process_dies(pid, code);
        }
        Ok(())
    }

    /// A process ends at any point. Its written output can still be read.
    pub(super) fn process_dies(&mut self, pid: u32, code: i32) {
        let Some(process) = self
            .processes
            .get_mut(&pid)
            .filter(|process| !process.ended)
        else {
            return;
        };
        process.ended = true;
        process.stdout_closed = true;
        process.backlog.clear();
        process.stdin = None;
        let cut = !process.input.is_empty();
        self.say(|| format!("process {pid} ends with {code}"));
        self.summary.count("processes that ended");
        if cut {
            self.summary.count("processes that ended within a frame");
        }
        self.plan_shell_read(pid);
        let delay = about(&mut self.rng, Duration::from_millis(3));
        self.agenda.plan(delay, Event::Exits(pid, code));
    }

    pub(super) fn plan_read(&mut self, pid: u32, delay: Duration) {
        let Some(process) = self.processes.get_mut(&pid) else {
            return;
        };
        if !std::mem::replace(&mut process.planned.reads, true) {
            let delay = about(&mut self.rng, delay);
            self.agenda.plan(delay, Event::Reads(pid));
        }
    }

    fn plan_shell_read(&mut self, pid: u32) {
        let Some(process) = self.processes.get_mut(&pid) else {
            return;
        };
        if !std::mem::replace(&mut process.planned.shell_reads, true) {
            let delay = about(&mut self.rng, Duration::from_micros(300));
            self.agenda.plan(delay, Event::ShellReads(pid));
        }
    }

    /// Plans a further write of a process, because its pipe was read.
    pub(super) fn plan_write(&mut self, pid: u32) {
        self.speaks(pid, &[]);
    }
}

/// Formats a frame for people.
pub(super) fn show(bytes: &[u8]) -> String {
    use amber_proto::{Frame, Header};
    let Some(frame) = Frame::from_stream(bytes) else {
        return format!("{} bytes that are not a frame", bytes.len());
    };
    let Ok(header) = Header::parse(frame.header) else {
        return format!("{} bytes without a header", bytes.len());
    };
    let device = header.device().map(|device| match device {
        Device::MEDIATOR => "mediator".into(),
        device => device.to_string(),
    });
    let ids: Vec<i32> = header.client_ids().map(|id| id.0).collect();
    let said = messages::envelope(frame.message).unwrap_or_default();
    let kind: Option<MsgType> = said.kind();
    let (syn, ack) = (said.syn().map(|syn| syn.0), said.ack().map(|ack| ack.0));
    let token = messages::token(frame.message).map(|token| token.0);
    format!("{device:?} {ids:?} {kind:?} syn {syn:?} ack {ack:?} token {token:?}")
}
