use amber_proto::{SynNum, drive_to_point, dummy, ninedof, roboclaw};
use amber_values::WheelSpeeds;

use super::*;
use crate::limits::{MAX_HELD, SIGN_PERIOD};

const SCANNER: Device = Device::new(DeviceType::HOKUYO, 10);
const WHEELS: Device = Device::new(DeviceType::ROBOCLAW, 10);
const OTHER: Device = Device::new(DeviceType::DUMMY, 21);
const IMU: Device = Device::new(DeviceType::NINEDOF, 10);
const TARGETS: Device = Device::new(DeviceType::DRIVE_TO_POINT, 10);
const A: i32 = 7;
const B: i32 = 8;

/// The devices of the robots r2 (ids from 10) and r3 (ids from 20), on a virtual clock.
struct World {
    far: FarDevices,
    now: Duration,
}

/// What the mediator sees: the header, and the message.
type Told = (Device, Vec<i32>, mediator::DriverMsg);

impl World {
    fn new() -> Self {
        Self::with(&[SCANNER, WHEELS, OTHER, IMU])
    }

    fn with(devices: &[Device]) -> Self {
        let robot = |name: &str, first_id| FarRobot::new(name.parse().unwrap(), first_id);
        let robots = vec![robot("r2", 10), robot("r3", 20)];
        let far = FarDevices::new("alice".parse().unwrap(), robots, devices, 1).unwrap();
        Self {
            far,
            now: Duration::ZERO,
        }
    }

    /// All devices are there.
    fn up() -> Self {
        let mut world = Self::new();
        for device in [SCANNER, WHEELS, IMU] {
            world.token(
                "r2",
                Device {
                    id: DeviceId(0),
                    ..device
                },
                true,
            );
        }
        world.token("r3", Device::new(DeviceType::DUMMY, 1), true);
        world.outputs();
        world
    }

    fn token(&mut self, robot: &str, far: Device, is_there: bool) {
        let robot = robot.parse().unwrap();
        self.far.token(self.now, &robot, far, "b1", is_there);
    }

    fn health(&mut self, far: Device, state: State, text: &str) {
        let health = Health {
            device: far.to_string(),
            state,
            text: Some(text.to_owned()),
            hint: None,
            holder: None,
            halted_by: None,
            restarts: 0,
        };
        self.far.health(&"r2".parse().unwrap(), &health);
    }

    fn send(&mut self, device: Device, client: i32, message: &impl Message) -> Vec<Output> {
        let header = header(device, &[client]);
        let message = message.encode_to_vec().into();
        self.far.packet(self.now, Packet { header, message });
        self.outputs()
    }

    fn say(&mut self, device: Device, client: i32, kind: MsgType) -> Vec<Output> {
        self.send(device, client, &mediator::DriverMsg::of_kind(kind))
    }

    fn outputs(&mut self) -> Vec<Output> {
        std::iter::from_fn(|| self.far.poll()).collect()
    }

    fn advance(&mut self, ms: u64) -> Vec<Output> {
        self.now += Duration::from_millis(ms);
        self.far.handle_timeout(self.now);
        self.outputs()
    }
}

#[test]
fn a_program_with_an_errand_gives_signs_of_life() {
    let mut world = World::with(&[WHEELS, TARGETS]);
    world.token("r2", Device::new(DeviceType::ROBOCLAW, 0), true);
    let driver = Device::new(DeviceType::DRIVE_TO_POINT, 0);
    world.token("r2", driver, true);
    let targets = |number: usize| drive_to_point::DriverMsg {
        set_targets: Some(true),
        targets: Some(drive_to_point::Targets {
            latitudes: vec![1.0; number],
            longitudes: vec![1.0; number],
            radiuses: vec![0.1; number],
        }),
        ..drive_to_point::DriverMsg::data()
    };
    let signs = |outputs: Vec<Output>| {
        let is_sign = |it: &Output| match it {
            Output::Put(letter) => letter.key.starts_with("amber/r2/operators/alice/"),
            _ => false,
        };
        outputs.iter().filter(|it| is_sign(it)).count()
    };
    world.send(TARGETS, A, &targets(1));
    world.outputs();
    let period_ms = SIGN_PERIOD.as_millis() as u64;
    assert_eq!(signs(world.advance(period_ms - 1)), 0);
    assert_eq!(world.far.next_due(), Some(SIGN_PERIOD));
    assert_eq!(signs(world.advance(1)), 1);
    assert_eq!(signs(world.advance(0)), 0);
    // A frozen process gives one for the whole time.
    assert_eq!(signs(world.advance(5_000)), 1);
    // Another client has none.
    world.send(TARGETS, B, &dummy::DriverMsg::data());
    assert_eq!(signs(world.advance(period_ms)), 1);
    world.send(TARGETS, A, &targets(0));
    assert_eq!(signs(world.advance(period_ms)), 0);
    // Its end is that of the client, too.
    world.send(TARGETS, A, &targets(1));
    assert_eq!(signs(world.advance(period_ms)), 1);
    world.say(TARGETS, A, MsgType::ClientDied);
    assert_eq!(signs(world.advance(period_ms)), 0);
}

