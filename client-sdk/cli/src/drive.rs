//! `amber drive`: drives with the keyboard or a gamepad, or at given speeds for a given time. IO.
//!
//! The wheels are stopped before the command ends: by a key, Ctrl-C, Ctrl-Z, SIGTERM, SIGHUP
//! (a closed terminal) or an error. If this process is killed or freezes, the driver stops the
//! wheels within half a second, because each command holds only for that time.

use std::cell::Cell;
use std::io::{self, IsTerminal};
use std::time::Duration;

use amber_client::{Client, Error, Roboclaw, WheelSpeeds};
use amber_proto::gamepad::GamepadState;
use amber_proto::{Device, DeviceType};
use amber_terminal::{Failure, Human, print, print_over, show};
use serde::Serialize;
use tokio::sync::mpsc;
use tokio::time::{Instant, interval, sleep, sleep_until};

use self::gamepad::{PadHand, Which};
pub(crate) use self::hand::{FASTEST_MM_S, SLOWEST_MM_S};
use self::hand::{Hand, Wish};
use self::held_key::{HeldKey, Key};
use self::keyboard::Keyboard;
use super::end::End;
use super::lease;
use super::reason::{self, Complaints};

mod gamepad;
mod hand;
mod held_key;
pub(crate) mod keyboard;

pub(super) const HELP: &str = "\
Keys:
  arrows or WASD  drive and turn while you hold the key
  + and -         faster, slower
  q, Esc, Ctrl-C  stop and quit, as does Ctrl-Z
  any other key   stop

With --gamepad, hold the left shoulder button and move the left stick.

Examples:
  amber drive
  amber drive --gamepad
  amber drive --gamepad=gamepad:0
  amber drive --left 200 --right 200 --for 2s";

/// Options of `amber drive`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Wheels, e.g. roboclaw, roboclaw:0 or 2:0
    #[arg(default_value = "roboclaw:0")]
    device: Device,
    /// Speed of the left wheels; negative is backwards
    #[arg(
        long,
        value_name = "MM_S",
        requires = "right",
        allow_negative_numbers = true
    )]
    left: Option<i32>,
    /// Speed of the right wheels; negative is backwards
    #[arg(
        long,
        value_name = "MM_S",
        requires = "time",
        allow_negative_numbers = true
    )]
    right: Option<i32>,
    /// Duration of a drive without the keyboard
    #[arg(long = "for", id = "time", value_name = "SECONDS", requires = "left", value_parser = amber_terminal::seconds)]
    time: Option<Duration>,
    /// Drive with the first gamepad that is found at this computer, with that of this file, such as
    /// /dev/input/event5, or with that of this device, such as gamepad:0
    #[arg(
        long,
        value_name = "FILE|DEVICE",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "auto",
        conflicts_with = "left"
    )]
    gamepad: Option<String>,
    /// Initial speed with the keyboard, or that of the stick at its end
    #[arg(
        long,
        value_name = "MM_S",
        default_value_t = 200,
        conflicts_with = "left",
        value_parser = clap::value_parser!(i32).range(i64::from(SLOWEST_MM_S)..=i64::from(FASTEST_MM_S)),
    )]
    speed: i32,
    /// Take over from a program that drives the robot
    #[arg(long)]
    force: bool,
}

/// Who drives, for people.
const NAME: &str = "amber drive";
/// The time between repeated commands: some get lost, and drivers stop wheels
/// without commands.
const REPEAT: Duration = Duration::from_millis(200);
/// How long a command holds at the wheels, whatever freezes on the way: two of three may get lost.
pub(super) const VALIDITY: Duration = Duration::from_millis(500);
/// The shortest time between two commands that move: a stick reports hundreds of changes per second.
const LEAST: Duration = Duration::from_millis(30);
/// The time between requests for the speeds.
const MEASURE: Duration = Duration::from_millis(250);
/// If the wheels stand still for longer than this after a command, they do not start.
const START_UP: Duration = Duration::from_millis(200);
/// Older speeds are not shown, because the driver may hang. This is longer than the delay of one
/// lost answer.
const STALE: Duration = Duration::from_millis(1500);
/// The number of stop commands, because some may get lost.
const STOPS: u32 = 3;
const BETWEEN_STOPS: Duration = Duration::from_millis(20);

