//! Tests of the real drivers against the simulated robot, over pseudo-terminals.

use std::net::Ipv4Addr;
use std::thread;
use std::time::{Duration, Instant};

use amber_driver::proto::{DriverHdr, FrameCodec, Packet};
use amber_driver::{Driver, serve_on};
use amber_drivers::{hokuyo, roboclaw};
use amber_map::Map;
use amber_proto::hokuyo::DriverMsg as HokuyoMsg;
use amber_proto::roboclaw::{DriverMsg as RoboclawMsg, MotorsSpeed};
use amber_proto::{DeviceMessage, MsgType, SynNum};
use amber_sim::Devices;
use amber_sim::control::{self, Answer, Request, SimulationState};
use amber_sim::hokuyo::{Quirks, TCP_DEVICE};
use amber_sim::roboclaw::Firmware;
use amber_sim::simulator::{Config, Simulator};
use bytes::BytesMut;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};
use tokio_util::codec::Decoder;

const PATIENCE: Duration = Duration::from_secs(20);

/// A simulation in its own thread.
struct Simulation {
    folder: tempfile::TempDir,
    /// The address on which the scanner listens.
    hokuyo_tcp: String,
    end: Option<oneshot::Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Simulation {
    fn start(firmware: Firmware) -> Self {
        Self::start_with(firmware, Quirks::default())
    }

    fn start_with(firmware: Firmware, quirks: Quirks) -> Self {
        let controllers = amber_sim::roboclaw::Options {
            firmware,
            ..amber_sim::roboclaw::Options::default()
        };
        Self::of(controllers, quirks)
    }

    fn of(roboclaw: amber_sim::roboclaw::Options, quirks: Quirks) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let config = Config {
            map: Map::flat(),
            folder: folder.path().to_owned(),
            start: Some((3.5, 2.6, 0.0)),
            seed: 1,
            speed: 1.0,
            devices: Devices {
                roboclaw,
                hokuyo: amber_sim::hokuyo::Options {
                    tcp: Some((Ipv4Addr::LOCALHOST, 0).into()),
                    quirks,
                    ..amber_sim::hokuyo::Options::default()
                },
                ..Devices::default()
            },
        };
        let (end, ended) = oneshot::channel::<()>();
        let (ready, is_ready) = std::sync::mpsc::channel();
        let thread = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async {
                let simulator = Simulator::open(config).await.unwrap();
                let of_tcp = |(device, at)| (device == TCP_DEVICE).then_some(at);
                let tcp = simulator.devices().into_iter().find_map(of_tcp);
                ready.send(tcp.unwrap()).unwrap();
                simulator.run(async { drop(ended.await) }).await.unwrap();
            });
        });
        let hokuyo_tcp = is_ready.recv().unwrap();
        Self {
            folder,
            hokuyo_tcp,
            end: Some(end),
            thread: Some(thread),
        }
    }

    fn ask(&self, request: &Request) -> Answer {
        control::ask(self.folder.path(), request).unwrap()
    }

    fn state(&self) -> SimulationState {
        match self.ask(&Request::State) {
            Answer::State(state) => *state,
            other => panic!("{other:?}"),
        }
    }

    fn unplug(&self, device: &str) {
        let unplug = Request::Fault {
            fault: "unplug".into(),
            about: Some(device.into()),
            seconds: None,
        };
        assert_eq!(self.ask(&unplug), Answer::Done);
    }

    fn replug(&self, device: &str) {
        let device = device.into();
        assert_eq!(self.ask(&Request::Replug { device }), Answer::Done);
    }

    /// The speed of the fastest wheel in mm/s, without its sign.
    fn fastest(&self) -> f64 {
        let wheels = self.state().wheels_mm_per_s;
        let all = [
            wheels.front_left,
            wheels.front_right,
            wheels.rear_left,
            wheels.rear_right,
        ];
        all.into_iter().map(f64::abs).fold(0.0, f64::max)
    }

    async fn until(&self, what: &str, condition: impl Fn(&Self) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !condition(self) {
            assert!(Instant::now() < deadline, "{what}: {:?}", self.state());
            sleep(Duration::from_millis(20)).await;
        }
    }
}

