"""The two ports of ZeroMQ. IO, which never waits."""

from __future__ import annotations

import contextlib
import os
import socket
from typing import NamedTuple, Optional

import zmq
from zmq.utils.monitor import parse_monitor_message

from .messages import MAX_COMMAND_BYTES

#: The commands that one turn reads, so that a client that floods the port does not hold up the rest.
_COMMANDS_PER_TURN = 64
#: Observations that wait for a slow client. LeRobot's own host has the same number.
_OBSERVATIONS_WAITING = 2
#: A peer that answers no heartbeat for this time is gone, such as one whose network is.
_HEARTBEAT_MS, _PEER_GONE_MS = 1000, 4000


class Received(NamedTuple):
    """A message of a client."""

    client: int
    parts: list[bytes]


class Sockets:
    """Listens at once. Raises zmq.ZMQError if an address cannot be used."""

    def __init__(self, address: str, command_port: int, observation_port: int) -> None:
        self._context = zmq.Context()
        try:
            self._commands = _Port(self._context, zmq.PULL, address, command_port)
            self._observations = _Port(self._context, zmq.PUSH, address, observation_port)
        except BaseException:
            self._context.destroy(linger=0)
            raise

    @property
    def command_port(self) -> int:
        return self._commands.number

    @property
    def observation_port(self) -> int:
        return self._observations.number

    @property
    def observers(self) -> int:
        """The clients that are connected to receive observations."""
        return len(self._observations.peers)

    @property
    def commanders(self) -> int:
        """The clients that are connected to send commands."""
        return len(self._commands.peers)

    def address_of(self, client: int) -> str:
        """For people."""
        return self._commands.peers.get(client, "a client")

    def look(self) -> tuple[list[str], list[int]]:
        """Who has come and gone: lines for the log, and the clients that sent commands and are gone."""
        came, gone = self._commands.look()
        self._observations.look()
        lines = [f"a client connected from {self._commands.peers[client]}" for client in came]
        return lines + [f"the client {address} has left" for _, address in gone], [
            client for client, _ in gone
        ]

    def receive(self) -> list[Received]:
        """The messages that are here."""
        found = []
        for _ in range(_COMMANDS_PER_TURN):
            try:
                frames = self._commands.socket.recv_multipart(zmq.NOBLOCK, copy=False)
            except zmq.Again:
                break
            client = self._commands.client(frames[0].get(zmq.SRCFD))
            # One that has left wants nothing any more.
            if client is not None:
                found.append(Received(client, [frame.bytes for frame in frames]))
        return found

    def send(self, parts: list[bytes]) -> None:
        """Sends an observation to all clients that are not too slow for it.

        ZeroMQ gives each message to the next client in turn, so this sends one for each. A client may
        get that of a slow one, too; it only uses the newest.
        """
        with contextlib.suppress(zmq.Again):
            for _ in range(self.observers):
                self._observations.socket.send_multipart(parts, zmq.NOBLOCK)

    def close(self) -> None:
        self._commands.close()
        self._observations.close()
        self._context.destroy(linger=0)


class _Port:
    """A socket that listens, and its peers."""

    def __init__(self, context: zmq.Context[zmq.Socket[bytes]], kind: int, address: str, port: int):
        #: The address of each peer, by a number that no other peer has had.
        self.peers: dict[int, str] = {}
        self._last = 0
        #: The peers by their file descriptors, which ZeroMQ tells.
        self._by_descriptor: dict[int, int] = {}
        self.socket = made = context.socket(kind)
        made.setsockopt(zmq.LINGER, 0)
        made.setsockopt(zmq.SNDHWM, _OBSERVATIONS_WAITING)
        made.setsockopt(zmq.RCVHWM, _COMMANDS_PER_TURN)
        made.setsockopt(zmq.MAXMSGSIZE, MAX_COMMAND_BYTES)
        made.setsockopt(zmq.HEARTBEAT_IVL, _HEARTBEAT_MS)
        made.setsockopt(zmq.HEARTBEAT_TIMEOUT, _PEER_GONE_MS)
        made.setsockopt(zmq.IPV6, ":" in address)
        events = zmq.EVENT_ACCEPTED | zmq.EVENT_DISCONNECTED
        self._monitor = made.get_monitor_socket(events)
        host = f"[{address}]" if ":" in address else address
        made.bind(f"tcp://{host}:{port or '*'}")
        endpoint = made.getsockopt_string(zmq.LAST_ENDPOINT)
        self.number = int(endpoint.rpartition(":")[2])

    def client(self, descriptor: int) -> Optional[int]:
        return self._by_descriptor.get(descriptor)

    def look(self) -> tuple[list[int], list[tuple[int, str]]]:
        """The peers that have come, and those that have gone with their addresses."""
        came: list[int] = []
        gone: list[tuple[int, str]] = []
        while True:
            try:
                event = parse_monitor_message(self._monitor.recv_multipart(zmq.NOBLOCK))
            except zmq.Again:
                break
            descriptor = int(event["value"])
            if event["event"] == zmq.EVENT_ACCEPTED:
                self._last += 1
                self._by_descriptor[descriptor] = self._last
                self.peers[self._last] = _address(descriptor)
                came.append(self._last)
            else:
                peer = self._by_descriptor.pop(descriptor, None)
                if peer in came:
                    came.remove(peer)
                    del self.peers[peer]
                elif peer is not None:
                    gone.append((peer, self.peers.pop(peer)))
        return came, gone

    def close(self) -> None:
        self.socket.disable_monitor()
        self.socket.close()


def _address(descriptor: int) -> str:
    """That of the other side. It may have closed the connection already."""
    try:
        with socket.socket(fileno=os.dup(descriptor)) as peer:
            host, port = peer.getpeername()[:2]
        return f"{host}:{port}"
    except OSError:
        return "an unknown address"
