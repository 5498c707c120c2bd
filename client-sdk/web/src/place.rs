//! The address of a server, and the end of its command. IO.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use amber_terminal::Failure;
use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;
#[cfg(unix)]
use tokio::signal::unix::{SignalKind, signal};
#[cfg(windows)]
use tokio::signal::windows::ctrl_close;

use crate::access::{TOKEN_BYTES, Token};

/// Listens at an address, and returns it with the port that was chosen for port 0. `command` is
/// the command of the user, for the hint.
///
/// # Errors
/// The address is in use, unavailable or forbidden.
pub async fn listen(
    address: SocketAddr,
    command: &str,
) -> Result<(TcpListener, SocketAddr), Failure> {
    listen_by(address, command, "--listen").await
}

/// The same for a command with this option for the address.
///
/// # Errors
/// The address is in use, unavailable or forbidden.
pub async fn listen_by(
    address: SocketAddr,
    command: &str,
    option: &str,
) -> Result<(TcpListener, SocketAddr), Failure> {
    let failed = |error| cannot_listen(address, command, option, &error);
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let listen = listener.local_addr().map_err(failed)?;
    Ok((listener, listen))
}

fn cannot_listen(address: SocketAddr, command: &str, option: &str, error: &io::Error) -> Failure {
    let failure = Failure::new(format!("cannot listen on {address}: {error}"));
    match error.kind() {
        io::ErrorKind::AddrInUse => failure.hint(format!(
            "another program uses this port, perhaps another `{command}`; `{command} {option} {}` \
             picks a free one",
            SocketAddr::new(address.ip(), 0)
        )),
        io::ErrorKind::AddrNotAvailable => {
            failure.hint("use an address of this machine, or 0.0.0.0 for all of them")
        }
        io::ErrorKind::PermissionDenied => failure.hint("use a port above 1023"),
        _ => failure,
    }
}

/// The addresses that users open, the best one first. There is at least one.
#[must_use]
pub fn shown(listen: SocketAddr) -> Vec<SocketAddr> {
    if !listen.ip().is_unspecified() {
        return vec![listen];
    }
    let interfaces = if_addrs::get_if_addrs().into_iter().flatten();
    let own: Vec<_> = interfaces.map(|interface| interface.ip()).collect();
    let found = reachable(listen.ip(), &own, outward());
    let found = found.into_iter();
    found.map(|ip| SocketAddr::new(ip, listen.port())).collect()
}

/// The address of this machine towards other networks, if there is a way. Sends nothing.
fn outward() -> Option<IpAddr> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
    // An address of the documentation.
    socket.connect((Ipv4Addr::new(192, 0, 2, 1), 9)).ok()?;
    Some(socket.local_addr().ok()?.ip())
}

/// The addresses at which others reach a server that listens on all addresses, among those of this
/// machine: the one towards other networks first, then IPv4 before IPv6. Without any, the loopback
/// address.
fn reachable(listen: IpAddr, own: &[IpAddr], outward: Option<IpAddr>) -> Vec<IpAddr> {
    let is_reachable = |ip: &IpAddr| match ip {
        IpAddr::V4(ip) => !ip.is_loopback(),
        // A link-local address is useless without the name of the other machine's interface.
        IpAddr::V6(ip) => listen.is_ipv6() && !ip.is_loopback() && !ip.is_unicast_link_local(),
    };
    let is_link_local = |ip: &IpAddr| matches!(ip, IpAddr::V4(ip) if ip.is_link_local());
    let mut found: Vec<_> = own.iter().copied().filter(is_reachable).collect();
    found.sort_by_key(|ip| (outward != Some(*ip), ip.is_ipv6(), is_link_local(ip), *ip));
    found.dedup();
    if found.is_empty() {
        found.push(match listen {
            IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        });
    }
    found
}

/// A new token.
///
/// # Errors
/// The system has no random numbers.
pub fn token() -> Result<Token, Failure> {
    let mut bytes = [0; TOKEN_BYTES];
    let filled = getrandom::fill(&mut bytes);
    let failed = |error| Failure::new(format!("the system provides no random numbers: {error}"));
    filled.map_err(failed).map(|()| Token::new(bytes))
}

/// Waits for Ctrl-C, or for [`terminated`].
pub async fn end() {
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        () = terminated() => {}
    }
}

/// Waits for SIGTERM; on Windows, until the window of the terminal is closed.
pub async fn terminated() {
    #[cfg(unix)]
    let asked = signal(SignalKind::terminate());
    #[cfg(windows)]
    let asked = ctrl_close();
    match asked {
        Ok(mut asked) => {
            asked.recv().await;
        }
        // Without a handler, the system ends the process.
        Err(_) => std::future::pending().await,
    }
}

/// Waits for the end of stdin. Its contents are ignored.
pub async fn end_of_stdin() {
    let mut buffer = [0; 64];
    let mut stdin = tokio::io::stdin();
    while stdin.read(&mut buffer).await.is_ok_and(|read| read > 0) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_address_in_use_gives_a_hint() {
        let any = "127.0.0.1:0".parse().unwrap();
        let (_listener, listen_at) = listen(any, "amber dashboard").await.unwrap();
        assert_ne!(listen_at.port(), 0);
        let failure = listen(listen_at, "amber dashboard").await.unwrap_err();
        let expected = cannot_listen(
            listen_at,
            "amber dashboard",
            "--listen",
            &std::net::TcpListener::bind(listen_at).unwrap_err(),
        );
        assert_eq!(failure, expected);
        let shown = format!("{failure:?}");
        assert!(
            shown.contains("`amber dashboard --listen 127.0.0.1:0` picks a free one"),
            "{shown}"
        );
    }

    #[test]
    fn users_open_addresses_that_exist() {
        let one = "127.0.0.1:80".parse().unwrap();
        assert_eq!(shown(one), [one]);
        let all = shown("[::]:80".parse().unwrap());
        assert!(!all.is_empty());
        let is_usable = |it: &SocketAddr| !it.ip().is_unspecified() && it.port() == 80;
        assert!(all.iter().all(is_usable), "{all:?}");
    }

    #[test]
    fn the_address_towards_others_is_first() {
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        let own = [
            "127.0.0.1",
            "::1",
            "169.254.3.4",
            "172.17.0.1",
            "192.168.1.7",
            "fe80::1",
            "fd00::7",
        ];
        let own = own.map(ip);
        let (v4, v6) = (ip("0.0.0.0"), ip("::"));
        let found = reachable(v4, &own, Some(ip("192.168.1.7")));
        let expected = ["192.168.1.7", "172.17.0.1", "169.254.3.4"].map(ip);
        assert_eq!(found, expected);
        let found = reachable(v6, &own, None);
        let expected = ["172.17.0.1", "192.168.1.7", "169.254.3.4", "fd00::7"].map(ip);
        assert_eq!(found, expected);
        assert_eq!(reachable(v4, &own[..2], None), [ip("127.0.0.1")]);
        assert_eq!(reachable(v6, &[], None), [ip("::1")]);
    }
}
