//! Every maximum and every time of the mediator, each with its reason.
//!
//! The defaults fit a Raspberry Pi. Values that users may want to change can be set in the
//! configuration; these are their defaults.

use std::time::Duration;

/// Maximum number of known clients. An entry takes less than 200 bytes, so this is below 1 MB.
pub const CLIENTS: usize = 4096;

/// Maximum number of known clients of one host. This is more than there are programs on any
/// machine or behind any gateway, but no host takes more than a quarter of the table. It also
/// applies to this machine: programs that open a port for each request are most common here.
pub const CLIENTS_PER_HOST: usize = 1024;

/// An unverified address is a newcomer for this long, and is evicted before all others.
/// Forged addresses replace each other much faster.
pub const NEWCOMER: Duration = Duration::from_secs(10);

/// A client is silent if nothing came from it for this long. It may be evicted for a new client
/// of its host although its address is genuine. This is longer than a client needs to answer
/// the PINGs of the mediator, and longer than a burst of new clients.
pub const SILENT: Duration = Duration::from_secs(5);

/// A client that is silent for this long and holds nothing is forgotten. A person may come back
/// to a program after a night; a robot that runs for weeks never reaches the limit of a host.
pub const FORGET: Duration = Duration::from_secs(12 * 3600);

/// Datagrams that one client may send per second, and at once. Programs on this machine are not
/// limited, because they share it anyway. A joystick sends fifty, a gateway that sends requests
/// to twenty devices a thousand times a second this many, and a Raspberry Pi can handle some
/// hundred thousand.
pub const DATAGRAMS_PER_SECOND: u32 = 20_000;

/// Datagrams per second from a port on which mediators listen. The original C# client sends
/// from such a port, some dozen a second. Two mediators whose drivers answer each other's
/// answers exceed it immediately, and the first dropped datagram ends the loop.
pub const MEDIATOR_PORT_DATAGRAMS_PER_SECOND: u32 = 200;

/// Requests to the mediator itself per second, for one local client or driver, or for all
/// clients of another machine together. Lists are long; a monitoring program asks once a
/// second.
pub const REQUESTS_PER_SECOND: u32 = 200;

/// Maximum age of a list that is sent to programs on other machines. They all get the same list
/// in this time, so making lists takes a bounded part of the time for any number of requests.
/// People do not notice the difference.
pub const LIST_AGE: Duration = Duration::from_millis(100);

/// Processes in one answer: reading their CPU time takes 20 µs each and blocks everything else.
pub const PROCESSES_PER_ANSWER: usize = 32;

/// Pages of lists that are kept for that time: the pages of a list of all clients, and a few
/// more.
pub const LIST_PARTS: usize = 32;

/// Requests that wait for a proof of their address. The answer to a PING takes milliseconds.
pub const UNPROVED_REQUESTS: usize = 64;

/// The longest of those requests, in bytes; real ones have about ten.
pub const UNPROVED_REQUEST_BYTES: usize = 256;

/// Bytes per second from drivers to all clients of one host in a network of this machine that
/// have not proved their address, as old clients never do: ten laser scanners. A host that was
/// named without its knowledge could be flooded by its neighbours anyway.
pub const STREAM_BYTES_PER_SECOND: u32 = 1024 * 1024;

/// The same for a host elsewhere, which anyone may have named: a few slow sensors.
pub const STREAM_BYTES_PER_SECOND_DISTANT: u32 = 4096;

/// Bytes to such a host at once: a frame for each of many subscribers, and a long answer.
pub const STREAM_BURST_BYTES: u32 = 512 * 1024;

/// Bytes that each datagram from such a host adds: the longest message that old clients receive.
pub const STREAM_REPLY_BYTES: u32 = 16 * 1024;

/// A client elsewhere that has not proved its address gets nothing after this time without a
/// datagram from it.
pub const STREAM_SILENCE: Duration = Duration::from_secs(3600);

/// Hosts whose bytes are counted separately; more share. As many as there are clients by default.
pub const STREAM_HOSTS: usize = 4096;

/// Events per second about lost clients.
pub const CLIENT_EVENTS_PER_SECOND: u32 = 100;

/// The rate of an exchange between one client or driver and one device is checked after this
/// many requests, if most of them brought an answer ...
pub const LOOP_FRAMES: u16 = 20_000;

/// ... and at this rate per second, the two seem to answer each other endlessly. No real
/// program sends requests that often.
pub const LOOP_RATE: u64 = 2_000;

