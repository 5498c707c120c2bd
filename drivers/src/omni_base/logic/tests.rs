//! Tests with a clock of their own and servos that turn at once as they are told.

use amber_proto::DeviceType;
use amber_proto::bus_servos::ServoState;
use amber_proto::motion::{Halt, LeaseClient};

use super::*;

const MS: Duration = Duration::from_millis(1);
const CLIENT: ClientId = ClientId(5);
const AHEAD: Velocity = Velocity::new(0.1, 0.0, 0.0);
const LEFT: Velocity = Velocity::new(0.0, 0.1, 0.0);

/// The logic, its servos, and the time.
struct Bench {
    logic: BaseLogic,
    start: Instant,
    now: Instant,
    /// Angles that jump back after a turn, and speeds, of the servos 7, 8 and 9.
    servos: [(f64, f64); 3],
    /// What is said of the wheels instead of angles.
    fault: Option<&'static str>,
    measures: bool,
    orders: Vec<Order>,
}

fn rules(idle_stop: Option<Duration>, is_reversed: bool) -> Rules {
    let angles = [60.0, 180.0, -60.0].map(f64::to_radians);
    Rules {
        wheels: [7, 8, 9].map(|id| Wheel { id, is_reversed }),
        wheel_radius_m: 0.05,
        base: OmniBase::new(angles, 0.125, 0.23).unwrap(),
        idle_stop,
    }
}

impl Bench {
    fn new() -> Self {
        Self::with(Some(MS * 500), false)
    }

    fn with(idle_stop: Option<Duration>, is_reversed: bool) -> Self {
        let now = Instant::now();
        let device = Device::new(DeviceType::BUS_SERVOS, 0);
        let mut bench = Self {
            logic: BaseLogic::new(rules(idle_stop, is_reversed), device, now),
            start: now,
            now,
            servos: [(10.0, 0.0), (350.0, 0.0), (180.0, 0.0)],
            fault: None,
            measures: true,
            orders: Vec::new(),
        };
        bench.pass(MS * 100);
        bench
    }

    fn states(&self) -> ServoStates {
        let ids = [7, 8, 9].into_iter();
        let servos = ids.zip(self.servos).map(|(id, (angle, speed))| ServoState {
            id: Some(id),
            kind: Some(Kind::Wheel.into()),
            angle: self.fault.is_none().then_some(angle),
            speed: self.fault.is_none().then_some(speed),
            problem: self.fault.map(str::to_owned),
            ..ServoState::default()
        });
        let time = self.now.duration_since(self.start).as_micros();
        ServoStates {
            servos: servos.collect(),
            time: Some(1_700_000_000_000_000 + i64::try_from(time).unwrap()),
        }
    }

    /// Time passes; the servos are measured every 50 ms.
    fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        while self.now < end {
            self.now += MS;
            for (angle, speed) in &mut self.servos {
                *angle = (*angle + *speed / 1_000.0).rem_euclid(360.0);
            }
            let passed = self.now.duration_since(self.start).as_millis();
            if self.measures && passed.is_multiple_of(50) {
                let states = self.states();
                self.logic.handle(self.now, &states);
            }
            if self.logic.wake_at() <= self.now {
                self.logic.handle_timeout(self.now);
            }
            self.obey();
        }
    }

    fn obey(&mut self) {
        while let Some(order) = self.logic.poll_order(self.now) {
            for (servo, (_, speed)) in self.servos.iter_mut().zip(order.speeds) {
                servo.1 = speed;
            }
            self.orders.push(order);
        }
    }

    fn drive(&mut self, velocity: Velocity) -> Result<(), String> {
        let done = self.logic.drive(self.now, &[CLIENT], velocity);
        self.obey();
        done
    }

    /// Drives for a time, with a command every 100 ms.
    fn drive_for(&mut self, velocity: Velocity, time: Duration) {
        let end = self.now + time;
        while self.now < end {
            self.drive(velocity).unwrap();
            self.pass(MS * 100);
        }
    }

    fn state(&self) -> State {
        self.logic.state(self.now).unwrap()
    }

    fn is_turning(&self) -> bool {
        self.servos.iter().any(|(_, speed)| *speed != 0.0)
    }

    #[track_caller]
    fn check_place(&self, x_m: f64, y_m: f64, heading_deg: f64) {
        let pose = self.state().pose;
        let is_near = |is: f64, wanted: f64| (is - wanted).abs() < 0.01;
        assert!(
            is_near(pose.at.x, x_m) && is_near(pose.at.y, y_m),
            "{pose:?}"
        );
        let off_deg = pose.heading.to_degrees() - heading_deg;
        assert!(off_deg.abs() < 1.0, "{pose:?}");
    }

    fn notes(&mut self) -> Vec<String> {
        let notes = std::iter::from_fn(|| self.logic.poll_note());
        notes.map(|note| note.to_string()).collect()
    }
}

