//! The trips of one user, in one task each, up to their end. IO.

use std::collections::HashMap;

use amber_driver::client::Client;
use amber_driver::client::proxy::DriveToPoint;
use amber_proto::Device;
use amber_scene::trip;
use amber_values::Target;
use tokio::sync::mpsc;

use super::robot::{Event, Trip, TripEnd, TripNews, User};

/// The trips that run.
pub(super) struct Trips {
    user: User,
    /// Who drives, for people.
    name: String,
    events: mpsc::Sender<Event>,
    running: HashMap<Trip, (Device, trip::Trip)>,
}

impl Trips {
    pub(super) fn new(user: User, name: String, events: mpsc::Sender<Event>) -> Self {
        Self {
            user,
            name,
            events,
            running: HashMap::new(),
        }
    }

    /// Drives to targets. The events tell how it goes, and always how it ends.
    pub(super) fn begin(
        &mut self,
        client: &Client,
        device: Device,
        number: Trip,
        targets: Vec<Target>,
    ) {
        self.running.retain(|_, (_, trip)| !trip.is_over());
        let (trip, mut driving) = trip::Trip::new(DriveToPoint::new(client.device(device)));
        self.running.insert(number, (device, trip));
        let (user, name, events) = (self.user, self.name.clone(), self.events.clone());
        tokio::spawn(async move {
            let end = match driving.begin(&targets, &name).await {
                Ok(()) => {
                    let progress = driving.end(|update| {
                        let news = TripNews::Progress {
                            pose: update.location,
                            remaining_m: update.order.as_ref().and_then(|order| order.remaining),
                        };
                        // The next one comes soon.
                        let _ = events.try_send(Event::Trip(user, number, news));
                    });
                    progress.await
                }
                Err(end) => end,
            };
            let ended = Event::Trip(user, number, TripNews::Ended(end));
            let _ = events.send(ended).await;
        });
    }

    /// Tells why a trip does not begin.
    pub(super) async fn refuse(&self, number: Trip, why: String) {
        let ended = TripNews::Ended(TripEnd::Refused(why));
        let _ = (self.events.send(Event::Trip(self.user, number, ended))).await;
    }

    /// Ends a trip. Its end comes as that of any other.
    pub(super) fn cancel(&self, number: Trip) {
        if let Some((_, trip)) = self.running.get(&number) {
            trip.cancel();
        }
    }

    /// The user commands something else of a device: a trip that has not begun there does not begin.
    pub(super) fn supersede(&self, device: Device) {
        for (of, trip) in self.running.values() {
            if *of == device {
                trip.supersede();
            }
        }
    }
}
