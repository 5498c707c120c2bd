//! The examples that drive from place to place, in the demo.

use std::sync::mpsc;
use std::thread;

use amber_client::values::Target;
use amber_client::{Client, DriveEnd};
use tokio::sync::oneshot;

use crate::driving::robot;
use crate::robot::{Robot, runtime, stands};

#[allow(dead_code)] // The test has a main of its own.
#[path = "../../client-sdk/examples/return_home.rs"]
mod return_home;
#[allow(dead_code)]
#[path = "../../client-sdk/examples/tour.rs"]
mod tour;

const BATH: Target = Target::new(3.35, 1.0);
const HALL: Target = Target::new(3.5, 2.6);
/// Outside of the flat.
const OUTSIDE: Target = Target::new(9.0, 1.0);
/// How far the robot may be from the centre of a target: its radius and the error of its pose.
const NEAR_M: f64 = 0.35;

fn distance_m(robot: &Robot, from: Target) -> f64 {
    let state = robot.state();
    (state.x_m - from.x_m).hypot(state.y_m - from.y_m)
}

#[test]
fn a_tour_visits_all_places_again_and_again_and_leaves_out_the_unreachable() {
    let robot = robot();
    let (lines, said) = mpsc::channel();
    let (enough, has_enough) = oneshot::channel::<()>();
    thread::scope(|scope| {
        scope.spawn(|| {
            runtime().block_on(async {
                let client = Client::connect(robot.demo.address).await.unwrap();
                let drive = client.drive_to_point(0);
                let places = [BATH, OUTSIDE, HALL];
                tokio::select! {
                    ended = tour::tour(&drive, &places, |text| lines.send(text).unwrap()) => {
                        panic!("{ended:?}");
                    }
                    _ = has_enough => {}
                }
                drive.stop().await.unwrap();
                client.close().await;
            });
        });
        // The robot says the place where it believes to be.
        for (begin, place) in [
            ("driving to 3.35, 1", None),
            ("arrived at ", Some(BATH)),
            ("driving to 9, 1", None),
            ("does not reach 9, 1: ", None),
            ("driving to 3.5, 2.6", None),
            ("arrived at ", Some(HALL)),
            ("driving to 3.35, 1", None),
        ] {
            // On a busy machine, late data make the robot wait for a moment.
            let mut lines = said.iter().skip_while(|line| line.starts_with("waits: "));
            let line = lines.next().unwrap();
            assert!(line.starts_with(begin), "{line}, expected {begin}");
            if let Some(place) = place {
                let distance_m = distance_m(&robot, place);
                assert!(distance_m < NEAR_M, "{distance_m} m from {place:?}");
            }
        }
        drop(enough);
    });
    robot.until("it stands", stands);
    assert_eq!(robot.state().contacts, 0);
}

#[test]
fn the_robot_returns_home_from_another_room() {
    let robot = robot();
    runtime().block_on(async {
        let client = Client::connect(robot.demo.address).await.unwrap();
        let home = return_home::here(&client).await.unwrap();
        assert!(distance_m(&robot, home) < NEAR_M);
        assert!(robot.amber(&["goto", "3.35", "1"]));
        assert!(distance_m(&robot, home) > 1.0);
        let end = return_home::go_home(&client, home).await.unwrap();
        assert!(matches!(end, DriveEnd::Arrived(_)), "{end:?}");
        assert!(distance_m(&robot, home) < NEAR_M);
        client.close().await;
    });
    assert_eq!(robot.state().contacts, 0);
}
