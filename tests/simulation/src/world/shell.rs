//! The core, used as in `mediator/src/shell.rs`. PURE.

use std::net::SocketAddr;
use std::time::{Duration, Instant, SystemTime};

use amber_core::address::{ClientAddress, DriverKey};
use amber_core::counters::{Count, DropReason};
use amber_core::limits;
use amber_core::router::Unreachable;
use amber_core::supervise::{Event as Happened, Exit, ProcessAction};
use amber_core::{Core, ShellTask, Ticket};
use amber_proto::{DeviceMessage, Frame, MsgType};

use super::peers::show;
use super::{Event, World};
use crate::invariant::{Check, Invariant, broken, holds};
use crate::messages;
use crate::model::{Call, Cause, Model, Started};
use crate::process::{Process, Vices};
use crate::programs::Program;
use crate::weather::{about, happens};

/// The same as in `shell/child.rs`.
const AFTER_EXIT: Duration = Duration::from_secs(1);

/// After this time, clients that are gone must be forgotten.
const LONG: Duration = Duration::from_secs(20);

impl World {
    pub(super) fn mediator_starts(&mut self) -> Check {
        self.generation += 1;
        self.config = self.setup.usual();
        self.model = Model::new(&self.config);
        let (now, seed) = (self.agenda.now(), self.rng.u64(..));
        let mut core = Core::new(now, &self.config, seed, || SystemTime::UNIX_EPOCH);
        core.set_listening(&[([0, 0, 0, 0], 26_233).into()]);
        self.core = Some(core);
        self.say(|| "the mediator starts".into());
        self.summary.count("mediators started");
        self.call(Cause::Other, |core| {
            core.start(now, vec!["0.0.0.0:26233".into()])
        })?;
        self.settle()
    }

    /// Calls the core and checks the result.
    pub(super) fn call<T>(
        &mut self,
        cause: Cause<'_>,
        tell: impl FnOnce(&mut Core) -> T,
    ) -> Result<Option<T>, crate::Broken> {
        let now = self.agenda.now();
        let Some(core) = &mut self.core else {
            return Ok(None);
        };
        let before = core.router().totals();
        let told = tell(core);
        core.send_traced(now);
        let sent: Vec<(SocketAddr, Vec<u8>)> = core.transmit(|outbox, _| {
            let datagrams = outbox.datagrams();
            datagrams
                .map(|(to, bytes)| (to.address, bytes.to_vec()))
                .collect()
        });
        let call = Call {
            now,
            cause,
            before: &before,
            core,
            sent: &sent,
        };
        self.model.after(&call)?;
        for (to, bytes) in sent {
            self.send(to, bytes);
        }
        Ok(Some(told))
    }

    /// Sends a datagram, like the sender.
    fn send(&mut self, to: SocketAddr, bytes: Vec<u8>) {
        self.summary.mix(&bytes);
        self.say(|| format!("mediator sends to {to}: {}", show(&bytes)));
        let full = happens(&mut self.rng, self.weather.socket_full);
        let Some(core) = &mut self.core else {
            return;
        };
        if full {
            core.counters_mut().drop(DropReason::SendBufferFull);
        } else {
            core.counters_mut().count(Count::DatagramsSent);
            self.send_to_client(to, bytes);
        }
    }

    /// Carries out all decisions of the core.
    pub(super) fn settle(&mut self) -> Check {
        for turns in 0.. {
            holds(Invariant::TimersAdvance, turns < 10_000, || {
                "it never becomes idle".into()
            })?;
            let Some(core) = &mut self.core else {
                return Ok(());
            };
            if let Some(key) = core.poll_queue() {
                self.write(key);
            } else if let Some((key, action)) = core.poll_action() {
                self.act(key, action)?;
            } else if let Some(order) = core.poll_task() {
                self.carry_out(order)?;
            } else {
                break;
            }
        }
        let Some(core) = &mut self.core else {
            return Ok(());
        };
        core.poll_timers_changed();
        self.model.settled(core)
    }

    pub(super) fn datagram(&mut self, from: SocketAddr, bytes: &[u8]) -> Check {
        let now = self.agenda.now();
        self.say(|| format!("mediator receives from {from}: {}", show(bytes)));
        let address = ClientAddress {
            socket: 0,
            address: from,
        };
        self.call(Cause::Datagram(from, bytes), |core| {
            core.datagram(now, address, bytes)
        })?;
        self.settle()
    }

