//! Finds out why a device did not carry out a request, from the driver or the mediator. IO.

use std::pin::pin;
use std::time::Duration;

use amber_client::{Announcement, Client, Error};
use amber_proto::mediator::{Driver, DriverMsg, DriverState};
use amber_proto::{Device, DeviceMessage, MsgType};
use amber_terminal::Failure;
use bytes::Bytes;
use prost::Message;
use tokio::time::{Instant, timeout};

use super::devices::{state_name, trouble};

/// The mediator answers from memory. Without an answer in this time, it has ended or is unreachable.
const DEADLINE: Duration = Duration::from_secs(3);

/// How long a command waits for the PONG of a driver, which may be one that never answers.
const PONG_DEADLINE: Duration = Duration::from_millis(500);

/// Within this time, the mediator has read the lines that a driver wrote to stderr
/// before its last answer.
const STDERR_DELAY: Duration = Duration::from_millis(30);

/// After this time, a driver that has reported no outcome of a command never does...
const OUTCOME_DELAY: Duration = Duration::from_millis(250);

/// ... unless the computer is busy: then it takes a multiple of the time that other answers took.
const BUSY: u32 = 3;

/// Adds the reason to a timeout, if the mediator knows it.
pub(super) async fn explain(client: &Client, failure: Failure) -> Failure {
    let Some(device) = failure.timed_out() else {
        return failure;
    };
    let Some(driver) = describe(client, device).await else {
        return failure;
    };
    match why(&driver, device) {
        Some(why) => failure.because(&why, hint(device)),
        None => failure,
    }
}

/// The reason why the device does not work, if the mediator knows it.
pub(super) async fn of(client: &Client, device: Device) -> Option<String> {
    why(&describe(client, device).await?, device)
}

pub(super) fn hint(device: Device) -> String {
    format!("`amber status {device}` shows more")
}

async fn describe(client: &Client, device: Device) -> Option<Driver> {
    if client.announcement() == Announcement::Silent || device == Device::MEDIATOR {
        return None;
    }
    let mediator = client.mediator().with_deadline(DEADLINE);
    mediator.driver(device).await.ok()
}

fn why(driver: &Driver, device: Device) -> Option<String> {
    let is_of_device = |of: &amber_proto::mediator::Device| {
        (of.r#type, of.id) == (device.device_type.0, device.id.0)
    };
    let known = driver
        .troubles
        .iter()
        .find(|trouble| is_of_device(&trouble.device));
    if let Some(known) = known {
        return Some(trouble(&known.text, known.since_ms));
    }
    match driver.state() {
        DriverState::Up => None,
        state => Some(format!("its driver is {}", state_name(state))),
    }
}

/// Sends a command that has no answer, and waits until the driver has read it.
///
/// The command asks for its outcome. Most drivers report it, and say so in their PONG: they have as
/// long for it as for an answer. A driver that reports none, such as one of the original system, is
/// judged by its warnings on stderr.
///
/// # Errors
/// No driver runs, the device does not work, or the driver refuses the command, or does not report
/// although it promises to.
pub(super) async fn carried_out(
    client: &Client,
    device: Device,
    command: Bytes,
) -> Result<(), Failure> {
    let complaints = Complaints::begin(client, device).await;
    let proxy = client.device(device);
    let mediator = client.mediator().with_deadline(DEADLINE);
    let sent = Instant::now();
    let is_read = async {
        // The mediator reports a missing driver before it answers a later PING.
        let _ = mediator.ping().await;
        complaints.end(client).await
    };
    let mut is_read = pin!(is_read);
    let mut reply = pin!(proxy.request_raw(wanting_outcome(&command)));
    let reply = tokio::select! {
        biased;
        reply = &mut reply => match reply {
            Err(error @ Error::TimedOut { .. }) => match is_read.await? {
                Outcomes::Promised => Err(error),
                Outcomes::Unknown => return Ok(()),
            },
            reply => reply,
        },
        read = &mut is_read => match read? {
            Outcomes::Promised => reply.await,
            Outcomes::Unknown => {
                let wait = OUTCOME_DELAY.max(BUSY * sent.elapsed());
                match timeout(wait, reply).await {
                    Ok(Err(Error::TimedOut { .. })) | Err(_) => return Ok(()),
                    Ok(reply) => reply,
                }
            }
        }
    };
    match reply {
        Ok(reply) => match why_refused(&reply) {
            Some(why) => Err(refused(client, device, &why).await),
            None => Ok(()),
        },
        Err(error) => Err(error.into()),
    }
}

/// What a driver says about the outcomes of commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcomes {
    /// It reports the outcome of each.
    Promised,
    /// Nothing: it may be a driver of the original system.
    Unknown,
}

