//! What is measured, and what is demanded. PURE.

/// A camera, its subscribers, and the network between them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) bytes: usize,
    pub(crate) hertz: u32,
    pub(crate) subscribers: usize,
    pub(crate) subscriber: Subscriber,
    /// LOSS_PERCENT,DELAY_MS,MBIT_S,QUEUE; `None`: subscribers are on the computer of the mediator.
    pub(crate) network: Option<&'static str>,
    pub(crate) beside: Beside,
    pub(crate) demands: Demands,
}

/// The program that subscribes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Subscriber {
    Rust,
    Python,
}

/// A client that has another fate than the subscribers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Beside {
    Nobody,
    /// A subscriber that is stopped for a while.
    Stopped,
    /// A subscriber that does not know pieces.
    Old,
}

/// The limits of the figures; `None`: any.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Demands {
    /// Pictures that arrive whole, at least, in percent.
    pub(crate) whole_percent: f64,
    /// The median time to a whole picture, in milliseconds.
    pub(crate) median_ms: Option<f64>,
    /// The CPU time of the mediator, in percent of a core.
    pub(crate) mediator_percent: Option<f64>,
    /// The CPU time of a subscriber.
    pub(crate) subscriber_percent: Option<f64>,
    /// Pieces beyond those of each picture.
    pub(crate) extra_percent: Option<f64>,
}

/// The longest datagram with a piece for another computer: no network cuts it.
pub(crate) const LONGEST_DATAGRAM: usize = 1_232;
/// From the end of a stop to a new picture.
pub(crate) const RESUMES_MS: f64 = 200.0;
/// How much the memory of the camera may grow while a subscriber is stopped: less than it publishes in
/// a quarter of a second.
pub(crate) const CAMERA_GROWS_BYTES: i64 = 1_500_000;

pub(crate) const CASES: &[Case] = &[
    Case {
        demands: Demands {
            median_ms: Some(2.0),
            mediator_percent: Some(2.0),
            ..whole(99.0)
        },
        ..case("loopback, 5 subscribers", 200_000, 30, 5, None)
    },
    Case {
        demands: Demands {
            mediator_percent: Some(10.0),
            ..whole(99.0)
        },
        // Pieces for other computers, without loss.
        ..case("20 subscribers", 60_000, 30, 20, Some("0,0,0,0"))
    },
    Case {
        demands: Demands {
            extra_percent: Some(5.0),
            ..whole(99.5)
        },
        ..case("1 % loss", 60_000, 30, 1, Some("1,5,0,0"))
    },
    Case {
        demands: Demands {
            extra_percent: Some(5.0),
            ..whole(98.0)
        },
        ..case("3 % loss", 60_000, 30, 1, Some("3,5,0,0"))
    },
    Case {
        demands: whole(95.0),
        ..case("1 % loss, large", 200_000, 30, 1, Some("1,5,0,0"))
    },
    Case {
        demands: whole(95.0),
        ..case(
            "30 Mbit/s, queue of 100",
            200_000,
            10,
            1,
            Some("0,0,30,100"),
        )
    },
    Case {
        beside: Beside::Stopped,
        ..case("one more is stopped", 200_000, 30, 2, None)
    },
    Case {
        beside: Beside::Old,
        ..case("one more is old", 60_000, 30, 1, None)
    },
    Case {
        subscriber: Subscriber::Python,
        demands: Demands {
            subscriber_percent: Some(10.0),
            ..whole(100.0)
        },
        // About what a picture of 640 x 480 has.
        ..case("Python client", 60_000, 15, 1, None)
    },
];

const fn case(
    name: &'static str,
    bytes: usize,
    hertz: u32,
    subscribers: usize,
    network: Option<&'static str>,
) -> Case {
    Case {
        name,
        bytes,
        hertz,
        subscribers,
        subscriber: Subscriber::Rust,
        network,
        beside: Beside::Nobody,
        demands: whole(99.0),
    }
}

const fn whole(percent: f64) -> Demands {
    Demands {
        whole_percent: percent,
        median_ms: None,
        mediator_percent: None,
        subscriber_percent: None,
        extra_percent: None,
    }
}
