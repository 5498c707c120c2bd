use amber_proto::{drive_to_point, dummy, roboclaw};
use amber_robot::robot::Trip;
use amber_values::{Target, WheelSpeeds};

use super::*;

const WHEELS: Device = Device::new(DeviceType::ROBOCLAW, 0);
const GO: WheelSpeeds = WheelSpeeds::all(200);

/// The clock of programs is ahead of that of the robot.
const SENDER_AHEAD: Duration = Duration::from_secs(86_400);

/// A robot on a virtual clock.
struct World {
    orders: Orders,
    now: Duration,
    /// How long the network holds messages up.
    held_up: Duration,
}

impl World {
    fn new() -> Self {
        Self {
            orders: Orders::new(Controls::default(), Vec::new()),
            now: Duration::ZERO,
            held_up: Duration::ZERO,
        }
    }

    fn send(
        &mut self,
        who: &str,
        sequence: u64,
        way: Way,
        device: Device,
        message: impl Message,
    ) -> Result<Accepted, Problem> {
        let address = Address {
            device,
            way,
            who: who.parse().unwrap(),
        };
        let stamp = OrderStamp {
            instance: 1,
            sequence,
            sent_ns: Some((self.now + SENDER_AHEAD - self.held_up).as_nanos() as u64),
        };
        let message = message.encode_to_vec().into();
        self.orders.handle(self.now, &address, Some(stamp), message)
    }

    fn drive(&mut self, who: &str, sequence: u64, speeds: WheelSpeeds) -> Result<Accepted, Kind> {
        let sent = self.send(who, sequence, Way::Drive, WHEELS, command(speeds));
        sent.map_err(|problem| problem.kind)
    }

    /// Lets time pass. Returns what happens, with its time.
    fn advance_ms(&mut self, ms: u64) -> Vec<(u64, Action)> {
        let end = self.now + Duration::from_millis(ms);
        let mut actions = Vec::new();
        loop {
            self.orders.handle_timeout(self.now);
            while let Some(action) = self.orders.poll(self.now) {
                actions.push((self.now.as_millis() as u64, action));
            }
            match self.orders.next_due() {
                Some(due) if due <= end => self.now = self.now.max(due),
                _ => break,
            }
        }
        self.now = end;
        actions
    }
}

fn command(speeds: WheelSpeeds) -> roboclaw::DriverMsg {
    roboclaw::DriverMsg {
        motors_command: Some(speeds.into()),
        ..roboclaw::DriverMsg::data()
    }
}

fn moves(user: u32, speeds: WheelSpeeds) -> Action {
    Action::Move(User(user), UserOrder::Drive(WHEELS, speeds))
}

fn program(who: &str) -> Program {
    Program {
        who: who.parse().unwrap(),
        instance: 1,
    }
}

#[test]
fn the_wheels_stop_half_a_second_after_the_last_accepted_command() {
    let mut world = World::new();
    assert_eq!(world.drive("alice", 1, GO), Ok(Accepted::Done));
    let actions = world.advance_ms(400);
    assert_eq!(actions, [(0, Action::Open(User(1))), (0, moves(1, GO))]);
    assert_eq!(world.drive("alice", 2, GO), Ok(Accepted::Done));
    // These do not count.
    world.advance_ms(200);
    assert_eq!(world.drive("alice", 2, GO), Err(Kind::Late));
    assert_eq!(world.drive("bob", 1, GO), Err(Kind::Occupied));
    let actions = world.advance_ms(2_000);
    let stop = (900, moves(1, WheelSpeeds::STOP));
    assert!(actions.contains(&stop), "{actions:?}");
}

#[test]
fn an_order_that_the_network_has_held_up_does_not_move_the_robot() {
    let mut world = World::new();
    world.held_up = Duration::from_millis(20);
    assert_eq!(world.drive("alice", 1, GO), Ok(Accepted::Done));
    world.advance_ms(3_000);
    world.held_up = Duration::from_millis(521);
    assert_eq!(world.drive("alice", 2, GO), Err(Kind::Late));
    // A stop is never too late.
    let stop = world.drive("alice", 4, WheelSpeeds::STOP);
    assert_eq!(stop, Ok(Accepted::Done));
    let moved = world.advance_ms(100);
    assert!(
        !moved.iter().any(|(_, it)| *it == moves(1, GO)),
        "{moved:?}"
    );
    // As late as a command holds.
    world.held_up = Duration::from_millis(520);
    assert_eq!(world.drive("alice", 5, GO), Ok(Accepted::Done));
}

