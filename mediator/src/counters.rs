//! Counting what goes through and, by kind, everything that is dropped. PURE.
//!
//! Nothing is lost unseen. At any time, whatever has happened:
//!
//! 1. What came in was passed on, was for the mediator, or is a drop of the
//!    [`Stage::Input`]: `datagrams_received + driver_frames_received =
//!    requests_passed_on + driver_frames_delivered + messages_for_mediator + drops`.
//! 2. A driver's frame has one copy for each client that it names, which goes to
//!    a client, goes to a driver, or is a drop of the [`Stage::Copy`]:
//!    `copies = copies_to_clients + copies_to_drivers + drops`.
//! 3. What was queued for drivers was written whole, waits, or is a drop of the
//!    [`Stage::Queue`]: `driver_frames_queued = driver_frames_written + waiting +
//!    drops`. The same holds for each driver by itself.
//! 4. What was to be sent to clients was taken by the socket, or is a drop of the
//!    [`Stage::Socket`]: `datagrams_to_send = datagrams_sent + drops`.
//!
//! [`Counters::check`] checks the first three, [`Counters::check_sent`] the last.
//! What was queued for drivers is a request, a copy, or the mediator's own.

use amber_proto::frame::DatagramError;

macro_rules! kinds {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $($(#[$variant_doc])* $variant,)* }

        impl $name {
            /// All kinds, in the order in which they are shown.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The name under which it is reported.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }
        }
    };
}

kinds! {
    /// What went through.
    Count {
        /// Datagrams that came in, malformed ones included.
        Datagrams = "datagrams_received",
        /// Datagrams that were handed to the sockets.
        DatagramsToSend = "datagrams_to_send",
        /// Datagrams that the socket took.
        DatagramsSent = "datagrams_sent",
        /// Frames that drivers wrote.
        DriverFrames = "driver_frames_received",
        /// Messages of clients and drivers that were passed on to a driver.
        Requests = "requests_passed_on",
        /// Frames of drivers that were passed on to the clients that they name.
        Delivered = "driver_frames_delivered",
        /// Copies of those, one for each client that is named.
        Copies = "copies",
        /// Copies for clients.
        CopiesToClients = "copies_to_clients",
        /// Copies for drivers that had asked something.
        CopiesToDrivers = "copies_to_drivers",
        /// Frames that were queued for drivers.
        DriverFramesQueued = "driver_frames_queued",
        /// Frames that drivers' pipes have taken.
        DriverFramesWritten = "driver_frames_written",
        /// Messages for the mediator itself.
        ForMediator = "messages_for_mediator",
        /// Clients that became known.
        ClientsSeen = "clients_seen",
        /// Clients that left, were lost or made room.
        ClientsGone = "clients_gone",
        /// Clients that made room for others, of those gone.
        ClientsEvicted = "clients_evicted",
        /// Clients that made room for others of their host, of those.
        ClientsEvictedForHost = "clients_evicted_for_their_host",
        /// Clients whose address refused or could not be reached, of those gone.
        ClientsUnreachable = "clients_unreachable",
        /// What the network said of addresses of clients: refused, unreachable.
        AddressErrors = "address_errors",
        /// Datagrams that were sent again because the socket reported an error of
        /// another address.
        SendsRepeated = "sends_repeated",
        /// Drivers that were started.
        DriverStarts = "driver_starts",
        /// Drivers that ended without being asked to.
        DriverDeaths = "driver_deaths",
        /// Drivers that were ended because they did not read.
        DriversDeaf = "drivers_deaf",
        /// Drivers that said of themselves that they cannot be used.
        DriversSaidDead = "drivers_said_dead",
        /// Times that two seemed to answer each other without end.
        Loops = "loops_suspected",
    }
}

kinds! {
    /// Why something was dropped; see [`Drop::stage`].
    Drop {
        /// A datagram of no bytes.
        DatagramEmpty = "datagram_empty",
        /// A datagram too short for two lengths.
        DatagramShort = "datagram_short",
        /// A datagram whose header length points past its end.
        DatagramHeaderLength = "datagram_header_length",
        /// A datagram whose message length points past its end.
        DatagramMessageLength = "datagram_message_length_too_long",
        /// A datagram with bytes behind its message.
        DatagramTrailing = "datagram_message_length_too_short",
        /// A datagram whose header is no `DriverHdr`.
        DatagramHeader = "datagram_header_unreadable",
        /// A datagram with a message of more than 32 767 bytes.
        DatagramTooLong = "datagram_message_over_32767",
        /// A datagram from an address that cannot be answered: port 0,
        /// broadcast, multicast.
        DatagramSource = "datagram_from_unanswerable_address",
        /// A datagram whose source address cannot be true: one of this machine, and it
        /// came from the network, or an IPv4 address inside an IPv6 one.
        DatagramForged = "datagram_with_forged_source",
        /// A datagram from this mediator itself, or one for it from a port on which mediators
        /// listen: two of them could answer each other without end.
        DatagramFromMediator = "datagram_from_mediator_port",
        /// A datagram of a client that sends too many.
        RateLimited = "datagram_rate_limited",
        /// A datagram that no access rule allows.
        AccessDenied = "access_denied",
        /// The news that a client died, for a driver that does not know it.
        NothingToTell = "client_died_unknown_to_driver",
        /// For a device that no driver serves.
        UnknownDevice = "unknown_device",
        /// For a device whose driver does not run.
        DriverDown = "driver_not_running",
        /// An unknown-device answer that was not sent because there were too many.
        AnswerRateLimited = "answer_rate_limited",
        /// A request to the mediator by somebody who makes too many.
        RequestRateLimited = "request_rate_limited",
        /// What the mediator did not say to an address that may be made up:
        /// it would have been more than came from there.
        Unproved = "answer_to_unproved_address",
        /// News of a client that is gone, when there were too many.
        EventRateLimited = "event_rate_limited",
        /// A message for the mediator that makes no sense to it.
        MediatorMessage = "message_for_mediator_unreadable",
        /// A driver named a client that is not known.
        UnknownClient = "unknown_client",
        /// A driver named one client more often in one frame than a client subscribes
        /// to one device.
        DuplicateClient = "client_named_too_often",
        /// A driver's message of more than 32 767 bytes.
        DriverTooLong = "driver_message_over_32767",
        /// A driver answered in the name of a device that it does not serve.
        WrongDevice = "driver_named_wrong_device",
        /// A frame of a driver that is being stopped.
        DriverStopping = "driver_stopping",
        /// The oldest frames for a driver whose queue was full.
        QueueFull = "driver_queue_full",
        /// Frames that waited for a driver when their client died.
        ClientGone = "client_gone_with_queue",
        /// Frames that waited for a driver when it ended.
        DriverGone = "driver_gone_with_queue",
        /// A datagram that the socket did not take because its buffer was full.
        SendBufferFull = "send_buffer_full",
        /// A datagram that could not be sent.
        SendFailed = "send_failed",
        /// Datagrams that the system has dropped before the mediator saw them,
        /// because the receive buffer of the socket was full, or, of few, because
        /// they were damaged.
        ReceiveBufferFull = "receive_buffer_full",
        /// Frames that a tracer was not shown because there were too many.
        TraceFrames = "trace_frames_not_shown",
        /// Lines of our log that nobody read in time.
        LogLines = "log_lines",
        /// Lines that drivers wrote to stderr faster than is logged.
        DriverStderrLines = "driver_stderr_lines",
        /// What a driver said about the health of a device that made no event:
        /// the same once more, or too much in a short time.
        HealthEvents = "driver_health_events",
    }
}

/// Where something was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// When it came in, whole.
    Input,
    /// One copy of a driver's frame.
    Copy,
    /// While it waited for a driver.
    Queue,
    /// On its way to a client.
    Socket,
    /// It is none of these: it was for the mediator, never came that far, was
    /// never made, or is a line of the log.
    Beside,
}

