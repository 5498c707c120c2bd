//! A fake mediator with fake devices around a driver that moves the robot. The clock advances only
//! when all tasks are idle. IO.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use amber_driver::proto::{
    DeviceMessage, DriverHdr, FrameCodec, MsgType, Packet, hokuyo, location, mediator, roboclaw,
    robot,
};
use amber_driver::{Driver, serve_on};
use amber_proto::DeviceType;
use amber_values::{MapPose, WheelSpeeds};
use bytes::BytesMut;
use prost::Message;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, ReadHalf, WriteHalf, duplex, split};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, interval, sleep, timeout};
use tokio_util::codec::Decoder;

/// The devices around the driver.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) laser_on: bool,
    pub(crate) wheels_on: bool,
    /// The distance of a wall across the way.
    pub(crate) ahead_mm: i32,
    pub(crate) pose: Option<MapPose>,
    /// The last command to the wheels, which they follow at once.
    pub(crate) speeds: WheelSpeeds,
    pub(crate) commands: u64,
    /// What the robot device says, if there is one.
    pub(crate) shape: Option<robot::Shape>,
    /// The last health report.
    pub(crate) trouble: Option<String>,
    /// Whether the driver has subscribed to scans.
    pub(crate) is_subscribed: bool,
}

/// The other end of the driver.
pub(crate) struct Fake {
    world: Arc<Mutex<World>>,
    to_driver: mpsc::UnboundedSender<Packet>,
    heard: mpsc::UnboundedReceiver<Vec<u8>>,
}

/// Runs a driver during the scenario, then shuts it down.
pub(crate) async fn run(driver: impl Driver, scenario: impl AsyncFnOnce(&mut Fake)) {
    let (ours, theirs) = duplex(64 * 1024);
    let (reader, writer) = split(theirs);
    let (from_driver, to_driver) = split(ours);
    let (frames, outgoing) = mpsc::unbounded_channel();
    let (hear, heard) = mpsc::unbounded_channel();
    let world = Arc::new(Mutex::new(World {
        laser_on: true,
        wheels_on: true,
        ahead_mm: 4_000,
        pose: Some(MapPose::new(1.0, 1.0, 0.0)),
        speeds: WheelSpeeds::STOP,
        commands: 0,
        shape: None,
        trouble: None,
        is_subscribed: false,
    }));
    let (end_of_stdin, ending) = oneshot::channel();
    tokio::spawn(write(to_driver, outgoing, ending));
    let reading = tokio::spawn(read(from_driver, world.clone(), frames.clone(), hear));
    let scanning = tokio::spawn(scan(world.clone(), frames.clone()));
    let mut fake = Fake {
        world,
        to_driver: frames,
        heard,
    };
    let (served, ()) = tokio::join!(serve_on(driver, reader, writer), async move {
        scenario(&mut fake).await;
        scanning.abort();
        end_of_stdin.send(()).unwrap();
    });
    reading.abort();
    served.unwrap();
}

impl Fake {
    pub(crate) fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap()
    }

    /// Sends a message from client 7.
    pub(crate) fn tell(&self, message: &[u8]) {
        self.tell_as(7, message);
    }

    /// Sends a message from a client.
    pub(crate) fn tell_as(&self, client: i32, message: &[u8]) {
        let header = DriverHdr {
            client_ids: vec![client],
            ..DriverHdr::default()
        };
        let message = message.to_vec().into();
        let _ = self.to_driver.send(Packet { header, message });
    }

    /// Sends a message from client 7 and returns the next one to clients.
    pub(crate) async fn ask(&mut self, message: &[u8]) -> Vec<u8> {
        self.tell(message);
        self.hear().await
    }

    /// The driver's next message to clients.
    pub(crate) async fn hear(&mut self) -> Vec<u8> {
        let heard = timeout(Duration::from_secs(5), self.heard.recv()).await;
        heard.expect("no message from the driver").unwrap()
    }

    /// Waits for a condition, and returns the time until then.
    pub(crate) async fn until(&self, what: &str, is_so: impl Fn(&World) -> bool) -> Duration {
        let started = Instant::now();
        while !is_so(&self.world()) {
            assert!(
                started.elapsed() < Duration::from_secs(30),
                "{what}: {:?}",
                self.world()
            );
            sleep(Duration::from_millis(1)).await;
        }
        started.elapsed()
    }
}

async fn write(
    mut to_driver: WriteHalf<DuplexStream>,
    mut frames: mpsc::UnboundedReceiver<Packet>,
    mut ending: oneshot::Receiver<()>,
) {
    loop {
        let frame = tokio::select! {
            biased;
            _ = &mut ending => break,
            packet = frames.recv() => packet.unwrap().encode().unwrap(),
        };
        to_driver.write_all(&frame).await.unwrap();
    }
    to_driver.shutdown().await.unwrap();
}

