//! Tests of the whole driver between a fake mediator and fake devices. The mapper works in threads of
//! its own, so the clock is the real one.

use std::path::Path;

use amber_driver::devices::mapping::{DriverMsg, progress};
use amber_driver::devices::robot::{Place, Shape};
use amber_driver::proto::{MsgType, SynNum};
use amber_values::WheelSpeeds;
use tokio::time::sleep;

use super::*;
use crate::mapping::Options;
use crate::moving::testing::{Fake, run};
use crate::robot_options::RobotOptions;

/// The limit of the system, whatever the load.
const PATIENCE: Duration = Duration::from_secs(60);

async fn check(maps: Option<&Path>, scenario: impl AsyncFnOnce(&mut Fake)) {
    let options = Options {
        robot: RobotOptions::with_central_laser(),
        maps: maps.map(Path::to_owned),
        ..Options::default()
    };
    run(options.driver().unwrap(), scenario).await;
}

/// Sends a request of a client, and returns the answer.
async fn ask(fake: &mut Fake, set: impl FnOnce(&mut DriverMsg)) -> DriverMsg {
    let mut message = DriverMsg::data();
    message.set_syn(Some(SynNum(9)));
    set(&mut message);
    let answer = fake.ask(&message.encode_to_vec()).await;
    let answer = DriverMsg::decode(&*answer).unwrap();
    assert_eq!(answer.ack(), Some(SynNum(9)));
    answer
}

/// Sends a command of a client, and returns why it is refused.
async fn command(fake: &mut Fake, set: impl FnOnce(&mut DriverMsg)) -> Option<String> {
    let mut message = DriverMsg::data();
    message.set_syn(Some(SynNum(9)));
    set(&mut message);
    let wish = mediator::DriverMsg {
        want_outcome: Some(true),
        ..mediator::DriverMsg::default()
    };
    let message = [message.encode_to_vec(), wish.encode_to_vec()].concat();
    let answer = fake.ask(&message).await;
    let answer = mediator::DriverMsg::decode(&*answer).unwrap();
    answer.outcome.unwrap().why_refused()
}

async fn shown(fake: &mut Fake) -> Progress {
    let answer = ask(fake, |it| it.get_progress = Some(true)).await;
    answer.map_progress.unwrap()
}

/// Waits until the progress is so.
async fn until(fake: &mut Fake, what: &str, is_so: impl Fn(&Progress) -> bool) -> Progress {
    let started = Instant::now();
    loop {
        let progress = shown(fake).await;
        if is_so(&progress) {
            return progress;
        }
        assert!(started.elapsed() < PATIENCE, "{what}: {progress:?}");
        sleep(Duration::from_millis(20)).await;
    }
}

fn start(it: &mut DriverMsg) {
    it.start_map = Some(StartMap::default());
}

fn explore(on: bool) -> DriverMsg {
    DriverMsg {
        explore: Some(Explore {
            on: Some(on),
            ..Explore::default()
        }),
        ..DriverMsg::data()
    }
}

#[tokio::test]
async fn without_a_map_other_devices_are_left_alone_and_requests_say_what_to_do() {
    check(None, async |fake| {
        assert_eq!(shown(fake).await.state(), progress::State::None);
        let why = command(fake, |it| {
            *it = DriverMsg {
                syn_num: it.syn_num,
                ..explore(true)
            }
        })
        .await;
        assert_eq!(why.unwrap(), "no map grows: start one first");
        let answer = ask(fake, |it| it.save_map = Some(SaveMap::default())).await;
        assert_eq!(answer.save_refused(), "there is no map: start one first");
        let why = command(fake, |it| {
            it.start_map = Some(StartMap {
                track: Some(1.0),
                ..StartMap::default()
            });
        });
        assert_eq!(why.await.unwrap(), "track_mm: 1 is not within 50 to 5000");
        assert_eq!(command(fake, |it| it.stop_map = Some(true)).await, None);
        assert!(!fake.world().is_subscribed);
        assert_eq!(fake.world().commands, 0);
    })
    .await;
}