impl Drop {
    /// Where that happens.
    pub fn stage(self) -> Stage {
        match self {
            Self::DatagramEmpty
            | Self::DatagramShort
            | Self::DatagramHeaderLength
            | Self::DatagramMessageLength
            | Self::DatagramTrailing
            | Self::DatagramHeader
            | Self::DatagramTooLong
            | Self::DatagramSource
            | Self::DatagramForged
            | Self::DatagramFromMediator
            | Self::RateLimited
            | Self::AccessDenied
            | Self::NothingToTell
            | Self::UnknownDevice
            | Self::DriverDown
            | Self::DriverTooLong
            | Self::WrongDevice
            | Self::DriverStopping => Stage::Input,
            Self::UnknownClient | Self::DuplicateClient => Stage::Copy,
            Self::QueueFull | Self::ClientGone | Self::DriverGone => Stage::Queue,
            Self::SendBufferFull | Self::SendFailed => Stage::Socket,
            Self::AnswerRateLimited
            | Self::RequestRateLimited
            | Self::Unproved
            | Self::EventRateLimited
            | Self::MediatorMessage
            | Self::ReceiveBufferFull
            | Self::LogLines
            | Self::DriverStderrLines
            | Self::HealthEvents
            | Self::TraceFrames => Stage::Beside,
        }
    }
}

