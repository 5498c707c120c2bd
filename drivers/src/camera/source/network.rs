//! A network camera: pictures over HTTP. IO.

use std::io;
use std::time::{Duration, SystemTime};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{Instant, sleep_until, timeout, timeout_at};

use super::{Event, Events, Running, Source, seconds};
use crate::camera::http::{Address, Answer};
use crate::camera::jpeg::Jpeg;
use crate::camera::logic::Facts;
use crate::connection::{Connect, Connection, Endpoint, in_words};

/// The most that is read at once, in bytes.
const READ: usize = 64 * 1024;
/// The time for a connection and the request.
const CONNECT: Duration = Duration::from_secs(5);

/// A way to make connections, again and again.
pub trait Way: Clone + Send + Sync + 'static {
    /// The connection.
    type Connect: Connect;
    /// For one connection.
    fn connect(&self) -> Self::Connect;
}

/// A connection to the server of an address.
#[derive(Clone, Debug)]
pub struct ToServer(String);

impl Way for ToServer {
    type Connect = Endpoint;

    fn connect(&self) -> Endpoint {
        Endpoint::Tcp(self.0.clone())
    }
}

/// A camera at an address.
#[derive(Clone, Debug)]
pub struct NetworkCamera<W> {
    address: Address,
    way: W,
    /// The longest time without a picture.
    timeout: Duration,
    /// The shortest time between two requests, for addresses with one picture.
    period: Duration,
}

impl NetworkCamera<ToServer> {
    /// A camera whose pictures may be `period` apart if its address has only one.
    #[must_use]
    pub fn new(address: Address, timeout: Duration, period: Duration) -> Self {
        let way = ToServer(address.server.clone());
        Self::by(way, address, timeout, period)
    }
}

impl<W: Way> NetworkCamera<W> {
    /// The same by another way than the network.
    pub(crate) fn by(way: W, address: Address, timeout: Duration, period: Duration) -> Self {
        Self {
            address,
            way,
            timeout,
            period,
        }
    }

    /// Reads pictures; returns why there are no more.
    async fn run(self, events: Events) -> String {
        let mut is_open = false;
        loop {
            let begun = Instant::now();
            let mut stream = match timeout(CONNECT, self.connect()).await {
                Ok(Ok(stream)) => stream,
                Ok(Err(error)) => return in_words(&error, &self.address.server),
                Err(_) => return format!("{} does not answer", self.address.server),
            };
            let mut answer = Answer::default();
            let mut buffer = vec![0; READ];
            let mut pictures = 0_u64;
            let ended = loop {
                let due = Instant::now() + self.timeout;
                let read = timeout_at(due, read(&mut *stream, &mut buffer, &mut answer));
                match read.await {
                    Err(_) => return self.silence(&answer, pictures),
                    Ok(Err(why)) => break why,
                    Ok(Ok(jpeg)) => {
                        let captured = SystemTime::now();
                        // Only now is it certain that there are pictures at this address.
                        if !std::mem::replace(&mut is_open, true)
                            && !events.tell(Event::Opened(Facts::default())).await
                        {
                            return String::new();
                        }
                        pictures += 1;
                        events.frame(jpeg, captured);
                    }
                }
            };
            if !answer.is_single() || pictures == 0 {
                return match ended {
                    Some(why) => why,
                    None => format!("{} has closed the connection", self.address.server),
                };
            }
            sleep_until(begun + self.period).await;
        }
    }

    async fn connect(&self) -> io::Result<Box<dyn Connection>> {
        let mut stream = self.way.connect().connect().await?;
        stream.write_all(&self.address.request()).await?;
        stream.flush().await?;
        Ok(stream)
    }

    fn silence(&self, answer: &Answer, pictures: u64) -> String {
        let (address, time) = (&self.address, seconds(self.timeout));
        match (answer.other_type(), pictures) {
            (Some(other), _) => format!("{address} sends {other}, and not JPEG pictures"),
            (None, 0) => format!("no picture has come from {address} within {time}"),
            (None, _) => format!("{address} has sent no picture for {time}"),
        }
    }
}

/// Reads until a picture is whole. The error says what to check, or nothing if the connection is closed.
async fn read(
    stream: &mut dyn Connection,
    buffer: &mut [u8],
    answer: &mut Answer,
) -> Result<Jpeg, Option<String>> {
    loop {
        if let Some(jpeg) = answer.poll() {
            return Ok(jpeg);
        }
        if answer.is_over() {
            return Err(None);
        }
        match stream.read(buffer).await {
            Ok(0) => return Err(None),
            Ok(length) => answer.push(&buffer[..length]).map_err(Some)?,
            Err(error) => return Err(Some(format!("the connection has failed: {error}"))),
        }
    }
}

impl<W: Way> Source for NetworkCamera<W> {
    fn start(&mut self, events: Events) -> Running {
        let run = self.clone().run(events.clone());
        Running::task(events, run)
    }

    fn place(&self) -> String {
        self.address.to_string()
    }
}