fn wanting_outcome(command: &[u8]) -> Bytes {
    let wish = DriverMsg {
        want_outcome: Some(true),
        ..DriverMsg::default()
    };
    [command, &wish.encode_to_vec()].concat().into()
}

fn why_refused(reply: &[u8]) -> Option<String> {
    DriverMsg::decode(reply).ok()?.outcome?.why_refused()
}

/// The mediator knows more about a device that does not work, such as since when.
pub(super) async fn refused(client: &Client, device: Device, why: &str) -> Failure {
    match of(client, device).await {
        Some(why) => unavailable(device, &why),
        None => Failure::new(format!("{device} refused the command: {why}")).hint(hint(device)),
    }
}

fn unavailable(device: Device, why: &str) -> Failure {
    Failure::new(format!("{device} is unavailable: {why}")).hint(hint(device))
}

/// Checks whether a driver logs a warning about a command that has no answer.
pub(super) struct Complaints {
    device: Device,
    before: Option<Before>,
}

/// The state of the driver before the command.
struct Before {
    stderr_lines: u64,
    answers_ping: bool,
}

impl Complaints {
    /// Call this before the command is sent.
    pub(super) async fn begin(client: &Client, device: Device) -> Self {
        let driver = describe(client, device).await;
        Self {
            device,
            before: driver.map(|driver| Before {
                stderr_lines: stderr_lines(&driver),
                answers_ping: driver.answers_ping(),
            }),
        }
    }

    /// Call this after the command was sent.
    ///
    /// # Errors
    /// The device does not work, or its driver has logged a warning since.
    pub(super) async fn end(self, client: &Client) -> Result<Outcomes, Failure> {
        let (device, Some(before)) = (self.device, self.before) else {
            return Ok(Outcomes::Unknown);
        };
        // The PONG shows that the driver has read the command.
        let asked = Instant::now();
        let ping = DriverMsg::of_kind(MsgType::Ping).encode_to_vec();
        let pong = client
            .device(device)
            .with_deadline(PONG_DEADLINE)
            .request_raw(wanting_outcome(&ping))
            .await;
        let outcomes = match pong {
            Ok(pong) if promises_outcomes(&pong) => Outcomes::Promised,
            _ => Outcomes::Unknown,
        };
        // On a busy computer, the driver's warning about the command may take as long again.
        let wait = match before.answers_ping {
            true => STDERR_DELAY.max(asked.elapsed()),
            false => STDERR_DELAY,
        };
        tokio::time::sleep(wait).await;
        let Some(driver) = describe(client, device).await else {
            return Ok(outcomes);
        };
        if let Some(why) = why(&driver, device) {
            return Err(unavailable(device, &why));
        }
        match new_warning(&driver, before.stderr_lines) {
            Some(line) => Err(
                Failure::new(format!("{device} refused the command: {line}")).hint(hint(device)),
            ),
            None => Ok(outcomes),
        }
    }
}

fn promises_outcomes(pong: &[u8]) -> bool {
    DriverMsg::decode(pong).is_ok_and(|pong| pong.outcome.is_some())
}

