//! Finds the user whose program has a UDP socket on this machine. IO.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use rustix::process::getuid;

/// Whether the socket with this local address belongs to this user or to root; `None` if the system
/// does not tell.
///
/// One read of a table of the kernel, for rare requests only.
pub(super) fn is_ours(client: SocketAddr) -> Option<bool> {
    let tables = ["/proc/net/udp", "/proc/net/udp6"];
    let tables = tables
        .iter()
        .filter_map(|table| fs::read_to_string(table).ok());
    let users: Vec<_> = tables.flat_map(|table| users(&table, client)).collect();
    let ours = [0, getuid().as_raw()];
    // Several programs may share a port: then none of them must be another user's.
    (!users.is_empty()).then(|| users.iter().all(|user| ours.contains(user)))
}

/// The users of the sockets in this table that may send from this address.
fn users(table: &str, client: SocketAddr) -> Vec<u32> {
    let lines = table.lines().skip(1);
    let of = |line: &str| {
        let mut fields = line.split_whitespace().skip(1);
        let (address, port) = fields.next()?.split_once(':')?;
        let address = address_of(address)?.to_canonical();
        let is_port = u16::from_str_radix(port, 16) == Ok(client.port());
        let is_address = address.is_unspecified() || address == client.ip().to_canonical();
        let user = fields.nth(5)?.parse().ok()?;
        (is_port && is_address).then_some(user)
    };
    lines.filter_map(of).collect()
}

/// An address in the table: words of 32 bits, each in the order of this machine.
fn address_of(hex: &str) -> Option<IpAddr> {
    let word = |at: usize| u32::from_str_radix(hex.get(at..at + 8)?, 16).ok();
    match hex.len() {
        8 => Some(Ipv4Addr::from(word(0)?.to_ne_bytes()).into()),
        32 => {
            let words = [word(0)?, word(8)?, word(16)?, word(24)?];
            let mut bytes = [0; 16];
            for (bytes, word) in bytes.chunks_exact_mut(4).zip(words) {
                bytes.copy_from_slice(&word.to_ne_bytes());
            }
            Some(Ipv6Addr::from(bytes).into())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use super::*;

    #[cfg(target_endian = "little")]
    #[test]
    fn the_user_of_a_socket_is_in_the_table() {
        const TABLE: &str = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
             1: 0100007F:1000 00000000:0000 07 00000000:00000000 00:00000000 00000000  1001        0 1 2 0 0\n\
             2: 00000000:1001 00000000:0000 07 00000000:00000000 00:00000000 00000000  1002        0 2 2 0 0\n\
             3: 0200007F:1000 00000000:0000 07 00000000:00000000 00:00000000 00000000  1003        0 3 2 0 0\n";
        const TABLE_6: &str = "  sl  local_address ...\n\
             1: 00000000000000000000000001000000:1002 0:0 07 0:0 0:0 0 1004 0 4 2 0 0\n\
             2: 0000000000000000FFFF00000100007F:1003 0:0 07 0:0 0:0 0 1005 0 5 2 0 0\n";
        let found = |table, client: &str| users(table, client.parse().unwrap());
        assert_eq!(found(TABLE, "127.0.0.1:4096"), [1001]);
        assert_eq!(found(TABLE, "127.0.0.1:4097"), [1002]);
        assert!(found(TABLE, "127.0.0.1:4098").is_empty());
        assert_eq!(found(TABLE_6, "[::1]:4098"), [1004]);
        assert_eq!(found(TABLE_6, "127.0.0.1:4099"), [1005]);
        assert!(found("\n: x\n\u{1F600}:1 2", "127.0.0.1:4099").is_empty());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn our_own_sockets_are_ours() {
        for address in ["127.0.0.1:0", "0.0.0.0:0", "[::1]:0"] {
            let Ok(socket) = UdpSocket::bind(address) else {
                // Without IPv6.
                continue;
            };
            let mut local = socket.local_addr().unwrap();
            if local.ip().is_unspecified() {
                local.set_ip(Ipv4Addr::LOCALHOST.into());
            }
            assert_eq!(is_ours(local), Some(true), "{address}");
        }
    }
}
