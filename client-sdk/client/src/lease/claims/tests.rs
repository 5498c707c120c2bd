//! Tests of claims against a device that plays its states.

use amber_proto::motion::MotionState;
use amber_proto::motion::lease_request::Action;
use amber_proto::{DeviceMessage, drive_to_point, mapping, motion};
use amber_values::{Row, Target};
use prost::Message;
use tokio::sync::mpsc::UnboundedReceiver;

use super::*;
use crate::fake::Fake;
use crate::lease::tests::{next, of_another, play, wheels, yours};

const HOLD: Duration = Duration::from_secs(1);
const HELD: &str = "amber goto holds the lease of this device";

fn claims() -> Claims {
    Claims::new(Terms::new("a page"), HOLD)
}

/// The next action that does not only keep the lease.
async fn next_change(actions: &mut UnboundedReceiver<(Action, motion::DriverMsg)>) -> Action {
    loop {
        match next(actions).await {
            Action::Keep => {}
            action => return action,
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_taken_with_the_first_command_and_released_after_the_last_one() {
    let (client, fake) = Fake::new();
    let mut actions = play(fake, vec![yours()]);
    let mut claims = claims();
    let start = Instant::now();
    for _ in 0..5 {
        (claims.claim(&wheels(&client), Use::Command).await).unwrap();
        sleep(Duration::from_millis(100)).await;
    }
    let due = Instant::from_std(claims.next_due().unwrap());
    let after_last = due - start;
    assert!(
        after_last >= HOLD + Duration::from_millis(400),
        "{after_last:?}"
    );
    sleep(due - Instant::now()).await;
    claims.expire();
    assert_eq!(claims.next_due(), None);
    assert_eq!(next(&mut actions).await, Action::Take);
    assert_eq!(next_change(&mut actions).await, Action::Release);
    // The next one is taken after the release is answered.
    (claims.claim(&wheels(&client), Use::Command).await).unwrap();
    assert_eq!(next_change(&mut actions).await, Action::Take);
    claims.close().await;
    assert_eq!(next_change(&mut actions).await, Action::Release);
}

#[tokio::test(start_paused = true)]
async fn who_is_refused_learns_the_name_of_the_holder_and_asks_again() {
    let (client, fake) = Fake::new();
    let refused = of_another(Some(HELD));
    let mut actions = play(fake, vec![refused; 1]);
    let mut claims = claims();
    let refused = claims.claim(&wheels(&client), Use::Command).await;
    assert!(refused.unwrap_err().to_string().ends_with(HELD));
    // Without a question in between.
    while actions.try_recv().is_ok() {}
    let refused = claims.claim(&wheels(&client), Use::Command).await;
    assert!(refused.is_err() && actions.try_recv().is_err());
    sleep(RETRY).await;
    assert!(claims.claim(&wheels(&client), Use::Command).await.is_err());
    assert_eq!(next(&mut actions).await, Action::Take);
    claims.set_force(true);
    let _ = claims.claim(&wheels(&client), Use::Command).await;
    assert_eq!(next(&mut actions).await, Action::TakeByForce);
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_free_in_a_moment_is_no_refusal() {
    let (client, fake) = Fake::new();
    let refused = of_another(Some(HELD));
    let _actions = play(fake, vec![refused.clone(), refused, yours()]);
    (claims().claim(&wheels(&client), Use::Command).await).unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_driver_without_leases_gets_its_commands_after_a_moment() {
    let (client, mut fake) = Fake::new();
    let silent = tokio::spawn(async move { while fake.receive().await.is_some() {} });
    let mut claims = claims();
    let start = Instant::now();
    for _ in 0..3 {
        (claims.claim(&wheels(&client), Use::Command).await).unwrap();
    }
    assert_eq!(start.elapsed(), PATIENCE);
    // Later, it is asked again in the background.
    sleep(DEADLINE + ASK_AGAIN).await;
    let start = Instant::now();
    (claims.claim(&wheels(&client), Use::Command).await).unwrap();
    assert_eq!(start.elapsed(), Duration::ZERO);
    silent.abort();
}

/// A device that answers lease requests with `state`, and first has targets to drive to, or explores.
fn play_errand(mut fake: Fake, state: fn(u32) -> MotionState, times: u32) {
    tokio::spawn(async move {
        let (mut asked, mut keeps) = (0, 0);
        while let Some(sent) = fake.receive().await {
            let lease = motion::DriverMsg::decode(&sent.bytes[..]).unwrap();
            let answer = if lease.lease_request.is_some() {
                keeps += 1;
                let mut answer = motion::DriverMsg::data();
                answer.motion_state = Some(state(keeps));
                answer.encode_to_vec()
            } else {
                asked += 1;
                let is_busy = asked <= times;
                let left = match is_busy {
                    true => vec![Target::new(1.0, 2.0)],
                    false => vec![],
                };
                if mapping::DriverMsg::decode(&sent.bytes[..]).is_ok_and(|it| it.get_progress()) {
                    fake.answer(&sent, &progress(is_busy)).await;
                    continue;
                }
                let mut answer = drive_to_point::DriverMsg::data();
                answer.get_next_targets = Some(true);
                answer.targets = Some(Target::table(&left));
                answer.location = Some(drive_to_point::Location::default());
                answer.encode_to_vec()
            };
            fake.answer(&sent, &answer).await;
        }
    });
}

#[tokio::test(start_paused = true)]
async fn the_lease_of_an_errand_is_kept_until_it_is_lost() {
    let (client, fake) = Fake::new();
    let state = |keeps| {
        if keeps < 20 {
            yours()
        } else {
            of_another(Some(HELD))
        }
    };
    play_errand(fake, state, u32::MAX);
    let mut claims = claims();
    let driver = client.device("drive_to_point:0".parse().unwrap());
    claims.claim(&driver, Use::Errand).await.unwrap();
    assert_eq!(claims.next_due(), None);
    let (device, error) = claims.lost().await;
    assert_eq!(device, driver.address());
    assert!(error.to_string().ends_with(HELD), "{error}");
}

fn progress(explores: bool) -> Vec<u8> {
    use mapping::progress::{Exploration, State};
    let mut progress = mapping::Progress::default();
    progress.set_state(State::Growing);
    progress.set_exploration(match explores {
        true => Exploration::Returning,
        false => Exploration::Finished,
    });
    progress.words = Some(String::new());
    let mut answer = mapping::DriverMsg::data();
    answer.map_progress = Some(progress);
    answer.encode_to_vec()
}

#[tokio::test(start_paused = true)]
async fn the_lease_of_an_errand_is_released_when_nothing_is_left_of_it() {
    for device in ["drive_to_point:0", "mapping:0"] {
        is_released_when_nothing_is_left(device.parse().unwrap()).await;
    }
}

async fn is_released_when_nothing_is_left(device: Device) {
    let (client, fake) = Fake::new();
    play_errand(fake, |_| yours(), 3);
    let mut claims = claims();
    let driver = client.device(device);
    claims.claim(&driver, Use::Errand).await.unwrap();
    let claim = &claims.claims[&driver.address()];
    let mut state = claim.state.clone();
    let start = Instant::now();
    let released = |state: &State| matches!(state, State::Released);
    state.wait_for(released).await.unwrap();
    assert!(start.elapsed() >= Duration::from_millis(1_500));
    // The next errand takes it again.
    claims.claim(&driver, Use::Errand).await.unwrap();
    let state = claims.claims[&driver.address()].state.borrow().clone();
    assert!(matches!(state, State::Held), "{state:?}");
}

#[tokio::test(start_paused = true)]
async fn an_errand_without_a_known_end_takes_no_lease() {
    let (client, fake) = Fake::new();
    let mut actions = play(fake, vec![yours()]);
    (claims().claim(&wheels(&client), Use::Errand).await).unwrap();
    assert!(actions.try_recv().is_err());
}
