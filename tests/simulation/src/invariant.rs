//! What always holds, by name. PURE.

use std::fmt;

macro_rules! invariants {
    ($($(#[$doc:meta])* $variant:ident = $name:literal: $text:literal,)*) => {
        /// A promise.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Invariant { $(#[doc = $text] $variant,)* }

        impl Invariant {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// Under which it is reported, and stands in docs/reliability.md.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// In words.
            pub fn text(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }
        }
    };
}

invariants! {
    RepliesReachTheNamed = "replies-reach-the-named":
        "a driver's frame goes to exactly the clients that it names, in order, and to nobody else",
    BytesUntouched = "bytes-untouched":
        "messages arrive bit for bit as they were sent, under the id of who sent them",
    FramesWhole = "frames-whole":
        "what a driver reads are whole frames, from beginning to end",
    InOrderAndOnce = "in-order-and-once":
        "of one client, frames reach a driver in the order in which they came, each once at most",
    ObituaryOnce = "obituary-once":
        "a driver hears of the end of a client once, and only if it has read something of that client",
    ObituaryTold = "obituary-told":
        "a driver that has read all that waits knows of no client that is gone or may not use it",
    NothingAfterObituary = "nothing-after-obituary":
        "nothing that a client said before its end comes after the news of it",
    DriverDeathTold = "driver-death-told":
        "when a driver cannot be used any more, each announced client that it has heard of is told",
    DriverDeathOnce = "driver-death-once":
        "nobody is told twice of one death, or of that of a driver which it has not asked",
    GoodbyeForgets = "goodbye-forgets":
        "a client that says good-bye, whose port is closed, or that is silent, is forgotten",
    IdsUnique = "ids-unique":
        "no two have the same id, and nobody's id changes while it is known",
    IdNotReused = "id-not-reused":
        "no id is given away while a driver knows it as somebody else's",
    NothingToStrangers = "nothing-to-strangers":
        "nothing is sent to an address that has never spoken",
    OldClientsSeeDriversOnly = "old-clients-see-drivers-only":
        "the mediator itself speaks to nobody who has not spoken to it",
    NoAmplification = "no-amplification":
        "an unproved address gets no more bytes of the mediator's own than came from it",
    PingAnswered = "ping-answered":
        "a PING of somebody who is where he says is answered by one PONG",
    RefusalTold = "refusal-told":
        "whoever is announced and asks what cannot be used hears so once, or a counter says why not",
    AccessHolds = "access-holds":
        "nothing passes that no rule allows, and only programs of this machine change things",
    AllAccountedFor = "all-accounted-for":
        "frames in = frames out + waiting + dropped by cause, and the counters say what was on the wires",
    BoundsHold = "bounds-hold":
        "clients known and frames and bytes that wait stay within their limits",
    HostHarmsItself = "host-harms-itself":
        "a host that has as many clients as it may have displaces only its own",
    OneProcess = "one-process":
        "a device has one process at a time, and none is started while everything stops",
    ProcessesEnd = "processes-end":
        "the mediator's end takes no longer than it says, whatever drivers do",
    TimersAdvance = "timers-advance":
        "a timeout that was handled is not due again at once",
    HungDriversEnd = "hung-drivers-end":
        "a driver that used to answer PINGs and hangs does not stay",
    DriversSettle = "drivers-settle":
        "when trouble stops, every driver that is wanted is up or given up",
    QueuesEmpty = "queues-empty":
        "when trouble stops, nothing waits for a driver that reads",
    CallsEnd = "calls-end":
        "every call ends by an answer or an error, once, within its time",
    AnswersMatch = "answers-match":
        "a call gets the answer to its own request",
    SubscriptionsFlow = "subscriptions-flow":
        "when trouble stops, whoever subscribes to a device that is up gets data",
    LeftIsSilent = "left-is-silent":
        "whoever subscribes no more gets no more data, once trouble stops",
    InterruptionsTold = "interruptions-told":
        "whoever gets data hears at once when the mediator says that the driver died",
    DriversForget = "drivers-forget":
        "a driver with the SDK names no client of whose end it has heard long ago",
    NoPanic = "no-panic":
        "nothing panics",
}

impl fmt::Display for Invariant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A promise that does not hold.
#[derive(Clone, Debug)]
pub struct Broken {
    /// Which one.
    pub invariant: Invariant,
    /// What was seen.
    pub what: String,
}

/// Everything holds, or something does not.
pub type Check = Result<(), Broken>;

/// Checks a condition.
///
/// # Errors
/// It does not hold.
pub fn holds(invariant: Invariant, condition: bool, what: impl FnOnce() -> String) -> Check {
    if condition {
        return Ok(());
    }
    Err(broken(invariant, what()))
}

/// A promise that is broken.
pub fn broken(invariant: Invariant, what: impl Into<String>) -> Broken {
    Broken {
        invariant,
        what: what.into(),
    }
}
