//! Follows what another device publishes, and asks the device when it is silent. IO.

use std::time::Duration;

use amber_driver::client::proxy::Robot;
use amber_driver::client::{Result, Subscription};
use amber_proto::robot::Shape;
use tokio::time::timeout;

/// How long a device may be silent before it is asked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    /// After it has said something.
    pub(crate) after_news: Duration,
    /// At the start, and after a question that has failed.
    pub(crate) after_failure: Duration,
}

/// For devices that measure and publish that at least ten times per second.
pub(crate) const MEASUREMENTS: Patience = Patience {
    after_news: Duration::from_millis(300),
    after_failure: Duration::from_millis(200),
};

/// For the robot device, which publishes its shape to a new subscriber and when the shape changes.
const SHAPES: Patience = Patience {
    after_news: Duration::from_secs(10),
    after_failure: Duration::from_secs(1),
};

/// What a device publishes, or answers.
pub(crate) struct Followed<T, A> {
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
    pub(crate) fn new(published: Subscription<T>, patience: Patience, ask: A) -> Self {
        Self {
            published,
            ask,
            patience,
            wait: patience.after_failure,
        }
    }

    /// Waits for the next news of the device, or for the reason why it has none. `None`: the client
    /// has ended.
    ///
    /// Nothing that is published is lost if this is dropped.
    pub(crate) async fn next(&mut self) -> Option<Result<T>> {
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
