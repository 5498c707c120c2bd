//! The example that drives back to its start, in the demo.

use amber_client::values::Target;
use amber_client::{Client, DriveEnd};

use crate::driving::robot;
use crate::robot::{Robot, runtime};

#[allow(dead_code)] // The test has a main of its own.
#[path = "../../client-sdk/examples/return_home.rs"]
mod example;

/// How far the robot may be from the centre of a target: its radius and the error of its pose.
const NEAR_M: f64 = 0.35;

fn distance_m(robot: &Robot, from: Target) -> f64 {
    let state = robot.state();
    (state.x_m - from.x_m).hypot(state.y_m - from.y_m)
}

#[test]
fn the_robot_returns_home_from_another_room() {
    let robot = robot();
    runtime().block_on(async {
        let client = Client::connect(robot.demo.address).await.unwrap();
        let home = example::here(&client).await.unwrap();
        assert!(distance_m(&robot, home) < NEAR_M);
        assert!(robot.amber(&["goto", "3.35", "1"]));
        assert!(distance_m(&robot, home) > 1.0);
        let end = example::go_home(&client, home).await.unwrap();
        assert!(matches!(end, DriveEnd::Arrived(_)), "{end:?}");
        assert!(distance_m(&robot, home) < NEAR_M);
        client.close().await;
    });
    assert_eq!(robot.state().contacts, 0);
}
