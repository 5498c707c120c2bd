//! Lease, halt and expiry of drivers that have no code for them.

use amber_proto::battery_state::BatteryState;
use amber_proto::motion::lease_request::Action;
use amber_proto::motion::motion_report::News;
use amber_proto::motion::{HaltRequest, LeaseRequest, MotionState};
use amber_proto::{Device, DeviceType, SynNum, motion};
use tokio::time::Instant;

use super::*;
use crate::Devices;
use crate::devices::roboclaw::{self, MotorsSpeed, RoboclawDriver, RoboclawLink};
use crate::many::serve_many_as;
use crate::pipe::Peer;
use crate::testing::from_to;

/// Wheels that note each command with its time in milliseconds.
struct Wheels {
    start: Instant,
    notes: Notes,
    is_slow: bool,
}

impl Wheels {
    fn new() -> (Self, Notes) {
        let notes = Notes::default();
        let wheels = Self {
            start: Instant::now(),
            notes: notes.clone(),
            is_slow: false,
        };
        (wheels, notes)
    }
}

impl RoboclawDriver for Wheels {
    async fn start(&mut self, _link: RoboclawLink) -> Result<(), Box<dyn Error + Send + Sync>> {
        // The clock of the test exists from here on; the real one has gone on since `new`.
        self.start = Instant::now();
        Ok(())
    }

    async fn drive(&mut self, speeds: MotorsSpeed, outcome: Outcome) {
        if self.is_slow {
            sleep(Duration::from_millis(100)).await;
        }
        let client = outcome.client().map_or(0, |client| client.0);
        let (speed, at) = (speeds.front_left_speed(), self.start.elapsed().as_millis());
        (self.notes.borrow_mut()).push(format!("{client}: {speed} at {at}"));
        outcome.done();
    }

    async fn speeds(&mut self, reply: Reply<MotorsSpeed>) {
        reply.send(all(7));
    }

    async fn battery(&mut self, reply: Reply<BatteryState>) {
        reply.refuse("no voltage is measured");
    }
}

/// Runs a scenario, and ignores the reports that nobody has read.
fn drain(driver: impl Driver, scenario: impl AsyncFnOnce(&mut Mediator)) {
    run(async {
        let (mut mediator, reader, writer) = Mediator::new();
        let (served, ()) = tokio::join!(crate::serve_on(driver, reader, writer), async {
            scenario(&mut mediator).await;
            mediator.close().await;
            while mediator.read().await.is_some() {}
        });
        served.unwrap();
    });
}

fn all(speed: i32) -> MotorsSpeed {
    MotorsSpeed {
        front_left_speed: Some(speed),
        front_right_speed: Some(speed),
        rear_left_speed: Some(speed),
        rear_right_speed: Some(speed),
    }
}

/// A command with these terms, as bytes.
fn drive(speed: i32, syn: Option<u32>, terms: &motion::DriverMsg) -> Vec<u8> {
    let command = roboclaw::DriverMsg {
        motors_command: Some(all(speed)),
        syn_num: syn,
        ..roboclaw::DriverMsg::data()
    };
    let wish = wire::DriverMsg {
        want_outcome: syn.map(|_| true),
        ..wire::DriverMsg::default()
    };
    [
        command.encode_to_vec(),
        terms.encode_to_vec(),
        wish.encode_to_vec(),
    ]
    .concat()
}

fn valid(valid_ms: u32) -> motion::DriverMsg {
    motion::DriverMsg {
        valid_ms: Some(valid_ms),
        ..motion::DriverMsg::default()
    }
}

fn lease(action: Action) -> motion::DriverMsg {
    motion::DriverMsg {
        lease_request: Some(LeaseRequest {
            action: action.into(),
            name: Some("amber goto".into()),
            period_ms: Some(400),
        }),
        ..motion::DriverMsg::data()
    }
}

fn halt(halt: bool) -> motion::DriverMsg {
    let name = Some("the operator".into());
    motion::DriverMsg {
        halt_request: Some(HaltRequest { halt, name }),
        ..motion::DriverMsg::data()
    }
}

impl Mediator {
    async fn tell_wheels(&mut self, client: i32, speed: i32, terms: &motion::DriverMsg) {
        self.write_bytes(from(client), drive(speed, None, terms))
            .await;
    }

    async fn ask_motion(
        &mut self,
        client: i32,
        syn: u32,
        mut message: motion::DriverMsg,
    ) -> MotionState {
        message.set_syn(Some(SynNum(syn)));
        self.write(from(client), &message).await;
        loop {
            let (clients, message) = self.hear::<motion::DriverMsg>().await;
            if message.ack() == Some(SynNum(syn)) {
                assert_eq!(clients, [client]);
                return message.motion_state.unwrap();
            }
        }
    }

