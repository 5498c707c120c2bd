//! The programs of the load: what they send, and what arrives at them. IO.

use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use amber_gateways::apollo::frame::Frame;
use amber_gateways::apollo::reassembly::{Outcome, Reassembly};
use amber_gateways::rflysim::codec::{
    ExternalMessage, FullEstimate, NO_COLLISION, Packet, Truth168,
};
use amber_gateways::rflysim::ports::{Port, Vehicle};
use anyhow::Context;
use serde_json::{Value, json};
use socket2::SockRef;

use super::scans::Series;
use super::{Count, FRAGMENT, IMAGE, LAST, POINTS, SESSIONS, VEHICLES};

/// A socket with a large buffer that waits for at most 100 ms.
pub(super) fn receiver(address: &str) -> anyhow::Result<UdpSocket> {
    let socket = UdpSocket::bind(address)?;
    SockRef::from(&socket).set_recv_buffer_size(8 << 20)?;
    socket.set_read_timeout(Some(Duration::from_millis(100)))?;
    Ok(socket)
}

/// Clients of Galileo on the path `scan`.
pub(super) struct Sessions(Vec<(UdpSocket, Vec<u8>)>);

impl Sessions {
    pub(super) fn open(gateway: SocketAddr) -> anyhow::Result<Self> {
        let session = |_| {
            let socket = receiver("127.0.0.1:0")?;
            socket.connect(gateway)?;
            socket.set_read_timeout(Some(Duration::from_secs(5)))?;
            socket.send(format!("\x01udp://{gateway}/scan?token=\0").as_bytes())?;
            let mut buffer = [0; 2048];
            let length = socket.recv(&mut buffer)?;
            let reply: Value = serde_json::from_slice(&buffer[6..length])?;
            let id = serde_json::from_value(reply["client_id"].clone()).context("refused")?;
            socket.set_nonblocking(true)?;
            Ok((socket, id))
        };
        Ok(Self(
            (0..SESSIONS).map(session).collect::<anyhow::Result<_>>()?,
        ))
    }

    pub(super) fn run(self, ends: &AtomicBool) -> anyhow::Result<Count> {
        const PING: Duration = Duration::from_millis(100);
        let mut series: Vec<Series> = self.0.iter().map(|_| Series::default()).collect();
        let (mut pings, mut pongs) = (0, 0);
        let (mut next, mut last) = (Instant::now(), None);
        let mut buffer = [0; 2048];
        loop {
            let now = Instant::now();
            let is_ended = ends.load(Ordering::Relaxed);
            if is_ended && now > *last.get_or_insert(now + LAST / 2) {
                break;
            }
            let is_due = !is_ended && now >= next;
            if is_due {
                next += PING;
            }
            for ((socket, id), series) in self.0.iter().zip(&mut series) {
                let send = |op| socket.send(&[&[2], &id[..], &[op]].concat());
                if is_due {
                    send(9)?;
                    pings += 1;
                }
                while let Ok(length) = socket.recv(&mut buffer) {
                    match buffer[5] {
                        9 => drop(send(10)?),
                        10 => pongs += 1,
                        1 => {
                            let scan: Value = serde_json::from_slice(&buffer[6..length])?;
                            series.take(scan["ranges"][0].as_f64());
                        }
                        other => anyhow::bail!("frame {other} of Galileo"),
                    }
                }
            }
            thread::sleep(Duration::from_millis(4));
        }
        let arrived: u64 = series.iter().map(|it| it.arrived).sum();
        let lost: u64 = series.iter().map(|it| it.lost).sum();
        anyhow::ensure!(
            series.iter().all(|it| it.arrived > 0),
            "a session without scans"
        );
        Ok(Count {
            sent: pings + arrived + lost,
            arrived: pongs + arrived,
        })
    }
}

/// A page that shows the scan.
pub(super) struct Page(tungstenite::WebSocket<TcpStream>);