/// All counters.
#[derive(Clone, Debug)]
pub struct Counters {
    counts: [u64; Count::ALL.len()],
    drops: [u64; Drop::ALL.len()],
}

impl Default for Counters {
    fn default() -> Self {
        Self {
            counts: [0; Count::ALL.len()],
            drops: [0; Drop::ALL.len()],
        }
    }
}

impl Counters {
    /// Counts one thing that went through.
    pub fn count(&mut self, what: Count) {
        self.count_many(what, 1);
    }

    /// Counts many.
    pub fn count_many(&mut self, what: Count, many: u64) {
        self.counts[what as usize] += many;
    }

    /// Counts one thing that was dropped.
    pub fn drop(&mut self, why: Drop) {
        self.drop_many(why, 1);
    }

    /// Counts many things that were dropped.
    pub fn drop_many(&mut self, why: Drop, many: u64) {
        self.drops[why as usize] += many;
    }

    /// How many went through.
    pub fn counted(&self, what: Count) -> u64 {
        self.counts[what as usize]
    }

    /// How many were dropped.
    pub fn dropped(&self, why: Drop) -> u64 {
        self.drops[why as usize]
    }

    /// How many were dropped at a stage.
    pub fn dropped_at(&self, stage: Stage) -> u64 {
        let here = Drop::ALL.iter().filter(|why| why.stage() == stage);
        here.map(|why| self.dropped(*why)).sum()
    }

    /// Whether everything is accounted for, when so many frames wait for
    /// drivers; see the [module](self).
    ///
    /// # Errors
    /// What does not add up.
    pub fn check(&self, waiting: u64) -> Result<(), String> {
        let counted = |counts: &[Count]| counts.iter().map(|count| self.counted(*count)).sum();
        equal(
            "what came in",
            counted(&[Count::Datagrams, Count::DriverFrames]),
            counted(&[Count::Requests, Count::Delivered, Count::ForMediator])
                + self.dropped_at(Stage::Input),
        )?;
        equal(
            "copies",
            self.counted(Count::Copies),
            counted(&[Count::CopiesToClients, Count::CopiesToDrivers])
                + self.dropped_at(Stage::Copy),
        )?;
        equal(
            "what was queued",
            self.counted(Count::DriverFramesQueued),
            self.counted(Count::DriverFramesWritten) + waiting + self.dropped_at(Stage::Queue),
        )
    }

    /// Whether all datagrams that were to be sent are accounted for, when none
    /// waits.
    ///
    /// # Errors
    /// What does not add up.
    pub fn check_sent(&self) -> Result<(), String> {
        let sent = self.counted(Count::DatagramsSent) + self.dropped_at(Stage::Socket);
        equal(
            "what was to be sent",
            self.counted(Count::DatagramsToSend),
            sent,
        )
    }
}

fn equal(what: &str, came: u64, went: u64) -> Result<(), String> {
    if came == went {
        return Ok(());
    }
    Err(format!("{what}: {came}, but {went} are accounted for"))
}

impl From<DatagramError> for Drop {
    fn from(error: DatagramError) -> Self {
        match error {
            DatagramError::Empty => Self::DatagramEmpty,
            DatagramError::Short => Self::DatagramShort,
            DatagramError::HeaderLength => Self::DatagramHeaderLength,
            DatagramError::MessageLength => Self::DatagramMessageLength,
            DatagramError::Trailing => Self::DatagramTrailing,
        }
    }
}
