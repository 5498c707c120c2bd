//! Follows what another device publishes, and asks the device when it is silent. IO.

use std::time::Duration;

use amber_driver::client::proxy::Robot;
use amber_driver::client::{Proxy, Result, Subscription};
use amber_proto::motion::MotionState;
use amber_proto::robot::Shape;
use tokio::sync::{mpsc, watch};
use tokio::time::{sleep, timeout};

/// How long a device may be silent before it is asked.
#[derive(Clone, Copy, Debug)]
struct Patience {
    /// After it has said something.
    after_news: Duration,
    /// At the start, and after a question that has failed.
    after_failure: Duration,
}

/// For devices that measure and publish that at least ten times per second.
const MEASUREMENTS: Patience = Patience {
    after_news: Duration::from_millis(300),
    after_failure: Duration::from_millis(200),
};

/// For the robot device, which publishes its shape to a new subscriber and when the shape changes.
const SHAPES: Patience = Patience {
    after_news: Duration::from_secs(10),
    after_failure: Duration::from_secs(1),
};

/// The time between two questions who moves a device.
const ASK_WHO: Duration = Duration::from_millis(500);

/// What a device publishes, or answers.
struct Followed<T, A> {
    published: Subscription<T>,
    ask: A,
    patience: Patience,
    wait: Duration,
}

impl<T, A, F> Followed<T, A>
where
    A: Fn() -> F,
    F: Future<Output = Result<T>>,
{
    /// Follows a device that answers `ask` with the same as it publishes.
    fn new(published: Subscription<T>, patience: Patience, ask: A) -> Self {
        Self {
            published,
            ask,
            patience,
            wait: patience.after_failure,
        }
    }

    /// Waits for the next news of the device, or for the reason why it has none. `None`: the client
    /// has ended.
    async fn next(&mut self) -> Option<Result<T>> {
        let news = match timeout(self.wait, self.published.next()).await {
            Ok(published) => Ok(published?.message),
            Err(_) => (self.ask)().await,
        };
        self.wait = match news {
            Ok(_) => self.patience.after_news,
            Err(_) => self.patience.after_failure,
        };
        Some(news)
    }
}

/// Forwards what a device measures, or why it does not, until the client ends or nobody receives it.
/// The device answers `ask` with the same as it publishes.
pub(crate) async fn forward<T, F: Future<Output = Result<T>>, E>(
    published: Result<Subscription<T>>,
    ask: impl Fn() -> F,
    events: mpsc::Sender<E>,
    mut event: impl FnMut(Result<T>) -> E,
) {
    // An error: the client has ended.
    let Ok(published) = published else {
        return;
    };
    let mut followed = Followed::new(published, MEASUREMENTS, ask);
    while let Some(news) = followed.next().await {
        if events.send(event(news)).await.is_err() {
            return;
        }
    }
}

/// Asks who moves a device, again and again while it is wanted, until nobody receives the answer.
pub(crate) async fn forward_motion<E>(
    device: Proxy,
    mut is_wanted: watch::Receiver<bool>,
    events: mpsc::Sender<E>,
    event: impl Fn(MotionState) -> E,
) {
    while is_wanted.wait_for(|is_wanted| *is_wanted).await.is_ok() {
        if let Ok(state) = device.motion_state().await
            && events.send(event(state)).await.is_err()
        {
            return;
        }
        sleep(ASK_WHO).await;
    }
}

/// Passes on the shape of the robot and its changes, or why it is not known, until the client ends.
pub(crate) async fn follow_shape(robot: &Robot, mut pass: impl FnMut(Result<Shape>)) {
    // An error: the client has ended.
    let Ok(published) = robot.shape_updates().await else {
        return;
    };
    let mut shapes = Followed::new(published, SHAPES, || robot.shape());
    while let Some(shape) = shapes.next().await {
        pass(shape);
    }
}
