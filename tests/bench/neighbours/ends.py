"""Both ends of a load, for `neighbours.py`: clients, and services that send requests back.

Each protocol has a client and a service with the same two methods: `send` a message, and `receive`
the messages that have arrived. A message begins with its number.
"""

import json
import os
import pathlib
import queue
import socket
import struct
import sys
import time

# A request without a reply within this time counts as lost.
PATIENCE_S = 2
NUMBER = struct.Struct("<I")


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def wait_for_port(port, patience_s):
    until = time.monotonic() + patience_s
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.01)


def connect(address):
    host, port = address.rsplit(":", 1)
    until = time.monotonic() + 5
    while True:
        try:
            stream = socket.create_connection((host, int(port)))
            break
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.01)
    stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return stream


class Amber:
    """UDP frames; the service is a driver on stdin and stdout, see `echo`."""

    HEADER = bytes([0, 4, 8, 5, 16, 0])  # device 5:0
    # Fields of a DriverMsg: the type DATA, the number of the request, and a field with the rest.
    BEGIN = bytes([0x10, 1, 0x18])

    def __init__(self, address, role):
        host, port = address.rsplit(":", 1)
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        self.socket.connect((host, int(port)))

    def send(self, message):
        number = NUMBER.unpack_from(message)[0]
        syn = bytes([number >> 7 * i & 0x7F | 0x80 for i in range(4)]) + bytes([number >> 28])
        size = len(message)
        rest = bytes([0x7A, size & 0x7F | 0x80, size >> 7]) + message
        inner = self.BEGIN + syn + rest
        self.socket.send(self.HEADER + struct.pack(">H", len(inner)) + inner)

    def receive(self, timeout):
        self.socket.settimeout(timeout)
        try:
            datagram = self.socket.recv(65536)
        except TimeoutError:
            return []
        except ConnectionRefusedError:
            return []
        (header,) = struct.unpack_from(">H", datagram)
        return [datagram[2 + header + 2 + 3 + 5 + 3 :]]


def echo():
    """A driver: what comes on stdin goes to stdout."""
    while data := os.read(0, 1 << 18):
        while data:
            data = data[os.write(1, data) :]


class Stream:
    """A protocol over TCP: bytes in a buffer, from which `take` removes whole messages."""

    def __init__(self, address):
        self.socket = connect(address)
        self.buffer = bytearray()

    def receive(self, timeout):
        self.socket.settimeout(timeout)
        try:
            data = self.socket.recv(1 << 18)
        except TimeoutError:
            return []
        if not data:
            sys.exit(0)
        self.buffer += data
        return self.take()


class Nats(Stream):
    def __init__(self, address, role):
        super().__init__(address)
        (mine, self.other) = ("answers", "requests") if role == "ask" else ("requests", "answers")
        self.socket.sendall(b'CONNECT {"verbose":false,"pedantic":false}\r\n')
        self.socket.sendall(f"SUB {mine} 1\r\nPING\r\n".encode())
        while b"PONG" not in self.buffer:
            self.buffer += self.socket.recv(4096)
        self.buffer.clear()

    def send(self, message):
        self.socket.sendall(b"PUB %s %d\r\n%s\r\n" % (self.other.encode(), len(message), message))

    def take(self):
        messages = []
        while (end := self.buffer.find(b"\r\n")) >= 0:
            words = bytes(self.buffer[:end]).split()
            if words[0] == b"PING":
                self.socket.sendall(b"PONG\r\n")
                del self.buffer[: end + 2]
                continue
            if words[0] != b"MSG":
                del self.buffer[: end + 2]
                continue
            begin, size = end + 2, int(words[-1])
            if len(self.buffer) < begin + size + 2:
                break
            messages.append(bytes(self.buffer[begin : begin + size]))
            del self.buffer[: begin + size + 2]
        return messages


class Mqtt(Stream):
    """Version 3.1.1, quality of service 0."""

    def __init__(self, address, role):
        super().__init__(address)
        (mine, self.other) = ("a", "r") if role == "ask" else ("r", "a")
        name = f"bench-{role}-{os.getpid()}".encode()
        begin = b"\0\4MQTT\4\2\0\0" + struct.pack(">H", len(name)) + name
        self.socket.sendall(b"\x10" + self.length(len(begin)) + begin)
        subscribe = b"\0\1" + struct.pack(">H", len(mine)) + mine.encode() + b"\0"
        self.socket.sendall(b"\x82" + self.length(len(subscribe)) + subscribe)
        # CONNACK and SUBACK.
        while len(self.buffer) < 4 + 5:
            self.buffer += self.socket.recv(4096)
        del self.buffer[:9]

    @staticmethod
    def length(size):
        out = bytearray()
        while True:
            size, low = size >> 7, size & 0x7F
            out.append(low | (0x80 if size else 0))
            if not size:
                return bytes(out)

    def send(self, message):
        topic = self.other.encode()
        size = 2 + len(topic) + len(message)
        begin = b"\x30" + self.length(size) + struct.pack(">H", len(topic)) + topic
        self.socket.sendall(begin + message)

    def take(self):
        messages = []
        while len(self.buffer) >= 2:
            size, at = 0, 1
            while at < len(self.buffer) and at < 5:
                size |= (self.buffer[at] & 0x7F) << 7 * (at - 1)
                at += 1
                if not self.buffer[at - 1] & 0x80:
                    break
            else:
                break
            if len(self.buffer) < at + size:
                break
            if self.buffer[0] & 0xF0 == 0x30:
                (topic,) = struct.unpack_from(">H", self.buffer, at)
                messages.append(bytes(self.buffer[at + 2 + topic : at + size]))
            del self.buffer[: at + size]
        return messages