/// The frames among outputs.
fn told(outputs: &[Output]) -> Vec<Told> {
    let read = |output: &Output| {
        let (Output::Frame(packet) | Output::Data(packet)) = output else {
            return None;
        };
        let message = mediator::DriverMsg::decode(packet.message.clone()).unwrap();
        let device = device_of(&packet.header).unwrap();
        Some((device, packet.header.client_ids.clone(), message))
    };
    outputs.iter().filter_map(read).collect()
}

/// Devices that are reported as dead, with the reason.
fn deaths(outputs: &[Output]) -> Vec<(Device, String)> {
    let dead = |(device, clients, message): Told| {
        assert!(clients.is_empty() || message.kind() != Some(MsgType::DriverDied));
        let why = message.unavailable?.message?;
        Some((device, why))
    };
    told(outputs).into_iter().filter_map(dead).collect()
}

fn troubles(outputs: &[Output]) -> Vec<(Device, Option<String>)> {
    let health = |(device, _, message): Told| Some((device, message.health?.text));
    told(outputs).into_iter().filter_map(health).collect()
}

fn status(number: u32) -> dummy::DriverMsg {
    dummy::DriverMsg {
        get_status: Some(true),
        syn_num: Some(number),
        ..dummy::DriverMsg::data()
    }
}

fn drive() -> roboclaw::DriverMsg {
    roboclaw::DriverMsg {
        motors_command: Some(WheelSpeeds::all(200).into()),
        ..roboclaw::DriverMsg::data()
    }
}

#[test]
fn ids_say_to_which_robot_a_device_belongs() {
    let world = World::new();
    let far = world.far.far();
    let far: Vec<_> = far
        .map(|(robot, far, local)| format!("{robot} {far} {local}"))
        .collect();
    assert_eq!(
        far,
        [
            "r2 ninedof:0 ninedof:10",
            "r2 roboclaw:0 roboclaw:10",
            "r2 hokuyo:0 hokuyo:10",
            "r3 dummy:1 dummy:21",
        ]
    );
    let robots = vec![FarRobot::new("r2".parse().unwrap(), 10)];
    let low = Device::new(DeviceType::HOKUYO, 9);
    let refused = FarDevices::new("alice".parse().unwrap(), robots, &[low], 1);
    assert_eq!(refused.unwrap_err(), low);
}

#[test]
fn requests_and_answers_pass_as_they_are() {
    let mut world = World::up();
    let sent = world.send(OTHER, A, &status(77));
    let [Output::Token(token), Output::Ask(number, letter)] = &sent[..] else {
        panic!("{sent:?}");
    };
    assert!(token.starts_with("amber/r3/operators/alice/"), "{token}");
    assert_eq!(letter.key, "amber/r3/dummy/1/call/alice");
    assert_eq!(letter.message, status(77).encode_to_vec());
    assert!(token.ends_with(&format!("{:016x}", letter.stamp.instance)));
    let answer = Bytes::from_static(b"answer");
    world.far.answer(*number, Some(Ok(answer.clone())));
    let header = header(OTHER, &[A]);
    let packet = Packet {
        header,
        message: answer,
    };
    assert_eq!(world.outputs(), [Output::Frame(packet)]);

    // The same client has the same token, another one has its own.
    let sent = world.send(OTHER, A, &status(78));
    assert!(matches!(&sent[..], [Output::Ask(2, it)] if it.stamp.sequence == 2));
    let sent = world.send(OTHER, B, &status(78));
    assert!(matches!(&sent[..], [Output::Token(it), Output::Ask(3, _)] if it != token));
    // The mediator asks whether the process lives.
    let ping = mediator::DriverMsg::of_kind(MsgType::Ping).encode_to_vec();
    let ping = Packet {
        header: DriverHdr::default(),
        message: ping.into(),
    };
    world.far.packet(world.now, ping);
    assert!(matches!(&world.outputs()[..], [Output::Frame(_)]));
}