impl Drop for Simulation {
    fn drop(&mut self) {
        drop(self.end.take());
        let ended = self.thread.take().unwrap().join();
        assert!(ended.is_ok() || thread::panicking());
    }
}

/// The mediator's end of a driver.
struct Mediator {
    to_driver: DuplexStream,
    from_driver: DuplexStream,
    input: BytesMut,
}

async fn serve(driver: impl Driver, scenario: impl AsyncFnOnce(&mut Mediator)) {
    let (to_driver, reader) = duplex(4096);
    let (writer, from_driver) = duplex(256 * 1024);
    let mut mediator = Mediator {
        to_driver,
        from_driver,
        input: BytesMut::new(),
    };
    let (served, ()) = tokio::join!(serve_on(driver, reader, writer), async move {
        scenario(&mut mediator).await;
    });
    served.unwrap();
}

impl Mediator {
    async fn tell<M: DeviceMessage>(&mut self, message: M) {
        let header = DriverHdr {
            client_ids: vec![7],
            ..DriverHdr::default()
        };
        let packet = Packet {
            header,
            message: message.encode_to_vec().into(),
        };
        let frame = packet.encode().unwrap();
        self.to_driver.write_all(&frame).await.unwrap();
    }

    async fn hear<M: DeviceMessage>(&mut self, patience: Duration) -> Option<M> {
        let deadline = tokio::time::Instant::now() + patience;
        loop {
            if let Some(packet) = FrameCodec.decode(&mut self.input).unwrap() {
                if packet.header.client_ids.is_empty() {
                    // A health report for the mediator.
                    continue;
                }
                return Some(M::decode(packet.message).unwrap());
            }
            let read = self.from_driver.read_buf(&mut self.input);
            let read = tokio::time::timeout_at(deadline, read).await.ok()?.unwrap();
            assert_ne!(read, 0, "the driver has ended");
        }
    }

    async fn drive(&mut self, left: i32, right: i32) {
        let speeds = MotorsSpeed {
            front_left_speed: Some(left),
            front_right_speed: Some(right),
            rear_left_speed: Some(left),
            rear_right_speed: Some(right),
        };
        let message = RoboclawMsg {
            motors_command: Some(speeds),
            ..RoboclawMsg::data()
        };
        self.tell(message).await;
    }

    /// Repeats the request until an answer arrives.
    async fn speeds(&mut self) -> MotorsSpeed {
        let asking = async {
            loop {
                let mut ask = RoboclawMsg {
                    current_speed_request: Some(true),
                    ..RoboclawMsg::data()
                };
                ask.set_syn(Some(SynNum(5)));
                self.tell(ask).await;
                if let Some(answer) = self.hear::<RoboclawMsg>(Duration::from_secs(1)).await {
                    assert_eq!(answer.ack(), Some(SynNum(5)));
                    return answer.current_speed.unwrap();
                }
            }
        };
        timeout(PATIENCE, asking).await.expect("the speeds")
    }

    async fn scan(&mut self) -> HokuyoMsg {
        let asking = async {
            loop {
                let mut ask = HokuyoMsg {
                    get_single_scan: Some(true),
                    ..HokuyoMsg::data()
                };
                ask.set_syn(Some(SynNum(6)));
                self.tell(ask).await;
                if let Some(answer) = self.hear::<HokuyoMsg>(Duration::from_secs(3)).await {
                    assert_eq!(answer.ack(), Some(SynNum(6)));
                    return answer;
                }
            }
        };
        timeout(PATIENCE, asking).await.expect("a scan")
    }
}