fn targets(number: usize) -> drive_to_point::DriverMsg {
    drive_to_point::DriverMsg {
        targets: Some(drive_to_point::Targets {
            latitudes: vec![1.0; number],
            longitudes: vec![1.0; number],
            radiuses: vec![0.1; number],
        }),
        set_targets: Some(true),
        ..drive_to_point::DriverMsg::data()
    }
}

const DRIVER: Device = Device::new(DeviceType::DRIVE_TO_POINT, 0);

#[test]
fn an_errand_ends_soon_after_the_last_sign_of_life() {
    let mut world = World::new();
    let begin = |world: &mut World, who: &str, sequence| {
        let sent = world.send(who, sequence, Way::Drive, DRIVER, targets(1));
        assert!(matches!(sent, Ok(Accepted::Tell(..))), "{sent:?}");
    };
    let end = |actions: Vec<(u64, Action)>| {
        let mut ends = actions.into_iter();
        let end = UserOrder::Targets(DRIVER, Vec::new());
        ends.find_map(|(at, it)| (it == Action::Move(User(1), end.clone())).then_some(at))
    };
    begin(&mut world, "alice", 1);
    // The token does not help: it lives with the link, for as long as the other side says.
    world.orders.announced(world.now, program("alice"));
    let actions = world.advance_ms(10_000);
    assert!(actions.contains(&(1_500, Action::Abandon(User(1)))));
    assert_eq!(end(actions), Some(1_500));
    assert_eq!(end(world.advance_ms(10_000)), None);

    // With signs of life it goes on; those of others do not count.
    let sign = |world: &mut World, who: &str, age_ms: u64| {
        let age = Duration::from_millis(age_ms);
        world.orders.signed(world.now, &program(who), age, None);
    };
    begin(&mut world, "alice", 2);
    for _ in 0..50 {
        assert_eq!(end(world.advance_ms(300)), None);
        sign(&mut world, "alice", 100);
    }
    for _ in 0..4 {
        assert_eq!(end(world.advance_ms(300)), None);
        sign(&mut world, "bob", 0);
        sign(&mut world, "alice", 3_000);
    }
    // The last sign was given 1.3 s before.
    assert_eq!(end(world.advance_ms(199)), None);
    assert_eq!(end(world.advance_ms(1)), Some(world.now.as_millis() as u64));

    // A sign that the network has held up is as old as it is.
    begin(&mut world, "alice", 3);
    let delayed = |world: &mut World, ms: u64| {
        let sent = world.now + SENDER_AHEAD - Duration::from_millis(ms);
        let stamp = OrderStamp {
            instance: 1,
            sequence: 9,
            sent_ns: Some(sent.as_nanos() as u64),
        };
        let (now, program) = (world.now, program("alice"));
        world
            .orders
            .signed(now, &program, Duration::ZERO, Some(stamp));
    };
    for at_ms in [500, 1_000, 1_500] {
        assert_eq!(end(world.advance_ms(499)), None);
        delayed(&mut world, at_ms);
        world.now += Duration::from_millis(1);
    }
    assert!(end(world.advance_ms(0)).is_some());
    // Any message of the program is a sign of life.
    begin(&mut world, "alice", 4);
    for sequence in 5..20 {
        assert_eq!(end(world.advance_ms(1_000)), None);
        let _ = world.send(
            "alice",
            sequence,
            Way::Call,
            WHEELS,
            dummy::DriverMsg::data(),
        );
    }
}

/// A trip of ROS, or of another operator.
fn travel(world: &mut World, who: &str, trip: u64) -> Result<(), Kind> {
    let (now, program) = (world.now, program(who));
    let target = Target::new(1.0, 2.0);
    let begun = (world.orders).travel(now, &program, DRIVER, Trip(trip), target);
    begun.map_err(|problem| problem.kind)
}