    /// Why a command is refused.
    async fn refusal(&mut self, client: i32, syn: u32, speed: i32) -> Option<String> {
        let command = drive(speed, Some(syn), &motion::DriverMsg::default());
        self.write_bytes(from(client), command).await;
        loop {
            let (_, message) = self.hear::<wire::DriverMsg>().await;
            if message.ack() == Some(SynNum(syn)) {
                return message.outcome.unwrap().why_refused();
            }
        }
    }
}

#[test]
fn commands_expire_by_the_clock_of_the_driver() {
    let (wheels, notes) = Wheels::new();
    drain(roboclaw::driver(wheels), async |mediator| {
        mediator.tell_wheels(5, 100, &valid(300)).await;
        sleep(Duration::from_millis(200)).await;
        mediator.tell_wheels(5, 200, &valid(300)).await;
        let (clients, report) = mediator.hear::<motion::DriverMsg>().await;
        let report = report.motion_report.unwrap();
        assert_eq!((clients, report.news()), (vec![], News::Stopped));
        sleep(Duration::from_secs(10)).await;
        mediator
            .tell_wheels(5, 300, &motion::DriverMsg::default())
            .await;
        sleep(Duration::from_secs(10)).await;
    });
    let expected = [
        "5: 100 at 0",
        "5: 200 at 200",
        "5: 0 at 500",
        "5: 300 at 10500",
    ];
    assert_eq!(*notes.borrow(), expected);
}

#[test]
fn a_client_without_lease_and_validity_sees_no_difference() {
    let (wheels, notes) = Wheels::new();
    drain(roboclaw::driver(wheels), async |mediator| {
        for (client, speed) in [(5, 100), (6, 200), (5, 300)] {
            assert_eq!(mediator.refusal(client, 1, speed).await, None);
        }
        let ask = roboclaw::DriverMsg {
            current_speed_request: Some(true),
            ..roboclaw::DriverMsg::default()
        };
        mediator.ask(2, ask).await;
        let packet = mediator.read().await.unwrap();
        let expected = roboclaw::DriverMsg {
            current_speed: Some(all(7)),
            ack_num: Some(2),
            ..roboclaw::DriverMsg::data()
        };
        assert_eq!(packet.message, expected.encode_to_vec());
        mediator.expect_silence(Duration::from_secs(3600)).await;
    });
    assert_eq!(
        *notes.borrow(),
        ["5: 100 at 0", "6: 200 at 0", "5: 300 at 0"]
    );
}

#[test]
fn others_are_refused_while_a_client_holds_the_lease_and_may_stop() {
    let (wheels, notes) = Wheels::new();
    drain(roboclaw::driver(wheels), async |mediator| {
        assert_eq!(
            mediator.ask_motion(5, 1, lease(Action::Take)).await.yours,
            Some(true)
        );
        let why = mediator.refusal(6, 2, 50).await.unwrap();
        assert_eq!(why, "amber goto holds the lease of this device");
        assert_eq!(mediator.refusal(5, 3, 100).await, None);
        assert_eq!(mediator.refusal(6, 4, 0).await, None);
        assert_eq!(mediator.refusal(5, 5, 200).await, None);
        let query = motion::DriverMsg {
            get_motion_state: Some(true),
            ..motion::DriverMsg::data()
        };
        let state = mediator.ask_motion(6, 6, query).await;
        assert_eq!(state.holder.unwrap().client_id, 5);
        assert_eq!(state.refused_for_holder, Some(1));
        sleep(Duration::from_secs(1)).await;
    });
    let expected = ["5: 100 at 0", "6: 0 at 0", "5: 200 at 0", "5: 0 at 400"];
    assert_eq!(
        *notes.borrow(),
        expected,
        "without a sign of life the lease ends"
    );
}

#[test]
fn what_waits_when_a_lease_ends_moves_nothing() {
    let (mut wheels, notes) = Wheels::new();
    wheels.is_slow = true;
    drain(roboclaw::driver(wheels), async |mediator| {
        mediator.ask_motion(5, 1, lease(Action::Take)).await;
        let plain = motion::DriverMsg::default();
        for speed in [100, 200, 300] {
            mediator.tell_wheels(5, speed, &plain).await;
        }
        sleep(Duration::from_millis(50)).await;
        mediator.ask_motion(5, 2, lease(Action::Release)).await;
        sleep(Duration::from_secs(1)).await;
    });
    assert_eq!(*notes.borrow(), ["5: 100 at 100", "5: 0 at 200"]);
}

