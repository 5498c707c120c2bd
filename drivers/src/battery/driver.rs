//! The driver between the device that measures the battery and clients. IO.

use std::error::Error;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use amber_driver::client::proxy::Roboclaw;
use amber_driver::devices::battery_state::{BatteryDriver as BatteryMethods, BatteryLink};
use amber_driver::{Reply, now};
use amber_proto::Device;
use amber_proto::battery_state::BatteryState;
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval};

use super::logic::{BatteryLogic, Settings};
use crate::stream::complain;

/// The time between two measurements.
const PERIOD: Duration = Duration::from_secs(1);
/// Later answers are ignored.
const DEADLINE: Duration = Duration::from_millis(800);

#[derive(Debug)]
pub(super) struct BatteryDriver {
    logic: Arc<Mutex<BatteryLogic>>,
    /// The device that measures the battery.
    device: Device,
    /// `Some` after the start.
    following: Option<JoinHandle<()>>,
}

impl BatteryDriver {
    pub(super) fn new(settings: Settings, device: Device) -> Self {
        Self {
            logic: Arc::new(Mutex::new(BatteryLogic::new(settings, now()))),
            device,
            following: None,
        }
    }
}

impl BatteryMethods for BatteryDriver {
    async fn start(&mut self, link: BatteryLink) -> Result<(), Box<dyn Error + Send + Sync>> {
        let following = follow(link, self.device, self.logic.clone());
        self.following = Some(tokio::spawn(following));
        Ok(())
    }

    async fn state(&mut self, reply: Reply<BatteryState>) {
        match lock(&self.logic).state(now()) {
            Ok(state) => reply.send(state),
            Err(why) => reply.refuse(why),
        }
    }

    async fn shutdown(&mut self) {
        if let Some(task) = self.following.take() {
            task.abort();
        }
    }
}

/// Asks for the battery once a second, and publishes it.
async fn follow(link: BatteryLink, device: Device, logic: Arc<Mutex<BatteryLogic>>) {
    let client = link.devices();
    let wheels = Roboclaw::new(client.device(device)).with_deadline(DEADLINE);
    let mut ticks = interval(PERIOD);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut told: Option<String> = None;
    loop {
        ticks.tick().await;
        let measured = wheels.battery().await;
        let measured = measured.map_err(|error| format!("no voltage from {device}: {error}"));
        let now = now();
        let (state, trouble) = {
            let mut logic = lock(&logic);
            logic.handle(now, measured);
            (logic.state(now).ok(), logic.trouble(now))
        };
        if let Some(state) = state {
            complain(link.state_updates(state));
        }
        if told != trouble {
            match &trouble {
                Some(trouble) => {
                    tracing::warn!("{trouble}");
                    link.trouble(trouble);
                }
                None => {
                    tracing::info!("the battery is well again");
                    link.recovered();
                }
            }
            told = trouble;
        }
    }
}

fn lock(logic: &Mutex<BatteryLogic>) -> MutexGuard<'_, BatteryLogic> {
    // Holders only compute.
    logic.lock().unwrap_or_else(PoisonError::into_inner)
}