fn driven(world: &World) -> Vec<bool> {
    world.orders.operators().iter().map(|(_, it)| *it).collect()
}

#[test]
fn a_trip_obeys_the_rules_of_errands() {
    let mut world = World::new();
    let trip = |number| UserOrder::Trip(DRIVER, Trip(number), vec![Target::new(1.0, 2.0)]);
    assert_eq!(world.drive("alice", 1, GO), Ok(Accepted::Done));
    assert_eq!(travel(&mut world, "ros", 1), Err(Kind::Occupied));
    world.advance_ms(2_000);
    assert_eq!(travel(&mut world, "ros", 2), Ok(()));
    assert_eq!(world.drive("alice", 2, GO), Err(Kind::Occupied));
    let begun = world.advance_ms(1_499);
    assert!(
        begun.contains(&(2_000, Action::Move(User(2), trip(2)))),
        "{begun:?}"
    );
    assert_eq!(driven(&world), [false, true]);
    // Without signs of life, it ends.
    let ended = world.advance_ms(1);
    let end = Action::Move(User(2), UserOrder::Targets(DRIVER, Vec::new()));
    assert!(
        ended.contains(&(3_500, Action::Abandon(User(2)))),
        "{ended:?}"
    );
    assert!(ended.contains(&(3_500, end)), "{ended:?}");

    // A motion of the same operator ends it, too.
    assert_eq!(travel(&mut world, "ros", 3), Ok(()));
    world.advance_ms(0);
    assert_eq!(world.drive("ros", 1, GO), Ok(Accepted::Done));
    let end = Action::Move(User(2), UserOrder::Targets(DRIVER, Vec::new()));
    assert_eq!(world.advance_ms(0)[0].1, end);
    let hidden = Device::new(DeviceType::MEDIATOR, 0);
    let target = Target::new(1.0, 2.0);
    let refused = (world.orders).travel(world.now, &program("ros"), hidden, Trip(4), target);
    assert_eq!(refused.unwrap_err().kind, Kind::NoSuchDevice);
}

#[test]
fn an_errand_that_is_over_needs_no_sign_of_life() {
    let mut world = World::new();
    assert_eq!(travel(&mut world, "ros", 1), Ok(()));
    assert_eq!(travel(&mut world, "ros", 2), Ok(()));
    // Only the end of the newest one counts.
    world.orders.trip_ended(Trip(1));
    assert_eq!(driven(&world), [true]);
    world.orders.trip_ended(Trip(2));
    assert_eq!(driven(&world), [false]);
    let quiet = world.advance_ms(5_000);
    let abandons = |(_, it): &(u64, Action)| matches!(it, Action::Abandon(_));
    assert!(!quiet.iter().any(abandons), "{quiet:?}");

    // The same for messages with targets. A trip that is over ends nothing else.
    assert_eq!(travel(&mut world, "ros", 3), Ok(()));
    let set = |world: &mut World, sequence| {
        let sent = world.send("ros", sequence, Way::Drive, DRIVER, targets(1));
        assert!(sent.is_ok(), "{sent:?}");
        world.orders.errand_of(DRIVER).unwrap()
    };
    let first = set(&mut world, 1);
    world.orders.trip_ended(Trip(3));
    assert_eq!(driven(&world), [true]);
    let second = set(&mut world, 2);
    world.orders.errand_ended(DRIVER, first);
    assert_eq!(driven(&world), [true]);
    world.orders.errand_ended(DRIVER, second);
    assert_eq!(driven(&world), [false]);
    assert_eq!(world.orders.errand_of(DRIVER), None);
    // A trip is cancelled by its number.
    assert_eq!(travel(&mut world, "ros", 5), Ok(()));
    world.advance_ms(0);
    world.orders.cancel_trip(&program("ros"), Trip(5));
    world.orders.cancel_trip(&program("bob"), Trip(5));
    let cancel = Action::Move(User(1), UserOrder::CancelTrip(Trip(5)));
    assert_eq!(
        world.advance_ms(0),
        [(world.now.as_millis() as u64, cancel)]
    );
}

