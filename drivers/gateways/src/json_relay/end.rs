//! Both ends of the JSON relay at a foreign server: Amber's robot, or a control for foreign robots
//! that Amber's clients see as wheels. PURE.

use std::net::SocketAddr;
use std::time::Duration;

use amber_proto::{ClientId as AmberClient, Device};
use amber_robot::controls::{Controls, Seat};
use amber_robot::limits::MOTION_LIFE;
use amber_robot::pictures::PictureWish;
use amber_robot::robot::{Measurement, RobotSetup, Topic, User};
use amber_values::WheelSpeeds;

use super::codec::{ClientId, Message, Role, Secret};
use super::drive::{Driving, Speeds, nearest};
use super::image::{self, Image, Reassembly};
use super::limits::{BEAT_PERIOD, COMMAND_PERIOD, REGISTER_PERIOD, USUAL_MTU};
use super::pacing::Pacing;
use super::pictures::{Joining, ShownImages, for_amber, seconds};
use crate::shared::clock::Now;
use crate::shared::event::{Asked, Emulated, Event};
use crate::shared::machine::{
    Cast, Datagram, Machine, Output, Outputs, Session, Socket, local_address,
};

const SOCKET: Socket = Socket(0);
const USER: User = User(1);

/// The configuration of an end.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The foreign server.
    pub server: SocketAddr,
    /// Our name there.
    pub id: ClientId,
    /// A secret, if the server is a gateway of Amber that requires one.
    pub secret: Option<Secret>,
    /// The end of the relay.
    pub part: Part,
    /// The longest datagram with an image, in bytes.
    pub mtu: usize,
    /// The pictures of the camera that the server gets; only of a robot.
    pub pictures: Option<PictureWish>,
    /// The camera that shows the images of the server; only of a control.
    pub show_images_as: Option<Device>,
}

/// The end of the relay.
#[derive(Clone, Copy, Debug)]
pub enum Part {
    /// Amber's robot follows the commands of the server.
    Robot(RobotSetup, Seat, Speeds),
    /// Amber's clients send commands through these emulated wheels.
    Control(Device),
}

impl Settings {
    /// The usual settings.
    pub fn new(server: SocketAddr, id: ClientId, part: Part) -> Self {
        Self {
            server,
            id,
            secret: None,
            part,
            mtu: USUAL_MTU,
            pictures: None,
            show_images_as: None,
        }
    }
}

/// The session machine of an end.
#[derive(Debug)]
pub struct End {
    settings: Settings,
    side: Side,
    images: Reassembly,
    joining: Joining,
    pacing: Pacing,
    shown: ShownImages,
    registered: Option<Duration>,
    beaten: Option<Duration>,
    heard: Option<Duration>,
}

#[derive(Debug)]
enum Side {
    Robot(Box<Driving>),
    Control(Wheels),
}

/// The emulated wheels.
#[derive(Debug)]
struct Wheels {
    device: Device,
    controls: Controls<AmberClient>,
    speeds: WheelSpeeds,
    sent: Option<Duration>,
}

impl End {
    /// An end that is not registered yet.
    pub fn new(settings: Settings) -> Self {
        let side = match settings.part {
            Part::Robot(robot, seat, speeds) => {
                Side::Robot(Box::new(Driving::new(robot, seat, speeds)))
            }
            Part::Control(device) => Side::Control(Wheels {
                device,
                controls: Controls::new(Seat::Exclusive),
                speeds: WheelSpeeds::STOP,
                sent: None,
            }),
        };
        Self {
            settings,
            side,
            images: Reassembly::default(),
            joining: Joining::default(),
            pacing: Pacing::default(),
            shown: ShownImages::default(),
            registered: None,
            beaten: None,
            heard: None,
        }
    }

    fn role(&self) -> Role {
        match self.side {
            Side::Robot(_) => Role::Robot,
            Side::Control(_) => Role::Control,
        }
    }

    fn send(&self, message: &Message, out: &mut Outputs) {
        out.send(SOCKET, self.settings.server, message.encode());
    }