impl Page {
    pub(super) fn open(gateway: SocketAddr) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(gateway)?;
        let (mut link, _) = tungstenite::client(format!("ws://{gateway}/"), stream)
            .map_err(|error| anyhow::anyhow!("{error}"))?;
        let text = json!({ "op": "subscribe", "topic": "/scan", "queue_length": 10 });
        link.send(text.to_string().into())?;
        let timeout = Some(Duration::from_millis(500));
        link.get_ref().set_read_timeout(timeout)?;
        Ok(Self(link))
    }

    pub(super) fn run(mut self, ends: &AtomicBool) -> anyhow::Result<Count> {
        let mut series = Series::default();
        while !ends.load(Ordering::Relaxed) {
            match self.0.read() {
                Ok(tungstenite::Message::Text(text)) => {
                    let message: Value = serde_json::from_str(&text)?;
                    let ranges = message["msg"]["ranges"].as_array();
                    series.take(ranges.and_then(|it| it.iter().find_map(Value::as_f64)));
                }
                Ok(_) => {}
                Err(tungstenite::Error::Io(error))
                    if error.kind() == std::io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(Count {
            sent: series.arrived + series.lost,
            arrived: series.arrived,
        })
    }
}

/// A robot and a control of the JSON relay.
pub(super) struct Images {
    robot: UdpSocket,
    control: UdpSocket,
}

impl Images {
    pub(super) fn open(gateway: SocketAddr) -> anyhow::Result<Self> {
        let images = Self {
            robot: receiver("127.0.0.1:0")?,
            control: receiver("127.0.0.1:0")?,
        };
        images.robot.connect(gateway)?;
        images.control.connect(gateway)?;
        images.say("register")?;
        Ok(images)
    }

    /// A registration or heartbeat of both.
    fn say(&self, kind: &str) -> anyhow::Result<()> {
        for (socket, role) in [(&self.robot, "robot"), (&self.control, "control")] {
            let data = json!({ "client_type": role, "client_id": "load", "timestamp": 1 });
            let text = json!({ "type": kind, "data": data }).to_string();
            socket.send(text.as_bytes())?;
        }
        Ok(())
    }

    pub(super) fn run(self, ends: &AtomicBool) -> anyhow::Result<Count> {
        const PERIOD: Duration = Duration::from_millis(100);
        /// Between two fragments, so that they fit into the usual receive buffer.
        const PAUSE: Duration = Duration::from_millis(2);
        let fragments = IMAGE.div_ceil(FRAGMENT);
        // They are made once: the load must not take the time of the gateway.
        let messages: Vec<String> = (1..=fragments)
            .map(|number| fragment(number, fragments))
            .collect();
        let control = self.control.try_clone()?;
        let stopped = Arc::new(AtomicBool::new(false));
        let told = stopped.clone();
        let receiving = thread::spawn(move || receive_images(&control, fragments as u64, &told));
        let (mut sent, mut next) = (0, Instant::now());
        while !ends.load(Ordering::Relaxed) {
            thread::sleep(next.saturating_duration_since(Instant::now()));
            next += PERIOD;
            sent += 1;
            if sent % 50 == 0 {
                self.say("heartbeat")?;
            }
            for message in &messages {
                self.robot.send(message.as_bytes())?;
                thread::sleep(PAUSE);
            }
        }
        thread::sleep(LAST / 2);
        stopped.store(true, Ordering::Relaxed);
        let arrived = receiving.join().map_err(|_| anyhow::anyhow!("images"))??;
        Ok(Count { sent, arrived })
    }
}

/// A fragment of an image of zeros, from 1.
pub(super) fn fragment(number: usize, fragments: usize) -> String {
    let bytes = FRAGMENT.min(IMAGE - (number - 1) * FRAGMENT);
    let image = "A".repeat(bytes / 3 * 4);
    let data = json!({ "sequence": number, "total": fragments, "image": image, "timestamp": 1 });
    json!({ "type": "image_fragment", "data": data }).to_string()
}

/// The number of a fragment. Reading all of it as JSON would take longer than passing it on.
fn sequence(message: &[u8]) -> Option<u64> {
    const KEY: &[u8] = b"\"sequence\":";
    const NEAR: usize = 200;
    let (first, last) = (
        &message[..NEAR.min(message.len())],
        &message[message.len().saturating_sub(NEAR)..],
    );
    [first, last].into_iter().find_map(|part| {
        let at = part.windows(KEY.len()).position(|it| it == KEY)? + KEY.len();
        let digits: Vec<u8> = part[at..]
            .iter()
            .copied()
            .take_while(u8::is_ascii_digit)
            .collect();
        String::from_utf8(digits).ok()?.parse().ok()
    })
}

/// Returns the number of whole images.
fn receive_images(socket: &UdpSocket, fragments: u64, ends: &AtomicBool) -> anyhow::Result<u64> {
    let mut buffer = vec![0; 65_536];
    let (mut whole, mut seen) = (0, 0);
    while !ends.load(Ordering::Relaxed) {
        let Ok(length) = socket.recv(&mut buffer) else {
            continue;
        };
        let sequence = sequence(&buffer[..length]).context("no fragment")?;
        // The server sends the fragments in order.
        seen = match sequence == seen + 1 {
            true => sequence,
            false => u64::from(sequence == 1),
        };
        whole += u64::from(seen == fragments && sequence == fragments);
        if seen == fragments {
            seen = 0;
        }
    }
    Ok(whole)
}

/// Messages of Apollo, until they end.
pub(super) fn receive_clouds(socket: &UdpSocket, ends: &AtomicBool) -> anyhow::Result<Count> {
    use amber_gateways::apollo::messages::PointCloud;
    let mut series = Series::default();
    let mut reassembly = Reassembly::default();
    let mut buffer = [0; 2048];
    let begin = Instant::now();
    while !ends.load(Ordering::Relaxed) {
        let Ok((length, from)) = socket.recv_from(&mut buffer) else {
            continue;
        };
        let (_, frame) = Frame::decode(&buffer[..length])?;
        let outcome = reassembly.handle_frame(begin.elapsed(), 0.0, from.ip(), &frame);
        if let Outcome::Complete(message) = outcome {
            let cloud: PointCloud = prost::Message::decode(&*message.bytes)?;
            anyhow::ensure!(
                cloud.point.len() == usize::from(POINTS),
                "points are missing"
            );
            let point = &cloud.point[0];
            series.take(Some(f64::from(point.x().hypot(point.y()))));
        }
    }
    Ok(Count {
        sent: series.arrived + series.lost,
        arrived: series.arrived,
    })
}

/// The state of all vehicles, 100 times per second.
pub(super) fn send_telemetry(
    first: u16,
    sent: &AtomicU64,
    ends: &AtomicBool,
) -> anyhow::Result<()> {
    const PERIOD: Duration = Duration::from_millis(10);
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    let mut next = Instant::now();
    let mut number = 0_u32;
    while !ends.load(Ordering::Relaxed) {
        thread::sleep(next.saturating_duration_since(Instant::now()));
        next += PERIOD;
        number += 1;
        for id in first..first + VEHICLES {
            let vehicle = Vehicle::new(id).context("no such vehicle")?;
            for packet in telemetry(vehicle, number) {
                let port = vehicle.port(packet.port());
                socket.send_to(&packet.encode(), ("127.0.0.1", port))?;
                sent.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
    Ok(())
}

pub(super) fn telemetry(vehicle: Vehicle, number: u32) -> [Packet; 3] {
    let (id, time_s) = (i32::from(vehicle.number()), f64::from(number) / 100.0);
    let north_m = f64::from(number % 1000) / 100.0;
    let truth = Truth168 {
        copter_id: id,
        vehicle_type: 3,
        reserved: 0,
        velocity_m_s: [1.0, 0.0, 0.0],
        angles_rad: [0.0; 3],
        quaternion: [1.0, 0.0, 0.0, 0.0],
        motors_rpm: [4000.0; 8],
        acceleration_m_s2: [0.0, 0.0, -9.8],
        rates_rad_s: [0.0; 3],
        time_s,
        position_m: [north_m, 0.0, -10.0],
        gps_position: [40.0, 116.0, 50.0],
    };
    let estimate = FullEstimate {
        time_boot_ms: number * 10,
        copter_id: id.unsigned_abs(),
        gps_position: [400_000_000, 1_160_000_000, 50_000],
        gps_velocity_cm_s: [100, 0, 0],
        gps_home: [400_000_000, 1_160_000_000, 40_000],
        relative_altitude_mm: 10_000,
        heading_mdeg: 0,
        satellites_visible: 12,
        fix_type: 3,
        reserved_int: 0,
        angles_rad: [0.0; 3],
        position_m: [north_m as f32, 0.0, -10.0],
        velocity_m_s: [1.0, 0.0, 0.0],
        horizontal_accuracy_m: 0.5,
        vertical_accuracy_m: 0.5,
        reserved_float: 1.0,
    };
    let message = ExternalMessage {
        copter_id: id,
        time_s,
        controls: [0.5; 8],
    };
    let packets = [
        Packet::Truth168(truth),
        Packet::FullEstimate(NO_COLLISION, estimate),
        Packet::External(message),
    ];
    debug_assert_eq!(packets[2].port(), Port::External);
    packets
}