fn roboclaw_of(simulation: &Simulation, protocol: roboclaw::Protocol) -> impl Driver + use<> {
    let folder = simulation.folder.path();
    let options = roboclaw::Options {
        port: Some(folder.join("roboclaw")),
        reset_gpio: Some(folder.join("reset")),
        protocol: Some(protocol),
        ..roboclaw::Options::default()
    };
    options.driver().unwrap()
}

fn hokuyo_of(simulation: &Simulation) -> impl Driver + use<> {
    let options = hokuyo::Options {
        port: Some(simulation.folder.path().join("hokuyo")),
        ..hokuyo::Options::default()
    };
    options.driver().unwrap()
}

fn hokuyo_over_tcp(simulation: &Simulation) -> impl Driver + use<> {
    let options = hokuyo::Options {
        tcp: Some(simulation.hokuyo_tcp.clone()),
        ..hokuyo::Options::default()
    };
    options.driver().unwrap()
}

#[tokio::test]
async fn wheels_turn_as_commanded_whatever_the_firmware() {
    for (firmware, protocol) in [
        (Firmware::V4_2_4, roboclaw::Protocol::Auto),
        (Firmware::Mcp, roboclaw::Protocol::Auto),
        (Firmware::V4_1_34, roboclaw::Protocol::Auto),
        (Firmware::V4_1_11, roboclaw::Protocol::Auto),
        (Firmware::Legacy, roboclaw::Protocol::Auto),
        (Firmware::LegacyAck, roboclaw::Protocol::LegacyAck),
    ] {
        let simulation = Simulation::start(firmware);
        let driver = roboclaw_of(&simulation, protocol);
        serve(driver, async |mediator| {
            mediator.speeds().await;
            mediator.drive(300, -300).await;
            simulation
                .until("it turns at full speed", |simulation| {
                    simulation.fastest() > 298.0
                })
                .await;
            mediator.drive(300, -300).await;
            // Readings have noise, so the mean is checked.
            let mut sum = [0; 4];
            for _ in 0..20 {
                let speeds = mediator.speeds().await;
                let all = [
                    speeds.front_left_speed,
                    speeds.rear_left_speed,
                    speeds.front_right_speed,
                    speeds.rear_right_speed,
                ];
                for (sum, speed) in sum.iter_mut().zip(all) {
                    *sum += speed.unwrap();
                }
            }
            for (sum, commanded) in sum.into_iter().zip([300, 300, -300, -300]) {
                let mean = f64::from(sum) / 20.0;
                let error = (mean - f64::from(commanded)).abs();
                assert!(error <= 9.0, "{firmware:?}: {mean} of {commanded} mm/s");
            }
        })
        .await;
        // The end of the driver has stopped the wheels.
        simulation
            .until("the wheels stand", |simulation| simulation.fastest() == 0.0)
            .await;
    }
}

#[tokio::test]
async fn one_controller_drives_the_robot() {
    let controllers = amber_sim::roboclaw::Options {
        one_roboclaw: true,
        ..amber_sim::roboclaw::Options::default()
    };
    let simulation = Simulation::of(controllers, Quirks::default());
    let options = roboclaw::Options {
        port: Some(simulation.folder.path().join("roboclaw")),
        address: Some(0x80),
        ..roboclaw::Options::default()
    };
    serve(options.driver().unwrap(), async |mediator| {
        mediator.speeds().await;
        let before = simulation.state();
        // Ahead and to the left. In maps, angles are clockwise.
        mediator.drive(100, 200).await;
        simulation
            .until("it drives a curve to the left", |simulation| {
                let state = simulation.state();
                let wheels = state.wheels_mm_per_s;
                wheels.front_left.min(wheels.rear_left) > 80.0
                    && wheels.front_right.min(wheels.rear_right) > 180.0
                    && before.heading_deg - state.heading_deg > 5.0
            })
            .await;
        let speeds = mediator.speeds().await;
        assert_eq!(speeds.front_left_speed, speeds.rear_left_speed);
        assert_eq!(speeds.front_right_speed, speeds.rear_right_speed);
        assert!(speeds.front_right_speed > speeds.front_left_speed);
    })
    .await;
    simulation
        .until("the wheels stand", |simulation| simulation.fastest() == 0.0)
        .await;
}