    pub(super) fn unreachable(&mut self, of: u32, at: SocketAddr, how: Unreachable) -> Check {
        if of != self.generation {
            return Ok(());
        }
        let now = self.agenda.now();
        self.say(|| format!("mediator learns that {at} is {how:?}"));
        self.summary.count("addresses reported as unreachable");
        let address = ClientAddress {
            socket: 0,
            address: at,
        };
        self.call(Cause::Unreachable(at, how), |core| {
            core.unreachable(now, address, how)
        })?;
        self.settle()
    }

    pub(super) fn core_timeout(&mut self) -> Check {
        let now = self.agenda.now();
        self.say(|| "the core has a timeout".into());
        self.call(Cause::Other, |core| core.timeout(now))?;
        self.settle()?;
        let next = self.core.as_ref().and_then(Core::next_timeout);
        holds(
            Invariant::TimersAdvance,
            next.is_none_or(|next| next > now),
            || "the core has a timeout that is due again at once".into(),
        )
    }

    /// Reports an event of a driver to the core.
    pub(super) fn driver_event(&mut self, key: DriverKey, event: Happened) -> Check {
        let now = self.agenda.now();
        self.call(Cause::Other, |core| core.driver_event(now, key, event))?;
        self.settle()
    }

    /// Writes queued frames to a driver.
    fn write(&mut self, key: DriverKey) {
        let now = self.agenda.now();
        let pid = self.children.get(&key).copied();
        let Some(queue) = self.core.as_mut().and_then(|core| core.queue_mut(key)) else {
            return;
        };
        let process = pid.and_then(|pid| self.processes.get_mut(&pid));
        let Some(process) = process.filter(|process| !process.eof) else {
            return queue.clear();
        };
        let mut frames = 0;
        while !queue.is_empty() && !queue.is_blocked() {
            let Some(stdin) = &mut process.stdin else {
                queue.clear();
                break;
            };
            let (_, waiting) = queue.waiting();
            queue.offer(process.gate.room(waiting, || now, || stdin.len()));
            let chunk = queue.chunk();
            if chunk.is_empty() {
                self.summary.count("frames held back");
                queue.block();
                break;
            }
            // A pipe may take less than its free space.
            let most = match self.rng.u8(0..8) {
                0 => self.rng.usize(0..=chunk.len()),
                _ => chunk.len(),
            };
            let taken = stdin.write(&chunk[..most]);
            process.planned.full |= taken < chunk.len();
            if taken < chunk.len() {
                self.summary.count("partial writes to a pipe");
            }
            let written = chunk[..taken].to_vec();
            process.gate.wrote(taken);
            frames += process.take_in(&written);
            queue.wrote(taken);
        }
        let (blocked, pid) = (queue.is_blocked(), process.pid);
        if blocked && let Some(at) = process.gate.look_at() {
            process.planned.look = Some(at);
            let after = at.saturating_duration_since(now);
            self.agenda.plan(after, Event::Look(pid, at));
        }
        self.model.written(frames);
        self.summary.count_many("frames written to drivers", frames);
        if blocked {
            self.summary.count("pipes that stalled");
            self.plan_writable(pid);
        }
        let slow = self
            .processes
            .get(&pid)
            .is_some_and(|process| process.vices.slow);
        self.plan_read(pid, Duration::from_micros(if slow { 300_000 } else { 400 }));
    }

    /// Plans the notification that a pipe has free space, if the mediator waits for it.
    pub(super) fn plan_writable(&mut self, pid: u32) {
        let Some(process) = self.processes.get_mut(&pid) else {
            return;
        };
        let has_room = process.stdin.as_ref().is_none_or(|stdin| stdin.has_room());
        if process.planned.full
            && has_room
            && !std::mem::replace(&mut process.planned.writable, true)
        {
            let delay = about(&mut self.rng, Duration::from_micros(200));
            self.agenda.plan(delay, Event::Writable(pid));
        }
    }

