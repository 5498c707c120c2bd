//! Injects faults. IO.
//!
//! Floods are as fast as the mediator accepts them, and no faster: a PING follows every few
//! datagrams, and the next ones wait for its reply. Faster senders fill the socket buffer, and the
//! system then drops datagrams of all clients before they reach the mediator. The promises do not
//! cover that, so it is avoided here. If the system drops datagrams anyway,
//! `amber_harness::usage::dropped_by_system` counts them.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use amber_client::blocking::Client;
use amber_proto::{ClientId, Device, Frame, HeaderBytes, MsgType};
use anyhow::Context;
use fastrand::Rng;
use nix::sys::signal::Signal;

use crate::clients::echo::frame;
use crate::fleet::{BABBLER, Changing, DEAF, DUMMIES, FRAMES, INVALID_FRAME, NOBODY, TALK};
use crate::fleet::{LASER, VICTIM_ECHOES};
use crate::site::Site;
use crate::trouble::Trouble;

/// The number of datagrams sent without a check: far fewer than any socket buffer holds.
const BURST: u32 = 32;

/// Both threads write the same configuration.
static CONFIGURATION: Mutex<()> = Mutex::new(());

/// A source of faults.
pub struct Mischief<'a> {
    site: &'a Site,
    rng: Rng,
    control: Client,
    brake: Brake,
    /// Receives the babbler's frames; never read.
    _sink: UdpSocket,
}

impl<'a> Mischief<'a> {
    /// Needs a mediator with the drivers of [`crate::fleet::chaos`].
    ///
    /// # Errors
    /// The mediator does not answer.
    pub fn new(site: &'a Site, seed: u64) -> anyhow::Result<Self> {
        let control = site.client()?;
        let sink = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        sink.connect(site.address)?;
        let address = sink.local_addr()?.to_string();
        let id = amber_harness::wait_for("the sink to be known", || {
            // The other thread may have stopped the driver, or evicted new clients.
            sink.send(&frame(BABBLER, &padded(32)))?;
            let clients = control.mediator().clients()?;
            let known = clients.iter().find(|client| client.address == address);
            Ok(known.map(|client| client.id))
        })?;
        fs::write(site.folder().join(FRAMES), frames_for(ClientId(id)))?;
        Ok(Self {
            site,
            rng: Rng::with_seed(seed),
            control,
            brake: Brake::new(site.address)?,
            _sink: sink,
        })
    }

    /// Picks a fault.
    pub fn pick(&mut self) -> Trouble {
        Trouble::any(&mut self.rng)
    }

    /// A pause before the next fault.
    pub fn pause(&mut self) -> Duration {
        Duration::from_millis(self.rng.u64(..100))
    }

    /// Injects a fault, and repairs what does not recover by itself.
    ///
    /// # Errors
    /// The fault cannot be injected: the mediator refuses or does not answer.
    pub fn make(&mut self, trouble: Trouble) -> anyhow::Result<()> {
        let mediator = self.control.mediator();
        match trouble {
            Trouble::Kill(device) => {
                if let Some(pid) = mediator.driver(device)?.pid {
                    self.site.signal(pid, Signal::SIGKILL);
                }
            }
            Trouble::Freeze(device, moment) => self.freeze(device, moment)?,
            Trouble::Flood(device, count) => {
                let frame = frame(device, &padded(64));
                self.flood(count, |_| frame.clone())?;
            }
            Trouble::FillPipe(count) => {
                let frame = frame(DEAF, &padded(1000));
                self.flood(count, |_| frame.clone())?;
            }
            Trouble::Unplug(moment) => {
                self.site.amber(&["sim", "fault", "unplug", "hokuyo"])?;
                thread::sleep(moment);
                self.site.amber(&["sim", "fault", "replug", "hokuyo"])?;
            }
            Trouble::Talk(moment) => {
                let talk = self.site.folder().join(TALK);
                fs::write(&talk, "")?;
                thread::sleep(moment);
                // The other thread may have removed it already.
                let _ = fs::remove_file(&talk);
            }
            Trouble::InvalidFrame => fs::write(self.site.folder().join(INVALID_FRAME), "")?,
            Trouble::Garbage(count) => self.flood(count, garbage)?,
            Trouble::MadeUpAddresses(count) => self.make_up_addresses(count)?,
            Trouble::Vanish(count) => self.vanish(count)?,
            Trouble::ComeAndGo(count) => self.come_and_go(count)?,
            Trouble::Restart(device) => {
                mediator.restart(device)?;
            }
            Trouble::Stop(device, moment) => {
                mediator.stop(device)?;
                thread::sleep(moment);
                mediator.start(device)?;
            }
            Trouble::Reload(changing) => self.reload(changing)?,
            Trouble::BadReload => self.bad_reload()?,
        }
        Ok(())
    }

