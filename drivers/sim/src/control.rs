//! The control socket of a running simulation: queries and faults, as lines of JSON over a Unix
//! socket in its folder. IO.

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

/// The maximum length of a request.
const MAX_REQUEST: u64 = 4_096;
/// How long the command line waits for a reply.
const PATIENCE: Duration = Duration::from_secs(5);

/// A request to the simulation.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(tag = "do", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// Reports the state.
    State,
    /// Starts a fault.
    Fault {
        /// The kind: unplug, stall, corrupt, low-battery, sagging-battery, stuck-wheel, tunnel, lift.
        fault: String,
        /// The device or wheel.
        about: Option<String>,
        /// The duration; if absent, until it is cleared.
        seconds: Option<f64>,
    },
    /// Plugs a device in again.
    Replug {
        /// Which device.
        device: String,
    },
    /// Clears all faults.
    Clear,
    /// Pulls the reset line of the motor controllers.
    Reset,
    /// From now on, a person holds these parts of the gamepad, and nothing else.
    Hold {
        /// Such as `left-y=0.5` and `south`.
        parts: Vec<String>,
    },
    /// From now on, a person turns a servo on the bus, whose motor is off.
    Turn {
        /// The id of the servo.
        servo: u8,
        /// Where to, as the servo counts its steps.
        steps: f64,
    },
    /// Moves the robot to another place, in map coordinates: y down, clockwise.
    Place {
        /// To the right.
        x_m: f64,
        /// Down.
        y_m: f64,
        /// Clockwise from x.
        heading_deg: f64,
    },
}

/// The reply to a request.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// The request was carried out.
    Done,
    State(Box<SimulationState>),
    /// The request failed, and why.
    Error(String),
}

/// The true state of a simulation.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct SimulationState {
    /// Simulated time since the beginning.
    pub time_s: f64,
    /// Real time that is missing in it, because the machine was too busy.
    #[serde(default)]
    pub left_out_s: f64,
    /// The name of the map.
    pub map: String,
    /// The robot's position in map coordinates: to the right.
    pub x_m: f64,
    /// In map coordinates: down.
    pub y_m: f64,
    /// In map coordinates: clockwise from x, in (-180, 180].
    pub heading_deg: f64,
    /// The speeds of the wheels, positive forward.
    pub wheels_mm_per_s: Wheels,
    /// How often the robot started to touch a wall.
    pub contacts: u64,
    /// Whether it touches a wall now.
    pub touching: bool,
    /// From the centre of the robot to the nearest wall.
    pub clearance_m: f64,
    /// The distance driven so far.
    pub travelled_m: f64,
    /// The number of scans measured.
    pub scans: u64,
    /// Whether a laser is on.
    pub laser_on: bool,
    /// The visible markers on the ceiling, the nearest first.
    pub markers: Vec<u32>,
    /// The servos, from channel 0.
    pub servos: Vec<Servo>,
    /// The servos on a PCA9685, from channel 0, if there is one.
    #[serde(default)]
    pub i2c_servos: Vec<Servo>,
    /// The outputs of an Arduino with Firmata, if there is one.
    #[serde(default)]
    pub board: Vec<BoardPin>,
    /// The servos on a bus, if there are any.
    #[serde(default)]
    pub bus_servos: Vec<BusServo>,
    /// The active faults, as on the command line.
    pub faults: Vec<String>,
}

/// An output of a board.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct BoardPin {
    /// The number of the pin.
    pub number: u8,
    /// How it is used: output, pwm or servo.
    pub mode: String,
    /// The level, 0 to 255, or the pulse in microseconds; 0 for none.
    pub value: u16,
}

/// A servo on a bus.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
pub struct BusServo {
    /// Its id.
    pub id: u8,
    /// Where it is; 4096 steps are a turn, and 2048 is its middle.
    pub steps: f64,
    /// How fast it turns.
    pub steps_per_s: f64,
    /// Whether its motor is on.
    pub torque: bool,
    /// How often its memory was written.
    pub memory_writes: u32,
}

/// A servo and its pulse.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
pub struct Servo {
    /// The target pulse width; 0 for no pulse.
    pub target_us: f64,
    /// The current pulse width; 0 for none.
    pub pulse_us: f64,
    /// The shaft angle: 0 degrees at 2400 us, 180 at 600 us.
    pub angle_deg: f64,
}

/// A value for each wheel.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Wheels {
    /// Front left.
    pub front_left: f64,
    /// Front right.
    pub front_right: f64,
    /// Rear left.
    pub rear_left: f64,
    /// Rear right.
    pub rear_right: f64,
}

/// A request, and the channel for its reply.
pub(crate) type PendingRequest = (Request, oneshot::Sender<Answer>);

/// The simulation's end of the socket.
#[derive(Debug)]
pub(crate) struct Control {
    requests: mpsc::Receiver<PendingRequest>,
    _server: UnixServer,
}

impl Control {
    /// Listens in a folder that this simulation owns.
    pub(crate) fn open(folder: &Path) -> io::Result<Self> {
        let (sender, requests) = mpsc::channel(16);
        let path = folder.join(SOCKET);
        let server = UnixServer::open(&path, move |stream| serve(stream, sender.clone()))?;
        Ok(Self {
            requests,
            _server: server,
        })
    }

    /// Waits for the next request. Dropping the future loses nothing.
    pub(crate) async fn next(&mut self) -> Option<PendingRequest> {
        self.requests.recv().await
    }
}

/// Serves one connection: a line in, a line out, until it closes.
async fn serve(stream: UnixStream, requests: mpsc::Sender<PendingRequest>) {
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
                if requests.send((request, sender)).await.is_err() {
                    return;
                }
                let Ok(answer) = answer.await else { return };
                answer
            }
            Err(error) => Answer::Error(format!("invalid request: {error}")),
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

/// Sends a request to the simulation in a folder, and waits for the reply.
///
/// # Errors
/// No simulation is running there, or it does not reply within five seconds.
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