impl Options {
    /// Checks the options before anything is sent.
    pub(super) fn checked(self, json: bool) -> Result<Self, Failure> {
        const SCRIPT: &str = "`amber drive --left 200 --right 200 --for 2s` needs no keyboard";
        if self.device.device_type != DeviceType::ROBOCLAW {
            return Err(Failure::wrong(format!("{} has no wheels", self.device))
                .hint("try `amber drive roboclaw:0`; `amber devices` lists all devices"));
        }
        if self.time.is_none() {
            if json {
                return Err(Failure::wrong("--json needs --left, --right and --for").hint(SCRIPT));
            }
            if self.gamepad.is_none() && !has_keys() {
                return Err(
                    Failure::wrong("driving with the keyboard needs a terminal").hint(SCRIPT)
                );
            }
        }
        Ok(self)
    }
}

pub(super) async fn run(client: &Client, options: Options, json: bool) -> Result<(), Failure> {
    let roboclaw = client.roboclaw(options.device.id.0).with_validity(VALIDITY);
    // From here on, signals stop the wheels before this process ends.
    let mut end = End::new()?;
    // Commands have no answer. This shows whether the driver works.
    roboclaw.speeds().await?;
    let proxy = client.device(options.device);
    let lease = lease::take(&proxy, NAME, options.force, "amber drive --force").await?;
    let (Some(left), Some(right), Some(time)) = (options.left, options.right, options.time) else {
        let mut controls = Controls::open(client, &options).await?;
        print(format!("{}\r\n", controls.help()).as_bytes())?;
        let mut is_taken = false;
        // Without a terminal, each change would be a line.
        let shows = has_keys();
        let driven = tokio::select! {
            driven = controls.drive(&roboclaw, options.speed, |line| match shows {
                true => print_over(fit(line)),
                false => Ok(()),
            }) => driven,
            failure = lease.lost() => {
                is_taken = true;
                Err(failure)
            }
            () = end.wait() => Ok(()),
        };
        // The wheels obey everybody who stops them: do not stop them for who has taken over.
        let stopped = if is_taken {
            Ok(())
        } else {
            stop(&roboclaw).await
        };
        drop(controls);
        // The terminal may be closed.
        let _ = print(b"\n");
        return driven.and(stopped);
    };
    let speeds = WheelSpeeds::sides(left, right);
    let complaints = Complaints::begin(client, options.device).await;
    let measured = Cell::new(None);
    let started = Instant::now();
    let mut is_taken = false;
    let driven = tokio::select! {
        driven = keep(&roboclaw, speeds, started + time) => match driven {
            Err(Error::Refused { message, .. }) => {
                Err(reason::refused(client, options.device, &message).await)
            }
            driven => driven.map_err(Into::into),
        },
        failure = lease.lost() => {
            is_taken = true;
            Err(failure)
        }
        error = measure(&roboclaw, &measured) => Err(error.into()),
        () = end.wait() => Err(Failure::new("interrupted before the time was over")
            .hint("the wheels were stopped")),
    };
    let seconds = started.elapsed().as_secs_f64();
    if is_taken {
        return driven;
    }
    let stopped = stop(&roboclaw).await;
    driven.and(stopped)?;
    complaints.end(client).await?;
    let device = options.device;
    let Some((measured, at)) = fresh(&measured, Instant::now()) else {
        return Err(
            Failure::new(format!("{device} did not answer while driving"))
                .hint(reason::hint(device)),
        );
    };
    let has_had_time = at.duration_since(started) >= START_UP;
    if has_had_time && speeds != WheelSpeeds::STOP && measured == WheelSpeeds::STOP {
        return Err(
            Failure::new(format!("the wheels of {device} do not turn")).hint(format!(
                "drivers refuse speeds above their maximum, usually {FASTEST_MM_S} mm/s; {}",
                reason::hint(device)
            )),
        );
    }
    let driven = Driven {
        left_mm_s: left,
        right_mm_s: right,
        seconds,
        measured_mm_s: wheels(measured),
    };
    show(&driven, json)
}

