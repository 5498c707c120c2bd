//! How soon the wheels of a real robot stop when the program that drives is frozen or killed, or when
//! its network is cut. IO, except for [`judge`].
//!
//! `scripts/safety` measures the same on the simulated robot, for more programs.

use std::io::{BufRead, IsTerminal, stdin};
use std::net::{SocketAddr, ToSocketAddrs, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{sleep, spawn};
use std::time::{Duration, Instant};

use amber_client::MediatorAddress;
use amber_client::blocking::{Client, Roboclaw};
use amber_terminal::{Failure, note};
use rustix::process::{Pid, Signal, kill_process};

use super::Check;

const NAME: &str = "safety";
/// The wheels must have their stop after this time; then they brake.
const GOAL: Duration = Duration::from_millis(600);
/// The speed of the test, in mm/s.
const SPEED: &str = "150";
/// The wheels turn above this speed, and stand below the other one.
const TURNS_MM_S: i32 = 60;
const STANDS_MM_S: i32 = 10;
/// How long the wheels may take to start.
const STARTS_WITHIN: Duration = Duration::from_secs(5);
/// They turn steadily after this time.
const STEADY: Duration = Duration::from_millis(700);
/// They stand if they do so for this time.
const STANDS_FOR: Duration = Duration::from_millis(300);
/// Longer than any driver lets the wheels turn without commands.
const PATIENCE: Duration = Duration::from_secs(12);
const PERIOD: Duration = Duration::from_millis(20);

const WARNING: &str = "\
This test turns the wheels at 150 mm/s and measures how soon they stop when the program that drives
fails. Lift the robot: its wheels must be off the ground. Keep the switch of the motors at hand.";

/// What happens to the program that drives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Harm {
    /// It stops the wheels itself: the braking time.
    Ended,
    Frozen,
    Killed,
    /// Its network is cut.
    Cut,
}

impl Harm {
    fn name(self) -> &'static str {
        match self {
            Self::Ended => "the program stops the wheels",
            Self::Frozen => "the program is frozen",
            Self::Killed => "the program is killed",
            Self::Cut => "its network is cut",
        }
    }
}

/// Asks whether the wheels are off the ground.
///
/// # Errors
/// They are not, or nobody answers.
pub(super) fn confirm(is_agreed: bool) -> Result<(), Failure> {
    note(WARNING);
    if is_agreed {
        return Ok(());
    }
    if !stdin().is_terminal() {
        return Err(
            Failure::wrong("nobody has said that the wheels are off the ground")
                .hint("run it in a terminal, or use --yes"),
        );
    }
    note("Are the wheels off the ground? Write yes to begin:");
    let mut answer = String::new();
    let read = stdin().lock().read_line(&mut answer);
    match read.is_ok() && answer.trim().eq_ignore_ascii_case("yes") {
        true => Ok(()),
        false => Err(Failure::new("the test was not started")),
    }
}

/// Drives and harms, for each harm.
///
/// # Errors
/// The wheels do not answer.
pub(super) fn measure(mediator: &MediatorAddress) -> Result<Vec<Check>, Failure> {
    let client = Client::connect(mediator)?;
    let wheels = client.roboclaw(0);
    wheels.speeds()?;
    let ramp = once(mediator, &wheels, Harm::Ended)?;
    let harms = [Harm::Frozen, Harm::Killed, Harm::Cut];
    let mut checks = vec![judge(Harm::Ended, ramp, ramp)];
    for harm in harms {
        checks.push(judge(harm, once(mediator, &wheels, harm)?, ramp));
    }
    client.close();
    Ok(checks)
}

/// Judges the time until the wheels stood; `None` if they never did. `ramp` is the time that they need
/// for braking.
fn judge(harm: Harm, took: Option<Duration>, ramp: Option<Duration>) -> Check {
    let name = harm.name();
    let goal = GOAL + ramp.unwrap_or_default();
    match took {
        None => Check::problem(NAME, format!("{name}: the wheels do not stop within 12 s"))
            .hint("do not drive this robot; its driver of the wheels must be that of this version"),
        Some(took) if harm != Harm::Ended && took > goal => Check::problem(
            NAME,
            format!("{name}: the wheels stand after {:.2} s", took.as_secs_f64()),
        )
        .hint(format!(
            "{:.2} s are possible: `amber describe roboclaw` shows whether the driver knows how \
             long commands hold",
            goal.as_secs_f64()
        )),
        Some(took) => Check::ok(
            NAME,
            format!("{name}: the wheels stand after {:.2} s", took.as_secs_f64()),
        ),
    }
}

