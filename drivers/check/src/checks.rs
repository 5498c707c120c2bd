//! The table of checks: the name of each, why it matters, and the usual fix. IO.

mod answers;
mod clients;
mod ending;
mod framing;
mod pieces;
mod robust;
mod subscriptions;

pub(crate) use self::answers::{filled, ping};
use crate::run::{Checking, Run};

/// One property of a driver.
pub(crate) struct Check {
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    pub(crate) why: &'static str,
    pub(crate) fix: &'static str,
    /// The check needs a driver that answers at least one request.
    pub(crate) needs_probe: bool,
    pub(crate) run: fn(&mut Run<'_>) -> Checking,
}

/// Name, title and reason of every check, for `--list`.
pub fn list() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    ALL.iter().map(|check| (check.name, check.title, check.why))
}

pub(crate) const ALL: &[Check] = &[
    Check {
        name: "start",
        title: "starts, and writes only frames to stdout",
        why: "stdout carries the protocol. After a line of text, such as a banner or a log line, the \
              mediator cannot find the next frame and restarts the driver.",
        fix: "print to stderr instead",
        needs_probe: false,
        run: answers::start,
    },
    Check {
        name: "ping",
        title: "answers a PING with a PONG that has its number",
        why: "The mediator notices when a driver that answers PINGs hangs, and restarts it. `amber \
              ping` measures its round-trip time.",
        fix: "on type 2 (PING), write a frame with the same header and a message of type 3 (PONG) with \
              ackNum = synNum; do so at once, even while the device is busy",
        needs_probe: false,
        run: answers::ping,
    },
    Check {
        name: "requests",
        title: "answers the requests of its device with plausible values",
        why: "A caller waits until its deadline for the answer with its number, and uses the values.",
        fix: "answer with type DATA, with ackNum = synNum of the request, and with the clientIDs of its \
              header",
        needs_probe: true,
        run: answers::requests,
    },
    Check {
        name: "no-number",
        title: "accepts messages without synNum",
        why: "Old clients and the mediator send PINGs and commands without synNum.",
        fix: "check that synNum is present before you use it; answer a PING without synNum with a PONG \
              without ackNum (or with 0)",
        needs_probe: true,
        run: answers::no_number,
    },
    Check {
        name: "mediator-ping",
        title: "answers a PING of the mediator itself",
        why: "The mediator's own PING has an empty header. The mediator restarts a driver that has \
              answered one PING and then leaves several unanswered.",
        fix: "copy the header of the PING, even if it is empty",
        needs_probe: true,
        run: answers::mediator_ping,
    },
    Check {
        name: "bytewise",
        title: "accepts frames that arrive in pieces, or with a part of the next frame",
        why: "A pipe is a stream of bytes: one read() may return only part of a frame.",
        fix: "read until you have as many bytes as the length says (readFully, stdin.buffer.read(n), or \
              a loop around read)",
        needs_probe: true,
        run: framing::bytewise,
    },
    Check {
        name: "many-at-once",
        title: "accepts many frames at once, and answers each of them once",
        why: "One read() may return several frames.",
        fix: "after each frame, look for another one in the bytes that you have, and only then read again",
        needs_probe: true,
        run: framing::many_at_once,
    },
    Check {
        name: "sizes",
        title: "accepts messages of up to 32767 bytes",
        why: "The length is an unsigned 16-bit number. Code that reads it as a signed byte fails from \
              128 on, and code that reads a single byte fails from 256 on.",
        fix: "combine the two bytes as unsigned numbers: (b[0] & 0xff) << 8 | (b[1] & 0xff)",
        needs_probe: true,
        run: framing::sizes,
    },
    Check {
        name: "binary",
        title: "reads and writes every byte value",
        why: "In text mode, the bytes 10, 13 and 26 are line ends or the end of a file.",
        fix: "use binary streams for stdin and stdout",
        needs_probe: true,
        run: framing::binary,
    },
    Check {
        name: "numbers",
        title: "accepts large request numbers and client ids",
        why: "Request numbers go up to 4294967295 and client ids up to 2147483647. Both take several \
              bytes.",
        fix: "use the protobuf library for both, and unsigned 32-bit variables for synNum and ackNum",
        needs_probe: true,
        run: framing::numbers,
    },
    Check {
        name: "empty-message",
        title: "survives an empty message",
        why: "Any program on the network can send one.",
        fix: "a message of 0 bytes has no type: ignore it",
        needs_probe: true,
        run: robust::empty_message,
    },
    Check {
        name: "no-drivermsg",
        title: "survives messages that are not a DriverMsg",
        why: "The mediator does not decode messages, and any program on the network can send one.",
        fix: "catch the parse error, log it to stderr, and continue with the next frame",
        needs_probe: true,
        run: robust::no_driver_msg,
    },
    Check {
        name: "unknown-type",
        title: "survives unknown message types",
        why: "Later versions may have more types.",
        fix: "let the default branch of your switch over the type do nothing",
        needs_probe: true,
        run: robust::unknown_type,
    },
    Check {
        name: "unknown-fields",
        title: "survives unknown fields and extensions",
        why: "Later versions send them, and so do clients that address the wrong device.",
        fix: "look only at the fields that you know; protobuf skips the rest",
        needs_probe: true,
        run: robust::unknown_fields,
    },
    Check {
        name: "other-types",
        title: "survives unexpected PONG, DRIVER_DIED and CLIENT_DIED",
        why: "When a client leaves, the mediator sends CLIENT_DIED to every driver that the client used.",
        fix: "on CLIENT_DIED, remove the client if you know it; ignore the other types",
        needs_probe: true,
        run: robust::other_types,
    },
    Check {
        name: "foreign-answers",
        title: "survives answers of other devices that it did not ask",
        why: "Answers to a driver's own requests have deviceType and deviceID and no clientIDs. They \
              may also come after the driver has stopped waiting.",
        fix: "a header with a device and without clientIDs belongs to an answer, never to a request: \
              ignore the answer unless its ackNum is one of yours",
        needs_probe: true,
        run: robust::foreign_answers,
    },
    Check {
        name: "asks-others",
        title: "addresses requests to other devices correctly",
        why: "The mediator delivers a request to another device only if the header has both of its \
              numbers.",
        fix: "set deviceType and deviceID and no clientIDs in the header, and type and synNum in the \
              message",
        needs_probe: true,
        run: clients::asks_others,
    },
    Check {
        name: "clients",
        title: "keeps several clients apart",
        why: "All clients share one pipe. Only clientIDs and ackNum assign an answer to a client.",
        fix: "store the header with its request until you have answered it",
        needs_probe: true,
        run: clients::clients,
    },
    Check {
        name: "several-ids",
        title: "answers all clients in a header",
        why: "clientIDs is a list. This mediator sends one id at a time, others may send several.",
        fix: "copy the whole list, not only its first entry",
        needs_probe: true,
        run: clients::several_ids,
    },
    Check {
        name: "pieces",
        title: "sends long answers in pieces, to clients that join them",
        why: "A message above 32767 bytes, such as a picture, does not fit into a frame. Clients that do \
              not say that they join pieces cannot read them. Networks lose some, so clients call for \
              these again.",
        fix: "follow `Longer messages` in docs/PROTOCOL.md; the SDKs for Rust and Python do",
        needs_probe: true,
        run: pieces::pieces,
    },
    Check {
        name: "subscribe",
        title: "publishes to subscribers until they unsubscribe",
        why: "A subscriber gets published data, with ackNum 0, until it sends UNSUBSCRIBE.",
        fix: "keep a set of client ids: SUBSCRIBE adds those in the header, UNSUBSCRIBE and CLIENT_DIED \
              remove them; publish with the whole set in clientIDs and with ackNum = 0",
        needs_probe: true,
        run: subscriptions::subscribe,
    },
    Check {
        name: "client-died",
        title: "stops publishing to a client that died",
        why: "A client that loses its network cannot unsubscribe. The mediator reports its end with \
              CLIENT_DIED.",
        fix: "treat CLIENT_DIED like UNSUBSCRIBE, for every id in the header",
        needs_probe: true,
        run: subscriptions::client_died,
    },
    Check {
        name: "streams",
        title: "publishes streams that clients start by a request",
        why: "Some streams start and stop by a DATA message instead of SUBSCRIBE. They must also \
              end when the client stops them or dies.",
        fix: "keep the client ids of each stream: the request that starts it adds those in the header, \
              the one that stops it and CLIENT_DIED remove them; publish with ackNum = 0",
        needs_probe: true,
        run: subscriptions::streams,
    },
    Check {
        name: "slow-reader",
        title: "survives a mediator that reads slowly",
        why: "When stdout is full, writing blocks. A driver that then loses bytes or waits forever \
              needs a restart.",
        fix: "write whole frames, with a loop or a blocking stream; if stdout is non-blocking, handle \
              EAGAIN; a writer must never wait for the reader",
        needs_probe: true,
        run: ending::slow_reader,
    },
    Check {
        name: "stdin-end",
        title: "ends when stdin ends",
        why: "The mediator closes stdin to stop a driver, before it sends signals. The end of stdin \
              also shows that the mediator has ended. A driver that does not end keeps its device \
              busy.",
        fix: "end the program when read() returns nothing (0 bytes, None, -1), and make other threads \
              daemons",
        needs_probe: false,
        run: ending::stdin_end,
    },
    Check {
        name: "stdin-cut",
        title: "ends when stdin ends within a frame",
        why: "A mediator that is killed may leave an incomplete frame in the pipe.",
        fix: "treat a header or message that is shorter than its length as the end of stdin",
        needs_probe: false,
        run: ending::stdin_cut,
    },
    Check {
        name: "sigterm",
        title: "ends at SIGTERM",
        why: "The mediator sends SIGTERM a second after it closes stdin, and SIGKILL another second \
              later. After SIGKILL, motors keep their last speed.",
        fix: "do not ignore SIGTERM; a handler must end the program, even while it waits for stdin",
        needs_probe: false,
        run: ending::sigterm,
    },
];
