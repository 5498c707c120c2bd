//! Stops the robot for a page, whose own client may not be there yet. IO.

use amber_client::{Client, DriveToPoint, Error, MappingService, Roboclaw, WheelSpeeds};
use amber_proto::mapping::Explore;
use amber_scene::moving;
use tokio::time::sleep;

use crate::hub::Stop;
use crate::limits::{BETWEEN_STOPS, STOP_DEADLINE, STOPS};

/// Stops the devices that drive the robot, whoever moves them. Returns what has failed.
pub(crate) async fn stop(client: &Client, stop: &Stop) -> Vec<Error> {
    let mut problems = Vec::new();
    let (wheels, targets, mapping) = tokio::join!(
        stop_wheels(client, stop),
        forget_targets(client, stop),
        end_exploration(client, stop),
    );
    problems.extend(
        [wheels, targets, mapping]
            .into_iter()
            .filter_map(Result::err),
    );
    if stop.halts {
        problems.extend(halt(client, &stop.name).await);
    }
    problems
}

async fn stop_wheels(client: &Client, stop: &Stop) -> Result<(), Error> {
    let Some(device) = stop.parts.wheels else {
        return Ok(());
    };
    let wheels = Roboclaw::new(client.device(device))
        .with_deadline(STOP_DEADLINE)
        .without_waiting(|error| tracing::warn!("the wheels do not stop: {error}"));
    let mut sent = wheels.drive(WheelSpeeds::STOP).await;
    for _ in 1..STOPS {
        sleep(BETWEEN_STOPS).await;
        sent = wheels.drive(WheelSpeeds::STOP).await;
    }
    sent
}

async fn forget_targets(client: &Client, stop: &Stop) -> Result<(), Error> {
    let Some(device) = stop.parts.targets else {
        return Ok(());
    };
    let driver = DriveToPoint::new(client.device(device));
    driver.set_targets(&[]).await
}

async fn end_exploration(client: &Client, stop: &Stop) -> Result<(), Error> {
    let Some(device) = stop.parts.mapping else {
        return Ok(());
    };
    let explore = Explore {
        on: Some(false),
        ..Explore::default()
    };
    let mapping = MappingService::new(client.device(device));
    mapping.explore(explore).await
}

/// Halts everything that moves.
async fn halt(client: &Client, name: &str) -> Vec<Error> {
    let devices = match moving::devices(client).await {
        Ok(devices) => devices,
        Err(error) => return vec![error],
    };
    let halted = moving::change_halts(client, devices, true, name).await;
    halted
        .into_iter()
        .filter_map(|(_, done)| done.err())
        .collect()
}
