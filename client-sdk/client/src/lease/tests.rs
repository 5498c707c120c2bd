//! Tests of leases against a device that this file plays.

use amber_proto::motion::LeaseClient;
use prost::Message;
use tokio::sync::mpsc::UnboundedReceiver;

use super::*;
use crate::client::Client;
use crate::fake::Fake;

/// A device that answers lease requests with these states, the last one again and again. Gives the
/// actions that it was asked for.
pub(super) fn play(
    mut fake: Fake,
    states: Vec<MotionState>,
) -> UnboundedReceiver<(Action, DriverMsg)> {
    let (report, actions) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        let mut states = states.into_iter();
        let mut state = states.next().unwrap();
        while let Some(sent) = fake.receive().await {
            let message = DriverMsg::decode(&sent.bytes[..]).unwrap();
            let Some(request) = message.lease_request.clone() else {
                continue;
            };
            let _ = report.send((request.action(), message));
            let answer = DriverMsg {
                motion_state: Some(state.clone()),
                ..DriverMsg::data()
            };
            fake.answer(&sent, &answer.encode_to_vec()).await;
            state = states.next().unwrap_or(state);
        }
    });
    actions
}

pub(super) fn yours() -> MotionState {
    MotionState {
        yours: Some(true),
        ..MotionState::default()
    }
}

pub(super) fn of_another(refused: Option<&str>) -> MotionState {
    MotionState {
        holder: Some(LeaseClient::default()),
        yours: Some(false),
        refused: refused.map(str::to_owned),
        ..MotionState::default()
    }
}

pub(super) fn wheels(client: &Client) -> Proxy {
    client.device("roboclaw:0".parse().unwrap())
}

pub(super) async fn next(actions: &mut UnboundedReceiver<(Action, DriverMsg)>) -> Action {
    actions.recv().await.unwrap().0
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_kept_until_it_is_dropped() {
    let (client, fake) = Fake::new();
    let mut actions = play(fake, vec![yours()]);
    let terms = Terms::new("me").with_period(Duration::from_millis(400));
    let lease = terms
        .for_client(ClientId(9))
        .take(&wheels(&client))
        .await
        .unwrap();
    let (action, message) = actions.recv().await.unwrap();
    let request = message.lease_request.unwrap();
    assert_eq!(
        (action, request.name(), request.period_ms()),
        (Action::Take, "me", 400)
    );
    assert_eq!(message.for_client, Some(9));
    let start = Instant::now();
    for _ in 0..8 {
        assert_eq!(next(&mut actions).await, Action::Keep);
    }
    let took = start.elapsed();
    assert!(
        took <= Duration::from_millis(900),
        "four times in a period: {took:?}"
    );
    drop(lease);
    while next(&mut actions).await == Action::Keep {}
}

#[tokio::test(start_paused = true)]
async fn the_error_names_the_holder_and_force_takes_the_lease() {
    let (client, fake) = Fake::new();
    let why = "amber goto holds the lease of this device";
    let mut actions = play(fake, vec![of_another(Some(why)), yours()]);
    let error = Terms::new("me").take(&wheels(&client)).await.unwrap_err();
    let expected = format!("roboclaw:0 refused the request: {why}");
    assert_eq!(error.to_string(), expected);
    let lease = Terms::new("me")
        .take_by_force(&wheels(&client))
        .await
        .unwrap();
    assert_eq!(next(&mut actions).await, Action::Take);
    assert_eq!(next(&mut actions).await, Action::TakeByForce);
    lease.release().await.unwrap();
    assert_eq!(next(&mut actions).await, Action::Release);
}

#[tokio::test(start_paused = true)]
async fn a_client_waits_for_its_turn() {
    let (client, fake) = Fake::new();
    let waits = of_another(None);
    let mut actions = play(fake, vec![waits.clone(), waits.clone(), waits, yours()]);
    let _lease = Terms::new("me").wait(&wheels(&client)).await.unwrap();
    for _ in 0..4 {
        assert_eq!(next(&mut actions).await, Action::Wait);
    }
}

#[tokio::test(start_paused = true)]
async fn a_lost_lease_says_who_has_it() {
    let (client, fake) = Fake::new();
    let why = "a page holds the lease of this device";
    let _actions = play(fake, vec![yours(), yours(), of_another(Some(why))]);
    let lease = Terms::new("me").take(&wheels(&client)).await.unwrap();
    let error = lease.lost().await.to_string();
    assert!(error.ends_with(why), "{error}");
}

#[tokio::test(start_paused = true)]
async fn late_answers_of_a_busy_device_keep_the_lease() {
    // More than the pause between two requests.
    const LATE: Duration = Duration::from_millis(600);
    let (client, mut fake) = Fake::new();
    tokio::spawn(async move {
        let mut waiting = std::collections::VecDeque::new();
        loop {
            tokio::select! {
                sent = fake.receive() => match sent {
                    Some(sent) => waiting.push_back((Instant::now() + LATE, sent)),
                    None => return,
                },
                () = sleep_until(waiting.front().map_or_else(Instant::now, |(due, _)| *due)),
                    if !waiting.is_empty() =>
                {
                    let (_, sent) = waiting.pop_front().unwrap();
                    let answer = DriverMsg {
                        motion_state: Some(yours()),
                        ..DriverMsg::data()
                    };
                    fake.answer(&sent, &answer.encode_to_vec()).await;
                }
            }
        }
    });
    let terms = Terms::new("me").with_period(Duration::from_millis(400));
    let lease = terms.take(&wheels(&client)).await.unwrap();
    let lost = tokio::time::timeout(Duration::from_secs(60), lease.lost()).await;
    assert!(lost.is_err(), "{}", lost.unwrap());
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_lost_if_the_device_falls_silent() {
    let (client, mut fake) = Fake::new();
    let device = tokio::spawn(async move {
        let first = fake.receive().await.unwrap();
        let answer = DriverMsg {
            motion_state: Some(yours()),
            ..DriverMsg::data()
        };
        fake.answer(&first, &answer.encode_to_vec()).await;
        while fake.receive().await.is_some() {}
    });
    let lease = Terms::new("me").take(&wheels(&client)).await.unwrap();
    let start = Instant::now();
    lease.lost().await;
    assert!(
        start.elapsed() >= Duration::from_secs(4),
        "{:?}",
        start.elapsed()
    );
    drop(lease);
    client.close().await;
    device.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn commands_say_how_long_they_hold_and_only_if_that_is_wanted() {
    let (client, mut fake) = Fake::new();
    let speeds = amber_values::WheelSpeeds::all(100);
    let mut sent = async |client: Client| {
        let wheels = client.roboclaw(0);
        wheels.drive(speeds).await.unwrap();
        let drive = fake.receive().await.unwrap();
        let _ = tokio::time::timeout(Duration::from_millis(5), wheels.speeds()).await;
        let ask = fake.receive().await.unwrap();
        (drive.without_syn().to_vec(), ask.without_syn().to_vec())
    };
    let (plain, plain_ask) = sent(client.clone()).await;
    let (limited, ask) = sent(client.with_validity(Duration::from_millis(300))).await;
    // Field 189 with the value 300.
    assert_eq!(limited, [&plain[..], b"\xe8\x0b\xac\x02"].concat());
    assert_eq!(ask, plain_ask, "reading moves nothing");
    assert_eq!(DriverMsg::decode(&plain[..]).unwrap().valid_ms, None);
}