    /// Registers, and shows that we are still there.
    fn greet(&mut self, now: Now, out: &mut Outputs) {
        if is_due(now, self.registered, REGISTER_PERIOD) {
            self.registered = Some(now.elapsed);
            self.beaten = Some(now.elapsed);
            let register = Message::Register {
                client_type: self.role(),
                client_id: self.settings.id.clone(),
                secret: self.settings.secret.clone(),
            };
            self.send(&register, out);
        } else if is_due(now, self.beaten, BEAT_PERIOD) {
            self.beaten = Some(now.elapsed);
            let heartbeat = Message::Heartbeat {
                client_type: self.role(),
                client_id: self.settings.id.clone(),
                timestamp: now.unix.as_secs(),
            };
            self.send(&heartbeat, out);
        }
    }

    /// Sends the commands that are due.
    fn drive(&mut self, now: Now, out: &mut Outputs) {
        let wheels = match &mut self.side {
            Side::Robot(driving) => return driving.settle(now, out),
            Side::Control(wheels) => wheels,
        };
        while let Some((_, speeds)) = wheels.controls.poll(now.elapsed) {
            wheels.speeds = speeds;
        }
        let Some(command) = nearest(wheels.speeds) else {
            return;
        };
        if is_due(now, wheels.sent, COMMAND_PERIOD) {
            wheels.sent = Some(now.elapsed);
            let timestamp = now.unix.as_secs();
            self.send(&Message::ControlCommand { command, timestamp }, out);
        }
    }

    fn image_message(&mut self, arrived: Now, message: Message, out: &mut Outputs) {
        let (now, server) = (arrived.elapsed, self.settings.server);
        let image = match message {
            Message::ImageData { image, timestamp } => Image::whole(image, timestamp),
            Message::ImageFragment {
                sequence,
                total,
                image,
                timestamp,
            } => {
                let before = self.images.abandoned();
                let image = self
                    .images
                    .handle_fragment(now, server, sequence, total, image, timestamp);
                for _ in before..self.images.abandoned() {
                    out.tally.dropped(now, "incomplete image", server);
                }
                let Some(image) = image else {
                    return;
                };
                image
            }
            _ => return,
        };
        match image.decode() {
            Ok(file) => {
                let timestamp = image.timestamps.first().copied().unwrap_or_default();
                if let Some(device) = self.settings.show_images_as
                    && let Some(picture) = self.shown.next(arrived, "", &file)
                {
                    out.push(Output::Show(device, Measurement::Picture(picture)));
                }
                for piece in for_amber(&server.to_string(), timestamp, file) {
                    out.push(Output::Image(piece));
                }
            }
            Err(_) => out.tally.bad(now, "image is not base64", server),
        }
    }

    /// Sends an image of Amber to the server.
    fn send_image(&mut self, now: Now, file: &[u8], timestamp: u64, out: &mut Outputs) {
        match image::messages(file, timestamp, self.settings.mtu) {
            Ok(messages) => {
                let messages = messages.iter();
                let image = messages.map(|message| message.encode().into());
                if self.pacing.push(image.collect()) {
                    let to = self.settings.server;
                    out.tally
                        .dropped(now.elapsed, "image replaced by a newer one", to);
                }
            }
            Err(error) => out.tally.dropped(now.elapsed, "image too long", error),
        }
    }

    fn send_images(&mut self, now: Now, out: &mut Outputs) {
        for datagram in self.pacing.poll(now.elapsed) {
            out.send(SOCKET, self.settings.server, datagram);
        }
    }
}