/// What a person drives with.
enum Controls {
    Keys(Hands),
    Gamepad(String, mpsc::Receiver<GamepadState>),
}

impl Controls {
    async fn open(client: &Client, options: &Options) -> Result<Self, Failure> {
        let Some(which) = &options.gamepad else {
            return Hands::new().map(Self::Keys);
        };
        let (name, states) = gamepad::open(client, &Which::of(which)).await?;
        Ok(Self::Gamepad(name, states))
    }

    /// What to do, for people.
    fn help(&self) -> String {
        match self {
            Self::Keys(_) => KEYS.to_owned(),
            Self::Gamepad(name, _) => format!("{name}: {}", gamepad::HELP),
        }
    }

    /// Drives until a key ends it, the terminal is closed, the gamepad is gone or the wheels are
    /// unavailable.
    async fn drive(
        &mut self,
        roboclaw: &Roboclaw,
        speed_mm_s: i32,
        show: impl FnMut(&str) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        match self {
            Self::Keys(hands) => hands.drive(roboclaw, speed_mm_s, show).await,
            Self::Gamepad(_, states) => {
                steer(roboclaw, states, PadHand::new(speed_mm_s), show).await?;
                Err(gamepad::gone())
            }
        }
    }
}

/// The keys, in a line for people.
pub(super) const KEYS: &str = "arrows or WASD drive, + and - change the speed, q ends";

/// The keys of this terminal drive the robot. Dropping this restores the terminal.
pub(super) struct Hands {
    _keyboard: Keyboard,
    keys: mpsc::Receiver<Key>,
}

impl Hands {
    /// From here on, the terminal reports each key.
    pub(super) fn new() -> Result<Self, Failure> {
        let (keyboard, keys) = Keyboard::new(keyboard::meaning)
            .map_err(|error| Failure::new(format!("cannot read the keyboard: {error}")))?;
        Ok(Self {
            _keyboard: keyboard,
            keys,
        })
    }

    /// Drives until a key ends it, the terminal is closed or the wheels are unavailable. `show` gets a
    /// line with the speeds after each change. The caller stops the wheels at the end.
    pub(super) async fn drive(
        &mut self,
        roboclaw: &Roboclaw,
        speed_mm_s: i32,
        show: impl FnMut(&str) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        steer(roboclaw, &mut self.keys, HeldKey::new(speed_mm_s), show).await
    }
}

/// Whether the keys of this terminal can drive.
pub(super) fn has_keys() -> bool {
    io::stdin().is_terminal() && io::stdout().is_terminal()
}

/// The last measured speeds, and the time of the measurement.
type Measured = Cell<Option<(WheelSpeeds, Instant)>>;

/// The last measured speeds, unless they are too old.
fn fresh(measured: &Measured, now: Instant) -> Option<(WheelSpeeds, Instant)> {
    let measured = measured.get();
    measured.filter(|(_, at)| now.saturating_duration_since(*at) <= STALE)
}

/// Cuts a line to the width of the terminal: a longer one would wrap, and each
/// update would leave a line behind.
pub(super) fn fit(line: &str) -> &str {
    let columns = terminal_size::terminal_size().map_or(80, |(width, _)| usize::from(width.0));
    cut(line, columns)
}

/// The last column stays free: writing to it wraps on some terminals.
fn cut(line: &str, columns: usize) -> &str {
    let end = columns.saturating_sub(1).min(line.len());
    line.get(..end).unwrap_or(line)
}

/// Drives at constant speeds until a time.
pub(super) async fn keep(
    roboclaw: &Roboclaw,
    speeds: WheelSpeeds,
    until: Instant,
) -> Result<(), Error> {
    let mut repeat = interval(REPEAT);
    loop {
        tokio::select! {
            biased;
            () = sleep_until(until) => return Ok(()),
            _ = repeat.tick() => roboclaw.drive(speeds).await?,
        }
    }
}

