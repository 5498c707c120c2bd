"""The UDP socket of a client, which follows changes of the network. IO.

A connected socket keeps the local address that it got when it was opened. When this computer gets
another address (another Wi-Fi, DHCP, a VPN), that socket is of no use for ever. Connecting a
second socket shows the local address that the system would choose now, and sends nothing. The
second one replaces the first if

- the old local address is gone, which is checked twice per second and after failed sends, or
- the mediator is silent, and the system would choose another address, or
- the mediator is silent, and its name stands for another address.

A socket that still works is never replaced: with another port, this client would be another one
to the mediator.
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import errno
import ipaddress
import socket
import time
from typing import Any, Protocol

from .errors import Unreachable

#: The default port of mediators.
PORT = 26233

#: The size of the receive buffer to ask for, in bytes: half a second of pictures. Linux gives at
#: most 416 kB, unless ``net.core.rmem_max`` is larger.
_RECEIVE_BUFFER = 4 << 20

#: Seconds between two checks whether the local address still exists.
_CHECK_EVERY = 0.5
#: The mediator counts as silent if nothing has arrived for this time.
_SILENCE = 1.0
#: Seconds between two look-ups of its name while it is silent.
_LOOK_UP_EVERY = 1.0
#: So many look-ups must return the known address before another one of the same name is tried.
_LOOK_UPS_PER_ADDRESS = 5
#: Datagrams that wait for the system. Then the newest are errors to their senders.
_WAITING = 64
#: Datagrams that are read in one turn of the event loop.
_AT_ONCE = 64
#: No program listens at the port: the error of Linux and macOS, and that of Windows.
_REFUSED = (ConnectionRefusedError, ConnectionResetError)
#: For loops such as the default one of Windows.
_CANNOT_WATCH = (
    "this event loop cannot watch sockets; use another one: "
    "asyncio.run(main(), loop_factory=asyncio.SelectorEventLoop)"
)


class Owner(Protocol):
    """What the socket reports to."""

    def received(self, datagram: bytes) -> None:
        """A datagram has arrived."""

    def unreachable(self, error: Unreachable) -> None:
        """The network reports that nothing reaches the mediator. Earlier requests are lost."""

    def moved(self) -> None:
        """The socket has another address, or the mediator has: it does not know this client."""


class UdpTransport:
    """The connection to a mediator at ``HOST`` or ``HOST:PORT``. Belongs to one event loop."""

    def __init__(self, mediator: str, owner: Owner) -> None:
        self._text = mediator
        self._name = host_and_port(mediator)
        self._owner = owner
        self._loop = asyncio.get_running_loop()
        self._socket: socket.socket | None = None
        self._mediator: Any = None
        self._local: Any = None
        self._why = f"there is no way to the mediator {mediator} yet"
        self._heard = time.monotonic()
        self._looked_up = 0.0
        self._look_ups = 0
        self._wants_look_up = False
        self._waiting: collections.deque[bytes] = collections.deque()
        self._watch: asyncio.Task[None] | None = None

    async def open(self) -> UdpTransport:
        """Looks up the host. If the network is not there yet, tries again until it is.

        Raises Unreachable if there is no such host.
        """
        try:
            self._take_first(await self._look_up())
        except socket.gaierror as error:
            self._why = f"cannot find the mediator {self._text}: {error.strerror}"
            if error.errno != socket.EAI_AGAIN:
                raise Unreachable(self._why) from error
        self._watch = self._loop.create_task(self._watch_network())
        return self

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        return self._loop

    @property
    def is_local(self) -> bool:
        """Whether the mediator is on this computer: no network then cuts long packets."""
        return self._mediator is not None and _is_loopback(self._mediator[1][0])

    def send(self, frame: bytes) -> None:
        """Raises Unreachable if it could not be sent."""
        for _ in range(2):
            if self._socket is None:
                break
            try:
                if self._waiting:
                    return self._wait_for_room(frame)
                self._socket.send(frame)
                return
            except BlockingIOError:
                return self._wait_for_room(frame)
            except _REFUSED as error:
                # The system reports the refusal of an earlier datagram instead of sending this one.
                self._failed(error)
            except OSError as error:
                if not self._leave_lost_address():
                    self._failed(error)
        raise Unreachable(self._why)

    def close(self) -> None:
        if self._watch is not None:
            self._watch.cancel()
        self._detach()

    def abandon(self) -> None:
        """Closes the socket after the event loop has ended."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def look_for_another_way(self) -> None:
        """Answers are missing: the way to the mediator may be another one now."""
        if time.monotonic() < self._heard + _SILENCE:
            return
        self._take_other_way()
        self._wants_look_up = True

    # Sockets

    def _attach(self, opened: socket.socket, mediator: Any) -> None:
        moved = self._socket is not None
        self._detach()
        self._socket, self._mediator = opened, mediator
        self._local = opened.getsockname()
        try:
            self._loop.add_reader(opened, self._readable)
        except NotImplementedError:
            self.abandon()
            raise RuntimeError(_CANNOT_WATCH) from None
        if moved:
            self._owner.moved()

    def _detach(self) -> None:
        if self._socket is not None:
            self._loop.remove_reader(self._socket)
            self._loop.remove_writer(self._socket)
            self._socket.close()
            self._socket = None
        self._waiting.clear()

    def _take_first(self, found: list[Any]) -> bool:
        for family, address in found:
            try:
                opened = _connected(family, address)
            except OSError as error:
                self._why = f"there is no way to the mediator {self._text}: {error.strerror}"
            else:
                self._attach(opened, (family, address))
                return True
        return False

    def _other_way(self) -> socket.socket | None:
        """A socket to the same mediator, if the system would choose another local address now."""
        try:
            opened = _connected(*self._mediator)
        except OSError:
            return None
        if opened.getsockname()[0] != self._local[0]:
            return opened
        opened.close()
        return None

    def _take_other_way(self) -> bool:
        other = self._other_way() if self._socket is not None else None
        if other is not None:
            self._attach(other, self._mediator)
        return other is not None

    def _leave_lost_address(self) -> bool:
        """Replaces a socket whose local address is gone."""
        if self._socket is None or _is_loopback(self._mediator[1][0]):
            return False
        with contextlib.closing(socket.socket(self._mediator[0], socket.SOCK_DGRAM)) as probe:
            try:
                probe.bind((self._local[0], 0, *self._local[2:]))
                return False
            except OSError as error:
                return error.errno == errno.EADDRNOTAVAIL and self._take_other_way()

    # Reading and writing

    def _readable(self) -> None:
        for _ in range(_AT_ONCE):
            if self._socket is None:
                return
            try:
                datagram = self._socket.recv(65536)
            except BlockingIOError:
                return
            except OSError as error:
                return self._failed(error)
            self._heard = time.monotonic()
            self._look_ups = 0
            self._owner.received(datagram)

    def _failed(self, error: OSError) -> None:
        if isinstance(error, _REFUSED):
            self._why = f"no mediator is listening at {self._text}"
        else:
            self._why = f"cannot reach the mediator {self._text}: {error.strerror}"
        self._owner.unreachable(Unreachable(self._why))
        self.look_for_another_way()

    def _wait_for_room(self, frame: bytes) -> None:
        if len(self._waiting) == _WAITING:
            raise Unreachable("the network takes no more datagrams", None)
        assert self._socket is not None
        self._loop.add_writer(self._socket, self._writable)
        self._waiting.append(frame)

    def _writable(self) -> None:
        assert self._socket is not None
        while self._waiting:
            try:
                self._socket.send(self._waiting[0])
            except BlockingIOError:
                return
            except OSError as error:
                self._failed(error)
            if self._waiting:
                self._waiting.popleft()
        if self._socket is not None:
            self._loop.remove_writer(self._socket)

    # The network

    async def _watch_network(self) -> None:
        while True:
            await asyncio.sleep(_CHECK_EVERY)
            is_new = self._socket is None
            if is_new or self._wants_look_up:
                await self._look_up_again()
            if is_new and self._socket is not None:
                self._owner.moved()
            self._leave_lost_address()

    async def _look_up_again(self) -> None:
        if time.monotonic() < self._looked_up + _LOOK_UP_EVERY:
            return
        self._wants_look_up = False
        try:
            found = await self._look_up()
        except OSError as error:
            self._why = f"cannot find the mediator {self._text}: {error.strerror}"
            return
        if self._socket is not None:
            # Other addresses of the same family first.
            found.sort(key=lambda it: it[0] != self._mediator[0])
            if self._mediator in found:
                self._look_ups += 1
                if self._look_ups % _LOOK_UPS_PER_ADDRESS != 0:
                    return
                at = found.index(self._mediator)
                found = found[at + 1 :] + found[:at]
        self._take_first(found)

    async def _look_up(self) -> list[Any]:
        self._looked_up = time.monotonic()
        found = await self._loop.getaddrinfo(*self._name, type=socket.SOCK_DGRAM)
        # All parts of an IPv6 address: without its scope, a link-local one is of no use.
        return [(family, address) for family, *_, address in found]


def host_and_port(text: str) -> tuple[str, int]:
    """``HOST``, ``HOST:PORT``, ``[V6]:PORT`` or a bare IPv6 address."""
    if text.startswith("["):
        host, _, port = text[1:].partition("]")
        port = port.lstrip(":")
    elif text.count(":") > 1:
        host, port = text, ""
    else:
        host, _, port = text.partition(":")
    try:
        return host, int(port or PORT)
    except ValueError:
        raise ValueError(f"{text!r} is not HOST or HOST:PORT") from None


def _connected(family: int, address: Any) -> socket.socket:
    opened = socket.socket(family, socket.SOCK_DGRAM)
    try:
        opened.setblocking(False)
        with contextlib.suppress(OSError):
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BUFFER)
        opened.connect(address)
    except BaseException:
        opened.close()
        raise
    return opened


def _is_loopback(address: str) -> bool:
    return ipaddress.ip_address(address.partition("%")[0]).is_loopback
