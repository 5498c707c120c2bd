//! The ways to command the wheels: Amber's own protocol, and one for each gateway. IO.

use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::time::Duration;

use amber_gateways::apollo::split::{Format, split};
use amber_proto::roboclaw::DriverMsg;
use amber_proto::{DeviceMessage, Frame, HeaderBytes};
use prost::Message;
use serde_json::json;
use tungstenite::WebSocket;
use tungstenite::protocol::WebSocketConfig;

use super::WHEELS;

/// Commands of a client of the JSON relay from one heartbeat to the next: at most 5 s.
const HEARTBEAT: u32 = 10;

/// A way to command wheel speeds.
pub(super) trait Way {
    fn name(&self) -> &'static str;
    /// Sends a command; returns the speed that the wheels get, in mm/s.
    fn command(&mut self, number: i32) -> anyhow::Result<i32>;
    /// Where a flood goes.
    fn gateway(&self) -> Option<SocketAddr>;
}

/// A speed that differs from those before.
fn speed(number: i32) -> i32 {
    100 + number % 290
}

fn socket(to: SocketAddr) -> anyhow::Result<UdpSocket> {
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    socket.connect(to)?;
    socket.set_read_timeout(Some(Duration::from_secs(5)))?;
    Ok(socket)
}

fn motors(speed: i32) -> Vec<u8> {
    let mut message = DriverMsg::data();
    message.motors_command = Some(amber_client::WheelSpeeds::all(speed).into());
    message.encode_to_vec()
}

/// Amber's own protocol.
pub(super) struct Direct(UdpSocket);

impl Direct {
    pub(super) fn new(mediator: SocketAddr) -> anyhow::Result<Self> {
        Ok(Self(socket(mediator)?))
    }
}

impl Way for Direct {
    fn name(&self) -> &'static str {
        "direct"
    }

    fn command(&mut self, number: i32) -> anyhow::Result<i32> {
        let speed = speed(number);
        let header = HeaderBytes::new(Some(WHEELS), None);
        let mut bytes = Vec::new();
        Frame {
            header: header.as_slice(),
            message: &motors(speed),
        }
        .encode(&mut bytes)?;
        self.0.send(&bytes)?;
        Ok(speed)
    }

    fn gateway(&self) -> Option<SocketAddr> {
        None
    }
}

pub(super) struct Galileo {
    socket: UdpSocket,
    id: Vec<u8>,
}

impl Galileo {
    pub(super) fn new(gateway: SocketAddr) -> anyhow::Result<Self> {
        let socket = socket(gateway)?;
        socket.send(format!("\x01udp://{gateway}/cmd_vel?token=\0").as_bytes())?;
        let mut buffer = [0; 2048];
        let length = socket.recv(&mut buffer)?;
        let reply: serde_json::Value = serde_json::from_slice(&buffer[6..length])?;
        let id = serde_json::from_value(reply["client_id"].clone())?;
        Ok(Self { socket, id })
    }
}

impl Way for Galileo {
    fn name(&self) -> &'static str {
        "Galileo"
    }

    fn command(&mut self, number: i32) -> anyhow::Result<i32> {
        let speed = speed(number);
        let text = json!({ "linear": { "x": f64::from(speed) / 1000.0 } }).to_string();
        let frame = [&[2], &self.id[..], &[1], text.as_bytes()].concat();
        self.socket.send(&frame)?;
        Ok(speed)
    }

    fn gateway(&self) -> Option<SocketAddr> {
        self.socket.peer_addr().ok()
    }
}

pub(super) struct Rosbridge(WebSocket<TcpStream>);

impl Rosbridge {
    pub(super) fn new(gateway: SocketAddr) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(gateway)?;
        stream.set_nodelay(true)?;
        // The default is cleared before each read, and larger than the cache of a core.
        let config = WebSocketConfig::default().read_buffer_size(4096);
        let url = format!("ws://{gateway}/");
        let (link, _) = tungstenite::client::client_with_config(url, stream, Some(config))
            .map_err(|error| anyhow::anyhow!("{error}"))?;
        link.get_ref().set_nonblocking(true)?;
        Ok(Self(link))
    }
}

