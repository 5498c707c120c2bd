"""Programs that drive the simulated robot over other protocols. They freeze, are killed, or lose their
network."""

import base64
import contextlib
import json
import os
import select
import signal
import socket
import struct
import subprocess
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
#: The node program that holds the stick of a dashboard in Chromium, and its packages.
BROWSER = os.path.join(ROOT, "client-sdk/dashboard/tests/browser")
#: Seconds between two commands.
PERIOD_S = 0.05


class Relay:
    """Forwards datagrams between one client and the mediator until it is cut."""

    def __init__(self, mediator):
        self.to_client, self.to_mediator = (
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2)
        )
        self.to_client.bind(("127.0.0.1", 0))
        self.to_mediator.connect(mediator)
        self.address = "127.0.0.1:%d" % self.to_client.getsockname()[1]
        self.is_cut = False
        self.is_closed = False
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self):
        client = None
        while not self.is_closed:
            ready, _, _ = select.select([self.to_client, self.to_mediator], [], [], 0.2)
            for one in ready:
                with contextlib.suppress(OSError):
                    data, sender = one.recvfrom(65536)
                    if one is self.to_client:
                        client = sender
                    if self.is_cut:
                        continue
                    if one is self.to_client:
                        self.to_mediator.send(data)
                    elif client is not None:
                        self.to_client.sendto(data, client)

    def close(self):
        self.is_closed = True


class StreamRelay:
    """Forwards TCP connections to an address until it is cut: then nothing passes, and nothing is
    closed."""

    def __init__(self, to):
        self.to = to
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.listener.getsockname()[1]
        self.is_cut = False
        self.is_closed = False
        self.pairs = {}
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self):
        while not self.is_closed:
            if self.is_cut:
                time.sleep(0.05)
                continue
            ready, _, _ = select.select([self.listener, *self.pairs], [], [], 0.2)
            for one in ready:
                if self.is_cut:
                    break
                if one is self.listener:
                    self._accept(one.accept()[0])
                else:
                    self._forward(one)

    def _accept(self, near):
        try:
            far = socket.create_connection(self.to)
        except OSError:
            near.close()
        else:
            self.pairs.update({near: far, far: near})

    def _forward(self, one):
        other = self.pairs.get(one)
        data = b""
        with contextlib.suppress(OSError):
            data = one.recv(65536)
            if other is not None:
                other.sendall(data)
        if not data:
            for each in (one, other):
                if self.pairs.pop(each, None) is not None:
                    each.close()

    def close(self):
        self.is_closed = True
        self.is_cut = True


class Program:
    """A program in a thread of this script."""

    def __init__(self):
        self.is_frozen = False
        self.is_closed = False
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self):
        while not self.is_closed:
            if not self.is_frozen:
                self.step()
            time.sleep(PERIOD_S)

    def step(self):
        """Sends a command, and answers what has come."""

    def freeze(self):
        """It sends and answers nothing, and closes nothing."""
        self.is_frozen = True

    #: Nothing that it sends arrives: for the others it is the same.
    cut = freeze

    def kill(self):
        """The system closes its socket."""
        self.freeze()
        self.socket.close()

    def close(self):
        self.is_closed = True
        self.thread.join()


class Datagrams(Program):
    """A program that sends datagrams to a gateway."""

    #: The device of its gateway.
    gateway = None

    def __init__(self, demo):
        self.address = demo.listening(self.gateway)
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.connect(self.address)
        self.socket.settimeout(5)
        self.begin()
        self.socket.setblocking(False)
        super().__init__()

    def begin(self):
        """Makes itself known."""

    def received(self):
        """The datagrams that have come."""
        with contextlib.suppress(OSError):
            while True:
                yield self.socket.recv(65536)

    def send(self, data):
        with contextlib.suppress(OSError):
            self.socket.send(data)


class Galileo(Datagrams):
    """A session of the gateway for Galileo."""

    gateway = "gateway:0"

    def begin(self):
        host, port = self.address
        self.send(b"\x01udp://%s:%d/cmd_vel?token=x\0" % (host.encode(), port))
        reply = json.loads(self.socket.recv(2048)[6:])
        self.head = bytes([2, *reply["client_id"]])

    def step(self):
        for datagram in self.received():
            if datagram[5] == 9:
                self.send(self.head + b"\x0a")
        self.send(self.head + b'\x01{"angular":{"z":0.7}}')


class JsonRelay(Datagrams):
    """A control of the JSON relay."""

    gateway = "gateway:2"

    def begin(self):
        self.say("register", {"client_type": "control", "client_id": "c1"})

    def say(self, kind, data):
        self.send(json.dumps({"type": kind, "data": data}).encode())

    def step(self):
        for _ in self.received():
            pass
        self.say("control_command", {"command": "left", "timestamp": 5})


def varint(number):
    """A number as protobuf writes it."""
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


def turn_left():
    """The message of a RoboClaw driver that turns the robot to the left: its type DATA, and the speeds
    of the four wheels as 64-bit numbers, in mm/s."""
    sides = [(1 << 64) - 150, 150] * 2
    speeds = b"".join(bytes([index << 3]) + varint(it) for index, it in enumerate(sides, 1))
    return b"\x10\x01" + varint(20 << 3 | 2) + varint(len(speeds)) + speeds