    fn freeze(&mut self, device: Device, moment: Duration) -> anyhow::Result<()> {
        let pid = self.control.mediator().driver(device)?.pid;
        let Some(pid) = pid.filter(|pid| self.site.signal(*pid, Signal::SIGSTOP)) else {
            return Ok(());
        };
        let end = Instant::now() + moment;
        let socket = self.socket()?;
        let long = frame(device, &padded_as(MsgType::Ping, 1000));
        let mut flooded = Ok(());
        while Instant::now() < end && flooded.is_ok() {
            // If it lasts, this exceeds the capacity of its pipe and its queue.
            flooded = send(&socket, BURST, |_| long.clone());
            self.brake.wait();
            thread::sleep(Duration::from_millis(20));
        }
        self.site.signal(pid, Signal::SIGCONT);
        flooded
    }

    fn flood(
        &mut self,
        count: u32,
        mut make: impl FnMut(&mut Rng) -> Vec<u8>,
    ) -> anyhow::Result<()> {
        let socket = self.socket()?;
        for _ in 0..count.div_ceil(BURST) {
            send(&socket, BURST, |_| make(&mut self.rng))?;
            self.brake.wait();
        }
        Ok(())
    }

    fn make_up_addresses(&mut self, count: u32) -> anyhow::Result<()> {
        for i in 0..count {
            // All of 127.0.0.0/8 is this machine.
            let own = Ipv4Addr::new(127, self.rng.u8(1..), self.rng.u8(..), 1);
            let socket = UdpSocket::bind((own, 0))?;
            let to = match self.rng.bool() {
                true => frame(NOBODY, &padded(32)),
                false => frame(Device::MEDIATOR, &kind(MsgType::Ping)),
            };
            socket.send_to(&to, self.site.address)?;
            if i % BURST == 0 {
                self.brake.wait();
            }
        }
        Ok(())
    }

    fn vanish(&mut self, count: u32) -> anyhow::Result<()> {
        for i in 0..count {
            let socket = self.socket()?;
            socket.send(&frame(Device::MEDIATOR, &kind(MsgType::Ping)))?;
            socket.send(&frame(DUMMIES[1], &kind(MsgType::Subscribe)))?;
            for device in [VICTIM_ECHOES[0], DEAF, LASER] {
                let _ = socket.send(&frame(device, &padded(64)));
            }
            if i % (BURST / 4) == 0 {
                self.brake.wait();
            }
        }
        Ok(())
    }

    fn come_and_go(&mut self, count: u32) -> anyhow::Result<()> {
        for _ in 0..count {
            let client = Client::connect(self.site.address)?;
            let client = client.with_deadline(Duration::from_millis(200));
            // The driver is a victim, so a missing reply is not an error.
            let _ = client.dummy(DUMMIES[1].id.0).status();
            let _ = client.hokuyo(0).scans().map(drop);
            client.close();
        }
        Ok(())
    }

    /// Reloads the configuration with this variant.
    ///
    /// # Errors
    /// The mediator refuses.
    pub fn reload(&self, changing: Changing) -> anyhow::Result<()> {
        let _alone = CONFIGURATION.lock().unwrap_or_else(PoisonError::into_inner);
        self.site.configure(changing)?;
        self.control.mediator().reload()?;
        Ok(())
    }