impl Machine for End {
    fn protocol(&self) -> &'static str {
        "json-relay"
    }

    fn emulated(&self) -> Vec<(Device, Emulated)> {
        match &self.side {
            Side::Robot(_) => Vec::new(),
            Side::Control(wheels) => {
                let camera = self.settings.show_images_as;
                let camera = camera.map(|device| (device, Emulated::Camera));
                let wheels = (wheels.device, Emulated::Wheels);
                [wheels].into_iter().chain(camera).collect()
            }
        }
    }

    fn start(&mut self, now: Now, out: &mut Outputs) {
        let local = local_address([self.settings.server.ip()]);
        out.push(Output::Bind(SOCKET, local, Cast::Unicast));
        if let Side::Robot(_) = self.side {
            out.push(Output::Open(USER, Some(self.settings.server)));
        }
        if let (Part::Robot(robot, ..), Some(wish)) = (self.settings.part, self.settings.pictures) {
            out.push(Output::Watch(Topic::Pictures(robot.camera, wish)));
        }
        self.greet(now, out);
    }

    fn handle_datagram(&mut self, now: Now, datagram: Datagram<'_>, out: &mut Outputs) {
        let from = datagram.from;
        if from != self.settings.server {
            return out.tally.dropped(now.elapsed, "not from the server", from);
        }
        let message = match Message::decode(datagram.bytes) {
            Ok(message) => message,
            Err(error) => return out.tally.bad(now.elapsed, error.reason(), from),
        };
        self.heard = Some(now.elapsed);
        match (&mut self.side, message) {
            (Side::Robot(driving), Message::ControlCommand { command, timestamp }) => {
                if driving.is_duplicate(now, USER, command, timestamp) {
                    out.tally.dropped(now.elapsed, "duplicate command", from);
                } else if let Err(reason) = driving.command(now, USER, command, out) {
                    out.tally.dropped(now.elapsed, reason, from);
                }
            }
            (
                Side::Control(_),
                message @ (Message::ImageData { .. } | Message::ImageFragment { .. }),
            ) => {
                self.image_message(now, message, out);
            }
            (_, Message::Ack { .. }) => {}
            (_, Message::Error { reason, .. }) => {
                tracing::debug!(server = %from, "the server refuses a message: {reason}");
                (out.tally).dropped(now.elapsed, "message refused by the server", from);
            }
            _ => out.tally.dropped(now.elapsed, "unexpected message", from),
        }
    }

    fn handle_event(&mut self, now: Now, event: Event, out: &mut Outputs) {
        match (&mut self.side, event) {
            (Side::Control(wheels), Event::Asked(_, Asked::Drive(client, speeds))) => {
                let driven = wheels
                    .controls
                    .drive(now.elapsed, client, speeds, MOTION_LIFE);
                if driven.is_err() {
                    out.tally
                        .dropped(now.elapsed, "another client drives", client);
                }
            }
            (Side::Control(wheels), Event::Asked(_, Asked::ClientGone(client))) => {
                wheels.controls.release(client);
            }
            (Side::Robot(_), Event::Image(piece)) => {
                let timestamp = piece.timestamp.unwrap_or(now.unix.as_secs());
                match self.joining.push(&piece) {
                    Ok(None) => {}
                    Ok(Some(file)) => self.send_image(now, &file, timestamp, out),
                    Err(_) => {
                        out.tally
                            .dropped(now.elapsed, "image piece out of order", "a client");
                    }
                }
            }
            (Side::Robot(_), Event::Measured(_, Measurement::Picture(picture))) => {
                let timestamp = seconds(&picture).unwrap_or(now.unix.as_secs());
                self.send_image(now, picture.data(), timestamp, out);
            }
            _ => {}
        }
        self.drive(now, out);
        self.send_images(now, out);
    }

    fn handle_timeout(&mut self, now: Now, out: &mut Outputs) {
        self.images.handle_timeout(now.elapsed);
        self.greet(now, out);
        self.drive(now, out);
        self.send_images(now, out);
    }

    fn next_timeout(&self) -> Option<Duration> {
        let driving = match &self.side {
            Side::Robot(driving) => driving.next_due(),
            Side::Control(wheels) => {
                let command = nearest(wheels.speeds).and(wheels.sent);
                let command = command.map(|sent| sent + COMMAND_PERIOD);
                wheels.controls.next_due().into_iter().chain(command).min()
            }
        };
        let beat = self.beaten.map(|beaten| beaten + BEAT_PERIOD);
        let register = self.registered.map(|at| at + REGISTER_PERIOD);
        let others = [driving, self.pacing.next_due(), self.images.next_timeout()];
        others.into_iter().chain([beat, register]).flatten().min()
    }

    fn stop(&mut self, now: Now, out: &mut Outputs) {
        if let Side::Robot(driving) = &mut self.side {
            driving.release(now, USER, out);
        }
    }

    fn knows(&self, _socket: Socket, from: SocketAddr) -> bool {
        from == self.settings.server
    }

    fn sessions(&self, now: Now) -> Vec<Session> {
        let heard = self.heard.map(|heard| Session {
            address: self.settings.server,
            purpose: "server".to_owned(),
            age: now.elapsed,
            silence: now.since(heard),
            user: matches!(self.side, Side::Robot(_)).then_some(USER),
            drives: match &self.side {
                Side::Robot(driving) => driving.holder().is_some(),
                Side::Control(_) => false,
            },
        });
        heard.into_iter().collect()
    }

    fn takes_images(&self) -> bool {
        matches!(self.side, Side::Robot(_))
    }
}

