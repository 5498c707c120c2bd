//! Useless data for a gateway. IO.

use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Sends useless data from another address until it is dropped.
pub(super) struct Flood {
    ends: Arc<AtomicBool>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Flood {
    /// Datagrams to the port of the gateway; a rosbridge has a TCP port, where the same number of
    /// useless texts is sent through one connection.
    pub(super) fn start(gateway: SocketAddr, per_s: u32) -> anyhow::Result<Self> {
        let ends = Arc::new(AtomicBool::new(false));
        let told = ends.clone();
        let socket = UdpSocket::bind("127.0.0.2:0")?;
        let stream = TcpStream::connect_timeout(&gateway, Duration::from_millis(200));
        let link = stream.ok().and_then(|stream| {
            tungstenite::client(format!("ws://{gateway}/"), stream)
                .ok()
                .map(|(link, _)| link)
        });
        let thread = thread::spawn(move || {
            let mut link = link;
            let begin = Instant::now();
            let mut sent = 0;
            while !told.load(Ordering::Relaxed) {
                let due = begin.elapsed().as_secs_f64() * f64::from(per_s);
                while f64::from(sent) < due {
                    sent += 1;
                    match &mut link {
                        // A connection that is closed sends no more.
                        Some(link) => drop(link.send("useless".into())),
                        None => drop(socket.send_to(b"\x01useless", gateway)),
                    }
                }
                thread::sleep(Duration::from_millis(1));
            }
        });
        Ok(Self {
            ends,
            thread: Some(thread),
        })
    }
}

impl Drop for Flood {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
