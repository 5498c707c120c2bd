use amber_proto::SynNum;
use amber_proto::ninedof::{AxisData, ServiceReport};
use amber_sim::ninedof::{Errors, Motion};

use super::super::service::ServiceKind;
use super::*;
use crate::i2c::fake::{Fake, RESTING};
use crate::ninedof::board::Board;
use crate::ninedof::units::Numbers;
use crate::ninedof::{ImuLogic, Settings};

const MS: Duration = Duration::from_millis(1);

/// ImuLogic and chips with a simulated clock; steps are carried out at once.
struct Bench {
    logic: ImuLogic,
    board: Board,
    bus: Fake,
    is_plugged: bool,
    start: Instant,
    now: Instant,
    steps: u64,
    said: Vec<String>,
    stored: Vec<Calibration>,
    motion: fn(f64) -> Motion,
}

/// A message, with its receiver and its time in ms.
type Told = (u64, Origin, DriverMsg);

impl Bench {
    fn with(numbers: Numbers, errors: Errors, calibration: Calibration) -> Self {
        let now = Instant::now();
        let settings = Settings {
            numbers,
            measures_bias: true,
        };
        let board = Board::new(settings.gain(), now);
        Self {
            logic: ImuLogic::new(settings, calibration, now),
            board,
            bus: Fake::new(errors),
            is_plugged: true,
            start: now,
            now,
            steps: 0,
            said: Vec::new(),
            stored: Vec::new(),
            motion: |_| RESTING,
        }
    }

    /// Perfect chips, with a calibration that says so.
    fn new() -> Self {
        let perfect = Calibration::new(Some([0.0; 3]), Some([0.0; 3]));
        Self::with(Numbers::Right, Errors::none(), perfect)
    }

    /// The same, with chips that already measure.
    fn ready() -> Self {
        let mut bench = Self::new();
        bench.run(500 * MS);
        bench
    }

    /// Advances the clock and returns the messages sent meanwhile.
    fn run(&mut self, time: Duration) -> Vec<Told> {
        let end = self.now + time;
        let mut told = Vec::new();
        loop {
            self.carry_out(&mut told);
            let due = self.logic.wake_at().expect("a wake-up time is always set");
            if due > end {
                self.pass_until(end);
                return told;
            }
            assert!(due >= self.now || self.steps > 0);
            self.pass_until(due.max(self.now));
        }
    }

    fn pass_until(&mut self, then: Instant) {
        self.bus.pass(then.saturating_duration_since(self.now));
        self.now = then;
        let seconds = (then - self.start).as_secs_f64();
        self.bus.state().truth = (self.motion)(seconds);
    }

    fn carry_out(&mut self, told: &mut Vec<Told>) {
        while let Some(step) = self.logic.poll_action(self.now) {
            self.steps += 1;
            match step {
                ImuAction::Open if self.is_plugged => {
                    self.board.reopened(self.now);
                    self.logic.opened(self.now);
                }
                ImuAction::Open => self.logic.failed(self.now, "there is no bus"),
                ImuAction::Close => {}
                ImuAction::Read(wanted) => match self.board.read(self.now, &mut self.bus, wanted) {
                    Ok(reading) => {
                        let trouble = self.board.trouble();
                        self.logic.read(self.now, reading, trouble);
                    }
                    Err(why) => self.logic.failed(self.now, &why),
                },
                ImuAction::Store(calibration) => {
                    self.stored.push(calibration);
                    self.logic.stored(Some(Ok("saved in a file".into())));
                }
            }
            self.hear(told);
        }
        self.hear(told);
    }

    fn hear(&mut self, told: &mut Vec<Told>) {
        let ms = (self.now - self.start).as_millis() as u64;
        while let Some(output) = self.logic.poll_output() {
            match output {
                Output::Answer(origin, message) | Output::PublishTo(origin, message) => {
                    told.push((ms, origin, message));
                }
                Output::Publish(message) => told.push((ms, Origin::default(), message)),
                Output::Say(note) => self.said.push(note.to_string()),
            }
        }
    }

    fn ask(&mut self, request: DataRequest) {
        self.logic.ask(self.now, client(7, Some(1)), request);
    }