def zenoh_session(mode, address):
    import zenoh

    config = zenoh.Config()
    config.insert_json5("mode", json.dumps(mode))
    place = "listen" if mode == "router" else "connect"
    config.insert_json5(f"{place}/endpoints", json.dumps([f"tcp/{address}"]))
    config.insert_json5("scouting/multicast/enabled", "false")
    return zenoh.open(config)


class Zenoh:
    def __init__(self, address, role):
        import zenoh

        (mine, other) = ("answers", "requests") if role == "ask" else ("requests", "answers")
        self.session, self.arrived = zenoh_session("client", address), queue.SimpleQueue()
        self.subscriber = self.session.declare_subscriber(
            f"bench/{mine}", lambda sample: self.arrived.put(sample.payload.to_bytes())
        )
        self.publisher = self.session.declare_publisher(
            f"bench/{other}", congestion_control=zenoh.CongestionControl.BLOCK
        )

    def send(self, message):
        self.publisher.put(message)

    def receive(self, timeout):
        try:
            messages = [self.arrived.get(timeout=timeout)]
        except queue.Empty:
            return []
        while not self.arrived.empty():
            messages.append(self.arrived.get())
        return messages


class Dora:
    def __init__(self, core, role):
        from dora import Node

        os.sched_setaffinity(0, {int(core)})
        self.node, self.output = Node(), "requests" if role == "ask" else "answers"

    def send(self, message):
        self.node.send_output(self.output, message)

    def receive(self, timeout):
        event = self.node.next(timeout=timeout)
        if event is None:
            return []
        if event["type"] == "STOP" or event["type"] == "ALL_INPUTS_CLOSED":
            sys.exit(0)
        if event["type"] != "INPUT":
            return []
        return [event["value"].to_numpy().tobytes()]


PROTOCOLS = {"amber": Amber, "nats": Nats, "mqtt": Mqtt, "zenoh": Zenoh, "dora": Dora}


def serve(protocol, address):
    service = PROTOCOLS[protocol](address, "serve")
    while True:
        for message in service.receive(3600):
            service.send(message)


def ask(protocol, address, size, window, seconds, out):
    client = PROTOCOLS[protocol](address, "ask")
    size, window, seconds = int(size), int(window), float(seconds)
    filler = bytes(size - NUMBER.size)
    sent_at, times = {}, []
    number = 0

    def send():
        nonlocal number
        number += 1
        sent_at[number] = time.perf_counter_ns()
        client.send(NUMBER.pack(number) + filler)

    def take(timeout):
        messages = client.receive(timeout)
        now, answered = time.perf_counter_ns(), 0
        for message in messages:
            begin = sent_at.pop(NUMBER.unpack_from(message)[0], None)
            if begin is not None:
                times.append(now - begin)
                answered += 1
        return answered

    # The service may not have subscribed yet: repeats the first request.
    until = time.monotonic() + 10
    while not times:
        if time.monotonic() > until:
            sys.exit(f"no reply of the service of {protocol}")
        send()
        take(0.1)
    while sent_at and take(0.3):
        pass
    sent_at.clear()
    times.clear()
    first, daemon = number, daemon_cpu_ns() if protocol == "dora" else 0
    begin = time.perf_counter()
    for _ in range(window):
        send()
    while time.perf_counter() - begin < seconds:
        answered = take(PATIENCE_S)
        if not answered:
            break
        for _ in range(answered):
            send()
    elapsed, received = time.perf_counter() - begin, len(times)
    while sent_at and take(PATIENCE_S):
        pass
    times.sort()
    seen = {
        "sent": number - first,
        "received": received,
        "lost": len(sent_at),
        "per_s": received / elapsed,
        "p50_us": times[len(times) // 2] / 1e3 if times else float("inf"),
        "p99_us": times[len(times) * 99 // 100] / 1e3 if times else float("inf"),
    }
    if protocol == "dora":
        seen["cpu_us"] = (daemon_cpu_ns() - daemon) / 1e3 / max(received, 1)
    pathlib.Path(out).write_text(json.dumps(seen))
    # Libraries may wait for their threads.
    os._exit(0)


def daemon_cpu_ns():
    tasks = pathlib.Path(f"/proc/{os.getppid()}/task").glob("*/schedstat")
    return sum(int(path.read_text().split()[0]) for path in tasks)


def zenoh_router(address):
    session = zenoh_session("router", address)
    while not session.is_closed():
        time.sleep(3600)


if __name__ == "__main__":
    commands = {"echo": echo, "serve": serve, "ask": ask, "zenoh-router": zenoh_router}
    commands[sys.argv[1]](*sys.argv[2:])
