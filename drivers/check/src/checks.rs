//! The table of checks: what each is called, why it matters, how what it finds
//! is usually mended. IO.

mod answers;
mod clients;
mod ending;
mod framing;
mod robust;
mod subscriptions;

pub(crate) use self::answers::{filled, find_probe};
use crate::run::{Checking, Run};

/// One thing that should hold.
pub(crate) struct Check {
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    pub(crate) why: &'static str,
    pub(crate) mend: &'static str,
    /// It makes sense only with a driver that answers something.
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
        title: "starts, and writes nothing but frames to stdout",
        why: "stdout is the wire. One line of text there, a banner or a log line, and the mediator \
              restarts the driver, because it cannot find the next frame behind it.",
        mend: "print to stderr instead",
        needs_probe: false,
        run: answers::start,
    },
    Check {
        name: "ping",
        title: "answers a PING by a PONG with its number",
        why: "A driver that answers PINGs is watched: when it hangs, the mediator notices and \
              restarts it. `amber ping` shows how fast it is.",
        mend: "on type 2 (PING) write a frame with the same header and a message of type 3 (PONG) \
               with ackNum = synNum, at once, even while the device is busy",
        needs_probe: false,
        run: answers::ping,
    },
    Check {
        name: "requests",
        title: "answers the requests of its device, with values that can be true",
        why: "A caller waits for the answer to its number until its deadline, and believes it.",
        mend: "answer with type DATA, ackNum = synNum of the request and the header's clientIDs",
        needs_probe: true,
        run: answers::requests,
    },
    Check {
        name: "no-number",
        title: "takes messages without synNum",
        why: "Old clients and the mediator itself send PINGs and commands without a number.",
        mend: "test whether synNum is there before you use it; a PONG to a PING without number has \
               no ackNum (or 0)",
        needs_probe: true,
        run: answers::no_number,
    },
    Check {
        name: "mediator-ping",
        title: "answers a PING of the mediator itself",
        why: "The mediator's own PING has an empty header. A driver that has ever answered one and \
              then leaves several unanswered is taken for hung and restarted.",
        mend: "copy the header of the PING, also when it is empty",
        needs_probe: true,
        run: answers::mediator_ping,
    },
    Check {
        name: "bytewise",
        title: "takes frames cut at every byte, and with a part of the next",
        why: "A pipe is a stream of bytes: one read() may return half a frame.",
        mend: "read until you have as many bytes as the length says (readFully, \
               stdin.buffer.read(n), a loop around read)",
        needs_probe: true,
        run: framing::bytewise,
    },
    Check {
        name: "many-at-once",
        title: "takes many frames in one piece, each answered once",
        why: "Frames that are sent close together arrive in one read().",
        mend: "after one frame look whether the bytes behind it hold the next, before you read again",
        needs_probe: true,
        run: framing::many_at_once,
    },
    Check {
        name: "sizes",
        title: "takes messages of every length up to 32767",
        why: "The length is an unsigned 16-bit number. What is read as a signed or a single byte \
              goes wrong from 128 or 256 on.",
        mend: "combine the two bytes as unsigned numbers: (b[0] & 0xff) << 8 | (b[1] & 0xff)",
        needs_probe: true,
        run: framing::sizes,
    },
    Check {
        name: "binary",
        title: "takes and gives every byte value",
        why: "Numbers like 10, 13 and 26 are line ends and ends of files in text mode.",
        mend: "use the binary streams for stdin and stdout",
        needs_probe: true,
        run: framing::binary,
    },
    Check {
        name: "numbers",
        title: "takes large numbers and client ids",
        why: "Numbers go up to 4294967295 and ids up to 2147483647; both take several bytes.",
        mend: "use the protobuf library for both, and unsigned 32 bits for synNum and ackNum",
        needs_probe: true,
        run: framing::numbers,
    },
    Check {
        name: "empty-message",
        title: "survives an empty message",
        why: "Anybody on the network can send one.",
        mend: "a message of 0 bytes has no type: skip it",
        needs_probe: true,
        run: robust::empty_message,
    },
    Check {
        name: "no-drivermsg",
        title: "survives messages that are no DriverMsg",
        why: "The mediator passes messages on unread, and anybody on the network can send one.",
        mend: "catch the error of parsing, log it to stderr, go on with the next frame",
        needs_probe: true,
        run: robust::no_driver_msg,
    },
    Check {
        name: "unknown-type",
        title: "survives message types that it does not know",
        why: "Later versions may have more types.",
        mend: "the last branch of your switch over the type does nothing",
        needs_probe: true,
        run: robust::unknown_type,
    },
    Check {
        name: "unknown-fields",
        title: "survives fields and extensions that it does not know",
        why: "Later versions, and clients of other devices that have the number wrong, send them.",
        mend: "look only for the fields that you know; protobuf skips the rest",
        needs_probe: true,
        run: robust::unknown_fields,
    },
    Check {
        name: "other-types",
        title: "survives PONG, DRIVER_DIED and CLIENT_DIED out of the blue",
        why: "The mediator tells every driver that a client has used when that client is gone.",
        mend: "handle CLIENT_DIED by forgetting the client, known or not, and ignore the others",
        needs_probe: true,
        run: robust::other_types,
    },
    Check {
        name: "foreign-answers",
        title: "survives answers of other devices that it never asked",
        why: "Answers to other drivers' questions come with deviceType and deviceID and without \
              clientIDs; late ones come unasked.",
        mend: "a header with a device and without clientIDs is an answer for you, never a request: \
               ignore it unless its ackNum is one of yours",
        needs_probe: true,
        run: robust::foreign_answers,
    },
    Check {
        name: "asks-others",
        title: "asks other devices in the right way",
        why: "A request to another device must name it by both numbers, or nobody gets it.",
        mend: "header with deviceType and deviceID, no clientIDs; message with type and synNum",
        needs_probe: true,
        run: clients::asks_others,
    },
    Check {
        name: "clients",
        title: "keeps several clients apart",
        why: "All clients share one pipe; only clientIDs and ackNum say whose answer it is.",
        mend: "keep the header with its request until the request is answered",
        needs_probe: true,
        run: clients::clients,
    },
    Check {
        name: "several-ids",
        title: "answers all clients that one header names",
        why: "clientIDs is a list. The mediator of today sends one id at a time, another may not.",
        mend: "copy the whole list, not its first entry",
        needs_probe: true,
        run: clients::several_ids,
    },
    Check {
        name: "subscribe",
        title: "publishes to those who subscribed, and stops",
        why: "Published data goes to each subscriber, marked by ackNum 0, until UNSUBSCRIBE.",
        mend: "keep a set of client ids: SUBSCRIBE adds those of the header, UNSUBSCRIBE and \
               CLIENT_DIED remove them; publish with the whole set in clientIDs and ackNum = 0",
        needs_probe: true,
        run: subscriptions::subscribe,
    },
    Check {
        name: "client-died",
        title: "publishes no more to a client that died",
        why: "A client that lost its network says nothing any more; the mediator says it for it.",
        mend: "treat CLIENT_DIED like UNSUBSCRIBE, for every id of the header",
        needs_probe: true,
        run: subscriptions::client_died,
    },
    Check {
        name: "slow-reader",
        title: "survives a mediator that reads slowly",
        why: "When stdout is full, writing blocks. A driver that then loses bytes, or waits for \
              ever, needs a restart.",
        mend: "write whole frames, with a loop or a blocking stream; do not make stdout \
               non-blocking without handling EAGAIN, and let a writer never wait for the reader",
        needs_probe: true,
        run: ending::slow_reader,
    },
    Check {
        name: "stdin-end",
        title: "ends when stdin ends",
        why: "That is how the mediator asks a driver to end, before it uses force, and how a driver \
              notices that the mediator is gone. One that does not end holds its device.",
        mend: "end the program when read() returns nothing (0 bytes, None, -1), and make other \
               threads daemons",
        needs_probe: false,
        run: ending::stdin_end,
    },
    Check {
        name: "stdin-cut",
        title: "ends when stdin ends within a frame",
        why: "A mediator that is killed may leave half a frame in the pipe.",
        mend: "a part that is shorter than its length says is an end, too",
        needs_probe: false,
        run: ending::stdin_cut,
    },
    Check {
        name: "sigterm",
        title: "ends at SIGTERM",
        why: "It comes a second after stdin was closed; a second later comes SIGKILL, and motors \
              keep their last speed.",
        mend: "do not ignore SIGTERM; a handler must lead to the end of the program, also while it \
               waits for stdin",
        needs_probe: false,
        run: ending::sigterm,
    },
];
