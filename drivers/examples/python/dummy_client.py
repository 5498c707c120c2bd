#!/usr/bin/env python3
"""A client in Python: sends requests to a Dummy device and subscribes to it.

    python3 dummy_client.py [HOST[:PORT]] [DEVICE_ID]

The default address is AMBER_MEDIATOR: HOST, HOST:PORT or [IPV6]:PORT.
"""

import itertools
import os
import re
import socket
import struct
import sys
import time

import drivermsg_pb2 as amber
import dummy_pb2 as dummy

DUMMY = 5  # the device type
MEDIATOR = amber.DriverHdr(deviceType=0, deviceID=0)


class Client:
    """One device, over its own UDP socket."""

    def __init__(self, host, port, device_type, device_id):
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0]
        self.socket = socket.socket(family, kind)
        self.socket.connect(address)
        self.header = amber.DriverHdr(deviceType=device_type, deviceID=device_id)
        self.numbers = itertools.count(1)
        # After this, the mediator reports missing devices at once, so no request waits for a
        # timeout.
        self.send(amber.DriverMsg(type=amber.DriverMsg.PING), MEDIATOR)

    def send(self, message, header=None):
        frame = b""
        for part in (header or self.header, message):
            part = part.SerializeToString()
            frame += struct.pack(">H", len(part)) + part
        self.socket.send(frame)

    def receive(self, number, seconds=1.0):
        """The next message with this ackNum; 0 is published data. Raises OSError after a timeout."""
        deadline = time.monotonic() + seconds
        while True:
            self.socket.settimeout(max(0.001, deadline - time.monotonic()))
            frame = self.socket.recv(65536)
            try:
                (length,) = struct.unpack_from(">H", frame)
                message = amber.DriverMsg.FromString(frame[2 + length + 2 :])
            except Exception:
                continue  # any program can send to this port
            if message.type == amber.DriverMsg.PING:  # the mediator checks that this client is alive
                pong = amber.DriverMsg(type=amber.DriverMsg.PONG)
                if message.HasField("synNum"):
                    pong.ackNum = message.synNum
                self.send(pong, MEDIATOR)
            if message.type == amber.DriverMsg.DRIVER_DIED and message.ackNum in (0, number):
                raise ConnectionError("the device is not available")
            # Networks may duplicate and delay datagrams: only the number identifies an answer.
            if message.type == amber.DriverMsg.DATA and message.ackNum == number:
                return message

    def request(self, message, seconds=1.0):
        """Sends a request and returns its answer. UDP may lose both."""
        message.synNum = next(self.numbers)
        self.send(message)
        return self.receive(message.synNum, seconds)


def host_and_port(address):
    """Splits HOST, HOST:PORT, IPV6 or [IPV6]:PORT."""
    match = re.fullmatch(r"(?:\[(.*)\]|([^:]*))(?::(\d+))?", address)
    if match is None:
        return address, 26233
    return match[1] or match[2], int(match[3] or 26233)


def main():
    address = sys.argv[1] if len(sys.argv) > 1 else os.environ.get("AMBER_MEDIATOR") or "127.0.0.1"
    device_id = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    client = Client(*host_and_port(address), DUMMY, device_id)

    change = amber.DriverMsg(type=amber.DriverMsg.DATA)
    change.Extensions[dummy.message] = "hello from Python"
    client.send(change)

    question = amber.DriverMsg(type=amber.DriverMsg.DATA)
    question.Extensions[dummy.get_status] = True
    status = client.request(question)
    print("enable:", status.Extensions[dummy.enable])
    print("message:", status.Extensions[dummy.message])

    client.send(amber.DriverMsg(type=amber.DriverMsg.SUBSCRIBE))
    try:
        for _ in range(10):
            print(client.receive(0).Extensions[dummy.message])
    finally:
        client.send(amber.DriverMsg(type=amber.DriverMsg.CLIENT_DIED), MEDIATOR)


if __name__ == "__main__":
    try:
        main()
    except OSError as error:  # TimeoutError, too
        sys.exit("error: no answer (%s); is a mediator with a dummy running there?" % error)
