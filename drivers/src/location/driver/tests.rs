//! The driver against a fake mediator with a scanner and wheels. The filter is a real thread, so
//! the clock is real, too.

use amber_driver::devices::location;
use amber_driver::proto::{DeviceMessage, DriverHdr, FrameCodec, Packet, SynNum, hokuyo, roboclaw};
use amber_driver::serve_on;
use amber_map::{Map, MapPose, Pose, Walls};
use amber_navigation::location::Config;
use bytes::BytesMut;
use prost::Message;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::time::timeout;
use tokio_util::codec::Decoder;

use super::*;
use crate::robot_options::RobotOptions;

const PATIENCE: Duration = Duration::from_secs(30);
const CLIENT: i32 = 5;
const FLAT: &str = include_str!("../../../map/maps/flat.roson");
const START: Pose = Pose::new(3.5, -2.6, 0.3);

/// How the fake scanner behaves.
#[derive(Clone, Copy, PartialEq)]
enum Scanner {
    /// It answers, but does not publish, like a driver of the original system.
    Old,
    Silent,
}

struct Bench {
    scanner: Scanner,
    walls: Walls,
    to_driver: DuplexStream,
    from_driver: DuplexStream,
    input: BytesMut,
}

fn settings(map: Option<std::path::PathBuf>) -> Settings {
    Settings {
        map,
        config: Config::new(Pose::default()),
        robot: RobotOptions::with_central_laser().setup().unwrap(),
        external: None,
        markers: None,
    }
}

async fn serve(settings: Settings, scanner: Scanner, scenario: impl AsyncFnOnce(&mut Bench)) {
    let (to_driver, reader) = duplex(64 * 1024);
    let (writer, from_driver) = duplex(64 * 1024);
    let mut bench = Bench {
        scanner,
        walls: Walls::new(Map::flat().faces()),
        to_driver,
        from_driver,
        input: BytesMut::new(),
    };
    let stated = RobotOptions::with_central_laser().stated().unwrap();
    let driver = location::driver(LocationDriver::new(stated, settings));
    let (served, ()) = tokio::join!(serve_on(driver, reader, writer), async move {
        scenario(&mut bench).await;
    });
    served.unwrap();
}

impl Bench {
    async fn write(&mut self, header: DriverHdr, message: Vec<u8>) {
        let message = message.into();
        let frame = Packet { header, message }.encode().unwrap();
        self.to_driver.write_all(&frame).await.unwrap();
    }

    async fn tell(&mut self, message: &[u8]) {
        let header = DriverHdr {
            client_ids: vec![CLIENT],
            ..DriverHdr::default()
        };
        self.write(header, message.to_vec()).await;
    }

    /// The next message to the client. The scanner and the wheels answer meanwhile.
    async fn hear(&mut self) -> Vec<u8> {
        let hearing = async {
            loop {
                let packet = self.read().await;
                match packet.header.device_type {
                    Some(2) => self.answer_wheels(packet).await,
                    Some(4) => self.answer_scanner(packet).await,
                    _ if packet.header.client_ids == [CLIENT] => return packet.message.to_vec(),
                    // Health.
                    _ => {}
                }
            }
        };
        timeout(PATIENCE, hearing).await.expect("a message")
    }

    async fn read(&mut self) -> Packet {
        loop {
            if let Some(packet) = FrameCodec.decode(&mut self.input).unwrap() {
                return packet;
            }
            let read = self.from_driver.read_buf(&mut self.input).await.unwrap();
            assert_ne!(read, 0, "the driver has ended");
        }
    }

    async fn answer_wheels(&mut self, packet: Packet) {
        let question = roboclaw::DriverMsg::decode(packet.message).unwrap();
        if question.current_speed_request.is_some() {
            let mut answer = roboclaw::DriverMsg::data();
            answer.current_speed = Some(WheelSpeeds::STOP.into());
            answer.set_ack(question.syn());
            self.write(packet.header, answer.encode_to_vec()).await;
        }
    }

    async fn answer_scanner(&mut self, packet: Packet) {
        let question = hokuyo::DriverMsg::decode(packet.message).unwrap();
        if self.scanner == Scanner::Silent || question.get_single_scan.is_none() {
            return;
        }
        let angles: Vec<f64> = (-120..=120).map(f64::from).collect();
        let distances = angles.iter().map(|angle_deg| {
            let direction = START.heading - angle_deg.to_radians();
            let distance_m = self.walls.cast(START.at, direction, 5.6);
            distance_m.map_or(0, |distance_m| (distance_m * 1000.0).round() as i32)
        });
        let mut answer = hokuyo::DriverMsg::data();
        answer.scan = Some(hokuyo::Scan {
            distances: distances.collect(),
            angles,
        });
        answer.timestamp = Some(unix_ms());
        answer.set_ack(question.syn());
        self.write(packet.header, answer.encode_to_vec()).await;
    }