/// Requests the speeds regularly until the wheels are unavailable. Ignores lost answers.
async fn measure(roboclaw: &Roboclaw, measured: &Measured) -> Error {
    loop {
        match roboclaw.speeds().await {
            Ok(speeds) => measured.set(Some((speeds, Instant::now()))),
            Err(Error::TimedOut { .. }) => {}
            Err(error) => return error,
        }
        sleep(MEASURE).await;
    }
}

/// Drives until an input ends the command, or no more can come.
async fn steer<H: Hand>(
    roboclaw: &Roboclaw,
    inputs: &mut mpsc::Receiver<H::Input>,
    mut hand: H,
    mut show: impl FnMut(&str) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let measured = Cell::new(None);
    let mut lost = std::pin::pin!(measure(roboclaw, &measured));
    let mut repeat = interval(REPEAT);
    let mut commanded = WheelSpeeds::STOP;
    let mut sent: Option<Instant> = None;
    let mut stops = 0;
    loop {
        let released = hand.next_timeout(now()).map(Instant::from_std);
        let next = sent
            .map(|at| at + LEAST)
            .filter(|_| hand.speeds(now()) != commanded);
        let due = [released, next].into_iter().flatten().min();
        let tick = tokio::select! {
            input = inputs.recv() => match input.map(|input| hand.press(now(), input)) {
                Some(Wish::GoOn) => false,
                // The terminal may have been closed.
                Some(Wish::Quit) | None => return Ok(()),
            },
            () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => false,
            _ = repeat.tick() => true,
            error = &mut lost => return Err(error.into()),
        };
        let wanted = hand.speeds(now());
        let moves = wanted != WheelSpeeds::STOP;
        // A stop never waits.
        let is_early = moves && sent.is_some_and(|at| Instant::now() < at + LEAST);
        let changed = wanted != commanded && !is_early;
        if changed && !moves {
            stops = STOPS;
        }
        // A stop is repeated only a few times.
        if changed || tick && (moves || stops > 0) {
            roboclaw.drive(wanted).await?;
            (commanded, sent) = (wanted, Some(Instant::now()));
            stops = stops.saturating_sub(1);
        }
        let measured = fresh(&measured, Instant::now()).map(|(speeds, _)| speeds);
        show(&line(commanded, measured, H::NAME, hand.speed_mm_s()))?;
    }
}

/// Stops the wheels. Some commands may get lost, so it sends several.
pub(super) async fn stop(roboclaw: &Roboclaw) -> Result<(), Failure> {
    for _ in 1..STOPS {
        // Only an error of the last command matters.
        let _ = roboclaw.stop().await;
        sleep(BETWEEN_STOPS).await;
    }
    Ok(roboclaw.stop().await?)
}

fn now() -> std::time::Instant {
    Instant::now().into_std()
}

fn line(
    commanded: WheelSpeeds,
    measured: Option<WheelSpeeds>,
    with: &str,
    speed_mm_s: i32,
) -> String {
    let (left, right) = (commanded.front_left_mm_s, commanded.front_right_mm_s);
    let [front_left, front_right, rear_left, rear_right] = match measured {
        Some(measured) => wheels(measured).map(|speed| speed.to_string()),
        None => [(); 4].map(|()| "-".to_owned()),
    };
    format!(
        "left {left:>5} right {right:>5}  wheels {front_left:>5} {front_right:>5} \
         {rear_left:>5} {rear_right:>5}  {with} {speed_mm_s} mm/s"
    )
}

fn wheels(speeds: WheelSpeeds) -> [i32; 4] {
    [
        speeds.front_left_mm_s,
        speeds.front_right_mm_s,
        speeds.rear_left_mm_s,
        speeds.rear_right_mm_s,
    ]
}

#[derive(Debug, Serialize)]
struct Driven {
    left_mm_s: i32,
    right_mm_s: i32,
    seconds: f64,
    /// The last speeds before the end: front left, front right, rear left,
    /// rear right.
    measured_mm_s: [i32; 4],
}

