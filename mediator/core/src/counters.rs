//! Counters of all forwarded messages and, by reason, of all drops. PURE.
//!
//! Every loss is counted. At any time:
//!
//! 1. Everything that came in was forwarded, was for the mediator, or is a drop of
//!    [`Stage::Input`]: `datagrams_received + driver_frames_received = requests_passed_on +
//!    driver_frames_delivered + messages_for_mediator + drops`.
//! 2. A driver's frame has one copy for each client that it names. A copy goes to a client or a
//!    driver, or is a drop of [`Stage::Copy`]:
//!    `copies = copies_to_clients + copies_to_drivers + drops`.
//! 3. Everything queued for drivers was written completely, waits, or is a drop of
//!    [`Stage::Queue`]: `driver_frames_queued = driver_frames_written + waiting + drops`. The
//!    same holds for each driver.
//! 4. Everything to be sent to clients was accepted by the socket, or is a drop of
//!    [`Stage::Socket`]: `datagrams_to_send = datagrams_sent + drops`.
//!
//! [`Counters::check`] checks the first three, [`Counters::check_sent`] the last. Frames queued
//! for drivers are requests, copies, and messages of the mediator.

use amber_proto::frame::DatagramError;

macro_rules! kinds {
    ($(#[$doc:meta])* $name:ident {
        $($(#[doc = $help:literal])* $variant:ident = $text:literal,)*
    }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $($(#[doc = $help])* $variant,)* }

        impl $name {
            /// All kinds, in the order in which they are reported.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The name under which it is reported.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }

            /// Its meaning, in a sentence.
            pub fn help(self) -> &'static str {
                match self { $(Self::$variant => concat!($($help),*).trim_ascii(),)* }
            }
        }
    };
}

kinds! {
    /// Counters of forwarded messages.
    Count {
        /// Received datagrams, including malformed ones.
        Datagrams = "datagrams_received",
        /// Datagrams given to the sockets.
        DatagramsToSend = "datagrams_to_send",
        /// Datagrams accepted by the sockets.
        DatagramsSent = "datagrams_sent",
        /// Frames that drivers wrote.
        DriverFrames = "driver_frames_received",
        /// Messages of clients and drivers that were forwarded to a driver.
        Requests = "requests_passed_on",
        /// Frames of drivers that were forwarded to the clients that they name.
        Delivered = "driver_frames_delivered",
        /// Copies of those frames, one for each named client.
        Copies = "copies",
        /// Copies for clients.
        CopiesToClients = "copies_to_clients",
        /// Copies for drivers that had sent a request.
        CopiesToDrivers = "copies_to_drivers",
        /// Frames queued for drivers.
        DriverFramesQueued = "driver_frames_queued",
        /// Frames written to the pipes of drivers.
        DriverFramesWritten = "driver_frames_written",
        /// Messages for the mediator itself.
        ForMediator = "messages_for_mediator",
        /// Clients that became known.
        ClientsSeen = "clients_seen",
        /// Clients that left, were lost, were evicted or were forgotten.
        ClientsGone = "clients_gone",
        /// Evicted clients, among those gone.
        ClientsEvicted = "clients_evicted",
        /// Clients evicted because their host had too many, among the evicted.
        ClientsEvictedForHost = "clients_evicted_for_their_host",
        /// Clients evicted for a new client on this machine, among the evicted.
        ClientsEvictedForLocal = "clients_evicted_for_local_clients",
        /// Clients that were silent for long and held nothing, among those gone.
        ClientsForgotten = "clients_forgotten",
        /// Clients whose port was closed or that were unreachable, among those gone.
        ClientsUnreachable = "clients_unreachable",
        /// Network errors about addresses of clients.
        AddressErrors = "address_errors",
        /// Datagrams that were sent again, because the socket reported an error about another
        /// address.
        SendsRepeated = "sends_repeated",
        /// Drivers that were started.
        DriverStarts = "driver_starts",
        /// Drivers that ended unexpectedly.
        DriverDeaths = "driver_deaths",
        /// Drivers that were stopped because they did not read.
        DriversDeaf = "drivers_deaf",
        /// Drivers that reported themselves as unavailable.
        DriversSaidDead = "drivers_said_dead",
        /// Lines about drivers that the log no longer keeps.
        LogLinesForgotten = "log_lines_forgotten",
        /// Times that two peers seemed to answer each other endlessly.
        Loops = "loops_suspected",
    }
}

kinds! {
    /// Reasons for drops; see [`DropReason::stage`].
    DropReason {
        /// An empty datagram.
        DatagramEmpty = "datagram_empty",
        /// A datagram too short for two lengths.
        DatagramShort = "datagram_short",
        /// A datagram whose header length points past its end.
        DatagramHeaderLength = "datagram_header_length",
        /// A datagram whose message length points past its end.
        DatagramMessageLength = "datagram_message_length_too_long",
        /// A datagram with trailing bytes after its message.
        DatagramTrailing = "datagram_message_length_too_short",
        /// A datagram whose header is not a `DriverHdr`.
        DatagramHeader = "datagram_header_unreadable",
        /// A datagram with a message of more than 32 767 bytes.
        DatagramTooLong = "datagram_message_over_32767",
        /// A datagram from an address that cannot be answered: port 0, broadcast, multicast.
        DatagramSource = "datagram_from_unanswerable_address",
        /// A datagram with a forged source: an address of this machine that came from the
        /// network, or an IPv4 address inside an IPv6 one.
        DatagramForged = "datagram_with_forged_source",
        /// A datagram from this mediator itself, or a message to it from a port on which
        /// mediators listen: two mediators could answer each other endlessly.
        DatagramFromMediator = "datagram_from_mediator_port",
        /// A datagram of a client that sends too many.
        RateLimited = "datagram_rate_limited",
        /// A datagram denied by an access rule.
        AccessDenied = "access_denied",
        /// A CLIENT_DIED notification for a driver that does not know the client.
        NothingToTell = "client_died_unknown_to_driver",
        /// A message for a device that no driver serves.
        UnknownDevice = "unknown_device",
        /// A message for a device whose driver is not running.
        DriverDown = "driver_not_running",
        /// An unknown-device answer, because there were too many.
        AnswerRateLimited = "answer_rate_limited",
        /// A request to the mediator, because its sender makes too many.
        RequestRateLimited = "request_rate_limited",
        /// A message of the mediator to an unverified address, which would have received more
        /// bytes than it has sent.
        Unproved = "answer_to_unproved_address",
        /// An event about a lost client, because there were too many.
        EventRateLimited = "event_rate_limited",
        /// A message for the mediator that it cannot decode.
        MediatorMessage = "message_for_mediator_unreadable",
        /// A copy for an unknown client.
        UnknownClient = "unknown_client",
        /// A copy for a client that one frame names more often than a client subscribes to one
        /// device.
        DuplicateClient = "client_named_too_often",
        /// A copy for a client that has not proved its address, because its host has got as much as
        /// it may get without that.
        UnprovedStream = "stream_to_unproved_address",
        /// A driver's message of more than 32 767 bytes.
        DriverTooLong = "driver_message_over_32767",
        /// A driver frame that names a device it does not serve.
        WrongDevice = "driver_named_wrong_device",
        /// A frame of a driver that is being stopped.
        DriverStopping = "driver_stopping",
        /// The oldest frames for a driver whose queue was full.
        QueueFull = "driver_queue_full",
        /// Frames that waited for a driver when their client died.
        ClientGone = "client_gone_with_queue",
        /// Frames that waited for a driver when it ended.
        DriverGone = "driver_gone_with_queue",
        /// A datagram that the socket rejected because its buffer was full.
        SendBufferFull = "send_buffer_full",
        /// A datagram that could not be sent.
        SendFailed = "send_failed",
        /// Datagrams that the system dropped before the mediator received them, because the
        /// receive buffer was full or, rarely, because they were damaged.
        ReceiveBufferFull = "receive_buffer_full",
        /// Datagrams to several machines (broadcast, multicast), which the system drops for the
        /// mediator.
        DatagramToGroup = "datagram_to_several_machines",
        /// Frames that were not shown to a tracer because there were too many.
        TraceFrames = "trace_frames_not_shown",
        /// Lines of the mediator's log that were not written, because there were too many.
        LogLines = "log_lines",
        /// Lines on the stderr of drivers that were not logged, because there were too many.
        DriverStderrLines = "driver_stderr_lines",
        /// Health reports of drivers that caused no event: repetitions, or too many in a short
        /// time.
        HealthEvents = "driver_health_events",
        /// Reports of drivers about who moves a device that caused no event, because there were too
        /// many.
        MotionEvents = "driver_motion_events",
        /// Descriptions of devices that were too long.
        Description = "device_description_too_long",
    }
}

/// The stage of a drop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// On arrival, as a whole.
    Input,
    /// As one copy of a driver's frame.
    Copy,
    /// While it waited for a driver.
    Queue,
    /// On the way to a client.
    Socket,
    /// Elsewhere: a message for the mediator, a message that was never made, or a log line.
    Beside,
}

impl DropReason {
    /// The stage at which this kind of drop happens.
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
            Self::UnknownClient | Self::DuplicateClient | Self::UnprovedStream => Stage::Copy,
            Self::QueueFull | Self::ClientGone | Self::DriverGone => Stage::Queue,
            Self::SendBufferFull | Self::SendFailed => Stage::Socket,
            Self::AnswerRateLimited
            | Self::RequestRateLimited
            | Self::Unproved
            | Self::EventRateLimited
            | Self::MediatorMessage
            | Self::ReceiveBufferFull
            | Self::DatagramToGroup
            | Self::LogLines
            | Self::DriverStderrLines
            | Self::HealthEvents
            | Self::MotionEvents
            | Self::Description
            | Self::TraceFrames => Stage::Beside,
        }
    }
}

