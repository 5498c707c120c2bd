//! The trips that a program makes for others, such as pages: orders of DriveToPoint. IO.
//!
//! UDP may lose the first request of an order, and it is repeated then. A stop in the meantime must
//! not be overtaken, so a trip that has not begun yet is given up for it: see [`Trip::supersede`].

use amber_client::proxy::DriveToPointProgressUpdates;
use amber_client::values::Target;
use amber_client::{DriveEnd, DriveToPoint, Error, OrderState, new_order_id};
use tokio::sync::watch;

/// How often an order is cancelled if no answer comes.
const ATTEMPTS: u32 = 3;

/// A trip, for whoever may end it. Dropping it gives the trip up if it has not begun; one that has
/// begun goes on.
#[derive(Debug)]
pub struct Trip {
    order: u64,
    wish: watch::Sender<Wish>,
}

/// What is wanted of a trip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wish {
    Go,
    NotBegin,
    Cancel,
}

/// Makes a trip: [`Driving::begin`], then [`Driving::end`].
#[derive(Debug)]
pub struct Driving {
    driver: DriveToPoint,
    order: u64,
    wishes: watch::Receiver<Wish>,
}

/// How a trip ends. The texts are sentences for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TripEnd {
    /// All targets were visited.
    Arrived,
    /// It was cancelled.
    Cancelled(String),
    /// The robot does not drive there any more.
    Failed(String),
    /// It has never begun.
    Refused(String),
}

impl Trip {
    /// A new trip.
    pub fn new(driver: DriveToPoint) -> (Self, Driving) {
        let (wish, wishes) = watch::channel(Wish::Go);
        let order = new_order_id();
        let driving = Driving {
            driver,
            order,
            wishes,
        };
        (Self { order, wish }, driving)
    }

    /// The id of its order.
    pub fn order(&self) -> u64 {
        self.order
    }

    /// Ends the trip, and nothing that has begun since.
    pub fn cancel(&self) {
        self.wish.send_replace(Wish::Cancel);
    }

    /// The user commands something else of the same driver. The driver knows what this means for a
    /// trip that has begun. One that has not must not begin.
    pub fn supersede(&self) {
        self.wish.send_if_modified(|wish| {
            let is_new = *wish == Wish::Go;
            if is_new {
                *wish = Wish::NotBegin;
            }
            is_new
        });
    }

    /// Whether it is over.
    pub fn is_over(&self) -> bool {
        self.wish.is_closed()
    }
}

impl Driving {
    /// Gives the driver the order. `name` says to people who drives.
    ///
    /// # Errors
    /// It does not begin: how the trip ends.
    pub async fn begin(&mut self, targets: &[Target], name: &str) -> Result<(), TripEnd> {
        tokio::select! {
            biased;
            () = given_up(&mut self.wishes) => {
                // The driver may have got the order.
                cancel(&self.driver, self.order).await;
                Err(TripEnd::Cancelled("stopped before the robot began".into()))
            }
            begun = self.driver.begin_order(self.order, targets, Some(name)) => match begun {
                Ok(_) => Ok(()),
                Err(error) => Err(TripEnd::Refused(error.to_string())),
            },
        }
    }

    /// Waits for the end. `progress` gets the published data until then.
    ///
    /// Dropping the future stops nothing.
    pub async fn end(mut self, mut progress: impl FnMut(&DriveToPointProgressUpdates)) -> TripEnd {
        let mut trip = self.driver.trip(self.order);
        let driven = async {
            while let Some(update) = trip.next().await? {
                progress(&update);
            }
            trip.await
        };
        let cancelled = async {
            cancelled(&mut self.wishes).await;
            cancel(&self.driver, self.order).await;
            std::future::pending().await
        };
        tokio::select! {
            driven = driven => end_of(driven),
            never = cancelled => never,
        }
    }
}

/// Resolves when the trip must not begin, also because its user is gone.
async fn given_up(wishes: &mut watch::Receiver<Wish>) {
    let _ = wishes.wait_for(|wish| *wish != Wish::Go).await;
}

/// Resolves when the user cancels the trip.
async fn cancelled(wishes: &mut watch::Receiver<Wish>) {
    let is_gone = (wishes.wait_for(|wish| *wish == Wish::Cancel).await).is_err();
    if is_gone {
        std::future::pending().await
    }
}

