//! Counting what goes through and, by kind, everything that is dropped. PURE.

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
        /// Datagrams that the socket took.
        DatagramsSent = "datagrams_sent",
        /// Frames that drivers wrote.
        DriverFrames = "driver_frames_received",
        /// Frames that were queued for drivers.
        DriverFramesQueued = "driver_frames_queued",
        /// Messages for the mediator itself.
        ForMediator = "messages_for_mediator",
        /// Clients that became known.
        ClientsSeen = "clients_seen",
        /// Clients that left, were lost or made room.
        ClientsGone = "clients_gone",
        /// Clients that made room for others, of those gone.
        ClientsEvicted = "clients_evicted",
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
    }
}

kinds! {
    /// Why something was dropped.
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
        /// A datagram from an address that cannot be answered (port 0).
        DatagramSource = "datagram_from_unanswerable_address",
        /// For a device that no driver serves.
        UnknownDevice = "unknown_device",
        /// For a device whose driver does not run.
        DriverDown = "driver_not_running",
        /// An unknown-device answer that was not sent because there were too many.
        AnswerRateLimited = "answer_rate_limited",
        /// A message for the mediator that makes no sense to it.
        MediatorMessage = "message_for_mediator_unreadable",
        /// A driver named a client that is not known.
        UnknownClient = "unknown_client",
        /// A driver's message of more than 32 767 bytes.
        DriverTooLong = "driver_message_over_32767",
        /// A driver answered in the name of a device that it does not serve.
        WrongDevice = "driver_named_wrong_device",
        /// A frame of a driver that is being stopped.
        DriverStopping = "driver_stopping",
        /// The oldest frames for a driver whose queue was full.
        QueueFull = "driver_queue_full",
        /// Frames that waited for a driver when it ended.
        DriverGone = "driver_gone_with_queue",
        /// A datagram that the socket did not take because its buffer was full.
        SendBufferFull = "send_buffer_full",
        /// A datagram that could not be sent.
        SendFailed = "send_failed",
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