impl Human for Driven {
    fn human(&self) -> String {
        let [front_left, front_right, rear_left, rear_right] = self.measured_mm_s;
        format!(
            "drove {:.1} s; wheels at the end: {front_left} {front_right} {rear_left} \
             {rear_right} mm/s\n",
            self.seconds
        )
    }
}

#[cfg(test)]
mod tests {
    use amber_proto::roboclaw::DriverMsg;
    use prost::Message;

    use super::held_key::{Direction, HELD_ONCE};
    use super::*;
    use amber_client::fake::Fake;

    const AHEAD: Key = Key::Go(Direction::Forward);

    /// Answers requests for speeds with `answer`; gives the commands with the
    /// time since the start until the client ends.
    async fn play(mut fake: Fake, answer: Option<&[u8]>) -> Vec<(u128, WheelSpeeds)> {
        let start = Instant::now();
        let mut commands = Vec::new();
        while let Some(sent) = fake.receive().await {
            let message = DriverMsg::decode(sent.bytes.clone()).unwrap();
            if let Some(command) = message.motors_command {
                commands.push((start.elapsed().as_millis(), command.into()));
            } else if let Some(answer) = answer
                && message.current_speed_request.is_some()
            {
                fake.answer(&sent, answer).await;
            }
        }
        commands
    }

    const SPEEDS: &[u8] = b"\x10\x01\xb2\x01\x02\x08\x07";
    const DIED: &[u8] = b"\x10\x05";

    #[tokio::test(start_paused = true)]
    async fn a_key_drives_until_it_is_released() {
        let (client, fake) = Fake::new();
        let device = tokio::spawn(play(fake, Some(SPEEDS)));
        let (press, mut keys) = mpsc::channel(1);
        let mut shown = String::new();
        let drive = async {
            let roboclaw = client.roboclaw(0);
            let show = |line: &str| {
                shown = line.to_owned();
                Ok(())
            };
            steer(&roboclaw, &mut keys, HeldKey::new(300), show).await
        };
        let hands = async {
            press.send(AHEAD).await.unwrap();
            sleep(2 * HELD_ONCE).await;
            press.send(Key::Quit).await.unwrap();
        };
        let (driven, ()) = tokio::join!(drive, hands);
        driven.unwrap();
        assert!(shown.contains("wheels     7"), "{shown}");
        client.close().await;
        let commands = device.await.unwrap();
        let (ahead, stops): (Vec<_>, Vec<_>) = commands
            .iter()
            .partition(|(_, speeds)| *speeds == WheelSpeeds::all(300));
        assert!(ahead.len() >= 3, "at once, at 200 and at 400 ms: {ahead:?}");
        assert!(ahead.iter().all(|(ms, _)| *ms < HELD_ONCE.as_millis()));
        assert_eq!(stops.len(), STOPS as usize, "{stops:?}");
        let (first, speeds) = stops[0];
        assert_eq!(speeds, WheelSpeeds::STOP);
        assert!((500..=510).contains(&first), "{first} ms");
    }

