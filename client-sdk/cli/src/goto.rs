//! `amber goto`: drives to a point on the map. IO.
//!
//! The driver DriveToPoint forgets the target when the client that has set it leaves. The command
//! therefore waits until the robot has arrived, and killing it also stops the robot.

use std::io::IsTerminal;
use std::time::Duration;

use amber_client::proxy::DriveToPointProgressUpdates;
use amber_client::values::Target;
use amber_client::{Client, DriveEnd, DriveToPoint, OrderState, new_order_id};
use amber_map::MAX_EXTENT_M;
use amber_proto::drive_to_point::progress::State;
use amber_proto::{Device, DeviceType};
use amber_terminal::{Failure, Human, note, print, print_over, print_text, show};
use serde::Serialize;
use tokio::time::timeout;

use super::end::End;
use super::silence::Silence;
use super::{lease, reason};

pub(super) const HELP: &str = "\
The y axis of the map points down. `amber call location pose` shows the pose of the robot. Ctrl-C
and Ctrl-Z stop the robot. It also stops when this program or its connection is interrupted for half
a second, and goes on after it, unless that was more than 5 s or another program drives by then.

Examples:
  amber goto 3.5 1
  amber goto 3.5 1 --radius 0.1 --json";

/// Who drives, for people.
const NAME: &str = "amber goto";
/// The command that takes over.
const TAKE_OVER: &str = "amber goto --force";
/// The trip goes on after an interruption of this time at most. After a longer one, people near the
/// robot no longer expect it to move.
const LONGEST_INTERRUPTION: Duration = Duration::from_secs(5);
/// An answer about an order that has ended comes within this time, also on a busy computer.
const PATIENCE: Duration = Duration::from_secs(2);

/// Options of `amber goto`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// x on the map, to the right, in metres
    #[arg(allow_negative_numbers = true)]
    x: f64,
    /// y on the map, downwards, in metres
    #[arg(allow_negative_numbers = true)]
    y: f64,
    /// The robot has arrived when it is closer than this
    #[arg(long, value_name = "METRES", default_value_t = Target::RADIUS_M)]
    radius: f64,
    /// Take over from a program that drives the robot
    #[arg(long)]
    force: bool,
    /// The driver that finds the path
    #[arg(long, default_value = "drive_to_point:0")]
    device: Device,
}

impl Options {
    /// Checks the options before anything is sent.
    pub(super) fn checked(self) -> Result<Self, Failure> {
        if self.device.device_type != DeviceType::DRIVE_TO_POINT {
            let device = self.device;
            return Err(
                Failure::wrong(format!("{device} does not drive to targets"))
                    .hint("try --device drive_to_point:0; `amber devices` lists all devices"),
            );
        }
        if ![self.x, self.y].iter().all(|it| it.abs() <= MAX_EXTENT_M) {
            let text = format!("X and Y must be numbers of at most {MAX_EXTENT_M}");
            let hint = "they are metres on the map, see `amber map show`";
            return Err(Failure::wrong(text).hint(hint));
        }
        if !(self.radius > 0.0 && self.radius.is_finite()) {
            return Err(Failure::wrong(format!(
                "--radius {}: it must be above 0",
                self.radius
            )));
        }
        Ok(self)
    }
}

pub(super) async fn run(client: &Client, options: Options, json: bool) -> Result<(), Failure> {
    let drive = client.drive_to_point(options.device.id.0);
    // From here on, signals stop the robot before this process ends.
    let mut end = End::new()?;
    let target = Target {
        x_m: options.x,
        y_m: options.y,
        radius_m: options.radius,
    };
    let mut screen = Screen::new(json);
    let device = client.device(options.device);
    let mut lease = lease::take(&device, NAME, options.force, TAKE_OVER).await?;
    let driven = loop {
        let id = new_order_id();
        let mut silence = Silence::begin();
        let driven = tokio::select! {
            driven = drive_there(&drive, id, target, &mut screen, &mut silence) => driven,
            failure = lease.lost() => Err(failure),
            () = end.wait() => Err(Failure::new("interrupted; the robot was stopped")),
        };
        screen.end()?;
        if driven.is_ok() {
            break driven;
        }
        let was_late = was_interrupted(&drive, id).await;
        // Only the reason for the end matters. The driver also stops when this client leaves. This
        // stops nobody who has taken over.
        let _ = drive.cancel_order(id).await;
        if !was_late || silence.longest() > LONGEST_INTERRUPTION {
            break driven;
        }
        match lease::take(&device, NAME, false, TAKE_OVER).await {
            Ok(again) => lease = again,
            // The first failure says why the robot has stopped.
            Err(_) => break driven,
        }
        note(format_args!(
            "the robot has stopped, because nothing was heard from this program for a moment; it goes on"
        ));
    };
    show(&driven?, json)
}