    fn subscribe(&mut self, id: i32, freq: u32) {
        let action = SubscribeAction {
            freq: Some(freq),
            gyro: Some(true),
            ..SubscribeAction::default()
        };
        self.logic.subscribe(self.now, &client(id, None), action);
    }

    fn serve(&mut self, kind: ServiceKind, time: Option<Duration>) {
        self.logic.serve(self.now, client(7, Some(1)), kind, time);
    }
}

fn client(id: i32, syn: Option<u32>) -> Origin {
    Origin {
        clients: vec![ClientId(id)],
        syn: syn.map(SynNum),
        ..Origin::default()
    }
}

const ALL: DataRequest = DataRequest {
    accel: Some(true),
    gyro: Some(true),
    magnet: Some(true),
    extended: Some(true),
};

fn data(told: &[Told]) -> SensorData {
    let [(_, _, message)] = told else {
        panic!("{told:?}")
    };
    message.sensor_data.unwrap()
}

fn report(told: &[Told]) -> ServiceReport {
    let [(_, _, message)] = told else {
        panic!("{told:?}")
    };
    message.service_report.clone().unwrap()
}

fn axes(x_axis: i32, y_axis: i32, z_axis: i32) -> Option<AxisData> {
    Some(AxisData {
        x_axis,
        y_axis,
        z_axis,
    })
}

#[test]
fn any_combination_of_sensors_can_be_requested() {
    let mut bench = Bench::ready();
    for groups in 0..8 {
        let flag = |bit: u32| (groups >> bit & 1 == 1).then_some(true);
        bench.ask(DataRequest {
            accel: flag(0),
            gyro: flag(1),
            magnet: flag(2),
            extended: None,
        });
        let answer = data(&bench.run(MS));
        assert_eq!(answer.accel, axes(0, 0, 1000).filter(|_| flag(0).is_some()));
        assert_eq!(answer.gyro, axes(0, 0, 0).filter(|_| flag(1).is_some()));
        assert_eq!(
            answer.magnet,
            axes(0, 200, -450).filter(|_| flag(2).is_some())
        );
        assert!(answer.timestamp.is_some());
        assert_eq!((answer.attitude, answer.gyro_milli), (None, None));
    }
    bench.ask(ALL);
    let answer = data(&bench.run(MS));
    assert_eq!(answer.gyro_milli, axes(0, 0, 0));
    let attitude = answer.attitude.unwrap();
    assert_eq!(attitude.heading_deg, Some(0.0));
    assert_eq!(attitude.heading_calibrated, Some(true));
}

#[test]
fn a_request_waits_until_the_sensors_measure() {
    let mut bench = Bench::new();
    bench.ask(ALL);
    let told = bench.run(2000 * MS);
    let answer = data(&told);
    assert!(answer.accel.is_some() && answer.gyro.is_some() && answer.magnet.is_some());
    assert!((250..300).contains(&told[0].0), "at {} ms", told[0].0);
    assert!(bench.said.is_empty(), "{:?}", bench.said);
}

#[test]
fn unreadable_values_are_missing_and_without_any_there_is_no_reply() {
    let mut bench = Bench::ready();
    bench.bus.state().missing = vec![0x6B];
    bench.ask(ALL);
    let answer = data(&bench.run(100 * MS));
    assert_eq!((answer.gyro, answer.gyro_milli), (None, None));
    assert!(answer.accel.is_some() && answer.attitude.is_some());
    bench.bus.state().missing = vec![0x6B, 0x19, 0x1E];
    bench.ask(ALL);
    assert_eq!(bench.run(5000 * MS), []);
    assert_eq!(bench.logic.counters().unanswered, 1);
}

