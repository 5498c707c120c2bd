//! Network namespaces: a robot and its neighbours on one machine. IO.
//!
//! ```text
//!   robot                                         neighbour
//!   lo      127.0.0.1, 10.79.0.1, fd79::1
//!   robot0  10.77.0.1, fd77::1  ---- veth ----  peer0  10.77.0.2, fd77::2
//!
//!   robot1  10.78.0.1, fd78::1  ---- veth ----  peer1  10.78.0.2, fd78::2
//!                                                 far
//! ```
//!
//! The namespaces have no names: the system removes them when their last process
//! and the last descriptor of this program are closed, however this program ends.

use std::fs::{self, File};
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread;

use anyhow::{Context, bail, ensure};
use nix::ifaddrs::getifaddrs;
use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::socket::{AddressFamily, LinkAddr, MsgFlags, SockFlag, SockType, sendto, socket};

use crate::packet::{self, Mac};

/// A network of its own.
#[derive(Debug)]
pub struct Namespace(File);

impl Namespace {
    /// An empty network, with loopback up.
    ///
    /// # Errors
    /// The system does not permit it.
    pub fn new() -> anyhow::Result<Self> {
        let made = thread::spawn(|| {
            unshare(CloneFlags::CLONE_NEWNET)?;
            anyhow::Ok(File::open("/proc/thread-self/ns/net")?)
        });
        let made = made
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let namespace = Self(made.context("cannot make a network namespace")?);
        namespace.ip("link set lo up")?;
        Ok(namespace)
    }

    /// Does something inside. Sockets and processes that are made there stay there.
    ///
    /// # Errors
    /// Those of the closure.
    pub fn run<T: Send>(
        &self,
        inside: impl FnOnce() -> anyhow::Result<T> + Send,
    ) -> anyhow::Result<T> {
        let enter_and_run = || {
            setns(&self.0, CloneFlags::CLONE_NEWNET).context("cannot enter a network namespace")?;
            inside()
        };
        thread::scope(|scope| {
            let result = scope.spawn(enter_and_run).join();
            result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Runs `ip` with these words inside.
    ///
    /// # Errors
    /// It fails: what it says.
    pub fn ip(&self, words: &str) -> anyhow::Result<()> {
        self.command("ip", words)
    }

    /// Runs `tc` with these words inside.
    ///
    /// # Errors
    /// It fails: what it says.
    pub fn tc(&self, words: &str) -> anyhow::Result<()> {
        self.command("tc", words)
    }

    fn command(&self, program: &str, words: &str) -> anyhow::Result<()> {
        let mut command = Command::new(program);
        command.args(words.split_whitespace()).stdin(Stdio::null());
        let output = self.run(|| {
            command
                .output()
                .with_context(|| format!("cannot run {program}"))
        })?;
        let errors = String::from_utf8_lossy(&output.stderr);
        ensure!(
            output.status.success(),
            "{program} {words}: {}",
            errors.trim()
        );
        Ok(())
    }

    /// Changes a setting of this network, such as `net/ipv4/conf/robot0/route_localnet`.
    ///
    /// # Errors
    /// It does not exist, or cannot be changed.
    pub fn set(&self, setting: &str, value: &str) -> anyhow::Result<()> {
        let path = format!("/proc/sys/{setting}");
        self.run(|| fs::write(&path, value).with_context(|| format!("cannot set {setting}")))
    }

    /// How `ip` finds it.
    fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.0.as_raw_fd())
    }
}

/// See the [module](self).
#[derive(Debug)]
pub struct Networks {
    /// Where the mediator runs.
    pub robot: Namespace,
    /// Another machine on the first network of the robot.
    pub neighbour: Namespace,
    /// Another machine on the second network of the robot.
    pub far: Namespace,
}

impl Networks {
    /// Makes all three, and connects them.
    ///
    /// # Errors
    /// The system does not permit it, or has no `ip`.
    pub fn new() -> anyhow::Result<Self> {
        let networks = Self {
            robot: Namespace::new()?,
            neighbour: Namespace::new()?,
            far: Namespace::new()?,
        };
        let robot = &networks.robot;
        for (number, peer) in [&networks.neighbour, &networks.far].into_iter().enumerate() {
            let path = peer.path();
            robot.ip(&format!(
                "link add robot{number} type veth peer name peer{number} netns {path}"
            ))?;
            let net = 77 + number;
            for (namespace, card, host) in [(robot, "robot", 1), (peer, "peer", 2)] {
                let card = format!("{card}{number}");
                namespace.ip(&format!("addr add 10.{net}.0.{host}/24 dev {card}"))?;
                namespace.ip(&format!("addr add fd{net}::{host}/64 dev {card} nodad"))?;
                namespace.ip(&format!("link set {card} up"))?;
            }
        }
        robot.ip("addr add 10.79.0.1/32 dev lo")?;
        robot.ip("addr add fd79::1/128 dev lo")?;
        Ok(networks)
    }