    pub(super) fn writable(&mut self, pid: u32) -> Check {
        let Some(process) = self.processes.get_mut(&pid) else {
            return Ok(());
        };
        process.planned.writable = false;
        process.planned.full = false;
        self.write_on(pid);
        Ok(())
    }

    /// Checks whether a process has read something; only the check planned last counts.
    pub(super) fn look(&mut self, pid: u32, at: Instant) -> Check {
        let process = self.processes.get_mut(&pid);
        if process.is_some_and(|process| process.planned.look.take_if(|look| *look == at).is_some())
        {
            self.write_on(pid);
        }
        Ok(())
    }

    /// Continues to write to a process, which may have read something.
    fn write_on(&mut self, pid: u32) {
        let Some(process) = self.processes.get(&pid) else {
            return;
        };
        let (key, eof) = (process.key, process.eof);
        let queue = self.core.as_mut().and_then(|core| core.queue_mut(key));
        if let Some(queue) = queue.filter(|queue| queue.is_blocked() && !eof) {
            queue.writable();
            self.write(key);
        }
    }

    fn act(&mut self, key: DriverKey, action: ProcessAction) -> Check {
        self.say(|| format!("mediator does {action:?} to {key:?}"));
        let pid = self.children.get(&key).copied();
        let process = pid.and_then(|pid| self.processes.get_mut(&pid));
        match (action, process) {
            (ProcessAction::Spawn, _) => self.spawn(key),
            (ProcessAction::CloseInput, Some(process)) => {
                process.eof = true;
                let pid = process.pid;
                self.plan_read(pid, Duration::from_millis(5));
                Ok(())
            }
            (ProcessAction::Terminate, Some(process)) => {
                let (pid, deaf) = (process.pid, process.vices.ignores_term);
                if !deaf {
                    let delay = about(&mut self.rng, Duration::from_millis(4));
                    self.agenda.plan(delay, Event::Dies(pid, 15));
                }
                Ok(())
            }
            (ProcessAction::Kill, Some(process)) => {
                let pid = process.pid;
                self.summary.count("processes that had to be killed");
                self.agenda
                    .plan(Duration::from_millis(1), Event::Dies(pid, 9));
                Ok(())
            }
            (ProcessAction::CloseInput | ProcessAction::Terminate | ProcessAction::Kill, None) => {
                Ok(())
            }
        }
    }

    fn spawn(&mut self, key: DriverKey) -> Check {
        let now = self.agenda.now();
        let config = self
            .core
            .as_mut()
            .and_then(|core| core.driver_config(key).cloned());
        let Some(config) = config else {
            return Ok(());
        };
        let stopping = self.core.as_ref().is_some_and(Core::is_stopping);
        let same = |process: &&Process| {
            process
                .devices
                .iter()
                .any(|device| config.devices.contains(device))
        };
        let other = self
            .processes
            .values()
            .find(same)
            .map(|process| process.pid);
        holds(Invariant::OneProcess, other.is_none() && !stopping, || {
            format!(
                "a process for {:?} in addition to {other:?}, stopping {stopping}",
                config.devices
            )
        })?;
        if self.spawns_fail && self.rng.u8(0..3) > 0 {
            self.summary.count("processes that could not be started");
            let (error, hint) = ("no such file".to_owned(), "check the path".to_owned());
            self.call(Cause::Other, |core| {
                core.spawn_failed(now, key, error, hint)
            })?;
            return Ok(());
        }
        self.pids += 1;
        let pid = self.pids;
        let program = Program::draw(&mut self.rng, now, pid, &config.devices, self.calm);
        let vices = Vices::draw(&mut self.rng, &self.weather, now);
        self.say(|| format!("process {pid} for {:?}, {vices:?}", config.devices));
        let devices = config.devices;
        let process = Process::new(pid, key, devices.clone(), program, vices, &mut self.rng);
        self.processes.insert(pid, process);
        self.children.insert(key, pid);
        self.summary.count("processes started");
        self.call(Cause::Other, |core| {
            core.driver_event(now, key, Happened::Spawned { pid });
        })?;
        let Some(core) = &self.core else {
            return Ok(());
        };
        self.model.started(Started { pid, key, devices }, core)
    }