async fn cancel(driver: &DriveToPoint, order: u64) {
    for _ in 0..ATTEMPTS {
        // Without an answer the driver may not know of it. After any other error, nothing helps.
        match driver.cancel_order(order).await {
            Err(Error::TimedOut { .. }) => {}
            _ => return,
        }
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
    use amber_client::MapPose;
    use amber_client::fake::{Fake, Sent};
    use amber_proto::drive_to_point::{Configuration, DriverMsg, Location, Progress};
    use amber_proto::order::Order;
    use amber_proto::{Device, DeviceMessage, MsgType};
    use prost::Message;

    use super::*;

    fn order(state: OrderState) -> Order {
        Order {
            state: Some(state.into()),
            reason: Some("because".into()),
            ..Order::default()
        }
    }

    #[test]
    fn a_trip_ends_as_its_order() {
        let device = Device::MEDIATOR;
        let ended = |state| Ok(DriveEnd::Ended(order(state)));
        for (driven, expected) in [
            (Ok(DriveEnd::Arrived(MapPose::default())), TripEnd::Arrived),
            (
                ended(OrderState::Cancelled),
                TripEnd::Cancelled("because".into()),
            ),
            (
                ended(OrderState::Replaced),
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

    async fn make(mut driving: Driving) -> TripEnd {
        match driving.begin(&[Target::new(1.0, 0.0)], "a page").await {
            Ok(()) => driving.end(|_| {}).await,
            Err(end) => end,
        }
    }

    /// The next request that is no subscription.
    async fn request(fake: &mut Fake) -> (Sent, DriverMsg) {
        loop {
            let sent = fake.receive().await.unwrap();
            let message = DriverMsg::decode(sent.bytes.clone()).unwrap();
            if message.syn_num.is_some() && message.kind() == Some(MsgType::Data) {
                return (sent, message);
            }
        }
    }

    async fn answer(fake: &Fake, sent: &Sent, change: impl FnOnce(&mut DriverMsg)) {
        let mut message = DriverMsg::data();
        change(&mut message);
        fake.answer(sent, &message.encode_to_vec()).await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_stop_is_not_overtaken_by_an_order_that_is_repeated() {
        let (client, mut fake) = Fake::new();
        let (trip, driving) = Trip::new(client.drive_to_point(0));
        let made = tokio::spawn(make(driving));
        let (_, lost) = request(&mut fake).await;
        let go = lost.go.unwrap();
        assert_eq!((go.id, go.name()), (trip.order(), "a page"));
        trip.supersede();
        // Not the same order again.
        let (sent, cancelled) = request(&mut fake).await;
        assert_eq!(cancelled.cancel_id, Some(go.id));
        answer(&fake, &sent, |it| {
            it.order = Some(order(OrderState::Unknown));
        })
        .await;
        let end = TripEnd::Cancelled("stopped before the robot began".into());
        assert_eq!(made.await.unwrap(), end);
        assert!(trip.is_over());
    }

    #[tokio::test(start_paused = true)]
    async fn a_trip_that_has_begun_is_cancelled_by_its_id_only() {
        let (client, mut fake) = Fake::new();
        let driver = client.drive_to_point(0);
        let device = driver.address();
        let (trip, driving) = Trip::new(driver);
        let made = tokio::spawn(make(driving));
        let shown = |state| Order {
            id: Some(trip.order()),
            ..order(state)
        };
        let (sent, begun) = request(&mut fake).await;
        assert_eq!(begun.go.unwrap().id, trip.order());
        answer(&fake, &sent, |it| {
            it.order = Some(shown(OrderState::Running))
        })
        .await;
        let (sent, asked) = request(&mut fake).await;
        assert_eq!(asked.order_id, Some(trip.order()));
        // The driver says what another command means for it.
        trip.supersede();
        answer(&fake, &sent, |it| {
            it.order = Some(shown(OrderState::Running))
        })
        .await;
        trip.cancel();
        let (sent, cancelled) = request(&mut fake).await;
        assert_eq!(cancelled.cancel_id, Some(trip.order()));
        answer(&fake, &sent, |it| {
            it.order = Some(shown(OrderState::Cancelled))
        })
        .await;
        let mut published = DriverMsg::data();
        published.progress = Some(Progress::default());
        published.location = Some(Location::default());
        published.order = Some(shown(OrderState::Cancelled));
        published.ack_num = Some(0);
        fake.say(device, &published.encode_to_vec()).await;
        assert_eq!(made.await.unwrap(), TripEnd::Cancelled("because".into()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_driver_without_orders_refuses_a_trip() {
        let (client, mut fake) = Fake::new();
        let (_trip, driving) = Trip::new(client.drive_to_point(0));
        let old_driver = async {
            loop {
                let (sent, asked) = request(&mut fake).await;
                if asked.get_configuration.is_some() {
                    answer(&fake, &sent, |it| {
                        it.get_configuration = Some(true);
                        it.configuration = Some(Configuration::default());
                    })
                    .await;
                }
            }
        };
        let end = tokio::select! {
            end = make(driving) => end,
            () = old_driver => unreachable!(),
        };
        let TripEnd::Refused(why) = end else {
            panic!("{end:?}");
        };
        assert!(why.contains("knows no orders"), "{why}");
    }
}
