//! The serial port of a robot that may be asleep. IO.

use std::fs::File;
use std::io;

use amber_driver::Guard;

use crate::connection::{Connect, Connection, Endpoint, open_and_wake};

/// A port whose line RTS is connected to BRC of the robot, as in the cable of the maker: opening it
/// wakes the robot up. With another cable, the pulse does nothing.
#[derive(Debug)]
pub(crate) struct WakingPort {
    endpoint: Endpoint,
    /// The port that was just opened.
    for_guard: Option<File>,
}

impl WakingPort {
    pub(crate) fn new(endpoint: Endpoint) -> Self {
        Self {
            endpoint,
            for_guard: None,
        }
    }
}

impl Connect for WakingPort {
    async fn connect(&mut self) -> io::Result<Box<dyn Connection>> {
        match &mut self.endpoint {
            Endpoint::Serial { path, baud } => {
                let (connection, for_guard) = open_and_wake(path, *baud).await?;
                self.for_guard = Some(for_guard);
                Ok(connection)
            }
            other => other.connect().await,
        }
    }

    fn place(&self) -> String {
        self.endpoint.place()
    }

    /// The robot has no watchdog.
    fn guard(&mut self) -> io::Result<Option<Guard>> {
        self.for_guard.take().map(Guard::start).transpose()
    }
}
