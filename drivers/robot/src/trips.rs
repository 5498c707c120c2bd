//! The trips of one user, in one task each, up to their end. IO.

use std::collections::HashMap;

use amber_client::Client;
use amber_client::proxy::DriveToPoint;
use amber_proto::Device;
use amber_scene::trip;
use amber_values::Target;
use tokio::sync::mpsc;

use crate::robot::{News, Trip, TripEnd, TripNews, User};

/// Why a trip does not begin without a mediator.
pub const UNREACHABLE: &str = "the mediator cannot be reached";

/// The trips of one user that run.
#[derive(Debug)]
pub struct Trips {
    user: User,
    /// Who drives, for people.
    name: String,
    news: mpsc::Sender<News>,
    running: HashMap<Trip, (Device, trip::Trip)>,
}

impl Trips {
    /// No trip runs. `name` says to people who drives.
    #[must_use]
    pub fn new(user: User, name: String, news: mpsc::Sender<News>) -> Self {
        Self {
            user,
            name,
            news,
            running: HashMap::new(),
        }
    }

    /// Drives to targets. The news tell how it goes, and always how it ends.
    pub fn begin(&mut self, client: &Client, device: Device, number: Trip, targets: Vec<Target>) {
        self.running.retain(|_, (_, trip)| !trip.is_over());
        let (trip, mut driving) = trip::Trip::new(DriveToPoint::new(client.device(device)));
        self.running.insert(number, (device, trip));
        let (user, name, reports) = (self.user, self.name.clone(), self.news.clone());
        tokio::spawn(async move {
            let end = match driving.begin(&targets, &name).await {
                Ok(()) => {
                    let progress = driving.end(|update| {
                        let news = TripNews::Progress {
                            pose: update.location,
                            remaining_m: update.order.as_ref().and_then(|order| order.remaining),
                        };
                        // The next one comes soon.
                        let _ = reports.try_send(News::Trip(user, number, news));
                    });
                    progress.await
                }
                Err(end) => end,
            };
            let ended = News::Trip(user, number, TripNews::Ended(end));
            let _ = reports.send(ended).await;
        });
    }

    /// Tells why a trip does not begin.
    pub async fn refuse(&self, number: Trip, why: String) {
        let ended = TripNews::Ended(TripEnd::Refused(why));
        let _ = (self.news.send(News::Trip(self.user, number, ended))).await;
    }

    /// Ends a trip. Its end comes as that of any other.
    pub fn cancel(&self, number: Trip) {
        if let Some((_, trip)) = self.running.get(&number) {
            trip.cancel();
        }
    }

    /// The user commands something else of a device: a trip that has not begun there does not begin.
    pub fn supersede(&self, device: Device) {
        for (of, trip) in self.running.values() {
            if *of == device {
                trip.supersede();
            }
        }
    }
}
