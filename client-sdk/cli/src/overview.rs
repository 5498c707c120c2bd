//! A snapshot of the mediator, its drivers and clients, requested at one moment. IO.

use amber_client::{Client, Error, Mediator};
use amber_proto::mediator::{Driver, ProcessUsage, Statistics};

/// See the [module](self).
#[derive(Clone, Debug, Default)]
pub(crate) struct Overview {
    pub(crate) statistics: Statistics,
    pub(crate) drivers: Vec<Driver>,
    /// Empty if the mediator is too old to report it.
    pub(crate) processes: Vec<ProcessUsage>,
}

/// The statistics, or those without counters where long answers do not arrive.
pub(crate) async fn statistics(mediator: &Mediator) -> Result<Statistics, Error> {
    match mediator.statistics().await {
        Ok(statistics) => Ok(statistics),
        Err(error) => {
            let short = mediator.with_short_answers_after(error)?;
            short.statistics().await
        }
    }
}

impl Overview {
    /// Requests everything.
    pub(crate) async fn ask(client: &Client) -> Result<Self, Error> {
        let mediator = client.mediator();
        let processes = async {
            match mediator.processes().await {
                Err(Error::Refused { .. }) => Ok(Vec::new()),
                asked => asked,
            }
        };
        let (statistics, drivers, processes) =
            tokio::try_join!(statistics(&mediator), mediator.drivers(), processes)?;
        Ok(Self {
            statistics,
            drivers,
            processes,
        })
    }

    pub(crate) fn process_of(&self, driver: &Driver) -> Option<&ProcessUsage> {
        let mut processes = self.processes.iter();
        processes.find(|it| driver.pid == Some(it.pid) && it.device.is_some())
    }

    /// The process of the mediator itself.
    pub(crate) fn own_process(&self) -> Option<&ProcessUsage> {
        self.processes.iter().find(|it| it.device.is_none())
    }
}
