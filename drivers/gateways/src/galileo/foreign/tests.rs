//! A foreign robot played by our own server, on one virtual clock.

use amber_proto::DeviceType;
use amber_robot::robot::UserOrder;
use amber_values::{MapPose, Scan};

use super::*;
use crate::galileo::server::{self, Server};
use crate::testing::robot;

const ROBOT: &str = "192.168.0.132:3547";

fn config() -> Config {
    Config {
        robot: ROBOT.parse().unwrap(),
        token: "28b1c5".into(),
        wheels: Some(Device::new(DeviceType::ROBOCLAW, 1)),
        location: Some(Device::new(DeviceType::LOCATION, 1)),
        scanner: Some(Device::new(DeviceType::HOKUYO, 1)),
        drive: robot().drive,
    }
}

/// The gateway with the foreign robot, and the server that plays it.
struct World {
    foreign: Foreign,
    server: Option<Server>,
    now: Now,
    /// What the clients of Amber see.
    shown: Vec<(Device, Measurement)>,
    /// What the wheels of the robot do.
    driven: Vec<WheelSpeeds>,
    connects: usize,
    unbound: usize,
    out: Outputs,
}

impl World {
    fn new() -> Self {
        Self {
            foreign: Foreign::new(config(), 1),
            server: Some(new_server()),
            now: Now::from_millis(1),
            shown: Vec::new(),
            driven: Vec::new(),
            connects: 0,
            unbound: 0,
            out: Outputs::default(),
        }
    }

    /// Passes all datagrams on until there are none.
    fn settle(&mut self) {
        while let Some(output) = self.out.take() {
            match output {
                Output::Show(device, measurement) => self.shown.push((device, measurement)),
                Output::Unbind(_) => self.unbound += 1,
                Output::Send(socket, _, bytes) => {
                    self.connects += usize::from(bytes[0] == 1);
                    // Each socket has an address of its own.
                    let port = 5_000 + u16::try_from(socket.0).unwrap();
                    let from = SocketAddr::from(([192, 168, 0, 9], port));
                    let mut replies = Outputs::default();
                    if let Some(server) = &mut self.server {
                        let datagram = Datagram {
                            socket: Socket(0),
                            from,
                            bytes: &bytes,
                        };
                        server.handle_datagram(self.now, datagram, &mut replies);
                    }
                    self.deliver(replies);
                }
                _ => {}
            }
        }
    }

    /// Delivers what the server sends.
    fn deliver(&mut self, mut replies: Outputs) {
        while let Some(output) = replies.take() {
            match output {
                Output::Send(_, to, bytes) => {
                    let datagram = Datagram {
                        socket: Socket(u32::from(to.port()) - 5_000),
                        from: ROBOT.parse().unwrap(),
                        bytes: &bytes,
                    };
                    self.foreign
                        .handle_datagram(self.now, datagram, &mut self.out);
                }
                Output::Order(_, UserOrder::Drive(_, speeds)) => self.driven.push(speeds),
                _ => {}
            }
        }
    }

    fn wait(&mut self, ms: u64) {
        for _ in 0..ms {
            self.now.elapsed += Duration::from_millis(1);
            self.foreign.handle_timeout(self.now, &mut self.out);
            self.settle();
            if let Some(server) = &mut self.server {
                let mut replies = Outputs::default();
                server.handle_timeout(self.now, &mut replies);
                self.deliver(replies);
                self.settle();
            }
        }
    }

    fn robot_measures(&mut self, device: Device, measurement: Measurement) {
        let mut replies = Outputs::default();
        let event = Event::Measured(device, measurement);
        self.server
            .as_mut()
            .unwrap()
            .handle_event(self.now, event, &mut replies);
        self.deliver(replies);
        self.settle();
    }

    fn asked(&mut self, asked: Asked) {
        let event = Event::Asked(config().wheels.unwrap(), asked);
        self.foreign.handle_event(self.now, &event, &mut self.out);
        self.settle();
    }
}

fn new_server() -> Server {
    let mut last = 0_u32;
    let ids = move || {
        last += 1;
        last.to_be_bytes()
    };
    Server::new(server::Config::new(robot()), Box::new(ids))
}

#[test]
fn all_topics_are_connected_and_stay_so() {
    let mut world = World::new();
    world.wait(30_000);
    assert_eq!(world.foreign.sessions(world.now).len(), 4);
    assert_eq!((world.connects, world.unbound), (4, 0));
}