#[test]
fn the_wheels_turn_as_they_are_told() {
    let mut bench = Bench::new();
    bench.drive(LEFT).unwrap();
    let [order] = &bench.orders[..] else {
        panic!("{:?}", bench.orders);
    };
    let speeds = order.speeds.map(|(id, speed)| (id, speed.round()));
    assert_eq!(speeds, [(7, 57.0), (8, -115.0), (9, 57.0)]);
    assert_eq!((order.client, order.is_stop), (Some(CLIENT), false));
    assert_eq!(order.commands().count(), 1);
    bench.pass(MS * 400);
    // The first one, and each 50 ms.
    assert_eq!(bench.orders.len(), 9);
    let told = bench.state().told;
    assert_eq!(told, LEFT);
}

#[test]
fn a_square_is_driven_sideways_without_a_turn() {
    for is_reversed in [false, true] {
        let mut bench = Bench::with(Some(MS * 500), is_reversed);
        for (forward, left) in [(0.2, 0.0), (0.0, 0.2), (-0.2, 0.0), (0.0, -0.2)] {
            bench.drive_for(Velocity::new(forward, left, 0.0), MS * 5_000);
            if left > 0.0 {
                bench.check_place(1.0, 1.0, 0.0);
            }
        }
        bench.drive(Velocity::STOP).unwrap();
        bench.pass(MS * 100);
        bench.check_place(0.0, 0.0, 0.0);
        // Around itself, on and on: the angles of the servos jump back.
        bench.drive_for(Velocity::new(0.0, 0.0, 1.0), MS * 10_000);
        let heading_deg = 10_f64.to_degrees();
        let turned_deg = bench.state().pose.heading.to_degrees();
        assert!((turned_deg - heading_deg).abs() < 4.0, "{turned_deg}");
    }
}

#[test]
fn the_measured_velocity_is_that_of_the_body() {
    let mut bench = Bench::new();
    let wanted = Velocity::new(0.05, -0.08, 0.4);
    bench.drive_for(wanted, MS * 1_000);
    let found = bench.state().measured;
    assert!((found.forward_m_s - 0.05).abs() < 0.001, "{found:?}");
    assert!((found.left_m_s + 0.08).abs() < 0.001, "{found:?}");
    assert!((found.turn_rad_s - 0.4).abs() < 0.01, "{found:?}");
}

#[test]
fn a_command_ends_by_itself_and_the_stop_is_repeated_for_a_while() {
    let mut bench = Bench::new();
    bench.drive(AHEAD).unwrap();
    bench.pass(MS * 499);
    assert!(bench.is_turning());
    bench.pass(MS * 2);
    assert!(!bench.is_turning());
    bench.orders.clear();
    bench.pass(MS * 2_000);
    assert_eq!(bench.orders.len(), 9, "for half a second");
    let stop = &bench.orders[0];
    assert_eq!(stop.commands().count(), 3, "each wheel for itself");
    let notes = bench.notes();
    assert_eq!(
        notes,
        [
            "ready: three wheels",
            "the base stops: no command has come for a while"
        ]
    );
    // Without this rule, it drives on.
    let mut bench = Bench::with(None, false);
    bench.drive(AHEAD).unwrap();
    bench.pass(MS * 5_000);
    assert!(bench.is_turning());
}

