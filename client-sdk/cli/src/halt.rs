//! `amber halt`: stops devices, and keeps them from moving until the halt is released. IO.

use std::time::Duration;

use amber_client::{Client, Error, Proxy};
use amber_proto::mediator::{Driver, DriverState};
use amber_proto::{Device, DeviceType};
use amber_reflect::Schemas;
use amber_terminal::{Failure, Human, show};
use serde::Serialize;
use tokio::task::JoinSet;

use super::descriptions;

pub(super) const HELP: &str = "\
The devices stop and refuse motion, also after a restart of their drivers, until the halt is
released. This is no emergency stop: it needs the network, the mediator and the drivers. Have a
switch that cuts the power of the motors.

Examples:
  amber halt
  amber halt roboclaw
  amber halt --release";

/// Options of `amber halt`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Device, e.g. roboclaw, roboclaw:0 or 2:0 [default: all that move]
    #[arg(value_parser = crate::names::device)]
    device: Option<Device>,
    /// Allow motion again
    #[arg(long)]
    release: bool,
}

/// Who halts, for people.
const NAME: &str = "amber halt";
/// A driver answers within milliseconds. One of several attempts may get lost.
const DEADLINE: Duration = Duration::from_millis(300);
const ATTEMPTS: usize = 3;

pub(super) async fn run(client: &Client, options: &Options, json: bool) -> Result<(), Failure> {
    let devices = match options.device {
        Some(device) => vec![device],
        None => moving(client).await?,
    };
    if devices.is_empty() {
        return Err(Failure::new("no running driver has a device that moves")
            .hint("`amber devices` lists the devices"));
    }
    let mut asked = JoinSet::new();
    for device in devices {
        let proxy = client.device(device).with_deadline(DEADLINE);
        let release = options.release;
        asked.spawn(async move { (device, change(&proxy, release).await) });
    }
    let mut done = asked.join_all().await;
    done.sort_by_key(|(device, _)| *device);
    let changed = done.iter().filter(|(_, done)| done.is_ok());
    let halted = Halted {
        halted: !options.release,
        devices: changed.map(|(device, _)| device.to_string()).collect(),
    };
    show(&halted, json)?;
    let mut failed = done
        .into_iter()
        .filter_map(|(device, done)| Some((device, done.err()?)));
    match failed.next() {
        None => Ok(()),
        Some((device, error @ Error::TimedOut { .. })) => Err(Failure::from(error).hint(format!(
            "{device} does not move, or its driver keeps no halt; cut the power if it moves"
        ))),
        Some((_, error)) => Err(error.into()),
    }
}

/// The devices of running drivers that have something that moves.
async fn moving(client: &Client) -> Result<Vec<Device>, Failure> {
    let drivers = client.mediator().drivers().await?;
    let is_running =
        |driver: &&Driver| matches!(driver.state(), DriverState::Up | DriverState::Starting);
    let devices = drivers.iter().filter(is_running).flat_map(|it| &it.devices);
    let mut moving = Vec::new();
    for device in devices {
        let device = Device::new(DeviceType(device.r#type), device.id);
        let mut schemas = Schemas::built_in();
        if schemas.interface(device.device_type).is_none() {
            descriptions::complete(client, device, &mut schemas).await?;
        }
        let interface = schemas.interface(device.device_type);
        if interface.is_some_and(amber_schema::Interface::moves) {
            moving.push(device);
        }
    }
    Ok(moving)
}

async fn change(proxy: &Proxy, release: bool) -> Result<(), Error> {
    let mut last = Ok(());
    for _ in 0..ATTEMPTS {
        let done = match release {
            true => proxy.release_halt(NAME).await,
            false => proxy.halt(NAME).await,
        };
        last = done.map(drop);
        if !matches!(last, Err(Error::TimedOut { .. })) {
            break;
        }
    }
    last
}

#[derive(Debug, Serialize)]
struct Halted {
    halted: bool,
    devices: Vec<String>,
}

impl Human for Halted {
    fn human(&self) -> String {
        let what = match self.halted {
            true => "halted",
            false => "may move again",
        };
        let line = |device: &String| format!("{device}: {what}\n");
        self.devices.iter().map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use amber_client::fake::Fake;
    use amber_proto::DeviceMessage;
    use amber_proto::motion::{DriverMsg, MotionState};
    use prost::Message;

    use super::*;

    fn options(release: bool) -> Options {
        Options {
            device: Some("roboclaw:0".parse().unwrap()),
            release,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_lost_request_is_repeated() {
        for release in [false, true] {
            let (client, mut fake) = Fake::new();
            let device = tokio::spawn(async move {
                fake.receive().await.unwrap();
                let asked = fake.receive().await.unwrap();
                let message = DriverMsg::decode(&asked.bytes[..]).unwrap();
                let request = message.halt_request.unwrap();
                assert_eq!((request.halt, request.name()), (!release, NAME));
                let answer = DriverMsg {
                    motion_state: Some(MotionState::default()),
                    ..DriverMsg::data()
                };
                fake.answer(&asked, &answer.encode_to_vec()).await;
                fake
            });
            run(&client, &options(release), true).await.unwrap();
            drop(device.await.unwrap());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_driver_that_does_not_answer_is_an_error() {
        let (client, fake) = Fake::new();
        let failure = run(&client, &options(false), true).await.unwrap_err();
        assert!(
            format!("{failure:?}").contains("cut the power"),
            "{failure:?}"
        );
        drop(fake);
    }
}