#[tokio::test]
async fn after_replugging_the_wheels_stand_until_a_new_command() {
    let simulation = Simulation::start(Firmware::V4_2_4);
    serve(
        roboclaw_of(&simulation, roboclaw::Protocol::Auto),
        async |mediator| {
            mediator.speeds().await;
            mediator.drive(300, -300).await;
            simulation
                .until("it turns", |simulation| simulation.fastest() > 200.0)
                .await;
            simulation.unplug("roboclaw");
            // The controllers get no packets and stop by themselves.
            simulation
                .until("it stops", |simulation| simulation.fastest() == 0.0)
                .await;
            mediator.drive(300, -300).await;
            simulation.replug("roboclaw");
            let speeds = mediator.speeds().await;
            assert_eq!(speeds.front_left_speed, Some(0));
            assert!(simulation.fastest() < 1.0);
            mediator.drive(300, -300).await;
            simulation
                .until("it turns again", |simulation| simulation.fastest() > 200.0)
                .await;
            mediator
                .tell(RoboclawMsg::of_kind(MsgType::ClientDied))
                .await;
            simulation
                .until("it stops for good", |simulation| {
                    simulation.fastest() == 0.0
                })
                .await;
        },
    )
    .await;
}

#[tokio::test]
async fn idle_controllers_are_reset_and_set_up_again() {
    let simulation = Simulation::start(Firmware::V4_2_4);
    let folder = simulation.folder.path();
    let options = roboclaw::Options {
        port: Some(folder.join("roboclaw")),
        reset_gpio: Some(folder.join("reset")),
        idle_stop_ms: Some(200),
        idle_reset_ms: Some(400),
        ..roboclaw::Options::default()
    };
    serve(options.driver().unwrap(), async |mediator| {
        mediator.speeds().await;
        for _ in 0..3 {
            sleep(Duration::from_millis(900)).await;
            mediator.speeds().await;
        }
        // Commands during a reset are dropped, so repeat the command.
        let turning = async {
            while simulation.fastest() < 100.0 {
                mediator.drive(300, -300).await;
                sleep(Duration::from_millis(50)).await;
            }
        };
        timeout(PATIENCE, turning).await.expect("it turns");
    })
    .await;
}