#[test]
fn commands_are_sent_at_once_but_not_too_often() {
    let mut bench = Bench::new();
    for step in 1..=50 {
        let speed = f64::from(step) / 500.0;
        bench.drive(Velocity::new(speed, 0.0, 0.0)).unwrap();
        bench.pass(MS * 2);
    }
    let count = bench.orders.len();
    assert!((10..=12).contains(&count), "{count}");
    bench.pass(MS * 10);
    let speed = bench.servos[2].1;
    assert!((speed - 99.2).abs() < 0.1, "{speed}");
}

#[test]
fn the_base_stops_without_measurements_and_does_not_go_on() {
    let mut bench = Bench::new();
    let commands = |bench: &mut Bench| {
        for _ in 0..10 {
            let _ = bench.drive(AHEAD);
            bench.pass(MS * 100);
        }
    };
    commands(&mut bench);
    bench.measures = false;
    bench
        .logic
        .failed(bench.now, "no answer within 200 ms".into());
    commands(&mut bench);
    assert!(!bench.is_turning());
    let why = "bus-servos:0 reports no wheels: no answer within 200 ms";
    assert_eq!(bench.drive(AHEAD), Err(why.into()));
    assert_eq!(bench.logic.state(bench.now), Err(why.into()));
    assert_eq!(bench.logic.trouble(), Some(why));
    bench.measures = true;
    bench.pass(MS * 200);
    assert!(!bench.is_turning());
    assert_eq!(bench.logic.trouble(), None);
    bench.drive(AHEAD).unwrap();
    bench.pass(MS * 100);
    assert!(bench.is_turning());
    let notes = bench.notes();
    assert_eq!(notes[1], why);
    assert!(notes[2].starts_with("works again after"), "{notes:?}");
}

#[test]
fn a_wheel_that_does_not_answer_stops_the_base() {
    let mut bench = Bench::new();
    bench.drive_for(AHEAD, MS * 300);
    bench.fault = Some("does not answer");
    bench.pass(MS * 100);
    assert!(!bench.is_turning());
    let why = "servo 7 does not answer".to_owned();
    assert_eq!(bench.drive(AHEAD), Err(why));
    bench.pass(MS * 3_000);
    // It was away when it was told to stop.
    bench.servos[0].1 = 90.0;
    bench.fault = None;
    bench.pass(MS * 100);
    assert!(!bench.is_turning());
    assert_eq!(bench.logic.trouble(), None);
}

#[test]
fn what_is_missing_at_the_start_is_no_trouble_for_three_seconds() {
    let mut bench = Bench::new();
    let device = Device::new(DeviceType::BUS_SERVOS, 0);
    bench.logic = BaseLogic::new(rules(None, false), device, bench.now);
    bench.fault = Some("does not answer");
    bench.pass(MS * 2_900);
    assert_eq!(bench.logic.trouble(), None);
    assert!(bench.notes().is_empty());
    assert!(bench.drive(AHEAD).is_err());
    bench.pass(MS * 200);
    assert_eq!(bench.notes(), ["servo 7 does not answer"]);
    bench.fault = None;
    bench.pass(MS * 100);
    assert_eq!(bench.notes(), ["ready: three wheels"]);
}

#[test]
fn a_wheel_with_a_problem_still_turns() {
    let mut bench = Bench::new();
    bench.drive(AHEAD).unwrap();
    let mut states = bench.states();
    states.servos[1].problem = Some("is hot: 66 degrees of at most 70".into());
    bench.now += MS;
    states.time = states.time.map(|time| time + 1_000);
    bench.logic.handle(bench.now, &states);
    let trouble = bench.logic.trouble();
    assert_eq!(trouble, Some("servo 8 is hot: 66 degrees of at most 70"));
    assert_eq!(bench.drive(LEFT), Ok(()));
}