fn stderr_lines(driver: &Driver) -> u64 {
    driver
        .counters
        .as_ref()
        .map_or(0, |counters| counters.stderr_lines())
}

/// The last warning of a driver after its first `before` lines.
fn new_warning(driver: &Driver, before: u64) -> Option<&str> {
    let new = usize::try_from(stderr_lines(driver).saturating_sub(before)).unwrap_or(usize::MAX);
    let mut lines = driver.last_words.iter().rev().take(new);
    let line = lines.find(|line| ["WARN", "ERROR"].iter().any(|level| line.contains(level)))?;
    let text = line.split_once("WARN").or_else(|| line.split_once("ERROR"));
    Some(text.map_or(line.as_str(), |(_, text)| text.trim()))
}

#[cfg(test)]
mod tests {
    use amber_proto::mediator::{Device as WireDevice, DriverCounters, Outcome, Trouble};

    use super::*;
    use amber_client::fake::Fake;

    fn hokuyo(troubles: Vec<Trouble>) -> Driver {
        Driver {
            state: DriverState::Up.into(),
            troubles,
            counters: Some(DriverCounters {
                stderr_lines: Some(3),
                ..DriverCounters::default()
            }),
            last_words: ["INFO ready", "WARN servo 99 is not there", "INFO done"]
                .map(str::to_owned)
                .into(),
            ..Driver::default()
        }
    }