fn is_due(now: Now, last: Option<Duration>, period: Duration) -> bool {
    last.is_none_or(|last| now.since(last) >= period)
}

#[cfg(test)]
mod tests {
    use amber_proto::{DeviceType, gateway::RelayImage};
    use bytes::Bytes;

    use super::*;
    use crate::testing::Bench;
    use crate::testing::robot;

    const SERVER: &str = "10.0.0.9:8080";
    const WHEELS: Device = Device::new(DeviceType::ROBOCLAW, 1);

    fn end(part: Part) -> Bench<End> {
        let id = ClientId::try_from("amber_0".to_owned()).unwrap();
        let settings = Settings::new(SERVER.parse().unwrap(), id, part);
        Bench::new(End::new(settings))
    }

    fn robot_end() -> Bench<End> {
        end(Part::Robot(robot(), Seat::Exclusive, Speeds::default()))
    }

    fn texts(bench: &mut Bench<End>) -> Vec<String> {
        let sent = bench.take_sent().into_iter();
        let text = |bytes: Bytes| String::from_utf8(bytes.to_vec()).unwrap();
        sent.map(|(to, bytes)| {
            assert_eq!(to.to_string(), SERVER);
            text(bytes)
        })
        .collect()
    }

    #[test]
    fn it_registers_every_30_s_and_beats_every_5_s() {
        let mut bench = robot_end();
        bench.advance_ms(65_000);
        let texts = texts(&mut bench);
        let registrations = texts.iter().filter(|text| text.contains("register"));
        assert_eq!(registrations.count(), 3);
        assert_eq!(texts.len(), 14);
        assert_eq!(
            texts[0],
            r#"{"type":"register","data":{"client_type":"robot","client_id":"amber_0"}}"#
        );
        assert_eq!(
            texts[1],
            r#"{"type":"heartbeat","data":{"client_type":"robot","client_id":"amber_0","timestamp":1700000005}}"#
        );
    }

    #[test]
    fn commands_of_the_server_move_the_robot() {
        let mut bench = robot_end();
        let forward = br#"{"type":"control_command","data":{"command":"forward","timestamp":1}}"#;
        bench.datagram(0, SERVER, forward);
        bench.advance_ms(1000);
        let (go, stop) = (WheelSpeeds::all(200), WheelSpeeds::STOP);
        assert_eq!(bench.take_drives(), [(0, go), (500, stop)]);
        bench.datagram(0, "10.0.0.9:8081", forward);
        bench.datagram(0, "10.0.0.8:8080", forward);
        assert_eq!(bench.count("not from the server"), 2);
        assert!(bench.take_drives().is_empty());
        bench.datagram(0, SERVER, forward);
        bench.take();
        bench.stop();
        assert_eq!(bench.take_drives(), [(1000, stop)]);
    }

    #[test]
    fn images_of_amber_clients_go_to_the_server() {
        let mut bench = robot_end();
        bench.take();
        let file: Vec<u8> = (0..10_000_u32).map(|i| i as u8).collect();
        bench.event(Event::Image(RelayImage {
            image: Some(file.clone().into()),
            ..RelayImage::default()
        }));
        bench.advance_ms(10);
        let mut images = Reassembly::default();
        let mut found = None;
        for text in texts(&mut bench) {
            assert!(text.len() <= USUAL_MTU);
            let message = Message::decode(text.as_bytes()).unwrap();
            let Message::ImageFragment {
                sequence,
                total,
                image,
                timestamp,
            } = message
            else {
                panic!("{message:?}");
            };
            let server = SERVER.parse().unwrap();
            found =
                images.handle_fragment(Duration::ZERO, server, sequence, total, image, timestamp);
        }
        assert_eq!(found.unwrap().decode().unwrap(), file);
    }

