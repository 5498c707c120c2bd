//! How one asks a running simulation about itself and makes faults: lines of
//! JSON over a Unix socket in its folder. IO.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream as BlockingStream;
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::sync::{mpsc, oneshot};

use crate::unix_server::UnixServer;

/// The socket in the folder of a simulation.
pub const SOCKET: &str = "control";

/// No request is longer than this.
const MAX_REQUEST: u64 = 4_096;
/// How long the command line waits for a simulation.
const PATIENCE: Duration = Duration::from_secs(5);

/// What can be asked.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(tag = "do", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// How is everything?
    State,
    /// Something shall go wrong.
    Fault {
        /// What: unplug, stall, corrupt, low-battery, stuck-wheel.
        fault: String,
        /// Which device or wheel.
        about: Option<String>,
        /// For so long; until it is cleared if absent.
        seconds: Option<f64>,
    },
    /// The plug of a device is put in again.
    Replug {
        /// Which device.
        device: String,
    },
    /// Nothing shall be wrong any more.
    Clear,
    /// The reset line of the motor controllers is pulled.
    Reset,
    /// The robot is put somewhere else, as in the map: y down, clockwise.
    Place {
        /// To the right.
        x_m: f64,
        /// Down.
        y_m: f64,
        /// Clockwise from x.
        heading_deg: f64,
    },
}

/// The answer to a request.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// It was done.
    Done,
    /// How everything is.
    State(State),
    /// It was not done, and why.
    Error(String),
}

/// The truth about a simulation.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct State {
    /// Simulated time since the beginning.
    pub time_s: f64,
    /// The name of the map.
    pub map: String,
    /// Where the robot is, as in the map: to the right.
    pub x_m: f64,
    /// As in the map: down.
    pub y_m: f64,
    /// As in the map: clockwise from x, in (-180, 180].
    pub heading_deg: f64,
    /// The speeds of the wheels, positive forward.
    pub wheels_mm_per_s: Wheels,
    /// How often the robot began to touch a wall.
    pub contacts: u64,
    /// Whether it touches one now.
    pub touching: bool,
    /// From the centre of the robot to the nearest wall.
    pub clearance_m: f64,
    /// The length of the way so far.
    pub travelled_m: f64,
    /// How many scans were measured.
    pub scans: u64,
    /// Whether a laser is on.
    pub laser_on: bool,
    /// The markers on the ceiling that can be seen, the nearest first.
    pub markers: Vec<u32>,
    /// The servos, from channel 0.
    pub servos: Vec<Servo>,
    /// What is wrong, as one would write it.
    pub faults: Vec<String>,
}

/// A servo and its pulse.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
pub struct Servo {
    /// Where the pulse goes; 0 for no pulse.
    pub target_us: f64,
    /// The pulse; 0 for none.
    pub pulse_us: f64,
    /// Where the shaft is: 0 degrees at 2400 us, 180 at 600 us.
    pub angle_deg: f64,
}

/// A number for each wheel.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
pub struct Wheels {
    /// Ahead on the left.
    pub front_left: f64,
    /// Ahead on the right.
    pub front_right: f64,
    /// Behind on the left.
    pub rear_left: f64,
    /// Behind on the right.
    pub rear_right: f64,
}

/// A request on its way, and where its answer goes.
pub(crate) type Order = (Request, oneshot::Sender<Answer>);

/// The side of the simulation.
#[derive(Debug)]
pub(crate) struct Control {
    orders: mpsc::Receiver<Order>,
    _server: UnixServer,
}

impl Control {
    /// Listens in a folder that no other simulation uses.
    pub(crate) fn open(folder: &Path) -> io::Result<Self> {
        let (sender, orders) = mpsc::channel(16);
        let path = folder.join(SOCKET);
        let server = UnixServer::open(&path, move |stream| serve(stream, sender.clone()))?;
        Ok(Self {
            orders,
            _server: server,
        })
    }

    /// Waits for the next request. Dropping the future loses nothing.
    pub(crate) async fn next(&mut self) -> Option<Order> {
        self.orders.recv().await
    }
}

/// One connection: a line in, a line out, until it ends.
async fn serve(stream: UnixStream, orders: mpsc::Sender<Order>) {
    let (read, mut write) = stream.into_split();
    let mut read = tokio::io::BufReader::new(read);
    let mut line = String::new();
    loop {
        line.clear();
        let limited = (&mut read).take(MAX_REQUEST).read_line(&mut line).await;
        if !matches!(limited, Ok(count) if count > 0) {
            return;
        }
        let answer = match serde_json::from_str(&line) {
            Ok(request) => {
                let (sender, answer) = oneshot::channel();
                if orders.send((request, sender)).await.is_err() {
                    return;
                }
                let Ok(answer) = answer.await else { return };
                answer
            }
            Err(error) => Answer::Error(format!("not a request: {error}")),
        };
        let Ok(mut text) = serde_json::to_vec(&answer) else {
            return;
        };
        text.push(b'\n');
        if write.write_all(&text).await.is_err() {
            return;
        }
    }
}

/// Asks the simulation in a folder, and waits for the answer.
///
/// # Errors
/// None runs there, or it does not answer within five seconds.
pub fn ask(folder: &Path, request: &Request) -> io::Result<Answer> {
    let stream = BlockingStream::connect(folder.join(SOCKET))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut text = serde_json::to_vec(request)?;
    text.push(b'\n');
    (&stream).write_all(&text)?;
    let mut line = String::new();
    BufReader::new(&stream).read_line(&mut line)?;
    Ok(serde_json::from_str(&line)?)
}