#[test]
fn one_node_of_ros_is_no_sign_of_life_of_another_one() {
    let mut world = World::new();
    world
        .send("ros", 1, Way::Drive, DRIVER, targets(1))
        .unwrap();
    world.advance_ms(1_000);
    // A joystick at rest.
    assert_eq!(world.drive("ros", 2, WheelSpeeds::STOP), Ok(Accepted::Done));
    let actions = world.advance_ms(500);
    assert!(
        actions.contains(&(1_500, Action::Abandon(User(1)))),
        "{actions:?}"
    );
    // A goal that is repeated goes on.
    for sequence in 3..20 {
        world
            .send("ros", sequence, Way::Drive, DRIVER, targets(1))
            .unwrap();
        let actions = world.advance_ms(1_000);
        assert!(
            !actions
                .iter()
                .any(|(_, it)| matches!(it, Action::Abandon(_)))
        );
    }
}

#[test]
fn the_wheels_stop_when_the_token_of_the_driver_is_gone() {
    let mut world = World::new();
    world.drive("alice", 1, GO).unwrap();
    world.orders.announced(world.now, program("alice"));
    world.advance_ms(100);
    world.orders.gone(world.now, &program("bob"));
    world.orders.gone(world.now, &program("alice"));
    let stop = moves(1, WheelSpeeds::STOP);
    let actions = world.advance_ms(0);
    assert_eq!(actions, [(100, stop), (100, Action::Close(User(1)))]);
    // The seat is free at once.
    assert_eq!(world.drive("bob", 1, GO), Ok(Accepted::Done));
}

#[test]
fn the_seat_moves_over_by_silence() {
    let mut world = World::new();
    world.drive("alice", 1, GO).unwrap();
    world.advance_ms(999);
    assert_eq!(world.drive("bob", 1, GO), Err(Kind::Occupied));
    // Others may stop nothing, but a stop is no error.
    assert_eq!(world.drive("bob", 2, WheelSpeeds::STOP), Ok(Accepted::Done));
    world.advance_ms(1);
    assert_eq!(world.drive("bob", 3, GO), Ok(Accepted::Done));
    assert_eq!(world.drive("alice", 2, GO), Err(Kind::Occupied));
}

fn seat(world: &mut World, who: &str, action: SeatAction) -> Result<String, Kind> {
    let request = SeatRequest { id: None, action };
    let told = world.orders.seat(world.now, program(who), request);
    let info = told.map_err(|problem| problem.kind)?;
    let holder = info.holder.map_or("nobody".to_owned(), |it| {
        let way = if it.drives { "drives" } else { "holds" };
        format!("{} {way} {}", it.who, it.free_in_ms)
    });
    let waiting = info.waiting.iter().map(|it| format!(", {} waits", it.who));
    Ok(holder + &waiting.collect::<String>())
}

#[test]
fn the_seat_moves_over_by_asking() {
    let mut world = World::new();
    let told = seat(&mut world, "bob", SeatAction::Show);
    assert_eq!(told.unwrap(), "nobody");
    world.drive("alice", 1, GO).unwrap();
    world.advance_ms(100);
    let told = seat(&mut world, "bob", SeatAction::Take);
    assert_eq!(told.unwrap(), "alice drives 900, bob waits");
    let changed = world.orders.take_changed_seats(world.now);
    assert_eq!(changed[0].waiting[0].who, "bob".parse().unwrap());
    world.advance_ms(0);
    // Alice gives it up: the wheels stop at once, and she cannot come back by mistake.
    let told = seat(&mut world, "alice", SeatAction::Release);
    assert_eq!(told.unwrap(), "bob holds 3000");
    let actions = world.advance_ms(0);
    assert!(
        actions.contains(&(100, moves(1, WheelSpeeds::STOP))),
        "{actions:?}"
    );
    assert_eq!(world.drive("alice", 2, GO), Err(Kind::Occupied));
    assert_eq!(world.drive("carol", 1, GO), Err(Kind::Occupied));
    world.advance_ms(500);
    assert_eq!(world.drive("bob", 1, GO), Ok(Accepted::Done));
    // The whole claim, and a second after the last command.
    let told = seat(&mut world, "bob", SeatAction::Show);
    assert_eq!(told.unwrap(), "bob drives 2500");
    // Who is gone waits no more.
    assert!(
        seat(&mut world, "carol", SeatAction::Take)
            .unwrap()
            .contains("carol waits")
    );
    world.orders.gone(world.now, &program("carol"));
    assert_eq!(
        seat(&mut world, "bob", SeatAction::Show).unwrap(),
        "bob drives 2500"
    );
    world.orders.gone(world.now, &program("bob"));
    assert_eq!(seat(&mut world, "bob", SeatAction::Show).unwrap(), "nobody");
    assert_eq!(world.drive("alice", 3, GO), Ok(Accepted::Done));
}