#[test]
fn what_moves_the_robot_is_numbered_and_not_late() {
    let mut world = World::up();
    let sent = world.send(WHEELS, A, &drive());
    let [Output::Token(token), Output::Put(letter)] = &sent[..] else {
        panic!("{sent:?}");
    };
    assert_eq!(letter.key, "amber/r2/roboclaw/0/drive/alice");
    assert!(letter.moves && letter.stamp.sequence == 1);
    // With a number, the client learns that it is refused.
    let mut asks = drive();
    asks.syn_num = Some(5);
    let mut bytes = asks.encode_to_vec();
    let mut wants = mediator::DriverMsg::data();
    wants.want_outcome = Some(true);
    bytes.extend(wants.encode_to_vec());
    let header = header(WHEELS, &[A]);
    let message = bytes.into();
    world.far.packet(world.now, Packet { header, message });
    let sent = world.outputs();
    let [Output::Ask(number, letter)] = &sent[..] else {
        panic!("{sent:?}");
    };
    assert!(letter.moves && letter.key.contains("/drive/"));
    let occupied = Problem::new(Kind::Occupied, "another operator drives roboclaw:0");
    world.far.answer(*number, Some(Err(occupied)));
    let answers = told(&world.outputs());
    let (_, clients, answer) = &answers[0];
    assert_eq!((&clients[..], answer.ack_num), (&[A][..], Some(5)));
    let refused = answer.outcome.clone().unwrap().refused.unwrap();
    assert_eq!(refused, "another operator drives roboclaw:0");

    // The client is gone.
    assert_eq!(
        world.say(WHEELS, A, MsgType::ClientDied),
        [Output::NoToken(token.clone())]
    );
}

#[test]
fn a_client_that_leaves_one_device_keeps_its_program_for_the_others() {
    let mut world = World::up();
    world.send(WHEELS, A, &drive());
    let mut scan = mediator::DriverMsg::data();
    scan.syn_num = Some(1);
    world.send(SCANNER, A, &scan);
    assert_eq!(world.say(SCANNER, A, MsgType::ClientDied), []);
    let left = world.say(WHEELS, A, MsgType::ClientDied);
    assert!(matches!(&left[..], [Output::NoToken(_)]));
}

#[test]
fn a_robot_may_limit_the_rate_for_this_operator() {
    let mut robot = FarRobot::new("r2".parse().unwrap(), 10);
    robot.own_rate = true;
    let who = "alice".parse().unwrap();
    let far = FarDevices::new(who, vec![robot], &[SCANNER], 1).unwrap();
    let mut world = World {
        far,
        now: Duration::ZERO,
    };
    let watch = world.say(SCANNER, A, MsgType::Subscribe);
    let key = "amber/r2/hokuyo/0/data/alice".to_owned();
    assert_eq!(watch, [Output::Watch(SCANNER, key)]);
}

#[test]
fn a_client_that_wants_to_know_learns_who_drives() {
    let mut world = World::up();
    let mut command = roboclaw::DriverMsg {
        motors_command: Some(WheelSpeeds::all(200).into()),
        syn_num: Some(9),
        ..roboclaw::DriverMsg::data()
    }
    .encode_to_vec();
    let wish = mediator::DriverMsg {
        want_outcome: Some(true),
        ..mediator::DriverMsg::default()
    };
    wish.encode(&mut command).unwrap();
    let header = header(WHEELS, &[A]);
    let message = command.into();
    world.far.packet(world.now, Packet { header, message });
    let sent = world.outputs();
    let Some(Output::Ask(number, _)) = sent.last() else {
        panic!("{sent:?}");
    };
    let why = "occupied by bob, free in 0.6 s";
    let problem = Problem::new(Kind::Occupied, why);
    world.far.answer(*number, Some(Err(problem)));
    let told = world.outputs();
    let [Output::Frame(packet)] = &told[..] else {
        panic!("{told:?}");
    };
    let told = mediator::DriverMsg::decode(packet.message.clone()).unwrap();
    assert_eq!(told.ack(), Some(SynNum(9)));
    assert_eq!(told.outcome.unwrap().why_refused(), Some(why.into()));
}