#[test]
fn clients_of_amber_drive_the_foreign_robot() {
    let mut world = World::new();
    world.wait(300);
    world.asked(Asked::Drive(ClientId(5), WheelSpeeds::sides(100, 300)));
    assert_eq!(world.driven, [WheelSpeeds::sides(100, 300)]);
    // It is repeated for half a second, then one stop follows.
    world.wait(1_000);
    assert!((5..=7).contains(&world.driven.len()), "{:?}", world.driven);
    assert_eq!(world.driven.last(), Some(&WheelSpeeds::STOP));
    let stops = world
        .driven
        .iter()
        .filter(|it| **it == WheelSpeeds::STOP)
        .count();
    assert_eq!(stops, 1);
    world.driven.clear();
    world.wait(1_000);
    world.asked(Asked::Drive(ClientId(6), WheelSpeeds::all(-200)));
    world.asked(Asked::ClientGone(ClientId(6)));
    assert_eq!(world.driven, [WheelSpeeds::all(-200), WheelSpeeds::STOP]);
}

#[test]
fn clients_of_amber_see_what_the_robot_reports() {
    let mut world = World::new();
    world.wait(300);
    world.robot_measures(
        robot().wheels,
        Measurement::Wheels(WheelSpeeds::sides(100, 300)),
    );
    world.wait(100);
    let wheels = config().wheels.unwrap();
    let speeds = Measurement::Wheels(WheelSpeeds::sides(100, 300));
    assert_eq!(world.shown, [(wheels, speeds)]);
    world.shown.clear();
    let mut pose = MapPose::new(1.0, 2.0, 0.5);
    pose.timestamp_ms = Some(7);
    world.robot_measures(robot().location, Measurement::Pose(pose));
    assert_eq!(
        world.shown,
        [(config().location.unwrap(), Measurement::Pose(pose))]
    );
    world.shown.clear();
    let scan = Scan::new(&[-30.0, 0.0, 30.0], &[500, 0, 2_000], None).unwrap();
    world.robot_measures(robot().scanner, Measurement::Scan(scan));
    let Measurement::Scan(seen) = &world.shown[0].1 else {
        panic!("{:?}", world.shown);
    };
    for (point, (angle, distance)) in
        seen.points()
            .iter()
            .zip([(-30.0, 500), (0.0, 0), (30.0, 2_000)])
    {
        assert!((point.angle_deg - angle).abs() < 0.01, "{point:?}");
        assert_eq!(point.distance_mm, distance);
    }
}

#[test]
fn a_robot_that_restarts_is_connected_again() {
    let mut world = World::new();
    world.wait(1_000);
    world.server = Some(new_server());
    // It closes sessions that it does not know.
    world.wait(3_000);
    assert_eq!(world.foreign.sessions(world.now).len(), 4);
    assert_eq!(world.unbound, 4);
}

#[test]
fn a_silent_robot_is_tried_five_times_with_longer_and_longer_pauses() {
    let mut world = World::new();
    world.server = None;
    world.wait(5_500);
    assert_eq!((world.connects, world.unbound), (5 * 4, 4));
    world.wait(60_000);
    // 5 s of attempts, then pauses of 1, 2, 4, 8 and 16 s.
    assert_eq!(world.connects, (5 * 5 + 5) * 4);
    world.server = Some(new_server());
    world.wait(40_000);
    assert_eq!(world.foreign.sessions(world.now).len(), 4);
}

#[test]
fn at_the_end_the_robot_stops_and_the_sessions_close() {
    let mut world = World::new();
    world.wait(300);
    world.asked(Asked::Drive(ClientId(5), WheelSpeeds::all(200)));
    world.foreign.stop(world.now, &mut world.out);
    world.settle();
    assert_eq!(world.driven, [WheelSpeeds::all(200), WheelSpeeds::STOP]);
    assert_eq!(world.server.unwrap().sessions(world.now), []);
}

#[test]
fn other_addresses_are_not_the_robot() {
    let mut world = World::new();
    world.wait(300);
    let datagram = Datagram {
        socket: Socket(1),
        from: "192.168.0.133:3547".parse().unwrap(),
        bytes: b"\x02\0\0\0\x01\x08",
    };
    assert!(!world.foreign.knows(datagram.socket, datagram.from));
    world
        .foreign
        .handle_datagram(world.now, datagram, &mut world.out);
    assert_eq!(world.out.tally.count("not from the robot"), 1);
    assert_eq!(world.foreign.sessions(world.now).len(), 4);
}