#[test]
fn a_free_seat_is_reserved_for_who_takes_it_until_the_claim_expires() {
    let mut world = World::new();
    let told = seat(&mut world, "bob", SeatAction::Take);
    assert_eq!(told.unwrap(), "bob holds 3000");
    world.advance_ms(2_999);
    let address = Address {
        device: WHEELS,
        way: Way::Drive,
        who: "alice".parse().unwrap(),
    };
    let message: Bytes = command(GO).encode_to_vec().into();
    let error = world.orders.handle(world.now, &address, None, message);
    assert_eq!(error.unwrap_err().message, "occupied by bob, free in 0.1 s");
    // A stop is always allowed.
    assert_eq!(
        world.drive("alice", 1, WheelSpeeds::STOP),
        Ok(Accepted::Done)
    );
    world.orders.take_changed_seats(world.now);
    world.advance_ms(1);
    let changed = world.orders.take_changed_seats(world.now);
    assert_eq!(changed, [SeatInfo::free(0)]);
    assert_eq!(world.drive("alice", 2, GO), Ok(Accepted::Done));
}

#[test]
fn only_some_operators_take_the_seat_by_force() {
    let mut world = World::new();
    world.orders = world.orders.with_force(vec!["carol".parse().unwrap()]);
    world.drive("alice", 1, GO).unwrap();
    seat(&mut world, "bob", SeatAction::Take).unwrap();
    world.advance_ms(0);
    assert_eq!(
        seat(&mut world, "bob", SeatAction::Force),
        Err(Kind::Refused)
    );
    let told = seat(&mut world, "carol", SeatAction::Force);
    assert_eq!(told.unwrap(), "carol holds 3000, bob waits");
    let actions = world.advance_ms(0);
    assert!(
        actions.contains(&(0, moves(1, WheelSpeeds::STOP))),
        "{actions:?}"
    );
    assert_eq!(world.drive("alice", 2, GO), Err(Kind::Occupied));
    assert_eq!(world.drive("carol", 1, GO), Ok(Accepted::Done));
    // With shared controls, there is nothing to ask for.
    let shared = Controls {
        seat: Seat::Shared,
        ..Controls::default()
    };
    world.orders = Orders::new(shared, Vec::new());
    assert_eq!(
        seat(&mut world, "bob", SeatAction::Take),
        Err(Kind::Refused)
    );
}

#[test]
fn wheels_that_nobody_drives_any_more_take_no_memory() {
    let mut world = World::new();
    for id in 0..2_000 {
        let device = Device::new(DeviceType::ROBOCLAW, id);
        let sent = world.send("alice", id as u64 + 1, Way::Drive, device, command(GO));
        sent.unwrap();
        world.advance_ms(10);
    }
    world.advance_ms(2_000);
    assert_eq!(world.orders.wheels_in_memory(), 0);
}

