//! Sockets that share an address, as a *reuseport group* of Linux (since 4.6). IO.
//!
//! Two small programs in the kernel decide what a socket receives:
//!
//! - The *selector* of the group selects one socket for each datagram to this machine: the first
//!   for datagrams from the network, the second for those from this machine. The others only send.
//!   Network errors arrive at any of them.
//! - The system delivers a datagram to several machines (broadcast, multicast) to all sockets of a
//!   group, without the selector. So each socket also has a *filter*: one that receives takes only
//!   datagrams to this machine alone, from its own side, and one that sends takes nothing.
//!
//! Only the first socket is bound without sharing its address, and programs of other users can
//! never share it: `SO_REUSEPORT` admits the same user only, and no socket sets `SO_REUSEADDR`.

use nix::libc;
use nix::net::if_::if_nametoindex;
use nix::sys::socket::{setsockopt, sockopt::AttachReusePortCbpf};
use socket2::SockFilter;
use tracing::debug;

use super::super::spawn::is_out_of_files;
use super::*;
use amber_core::limits::ERROR_BUFFER_BYTES;

/// The loopback interface of every Linux.
const LOOPBACK: &str = "lo";

/// The datagrams that a socket takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Takes {
    FromNetwork,
    FromThisMachine,
    Nothing,
}

/// Opens the group. While this runs and afterwards, the address is in use for all other programs.
///
/// # Errors
/// `Unsupported` if this system has no such groups.
pub(super) fn open(address: SocketAddr) -> io::Result<Listener> {
    let unsupported = |error: io::Error| {
        if is_out_of_files(&error) {
            return error;
        }
        debug!(%error, "loopback addresses are trusted as far as the system checks them");
        io::Error::from(io::ErrorKind::Unsupported)
    };
    let loopback = if_nametoindex(LOOPBACK).map_err(|error| unsupported(error.into()))?;
    let member = |takes, receive_bytes, send_bytes| {
        let socket = super::open(address, receive_bytes, send_bytes)?;
        let filter = filter(takes, loopback, address.is_ipv6());
        socket.attach_filter(&filter).map_err(unsupported)?;
        Ok::<_, io::Error>(socket)
    };
    let network = member(Takes::FromNetwork, SOCKET_BUFFER_BYTES, SOCKET_BUFFER_BYTES)?;
    network.bind(&address.into())?;
    let address = network.local_addr()?.as_socket().unwrap_or(address);
    network.set_reuse_port(true).map_err(unsupported)?;
    let join = |socket: socket2::Socket| {
        socket.set_reuse_port(true)?;
        socket.bind(&address.into())?;
        Ok::<_, io::Error>(socket)
    };
    let local = join(member(
        Takes::FromThisMachine,
        SOCKET_BUFFER_BYTES,
        SOCKET_BUFFER_BYTES,
    )?)?;
    // The group exists since the second socket has joined.
    select_by_interface(&network, loopback).map_err(unsupported)?;
    let sender = |bytes| join(member(Takes::Nothing, ERROR_BUFFER_BYTES, bytes)?);
    let doubtful = sender(DOUBTFUL_BUFFER_BYTES)?;
    // Its drops are compared with those of the receiving sockets, which count merged ones as one.
    merge(&doubtful);
    let outlets = Outlets {
        local: sender(SOCKET_BUFFER_BYTES)?.into(),
        hosts: (0..HOST_LANES)
            .map(|_| sender(SOCKET_BUFFER_BYTES).map(Into::into))
            .collect::<io::Result<_>>()?,
        doubtful: doubtful.into(),
    };
    let receiving = [(network, Reach::Network), (local, Reach::Local)].map(|(socket, reach)| {
        merge(&socket);
        (UdpSocket::from_std(socket.into()), reach)
    });
    Ok(Listener {
        address,
        receiving: receiving.into(),
        outlets,
    })
}

/// One step of a program in the kernel.
fn step(code: u32, if_true: u8, if_false: u8, operand: u32) -> libc::sock_filter {
    libc::sock_filter {
        code: code as u16, // All of them are small.
        jt: if_true,
        jf: if_false,
        k: operand,
    }
}

const LOAD_WORD: u32 = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
const LOAD_BYTE: u32 = libc::BPF_LD | libc::BPF_B | libc::BPF_ABS;
const IF_EQUAL: u32 = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
const IF_AT_LEAST: u32 = libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K;
const RETURN: u32 = libc::BPF_RET | libc::BPF_K;

/// The number of the interface by which a datagram came.
const INTERFACE: u32 = (libc::SKF_AD_OFF + libc::SKF_AD_IFINDEX) as u32;
/// How the frame that carried it was addressed.
const PACKET_TYPE: u32 = (libc::SKF_AD_OFF + libc::SKF_AD_PKTTYPE) as u32;
/// `PACKET_HOST`: to this machine alone.
const TO_THIS_MACHINE: u32 = 0;
/// The destination in the header of IPv4 and of IPv6.
const DESTINATION_V4: u32 = (libc::SKF_NET_OFF + 16) as u32;
const DESTINATION_V6: u32 = (libc::SKF_NET_OFF + 24) as u32;

/// Makes the system select the second socket of the group for datagrams that come by the loopback
/// interface, and the first one for all others.
fn select_by_interface(member: &socket2::Socket, loopback: u32) -> io::Result<()> {
    let mut program = [
        step(LOAD_WORD, 0, 0, INTERFACE),
        step(IF_EQUAL, 0, 1, loopback),
        step(RETURN, 0, 0, 1),
        step(RETURN, 0, 0, 0),
    ];
    let program = libc::sock_fprog {
        len: program.len() as u16,
        filter: program.as_mut_ptr(),
    };
    Ok(setsockopt(member, AttachReusePortCbpf, &program)?)
}