async fn scan(world: Arc<Mutex<World>>, frames: mpsc::UnboundedSender<Packet>) {
    let mut turns = interval(Duration::from_millis(100));
    loop {
        turns.tick().await;
        let ahead_mm = {
            let world = world.lock().unwrap();
            if !world.laser_on || !world.is_subscribed {
                continue;
            }
            world.ahead_mm
        };
        let message = hokuyo::DriverMsg {
            scan: Some(wall(ahead_mm)),
            ack_num: Some(0),
            ..hokuyo::DriverMsg::data()
        };
        let _ = frames.send(from_device(DeviceType::HOKUYO, &message));
    }
}

/// A scan of a wall across the way.
pub(crate) fn wall(ahead_mm: i32) -> hokuyo::Scan {
    let angles = (-240..=240).map(|half| f64::from(half) / 2.0);
    let distance = |angle_deg: f64| {
        let cos = angle_deg.to_radians().cos();
        let mm = f64::from(ahead_mm) / cos;
        if cos > 0.05 && mm < 5_600.0 {
            mm as i32
        } else {
            0
        }
    };
    hokuyo::Scan {
        distances: angles.clone().map(distance).collect(),
        angles: angles.collect(),
    }
}

fn from_device(device: DeviceType, message: &impl Message) -> Packet {
    let header = DriverHdr {
        device_type: Some(device.0),
        device_id: Some(0),
        ..DriverHdr::default()
    };
    let message = message.encode_to_vec().into();
    Packet { header, message }
}

async fn read(
    mut from_driver: ReadHalf<DuplexStream>,
    world: Arc<Mutex<World>>,
    frames: mpsc::UnboundedSender<Packet>,
    hear: mpsc::UnboundedSender<Vec<u8>>,
) {
    let mut input = BytesMut::new();
    loop {
        while let Some(packet) = FrameCodec.decode(&mut input).unwrap() {
            if !packet.header.client_ids.is_empty() {
                let _ = hear.send(packet.message.to_vec());
                continue;
            }
            let device = packet.header.device_type.map(DeviceType);
            let answer = answer(&mut world.lock().unwrap(), device, &packet.message);
            if let Some(answer) = answer {
                let _ = frames.send(answer);
            }
        }
        if from_driver.read_buf(&mut input).await.unwrap_or(0) == 0 {
            return;
        }
    }
}

/// The reaction of a device to a message of the driver.
fn answer(world: &mut World, device: Option<DeviceType>, bytes: &[u8]) -> Option<Packet> {
    match device {
        Some(DeviceType::ROBOCLAW) => {
            let asked = roboclaw::DriverMsg::decode(bytes).unwrap();
            if let Some(command) = asked.motors_command {
                world.speeds = command.into();
                world.commands += 1;
            }
            asked.current_speed_request.filter(|_| world.wheels_on)?;
            let answer = roboclaw::DriverMsg {
                current_speed: Some(world.speeds.into()),
                ack_num: asked.syn_num,
                ..roboclaw::DriverMsg::data()
            };
            Some(from_device(DeviceType::ROBOCLAW, &answer))
        }
        Some(DeviceType::HOKUYO) => {
            let asked = hokuyo::DriverMsg::decode(bytes).unwrap();
            world.is_subscribed |= asked.kind() == Some(MsgType::Subscribe);
            None
        }
        Some(DeviceType::LOCATION) => {
            let asked = location::DriverMsg::decode(bytes).unwrap();
            asked.get_location?;
            let answer = location::DriverMsg {
                current_location: Some(world.pose?.into()),
                ack_num: asked.syn_num,
                ..location::DriverMsg::data()
            };
            Some(from_device(DeviceType::LOCATION, &answer))
        }
        Some(DeviceType::ROBOT) => {
            let asked = robot::DriverMsg::decode(bytes).unwrap();
            let is_asked = asked.get_shape() || asked.kind() == Some(MsgType::Subscribe);
            let answer = robot::DriverMsg {
                shape: Some(world.shape.clone().filter(|_| is_asked)?),
                ack_num: Some(asked.syn_num.unwrap_or(0)),
                ..robot::DriverMsg::data()
            };
            Some(from_device(DeviceType::ROBOT, &answer))
        }
        None => {
            let message = mediator::DriverMsg::decode(bytes).unwrap();
            if let Some(health) = message.health {
                world.trouble = health.trouble().unwrap();
            }
            None
        }
        Some(_) => None,
    }
}