    async fn end(&mut self) {
        self.to_driver.shutdown().await.unwrap();
    }
}

/// The bytes of the original Python client, and the zeros of the original driver.
#[tokio::test]
async fn before_the_first_estimate_the_bytes_match_the_original() {
    serve(settings(None), Scanner::Silent, async |bench| {
        bench.tell(b"\x10\x01\x18\x05\xe0\x03\x01").await;
        let mut expected = b"\x10\x01\x20\x05\xea\x03\x26".to_vec();
        for tag in [0x09, 0x11, 0x19, 0x21] {
            expected.push(tag);
            expected.extend([0; 8]);
        }
        expected.extend(b"\x28\x00");
        assert_eq!(bench.hear().await, expected);
        // Without a number nobody can tell an answer from published data.
        bench.tell(b"\x10\x01\xe0\x03\x01").await;
        bench.tell(b"\x10\x01\x18\x07\xe0\x03\x01").await;
        assert_eq!(bench.hear().await[..4], b"\x10\x01\x20\x07"[..]);
        bench.end().await;
    })
    .await;
}

#[tokio::test]
async fn a_missing_map_is_used_as_soon_as_it_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("flat.roson");
    serve(settings(Some(file.clone())), Scanner::Old, async |bench| {
        let mut ask_for_the_map = async || {
            let mut question = location::DriverMsg::data();
            question.set_syn(Some(SynNum(9)));
            question.get_map = Some(true);
            bench.tell(&question.encode_to_vec()).await;
            location::DriverMsg::decode(&bench.hear().await[..]).unwrap()
        };
        for (content, part) in [
            (None, "cannot read"),
            (Some("{"), "not a .roson map"),
            (Some(FLAT), ""),
        ] {
            if let Some(content) = content {
                std::fs::write(&file, content).unwrap();
            }
            let refused = |answer: &location::DriverMsg| match &answer.map_refused {
                Some(why) => !part.is_empty() && why.contains(part),
                None => part.is_empty(),
            };
            while !refused(&ask_for_the_map().await) {
                sleep(Duration::from_millis(20)).await;
            }
        }
        bench.end().await;
    })
    .await;
}

#[tokio::test]
async fn an_uploaded_map_an_old_scanner_and_the_wheels_give_a_pose() {
    serve(settings(None), Scanner::Old, async |bench| {
        // SUBSCRIBE.
        bench.tell(b"\x10\x06").await;
        let mut upload = b"\x10\x01\x18\x06\xf2\x03".to_vec();
        let flat = FLAT.as_bytes();
        prost::encoding::encode_varint(flat.len() as u64, &mut upload);
        upload.extend(flat);
        bench.tell(&upload).await;
        let pose = loop {
            let bytes = bench.hear().await;
            // DATA with ackNum 0 and field 61.
            assert_eq!(bytes[..6], b"\x10\x01\x20\x00\xea\x03"[..]);
            let message = location::DriverMsg::decode(&bytes[..]).unwrap();
            let pose = MapPose::from(message.current_location.unwrap());
            if pose.quality > 0.9 {
                break pose;
            }
        };
        let truth = MapPose::from(START);
        let error_m = (pose.x_m - truth.x_m).hypot(pose.y_m - truth.y_m);
        assert!(error_m < 0.05, "{pose:?}");
        assert!(
            (pose.heading_rad - truth.heading_rad).abs() < 0.02,
            "{pose:?}"
        );
        let age_ms = unix_ms() - pose.timestamp_ms.unwrap();
        assert!((0..2_000).contains(&age_ms), "{age_ms}");
        // CLIENT_DIED ends the subscription; the next message is an answer.
        bench.tell(b"\x10\x04").await;
        bench.tell(b"\x10\x01\x18\x09\xe0\x03\x01").await;
        loop {
            let message = location::DriverMsg::decode(&bench.hear().await[..]).unwrap();
            if message.ack() == Some(SynNum(9)) {
                break;
            }
        }
        bench.tell(b"\x10\x01\x18\x0a\xf8\x03\x01").await;
        let message = location::DriverMsg::decode(&bench.hear().await[..]).unwrap();
        assert_eq!(message.ack(), Some(SynNum(10)), "no more poses");
        assert_eq!(message.quality.unwrap().decided, Some(true));
        bench.end().await;
    })
    .await;
}