/// Whether the order ended because this program did not keep its lease in time, and nobody has taken
/// that since.
async fn was_interrupted(drive: &DriveToPoint, id: u64) -> bool {
    let order = timeout(PATIENCE, drive.order(id)).await;
    matches!(order, Ok(Ok(order)) if order.state() == OrderState::LeaseLost && order.ended_by.is_none())
}

/// Updates without a pose, one after the other, before the command says so: those of one second. On a
/// busy machine, a pose may be late.
const LATE_UPDATES: u32 = 5;
/// The same before it gives up.
const LOST_UPDATES: u32 = 50;

/// Waits until the robot is at the target.
async fn drive_there(
    drive: &DriveToPoint,
    id: u64,
    target: Target,
    screen: &mut Screen,
    silence: &mut Silence,
) -> Result<Arrival, Failure> {
    let device = drive.address();
    let (mut has_driven, mut lost) = (false, 0);
    let mut trip = drive.drive_to(target).with_id(id);
    while let Some(update) = trip.next().await? {
        silence.heard();
        has_driven |= matches!(update.progress.state(), State::Turning | State::Following);
        let failure = lost_pose(device, &update).filter(|_| !has_driven);
        lost = if failure.is_some() { lost + 1 } else { 0 };
        match failure {
            Some(failure) if lost >= LOST_UPDATES => return Err(failure),
            Some(failure) if lost == LATE_UPDATES => {
                note(format_args!("waiting: {}", failure.text()))
            }
            _ => {}
        }
        screen.show(&update)?;
    }
    let order = match trip.await? {
        DriveEnd::Arrived(pose) => {
            return Ok(Arrival {
                arrived: true,
                x_m: pose.x_m,
                y_m: pose.y_m,
            });
        }
        DriveEnd::Ended(order) => order,
    };
    let why = order.reason();
    let (x_m, y_m) = (target.x_m, target.y_m);
    Err(match order.state() {
        OrderState::Skipped => {
            Failure::new(format!("the robot cannot reach ({x_m} m, {y_m} m): {why}"))
                .hint(reason::hint(device))
        }
        OrderState::Unknown => Failure::new(format!("{device} no longer has the target: {why}"))
            .hint("`amber events` shows restarts"),
        _ => Failure::new(format!("{device} no longer has the target: {why}")),
    })
}

/// The robot would stand until someone finds out why.
fn lost_pose(device: Device, update: &DriveToPointProgressUpdates) -> Option<Failure> {
    let why = match update.progress.state() {
        State::NoPose => "the pose of the robot is unknown",
        State::PoseLost => "the pose of the robot is outdated",
        _ => return None,
    };
    let failure = Failure::new(format!("{device} cannot drive: {why}"));
    Some(
        failure
            .hint("`amber status location` shows why. If the robot does not find its place, say where it is: `amber location here X Y DEGREES`"),
    )
}

/// The output for progress.
struct Screen {
    json: bool,
    is_terminal: bool,
    /// The last line.
    line: String,
}

impl Screen {
    fn new(json: bool) -> Self {
        Self {
            json,
            is_terminal: !json && std::io::stdout().is_terminal(),
            line: String::new(),
        }
    }