    fn bad_reload(&mut self) -> anyhow::Result<()> {
        let _alone = CONFIGURATION.lock().unwrap_or_else(PoisonError::into_inner);
        let words: String = (0..20).map(|_| self.rng.alphanumeric()).collect();
        self.site.configure_as(&words)?;
        let refused = self.control.mediator().reload().err();
        let refused = refused.context("the mediator accepted an invalid configuration")?;
        let is_refusal = matches!(refused, amber_client::Error::Refused { .. });
        anyhow::ensure!(is_refusal, "{refused}");
        Ok(())
    }

    fn socket(&self) -> anyhow::Result<UdpSocket> {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        socket.connect(self.site.address)?;
        Ok(socket)
    }
}

fn send(
    socket: &UdpSocket,
    count: u32,
    mut make: impl FnMut(u32) -> Vec<u8>,
) -> anyhow::Result<()> {
    for i in 0..count {
        // The mediator's port is open, so an error belongs to another datagram.
        while socket.send(&make(i)).is_err() {}
    }
    // Replies are not needed, but the buffer must be emptied.
    socket.set_nonblocking(true)?;
    while socket.recv(&mut [0; 16]).is_ok() {}
    socket.set_nonblocking(false)?;
    Ok(())
}

/// Waits until the mediator has processed everything sent before.
struct Brake(UdpSocket);

impl Brake {
    fn new(mediator: SocketAddr) -> anyhow::Result<Self> {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        socket.connect(mediator)?;
        socket.set_read_timeout(Some(Duration::from_millis(500)))?;
        Ok(Self(socket))
    }

    fn wait(&self) {
        // A lost reply only costs time; a late one only lets a few more datagrams through.
        let _ = (self.0).send(&frame(Device::MEDIATOR, &kind(MsgType::Ping)));
        let _ = self.0.recv(&mut [0; 64]);
    }
}

/// An invalid or almost valid datagram.
fn garbage(rng: &mut Rng) -> Vec<u8> {
    let device = VICTIM_ECHOES[rng.usize(..VICTIM_ECHOES.len())];
    match rng.u8(..4) {
        0 => {
            let mut noise = vec![0; rng.usize(..2000)];
            rng.fill(&mut noise);
            noise
        }
        1 => vec![rng.u8(..); 65_507],
        2 => {
            let mut cut = frame(device, &padded(100));
            cut.truncate(rng.usize(..cut.len()));
            cut
        }
        // Wrong lengths, and headers with other contents.
        _ => {
            let mut changed = frame(device, &padded(100));
            for _ in 0..rng.usize(1..4) {
                changed[rng.usize(..12)] = rng.u8(..);
            }
            changed
        }
    }
}

/// A `DriverMsg` of about this size that no driver understands.
fn padded(bytes: usize) -> Vec<u8> {
    padded_as(MsgType::Data, bytes)
}

fn padded_as(kind: MsgType, bytes: usize) -> Vec<u8> {
    // The type; field 179 holds the rest.
    let mut message = vec![0x10, kind as u8, 0x9a, 0x0b];
    message.push(0x80 | (bytes & 0x7f) as u8);
    message.push((bytes >> 7) as u8);
    message.resize(message.len() + bytes, 0);
    message
}

fn kind(kind: MsgType) -> Vec<u8> {
    vec![0x10, kind as u8]
}

/// The output of the babbler: frames for this client, and for one that does not exist.
fn frames_for(client: ClientId) -> Vec<u8> {
    let mut bytes = Vec::new();
    while bytes.len() < 60_000 {
        for id in [client, ClientId(i32::MAX)] {
            let header = HeaderBytes::new(None, Some(id));
            let message = padded(bytes.len() % 500);
            let frame = Frame {
                header: header.as_slice(),
                message: &message,
            };
            frame
                .encode(&mut bytes)
                .unwrap_or_else(|error| unreachable!("short: {error}"));
        }
    }
    bytes
}
