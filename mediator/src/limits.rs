//! Every maximum and every time of the mediator, each with its reason.
//!
//! The defaults fit a Raspberry Pi. What a user may want to change can be set
//! in the configuration and starts from here.

use std::time::Duration;

/// Clients known at once. An entry takes less than 200 bytes, so this is less
/// than a megabyte.
pub const CLIENTS: usize = 4096;

/// Clients of one host known at once: more than there are programs on any machine
/// or behind any gateway, and so few that no machine takes more than a quarter
/// of the table. This one counts like any other: a program that opens a port for
/// each request runs here more often than elsewhere.
pub const CLIENTS_PER_HOST: usize = 1024;

/// An address that has not proved itself is a newcomer, and makes room before
/// all others, until it has been heard for so long. Addresses that somebody
/// makes up by the thousand replace each other much faster.
pub const NEWCOMER: Duration = Duration::from_secs(10);

/// Datagrams that one client may send in a second, and at once; programs on
/// this machine are not limited, because they share it anyway. A joystick sends
/// fifty, a gateway that asks twenty devices a thousand times a second this
/// many, and a Raspberry Pi takes some hundred thousand.
pub const DATAGRAMS_PER_SECOND: u32 = 20_000;

/// Datagrams in a second from a port on which mediators listen. The original C# client sends
/// from there, some dozen a second. Two mediators whose drivers answer each other's answers
/// exceed it at once, and the loop ends with the first datagram that is dropped.
pub const MEDIATOR_PORT_DATAGRAMS_PER_SECOND: u32 = 200;

/// Requests to the mediator itself that one client, or driver, may make in a
/// second; all clients of another machine together may make as many. Lists are long; a
/// program that watches asks once a second.
pub const REQUESTS_PER_SECOND: u32 = 200;

/// How old a list may be that is sent to a program on another machine. Within this time all
/// of them get the same one, so that making lists takes a bounded part of the time, however
/// many ask. People do not see the difference.
pub const LIST_AGE: Duration = Duration::from_millis(100);

/// Parts of lists that are kept for that long: as many as a list of all clients has, and a
/// few more.
pub const LIST_PARTS: usize = 32;

/// Requests that wait until those who made them have proved that they are where
/// they say. The answer to a PING takes milliseconds.
pub const UNPROVED_REQUESTS: usize = 64;

/// The longest of those, in bytes; real ones have about ten.
pub const UNPROVED_REQUEST_BYTES: usize = 256;

/// News of clients that are gone, for those who listen to events, in a second.
pub const CLIENT_EVENTS_PER_SECOND: u32 = 100;

/// So many requests to one device by one client or driver, of which most
/// brought something back, are looked at as a whole ...
pub const LOOP_FRAMES: u16 = 20_000;

/// ... and when they came at so many a second, the two seem to answer each
/// other without end. Nobody steers or looks at anything that often.
pub const LOOP_RATE: u64 = 2_000;

/// How often such a pair is named in the log.
pub const LOOP_NEWS: Duration = Duration::from_secs(60);

/// Frames that wait for one driver, beyond what it gets ahead.
pub const QUEUE_FRAMES: usize = 1024;

/// Bytes that wait for one driver, beyond what it gets ahead: as much as a few
/// pipes of 64 KiB, or a hundred of the longest usual messages.
pub const QUEUE_BYTES: usize = 512 * 1024;

/// Life-cycle frames that wait for one driver before it counts as hung. They
/// are never dropped, but few: one for each client that it knows, and PINGs. It
/// is never less than twice the clients that may be known.
pub const LIFE_CYCLE_FRAMES: usize = 16_384;

/// Bytes offered to a driver's pipe in one system call: what a pipe holds.
pub const WRITE_BYTES: usize = 64 * 1024;

/// The same while frames wait for a pipe that is full now and then. What it does
/// not take is set aside again, so this is less than it may take.
pub const REFILL_BYTES: usize = 16 * 1024;

/// Frames of so many bytes that have waited for a driver are written from where they wait.
/// For a shorter one, a copy costs less than a piece of its own in the system call. Tests
/// have short messages and need both kinds.
pub const LONG_WAITING_FRAME: usize = if cfg!(test) { 12 } else { 1024 };