/// The interval between log messages about such a pair.
pub const LOOP_NEWS: Duration = Duration::from_secs(60);

/// Frames that may wait for one driver, in addition to those in its pipe.
pub const QUEUE_FRAMES: usize = 1024;

/// Bytes that may wait for one driver, in addition to those in its pipe: a few pipes of 64 KiB,
/// or a hundred of the longest usual messages.
pub const QUEUE_BYTES: usize = 512 * 1024;

/// Life-cycle frames that may wait for one driver before it counts as hung. They are never
/// dropped, but there are few: one for each client that the driver knows, and PINGs. The limit
/// is at least twice the limit of known clients.
pub const LIFE_CYCLE_FRAMES: usize = 16_384;

/// Bytes offered to a driver's pipe in one system call: the size of a pipe.
pub const WRITE_BYTES: usize = 64 * 1024;

/// The same while frames wait for a pipe that is sometimes full. What the pipe does not take is
/// set aside again, so this is smaller.
pub const REFILL_BYTES: usize = 16 * 1024;

/// A frame of at least this many bytes has its own buffer until it is written. For a shorter
/// frame, a copy costs less than another piece in the system call. Tests have short messages
/// and need both kinds.
pub const LONG_WAITING_FRAME: usize = if cfg!(test) { 12 } else { 1024 };

/// The buffers of long frames that a driver's queue keeps for the next frames, in bytes: a pipe
/// full of them, and another that arrive meanwhile.
pub const SPARE_BYTES: usize = 2 * WRITE_BYTES;

/// A message of a driver of at least this many bytes is sent from the buffer into which it was
/// read. For a shorter one, a copy costs less than another piece in the system call. Tests have
/// short messages and need both kinds.
pub const LENT_MESSAGE: usize = if cfg!(test) { 12 } else { 1024 };

/// Pieces of one write to a driver: long frames, and the short ones before, between and after
/// them. A batch may exceed [`WRITE_BYTES`] by one frame.
pub const WRITE_PIECES: usize = 2 * (WRITE_BYTES / LONG_WAITING_FRAME + 1) + 1;

/// The pipe of an answering driver may hold as much as the driver takes in this time. A newcomer
/// waits at most this long, and it is several times the time from an answer to the next frame.
pub const AHEAD: Duration = Duration::from_micros(100);

/// The same for a silent driver: as much as it takes until the next check.
pub const AHEAD_SILENT: Duration = Duration::from_millis(2);

/// Maximum number of unread bytes in the pipe of any driver: the size of a pipe.
pub const AHEAD_BYTES: usize = 64 * 1024;

/// Maximum number of unread bytes for a driver of unknown speed: about ten short commands. A
/// driver that takes 10 ms for each is told about the death of their client after 0.1 s.
pub const AHEAD_BYTES_FIRST: usize = 256;

/// Maximum number of unread bytes for a driver that takes them in three times [`AHEAD`]: then its
/// pipe is checked once for dozens of short requests. A driver that takes [`AHEAD_BYTES`] in that
/// time may have these: then its pipe is the limit, and is checked once in [`AHEAD_LOOK`].
pub const AHEAD_BYTES_FAST: usize = 4096;

/// The pause until a pipe is checked again, which doubles while nothing changes; timers are no
/// finer.
pub const AHEAD_LOOK: Duration = Duration::from_millis(1);

/// The longest pause between two checks of the pipe of a driver that neither reads nor writes.
pub const AHEAD_LOOK_MAX: Duration = Duration::from_millis(100);

/// The shortest time between two queries of this machine's addresses. A query takes some tens
/// of microseconds.
pub const OWN_ADDRESSES_AGE: Duration = Duration::from_secs(5);

/// Sockets that send to hosts on the network, per listening address. Each active host has its
/// own, so that a slow or unreachable host does not affect the others. There are more than
/// there are machines around one robot; beyond that, hosts share.
pub const HOST_LANES: usize = 16;

/// A host keeps its sending socket if it was sent something within this time. This is longer
/// than the system keeps datagrams for an address that does not answer (3 s).
pub const LANE_IDLE: Duration = Duration::from_secs(5);

/// A sending socket whose buffer was full is not given to another host for this long.
pub const LANE_FULL: Duration = Duration::from_secs(3);

/// The shortest time between two queries of the hosts on the network. A query takes some tens
/// of microseconds, and is made only while something is sent to the network.
pub const NEIGHBOURS_AGE: Duration = Duration::from_millis(250);

