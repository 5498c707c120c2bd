//! The address of a server, and the end of its command. IO.

use std::io;
use std::net::SocketAddr;

use amber_terminal::Failure;
use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

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
    let failed = |error| cannot_listen(address, command, &error);
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let listen = listener.local_addr().map_err(failed)?;
    Ok((listener, listen))
}

fn cannot_listen(address: SocketAddr, command: &str, error: &io::Error) -> Failure {
    let failure = Failure::new(format!("cannot listen on {address}: {error}"));
    match error.kind() {
        io::ErrorKind::AddrInUse => failure.hint(format!(
            "another program uses this port, perhaps another `{command}`; `{command} --listen {}` \
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

/// Host and port that users open.
#[must_use]
pub fn shown(listen: SocketAddr) -> String {
    match listen.ip().is_unspecified() {
        true => format!("ADDRESS-OF-THIS-MACHINE:{}", listen.port()),
        false => listen.to_string(),
    }
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

/// Waits for Ctrl-C or SIGTERM.
pub async fn end() {
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        () = terminated() => {}
    }
}

/// Waits for SIGTERM.
pub async fn terminated() {
    match signal(SignalKind::terminate()) {
        Ok(mut signal) => {
            signal.recv().await;
        }
        // Without a handler, the signal ends the process.
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
            &io::Error::from_raw_os_error(98),
        );
        assert_eq!(failure, expected);
        let shown = format!("{failure:?}");
        assert!(
            shown.contains("`amber dashboard --listen 127.0.0.1:0` picks a free one"),
            "{shown}"
        );
    }

    #[test]
    fn users_open_an_address_that_exists() {
        assert_eq!(shown("127.0.0.1:80".parse().unwrap()), "127.0.0.1:80");
        let all = shown("[::]:80".parse().unwrap());
        assert_eq!(all, "ADDRESS-OF-THIS-MACHINE:80");
    }
}