    /// Sends packets with any source from the neighbour to the robot.
    ///
    /// # Errors
    /// The system does not permit it.
    pub fn forger(&self) -> anyhow::Result<Forger> {
        let robot = self.robot.run(|| card("robot0"))?;
        self.neighbour.run(|| {
            let own = card("peer0")?;
            let flags = SockFlag::SOCK_CLOEXEC;
            let socket = socket(AddressFamily::Packet, SockType::Raw, flags, None)
                .context("cannot open a packet socket")?;
            Ok(Forger {
                socket,
                cards: (mac(&own)?, mac(&robot)?),
                by: own,
            })
        })
    }
}

/// Writes packets with forged source addresses.
#[derive(Debug)]
pub struct Forger {
    socket: OwnedFd,
    cards: (Mac, Mac),
    by: LinkAddr,
}

impl Forger {
    /// Sends one datagram that claims to come from somewhere.
    ///
    /// # Errors
    /// The system refuses.
    pub fn send(&self, from: SocketAddr, to: SocketAddr, bytes: &[u8]) -> anyhow::Result<()> {
        self.send_by(self.cards, from, to, bytes)
    }

    /// The same in a frame to all machines of the network.
    ///
    /// # Errors
    /// The system refuses.
    pub fn send_to_all(
        &self,
        from: SocketAddr,
        to: SocketAddr,
        bytes: &[u8],
    ) -> anyhow::Result<()> {
        const ALL: Mac = [0xff; 6];
        self.send_by((self.cards.0, ALL), from, to, bytes)
    }

    fn send_by(
        &self,
        cards: (Mac, Mac),
        from: SocketAddr,
        to: SocketAddr,
        bytes: &[u8],
    ) -> anyhow::Result<()> {
        let Some(packet) = packet::ethernet(cards, from, to, bytes) else {
            bail!("no packet from {from} to {to} with {} bytes", bytes.len());
        };
        sendto(
            self.socket.as_raw_fd(),
            &packet,
            &self.by,
            MsgFlags::empty(),
        )
        .with_context(|| format!("cannot send a packet from {from} to {to}"))?;
        Ok(())
    }
}

/// A network card of the namespace of this thread.
fn card(name: &str) -> anyhow::Result<LinkAddr> {
    let mut cards = getifaddrs()?.filter(|card| card.interface_name == name);
    let address = cards.find_map(|card| card.address?.as_link_addr().copied());
    address.with_context(|| format!("there is no network card {name}"))
}

fn mac(card: &LinkAddr) -> anyhow::Result<Mac> {
    card.addr().context("a network card has no address")
}

/// Limits the send buffers that programs may ask for, to what Linux allows by default.
/// The setting belongs to the whole machine, so hold this only while a mediator starts.
#[derive(Debug)]
pub struct DefaultBuffers {
    /// Locked, so that two runs do not take the other's limit for the usual one.
    _lock: File,
}

const WMEM_MAX: &str = "/proc/sys/net/core/wmem_max";

/// The limit before it was changed, while it is.
static BEFORE: Mutex<Option<String>> = Mutex::new(None);

impl DefaultBuffers {
    /// Sets the limit, until this is dropped.
    ///
    /// # Errors
    /// The system does not permit it.
    pub fn set() -> anyhow::Result<Self> {
        let lock = File::open(WMEM_MAX)?;
        lock.lock()?;
        let before = fs::read_to_string(WMEM_MAX)?;
        *BEFORE.lock().unwrap_or_else(PoisonError::into_inner) = Some(before);
        let buffers = Self { _lock: lock };
        fs::write(WMEM_MAX, "212992").context("cannot set net.core.wmem_max")?;
        Ok(buffers)
    }
}

impl Drop for DefaultBuffers {
    fn drop(&mut self) {
        restore_buffers();
    }
}

/// Sets the limit of send buffers to what it was. Also for a run that is interrupted.
pub fn restore_buffers() {
    let mut before = BEFORE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(before) = before.take() {
        let _ = fs::write(WMEM_MAX, before.trim());
    }
}
