//! Keeps the announcement from answering forged questions. IO.
//!
//! RFC 6762, section 6.7, lets a program ask from any port, and has the answer sent there. The
//! answer is four times as long as the question, and the sender of the question can be forged, so
//! anyone could have a robot send data to a third party. Programs that search for robots ask from
//! port 5353 (`amber discover` does) and are answered by multicast, at most once a second. So
//! questions from other ports are dropped, by a filter in the kernel.
//!
//! `mdns-sd` has no such setting, and does not lend its sockets. So this takes copies of the
//! descriptors of this process (Linux 5.6).

use std::io;

use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};
use socket2::{SockFilter, Socket, Type};

/// Higher descriptors are not looked at: the program that announces has few.
const DESCRIPTORS: i32 = 64;

/// Makes all UDP sockets of this process with this port drop what comes from other ports. Returns
/// how many there are.
pub(crate) fn take_from_own_port_only(port: u16) -> io::Result<usize> {
    let this = pidfd_open(getpid(), PidfdFlags::empty())?;
    let mut count = 0;
    for number in 0..DESCRIPTORS {
        let copy = match pidfd_getfd(&this, number, PidfdGetfdFlags::empty()) {
            Ok(copy) => Socket::from(copy),
            // There is none with this number.
            Err(rustix::io::Errno::BADF) => continue,
            Err(error) => return Err(error.into()),
        };
        let address = copy.local_addr().ok().and_then(|own| own.as_socket());
        let is_it = copy.r#type().is_ok_and(|kind| kind == Type::DGRAM)
            && address.is_some_and(|own| own.port() == port);
        if is_it {
            copy.attach_filter(&filter(port))?;
            count += 1;
        }
    }
    Ok(count)
}

/// Takes datagrams whose source port, the first two bytes of UDP, is this one.
fn filter(port: u16) -> [SockFilter; 4] {
    const LOAD_HALF_WORD: u16 = 0x28;
    const IF_EQUAL: u16 = 0x15;
    const RETURN: u16 = 0x06;
    [
        SockFilter::new(LOAD_HALF_WORD, 0, 0, 0),
        SockFilter::new(IF_EQUAL, 0, 1, port.into()),
        SockFilter::new(RETURN, 0, 0, u32::MAX),
        SockFilter::new(RETURN, 0, 0, 0),
    ]
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::time::Duration;

    use super::*;

    #[test]
    fn only_datagrams_from_the_own_port_arrive() {
        let own = UdpSocket::bind("127.0.0.1:0").unwrap();
        let port = own.local_addr().unwrap().port();
        let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
        let same_port = UdpSocket::bind(("127.0.0.2", port)).unwrap();
        if let Err(error) = take_from_own_port_only(port) {
            eprintln!("SKIP: {error}");
            return;
        }
        // Loopback keeps the order.
        stranger.send_to(b"forged", ("127.0.0.1", port)).unwrap();
        same_port.send_to(b"search", ("127.0.0.1", port)).unwrap();
        own.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let mut buffer = [0; 16];
        let length = own.recv(&mut buffer).unwrap();
        assert_eq!(&buffer[..length], b"search");
        // A socket with another port is as before.
        own.send_to(b"answer", stranger.local_addr().unwrap())
            .unwrap();
        stranger
            .set_read_timeout(Some(Duration::from_secs(10)))
            .unwrap();
        assert_eq!(stranger.recv(&mut buffer).unwrap(), 6);
    }
}