class Apollo(Datagrams):
    """A program of Apollo that sends wheel speeds."""

    gateway = "gateway:3"
    last_id = 0

    def step(self):
        message = turn_left()
        self.last_id += 1
        size, last_id, one = (struct.pack("<I", it) for it in (len(message), self.last_id, 1))
        zero = bytes(4)
        # Version, name, id, size, frames, size of this one, its position and index, time.
        values = [zero, b"amber.2.0\0", last_id, size, one, size, zero, zero, bytes(8)]
        items = b"".join(
            struct.pack("<I", index) + b":" + struct.pack("<I", len(value)) + b":" + value + b"\n"
            for index, value in enumerate(values)
        )
        flag = b"ApolloBridgeHeader\0\n"
        length = struct.pack("<I", len(flag) + 5 + len(items))
        self.send(flag + length + b"\n" + items + message)


class RflySim(Datagrams):
    """A program of RflySim that unlocks the vehicle, and turns it."""

    gateway = "gateway:4"

    def step(self):
        for _ in self.received():
            pass
        for mode, controls in [(9, (1, 0, 0, 0)), (1, (0, 0, 0, -0.7))]:
            self.send(struct.pack("<ii4f", 1_234_567_890, mode, *controls))


class Page(Program):
    """A web page, without a browser: texts over a WebSocket, and answers to pings."""

    def __init__(self, address, path, hello, ready, first, command):
        self.command = command
        self.socket = socket.create_connection(address, 5)
        key = base64.b64encode(os.urandom(16)).decode()
        head = f"GET {path} HTTP/1.1\r\nHost: {address[0]}:{address[1]}\r\nUpgrade: websocket\r\n"
        head += "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
        self.socket.sendall(f"{head}Sec-WebSocket-Key: {key}\r\n\r\n".encode())
        self.buffer = b""
        while b"\r\n\r\n" not in self.buffer:
            self.buffer += self.socket.recv(4096)
        self.buffer = self.buffer.split(b"\r\n\r\n", 1)[1]
        for message in hello:
            self._send(1, json.dumps(message).encode())
        while ready not in self.buffer:
            self.buffer += self.socket.recv(65536)
        self.socket.settimeout(0.01)
        for message in first:
            self._send(1, json.dumps(message).encode())
        super().__init__()

    def step(self):
        with contextlib.suppress(OSError):
            while True:
                read = self.socket.recv(65536)
                if not read:
                    return
                self.buffer += read
                self._answer()
        if self.command is not None:
            self._send(1, json.dumps(self.command).encode())

    def _answer(self):
        while len(self.buffer) >= 2:
            kind, length, start = self.buffer[0] & 15, self.buffer[1] & 127, 2
            if length >= 126:
                size = 2 if length == 126 else 8
                if len(self.buffer) < 2 + size:
                    return
                length = int.from_bytes(self.buffer[2 : 2 + size], "big")
                start += size
            if len(self.buffer) < start + length:
                return
            body, self.buffer = self.buffer[start : start + length], self.buffer[start + length :]
            if kind == 9:
                self._send(10, body)

    def _send(self, kind, body):
        # The mask is zero: it is no secret here.
        length = len(body)
        size = bytes([128 | length]) if length < 126 else struct.pack(">BH", 254, length)
        with contextlib.suppress(OSError):
            self.socket.sendall(bytes([128 | kind]) + size + bytes(4) + body)


def dashboard(command, *first):
    """A page of the dashboard."""
    hello, ready = [{"t": "hello"}], b'"targets":"drive-to-point:0"'
    return lambda demo: Page(demo.dashboard(), "/socket", hello, ready, first, command)


def rosbridge(command, *first):
    """A page for rosbridge."""
    return lambda demo: Page(demo.listening("gateway:1"), "/", [], b"", first, command)


def descendants(pid):
    """The processes that a process has started, and those that they have started."""
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children", encoding="ascii") as file:
                for child in map(int, file.read().split()):
                    yield child
                    yield from descendants(child)


class Processes:
    """A program of its own with all processes that it starts."""

    def __init__(self, arguments, environment=None, **more):
        self.process = subprocess.Popen(
            arguments,
            stdin=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=environment,
            text=True,
            **more,
        )

    def signal(self, number):
        for pid in [*descendants(self.process.pid), self.process.pid]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def freeze(self):
        self.signal(signal.SIGSTOP)

    def kill(self):
        self.signal(signal.SIGKILL)

    def close(self):
        self.signal(signal.SIGKILL)
        self.process.wait()


class Browser(Processes):
    """Chromium with the dashboard, in which the mouse holds the stick."""

    needs = os.path.join(BROWSER, "node_modules")

    def __init__(self, demo):
        self.relay = StreamRelay(demo.dashboard())
        page = f"http://{self.relay.address}"
        super().__init__(["node", os.path.join(BROWSER, "hold.mjs"), page], stdout=subprocess.PIPE)
        self.process.stdout.readline()

    def cut(self):
        self.relay.is_cut = True

    def close(self):
        super().close()
        self.relay.close()