/// All counters.
#[derive(Clone, Debug)]
pub struct Counters {
    counts: [u64; Count::ALL.len()],
    drops: [u64; DropReason::ALL.len()],
}

impl Default for Counters {
    fn default() -> Self {
        Self {
            counts: [0; Count::ALL.len()],
            drops: [0; DropReason::ALL.len()],
        }
    }
}

impl Counters {
    /// Counts one.
    pub fn count(&mut self, what: Count) {
        self.count_many(what, 1);
    }

    /// Counts several.
    pub fn count_many(&mut self, what: Count, many: u64) {
        self.counts[what as usize] += many;
    }

    /// Counts one drop.
    pub fn drop(&mut self, why: DropReason) {
        self.drop_many(why, 1);
    }

    /// Counts several drops.
    pub fn drop_many(&mut self, why: DropReason, many: u64) {
        self.drops[why as usize] += many;
    }

    /// The value of a counter.
    pub fn counted(&self, what: Count) -> u64 {
        self.counts[what as usize]
    }

    /// The number of drops of this kind.
    pub fn dropped(&self, why: DropReason) -> u64 {
        self.drops[why as usize]
    }

    /// The number of drops at a stage.
    pub fn dropped_at(&self, stage: Stage) -> u64 {
        let here = DropReason::ALL.iter().filter(|why| why.stage() == stage);
        here.map(|why| self.dropped(*why)).sum()
    }

    /// Checks that everything is accounted for, while `waiting` frames wait for drivers; see
    /// the [module](self).
    ///
    /// # Errors
    /// The equation that does not hold.
    pub fn check(&self, waiting: u64) -> Result<(), String> {
        let counted = |counts: &[Count]| counts.iter().map(|count| self.counted(*count)).sum();
        equal(
            "input",
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
            "queued frames",
            self.counted(Count::DriverFramesQueued),
            self.counted(Count::DriverFramesWritten) + waiting + self.dropped_at(Stage::Queue),
        )
    }

    /// Checks that all datagrams to be sent are accounted for, while none waits.
    ///
    /// # Errors
    /// The equation that does not hold.
    pub fn check_sent(&self) -> Result<(), String> {
        let sent = self.counted(Count::DatagramsSent) + self.dropped_at(Stage::Socket);
        equal(
            "datagrams to send",
            self.counted(Count::DatagramsToSend),
            sent,
        )
    }
}

fn equal(what: &str, came: u64, went: u64) -> Result<(), String> {
    if came == went {
        return Ok(());
    }
    Err(format!("{what}: {came}, but {went} accounted for"))
}

impl From<DatagramError> for DropReason {
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
