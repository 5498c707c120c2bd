//! Network errors about addresses that we have sent to. IO.
//!
//! A datagram to a closed port comes back as an ICMP error. Linux keeps such errors in a queue
//! of the socket, each with its address. In addition it fails the next call on the socket,
//! whatever its destination; then [`super::sender`] tries again. Other systems report errors to
//! connected sockets only; there a client's silence is the only sign.

use std::io;
use std::os::fd::AsFd;

use nix::errno::Errno;

use amber_core::router::Unreachable;
use amber_core::router::Unreachable::{NoRoute, PortClosed};

/// Asks the system to keep errors for [`take`].
pub(super) fn keep(socket: &socket2::Socket, is_ipv6: bool) -> io::Result<()> {
    imp::keep(socket, is_ipv6)
}

/// Takes at most one batch of errors. Returns false when none is left.
pub(super) fn take(
    socket: &impl AsFd,
    each: impl FnMut(std::net::SocketAddr, Unreachable),
) -> io::Result<bool> {
    imp::take(socket, each)
}

/// The state of a datagram's destination, from a system error; `None` if the error is about
/// the datagram itself.
pub(super) fn classify(error: Errno) -> Option<Unreachable> {
    match error {
        Errno::ECONNREFUSED => Some(PortClosed),
        Errno::EHOSTUNREACH
        | Errno::ENETUNREACH
        | Errno::EHOSTDOWN
        | Errno::ENETDOWN
        | Errno::ENOPROTOOPT
        | Errno::EACCES => Some(NoRoute),
        _ => None,
    }
}

#[cfg(target_os = "linux")]
mod imp {
    use std::io::{self, IoSliceMut};
    use std::net::SocketAddr;
    use std::os::fd::{AsFd, AsRawFd};

    use nix::cmsg_space;
    use nix::errno::Errno;
    use nix::libc::{
        SO_EE_ORIGIN_ICMP, SO_EE_ORIGIN_ICMP6, SO_EE_ORIGIN_LOCAL, sock_extended_err, sockaddr_in6,
    };
    use nix::sys::socket::{
        ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, setsockopt, sockopt,
    };

    use super::super::udp::to_std;
    use super::classify;
    use amber_core::limits::DATAGRAMS_PER_TURN;
    use amber_core::router::Unreachable;

    pub(super) fn keep(socket: &socket2::Socket, is_ipv6: bool) -> io::Result<()> {
        match is_ipv6 {
            true => setsockopt(socket, sockopt::Ipv6RecvErr, &true)?,
            false => setsockopt(socket, sockopt::Ipv4RecvErr, &true)?,
        }
        Ok(())
    }

    pub(super) fn take(
        socket: &impl AsFd,
        mut each: impl FnMut(SocketAddr, Unreachable),
    ) -> io::Result<bool> {
        let mut control = cmsg_space!(sock_extended_err, sockaddr_in6);
        for _ in 0..DATAGRAMS_PER_TURN {
            // The error comes with the beginning of the datagram, which is not needed.
            let mut datagram = [IoSliceMut::new(&mut [])];
            let flags = MsgFlags::MSG_ERRQUEUE | MsgFlags::MSG_DONTWAIT;
            let fd = socket.as_fd().as_raw_fd();
            let message =
                match recvmsg::<SockaddrStorage>(fd, &mut datagram, Some(&mut control), flags) {
                    Ok(message) => message,
                    Err(Errno::EAGAIN) => return Ok(false),
                    Err(Errno::EINTR) => continue,
                    Err(error) => return Err(error.into()),
                };
            let address = message.address.as_ref().and_then(to_std);
            let how = message.cmsgs()?.find_map(|control| match control {
                ControlMessageOwned::Ipv4RecvErr(error, _)
                | ControlMessageOwned::Ipv6RecvErr(error, _) => meaning(&error),
                _ => None,
            });
            if let (Some(address), Some(how)) = (address, how) {
                each(address, how);
            }
        }
        Ok(true)
    }

    /// Time stamps and other messages use the same queue.
    fn meaning(error: &sock_extended_err) -> Option<Unreachable> {
        match error.ee_origin {
            SO_EE_ORIGIN_LOCAL | SO_EE_ORIGIN_ICMP | SO_EE_ORIGIN_ICMP6 => {
                classify(Errno::from_raw(error.ee_errno.try_into().ok()?))
            }
            _ => None,
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;
        use amber_core::router::Unreachable::{NoRoute, PortClosed};

        fn error(ee_origin: u8, errno: Errno) -> sock_extended_err {
            sock_extended_err {
                ee_errno: errno as u32,
                ee_origin,
                ee_type: 3,
                ee_code: 3,
                ee_pad: 0,
                ee_info: 0,
                ee_data: 0,
            }
        }

        #[test]
        fn errors_about_addresses_and_about_datagrams_are_distinguished() {
            const TIMESTAMP: u8 = 4;
            for (origin, errno, expected) in [
                (SO_EE_ORIGIN_ICMP, Errno::ECONNREFUSED, Some(PortClosed)),
                (SO_EE_ORIGIN_ICMP6, Errno::ECONNREFUSED, Some(PortClosed)),
                (SO_EE_ORIGIN_ICMP, Errno::EHOSTUNREACH, Some(NoRoute)),
                (SO_EE_ORIGIN_ICMP, Errno::ENETUNREACH, Some(NoRoute)),
                (SO_EE_ORIGIN_ICMP6, Errno::EACCES, Some(NoRoute)),
                (SO_EE_ORIGIN_LOCAL, Errno::EHOSTUNREACH, Some(NoRoute)),
                (SO_EE_ORIGIN_ICMP, Errno::EMSGSIZE, None),
                (SO_EE_ORIGIN_LOCAL, Errno::EMSGSIZE, None),
                (TIMESTAMP, Errno::ENOMSG, None),
                (TIMESTAMP, Errno::ECONNREFUSED, None),
            ] {
                assert_eq!(meaning(&error(origin, errno)), expected, "{origin} {errno}");
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod imp {
    use std::io;
    use std::net::SocketAddr;
    use std::os::fd::AsFd;

    use amber_core::router::Unreachable;

    pub(super) fn keep(_: &socket2::Socket, _: bool) -> io::Result<()> {
        Ok(())
    }

    pub(super) fn take(_: &impl AsFd, _: impl FnMut(SocketAddr, Unreachable)) -> io::Result<bool> {
        Ok(false)
    }
}
