//! The trips of one user: orders of DriveToPoint, in one task each, up to their end. IO.

use std::collections::HashMap;

use amber_driver::client::proxy::{DriveToPoint, new_order_id};
use amber_driver::client::{Client, DriveEnd, Error, OrderState};
use amber_proto::Device;
use amber_values::Target;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use super::robot::{Event, Trip, TripEnd, TripNews, User};

/// The trips that run.
pub(super) struct Trips {
    user: User,
    events: mpsc::Sender<Event>,
    running: HashMap<Trip, Running>,
}

struct Running {
    order: u64,
    task: AbortHandle,
}

impl Trips {
    pub(super) fn new(user: User, events: mpsc::Sender<Event>) -> Self {
        Self {
            user,
            events,
            running: HashMap::new(),
        }
    }

    /// Drives to targets. The events tell how it goes, and always how it ends.
    pub(super) fn begin(
        &mut self,
        client: &Client,
        device: Device,
        trip: Trip,
        targets: Vec<Target>,
    ) {
        self.running.retain(|_, it| !it.task.is_finished());
        let driver = DriveToPoint::new(client.device(device));
        let (order, user, events) = (new_order_id(), self.user, self.events.clone());
        let task = tokio::spawn(async move {
            let end = match driver.begin_order(order, &targets).await {
                Ok(_) => {
                    let driven = driver.order_end(order, |update| {
                        let news = TripNews::Progress {
                            pose: update.location,
                            remaining_m: update.order.as_ref().and_then(|order| order.remaining),
                        };
                        // The next one comes soon.
                        let _ = events.try_send(Event::Trip(user, trip, news));
                        Ok(())
                    });
                    end_of(driven.await)
                }
                Err(error) => TripEnd::Refused(error.to_string()),
            };
            let event = Event::Trip(user, trip, TripNews::Ended(end));
            let _ = events.send(event).await;
        });
        let task = task.abort_handle();
        self.running.insert(trip, Running { order, task });
    }

    /// Ends a trip, and nothing that has begun since. Its end comes as that of any other.
    pub(super) fn cancel(&self, client: &Client, device: Device, trip: Trip) {
        let Some(Running { order, .. }) = self.running.get(&trip) else {
            return;
        };
        let (driver, order) = (DriveToPoint::new(client.device(device)), *order);
        tokio::spawn(async move {
            if let Err(error) = driver.cancel_order(order).await {
                tracing::warn!(%device, "cannot cancel an order: {error}");
            }
        });
    }
}

fn end_of(driven: Result<DriveEnd, Error>) -> TripEnd {
    match driven {
        Ok(DriveEnd::Arrived(_)) => TripEnd::Arrived,
        Ok(DriveEnd::Ended(order)) => {
            let reason = order.reason().to_owned();
            match order.state() {
                OrderState::Cancelled => TripEnd::Cancelled(reason),
                _ => TripEnd::Failed(reason),
            }
        }
        Err(error) => TripEnd::Failed(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use amber_driver::client::MapPose;
    use amber_proto::order::Order;

    use super::*;

    #[test]
    fn a_trip_ends_as_its_order() {
        let ended = |state: OrderState| {
            DriveEnd::Ended(Order {
                state: Some(state.into()),
                reason: Some("because".into()),
                ..Order::default()
            })
        };
        let device = Device::MEDIATOR;
        for (driven, expected) in [
            (Ok(DriveEnd::Arrived(MapPose::default())), TripEnd::Arrived),
            (
                Ok(ended(OrderState::Cancelled)),
                TripEnd::Cancelled("because".into()),
            ),
            (
                Ok(ended(OrderState::Replaced)),
                TripEnd::Failed("because".into()),
            ),
            (
                Err(Error::NoSuchDevice { device }),
                TripEnd::Failed("no driver serves mediator:0 now".into()),
            ),
        ] {
            assert_eq!(end_of(driven), expected);
        }
    }
}