    fn carry_out(&mut self, order: ShellTask) -> Check {
        match order {
            ShellTask::Reload(ticket) => {
                let delay = about(&mut self.rng, Duration::from_millis(30));
                let reloaded = Event::Reloaded(self.generation, Some(ticket));
                self.agenda.plan(delay, reloaded);
                Ok(())
            }
            ShellTask::SetLogLevel(ticket, _) => self.answer(ticket, Ok("log level".into())),
            ShellTask::MeasureProcesses(ticket, processes, total) => {
                self.call(Cause::Other, |core| {
                    core.answer_processes(ticket, processes, total);
                })?;
                Ok(())
            }
            ShellTask::OpenFeed(ticket, _) => {
                let refused = ("no recorder can connect here".to_owned(), None);
                self.call(Cause::Other, |core| core.answer_feed(ticket, Err(refused)))?;
                Ok(())
            }
            ShellTask::Trace(ticket, wanted) => {
                let now = self.agenda.now();
                self.call(Cause::Other, |core| {
                    core.begin_trace(now, ticket, &wanted, true)
                })?;
                Ok(())
            }
        }
    }

    pub(super) fn answer(
        &mut self,
        ticket: Ticket,
        outcome: Result<String, (String, Option<String>)>,
    ) -> Check {
        self.call(Cause::Other, |core| core.answer(ticket, outcome))?;
        Ok(())
    }

    /// The configuration was read again.
    pub(super) fn reloaded(&mut self, generation: u32, ticket: Option<Ticket>) -> Check {
        let stopping = self.core.as_ref().is_none_or(Core::is_stopping);
        if generation != self.generation || stopping {
            return Ok(());
        }
        let now = self.agenda.now();
        self.config = match self.calm || self.rng.u8(0..3) == 0 {
            true => self.setup.usual(),
            false => self.setup.other(&mut self.rng),
        };
        self.summary.count("reloads");
        let config = self.config.clone();
        self.say(|| {
            format!(
                "reload: {} drivers, {:?}",
                config.drivers.len(),
                config.access
            )
        });
        let done = self.call(Cause::Reload(&config), |core| core.apply(now, &config))?;
        if let (Some(ticket), Some(done)) = (ticket, done) {
            self.answer(ticket, Ok(done))?;
        }
        self.settle()
    }

    /// Reads the output of a process.
    pub(super) fn shell_reads(&mut self, pid: u32) -> Check {
        let now = self.agenda.now();
        let Some(process) = self.processes.get_mut(&pid) else {
            return Ok(());
        };
        process.planned.shell_reads = false;
        if process.ignored {
            return Ok(());
        }
        let most = match self.rng.u8(0..3) {
            0 => self.rng.usize(1..30),
            _ => limits::READ_BYTES,
        };
        let bytes = process.stdout.read(most);
        if bytes.is_empty() {
            if process.stdout_closed && !std::mem::replace(&mut process.planned.closed, true) {
                self.agenda.plan(AFTER_EXIT, Event::OutputClosed(pid));
            }
            return Ok(());
        }
        process.output.extend_from_slice(&bytes);
        self.hand_over(pid)?;
        self.settle()?;
        if let Some(process) = self.processes.get_mut(&pid) {
            process.partial_since = (!process.output.is_empty()).then_some(now);
            if !process.output.is_empty() {
                let stalled = Event::Stalled(pid, now);
                self.agenda.plan(limits::PARTIAL_FRAME, stalled);
            }
        }
        self.plan_write(pid);
        let more = Event::ShellReads(pid);
        if let Some(process) = self.processes.get_mut(&pid) {
            process.planned.shell_reads = true;
            self.agenda
                .plan(about(&mut self.rng, Duration::from_micros(100)), more);
        }
        Ok(())
    }

