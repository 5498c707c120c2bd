//! Clients that speak raw datagrams: attackers, and the innocent. IO.

use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use amber_harness::{PATIENCE, wait_for};
use amber_proto::mediator::{self, reply, request};
use amber_proto::{Device, Frame, MsgType};
use anyhow::{Context, bail};
use nix::sys::socket::{MsgFlags, recv};

use crate::net::Namespace;
use crate::site::Site;
use crate::wire::{self, FromMediator};

/// A client.
#[derive(Debug)]
pub struct Peer {
    socket: UdpSocket,
}

impl Peer {
    /// A client on the machine of the mediator, in its network.
    ///
    /// # Errors
    /// It gets no socket.
    pub fn local(site: &Site, network: Option<&Namespace>) -> anyhow::Result<Self> {
        let to = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), site.address().port());
        Self::at(network, Ipv4Addr::LOCALHOST.into(), to)
    }

    /// A client at an address of some network.
    ///
    /// # Errors
    /// It gets no socket.
    pub fn at(network: Option<&Namespace>, own: IpAddr, to: SocketAddr) -> anyhow::Result<Self> {
        let connect = || {
            let socket = UdpSocket::bind((own, 0))?;
            socket.connect(to)?;
            Ok(Self { socket })
        };
        match network {
            Some(network) => network.run(connect),
            None => connect(),
        }
    }

    /// Where it is.
    ///
    /// # Errors
    /// The system does not say.
    pub fn address(&self) -> anyhow::Result<SocketAddr> {
        Ok(self.socket.local_addr()?)
    }

    /// Sends a datagram; what the system drops is lost, as anywhere on the way.
    pub fn send(&self, datagram: &[u8]) {
        let _ = self.socket.send(datagram);
    }

    /// The next datagram, when it comes in time.
    pub fn receive(&self, time: Duration) -> Option<Vec<u8>> {
        let deadline = Instant::now() + time;
        let mut buffer = vec![0; 1 << 16];
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let left = left.max(Duration::from_micros(1));
            self.socket.set_read_timeout(Some(left)).ok()?;
            match self.socket.recv(&mut buffer) {
                Ok(length) => {
                    buffer.truncate(length);
                    return Some(buffer);
                }
                // An ICMP error about an earlier datagram is no end.
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => {}
                Err(_) if Instant::now() < deadline => {}
                Err(_) => return None,
            }
        }
    }

    /// A datagram that waits.
    pub fn receive_now(&self) -> Option<Vec<u8>> {
        let mut buffer = vec![0; 1 << 14];
        let flags = MsgFlags::MSG_DONTWAIT;
        let length = recv(self.socket.as_raw_fd(), &mut buffer, flags).ok()?;
        buffer.truncate(length);
        Some(buffer)
    }

    /// Asks the mediator itself, and proves its address when it is asked to.
    ///
    /// # Errors
    /// No reply comes within [`PATIENCE`].
    pub fn ask(&self, what: request::What) -> anyhow::Result<reply::What> {
        self.ask_for(what, PATIENCE)
    }

    /// The same with another limit.
    ///
    /// # Errors
    /// No reply comes in time.
    pub fn ask_for(&self, what: request::What, time: Duration) -> anyhow::Result<reply::What> {
        let number = fastrand::u32(1..);
        let question = wire::request(number, what);
        let deadline = Instant::now() + time;
        while Instant::now() < deadline {
            self.send(&question);
            let retry = deadline.min(Instant::now() + Duration::from_secs(2));
            while let Some(left) = retry.checked_duration_since(Instant::now()) {
                let Some(datagram) = self.receive(left) else {
                    break;
                };
                match wire::from_mediator(&datagram) {
                    FromMediator::Reply(ack, what) if ack == number => return Ok(*what),
                    FromMediator::Ping(pong) => self.send(&pong),
                    FromMediator::Reply(..) | FromMediator::Other => {}
                }
            }
        }
        bail!("the mediator did not reply within {time:?}")
    }

    /// All about a driver.
    ///
    /// # Errors
    /// The mediator does not say.
    pub fn describe(&self, device: Device) -> anyhow::Result<mediator::Driver> {
        match self.ask(request::What::DescribeDriver(named(device)))? {
            reply::What::Driver(driver) => Ok(driver),
            other => bail!("{device}: {other:?}"),
        }
    }

    /// Counters of the mediator.
    ///
    /// # Errors
    /// The mediator does not say.
    pub fn statistics(&self) -> anyhow::Result<mediator::Statistics> {
        match self.ask(request::What::GetStatistics(mediator::GetStatistics {}))? {
            reply::What::Statistics(statistics) => Ok(statistics),
            other => bail!("statistics: {other:?}"),
        }
    }

    /// What the mediator has dropped, by kind, without what is zero.
    ///
    /// # Errors
    /// The mediator does not say.
    pub fn dropped(&self) -> anyhow::Result<String> {
        let dropped = self.statistics()?.dropped;
        let dropped = dropped.iter().filter(|counter| counter.value > 0);
        let named: Vec<_> = dropped.map(|c| format!("{} {}", c.name, c.value)).collect();
        Ok(named.join(", "))
    }

    /// Starts, stops or restarts a driver.
    ///
    /// # Errors
    /// The mediator does not reply.
    pub fn change(
        &self,
        device: Device,
        action: mediator::change_driver::Action,
    ) -> anyhow::Result<reply::What> {
        self.ask(request::What::ChangeDriver(change(device, action)))
    }

    /// Takes all that waits without looking at it.
    pub fn drain(&self) {
        while self.receive_now().is_some() {}
    }

    /// Asks for a change, and does not wait for the reply.
    pub fn request_change(&self, device: Device, action: mediator::change_driver::Action) {
        let what = request::What::ChangeDriver(change(device, action));
        self.send(&wire::request(1, what));
    }

    /// Whether the mediator answers a PING in time.
    pub fn is_answered(&self, time: Duration) -> bool {
        self.drain();
        let ping = wire::to(Device::MEDIATOR, &wire::kind(MsgType::Ping));
        let pong = wire::to(Device::MEDIATOR, &wire::kind(MsgType::Pong));
        let deadline = Instant::now() + time;
        while Instant::now() < deadline {
            self.send(&ping);
            if self
                .receive(Duration::from_millis(200))
                .is_some_and(|answer| answer == pong)
            {
                return true;
            }
        }
        false
    }

    /// Waits until the driver of a device is up.
    ///
    /// # Errors
    /// It is not up within [`PATIENCE`], or the mediator does not reply.
    pub fn wait_until_up(&self, device: Device) -> anyhow::Result<()> {
        wait_for("the driver to be up", || {
            let state = self.describe(device)?.state();
            Ok((state == mediator::DriverState::Up).then_some(()))
        })
        .with_context(|| device.to_string())
    }

    /// Waits until a device answers anything.
    ///
    /// # Errors
    /// It does not.
    pub fn wait_for_answer(&self, device: Device) -> anyhow::Result<()> {
        wait_for("an answer", || {
            self.send(&wire::to(device, &wire::numbered(1, 0)));
            Ok(self.receive(Duration::from_millis(200)))
        })
        .map(drop)
    }

    /// Waits until a device echoes.
    ///
    /// # Errors
    /// It does not.
    pub fn wait_for_echo(&self, device: Device) -> anyhow::Result<()> {
        let question = wire::to(device, &wire::numbered(u32::MAX, 0));
        wait_for("an echo", || {
            self.send(&question);
            Ok(self
                .receive(Duration::from_millis(200))
                .filter(|echo| *echo == question))
        })
        .with_context(|| format!("{device} does not answer"))?;
        // Late echoes.
        while self.receive(Duration::from_millis(20)).is_some() {}
        Ok(())
    }
}

