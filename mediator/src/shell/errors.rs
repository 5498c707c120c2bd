//! What the network says of addresses that we have sent to. IO.
//!
//! A datagram to a closed port comes back as an ICMP error. Linux keeps such
//! errors in a queue of the socket, each with the address that it is about, and
//! besides fails the next call on the socket, whomever that one is for:
//! [`super::sender`] tries again then. Other systems tell only connected sockets,
//! so there silence is all that there is to go by.

use std::io;
use std::os::fd::AsFd;

use nix::errno::Errno;

use crate::router::Unreachable;
use crate::router::Unreachable::{NoRoute, PortClosed};

/// Asks the system to keep errors for [`take`].
pub(super) fn keep(socket: &socket2::Socket, is_ipv6: bool) -> io::Result<()> {
    imp::keep(socket, is_ipv6)
}

/// Takes what is known of addresses, at most a batch; false when nothing is left.
pub(super) fn take(
    socket: &impl AsFd,
    each: impl FnMut(std::net::SocketAddr, Unreachable),
) -> io::Result<bool> {
    imp::take(socket, each)
}

/// What an error of the system says about the address that a datagram was for;
/// none when the error is about the datagram.
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
    use crate::limits::DATAGRAMS_PER_TURN;
    use crate::router::Unreachable;

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
            // The beginning of the datagram comes with the error: not needed.
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

    /// Time stamps and the like come through the same queue.
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
        use crate::router::Unreachable::{NoRoute, PortClosed};

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
        fn errors_about_addresses_are_told_from_errors_about_datagrams() {
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

    use crate::router::Unreachable;

    pub(super) fn keep(_: &socket2::Socket, _: bool) -> io::Result<()> {
        Ok(())
    }

    pub(super) fn take(_: &impl AsFd, _: impl FnMut(SocketAddr, Unreachable)) -> io::Result<bool> {
        Ok(false)
    }
}