impl Way for Rosbridge {
    fn name(&self) -> &'static str {
        "rosbridge"
    }

    fn command(&mut self, number: i32) -> anyhow::Result<i32> {
        let speed = speed(number);
        let msg = json!({ "linear": { "x": f64::from(speed) / 1000.0 } });
        let text = json!({ "op": "publish", "topic": "/cmd_vel", "msg": msg }).to_string();
        self.0.send(text.into())?;
        // Answers pings; there is nothing else to read.
        if let Ok(tungstenite::Message::Close(reason)) = self.0.read() {
            anyhow::bail!("the gateway has closed the connection: {reason:?}");
        }
        Ok(speed)
    }

    fn gateway(&self) -> Option<SocketAddr> {
        self.0.get_ref().peer_addr().ok()
    }
}

pub(super) struct JsonRelay {
    socket: UdpSocket,
    commands: u32,
}

impl JsonRelay {
    pub(super) fn new(gateway: SocketAddr) -> anyhow::Result<Self> {
        let relay = Self {
            socket: socket(gateway)?,
            commands: 0,
        };
        relay.send(
            "register",
            json!({"client_type": "control", "client_id": "bench"}),
        )?;
        Ok(relay)
    }

    fn send(&self, kind: &str, data: serde_json::Value) -> anyhow::Result<()> {
        let text = json!({ "type": kind, "data": data }).to_string();
        self.socket.send(text.as_bytes())?;
        Ok(())
    }
}

impl Way for JsonRelay {
    fn name(&self) -> &'static str {
        "JSON relay"
    }

    fn command(&mut self, number: i32) -> anyhow::Result<i32> {
        self.commands += 1;
        if self.commands.is_multiple_of(HEARTBEAT) {
            self.send(
                "heartbeat",
                json!({"client_type": "control", "client_id": "bench", "timestamp": 1}),
            )?;
        }
        let (word, speed) = match number % 2 {
            0 => ("forward", 200),
            _ => ("backward", -200),
        };
        self.send(
            "control_command",
            json!({"command": word, "timestamp": number}),
        )?;
        Ok(speed)
    }

    fn gateway(&self) -> Option<SocketAddr> {
        self.socket.peer_addr().ok()
    }
}

pub(super) struct RflySim(UdpSocket);

impl RflySim {
    pub(super) fn new(gateway: SocketAddr) -> anyhow::Result<Self> {
        let vehicle = Self(socket(gateway)?);
        vehicle.send(9, 1.0)?;
        Ok(vehicle)
    }

    fn send(&self, mode: i32, first: f32) -> anyhow::Result<()> {
        let mut bytes = 1_234_567_890_i32.to_le_bytes().to_vec();
        bytes.extend(mode.to_le_bytes());
        bytes.extend(
            [first, 0.0, 0.0, 0.0]
                .iter()
                .flat_map(|it: &f32| it.to_le_bytes()),
        );
        self.0.send(&bytes)?;
        Ok(())
    }
}

impl Way for RflySim {
    fn name(&self) -> &'static str {
        "RflySim"
    }

    fn command(&mut self, number: i32) -> anyhow::Result<i32> {
        let speed = speed(number);
        self.send(1, speed as f32 / 1000.0)?;
        Ok(speed)
    }

    fn gateway(&self) -> Option<SocketAddr> {
        self.0.peer_addr().ok()
    }
}

pub(super) struct Apollo {
    socket: UdpSocket,
    last_id: u32,
}

impl Apollo {
    pub(super) fn new(gateway: SocketAddr) -> anyhow::Result<Self> {
        let socket = socket(gateway)?;
        Ok(Self { socket, last_id: 0 })
    }
}

impl Way for Apollo {
    fn name(&self) -> &'static str {
        "Apollo (raw)"
    }

    fn command(&mut self, number: i32) -> anyhow::Result<i32> {
        let speed = speed(number);
        self.last_id += 1;
        let frames = split(
            Format::default(),
            "amber.2.0",
            self.last_id,
            0.0,
            motors(speed),
        );
        for frame in frames? {
            self.socket.send(&frame)?;
        }
        Ok(speed)
    }

    fn gateway(&self) -> Option<SocketAddr> {
        self.socket.peer_addr().ok()
    }
}