    /// Shows the position of the robot: in one updated line on a terminal, otherwise in a new line
    /// for each new state.
    fn show(&mut self, update: &DriveToPointProgressUpdates) -> Result<(), Failure> {
        let shown = Shown::of(update);
        if self.json {
            return show(&shown, true);
        }
        if self.is_terminal {
            self.line = shown.human();
            return print_over(&self.line);
        }
        if self.line == shown.state {
            return Ok(());
        }
        self.line.clone_from(&shown.state);
        print_text(&format!("{}\n", shown.human()))
    }

    fn end(&self) -> Result<(), Failure> {
        match self.is_terminal && !self.line.is_empty() {
            true => print(b"\n"),
            false => Ok(()),
        }
    }
}

/// The progress at one moment.
#[derive(Debug, Serialize)]
struct Shown {
    state: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    remaining_m: Option<f64>,
    x_m: f64,
    y_m: f64,
    quality: f64,
}

impl Shown {
    fn of(update: &DriveToPointProgressUpdates) -> Self {
        let (progress, at) = (&update.progress, update.location);
        let state = progress.state();
        Self {
            state: state.as_str_name().to_lowercase().replace('_', " "),
            reason: progress.reason.clone(),
            remaining_m: progress.remaining.filter(|_| state != State::Idle),
            x_m: at.x_m,
            y_m: at.y_m,
            quality: at.quality,
        }
    }
}

impl Human for Shown {
    fn human(&self) -> String {
        let Self {
            state, x_m, y_m, ..
        } = self;
        let mut line = format!("at {x_m:.2} m, {y_m:.2} m: {state}");
        if let Some(remaining_m) = self.remaining_m {
            line.push_str(&format!(", {remaining_m:.2} m left"));
        }
        if let Some(reason) = self.reason.as_deref().filter(|reason| !reason.is_empty()) {
            line.push_str(&format!(" ({reason})"));
        }
        line
    }
}

#[derive(Debug, Serialize)]
struct Arrival {
    arrived: bool,
    x_m: f64,
    y_m: f64,
}

impl Human for Arrival {
    fn human(&self) -> String {
        format!("arrived: at {:.2} m, {:.2} m\n", self.x_m, self.y_m)
    }
}

#[cfg(test)]
mod tests {
    use amber_client::fake::{Fake, Sent};
    use amber_proto::drive_to_point::{Configuration, DriverMsg, Location, Progress};
    use amber_proto::motion::lease_request::Action;
    use amber_proto::motion::{self, MotionState};
    use amber_proto::order::Order;
    use amber_proto::{DeviceMessage, MsgType};
    use prost::Message;

    use super::*;

    const DEVICE: Device = Device::new(DeviceType::DRIVE_TO_POINT, 0);
    const TARGET: Target = Target::new(1.5, -2.0);
    const ID: u64 = 1 << 32;

    fn order(id: u64, state: OrderState, reason: Option<&str>) -> Order {
        Order {
            id: Some(id),
            state: Some(state.into()),
            reason: reason.map(str::to_owned),
            ..Order::default()
        }
    }

    fn driving(order: Order) -> (State, Order) {
        (State::Following, order)
    }

    /// A driver that accepts the order, publishes these orders when it is first asked about it, and
    /// answers later questions with the last one. `None`: it knows no orders.
    async fn play(fake: &mut Fake, mut published: Option<&[(State, Order)]>) {
        let running = order(ID, OrderState::Running, None);
        let location = Location {
            x: Some(1.4),
            y: Some(-2.0),
            ..Location::default()
        };
        let mut last = running.clone();
        while let Some(sent) = fake.receive().await {
            let Sent { device, bytes } = &sent;
            assert_eq!(*device, DEVICE);
            let asked = DriverMsg::decode(bytes.clone()).unwrap();
            let mut answer = DriverMsg::data();
            if let Some(go) = asked.go {
                assert_eq!((go.id, go.targets.longitudes[0]), (ID, TARGET.x_m));
                if published.is_none() {
                    continue;
                }
                answer.order = Some(running.clone());
            } else if asked.get_configuration.is_some() {
                answer.get_configuration = Some(true);
                answer.configuration = Some(Configuration::default());
            } else if asked.order_id == Some(ID) {
                answer.order = Some(last.clone());
                fake.answer(&sent, &answer.encode_to_vec()).await;
                for (state, order) in published.replace(&[]).unwrap_or_default() {
                    let mut progress = Progress::default();
                    progress.set_state(*state);
                    let message = DriverMsg {
                        progress: Some(progress),
                        location: Some(location),
                        order: Some(order.clone()),
                        ack_num: Some(0),
                        ..DriverMsg::data()
                    };
                    fake.say(DEVICE, &message.encode_to_vec()).await;
                    if order.id == Some(ID) {
                        last = order.clone();
                    }
                }
                continue;
            } else {
                let kinds = [Some(MsgType::Subscribe), Some(MsgType::Unsubscribe)];
                assert!(kinds.contains(&asked.kind()), "{asked:?}");
                continue;
            }
            fake.answer(&sent, &answer.encode_to_vec()).await;
        }
    }