#[test]
fn motion_needs_the_right_key() {
    let mut world = World::new();
    let sent = world.send("alice", 1, Way::Call, WHEELS, command(GO));
    assert_eq!(sent.unwrap_err().kind, Kind::Refused);
    let targets = drive_to_point::DriverMsg {
        targets: Some(drive_to_point::Targets {
            longitudes: vec![1.0],
            latitudes: vec![1.0],
            radiuses: vec![0.1],
        }),
        set_targets: Some(true),
        ..drive_to_point::DriverMsg::data()
    };
    let driver = Device::new(DeviceType::DRIVE_TO_POINT, 0);
    let sent = world.send("alice", 2, Way::Call, driver, targets.clone());
    assert_eq!(sent.unwrap_err().kind, Kind::Refused);
    let sent = world.send("alice", 3, Way::Drive, driver, targets);
    assert!(matches!(sent, Ok(Accepted::Tell(User(1), _))), "{sent:?}");
    // The errand ends with its operator.
    world.orders.gone(world.now, &program("alice"));
    let actions = world.advance_ms(0);
    let end = Action::Move(User(1), UserOrder::Targets(driver, Vec::new()));
    assert!(
        actions.iter().any(|(_, action)| *action == end),
        "{actions:?}"
    );
}

#[test]
fn requests_are_asked_and_others_told() {
    let mut world = World::new();
    let device = Device::new(DeviceType::DUMMY, 0);
    let tell = dummy::DriverMsg {
        message: Some("hello".into()),
        ..dummy::DriverMsg::data()
    };
    let ask = dummy::DriverMsg {
        syn_num: Some(7),
        ..tell.clone()
    };
    let sent = world.send("alice", 1, Way::Call, device, tell).unwrap();
    assert!(matches!(sent, Accepted::Tell(..)), "{sent:?}");
    // Requests may overtake each other.
    let sent = world.send("alice", 1, Way::Call, device, ask).unwrap();
    assert!(matches!(sent, Accepted::Ask(..)), "{sent:?}");
    let subscribe = dummy::DriverMsg::of_kind(MsgType::Subscribe);
    let sent = world.send("alice", 2, Way::Call, device, subscribe);
    assert_eq!(sent.unwrap_err().kind, Kind::BadRequest);
    let ping = dummy::DriverMsg::of_kind(MsgType::Ping);
    let sent = world.send("alice", 2, Way::Call, device, ping).unwrap();
    assert!(matches!(sent, Accepted::Ask(..)), "{sent:?}");
}

#[test]
fn speeds_are_limited_alike_and_bad_messages_refused() {
    let mut world = World::new();
    world
        .drive("alice", 1, WheelSpeeds::sides(400, 800))
        .unwrap();
    let actions = world.advance_ms(0);
    let limited = moves(1, WheelSpeeds::sides(200, 400));
    assert!(actions.contains(&(0, limited)), "{actions:?}");
    let address = Address {
        device: WHEELS,
        way: Way::Drive,
        who: "alice".parse().unwrap(),
    };
    // Not protobuf, and without a type.
    for bytes in [&b"\xff"[..], b""] {
        let bytes = Bytes::copy_from_slice(bytes);
        let sent = world.orders.handle(world.now, &address, None, bytes);
        assert_eq!(sent.unwrap_err().kind, Kind::BadRequest);
    }
}

#[test]
fn the_mediator_and_hidden_devices_take_no_messages() {
    let mut world = World::new();
    let message = dummy::DriverMsg::data();
    for way in [Way::Call, Way::Drive] {
        let sent = world.send("alice", 1, way, Device::MEDIATOR, message.clone());
        assert_eq!(sent.unwrap_err().kind, Kind::NoSuchDevice);
        let second = Device::new(DeviceType::MEDIATOR, 1);
        let sent = world.send("alice", 1, way, second, message.clone());
        assert_eq!(sent.unwrap_err().kind, Kind::NoSuchDevice);
    }
    let shown = Device::new(DeviceType::DUMMY, 0);
    world.orders = Orders::new(Controls::default(), vec![shown]);
    assert!(
        world
            .send("alice", 1, Way::Call, shown, message.clone())
            .is_ok()
    );
    let hidden = Device::new(DeviceType::DUMMY, 1);
    let sent = world.send("alice", 2, Way::Call, hidden, message);
    assert_eq!(sent.unwrap_err().kind, Kind::NoSuchDevice);
}