/// The same while something is to be sent to an address without a known host. The system finds
/// a new host in about a millisecond; the mediator knows it after at most this time.
pub const NEWCOMERS_AGE: Duration = Duration::from_millis(20);

/// The send buffer, in bytes, that all addresses without a known host share: a few answers to
/// each of some dozen newcomers.
pub const DOUBTFUL_BUFFER_BYTES: usize = 128 * 1024;

/// Copies of one frame for clients that its header has already named. Old drivers name a client
/// once per subscription, hardly ever more than twice.
pub const REPEATED_COPIES: usize = 64;

/// So many frames of one turn, each to several clients, are sent client by client: fewer are not
/// worth the sorting.
pub const GATHERED_FRAMES: usize = 4;

/// Datagrams for one client that are given to the system as one, to be split: all Linux
/// versions that can do so take this many.
pub const SEGMENTS: usize = 64;

/// The longest of these datagrams: it fits into a packet on any link, because it cannot be
/// split again.
pub const SEGMENT_BYTES: usize = 1232;

/// The same for programs on this machine, where packets are larger.
pub const LOCAL_SEGMENT_BYTES: usize = 32 * 1024;

/// All of these datagrams together, in bytes: the size of one UDP packet.
pub const RUN_BYTES: usize = 65_507;

/// Ready sources that the system reports per turn; the others follow in the next turn.
pub const EVENTS_PER_TURN: usize = 256;

/// Datagrams received from one socket per turn.
pub const DATAGRAMS_PER_TURN: usize = 64;

/// The shortest time between two queries of the system's count of dropped datagrams.
pub const LOST_LOOK: Duration = Duration::from_millis(100);

/// How long the frames of one driver are handled per turn: a hundred frames or more, and a
/// fraction of the time for a request and its answer.
pub const DRIVER_TURN: Duration = Duration::from_micros(200);

/// Datagrams that the frames of one driver may cause per turn: some tenths of a millisecond. A
/// frame for more clients takes several turns.
pub const DRIVER_TURN_DATAGRAMS: usize = 256;

/// When the frames of one driver have caused this many bytes, its turn ends: they take some
/// tenths of a millisecond.
pub const DRIVER_TURN_BYTES: usize = 1024 * 1024;

/// Frames handled between two checks of the clock.
pub const FRAMES_PER_LOOK: usize = 16;

/// A driver is slowed down if this many frames in one turn had no effect. A working driver may
/// send some frames to clients that have just left.
pub const JUNK_FRAMES: usize = 64;

/// A driver whose frames have no effect is not read for this many times the duration of its
/// last turn. So it costs the others 3 % of their time.
pub const JUNK_PAUSE: u32 = 31;

/// Bytes read from a driver per turn: the size of a pipe.
pub const READ_BYTES: usize = 64 * 1024;

/// Attempts to send one datagram on a socket whose calls fail, usually because of errors about
/// other addresses. Each failure clears one such error; more than two in a row concern this
/// address itself.
pub const SEND_TRIES: u32 = 3;

/// A temporarily unreachable client, such as a laptop that changes its access point, counts as
/// lost after this time without a datagram from it.
pub const UNREACHABLE: Duration = Duration::from_secs(10);

/// Socket buffers requested from the system, for the time while the mediator is busy. A receive
/// buffer of 32 KiB caused all losses of the original mediator.
pub const SOCKET_BUFFER_BYTES: usize = 4 * 1024 * 1024;

/// The receive buffer, in bytes, of a socket that only sends. It receives network errors, of some
/// 800 bytes each: as many as there are clients in a usual burst.
pub const ERROR_BUFFER_BYTES: usize = 128 * 1024;

/// The longest name of a robot: that of a label in DNS.
pub const NAME_BYTES: usize = 63;

/// Unknown-device answers to one client per second: enough to notice the mistake.
pub const REFUSALS_PER_SECOND: u32 = 200;

/// Logged lines per second of one driver's stderr.
pub const STDERR_LINES_PER_SECOND: u32 = 100;

/// Bytes read from a driver's stderr per turn.
pub const WORDS_READ_BYTES: usize = 4096;

/// The longest line of stderr, in bytes; the rest becomes the next line.
pub const STDERR_LINE_BYTES: usize = 4096;

/// The last lines of stderr that are kept for `amber status`.
pub const LAST_WORDS: usize = 20;

