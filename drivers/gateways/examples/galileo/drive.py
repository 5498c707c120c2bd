#!/usr/bin/env python3
"""Drives a robot that speaks Galileo one metre ahead, and prints what it reports.

    python3 drive.py 127.0.0.1 3547 [token]

Nothing but the standard library. Like some programs for these robots, it reads all datagrams into
a buffer of 2042 bytes and does not know their length, so zeros follow what has arrived.
"""

import json
import math
import socket
import struct
import sys
import threading

BUFFER = 2042
TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10


class Robot:
    """A session of one topic."""

    def __init__(self, host, port, path, token):
        self.address = (host, port)
        self.link = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.link.settimeout(5)
        self.index = 0
        url = f"udp://{host}:{port}/{path}?token={token}"
        self.link.sendto(b"\x01" + url.encode() + b"\0", self.address)
        # The first datagram is the answer; zeros behind the JSON do not matter.
        answer = json.loads(self.receive()[6:].rstrip(b"\0"))
        if not answer["status"]:
            raise ConnectionError(f"no session for {path}")
        self.id = bytes(answer["client_id"])
        self.ends = threading.Event()
        self.beat = threading.Thread(target=self.ping, daemon=True)
        self.beat.start()

    def receive(self):
        buffer = bytearray(BUFFER)
        self.link.recv_into(buffer)
        return bytes(buffer)

    def frame(self, operation, body=b""):
        self.link.sendto(b"\x02" + self.id + bytes([operation]) + body, self.address)

    def ping(self):
        while not self.ends.wait(0.1):
            self.frame(PING)

    def send(self, message):
        self.frame(TEXT, json.dumps(message).encode())

    def send_bytes(self, data):
        """In frames of at most 512 bytes, each with its number."""
        for at in range(0, max(len(data), 1), 512):
            self.frame(BINARY, struct.pack("<I", self.index) + data[at : at + 512])
            self.index += 1

    def next(self, operation):
        """The body of the next frame with this operation, and zeros behind it."""
        while True:
            frame = self.receive()
            if frame[0] != 2 or frame[1:5] != self.id:
                continue
            if frame[5] == PING:
                self.frame(PONG)
            elif frame[5] == CLOSE:
                raise ConnectionError("the robot has closed the session")
            elif frame[5] == operation:
                return frame[6:]

    def next_json(self):
        return json.loads(self.next(TEXT).rstrip(b"\0"))

    def stop(self):
        self.ends.set()
        self.beat.join()
        self.frame(CLOSE)
        self.link.close()


def main():
    host = sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1"
    port = int(sys.argv[2]) if len(sys.argv) > 2 else 3547
    token = sys.argv[3] if len(sys.argv) > 3 else ""

    def session(path):
        return Robot(host, port, path, token)

    try:
        session("no/such/path")
        refused = False
    except ConnectionError:
        refused = True
    scanner = session("scan")
    ranges = len(scanner.next_json()["ranges"])
    scanner.stop()

    # A message of Amber in a BINARY frame: DATA, synNum 1, currentSpeedRequest, for the wheels.
    wheels = session("amber/2/0")
    request = bytes.fromhex("10011801a80101")
    wheels.send_bytes(struct.pack(">H", len(request)) + request)
    data = wheels.next(BINARY)
    (length,) = struct.unpack_from(">H", data, 4)
    answer = data[: 6 + length]
    padding = data[6 + length :]
    wheels.stop()

    odometry = session("odom")

    def place():
        """Where the robot is, as soon as that is known."""
        while True:
            pose = odometry.next_json().get("pose")
            if pose:
                return pose["pose"]["position"]

    begin = place()
    motion = session("cmd_vel")
    way = 0.0
    while way < 1.0:
        motion.send({"linear": {"x": 0.3, "y": 0, "z": 0}, "angular": {"x": 0, "y": 0, "z": 0}})
        here = place()
        way = math.hypot(here["x"] - begin["x"], here["y"] - begin["y"])
    motion.send({"linear": {"x": 0}, "angular": {"z": 0}})
    motion.stop()
    odometry.stop()
    report = {
        "refused": refused,
        "ranges": ranges,
        "answer": answer.hex(),
        "padded": not any(padding),
        "way_m": way,
    }
    print(json.dumps(report))


main()