/// A device as requests name it.
pub fn named(device: Device) -> mediator::Device {
    mediator::Device {
        r#type: device.device_type.0,
        id: device.id.0,
    }
}

/// A change of a driver as requests name it.
pub fn change(device: Device, action: mediator::change_driver::Action) -> mediator::ChangeDriver {
    mediator::ChangeDriver {
        device: named(device),
        action: action.into(),
    }
}

/// An innocent client that asks a device at a fixed rate.
#[derive(Debug)]
pub struct Probe {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Measured>,
}

/// What an innocent client has met with.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// Requests.
    pub asked: usize,
    /// How long each answer took, in order of length.
    pub times: Vec<Duration>,
}

/// Answers that come later than this after the end are lost.
const LATE: Duration = Duration::from_secs(2);

impl Probe {
    /// Starts to ask, so many times a second, with so many bytes of padding.
    pub fn start(peer: Peer, device: Device, per_second: u32, padding: usize) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let thread = {
            let stop = stop.clone();
            thread::spawn(move || probe(&peer, device, per_second, padding, &stop))
        };
        Self { stop, thread }
    }

    /// Asks for so long.
    ///
    /// # Panics
    /// The probe did.
    pub fn run(peer: Peer, device: Device, per_second: u32, time: Duration) -> Measured {
        let probe = Self::start(peer, device, per_second, 32);
        thread::sleep(time);
        probe.stop()
    }

    /// Stops asking; [`Probe::stop`] has the result.
    pub fn finish(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Stops asking, waits for late answers, and says what was measured.
    ///
    /// # Panics
    /// The probe did.
    pub fn stop(self) -> Measured {
        self.finish();
        let joined = self.thread.join();
        joined.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

fn probe(
    peer: &Peer,
    device: Device,
    per_second: u32,
    padding: usize,
    stop: &AtomicBool,
) -> Measured {
    let pause = Duration::from_secs(1) / per_second;
    let mut asked: Vec<Instant> = Vec::new();
    let mut times: Vec<Option<Duration>> = Vec::new();
    let mut due = Instant::now();
    let mut end = None;
    loop {
        let now = Instant::now();
        if end.is_none() && stop.load(Ordering::Relaxed) {
            end = Some(now + LATE);
        }
        let until = match end {
            Some(end) if now >= end || times.iter().all(Option::is_some) => break,
            Some(end) => end,
            None if now >= due => {
                let number = asked.len() as u32;
                peer.send(&wire::to(device, &wire::numbered(number, padding)));
                asked.push(now);
                times.push(None);
                // After a pause of the machine it does not catch up by a long burst.
                due = (due + pause).max(now.checked_sub(10 * pause).unwrap_or(now));
                continue;
            }
            None => due,
        };
        let Some(datagram) = peer.receive(until.saturating_duration_since(now)) else {
            continue;
        };
        let number = Frame::from_datagram(&datagram)
            .ok()
            .and_then(|frame| wire::number(frame.message))
            .map(|number| number as usize);
        if let Some(number) = number.filter(|number| *number < asked.len()) {
            times[number].get_or_insert(asked[number].elapsed());
        }
    }
    let mut times: Vec<Duration> = times.into_iter().flatten().collect();
    times.sort_unstable();
    Measured {
        asked: asked.len(),
        times,
    }
}

impl Measured {
    /// The share of requests without an answer, in percent.
    pub fn lost_percent(&self) -> f64 {
        let lost = self.asked - self.times.len();
        100.0 * lost as f64 / self.asked.max(1) as f64
    }

    /// The time that half of the answers keep.
    pub fn median(&self) -> Duration {
        self.time_at(self.asked / 2)
    }

    /// The time that 99 of 100 answers keep.
    pub fn most(&self) -> Duration {
        self.time_at(self.asked * 99 / 100)
    }

    /// The longest time that an answer took.
    pub fn worst(&self) -> Duration {
        self.time_at(self.asked.saturating_sub(1))
    }

    /// The time at a place in the order of length. What was lost comes last.
    fn time_at(&self, place: usize) -> Duration {
        self.times.get(place).copied().unwrap_or(LATE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_lost_counts_as_late() {
        let times = [1, 2, 3, 4, 5].map(Duration::from_millis).to_vec();
        let measured = Measured {
            asked: 5,
            times: times.clone(),
        };
        assert_eq!(measured.lost_percent(), 0.0);
        assert_eq!(measured.median(), Duration::from_millis(3));
        assert_eq!(measured.worst(), Duration::from_millis(5));
        let measured = Measured { asked: 20, times };
        assert_eq!(measured.lost_percent(), 75.0);
        assert_eq!(measured.median(), LATE);
        assert_eq!(measured.worst(), LATE);
        assert_eq!(Measured::default().worst(), LATE);
    }
}