#[test]
fn each_client_has_its_own_period() {
    let mut bench = Bench::ready();
    bench.subscribe(1, 100);
    bench.subscribe(2, 30);
    let told = bench.run(3000 * MS);
    let of = |id: i32| {
        let times = told.iter().filter(|told| told.1 == client(id, None));
        times.map(|told| told.0).collect::<Vec<_>>()
    };
    assert_eq!(of(1), (1..=30).map(|k| 500 + 100 * k).collect::<Vec<_>>());
    assert_eq!(of(2), (1..=100).map(|k| 500 + 30 * k).collect::<Vec<_>>());
    let published = told[0].2.sensor_data.unwrap();
    assert_eq!((published.accel, published.gyro), (None, axes(0, 0, 0)));
    assert_eq!(told[0].2.ack_num, None, "the SDK sets it");

    // Client 1 subscribes again, one leaves and one dies.
    bench.subscribe(1, 1000);
    bench.subscribe(2, 0);
    assert_eq!(bench.run(2500 * MS).len(), 2);
    bench.logic.client_died(ClientId(1));
    assert_eq!(bench.run(5000 * MS), []);
    assert_eq!(bench.logic.counters().skipped, 0);
}

#[test]
fn the_shortest_period_is_5_ms_and_a_subscription_needs_sensors() {
    let mut bench = Bench::ready();
    bench.subscribe(1, 1);
    assert_eq!(bench.run(1000 * MS).len(), 200);
    let nothing = SubscribeAction {
        freq: Some(10),
        ..SubscribeAction::default()
    };
    bench.logic.subscribe(bench.now, &client(1, None), nothing);
    assert_eq!(bench.run(1000 * MS), []);
}

#[test]
fn a_client_that_sends_subscribe_gets_all_sensors() {
    let mut bench = Bench::ready();
    bench.logic.publish();
    let told = bench.run(MS);
    assert_eq!(told[0].1, Origin::default());
    let published = data(&told);
    assert!(published.accel.is_some() && published.gyro.is_some() && published.magnet.is_some());
}

#[test]
fn a_broken_bus_is_logged_once_and_reopened() {
    let mut bench = Bench::ready();
    bench.subscribe(1, 100);
    bench.bus.state().broken = Some("the bus is gone".into());
    bench.is_plugged = false;
    assert_eq!(bench.run(30_000 * MS), [], "no old values");
    let said = ["the bus is gone", "there is no bus"];
    assert_eq!(bench.said, said.map(|text| format!("{text}; retrying")));
    assert_eq!(bench.logic.trouble(), Some(said[1]));
    let steps = bench.steps;
    bench.run(60_000 * MS);
    assert!(bench.steps - steps < 100, "it waits between attempts");

    bench.bus.state().broken = None;
    bench.is_plugged = true;
    assert!(bench.run(6_000 * MS).len() > 30);
    assert_eq!(bench.said.len(), 3);
    assert_eq!(bench.logic.trouble(), None);
    assert!(bench.said[2].starts_with("the bus works again after 9"));
}

#[test]
fn a_request_during_a_short_outage_is_answered() {
    let mut bench = Bench::ready();
    bench.bus.state().broken = Some("the bus is stuck".into());
    bench.ask(ALL);
    bench.run(1000 * MS);
    bench.bus.state().broken = None;
    assert_eq!(bench.run(2000 * MS).len(), 1);

    bench.bus.state().broken = Some("the bus is stuck".into());
    bench.ask(ALL);
    assert_eq!(bench.run(4000 * MS), []);
    bench.bus.state().broken = None;
    assert_eq!(bench.run(4000 * MS), [], "the request has expired");
    assert_eq!(bench.logic.counters().unanswered, 1);
}

#[test]
fn an_idle_driver_does_little() {
    let mut bench = Bench::ready();
    let steps = bench.steps;
    bench.run(60_000 * MS);
    assert!((5..20).contains(&(bench.steps - steps)), "{}", bench.steps);
}

#[test]
fn at_rest_the_bias_is_measured_at_the_start() {
    let errors = Errors::of_seed(5);
    let mut bench = Bench::with(Numbers::Right, errors, Calibration::default());
    bench.run(3000 * MS);
    assert_eq!(bench.said.len(), 1, "{:?}", bench.said);
    assert!(bench.said[0].starts_with("gyroscope bias"));
    assert!(
        bench.stored.is_empty(),
        "it is measured again at the next start"
    );
    let bias = bench.bus.state().chips.errors().gyro_bias_deg_s;
    let known = bench.logic.calibration().gyro_deg_s();
    let near = (bias.iter().zip(known)).all(|(a, b)| (a - b).abs() < 0.1);
    assert!(near, "{bias:?} {known:?}");
}