#[tokio::test]
async fn a_map_asks_the_robot_device_for_its_shape() {
    run(Options::default().driver().unwrap(), async |fake| {
        let why = command(fake, start).await.unwrap();
        assert!(
            why.starts_with("the shape of the robot is unknown"),
            "{why}"
        );
        fake.world().shape = Some(Shape {
            laser: Some(Place::default()),
            ..Shape::default()
        });
        assert_eq!(command(fake, start).await, None);
        until(fake, "scans", |it| it.scans() > 3).await;
    })
    .await;
}

#[tokio::test]
async fn a_growing_map_is_shown_and_without_walls_not_saved() {
    let folder = tempfile::tempdir().unwrap();
    check(Some(folder.path()), async |fake| {
        assert_eq!(command(fake, start).await, None);
        let why = command(fake, start).await.unwrap();
        assert!(why.contains("stop it first"), "{why}");
        let grows = |it: &Progress| it.scans() > 3 && it.grid() > 0;
        let progress = until(fake, "a grid", grows).await;
        assert_eq!(progress.state(), progress::State::Growing);
        assert!(progress.scan.unwrap().xs.len() > 50);
        assert!(progress.location.unwrap().time_stamp() > 0);
        let grid = ask(fake, |it| it.grid = Some(Grid::default())).await;
        let grid = grid.grid.unwrap();
        assert_eq!(grid.map, progress.map);
        assert!(
            !grid.tiles.is_empty() && grid.encoded_len() < 1_400,
            "{grid:?}"
        );

        // A robot that stands has seen each surface once, which is not enough for walls.
        let wanted = SaveMap {
            name: Some("lab".into()),
            ..SaveMap::default()
        };
        let save = |it: &mut DriverMsg| it.save_map = Some(wanted.clone());
        let early = ask(fake, save).await;
        assert!(early.save_refused().contains("no walls yet"), "{early:?}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);

        assert_eq!(command(fake, |it| it.stop_map = Some(true)).await, None);
        assert_eq!(shown(fake).await.state(), progress::State::Stopped);
        assert_eq!(fake.world().commands, 0, "nobody wanted to drive");
    })
    .await;
}

#[tokio::test]
async fn without_a_folder_no_names_are_accepted() {
    check(None, async |fake| {
        assert_eq!(command(fake, start).await, None);
        let wanted = SaveMap {
            name: Some("lab".into()),
            ..SaveMap::default()
        };
        let answer = ask(fake, |it| it.save_map = Some(wanted)).await;
        assert!(answer.save_refused().contains("--maps"), "{answer:?}");
    })
    .await;
}

#[tokio::test]
async fn an_exploration_ends_with_its_client_and_the_map_goes_on_until_its_own_is_gone() {
    check(None, async |fake| {
        let start = |it: &mut DriverMsg| {
            it.start_map = Some(StartMap {
                ends_with_client: Some(true),
                ..StartMap::default()
            });
        };
        assert_eq!(command(fake, start).await, None);
        let died = DriverMsg::of_kind(MsgType::ClientDied).encode_to_vec();
        for end in [died.clone(), explore(false).encode_to_vec()] {
            fake.tell_as(8, &explore(true).encode_to_vec());
            fake.until("it drives", |it| it.speeds != WheelSpeeds::STOP)
                .await;
            fake.tell_as(8, &end);
            fake.until("it stands", |it| it.speeds == WheelSpeeds::STOP)
                .await;
            let stopped = until(fake, "an end", |it| {
                it.exploration() == progress::Exploration::StoppedEarly
            });
            assert_eq!(stopped.await.state(), progress::State::Growing);
        }
        fake.tell(&died);
        until(fake, "an end", |it| it.state() == progress::State::Stopped).await;
    })
    .await;
}

#[tokio::test]
async fn a_lost_laser_stops_the_exploration_and_is_shown() {
    check(None, async |fake| {
        assert_eq!(command(fake, start).await, None);
        fake.tell(&explore(true).encode_to_vec());
        fake.until("it drives", |it| it.speeds != WheelSpeeds::STOP)
            .await;
        fake.world().laser_on = false;
        fake.until("it stands", |it| it.speeds == WheelSpeeds::STOP)
            .await;
        until(fake, "a reason", |it| {
            it.trouble().starts_with("hokuyo:0 sends no scans")
        })
        .await;
        fake.world().laser_on = true;
        fake.until("it drives again", |it| it.speeds != WheelSpeeds::STOP)
            .await;
    })
    .await;
}
