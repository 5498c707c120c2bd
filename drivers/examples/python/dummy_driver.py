#!/usr/bin/env python3
"""A complete driver in Python: the Dummy device, a flag and a text.

The mediator starts this program, writes the requests of clients to its stdin and
reads the answers from its stdout. To write your own driver, replace the
class Dummy; the rest is the same for every device.
"""

import struct
import sys
import threading
import time

import drivermsg_pb2 as amber
import dummy_pb2 as dummy

PERIOD = 0.1  # seconds between two messages to subscribers
MAX_PART = 32767  # bytes; older clients read the lengths as signed numbers


class Dummy:
    """The device itself. All clients share its state."""

    def __init__(self):
        self.enable = False
        self.message = "Message"
        self.responses = 0

    def request(self, ask, clients):
        """Handles a request and returns the answer, or None."""
        if ask.HasExtension(dummy.enable):
            self.enable = ask.Extensions[dummy.enable]
        elif ask.HasExtension(dummy.message):
            self.message = ask.Extensions[dummy.message]
        elif ask.HasExtension(dummy.get_status):
            answer = amber.DriverMsg()
            answer.Extensions[dummy.enable] = self.enable
            answer.Extensions[dummy.message] = self.message
            return answer
        else:
            log("not a request for the dummy, from", clients)
        return None

    def publish(self):
        """The message for subscribers, sent ten times per second."""
        self.responses += 1
        data = amber.DriverMsg()
        data.Extensions[dummy.message] = "Response %d" % self.responses
        return data

    def client_died(self, client):
        """Stops everything that the client set in motion. Here: nothing."""


class Pipe:
    """Frames on stdin and stdout: length, header, length, message."""

    def __init__(self):
        self.input = sys.stdin.buffer
        self.output = sys.stdout.buffer
        sys.stdout = sys.stderr  # output of print() must not corrupt the frames
        self.writing = threading.Lock()

    def receive(self):
        """The next header and message; None at the end of stdin."""
        header = self.read_part()
        message = self.read_part()
        if header is None or message is None:
            return None
        return amber.DriverHdr.FromString(header), message

    def send(self, header, message):
        frame = b""
        for part in (header.SerializeToString(), message.SerializeToString()):
            if len(part) > MAX_PART:
                return log("message too long, not sent:", len(part), "bytes")
            frame += struct.pack(">H", len(part)) + part
        with self.writing:  # two threads write
            self.output.write(frame)
            self.output.flush()

    def read_part(self):
        length = self.input.read(2)
        if len(length) < 2:
            return None
        (length,) = struct.unpack(">H", length)
        part = self.input.read(length)
        return part if len(part) == length else None


class Driver:
    """The part that all drivers share: PINGs, subscribers, answers."""

    def __init__(self, device, pipe):
        self.device = device
        self.pipe = pipe
        self.subscribers = set()
        self.changed = threading.Condition()  # guards device and subscribers

    def serve(self):
        threading.Thread(target=self.publish, daemon=True).start()
        while True:
            frame = self.pipe.receive()
            if frame is None:
                return
            self.handle(*frame)

    def handle(self, header, data):
        try:
            message = amber.DriverMsg.FromString(data)
        except Exception as error:
            return log("ignored a message that is not a DriverMsg:", error)
        if not message.HasField("type"):  # missing or unknown
            return log("ignored a message without a known type")
        clients = list(header.clientIDs)

        if message.type == amber.DriverMsg.PING:
            pong = amber.DriverMsg(type=amber.DriverMsg.PONG)
            if message.HasField("synNum"):
                pong.ackNum = message.synNum
            self.pipe.send(header, pong)
        elif message.type == amber.DriverMsg.DATA:
            with self.changed:
                answer = self.device.request(message, clients)
            if answer is not None and message.HasField("synNum"):
                answer.type = amber.DriverMsg.DATA
                answer.ackNum = message.synNum
                self.pipe.send(amber.DriverHdr(clientIDs=clients), answer)
        elif message.type == amber.DriverMsg.SUBSCRIBE:
            with self.changed:
                self.subscribers.update(clients)
                self.changed.notify()
        elif message.type == amber.DriverMsg.UNSUBSCRIBE:
            with self.changed:
                self.subscribers.difference_update(clients)
        elif message.type == amber.DriverMsg.CLIENT_DIED:
            with self.changed:
                self.subscribers.difference_update(clients)
                for client in clients:
                    self.device.client_died(client)

    def publish(self):
        due = time.monotonic()
        while True:
            with self.changed:
                self.changed.wait_for(lambda: self.subscribers)
                data = self.device.publish()
                data.type = amber.DriverMsg.DATA
                data.ackNum = 0  # an ackNum of 0 marks published data
                # Sent under the lock, so that a client that has left gets no further message.
                header = amber.DriverHdr(clientIDs=sorted(self.subscribers))
                self.pipe.send(header, data)
            now = time.monotonic()
            due = due + PERIOD if due + PERIOD > now else now + PERIOD
            time.sleep(due - now)


def log(*words):
    """Writes to stderr, which goes to the mediator's log."""
    print(*words, file=sys.stderr, flush=True)


if __name__ == "__main__":
    # No handler for SIGTERM: if the signal came just before the read of stdin, Python would run it
    # only after the read. A driver that must do something at its end does it when stdin ends.
    try:
        Driver(Dummy(), Pipe()).serve()
    except (KeyboardInterrupt, BrokenPipeError):
        pass