#[test]
fn operators_are_bounded_and_silent_ones_leave() {
    let mut world = World::new();
    for number in 0..MAX_OPERATORS {
        world
            .drive(&format!("o{number}"), 1, WheelSpeeds::STOP)
            .unwrap();
    }
    assert_eq!(world.drive("more", 1, GO), Err(Kind::Busy));
    // A stop always finds a place, and is no way to get one.
    for who in ["more", "others"] {
        let sent = world.send(who, 1, Way::Drive, DRIVER, targets(0));
        let reserved = User(MAX_OPERATORS as u32 + 1);
        assert!(
            matches!(sent, Ok(Accepted::Tell(user, _)) if user == reserved),
            "{sent:?}"
        );
        assert!(seat(&mut world, who, SeatAction::Halt).is_ok());
        assert_eq!(world.drive(who, 2, GO), Err(Kind::Busy));
    }
    world.orders.announced(world.now, program("o0"));
    let closed = world.advance_ms(IDLE_OPERATOR.as_millis() as u64);
    let closed = closed
        .iter()
        .filter(|(_, it)| matches!(it, Action::Close(_)));
    // With that for stops.
    assert_eq!(closed.count(), MAX_OPERATORS);
    assert_eq!(world.orders.operators().len(), 1);
    assert_eq!(world.orders.next_due(), None);
}

#[test]
fn one_operator_with_many_programs_leaves_room_for_others() {
    let mut world = World::new();
    let mut go = |who: &str, instance| {
        let address = Address {
            device: WHEELS,
            way: Way::Drive,
            who: who.parse().unwrap(),
        };
        let stamp = OrderStamp {
            instance,
            sequence: 1,
            sent_ns: None,
        };
        let message = command(WheelSpeeds::STOP).encode_to_vec();
        let message =
            Bytes::from([&message[..], &dummy::DriverMsg::data().encode_to_vec()].concat());
        let orders = &mut world.orders;
        orders
            .handle(world.now, &address, Some(stamp), message)
            .is_ok()
    };
    let asked = (0..80)
        .filter(|instance| go("alice", 1 + *instance))
        .count();
    // All were stops: those beyond the limit use the common client.
    assert_eq!(asked, 80);
    assert!(go("bob", 1));
    let of = |who: &str| {
        let all = world.orders.operators().into_iter();
        all.filter(|(program, _)| program.who.as_str() == who)
            .count()
    };
    assert_eq!((of("alice"), of("bob"), of("stops")), (MAX_PROGRAMS, 1, 1));
    let ask = |world: &mut World, who: &str| {
        let address = Address {
            device: WHEELS,
            way: Way::Call,
            who: who.parse().unwrap(),
        };
        let message = dummy::DriverMsg::data().encode_to_vec().into();
        let asked = world.orders.handle(world.now, &address, None, message);
        asked.map(|_| ()).map_err(|problem| problem.message)
    };
    let refused = ask(&mut world, "alice").unwrap_err();
    assert_eq!(refused, "alice uses this robot with 16 programs");
    assert_eq!(ask(&mut world, "carol"), Ok(()));
}

#[test]
fn a_flood_of_one_operator_is_cut() {
    let mut world = World::new();
    let device = Device::new(DeviceType::DUMMY, 0);
    let mut send = || world.send("alice", 1, Way::Call, device, dummy::DriverMsg::data());
    let sent: Vec<_> = (0..2 * ORDER_RATE).map(|_| send()).collect();
    let refused = sent.iter().filter(|it| it.is_err()).count();
    assert_eq!(refused, ORDER_RATE as usize);
    assert_eq!(
        world.drive("alice", 2, WheelSpeeds::STOP),
        Ok(Accepted::Done)
    );
    // What was sent before a stop is late, and the stop never is.
    assert_eq!(world.drive("bob", 5, WheelSpeeds::STOP), Ok(Accepted::Done));
    assert_eq!(world.drive("bob", 4, GO), Err(Kind::Late));
    assert_eq!(world.drive("bob", 3, WheelSpeeds::STOP), Ok(Accepted::Done));
}