    #[tokio::test(start_paused = true)]
    async fn it_ends_with_the_terminal_and_with_the_driver() {
        for answer in [SPEEDS, DIED] {
            let (client, fake) = Fake::new();
            tokio::spawn(play(fake, Some(answer)));
            let (press, mut keys) = mpsc::channel::<Key>(1);
            let roboclaw = client.roboclaw(0);
            let drive = steer(&roboclaw, &mut keys, HeldKey::new(300), |_| Ok(()));
            if answer == SPEEDS {
                drop(press);
                assert_eq!(drive.await, Ok(()));
            } else {
                let failure = drive.await.unwrap_err();
                assert!(format!("{failure:?}").contains("roboclaw:0"));
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_script_repeats_its_command_and_stops() {
        let (client, fake) = Fake::new();
        let device = tokio::spawn(play(fake, None));
        let roboclaw = client.roboclaw(0);
        let speeds = WheelSpeeds::sides(200, -100);
        let until = Instant::now() + Duration::from_millis(700);
        keep(&roboclaw, speeds, until).await.unwrap();
        stop(&roboclaw).await.unwrap();
        drop(roboclaw);
        client.close().await;
        let commands = device.await.unwrap();
        let all: Vec<_> = commands.iter().map(|(_, speeds)| *speeds).collect();
        let halt = WheelSpeeds::STOP;
        assert_eq!(all, [speeds, speeds, speeds, speeds, halt, halt, halt]);
        let (ms, _) = commands[4];
        assert!((700..=710).contains(&ms), "{ms} ms");
    }

    #[tokio::test(start_paused = true)]
    async fn speeds_of_a_frozen_driver_are_not_shown_as_new() {
        let (client, fake) = Fake::new();
        // It answers once.
        let device = tokio::spawn(async move {
            let mut fake = fake;
            let first = fake.receive().await.unwrap();
            fake.answer(&first, SPEEDS).await;
            while fake.receive().await.is_some() {}
        });
        let roboclaw = client.roboclaw(0);
        let measured = Cell::new(None);
        let at_once = tokio::time::timeout(Duration::from_secs(1), measure(&roboclaw, &measured));
        at_once.await.unwrap_err();
        assert!(fresh(&measured, Instant::now()).is_some());
        let later = tokio::time::timeout(STALE, measure(&roboclaw, &measured));
        later.await.unwrap_err();
        assert_eq!(fresh(&measured, Instant::now()), None);
        let shown = line(WheelSpeeds::all(200), None, "keys", 200);
        assert!(shown.contains("wheels     -     -     -     -"), "{shown}");
        drop(roboclaw);
        client.close().await;
        device.await.unwrap();
    }

    #[test]
    fn the_line_fits_narrow_terminals() {
        let shown = line(
            WheelSpeeds::all(-1200),
            Some(WheelSpeeds::all(-1200)),
            "keys",
            1200,
        );
        assert_eq!(cut(&shown, 200), shown);
        for columns in [0, 1, 20, 68] {
            assert_eq!(cut(&shown, columns).len(), columns.saturating_sub(1));
        }
    }

    #[derive(clap::Parser)]
    struct Cli {
        #[command(flatten)]
        drive: Options,
    }

    fn read(line: &str) -> Result<Options, clap::Error> {
        let words = line.split_whitespace();
        <Cli as clap::Parser>::try_parse_from(words).map(|cli| cli.drive)
    }

    #[test]
    fn speeds_and_time_belong_together() {
        let options = read("drive --left -200 --right 200 --for 1.5s").unwrap();
        assert_eq!((options.left, options.right), (Some(-200), Some(200)));
        assert_eq!(options.time, Some(Duration::from_millis(1500)));
        assert_eq!(read("drive").unwrap().speed, 200);
        for (line, gamepad) in [
            ("drive", None),
            ("drive --gamepad", Some("auto")),
            ("drive --gamepad 2:0", Some("auto")),
            (
                "drive --gamepad=/dev/input/event5",
                Some("/dev/input/event5"),
            ),
        ] {
            assert_eq!(read(line).unwrap().gamepad.as_deref(), gamepad, "{line}");
        }
        for line in [
            "drive --left 1",
            "drive --right 1",
            "drive --for 1",
            "drive --left 1 --right 1",
            "drive --left 1 --right 1 --for 0",
            "drive --left 1 --right 1 --for 1m",
            "drive --left 1 --right 1 --for 1 --speed 300",
            "drive --speed 2000",
            "drive --gamepad --left 1 --right 1 --for 1",
        ] {
            assert!(read(line).is_err(), "{line}");
        }
    }

    #[test]
    fn devices_without_wheels_are_refused() {
        let dummy = read("drive dummy:0 --left 1 --right 1 --for 1").unwrap();
        assert!(dummy.checked(false).is_err());
        let wheels = read("drive 2:0 --left 1 --right 1 --for 1").unwrap();
        assert!(wheels.checked(true).is_ok());
    }
}
