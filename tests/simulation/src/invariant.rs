//! The invariants, by name. PURE.

use std::fmt;

macro_rules! invariants {
    ($($(#[$doc:meta])* $variant:ident = $name:literal: $text:literal,)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Invariant { $(#[doc = $text] $variant,)* }

        impl Invariant {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// Its name in reports and in docs/reliability.md.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// Its description.
            pub fn text(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }
        }
    };
}

invariants! {
    RepliesReachTheNamed = "replies-reach-the-named":
        "a driver's frame goes to exactly the clients that it names, in order",
    BytesUntouched = "bytes-untouched":
        "messages arrive unchanged, with the id of their sender",
    FramesWhole = "frames-whole":
        "a driver reads only whole frames",
    InOrderAndOnce = "in-order-and-once":
        "frames of one client reach a driver in order, each at most once",
    ObituaryOnce = "obituary-once":
        "a driver gets CLIENT_DIED once per client, and only if it has read a message of that client",
    ObituaryTold = "obituary-told":
        "a driver that has read all its input knows no client that is gone or has no access",
    NothingAfterObituary = "nothing-after-obituary":
        "no message of a client follows its CLIENT_DIED",
    DriverDeathTold = "driver-death-told":
        "when a driver becomes unavailable, each announced client known to it is notified",
    DriverDeathOnce = "driver-death-once":
        "no client is notified twice of one death, or of the death of a driver that it did not use",
    GoodbyeForgets = "goodbye-forgets":
        "a client that disconnects, whose port is closed, or that is silent is forgotten",
    IdsUnique = "ids-unique":
        "ids are unique, and the id of a known client never changes",
    IdNotReused = "id-not-reused":
        "no id is reused while a driver knows it for another client",
    NothingToStrangers = "nothing-to-strangers":
        "nothing is sent to an address that has never sent anything",
    OldClientsSeeDriversOnly = "old-clients-see-drivers-only":
        "the mediator itself sends messages only to clients that have contacted it",
    NoAmplification = "no-amplification":
        "an unverified address gets at most as many of the mediator's own bytes as it has sent",
    PingAnswered = "ping-answered":
        "a PING from a reachable address is answered by one PONG",
    RefusalTold = "refusal-told":
        "a request of an announced client to an unavailable device is refused once, or a counter states the reason",
    AccessHolds = "access-holds":
        "access rules are enforced, and only local programs make changes",
    AllAccountedFor = "all-accounted-for":
        "frames in = frames out + waiting + dropped by cause, and the counters match the traffic",
    BoundsHold = "bounds-hold":
        "known clients, queued frames and bytes, and the mediator's own datagrams stay within limits",
    HostHarmsItself = "host-harms-itself":
        "a host at its client limit evicts only its own clients",
    SilentMakeRoom = "silent-make-room":
        "a full host evicts no client that was heard a moment ago while another one is silent",
    OneProcess = "one-process":
        "a device has one process at a time, and none is started during a shutdown",
    ProcessesEnd = "processes-end":
        "the shutdown ends within the announced time, whatever drivers do",
    TimersAdvance = "timers-advance":
        "a handled timeout is not due again at once",
    HungDriversEnd = "hung-drivers-end":
        "a driver that answered PINGs and then hangs is ended",
    DriversSettle = "drivers-settle":
        "once faults stop, every wanted driver is up or given up",
    QueuesEmpty = "queues-empty":
        "once faults stop, nothing is queued for a driver that reads",
    CallsEnd = "calls-end":
        "every call ends once, with a reply or an error, within its deadline",
    AnswersMatch = "answers-match":
        "a call gets the reply to its own request",
    SubscriptionsFlow = "subscriptions-flow":
        "once faults stop, every subscriber of a running device gets data",
    LeftIsSilent = "left-is-silent":
        "once faults stop, a client that unsubscribed gets no more data",
    InterruptionsTold = "interruptions-told":
        "a subscriber is notified at once when the mediator reports the death of the driver",
    DriversForget = "drivers-forget":
        "a driver with the SDK names no client that it has long known to be gone",
    NoPanic = "no-panic":
        "nothing panics",
}

impl fmt::Display for Invariant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A violated invariant.
#[derive(Clone, Debug)]
pub struct Broken {
    pub invariant: Invariant,
    /// The observation.
    pub what: String,
}

/// `Ok`, or a violated invariant.
pub type Check = Result<(), Broken>;

/// Checks a condition.
///
/// # Errors
/// The condition is false.
pub fn holds(invariant: Invariant, condition: bool, what: impl FnOnce() -> String) -> Check {
    if condition {
        return Ok(());
    }
    Err(broken(invariant, what()))
}

/// Reports a violated invariant.
pub fn broken(invariant: Invariant, what: impl Into<String>) -> Broken {
    Broken {
        invariant,
        what: what.into(),
    }
}