/// Pieces of one write to a driver: long frames, and short ones before, between and behind
/// them. A batch may exceed [`WRITE_BYTES`] by one frame.
pub const WRITE_PIECES: usize = 2 * (WRITE_BYTES / LONG_WAITING_FRAME + 1) + 1;

/// A driver that answers gets as much ahead as it takes in this time: newcomers
/// wait so long at most, and it is some times what passes between an answer and the
/// next frame.
pub const AHEAD: Duration = Duration::from_micros(100);

/// The same of a driver that does not say when it wants more: what it takes until
/// it is looked at again.
pub const AHEAD_SILENT: Duration = Duration::from_millis(2);

/// The most that any driver gets ahead, in bytes: what a pipe holds.
pub const AHEAD_BYTES: usize = 64 * 1024;

/// What a driver gets ahead before it is known how fast it reads, in bytes: about ten
/// short commands. A driver that takes 10 ms for each hears of the death of their client
/// after a tenth of a second.
pub const AHEAD_BYTES_FIRST: usize = 256;

/// What a driver may have ahead in any case that takes it in three times [`AHEAD`], in
/// bytes: its pipe is looked at once for dozens of short requests.
pub const AHEAD_BYTES_FAST: usize = 4096;

/// The time until a pipe is looked at again, which doubles while nothing comes of it;
/// timers are no finer.
pub const AHEAD_LOOK: Duration = Duration::from_millis(1);

/// The longest time between two looks at the pipe of a driver that neither
/// reads nor says anything.
pub const AHEAD_LOOK_MAX: Duration = Duration::from_millis(100);

/// The shortest time between two looks which addresses this machine has. Asking the system
/// takes some tens of microseconds.
pub const OWN_ADDRESSES_AGE: Duration = Duration::from_secs(5);

/// Sockets that send to hosts on the network, for each address that the mediator listens
/// on. Each host in use has one for itself, so that a slow or unreachable host costs the
/// others nothing: more than there are machines around one robot. Beyond that, hosts
/// share.
pub const HOST_LANES: usize = 16;

/// A host keeps its sending socket while it has been sent something within this time:
/// longer than the system keeps datagrams for an address that does not answer (3 s).
pub const LANE_IDLE: Duration = Duration::from_secs(5);

/// A sending socket whose buffer was full is not given to another host for so long.
pub const LANE_FULL: Duration = Duration::from_secs(3);

/// The shortest time between two looks which addresses on the network have a host behind
/// them. A look takes some tens of microseconds, and is taken only while something is sent
/// to the network.
pub const NEIGHBOURS_AGE: Duration = Duration::from_millis(250);

/// The same when something is to be sent to an address behind which no host is known. The
/// system finds a new host in about a millisecond, and we know it so late at most.
pub const NEWCOMERS_AGE: Duration = Duration::from_millis(20);

/// The send buffer, in bytes, that all addresses share behind which there may be no host: a
/// few answers to each of some dozen newcomers.
pub const DOUBTFUL_BUFFER_BYTES: usize = 128 * 1024;

/// Copies of one frame for clients that its header has named before. Old drivers name a
/// client once for each time that it has subscribed, which is hardly ever more than twice.
pub const REPEATED_COPIES: usize = 64;

/// Datagrams for one client that the system is given as one, to cut apart
/// itself: what every Linux that can do so takes.
pub const SEGMENTS: usize = 64;

/// The longest of those: what fits into a packet on any link, as it may not be
/// cut again.
pub const SEGMENT_BYTES: usize = 1232;

/// The same for a program on this machine, to which packets are larger.
pub const LOCAL_SEGMENT_BYTES: usize = 32 * 1024;

/// All of them together, in bytes: what one UDP packet holds.
pub const RUN_BYTES: usize = 65_507;

/// Sources that the system names in one turn as ready; the others come in the next.
pub const EVENTS_PER_TURN: usize = 256;

/// Datagrams taken from a socket before others have their turn.
pub const DATAGRAMS_PER_TURN: usize = 64;

/// A socket from which so many datagrams were taken in one turn is looked at in the
/// next without waiting to be told.
pub const BUSY_DATAGRAMS: usize = 16;