/// Lines of the log that are kept per driver: minutes of a driver that has trouble, and weeks of
/// one that works.
pub const KEPT_LOG_LINES: usize = 1000;

/// Bytes of the log that are kept per driver: as many lines of the usual length.
pub const KEPT_LOG_BYTES: usize = 128 * 1024;

/// Bytes of the log that are kept of all drivers: more than the drivers of one robot fill, and
/// little memory on a small computer.
pub const KEPT_LOG_TOTAL_BYTES: usize = 4 * 1024 * 1024;

/// The longest text of a line of that log, in bytes; ten lines fit into an answer.
pub const KEPT_LOG_TEXT_BYTES: usize = 1000;

/// Log lines per second, in total: the speed of a slow memory card.
pub const LOG_LINES_PER_SECOND: u32 = 1000;

/// The longest log filter, in bytes: one name for each part.
pub const LOG_FILTER_BYTES: usize = 512;

/// Parts of a log filter: more than there are useful targets.
pub const LOG_FILTER_PARTS: usize = 16;

/// Log lines that may wait for a slow terminal or disk.
pub const LOG_QUEUE_LINES: usize = 1024;

/// An incomplete frame on a driver's stdout that does not grow for this long is taken for
/// noise. The original waited 100 ms and lost frames of slow drivers.
pub const PARTIAL_FRAME: Duration = Duration::from_secs(5);

/// A silent client gets a PING after this time; a client that never answered gets PINGs at this
/// interval.
pub const CLIENT_PING_INTERVAL: Duration = Duration::from_secs(1);

/// Unanswered PINGs after which a client counts as lost, and the number of PINGs to a client
/// that never answered.
pub const CLIENT_PINGS: u8 = 3;

/// The interval of PINGs to a driver. Ten idle drivers cause four wake-ups per second.
pub const DRIVER_PING_INTERVAL: Duration = Duration::from_secs(5);

/// Unanswered PINGs after which an otherwise silent driver counts as hung, and the number of
/// PINGs to a driver that never answered.
pub const DRIVER_PINGS: u8 = 3;

/// Unanswered PINGs after which a driver that still writes other frames counts as hung. Its
/// input may be full of slow requests, which come before the PING.
pub const DRIVER_PINGS_BUSY: u8 = 12;

/// A driver that has lived this long works, even if it is silent.
pub const SETTLED: Duration = Duration::from_secs(1);

/// A driver that has worked this long gets the shortest backoff again.
pub const USEFUL: Duration = Duration::from_secs(10);

/// The first and the longest wait before a driver is restarted.
pub const BACKOFF_MIN: Duration = Duration::from_millis(100);
/// See [`BACKOFF_MIN`].
pub const BACKOFF_MAX: Duration = Duration::from_secs(10);

/// A driver is given up after this many deaths within [`DEATHS_WINDOW`].
pub const DEATHS: usize = 10;
/// See [`DEATHS`].
pub const DEATHS_WINDOW: Duration = Duration::from_secs(60);

/// The time between closing stdin, SIGTERM and SIGKILL.
pub const GRACE: Duration = Duration::from_secs(1);

/// The shortest time between two SIGKILLs for one driver. A process needs a moment to end, and
/// longer if it hangs in the kernel.
pub const KILL_AGAIN: Duration = Duration::from_millis(100);

/// The time from SIGKILL to the end of a driver and its last output, when the mediator stops.
/// Only a process that hangs in the kernel takes longer.
pub const AFTER_KILL: Duration = Duration::from_secs(3);

/// The longest configuration, in bytes: thousands of drivers.
pub const CONFIG_BYTES: u64 = 1024 * 1024;

/// Addresses that the mediator listens on: more than a machine has networks. Each needs some
/// twenty sockets, and its number must fit into eight bits.
pub const LISTEN_ADDRESSES: usize = 16;

/// The time for starting drivers per turn; at least one is started. One start takes 1.3 ms, at
/// worst 6 ms, and blocks everything else.
pub const STARTS_AT_ONCE: Duration = Duration::from_millis(2);

/// The pause before more drivers are started: clients get two thirds of the time, and the
/// started drivers can begin to work.
pub const STARTS_PAUSE: Duration = Duration::from_millis(4);

/// Processes outside its process group that a signal for a driver reaches: more than any driver
/// has, and checked within milliseconds. The rest follow when the driver has ended.
pub const FAMILY_PROCESSES: usize = 256;