    #[test]
    fn the_trouble_of_the_device_is_the_reason() {
        let device: Device = "hokuyo:0".parse().unwrap();
        let trouble = |id| Trouble {
            device: WireDevice { r#type: 4, id },
            text: "/dev/hokuyo is not there".into(),
            since_ms: 12_000,
        };
        let reason = why(&hokuyo(vec![trouble(1), trouble(0)]), device);
        assert_eq!(
            reason.as_deref(),
            Some("/dev/hokuyo is not there (since 12s)")
        );
        assert_eq!(why(&hokuyo(vec![trouble(1)]), device), None);
        let stopped = Driver {
            state: DriverState::Backoff.into(),
            ..hokuyo(vec![])
        };
        assert_eq!(
            why(&stopped, device).as_deref(),
            Some("its driver is backoff")
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_command_fails_if_the_driver_reports_a_refusal() {
        const COMMAND: &[u8] = b"\x10\x01\xa2\x01\x02\x08\x01";
        let roboclaw: Device = "roboclaw:0".parse().unwrap();
        for (outcome, expected) in [
            (Outcome::accepted(), Ok(())),
            (
                Outcome::refusal("3000 mm/s is too fast"),
                Err(
                    Failure::new("roboclaw:0 refused the command: 3000 mm/s is too fast")
                        .hint("`amber status roboclaw:0` shows more"),
                ),
            ),
        ] {
            let (client, mut fake) = Fake::new();
            let device = async {
                let asked = fake.receive().await.unwrap();
                // The command, and the wish for its outcome.
                let wish = [COMMAND, b"\xd0\x0b\x01"].concat();
                assert_eq!(asked.without_syn(), wish);
                let reply = DriverMsg {
                    outcome: Some(outcome),
                    ..DriverMsg::data()
                };
                fake.answer(&asked, &reply.encode_to_vec()).await;
                // Later requests have no answer.
                while fake.receive().await.is_some() {}
            };
            let command = async {
                let carried_out = carried_out(&client, roboclaw, COMMAND.into()).await;
                client.close().await;
                carried_out
            };
            let (done, ()) = tokio::join!(command, device);
            assert_eq!(done, expected);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_refusal_counts_although_other_answers_come_earlier() {
        let (client, mut fake) = Fake::new();
        let client = client.with_deadline(Duration::from_secs(60));
        let device = async {
            let asked = fake.receive().await.unwrap();
            // The fake mediator does not answer its PING: by now, nobody waits for it any more.
            tokio::time::sleep(DEADLINE * 2).await;
            let reply = DriverMsg {
                outcome: Some(Outcome::refusal("too fast")),
                ..DriverMsg::data()
            };
            fake.answer(&asked, &reply.encode_to_vec()).await;
            while fake.receive().await.is_some() {}
        };
        let command = async {
            let device = "roboclaw:0".parse().unwrap();
            let carried_out = carried_out(&client, device, b"\x10\x01".as_slice().into()).await;
            client.close().await;
            carried_out
        };
        let (done, ()) = tokio::join!(command, device);
        let expected = Failure::new("roboclaw:0 refused the command: too fast");
        assert_eq!(
            done,
            Err(expected.hint("`amber status roboclaw:0` shows more"))
        );
    }

    /// The answers of a mediator whose driver reads the command at once, and refuses it a second
    /// later.
    async fn refuse_late(fake: &mut Fake, promises: bool) {
        let mut command = None;
        let late = tokio::time::sleep(Duration::from_secs(1));
        tokio::pin!(late);
        loop {
            let asked = tokio::select! {
                asked = fake.receive() => asked,
                () = &mut late, if command.is_some() => {
                    let refusal = DriverMsg {
                        outcome: Some(Outcome::refusal("too fast")),
                        ..DriverMsg::data()
                    };
                    let command = command.take().unwrap();
                    fake.answer(&command, &refusal.encode_to_vec()).await;
                    continue;
                }
            };
            let Some(asked) = asked else {
                return;
            };
            let message = DriverMsg::decode(asked.bytes.clone()).unwrap();
            if message.kind() == Some(MsgType::Ping) {
                assert!(message.want_outcome());
                let pong = DriverMsg {
                    outcome: promises.then(Outcome::accepted),
                    ..DriverMsg::of_kind(MsgType::Pong)
                };
                fake.answer(&asked, &pong.encode_to_vec()).await;
            } else {
                command = Some(asked);
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_driver_that_promises_an_outcome_is_waited_for() {
        for promises in [true, false] {
            let (client, mut fake) = Fake::knowing(hokuyo(vec![]));
            let command = async {
                let device = "hokuyo:0".parse().unwrap();
                client.mediator().ping().await.unwrap();
                let carried_out = carried_out(&client, device, b"\x10\x01".as_slice().into()).await;
                client.close().await;
                carried_out
            };
            let (done, ()) = tokio::join!(command, refuse_late(&mut fake, promises));
            assert_eq!(done.is_err(), promises, "{done:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_driver_that_answers_slowly_gets_more_time_for_its_refusal() {
        const SLOW: Duration = Duration::from_millis(300);
        for (answers_ping, waits) in [(true, SLOW), (false, STDERR_DELAY)] {
            let (client, mut fake) = Fake::new();
            let complaints = Complaints {
                device: "roboclaw:0".parse().unwrap(),
                before: Some(Before {
                    stderr_lines: 0,
                    answers_ping,
                }),
            };
            let device = async {
                let ping = fake.receive().await.unwrap();
                tokio::time::sleep(SLOW).await;
                // A PONG.
                fake.answer(&ping, b"\x10\x03").await;
                while fake.receive().await.is_some() {}
            };
            let start = Instant::now();
            let end = async {
                complaints.end(&client).await.unwrap();
                let took = start.elapsed();
                client.close().await;
                took
            };
            let (took, ()) = tokio::join!(end, device);
            // This mediator does not know the driver, and says so at once.
            assert_eq!(took, SLOW + waits);
        }
    }

    #[test]
    fn only_new_warnings_count() {
        let driver = hokuyo(vec![]);
        assert_eq!(new_warning(&driver, 3), None);
        assert_eq!(new_warning(&driver, 2), None);
        assert_eq!(new_warning(&driver, 1), Some("servo 99 is not there"));
        assert_eq!(new_warning(&driver, 0), Some("servo 99 is not there"));
    }
}