/// The filter of a socket.
///
/// A datagram is to several machines if its frame was, or if its address is a multicast address,
/// 255.255.255.255 or 127.255.255.255. (A broadcast address of one network in a frame to this
/// machine alone reaches no other machine.)
fn filter(takes: Takes, loopback: u32, is_ipv6: bool) -> Vec<SockFilter> {
    const MULTICAST_V4: u32 = 0xe000_0000;
    const BROADCAST_LOCAL: u32 = 0x7fff_ffff;
    const MULTICAST_V6: u32 = 0xff;
    const ALL_BYTES: u32 = u32::MAX;
    let drop = step(RETURN, 0, 0, 0);
    let by_interface = match takes {
        Takes::FromNetwork => step(IF_EQUAL, 0, 1, loopback),
        Takes::FromThisMachine => step(IF_EQUAL, 1, 0, loopback),
        Takes::Nothing => return finish(&[drop]),
    };
    let mut program = vec![
        step(LOAD_WORD, 0, 0, INTERFACE),
        by_interface,
        drop,
        step(LOAD_WORD, 0, 0, PACKET_TYPE),
        step(IF_EQUAL, 1, 0, TO_THIS_MACHINE),
        drop,
    ];
    match is_ipv6 {
        false => program.extend([
            step(LOAD_WORD, 0, 0, DESTINATION_V4),
            step(IF_EQUAL, 1, 0, BROADCAST_LOCAL),
            step(IF_AT_LEAST, 0, 1, MULTICAST_V4),
        ]),
        true => program.extend([
            step(LOAD_BYTE, 0, 0, DESTINATION_V6),
            step(IF_AT_LEAST, 0, 1, MULTICAST_V6),
        ]),
    }
    program.extend([drop, step(RETURN, 0, 0, ALL_BYTES)]);
    finish(&program)
}

fn finish(steps: &[libc::sock_filter]) -> Vec<SockFilter> {
    let step = |step: &libc::sock_filter| SockFilter::new(step.code, step.jt, step.jf, step.k);
    steps.iter().map(step).collect()
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};
    use std::os::fd::AsFd;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;

    use super::super::super::batch;
    use super::*;

    /// The datagrams that a socket drops or has received.
    fn dropped_and_waiting(socket: &impl AsFd) -> (u32, usize) {
        let waiting = rustix::io::ioctl_fionread(socket.as_fd()).unwrap();
        (batch::dropped(socket).unwrap(), waiting as usize)
    }

    #[test]
    fn datagrams_to_several_machines_reach_no_socket() {
        let listener = listen((Ipv4Addr::UNSPECIFIED, 0).into()).unwrap();
        let sender = net::UdpSocket::bind("127.0.0.1:0").unwrap();
        sender.set_broadcast(true).unwrap();
        let port = listener.address.port();
        let outlets = &listener.outlets;
        let group_drops = || batch::dropped(&outlets.doubtful).unwrap();
        for to in ["127.255.255.255", "224.0.0.1"] {
            let to: IpAddr = to.parse().unwrap();
            if to.is_multicast() {
                let by = socket2::SockRef::from(&sender);
                by.set_multicast_if_v4(&Ipv4Addr::LOCALHOST).unwrap();
            }
            let before = group_drops();
            for _ in 0..10 {
                sender.send_to(b"x", (to, port)).unwrap();
            }
            assert_eq!(group_drops() - before, 10, "{to}");
        }
        for (socket, reach) in &listener.receiving {
            assert_eq!(dropped_and_waiting(socket), (20, 0), "{reach:?}");
        }
        for socket in outlets.hosts.iter().chain([&outlets.local]) {
            assert_eq!(dropped_and_waiting(socket), (20, 0));
        }
        // Datagrams to this machine alone still arrive, and are no drops.
        sender.send_to(b"x", (Ipv4Addr::LOCALHOST, port)).unwrap();
        let (local, _) = &listener.receiving[1];
        assert_eq!(dropped_and_waiting(local), (20, 1));
        assert_eq!(group_drops(), 20);
    }

    /// Takes the address with `SO_REUSEADDR` while another program has it, until `done`.
    fn steal(address: SocketAddr, done: &AtomicBool) -> Option<socket2::Socket> {
        let bind = |shares| {
            let thief = super::super::open(address, 1000, 1000).unwrap();
            thief.set_reuse_address(shares).unwrap();
            thief.bind(&address.into()).map(|()| thief)
        };
        while !done.load(Ordering::Relaxed) {
            if bind(false).is_err()
                && let Ok(thief) = bind(true)
            {
                return Some(thief);
            }
        }
        None
    }

    #[test]
    fn no_other_program_can_take_the_address_while_the_sockets_are_opened() {
        const ROUNDS: usize = 30;
        for ip in [Ipv4Addr::UNSPECIFIED, Ipv4Addr::LOCALHOST] {
            for round in 0..ROUNDS {
                let free = net::UdpSocket::bind((ip, 0)).unwrap().local_addr().unwrap();
                let own = (Ipv4Addr::LOCALHOST, free.port()).into();
                let done = AtomicBool::new(false);
                let (listener, stolen) = thread::scope(|scope| {
                    let thief = scope.spawn(|| steal(own, &done));
                    let mut listener = None;
                    while listener.is_none() && !thief.is_finished() {
                        // The thief may have the address for a moment.
                        listener = listen(free).ok();
                    }
                    done.store(true, Ordering::Relaxed);
                    (listener, thief.join().unwrap())
                });
                let both = listener.is_some() && stolen.is_some();
                assert!(!both, "{ip}: taken in round {round}");
            }
        }
    }
}