#[test]
fn data_is_heard_while_somebody_listens() {
    let mut world = World::up();
    let watch = world.say(SCANNER, A, MsgType::Subscribe);
    let key = "amber/r2/hokuyo/0/data".to_owned();
    assert_eq!(watch, [Output::Watch(SCANNER, key)]);
    assert_eq!(world.say(SCANNER, B, MsgType::Subscribe), []);
    let scan = Bytes::from_static(b"scan");
    world.far.data(world.now, SCANNER, &scan);
    let packet = Packet {
        header: header(SCANNER, &[A, B]),
        message: scan,
    };
    assert_eq!(world.outputs(), [Output::Data(packet)]);
    assert_eq!(world.say(SCANNER, A, MsgType::Unsubscribe), []);
    let gone = world.say(SCANNER, B, MsgType::ClientDied);
    assert_eq!(gone, [Output::Unwatch(SCANNER)]);

    // By a request with a period.
    let mut wants = ninedof::DriverMsg::data();
    wants.subscribe_action = Some(ninedof::SubscribeAction {
        freq: Some(100),
        ..ninedof::SubscribeAction::default()
    });
    let watch = world.send(IMU, A, &wants);
    assert!(matches!(&watch[..], [Output::Watch(IMU, _)]), "{watch:?}");
}

#[test]
fn the_death_of_a_device_is_told_with_the_reason_of_the_robot() {
    let mut world = World::up();
    world.say(SCANNER, A, MsgType::Subscribe);
    let far = Device::new(DeviceType::HOKUYO, 0);
    world.token("r2", far, false);
    assert_eq!(world.outputs(), []);
    world.health(far, State::Down, "it exited with code 1");
    let outputs = world.outputs();
    let why = "robot r2: it exited with code 1".to_owned();
    assert_eq!(deaths(&outputs), [(SCANNER, why.clone())]);
    assert_eq!(troubles(&outputs), [(SCANNER, Some(why.clone()))]);
    // Whoever asks is told again.
    let again = world.send(SCANNER, A, &status(1));
    assert_eq!(deaths(&again), [(SCANNER, why)]);
    // It comes back, and the data goes on.
    world.token("r2", far, true);
    assert_eq!(troubles(&world.outputs()), [(SCANNER, None)]);
    world
        .far
        .data(world.now, SCANNER, &Bytes::from_static(b"x"));
    assert_eq!(world.outputs().len(), 1);
}

#[test]
fn a_robot_or_link_that_is_gone_is_told_without_the_robot() {
    let mut world = World::up();
    world.token("r3", Device::new(DeviceType::DUMMY, 1), false);
    assert_eq!(world.advance(199), []);
    let outputs = world.advance(1);
    let why = "the robot r3 is not in the fleet, or has no dummy:1".to_owned();
    assert_eq!(deaths(&outputs), [(OTHER, why)]);

    world.token("r2", Device::new(DeviceType::HOKUYO, 0), false);
    world.far.link(false);
    let dead = deaths(&world.advance(200));
    assert_eq!(dead[0].1, "no link to a router of the fleet");

    // It was away for a moment only: what it did before is lost all the same.
    let mut world = World::up();
    let far = Device::new(DeviceType::HOKUYO, 0);
    world.token("r2", far, false);
    world.token("r2", far, true);
    assert_eq!(deaths(&world.outputs()).len(), 1);
    assert_eq!(world.advance(1_000), []);
}

#[test]
fn a_device_that_never_came_is_reported() {
    let mut world = World::new();
    assert_eq!(world.far.next_due(), Some(SEARCH));
    let outputs = world.advance(SEARCH.as_millis() as u64);
    assert_eq!(troubles(&outputs).len(), 4);
    assert_eq!(world.far.next_due(), None);
    world.say(SCANNER, A, MsgType::Subscribe);
    let sent = world.send(SCANNER, A, &status(1));
    assert_eq!(deaths(&sent).len(), 1);
}