/// Orphans of drivers that are checked or killed per turn: each takes some ten microseconds.
pub const ORPHANS_PER_TURN: usize = 64;

/// Reloads that may wait for a slow one, whose file may be on a network drive.
pub const RELOADS: usize = 16;

/// The interval of messages to the service manager, unless its watchdog needs more.
pub const SERVICE_TICK: Duration = Duration::from_secs(10);

/// The shortest interval of messages to the service manager, whatever its watchdog needs.
pub const SERVICE_TICK_MIN: Duration = Duration::from_millis(10);

/// The shortest time between two changes of the status that the service manager shows.
pub const SERVICE_STATUS_PAUSE: Duration = Duration::from_secs(1);

/// The list in one answer, in bytes: old clients can receive 16 384 in total.
pub const LIST_BYTES: usize = 12_000;
/// The key and the length of an entry of a list, at most.
pub const AROUND_ENTRY_BYTES: usize = 4;
/// What an answer has beside the entries of its list: the header of the frame, the number of the
/// request, the number of all entries, and the keys and lengths of what contains the list.
pub const AROUND_LIST_BYTES: usize = 80;
/// What an answer has per process, at most.
pub const PROCESS_BYTES: usize = 80;

/// The command of a driver in an answer, in bytes: [`LAST_WORDS`] of [`TEXT_BYTES`] each leave
/// this much of 16 384.
pub const COMMAND_BYTES: usize = 4_000;

/// The longest text in an answer, in bytes, such as a reason or an argument of a command.
pub const TEXT_BYTES: usize = 400;

/// The longest description of a device, in bytes: about ten times what a device needs, and in one
/// answer of 16 384.
pub const DESCRIPTION_BYTES: usize = 16_000;

/// Events about the health of one device that may follow each other at once: a loose plug may
/// disconnect a few times.
pub const HEALTH_EVENTS: u32 = 10;

/// The interval at which one more event about the health of a device is allowed.
pub const HEALTH_EVENT_INTERVAL: Duration = Duration::from_secs(6);

/// Devices of one driver whose problems are listed in an answer: they fit into the rest of 16 384
/// bytes.
pub const TROUBLES: usize = 10;

/// Events per second about who moves one device: people take and release a lease now and then.
pub const MOTION_EVENTS_PER_SECOND: u32 = 10;

/// The longest text about who moves a device, in bytes: one sentence.
pub const MOTION_TEXT: usize = 200;

/// Clients that may trace drivers at once: tracing is for people, not programs.
pub const TRACERS: usize = 16;

/// Copies of frames that may wait for the end of the turn.
pub const TRACE_WAITING: usize = 256;

/// Frames per second that one tracer gets: more than people can read, and little compared with
/// the traffic.
pub const TRACE_FRAMES_PER_SECOND: u32 = 1000;

/// The longest part of a message that a tracer gets, in bytes: old clients can receive 16 384
/// in total.
pub const TRACE_BYTES: usize = 12_000;

/// Feeds for recorders at once: each costs a copy of every frame.
pub const FEEDS: usize = 4;

/// Sockets that wait for a recorder: more than are started at once. A further one takes the place of
/// the oldest, which a recorder would have opened long ago.
pub const FEED_SOCKETS: usize = 16;

/// Devices that one request for a feed may name: more than a robot has, and looked through for
/// every frame.
pub const FEED_DEVICES: usize = 64;

/// The bytes that wait for one recorder: a second of a full load, 1000 scans and 100 000 small
/// messages. Longer pauses of a disk leave a gap in the recording. The memory is used only while
/// a recorder is slow.
pub const FEED_BYTES: usize = 16 * 1024 * 1024;

/// Further bytes that may wait for one recorder, for records other than frames: a thousand
/// clients that come and go, and the gap itself.
pub const FEED_EXTRA_BYTES: usize = 256 * 1024;

/// The bytes for a recorder that are worth a system call at once. Each costs as much as copying
/// some ten kilobytes.
pub const FEED_WRITE_BYTES: usize = 64 * 1024;

/// The longest time that fewer bytes wait for more: people do not notice it, and a recorder wakes
/// only a hundred times a second.
pub const FEED_PAUSE: Duration = Duration::from_millis(10);

/// The time for a recorder to connect after its request.
pub const FEED_PATIENCE: Duration = Duration::from_secs(5);

/// The shortest time between two comparisons of the counters of drops for a feed: there are
/// dozens of them.
pub const DROPS_INTERVAL: Duration = Duration::from_millis(100);