#[test]
fn the_bias_measurement_of_a_moving_robot_is_repeated() {
    let mut bench = Bench::with(Numbers::Right, Errors::none(), Calibration::default());
    bench.motion = |seconds| match seconds < 20.0 {
        true => Motion {
            turn_deg_s: [0.0, 0.0, 40.0],
            ..RESTING
        },
        false => RESTING,
    };
    bench.run(15_000 * MS);
    assert_eq!(bench.said.len(), 1);
    assert!(
        bench.said[0].contains("the robot is moving"),
        "{:?}",
        bench.said
    );
    bench.run(30_000 * MS);
    assert_eq!(bench.said.len(), 2);
    assert!(bench.said[1].starts_with("gyroscope bias"));
}

#[test]
fn a_calibration_of_the_gyroscope_is_saved_and_used() {
    let mut bench = Bench::ready();
    bench.motion = |_| Motion {
        turn_deg_s: [3.0, -2.0, 1.0],
        ..RESTING
    };
    bench.run(100 * MS);
    bench.serve(ServiceKind::Gyro, None);
    assert_eq!(bench.run(1900 * MS), []);
    let findings = report(&bench.run(200 * MS)).findings;
    let good: Vec<_> = findings
        .iter()
        .map(|one| (one.about(), one.good()))
        .collect();
    assert_eq!(good, [("gyro", true), ("file", true)], "{findings:?}");
    assert!(
        findings[0]
            .text()
            .starts_with("x 2.99, y -2.00, z 1.00 deg/s")
    );
    assert_eq!(bench.stored.len(), 1);
    bench.ask(ALL);
    let answer = data(&bench.run(MS));
    let AxisData {
        x_axis,
        y_axis,
        z_axis,
    } = answer.gyro_milli.unwrap();
    assert!(
        x_axis.abs() + y_axis.abs() + z_axis.abs() < 10,
        "{answer:?}"
    );
}

#[test]
fn calibrating_a_moving_robot_fails_and_changes_nothing() {
    let mut bench = Bench::ready();
    let before = bench.logic.calibration().clone();
    bench.motion = |seconds| Motion {
        turn_deg_s: [0.0, 0.0, 30.0 * seconds.sin()],
        ..RESTING
    };
    bench.serve(ServiceKind::Gyro, Some(4000 * MS));
    let findings = report(&bench.run(5000 * MS)).findings;
    assert_eq!(findings.len(), 1);
    assert!(!findings[0].good());
    assert!(bench.stored.is_empty());
    assert_eq!(*bench.logic.calibration(), before);
}

/// Turns at 60 degrees per second; the robot has a magnetic field of its own.
fn turning(seconds: f64) -> Motion {
    let angle = (60.0 * seconds).to_radians();
    Motion {
        turn_deg_s: [0.0, 0.0, 60.0],
        field_gauss: [0.2 * angle.sin() + 0.08, 0.2 * angle.cos() - 0.05, -0.45],
        ..RESTING
    }
}

#[test]
fn one_turn_is_enough_to_measure_the_field_of_the_robot() {
    let mut bench = Bench::ready();
    bench.motion = turning;
    bench.serve(ServiceKind::Magnet, None);
    let told = bench.run(20_000 * MS);
    assert!(
        (6_000..8_000).contains(&told[0].0),
        "as soon as it can: {}",
        told[0].0
    );
    let findings = report(&told).findings;
    assert!(findings.iter().all(|one| one.good()), "{findings:?}");
    let [x, y, z] = bench.logic.calibration().magnet_mgauss();
    assert!(
        (x - 80.0).abs() < 1.0 && (y + 50.0).abs() < 1.0 && z == 0.0,
        "{x} {y} {z}"
    );
    bench.ask(ALL);
    let attitude = data(&bench.run(MS)).attitude.unwrap();
    assert_eq!(attitude.heading_calibrated, Some(true));
    let seen = attitude.heading_deg();
    let turned = 60.0 * (bench.now - bench.start).as_secs_f64();
    // The robot turns counter-clockwise.
    let off = (f64::from(seen) + turned).rem_euclid(360.0);
    assert!(!(1.5..358.5).contains(&off), "{seen} of {turned}");
}