    async fn driven(published: Option<&[(State, Order)]>) -> Result<Arrival, Failure> {
        let (client, mut fake) = Fake::new();
        let drive = client.drive_to_point(0);
        let (mut screen, mut silence) = (Screen::new(true), Silence::begin());
        tokio::select! {
            driven = drive_there(&drive, ID, TARGET, &mut screen, &mut silence) => driven,
            () = play(&mut fake, published) => panic!("the client has ended"),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_order_that_arrives_ends_the_command() {
        let orders =
            [OrderState::Running, OrderState::Arrived].map(|it| driving(order(ID, it, None)));
        let arrival = driven(Some(&orders)).await.unwrap();
        assert_eq!((arrival.x_m, arrival.y_m), (1.4, -2.0));
        assert_eq!(arrival.human(), "arrived: at 1.40 m, -2.00 m\n");
    }

    #[tokio::test(start_paused = true)]
    async fn a_robot_that_does_not_know_its_pose_says_so_at_once() {
        for (state, why) in [(State::NoPose, "unknown"), (State::PoseLost, "outdated")] {
            let lost = || (state, order(ID, OrderState::Running, None));
            let published: Vec<_> = (0..LOST_UPDATES).map(|_| lost()).collect();
            let failure = driven(Some(&published)).await.unwrap_err();
            let text = format!("drive-to-point:0 cannot drive: the pose of the robot is {why}");
            let hint = "`amber status location` shows why. If the robot does not find its place, say where it is: `amber location here X Y DEGREES`";
            assert_eq!(failure, Failure::new(text).hint(hint));
            // Poses may be late.
            let arrived = (State::Idle, order(ID, OrderState::Arrived, None));
            let late: Vec<_> = published[1..].iter().cloned().chain([arrived]).collect();
            assert!(driven(Some(&late)).await.is_ok());
        }
        // While it drives, it waits for its pose.
        let published = [
            (State::Following, order(ID, OrderState::Running, None)),
            (State::PoseLost, order(ID, OrderState::Running, None)),
            (State::Idle, order(ID, OrderState::Arrived, None)),
        ];
        let arrived = driven(Some(&published)).await;
        assert!(arrived.is_ok(), "{arrived:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn an_order_that_ends_otherwise_is_an_error_with_its_reason() {
        for (state, reason, text, hint) in [
            (
                OrderState::Skipped,
                Some("no path"),
                "the robot cannot reach (1.5 m, -2 m): no path",
                Some("`amber status drive-to-point:0` shows more"),
            ),
            (
                OrderState::Replaced,
                Some("replaced by tour (client 12)"),
                "drive-to-point:0 no longer has the target: replaced by tour (client 12)",
                None,
            ),
            (
                OrderState::Unknown,
                None,
                "drive-to-point:0 no longer has the target: the driver no longer knows the order: it \
                 was restarted, or many orders came since",
                Some("`amber events` shows restarts"),
            ),
        ] {
            let failure = driven(Some(&[driving(order(ID, state, reason))]))
                .await
                .unwrap_err();
            let expected = Failure::new(text);
            let expected = match hint {
                Some(hint) => expected.hint(hint),
                None => expected,
            };
            assert_eq!(failure, expected);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_order_of_somebody_else_does_not_end_the_command() {
        let older = [driving(order(ID + 1, OrderState::Arrived, None))];
        let waited =
            tokio::time::timeout(std::time::Duration::from_secs(3), driven(Some(&older))).await;
        assert!(waited.is_err(), "{waited:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_driver_without_orders_is_an_error_with_a_hint() {
        let failure = driven(None).await.unwrap_err();
        let text = "drive-to-point:0 refused the request: its driver knows no orders with ids";
        assert_eq!(failure.text(), text);
    }

    /// A driver with leases. Its first order ends with a lost lease, the next one arrives. Returns
    /// the number of orders.
    async fn play_lost_lease(fake: &mut Fake, taken_by: Option<i32>, is_held: bool) -> usize {
        let mut ids = Vec::new();
        while let Some(sent) = fake.receive().await {
            let asked = DriverMsg::decode(sent.bytes.clone()).unwrap();
            let motion = motion::DriverMsg::decode(sent.bytes.clone()).unwrap();
            if let Some(request) = motion.lease_request {
                // Those who keep it learn nothing new.
                let is_mine = request.action() != Action::Take || ids.is_empty() || !is_held;
                let state = MotionState {
                    yours: Some(is_mine),
                    refused: (!is_mine).then(|| "a page holds the lease of this device".into()),
                    ..MotionState::default()
                };
                let answer = motion::DriverMsg {
                    motion_state: Some(state),
                    ..motion::DriverMsg::data()
                };
                fake.answer(&sent, &answer.encode_to_vec()).await;
                continue;
            }
            let mut answer = DriverMsg::data();
            if let Some(go) = asked.go {
                ids.push(go.id);
                answer.order = Some(order(go.id, OrderState::Running, None));
            } else if let Some(id) = asked.order_id.or(asked.cancel_id) {
                answer.order = Some(match ids.len() {
                    1 => Order {
                        ended_by: taken_by,
                        ..order(id, OrderState::LeaseLost, Some("the lease was lost"))
                    },
                    _ => order(id, OrderState::Arrived, None),
                });
            } else if asked.get_progress.is_some() {
                answer.get_progress = Some(true);
                answer.progress = Some(Progress::default());
                answer.location = Some(Location::default());
            } else {
                continue;
            }
            fake.answer(&sent, &answer.encode_to_vec()).await;
        }
        ids.len()
    }

    #[tokio::test(start_paused = true)]
    async fn a_trip_goes_on_after_a_moment_in_which_the_lease_was_not_kept() {
        for (taken_by, is_held, arrives, orders) in [
            (None, false, true, 2),
            // Another program has driven since.
            (Some(8), false, false, 1),
            // Another program drives.
            (None, true, false, 1),
        ] {
            let (client, mut fake) = Fake::new();
            let options = Options {
                x: 1.5,
                y: -2.0,
                radius: 0.2,
                force: false,
                device: DEVICE,
            };
            let trip = async {
                let driven = run(&client, options, true).await;
                client.close().await;
                driven
            };
            let (driven, given) = tokio::join!(trip, play_lost_lease(&mut fake, taken_by, is_held));
            assert_eq!((driven.is_ok(), given), (arrives, orders), "{driven:?}");
            if let Err(failure) = driven {
                let text = "drive-to-point:0 no longer has the target: the lease was lost";
                assert_eq!(failure.text(), text);
            }
        }
    }

    #[test]
    fn impossible_targets_are_refused_before_anything_is_sent() {
        let options = |x, radius, device: &str| Options {
            x,
            y: 0.0,
            radius,
            force: false,
            device: device.parse().unwrap(),
        };
        assert!(options(1.0, 0.2, "8:3").checked().is_ok());
        assert!(options(f64::NAN, 0.2, "8:0").checked().is_err());
        assert!(options(1.0, 0.0, "8:0").checked().is_err());
        assert!(options(1.0, 0.2, "hokuyo").checked().is_err());
    }
}