#[test]
fn servos_that_are_no_wheels_are_refused() {
    let mut bench = Bench::new();
    for (change, why) in [
        (
            (|states| states.servos[2].kind = Some(Kind::Joint.into())) as fn(&mut ServoStates),
            "servo 9 of bus-servos:0 is a joint, not a wheel",
        ),
        (
            |states| states.servos.truncate(2),
            "bus-servos:0 has no servo 9",
        ),
    ] {
        bench.now += MS;
        let mut states = bench.states();
        change(&mut states);
        bench.logic.handle(bench.now, &states);
        assert_eq!(bench.drive(AHEAD), Err(why.into()));
    }
    bench.pass(MS * 100);
    assert_eq!(
        bench.drive(Velocity::new(f64::NAN, 0.0, 0.0)),
        Err("a speed must be a number".into())
    );
}

#[test]
fn whoever_else_moves_the_servos_is_named() {
    let lease = |client, for_client| LeaseClient {
        client_id: client,
        name: Some("amber servo".into()),
        for_client,
        ..LeaseClient::default()
    };
    let held = |holder| MotionState {
        holder: Some(holder),
        ..MotionState::default()
    };
    let halted = MotionState {
        halt: Some(Halt {
            by: Some("Ann".into()),
            ..Halt::default()
        }),
        ..MotionState::default()
    };
    for (state, refusal) in [
        (MotionState::default(), None),
        (held(lease(5, None)), None),
        (held(lease(9, Some(5))), None),
        (
            held(lease(9, None)),
            Some("amber servo holds the lease of bus-servos:0"),
        ),
        (halted, Some("bus-servos:0 was halted by Ann")),
    ] {
        let mut bench = Bench::new();
        assert!(!bench.logic.wants_motion_state());
        bench.drive(AHEAD).unwrap();
        assert!(bench.logic.wants_motion_state());
        bench.logic.handle_motion(bench.now, &state);
        bench.obey();
        bench.pass(MS * 20);
        assert_eq!(bench.is_turning(), refusal.is_none());
        assert_eq!(bench.logic.trouble(), refusal);
        let done = bench.drive(LEFT);
        assert_eq!(done.err().as_deref(), refusal);
        assert!(bench.logic.wants_motion_state());
        bench
            .logic
            .handle_motion(bench.now, &MotionState::default());
        assert_eq!(bench.drive(LEFT), Ok(()));
    }
}

#[test]
fn a_gap_is_no_way_if_the_wheels_may_have_turned_anyhow() {
    for (time, speed_deg_s, is_known) in [
        (2_000, 200.0, false),
        (800, 200.0, true),
        (6_000, 0.0, false),
    ] {
        let mut bench = Bench::new();
        bench.measures = false;
        for servo in &mut bench.servos {
            servo.1 = speed_deg_s;
        }
        bench.pass(MS * time);
        bench.measures = true;
        bench.pass(MS * 50);
        for servo in &mut bench.servos {
            servo.1 = 0.0;
        }
        bench.pass(MS * 100);
        let turned_deg = match is_known {
            // The wheels of 50 mm are 125 mm from the centre.
            true => speed_deg_s * 0.85 * 0.05 / 0.125,
            false => 0.0,
        };
        bench.check_place(0.0, 0.0, turned_deg);
        assert_eq!(bench.logic.counters.gaps, u64::from(!is_known));
    }
}

#[test]
fn a_clock_that_is_set_does_not_move_the_base() {
    let mut bench = Bench::new();
    bench.drive(AHEAD).unwrap();
    let mut states = bench.states();
    states.time = Some(5);
    bench.logic.handle(bench.now, &states);
    let moved = bench.state();
    bench.pass(MS * 50);
    let measured = bench.state().measured;
    assert!(measured.forward_m_s.abs() < 0.2, "{measured:?}");
    assert!(bench.state().pose.at.minus(moved.pose.at).length() < 0.01);
}

#[test]
fn at_its_end_it_stops_what_it_moves() {
    let mut bench = Bench::new();
    assert_eq!(bench.logic.last_order(), None);
    bench.drive(AHEAD).unwrap();
    let last = bench.logic.last_order().unwrap();
    assert!(last.is_stop && last.speeds.iter().all(|(_, speed)| *speed == 0.0));
    assert_eq!(bench.logic.last_order(), None);
}