    #[test]
    fn pictures_of_the_camera_go_to_the_server_if_it_is_to_get_some() {
        let wish = PictureWish {
            period_ms: 500,
            max_width: None,
        };
        let id = ClientId::try_from("amber_0".to_owned()).unwrap();
        let part = Part::Robot(robot(), Seat::Exclusive, Speeds::default());
        let settings = Settings {
            pictures: Some(wish),
            ..Settings::new(SERVER.parse().unwrap(), id, part)
        };
        let mut bench = Bench::new(End::new(settings));
        let watch = Output::Watch(Topic::Pictures(robot().camera, wish));
        assert!(bench.take().iter().any(|(_, output)| *output == watch));
        let picture = amber_proto::camera::Picture {
            data: Some(Bytes::from_static(b"hi")),
            captured: Some(3_000_000),
            ..Default::default()
        };
        let picture = Measurement::Picture(std::sync::Arc::new(picture));
        bench.event(Event::Measured(robot().camera, picture));
        assert_eq!(
            texts(&mut bench),
            [r#"{"type":"image_data","data":{"image":"aGk=","timestamp":3}}"#]
        );
    }

    #[test]
    fn a_camera_shows_the_images_of_the_server() {
        let camera = Device::new(DeviceType::CAMERA, 1);
        let id = ClientId::try_from("amber_0".to_owned()).unwrap();
        let settings = Settings {
            show_images_as: Some(camera),
            ..Settings::new(SERVER.parse().unwrap(), id, Part::Control(WHEELS))
        };
        let mut bench = Bench::new(End::new(settings));
        let devices = [(WHEELS, Emulated::Wheels), (camera, Emulated::Camera)];
        assert_eq!(bench.machine.emulated(), devices);
        bench.take();
        // The head of a JPEG file of 320 x 240.
        let image = r#"{"type":"image_data","data":{"image":"/9j/wAAICADwAUAD","timestamp":3}}"#;
        bench.datagram(0, SERVER, image.as_bytes());
        let outputs = bench.take();
        let shown = outputs.iter().find_map(|(_, output)| match output {
            Output::Show(device, Measurement::Picture(picture)) => Some((*device, picture)),
            _ => None,
        });
        let (device, picture) = shown.unwrap();
        assert_eq!(
            (device, picture.width(), picture.height()),
            (camera, 320, 240)
        );
        assert_eq!(outputs.len(), 2, "and the subscribers of the gateway");
    }

    #[test]
    fn wheels_become_commands_every_200_ms_until_they_stop() {
        let mut bench = end(Part::Control(WHEELS));
        assert_eq!(bench.machine.emulated(), [(WHEELS, Emulated::Wheels)]);
        bench.take();
        let client = AmberClient(7);
        let drive = |speeds| Event::Asked(WHEELS, Asked::Drive(client, speeds));
        bench.event(drive(WheelSpeeds::all(300)));
        bench.advance_ms(300);
        bench.event(drive(WheelSpeeds::all(300)));
        bench.advance_ms(2000);
        let times = |bench: &mut Bench<End>| {
            let outputs = bench.take().into_iter();
            let commands = outputs.filter_map(|(at, output)| match output {
                Output::Send(_, _, bytes) => match Message::decode(&bytes).unwrap() {
                    Message::ControlCommand { command, .. } => Some((at, command)),
                    _ => None,
                },
                _ => None,
            });
            commands.collect::<Vec<_>>()
        };
        let forward = [0, 200, 400, 600].map(|at| (at, super::super::codec::Command::Forward));
        assert_eq!(times(&mut bench), forward);

        bench.event(drive(WheelSpeeds::sides(100, -100)));
        bench.event(Event::Asked(WHEELS, Asked::ClientGone(client)));
        bench.advance_ms(2000);
        assert_eq!(
            times(&mut bench),
            [(2300, super::super::codec::Command::Right)]
        );
        bench.event(drive(WheelSpeeds::all(20)));
        bench.advance_ms(2000);
        assert_eq!(times(&mut bench), []);
    }

    #[test]
    fn images_of_the_server_go_to_amber_clients() {
        let mut bench = end(Part::Control(WHEELS));
        bench.take();
        let image = br#"{"type":"image_data","data":{"image":"aGk=","timestamp":3}}"#;
        bench.datagram(0, SERVER, image);
        bench.datagram(
            0,
            SERVER,
            br#"{"type":"image_data","data":{"image":"?","timestamp":3}}"#,
        );
        assert_eq!(bench.count("image is not base64"), 1);
        let outputs: Vec<_> = bench.take().into_iter().map(|(_, output)| output).collect();
        let [Output::Image(image)] = &outputs[..] else {
            panic!("{outputs:?}");
        };
        assert_eq!(image.image.as_deref(), Some(&b"hi"[..]));
        assert_eq!((image.source(), image.timestamp()), (SERVER, 3));
    }
}
