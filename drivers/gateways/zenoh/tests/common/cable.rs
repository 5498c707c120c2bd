//! A cable that can be cut: then nothing passes, and neither side is told.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use super::Router;

/// A cable to a router.
pub(crate) struct Cable {
    endpoint: String,
    is_cut: Arc<AtomicBool>,
}

impl Cable {
    pub(crate) fn to(router: &Router) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("tcp/{}", listener.local_addr().unwrap());
        let is_cut = Arc::new(AtomicBool::new(false));
        let (target, cut) = (router.endpoint.replace("tcp/", ""), is_cut.clone());
        thread::spawn(move || {
            for near in listener.incoming().map_while(Result::ok) {
                let Ok(far) = TcpStream::connect(&target) else {
                    continue;
                };
                for (from, to) in [(&near, &far), (&far, &near)] {
                    let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    let cut = cut.clone();
                    thread::spawn(move || pass(from, to, &cut));
                }
            }
        });
        Self { endpoint, is_cut }
    }

    /// The router as the robot sees it.
    pub(crate) fn router(&self) -> Router {
        Router::elsewhere(self.endpoint.clone())
    }

    pub(crate) fn cut(&self, is_cut: bool) {
        self.is_cut.store(is_cut, Ordering::Relaxed);
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream, is_cut: &AtomicBool) {
    let mut bytes = vec![0; 1 << 16];
    while let Ok(length @ 1..) = from.read(&mut bytes) {
        while is_cut.load(Ordering::Relaxed) {
            thread::sleep(Duration::from_millis(10));
        }
        if to.write_all(&bytes[..length]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(std::net::Shutdown::Both);
}