/// The shortest time between two looks whether the system has dropped datagrams before
/// we could take them.
pub const LOST_LOOK: Duration = Duration::from_millis(100);

/// How long the frames of one driver are worked on before others have their turn. A
/// hundred frames or more, and a fraction of what a request and its answer take.
pub const DRIVER_TURN: Duration = Duration::from_micros(200);

/// Datagrams that the frames of one driver may cause before others have their turn: some
/// tenths of a millisecond. One frame is never divided.
pub const DRIVER_TURN_DATAGRAMS: usize = 256;

/// Frames that are worked on between two looks at the clock.
pub const FRAMES_PER_LOOK: usize = 16;

/// Frames in one turn of which none leads to anything, before a driver is slowed down. A
/// driver that works may send some to clients that have just left.
pub const JUNK_FRAMES: usize = 64;

/// A driver whose frames lead to nothing is not read for so many times as long as its last
/// turn took. So it costs the others 3 % of their time.
pub const JUNK_PAUSE: u32 = 31;

/// Bytes read from a driver before others have their turn: what a pipe holds.
pub const READ_BYTES: usize = 64 * 1024;

/// How often one datagram is offered to a socket whose calls fail, usually on
/// account of other addresses. Each failure takes one such error away; more
/// than two in a row are about this address itself.
pub const SEND_TRIES: u32 = 3;

/// An address that can only not be reached for the moment, such as a laptop that
/// changes from one access point to the next, counts as lost when that
/// goes on for so long, and nothing comes from it.
pub const UNREACHABLE: Duration = Duration::from_secs(10);

/// What we ask the system to hold for us while we are busy. A receive buffer
/// of 32 KiB was the cause of all losses of the original mediator.
pub const SOCKET_BUFFER_BYTES: usize = 4 * 1024 * 1024;

/// Unknown-device answers to one client in a second; a program that is so far
/// off does not need more to notice.
pub const REFUSALS_PER_SECOND: u32 = 200;

/// Lines of one driver's stderr that are logged in a second.
pub const STDERR_LINES_PER_SECOND: u32 = 100;

/// Bytes read from a driver's stderr before others have their turn.
pub const WORDS_READ_BYTES: usize = 4096;

/// The longest line of stderr, in bytes; the rest becomes the next line.
pub const STDERR_LINE_BYTES: usize = 4096;

/// The last lines of stderr that are kept, for `amber status`.
pub const LAST_WORDS: usize = 20;

/// Lines that are logged in a second, in all: what a slow memory card takes.
pub const LOG_LINES_PER_SECOND: u32 = 1000;

/// The longest log filter, in bytes: a name for each part of it.
pub const LOG_FILTER_BYTES: usize = 512;

/// Parts of a log filter: more than there are targets that anybody tells apart.
pub const LOG_FILTER_PARTS: usize = 16;

/// Lines of our own log that may wait for a slow terminal or disk.
pub const LOG_QUEUE_LINES: usize = 1024;

/// An incomplete frame on a driver's stdout that does not grow for so long is
/// taken for noise. The original waited 100 ms and lost frames of slow drivers.
pub const PARTIAL_FRAME: Duration = Duration::from_secs(5);

/// A client is PINGed after being silent for so long; one that is not known to
/// answer, so often.
pub const CLIENT_PING_INTERVAL: Duration = Duration::from_secs(1);

/// PINGs to a client that may stay unanswered before it counts as lost; and
/// the PINGs that one that never answered gets at all.
pub const CLIENT_PINGS: u8 = 3;

/// A driver is PINGed so often. Ten idle drivers cause four wake-ups a second.
pub const DRIVER_PING_INTERVAL: Duration = Duration::from_secs(5);

/// PINGs that a driver may leave unanswered, while it says nothing else
/// either, before it counts as hung; and the PINGs that one that never answered
/// gets at all.
pub const DRIVER_PINGS: u8 = 3;

/// PINGs that a driver may leave unanswered while it sends other frames. Its
/// input may be full of requests that take long, which come before our PING.
pub const DRIVER_PINGS_BUSY: u8 = 12;

/// A driver that has lived for so long works, even if it says nothing.
pub const SETTLED: Duration = Duration::from_secs(1);