    /// Passes whole frames to the core.
    fn hand_over(&mut self, pid: u32) -> Check {
        let now = self.agenda.now();
        let Some(process) = self.processes.get_mut(&pid) else {
            return Ok(());
        };
        let (key, output) = (process.key, std::mem::take(&mut process.output));
        let (mut start, mut sane) = (0, true);
        while let Some(frame) = Frame::from_stream(&output[start..]) {
            self.summary.count("frames of drivers");
            self.say(|| format!("process {pid} writes {}", show(&output[start..])));
            self.note_pong(pid, frame);
            if amber_proto::Header::parse(frame.header).is_err() {
                sane = false;
                self.call(Cause::Other, |core| core.driver_frame(now, key, frame))?;
                break;
            }
            let cause = Cause::Frame(pid, frame.header, frame.message);
            let nobody = self.named_nobody();
            let told = self.call(cause, |core| {
                let sane = core.driver_frame_at(now, key, frame, Some(start));
                if core.outbox().borrows() {
                    core.lend(output.clone());
                }
                sane
            })?;
            let long_ago = self.quiet.is_some_and(|quiet| now - quiet > LONG);
            let is_sdk = self.processes.get(&pid).is_some_and(Process::has_the_sdk);
            let knows = !long_ago || self.crowded || !is_sdk || self.named_nobody() == nobody;
            holds(Invariant::DriversForget, knows, || {
                format!(
                    "process {pid} writes {} to no client",
                    show(&output[start..])
                )
            })?;
            if told != Some(true) {
                return Err(broken(Invariant::FramesWhole, "a valid frame is rejected"));
            }
            start += frame.wire_len();
        }
        if start > 0
            && let Some(process) = self.processes.get_mut(&pid)
        {
            process.gate.said();
            if process.gate.is_about_to_close()
                && let Some(stdin) = &process.stdin
                && let Some(queue) = self.core.as_mut().and_then(|core| core.queue_mut(key))
            {
                queue.offer(process.gate.room(usize::MAX, || now, || stdin.len()));
            }
            self.write_on(pid);
        }
        if sane {
            let rest = &output[start..];
            let prefix = self.call(Cause::Other, |core| core.driver_prefix(now, key, rest))?;
            sane = prefix == Some(true);
        }
        if let Some(process) = self.processes.get_mut(&pid) {
            process.output = output[start..].to_vec();
            process.ignored = !sane;
        }
        if !sane {
            self.summary.count("processes that wrote invalid data");
        }
        Ok(())
    }

    fn named_nobody(&self) -> u64 {
        let core = self.core.as_ref();
        core.map_or(0, |core| {
            core.router().counters.dropped(DropReason::UnknownClient)
        })
    }

    fn note_pong(&mut self, pid: u32, frame: Frame<'_>) {
        let said = messages::envelope(frame.message).and_then(|said| said.kind());
        if frame.header.is_empty()
            && said == Some(MsgType::Pong)
            && let Some(process) = self.processes.get_mut(&pid)
        {
            process.has_ponged = true;
        }
    }

    pub(super) fn stalled(&mut self, pid: u32, since: Instant) -> Check {
        let now = self.agenda.now();
        let Some(process) = self.processes.get_mut(&pid) else {
            return Ok(());
        };
        if process.partial_since != Some(since) || process.ignored || process.ended {
            return Ok(());
        }
        process.ignored = true;
        self.summary.count("processes that stopped within a frame");
        let (key, output) = (process.key, process.output.clone());
        self.call(Cause::Other, |core| core.driver_stalled(now, key, &output))?;
        self.settle()
    }

    pub(super) fn output_closed(&mut self, pid: u32) -> Check {
        let Some(process) = self.processes.get(&pid) else {
            return Ok(());
        };
        self.summary.count("processes that closed their stdout");
        self.driver_event(process.key, Happened::OutputClosed)
    }

    /// The end of a process is noticed after all its output has been read.
    pub(super) fn exits(&mut self, pid: u32, code: i32) -> Check {
        let now = self.agenda.now();
        let Some(process) = self.processes.get_mut(&pid) else {
            return Ok(());
        };
        if !process.ignored {
            let rest = process.stdout.read(usize::MAX);
            process.output.extend_from_slice(&rest);
            self.hand_over(pid)?;
            self.settle()?;
        }
        let Some(process) = self.processes.remove(&pid) else {
            return Ok(());
        };
        let key = process.key;
        self.children.remove(&key);
        let exit = Exit {
            text: format!("exited with code {code}"),
            success: code == 0,
        };
        self.call(Cause::Other, |core| core.exited(now, key, exit))?;
        self.model.ended(pid);
        self.settle()?;
        self.look_whether_it_has_ended();
        Ok(())
    }
}