#[test]
fn a_halt_stops_and_is_reported_until_its_release() {
    let (wheels, notes) = Wheels::new();
    drain(roboclaw::driver(wheels), async |mediator| {
        mediator
            .tell_wheels(5, 100, &motion::DriverMsg::default())
            .await;
        sleep(Duration::from_millis(10)).await;
        let state = mediator.ask_motion(6, 1, halt(true)).await;
        assert_eq!(state.halt.unwrap().by(), "the operator");
        let report = mediator
            .hear::<motion::DriverMsg>()
            .await
            .1
            .motion_report
            .unwrap();
        assert_eq!(report.news(), News::Halted);
        assert_eq!(report.halt.unwrap().by(), "the operator");
        let why = mediator.refusal(5, 2, 100).await.unwrap();
        assert_eq!(why, "the device was halted by the operator");
        assert_eq!(mediator.ask_motion(6, 3, halt(false)).await.halt, None);
        assert_eq!(mediator.refusal(5, 4, 300).await, None);
    });
    assert_eq!(
        *notes.borrow(),
        ["5: 100 at 0", "5: 0 at 10", "5: 300 at 10"]
    );
}

#[test]
fn a_client_that_is_gone_moves_nothing_any_more() {
    let (wheels, notes) = Wheels::new();
    drain(roboclaw::driver(wheels), async |mediator| {
        mediator
            .tell_wheels(5, 100, &motion::DriverMsg::default())
            .await;
        sleep(Duration::from_millis(10)).await;
        mediator.tell(6, MsgType::ClientDied).await;
        sleep(Duration::from_millis(10)).await;
        mediator.tell(5, MsgType::ClientDied).await;
        sleep(Duration::from_millis(10)).await;
    });
    assert_eq!(*notes.borrow(), ["5: 100 at 0", "5: 0 at 20"]);
}

#[test]
fn each_device_of_a_process_has_its_own_lease() {
    let [one, two] = [0, 1].map(|id| Device::new(DeviceType::ROBOCLAW, id));
    let ((first, first_notes), (second, second_notes)) = (Wheels::new(), Wheels::new());
    run(async {
        let (mut mediator, reader, writer) = Mediator::new();
        let devices = Devices::new()
            .add(one, roboclaw::driver(first))
            .add(two, roboclaw::driver(second));
        let served = serve_many_as(Peer::Amber, std::future::pending(), devices, reader, writer);
        let scenario = async {
            let mut take = lease(Action::Take);
            take.set_syn(Some(SynNum(1)));
            mediator.write(from_to(5, one), &take).await;
            while mediator
                .hear::<motion::DriverMsg>()
                .await
                .1
                .motion_state
                .is_none()
            {}
            for device in [one, two] {
                let command = drive(60, None, &motion::DriverMsg::default());
                mediator.write_bytes(from_to(6, device), command).await;
            }
            mediator.close().await;
            while mediator.read().await.is_some() {}
        };
        let (served, ()) = tokio::join!(served, scenario);
        served.unwrap();
    });
    assert!(first_notes.borrow().is_empty());
    assert_eq!(*second_notes.borrow(), ["6: 60 at 0"]);
}

#[test]
fn requests_are_classified_as_described() {
    use crate::Motion;
    let (wheels, _) = Wheels::new();
    let moves = roboclaw::driver(wheels).moves().unwrap();
    let command = |speeds: MotorsSpeed| roboclaw::DriverMsg {
        motors_command: Some(speeds),
        ..roboclaw::DriverMsg::data()
    };
    // An absent speed is 0.
    for (speeds, expected) in [
        (MotorsSpeed::default(), Motion::Stops),
        (all(0), Motion::Stops),
        (all(1), Motion::Moves),
    ] {
        assert_eq!((moves.motion)(&command(speeds)), expected, "{speeds:?}");
    }
    assert_eq!((moves.stop.unwrap())(), command(all(0)));
    let ask = roboclaw::DriverMsg {
        current_speed_request: Some(true),
        ..roboclaw::DriverMsg::data()
    };
    assert_eq!((moves.motion)(&ask), Motion::Nothing);

    let moves = drive::driver(Router).moves().unwrap();
    let targets = |targets: Option<drive::Targets>| drive::DriverMsg {
        set_targets: Some(true),
        targets,
        ..drive::DriverMsg::data()
    };
    let target = drive::Targets {
        longitudes: vec![1.0],
        ..drive::Targets::default()
    };
    assert_eq!((moves.motion)(&targets(Some(target))), Motion::Errand);
    assert_eq!(
        (moves.motion)(&targets(Some(drive::Targets::default()))),
        Motion::Stops
    );
    assert_eq!((moves.motion)(&(moves.stop.unwrap())()), Motion::Stops);
    assert_eq!((moves.motion)(&drive::DriverMsg::data()), Motion::Nothing);
}
