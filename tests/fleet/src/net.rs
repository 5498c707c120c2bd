//! Network namespaces: the robot and its operator on two machines, with a wire between them. IO.
//!
//! ```text
//!   robot   10.91.0.2 robot0 -- veth -- wire1   wire   wire0 -- veth -- operator0 10.91.0.1   operator
//! ```
//!
//! The namespaces have no names: the system removes them when this program and all that it has
//! started have ended.

use std::fs::File;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;
use std::panic::resume_unwind;
use std::process::{Command, Stdio};
use std::thread;

use anyhow::{Context, ensure};
use nix::ifaddrs::getifaddrs;
use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::socket::{
    AddressFamily, LinkAddr, SockFlag, SockProtocol, SockType, SockaddrLike, bind, socket,
};

/// The address of the operator and of the router.
pub(crate) const OPERATOR: &str = "10.91.0.1";
/// The address of the robot.
const ROBOT: &str = "10.91.0.2";

/// A separate network.
#[derive(Debug)]
pub(crate) struct Namespace(File);

/// Both machines; that of the operator is the one of this process.
#[derive(Debug)]
pub(crate) struct Networks {
    pub(crate) robot: Namespace,
    /// The ends of the wire, as sockets for whole frames: that of the operator, and that of the
    /// robot.
    pub(crate) ends: [UdpSocket; 2],
}

/// Moves this process to a separate network. Call it before there are other threads.
pub(crate) fn leave_host() -> anyhow::Result<()> {
    unshare(CloneFlags::CLONE_NEWNET).context("cannot make a network namespace")?;
    ip("link set lo up")
}

impl Namespace {
    fn new() -> anyhow::Result<Self> {
        let made = thread::spawn(|| {
            unshare(CloneFlags::CLONE_NEWNET)?;
            ip("link set lo up")?;
            anyhow::Ok(File::open("/proc/thread-self/ns/net")?)
        });
        made.join()
            .unwrap_or_else(|panic| resume_unwind(panic))
            .map(Self)
    }

    /// Does something inside. Processes that are started there stay there.
    pub(crate) fn run<T: Send>(
        &self,
        inside: impl FnOnce() -> anyhow::Result<T> + Send,
    ) -> anyhow::Result<T> {
        thread::scope(|scope| {
            let inside = scope.spawn(|| {
                setns(&self.0, CloneFlags::CLONE_NEWNET)?;
                inside()
            });
            inside.join().unwrap_or_else(|panic| resume_unwind(panic))
        })
    }

    /// How `ip` finds it.
    fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.0.as_raw_fd())
    }
}

impl Networks {
    /// Makes both networks, and the wire.
    pub(crate) fn new() -> anyhow::Result<Self> {
        let (robot, wire) = (Namespace::new()?, Namespace::new()?);
        let path = wire.path();
        let connect = |card: &str, end: &str, address: &str| {
            ip(&format!(
                "link add name {card} type veth peer name {end} netns {path}"
            ))?;
            ip(&format!("addr add {address}/24 dev {card}"))?;
            // Frames that a wire carries; virtual cards would exchange larger ones.
            ip(&format!("link set dev {card} gso_max_segs 1"))?;
            ip(&format!("link set dev {card} up"))
        };
        connect("operator0", "wire0", OPERATOR)?;
        robot.run(|| connect("robot0", "wire1", ROBOT))?;
        let ends = wire.run(|| Ok([frames_of("wire0")?, frames_of("wire1")?]))?;
        Ok(Self { robot, ends })
    }
}

/// A socket that receives and sends the frames of a card. Of a socket for datagrams, it uses only what
/// both have in common: to send, to receive, and a time limit.
fn frames_of(card: &str) -> anyhow::Result<UdpSocket> {
    ip(&format!("link set dev {card} up"))?;
    let mut addresses = getifaddrs()?.filter(|it| it.interface_name == card);
    let address = addresses.find_map(|it| it.address?.as_link_addr().copied());
    let address: LinkAddr = address.with_context(|| format!("no card {card}"))?;
    let socket = socket(
        AddressFamily::Packet,
        SockType::Raw,
        SockFlag::SOCK_CLOEXEC,
        SockProtocol::EthAll,
    );
    let socket = socket.context("cannot open a packet socket")?;
    ensure!(
        address.family() == Some(AddressFamily::Packet),
        "{card} has no frames"
    );
    bind(socket.as_raw_fd(), &address)?;
    Ok(socket.into())
}

fn ip(words: &str) -> anyhow::Result<()> {
    let mut command = Command::new("ip");
    command.args(words.split_whitespace()).stdin(Stdio::null());
    let output = command.output().context("cannot run ip")?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "ip {words}: {}", errors.trim());
    Ok(())
}