#[test]
fn one_service_at_a_time() {
    let mut bench = Bench::ready();
    bench.serve(ServiceKind::SelfTest, None);
    bench.run(100 * MS);
    bench
        .logic
        .serve(bench.now, client(8, Some(2)), ServiceKind::Gyro, None);
    let refused = bench.run(MS);
    assert_eq!(refused[0].1, client(8, Some(2)));
    assert!(!report(&refused).findings[0].good());
    let findings = report(&bench.run(2000 * MS)).findings;
    let good: Vec<_> = findings
        .iter()
        .map(|one| (one.about(), one.good()))
        .collect();
    assert_eq!(good, [("accel", true), ("gyro", true), ("magnet", true)]);
}

#[test]
fn the_self_test_reports_missing_sensors() {
    let mut bench = Bench::ready();
    bench.bus.state().missing = vec![0x1E];
    bench.motion = |_| Motion {
        specific_force_g: [0.0, 0.0, 0.5],
        ..RESTING
    };
    bench.serve(ServiceKind::SelfTest, None);
    let findings = report(&bench.run(2000 * MS)).findings;
    let good: Vec<_> = findings.iter().map(|one| one.good()).collect();
    assert_eq!(good, [false, true, false], "{findings:?}");
    // The same when the bus is gone.
    bench.bus.state().broken = Some("the bus is gone".into());
    bench.serve(ServiceKind::SelfTest, None);
    let findings = report(&bench.run(2000 * MS)).findings;
    assert!(findings.iter().all(|one| !one.good()), "{findings:?}");
}

#[test]
fn compatible_messages_have_only_the_fields_of_the_original() {
    let mut bench = Bench::with(Numbers::Compatible, Errors::none(), Calibration::default());
    bench.motion = |_| Motion {
        specific_force_g: [-0.128, 0.064, 1.024],
        turn_deg_s: [9.9925, -9.9925, 99.995],
        field_gauss: [0.2, -0.1, -0.4],
        speed_m_s: 0.0,
    };
    bench.run(500 * MS);
    bench.ask(DataRequest {
        extended: None,
        ..ALL
    });
    let answer = data(&bench.run(MS));
    let expected = SensorData {
        accel: axes(-125, 62, 1000),
        gyro: axes(8, -8, 87),
        magnet: axes(51200, -90160, -24491),
        ..SensorData::default()
    };
    assert_eq!(answer, expected);
    assert!(bench.said.is_empty());
}

#[test]
fn sensors_without_clients_are_checked_too() {
    let mut bench = Bench::ready();
    bench.subscribe(1, 20);
    bench.run(1000 * MS);
    bench.bus.state().missing = vec![0x19];
    bench.run(6000 * MS);
    assert_eq!(bench.logic.trouble(), Some("accelerometer: no answer"));
    bench.bus.state().missing.clear();
    bench.run(6000 * MS);
    assert_eq!(bench.logic.trouble(), None);
}

#[test]
fn a_service_ends_when_its_client_dies() {
    let mut bench = Bench::ready();
    bench.serve(ServiceKind::Magnet, None);
    bench.run(100 * MS);
    bench.logic.client_died(ClientId(7));
    bench.serve(ServiceKind::SelfTest, None);
    let findings = report(&bench.run(2000 * MS)).findings;
    assert_eq!(findings.len(), 3, "{findings:?}");
}

#[test]
fn a_service_at_the_start_postpones_the_bias_measurement() {
    let mut bench = Bench::with(Numbers::Right, Errors::none(), Calibration::default());
    bench.run(500 * MS);
    bench.serve(ServiceKind::SelfTest, None);
    bench.run(5000 * MS);
    assert!(!bench.logic.calibration().knows_gyro());
    bench.run(20_000 * MS);
    assert!(bench.logic.calibration().knows_gyro());
}