/// A driver that has worked for so long has earned a short first backoff again.
pub const USEFUL: Duration = Duration::from_secs(10);

/// The first and the longest wait before a driver is started again.
pub const BACKOFF_MIN: Duration = Duration::from_millis(100);
/// See [`BACKOFF_MIN`].
pub const BACKOFF_MAX: Duration = Duration::from_secs(10);

/// So many deaths within [`DEATHS_WINDOW`], and a driver is given up.
pub const DEATHS: usize = 10;
/// See [`DEATHS`].
pub const DEATHS_WINDOW: Duration = Duration::from_secs(60);

/// The wait between closing stdin, SIGTERM and SIGKILL.
pub const GRACE: Duration = Duration::from_secs(1);

/// The shortest time between two SIGKILLs for one driver. A process needs a moment to end,
/// and one that hangs in the system may need longer.
pub const KILL_AGAIN: Duration = Duration::from_millis(100);

/// Between SIGKILL and the end of a driver, its last words included, when
/// the mediator ends. Only a process that hangs in the system itself takes longer.
pub const AFTER_KILL: Duration = Duration::from_secs(3);

/// The longest configuration, in bytes: thousands of drivers.
pub const CONFIG_BYTES: u64 = 1024 * 1024;

/// Addresses that the mediator listens on: more than a machine has networks. Each costs
/// some twenty sockets, and a datagram's way in is numbered with eight bits.
pub const LISTEN_ADDRESSES: usize = 16;

/// The time for starting drivers at once, one at least. One takes 1.3 ms, at worst 6, during
/// which nobody else is served.
pub const STARTS_AT_ONCE: Duration = Duration::from_millis(2);

/// The pause before more drivers are started: others have two thirds of the time, and what
/// was started has some to get going.
pub const STARTS_PAUSE: Duration = Duration::from_millis(4);

/// Processes outside its process group that a signal for a driver reaches: more than
/// any driver has, and looked at within milliseconds. What is left has its turn
/// when the driver has ended.
pub const FAMILY_PROCESSES: usize = 256;

/// Orphans of drivers that are looked at, or ended, in one turn: each costs some ten
/// microseconds.
pub const ORPHANS_PER_TURN: usize = 64;

/// Reloads that wait for one that is slow, say because its file lies on a
/// network drive.
pub const RELOADS: usize = 16;

/// The service manager hears of us so often, unless its watchdog wants more.
pub const SERVICE_TICK: Duration = Duration::from_secs(10);

/// The service manager never hears of us more often than this, whatever its
/// watchdog wants.
pub const SERVICE_TICK_MIN: Duration = Duration::from_millis(10);

/// The shortest time between two changes of what the service manager shows.
pub const SERVICE_STATUS_PAUSE: Duration = Duration::from_secs(1);

/// The list in one answer, in bytes: old receivers have 16 384 for all of it.
pub const LIST_BYTES: usize = 12_000;

/// The words of a command in an answer, in bytes: what [`LAST_WORDS`] of
/// [`TEXT_BYTES`] each leave of 16 384.
pub const COMMAND_BYTES: usize = 4_000;

/// The longest text in an answer, in bytes, such as a reason or a word of a command.
pub const TEXT_BYTES: usize = 400;

/// Events about the health of one device that may follow each other at once:
/// a device that comes and goes a few times while somebody wiggles at a plug.
pub const HEALTH_EVENTS: u32 = 10;

/// One more event about the health of a device is allowed so often, in the long run.
pub const HEALTH_EVENT_INTERVAL: Duration = Duration::from_secs(6);

/// Devices of one driver whose trouble is told in an answer: what the rest of
/// it leaves of 16 384 bytes.
pub const TROUBLES: usize = 10;

/// Clients that may trace drivers at once: people who look, not programs.
pub const TRACERS: usize = 16;

/// Frames that wait to be shown to tracers, until the turn ends.
pub const TRACE_WAITING: usize = 256;

/// Frames that one tracer is shown in a second: more than people can read, and
/// little beside what the mediator passes on.
pub const TRACE_FRAMES_PER_SECOND: u32 = 1000;

/// The longest part of a message that a tracer is shown, in bytes: old
/// receivers have 16 384 for all of it.
pub const TRACE_BYTES: usize = 12_000;
