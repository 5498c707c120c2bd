//! `amber halt`: stops devices, and keeps them from moving until the halt is released. IO.

use amber_client::{Client, Error};
use amber_proto::Device;
use amber_scene::moving;
use amber_terminal::{Failure, Human, show};
use serde::Serialize;

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
    #[arg(value_parser = amber_terminal::device)]
    device: Option<Device>,
    /// Allow motion again
    #[arg(long)]
    release: bool,
}

/// Who halts, for people.
const NAME: &str = "amber halt";

pub(super) async fn run(client: &Client, options: &Options, json: bool) -> Result<(), Failure> {
    let devices = match options.device {
        Some(device) => vec![device],
        None => moving::devices(client).await?,
    };
    if devices.is_empty() {
        return Err(Failure::new("no running driver has a device that moves")
            .hint("`amber devices` lists the devices"));
    }
    let done = moving::change_halts(client, devices, !options.release, NAME).await;
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