/// Drives, harms, and measures until the wheels stand; `None` if they never do.
fn once(
    mediator: &MediatorAddress,
    wheels: &Roboclaw,
    harm: Harm,
) -> Result<Option<Duration>, Failure> {
    let relay = match harm {
        Harm::Cut => Some(Relay::start(mediator)?),
        _ => None,
    };
    let address = relay.as_ref().map(|it| it.address.to_string());
    let mut program = Driving::start(&address.unwrap_or_else(|| mediator.to_string()))?;
    let started = Instant::now();
    while fastest_mm_s(wheels) < TURNS_MM_S {
        if started.elapsed() > STARTS_WITHIN {
            return Err(Failure::new("the wheels do not turn")
                .hint("`amber drive --left 150 --right 150 --for 2s` may show the reason"));
        }
        sleep(PERIOD);
    }
    sleep(STEADY);
    let begin = Instant::now();
    match (harm, &relay) {
        (Harm::Cut, Some(relay)) => relay.cut(),
        (Harm::Ended, _) => program.signal(Signal::TERM),
        (Harm::Killed, _) => program.signal(Signal::KILL),
        _ => program.signal(Signal::STOP),
    }
    let stood = stand_since(wheels, begin);
    program.end();
    // Whatever has happened, the wheels must not turn after the test.
    let _ = wheels.stop();
    Ok(stood.map(|at| at - begin))
}

fn stand_since(wheels: &Roboclaw, begin: Instant) -> Option<Instant> {
    let mut stood = None;
    while begin.elapsed() < PATIENCE {
        let at = Instant::now();
        match (fastest_mm_s(wheels) <= STANDS_MM_S, stood) {
            (false, _) => stood = None,
            (true, None) => stood = Some(at),
            (true, Some(since)) if at - since > STANDS_FOR => return Some(since),
            (true, Some(_)) => {}
        }
        sleep(PERIOD);
    }
    None
}

/// The speed of the fastest wheel. If it is unknown, the wheels may turn.
fn fastest_mm_s(wheels: &Roboclaw) -> i32 {
    wheels.speeds().map_or(i32::MAX, |speeds| {
        i32::try_from(speeds.fastest_mm_s()).unwrap_or(i32::MAX)
    })
}

/// A program that drives.
struct Driving(Child);

impl Driving {
    fn start(mediator: &str) -> Result<Self, Failure> {
        let failed = |error| Failure::new(format!("cannot start `amber drive`: {error}"));
        let program = std::env::current_exe().map_err(failed)?;
        let args = ["drive", "--left", SPEED, "--right", SPEED, "--for", "60s"];
        let child = Command::new(program)
            .args(["--mediator", mediator])
            .args(args)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        Ok(Self(child.map_err(failed)?))
    }

    fn signal(&self, signal: Signal) {
        // It may have ended.
        let _ = kill_process(Pid::from_child(&self.0), signal);
    }

    fn end(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Driving {
    fn drop(&mut self) {
        self.end();
    }
}

/// Forwards datagrams between one client and the mediator until it is cut.
struct Relay {
    address: SocketAddr,
    is_cut: Arc<AtomicBool>,
}

impl Relay {
    fn start(mediator: &MediatorAddress) -> Result<Self, Failure> {
        let failed = |error| Failure::new(format!("cannot forward datagrams: {error}"));
        let mut found = (mediator.host(), mediator.port())
            .to_socket_addrs()
            .map_err(failed)?;
        let Some(mediator) = found.next() else {
            return Err(Failure::new("the mediator has no address"));
        };
        let any = match mediator {
            SocketAddr::V4(_) => "0.0.0.0:0",
            SocketAddr::V6(_) => "[::]:0",
        };
        let inside = UdpSocket::bind("127.0.0.1:0").map_err(failed)?;
        let outside = UdpSocket::bind(any).map_err(failed)?;
        outside.connect(mediator).map_err(failed)?;
        let relay = Self {
            address: inside.local_addr().map_err(failed)?,
            is_cut: Arc::default(),
        };
        let (to_client, from_mediator) = (
            inside.try_clone().map_err(failed)?,
            outside.try_clone().map_err(failed)?,
        );
        let client = Arc::new(std::sync::Mutex::new(None));
        let (seen, is_cut) = (client.clone(), relay.is_cut.clone());
        // Both threads end with the program.
        spawn(move || {
            let mut buffer = [0; 65_536];
            while let Ok((length, from)) = inside.recv_from(&mut buffer) {
                if let Ok(mut client) = client.lock() {
                    *client = Some(from);
                }
                if !is_cut.load(Ordering::Relaxed) {
                    let _ = outside.send(&buffer[..length]);
                }
            }
        });
        let is_cut = relay.is_cut.clone();
        spawn(move || {
            let mut buffer = [0; 65_536];
            while let Ok(length) = from_mediator.recv(&mut buffer) {
                let client = seen.lock().ok().and_then(|client| *client);
                if let (Some(client), false) = (client, is_cut.load(Ordering::Relaxed)) {
                    let _ = to_client.send_to(&buffer[..length], client);
                }
            }
        });
        Ok(relay)
    }

    fn cut(&self) {
        self.is_cut.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::super::Level;
    use super::*;

    #[test]
    fn wheels_must_stand_soon_after_the_braking_time() {
        let ms = |ms| Some(Duration::from_millis(ms));
        for (harm, took, level) in [
            (Harm::Ended, ms(400), Level::Ok),
            (Harm::Ended, None, Level::Problem),
            (Harm::Frozen, ms(1_000), Level::Ok),
            (Harm::Frozen, ms(1_001), Level::Problem),
            (Harm::Cut, ms(4_400), Level::Problem),
            (Harm::Killed, None, Level::Problem),
        ] {
            let check = judge(harm, took, ms(400));
            assert_eq!(check.level, level, "{harm:?} {took:?}: {check:?}");
        }
    }
}