#[test]
fn the_first_requests_wait_for_their_device() {
    let mut world = World::new();
    world.far.link(false);
    assert_eq!(world.send(OTHER, A, &status(1)), []);
    assert_eq!(world.send(WHEELS, A, &drive()), []);
    assert_eq!(world.send(OTHER, B, &status(2)), []);
    assert_eq!(world.advance(300), []);
    assert_eq!(world.send(WHEELS, A, &drive()), []);
    let watch = world.say(OTHER, A, MsgType::Subscribe);
    assert!(matches!(&watch[..], [Output::Watch(OTHER, _)]), "{watch:?}");
    // What waits for a client that is gone is not sent.
    let gone = world.say(OTHER, B, MsgType::ClientDied);
    assert_eq!(gone, []);

    // They go out when the device is there, and new ones at once.
    world.far.link(true);
    world.advance(1);
    world.token("r3", Device::new(DeviceType::DUMMY, 1), true);
    let sent = world.outputs();
    assert_eq!(troubles(&sent), [(OTHER, None)]);
    let [Output::Token(_), Output::Ask(number, letter)] = &sent[1..] else {
        panic!("{sent:?}");
    };
    assert_eq!(letter.message, status(1).encode_to_vec());
    assert!(!letter.is_late(SEARCH));
    world
        .far
        .answer(*number, Some(Ok(Bytes::from_static(b"a"))));
    assert_eq!(world.outputs().len(), 1);
    let sent = world.send(OTHER, A, &status(3));
    assert!(matches!(&sent[..], [Output::Ask(2, _)]), "{sent:?}");

    // A motion command that has waited is too late, the next one is not.
    world.token("r2", Device::new(DeviceType::ROBOCLAW, 0), true);
    let sent = world.outputs();
    let [Output::Token(_), Output::Put(old), Output::Put(new)] = &sent[1..] else {
        panic!("{sent:?}");
    };
    assert!(old.is_late(Duration::ZERO));
    assert!(!new.is_late(Duration::ZERO));
    assert!(new.is_late(MOTION_AGE));

    // It is gone again: now requests do not wait.
    world.token("r3", Device::new(DeviceType::DUMMY, 1), false);
    world.advance(200);
    assert_eq!(deaths(&world.send(OTHER, A, &status(4))).len(), 1);
}

#[test]
fn requests_that_have_waited_are_refused_with_the_reason() {
    let mut world = World::new();
    world.far.link(false);
    assert_eq!(world.send(OTHER, A, &status(1)), []);
    assert!(matches!(
        &world.say(SCANNER, A, MsgType::Subscribe)[..],
        [Output::Watch(SCANNER, _)]
    ));
    let search = SEARCH.as_millis() as u64;
    assert_eq!(world.advance(search - 1), []);
    let outputs = world.advance(1);
    let why = "no link to a router of the fleet".to_owned();
    let told = [(SCANNER, why.clone()), (OTHER, why.clone())];
    assert_eq!(deaths(&outputs), told);
    assert_eq!(troubles(&outputs).len(), 4);
    assert_eq!(world.far.take_counts(), ["messages_dropped_down"]);
    // Once only; and whoever asks later is told at once.
    assert_eq!(world.advance(1), []);
    let again = deaths(&world.send(OTHER, A, &status(2)));
    assert_eq!(again, [(OTHER, why)]);
    // The robot comes at last.
    world.far.link(true);
    world.token("r3", Device::new(DeviceType::DUMMY, 1), true);
    assert_eq!(troubles(&world.outputs()), [(OTHER, None)]);
    let sent = world.send(OTHER, A, &status(3));
    assert!(matches!(&sent[..], [Output::Token(_), Output::Ask(1, _)]));
}

#[test]
fn few_requests_wait_for_a_device() {
    let mut world = World::new();
    let mut wants = mediator::DriverMsg::data();
    wants.syn_num = Some(9);
    wants.want_outcome = Some(true);
    for _ in 0..MAX_HELD {
        assert_eq!(world.send(OTHER, A, &wants), []);
    }
    let refused = told(&world.send(OTHER, A, &wants));
    let outcome = refused[0].2.outcome.clone().unwrap();
    let why = outcome.refused.unwrap();
    assert_eq!(why, "too many requests wait for far robots");
    assert_eq!(world.far.take_counts(), ["requests_dropped_busy"]);
}

#[test]
fn errors_of_the_robot_are_told() {
    let mut world = World::up();
    for (number, answer, part) in [
        (
            1,
            Some(Err(Problem::new(Kind::DriverDied, "the driver died"))),
            Some("robot r3: the driver died"),
        ),
        (2, None, Some("robot r3: no answer: ")),
        (3, Some(Err(Problem::new(Kind::TimedOut, "slow"))), None),
        (4, Some(Ok(Bytes::new())), None),
    ] {
        world.send(OTHER, A, &status(number));
        world.far.answer(number.into(), answer);
        let dead = deaths(&world.outputs());
        let why = dead.first().map(|(_, why)| why.as_str());
        assert_eq!(why.is_some(), part.is_some(), "{why:?}");
        assert!(part.is_none_or(|part| why.unwrap().starts_with(part)));
    }
    assert_eq!(
        world.far.take_counts(),
        ["requests_failed", "requests_failed", "requests_failed"]
    );
}
