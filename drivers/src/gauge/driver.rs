//! The driver between what measures the battery and clients. IO.

use std::error::Error;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use amber_driver::devices::battery_state::{BatteryDriver, BatteryLink};
use amber_driver::{Reply, now};
use amber_proto::battery_state::BatteryState;
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval};

use super::cells::Pack;
use super::logic::{BatteryLogic, Pace};
use crate::stream::complain;

/// The time between two publications.
const PUBLISH_EVERY: Duration = Duration::from_secs(1);

/// What measures the battery.
pub(crate) trait Source: Send + 'static {
    /// Measures now. The state has what is measured, and no more.
    ///
    /// # Errors
    /// Nothing could be measured: the reason.
    fn measure(
        &mut self,
        link: &BatteryLink,
    ) -> impl Future<Output = Result<BatteryState, String>> + Send;
}

/// The driver of a battery.
#[derive(Debug)]
pub(crate) struct GaugeDriver<S> {
    logic: Arc<Mutex<BatteryLogic>>,
    period: Duration,
    /// `Some` until the start.
    source: Option<S>,
    /// `Some` after the start.
    following: Option<JoinHandle<()>>,
}

impl<S: Source> GaugeDriver<S> {
    /// Creates a driver.
    pub(crate) fn new(pack: Pack, pace: Pace, source: S) -> Self {
        Self {
            logic: Arc::new(Mutex::new(BatteryLogic::new(pack, pace, now()))),
            period: pace.period,
            source: Some(source),
            following: None,
        }
    }
}

impl<S: Source> BatteryDriver for GaugeDriver<S> {
    async fn start(&mut self, link: BatteryLink) -> Result<(), Box<dyn Error + Send + Sync>> {
        if let Some(source) = self.source.take() {
            let following = follow(link, source, self.period, self.logic.clone());
            self.following = Some(tokio::spawn(following));
        }
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

/// Measures the battery all the time, and publishes it once a second.
async fn follow(
    link: BatteryLink,
    mut source: impl Source,
    period: Duration,
    logic: Arc<Mutex<BatteryLogic>>,
) {
    let mut ticks = interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut publishes_at = tokio::time::Instant::now();
    let mut told: Option<String> = None;
    loop {
        let tick = ticks.tick().await;
        let measured = source.measure(&link).await;
        let now = now();
        let (state, trouble) = {
            let mut logic = lock(&logic);
            logic.handle(now, measured);
            (logic.state(now).ok(), logic.trouble(now))
        };
        if let Some(state) = state.filter(|_| tick + period / 2 >= publishes_at) {
            complain(link.state_updates(state));
            publishes_at = tick + PUBLISH_EVERY;
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