#[tokio::test]
async fn a_scan_is_ordered_from_left_to_right() {
    let simulation = Simulation::start(Firmware::V4_2_4);
    serve(hokuyo_of(&simulation), async |mediator| {
        let answer = mediator.scan().await;
        let scan = answer.scan.unwrap();
        assert_eq!((scan.angles.len(), scan.distances.len()), (682, 682));
        assert_eq!((scan.angles[0], scan.angles[681]), (-119.885, 119.885));
        assert!(scan.angles.is_sorted());
        assert!(answer.timestamp.unwrap() > 1_600_000_000_000);

        // After a quarter turn to the right, the robot has ahead what was on its right.
        let right = distance_at(&scan, 90.0);
        let left = distance_at(&scan, -90.0);
        let ahead = distance_at(&scan, 0.0);
        let place = Request::Place {
            x_m: 3.5,
            y_m: 2.6,
            heading_deg: 90.0,
        };
        assert_eq!(simulation.ask(&place), Answer::Done);
        let close = |a: f64, b: f64| (a - b).abs() < 60.0;
        assert!(
            !close(right, left) && !close(right, ahead),
            "the distances must differ"
        );
        // The scanner may return a scan or two of the old pose.
        let turning = async {
            while !close(
                distance_at(&mediator.scan().await.scan.unwrap(), 0.0),
                right,
            ) {
                sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(PATIENCE, turning).await.expect("it is ahead");
        let turned = mediator.scan().await.scan.unwrap();
        assert!(close(distance_at(&turned, -90.0), ahead), "{ahead}");
    })
    .await;
    simulation
        .until("the laser is off", |simulation| {
            !simulation.state().laser_on
        })
        .await;
}

#[tokio::test]
async fn publishing_resumes_after_replugging() {
    let simulation = Simulation::start(Firmware::V4_2_4);
    publishes_again(hokuyo_of(&simulation), &simulation, "hokuyo").await;
}

#[tokio::test]
async fn publishing_resumes_after_a_lost_connection() {
    let simulation = Simulation::start(Firmware::V4_2_4);
    publishes_again(hokuyo_over_tcp(&simulation), &simulation, "hokuyo-tcp").await;
}

#[tokio::test]
async fn scans_over_tcp_match_those_over_the_serial_port() {
    let simulation = Simulation::start(Firmware::V4_2_4);
    let mut ahead = Vec::new();
    for driver in [true, false] {
        let first = async |mediator: &mut Mediator| {
            let scan = mediator.scan().await.scan.unwrap();
            assert_eq!((scan.angles.len(), scan.distances.len()), (682, 682));
            ahead.push(distance_at(&scan, 0.0));
        };
        match driver {
            true => serve(hokuyo_over_tcp(&simulation), first).await,
            false => serve(hokuyo_of(&simulation), first).await,
        }
    }
    assert!((ahead[0] - ahead[1]).abs() < 60.0, "{ahead:?}");
}

#[tokio::test]
async fn scanners_in_scip_1_and_without_single_scans_work() {
    let quirks = Quirks {
        starts_in_scip_1: true,
        lacks_gd: true,
        ..Quirks::default()
    };
    let simulation = Simulation::start_with(Firmware::V4_2_4, quirks);
    let two_scans = async |mediator: &mut Mediator| {
        for _ in 0..2 {
            let scan = mediator.scan().await.scan.unwrap();
            assert_eq!(scan.distances.len(), 682);
        }
    };
    serve(hokuyo_over_tcp(&simulation), two_scans).await;
    serve(hokuyo_of(&simulation), two_scans).await;
    // After a power cycle it uses SCIP 1.1 again.
    publishes_again(hokuyo_of(&simulation), &simulation, "hokuyo").await;
}

async fn publishes_again(driver: impl Driver, simulation: &Simulation, device: &str) {
    serve(driver, async |mediator| {
        mediator.tell(HokuyoMsg::of_kind(MsgType::Subscribe)).await;
        let begin = Instant::now();
        for _ in 0..10 {
            let scan: HokuyoMsg = mediator.hear(PATIENCE).await.expect("a scan");
            assert_eq!(scan.ack(), Some(SynNum(0)));
        }
        assert!(begin.elapsed() >= Duration::from_millis(900), "too often");
        simulation.unplug(device);
        // Messages in transit arrive, and then no more.
        let quiet = async {
            while mediator
                .hear::<HokuyoMsg>(Duration::from_millis(500))
                .await
                .is_some()
            {}
        };
        timeout(PATIENCE, quiet)
            .await
            .expect("no scanner, no scans");
        simulation.replug(device);
        let scan: HokuyoMsg = mediator.hear(PATIENCE).await.expect("a scan again");
        assert_eq!(scan.scan.unwrap().distances.len(), 682);
    })
    .await;
}

/// The median of the distances around an angle in degrees.
fn distance_at(scan: &amber_proto::hokuyo::Scan, angle: f64) -> f64 {
    let around = (scan.angles.iter().zip(&scan.distances))
        .filter(|(at, distance)| (*at - angle).abs() < 3.0 && **distance > 50);
    let mut distances: Vec<i32> = around.map(|(_, distance)| *distance).collect();
    distances.sort_unstable();
    f64::from(distances[distances.len() / 2])
}
