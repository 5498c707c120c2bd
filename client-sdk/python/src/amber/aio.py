"""A client for asyncio programs. IO.

::

    async with amber.aio.Client("192.168.2.201") as robot:
        scan = await robot.hokuyo().scan()
        async for scan in robot.hokuyo().scans():
            ...

Everything here belongs to one event loop. For programs without
asyncio, see :mod:`amber.client`.
"""

from __future__ import annotations

import asyncio
import collections
import itertools
import os
import random
import socket
import time
from collections.abc import AsyncIterator
from typing import (
    Any,
    Callable,
    Generic,
    NamedTuple,
    Protocol,
    TypeVar,
)

from . import proxies, schemas
from .device import MEDIATOR, Device
from .errors import AmberError, BadAnswer, Closed, DriverDied, FrameError, NoAnswer, Unreachable
from .frame import Frame, Header, decode, encode
from .lease import Lease

#: The default port of mediators.
PORT = 26233
#: The time to wait for an answer, in seconds.
DEADLINE = 1.0
#: The maximum number of queued values; then the oldest is dropped.
BUFFER = 64

_LIVENESS_PERIOD = 2.0
_MISSES_FOR_AN_OUTAGE = 2
_CLOCK_SLACK = 0.05

T = TypeVar("T")
DriverMsg = schemas.DriverMsg
Envelope = schemas.Envelope
_SUBSCRIBE, _UNSUBSCRIBE = DriverMsg.SUBSCRIBE, DriverMsg.UNSUBSCRIBE


class Transport(Protocol):
    """The connection to the mediator: UDP, or the pipe of a driver."""

    def send(self, frame: bytes) -> None:
        """Sends a frame, or drops it. Never blocks."""

    def close(self) -> None:
        """Ends it."""


class _Asked(NamedTuple):
    """A request without an answer so far."""

    device: Device
    message_class: Any
    future: asyncio.Future[Any]


class _FeedKey(NamedTuple):
    """A subscription of a client to a device: the driver keeps one for each key."""

    device: Device
    #: The field of the request that starts it; None for SUBSCRIBE.
    request: int | None


class Client(proxies.Devices):
    """A connection to a mediator.

    ``mediator`` is ``HOST`` or ``HOST:PORT`` (by default ``AMBER_MEDIATOR`` in the
    environment, or else this machine); ``deadline`` is the
    time limit for an answer in seconds. ``validity``: how long commands that move something hold,
    in seconds. The driver stops the device then, unless a later command came, also if this program
    has frozen. Repeat commands at least three times in this time.
    """

    def __init__(
        self,
        mediator: str | None = None,
        *,
        deadline: float = DEADLINE,
        validity: float | None = None,
    ) -> None:
        self.mediator_address = mediator or os.environ.get("AMBER_MEDIATOR") or "127.0.0.1"
        self.deadline = deadline
        self.validity = validity
        #: The number of answers that were late or duplicated.
        self.late_answers = 0
        #: The number of invalid datagrams.
        self.malformed = 0
        self._transport: Transport | None = None
        self._numbers = itertools.count(random.randrange(1, 1 << 20))
        self._pending: dict[int, _Asked] = {}
        self._feeds: dict[_FeedKey, list[Subscription[Any]]] = {}
        self._used: set[Device] = set()
        self._liveness: asyncio.Task[None] | None = None
        self._mediator_answers = False
        self._is_driver = False

    # Connecting

    async def connect(self) -> Client:
        """Opens the socket. Does not wait for the mediator, which may start later."""
        if self._transport is None:
            host, port = _host_and_port(self.mediator_address)
            loop = asyncio.get_running_loop()
            found: Any = await loop.getaddrinfo(host, port, type=socket.SOCK_DGRAM)
            endpoint, _ = await loop.create_datagram_endpoint(
                lambda: _Udp(self), remote_addr=found[0][4][:2], family=found[0][0]
            )
            self.over(_Endpoint(endpoint))
        return self

    def over(self, transport: Transport, is_driver: bool = False) -> Client:
        """Uses your own transport; pass its frames to :meth:`handle`."""
        self._transport = transport
        self._is_driver = is_driver
        # The mediator notifies clients that have contacted it when drivers die.
        self._send(MEDIATOR, DriverMsg(type=DriverMsg.PING, synNum=next(self._numbers)))
        return self

    async def close(self) -> None:
        """Tells the mediator and all used devices that this client leaves."""
        if self._transport is None:
            return
        if not self._is_driver:
            for device in [*(self._used - {MEDIATOR}), MEDIATOR]:
                self._send(device, DriverMsg(type=DriverMsg.CLIENT_DIED))
        if self._liveness is not None:
            self._liveness.cancel()
            await asyncio.gather(self._liveness, return_exceptions=True)
        transport, self._transport = self._transport, None
        transport.close()
        self._fail_all(Closed("the client has been closed"))
        for subscription in self._subscriptions():
            subscription._end()
        self._feeds.clear()

    async def __aenter__(self) -> Client:
        return await self.connect()

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    # Devices

    def device(self, device: str | Device) -> Proxy:
        """Any device, in its own messages: ``"dummy"``, ``"4:1"``."""
        return Proxy(self, Device.parse(device))

    # Incoming messages

    def handle(self, frame: Frame) -> None:
        """Handles a frame from your own transport."""
        device = Device(frame.header.device_type or 0, frame.header.device_id or 0)
        try:
            envelope = Envelope.FromString(frame.message)
        except Exception:
            self.malformed += 1
            return
        if not envelope.HasField("type"):  # missing or unknown
            self.malformed += 1
            return
        if device == MEDIATOR:
            self._mediator_answers = True
        if envelope.type == DriverMsg.PING:
            self._send(device, DriverMsg(type=DriverMsg.PONG, ackNum=envelope.synNum))
        elif envelope.type == DriverMsg.DRIVER_DIED:
            self._driver_died(device, envelope.ackNum)
        elif envelope.ackNum != 0:
            self._answer(device, envelope.ackNum, frame.message)
        elif envelope.type == DriverMsg.DATA:
            self._publish(device, frame.message)

    def _handle_datagram(self, datagram: bytes) -> None:
        try:
            frame = decode(datagram)
        except FrameError:
            self.malformed += 1
        else:
            self.handle(frame)

    def _answer(self, device: Device, number: int, data: bytes) -> None:
        asked = self._pending.get(number)
        if asked is not None and asked.device == device and not asked.future.done():
            message = self._parsed(asked.message_class, data)
            if message is not None:
                asked.future.set_result(message)
        elif device != MEDIATOR:  # the reply to the first PING is optional
            self.late_answers += 1

    def _publish(self, device: Device, data: bytes) -> None:
        parsed: dict[Any, Any] = {}
        for subscription in self._subscriptions(device):
            kind = subscription._message_class
            if kind not in parsed:
                parsed[kind] = self._parsed(kind, data)
            if parsed[kind] is not None:
                subscription._deliver(parsed[kind])

    def _parsed(self, message_class: Any, data: bytes) -> Any:
        try:
            return message_class.FromString(data)
        except Exception:
            self.malformed += 1
            return None

    def _driver_died(self, device: Device, number: int) -> None:
        error = DriverDied(f"{device} is unavailable; `amber status {device}` shows the reason")
        for key, asked in list(self._pending.items()):
            if asked.device == device and number in (0, key) and not asked.future.done():
                asked.future.set_exception(error)

    def _fail_all(self, error: AmberError) -> None:
        for asked in self._pending.values():
            if not asked.future.done():
                asked.future.set_exception(error)

    # Outgoing messages

    def _send(self, device: Device, message: Any) -> None:
        if self._transport is None:
            raise Closed("the client is not connected; use `async with`, or connect()")
        header = Header(device.type, device.id)
        self._transport.send(encode(header, message.SerializeToString()))

    async def _ask(self, device: Device, message: Any, deadline: float) -> Any:
        number = message.synNum = next(self._numbers) & 0xFFFF_FFFF
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        # Not wait_for: before Python 3.12 it may swallow a cancellation.
        timer = loop.call_later(deadline, self._give_up, future, device, deadline)
        self._pending[number] = _Asked(device, type(message), future)
        if device != MEDIATOR:
            self._used.add(device)
        try:
            self._send(device, message)
            return await future
        finally:
            timer.cancel()
            del self._pending[number]

    def _give_up(self, future: asyncio.Future[Any], device: Device, deadline: float) -> None:
        if not future.done():
            future.set_exception(NoAnswer(self._no_answer(device, deadline)))

    def _no_answer(self, device: Device, deadline: float) -> str:
        text = f"no answer from {device} within {deadline:g} s"
        if self._is_driver or self._mediator_answers:
            return text
        return f"{text}; is a mediator running at {self.mediator_address}?"

    # Subscriptions

    def _subscriptions(self, device: Device | None = None) -> list[Subscription[Any]]:
        feeds = self._feeds.items()
        return [s for key, feed in feeds if device in (None, key.device) for s in feed]

    def _add(self, subscription: Subscription[Any]) -> None:
        feed = self._feeds.setdefault(subscription._feed, [])
        feed.append(subscription)
        self._used.add(subscription.device)
        if len(feed) == 1:
            self._send(subscription.device, subscription._start)
        else:
            self._change(feed[-2], subscription)
        if self._liveness is None:
            self._liveness = asyncio.get_running_loop().create_task(self._watch_mediator())

    def _remove(self, subscription: Subscription[Any]) -> None:
        feed = self._feeds.get(subscription._feed, [])
        if subscription not in feed:
            return
        was_latest = feed[-1] is subscription
        feed.remove(subscription)
        if not feed:
            del self._feeds[subscription._feed]
        if self._transport is not None:
            if not feed:
                self._send(subscription.device, subscription._stop)
            elif was_latest:
                self._change(subscription, feed[-1])

    def _change(self, old: Subscription[Any], new: Subscription[Any]) -> None:
        """The driver knows one subscription of a feed: the latest one."""
        if old._start.SerializeToString() != new._start.SerializeToString():
            self._send(old.device, old._stop)
            self._send(new.device, new._start)

    def _subscribe_again(self, device: Device) -> None:
        """The driver is a new process."""
        for key, feed in self._feeds.items():
            if key.device == device:
                self._send(device, feed[-1]._start)

    def _renew(self) -> None:
        """Drivers may or may not have forgotten this client."""
        for key, feed in self._feeds.items():
            # An old driver would keep a second subscription in addition to the first one.
            self._send(key.device, feed[-1]._stop)
            self._send(key.device, feed[-1]._start)

    async def _watch_mediator(self) -> None:
        """Subscribes again if the mediator or a driver was restarted or forgot this client."""
        events = self.mediator().events()
        if self._is_driver:  # a driver ends with its mediator
            await self._follow(events)
        reader = asyncio.get_running_loop().create_task(self._follow(events.open()))
        started: float | None = None
        known_as = 0
        missed = 0
        try:
            while True:
                try:
                    uptime, client_id = await self._uptime_and_id()
                except (AmberError, OSError):
                    missed += 1
                    await asyncio.sleep(_LIVENESS_PERIOD / 2)
                    continue
                now = time.monotonic() - uptime
                restarted = started is not None and now > started + _CLOCK_SLACK + DEADLINE
                forgotten = known_as != 0 and client_id not in (0, known_as)
                if restarted or forgotten or missed >= _MISSES_FOR_AN_OUTAGE:
                    self._renew()
                started, missed = now, 0
                known_as = client_id or known_as
                await asyncio.sleep(_LIVENESS_PERIOD)
        finally:
            reader.cancel()
            await asyncio.gather(reader, return_exceptions=True)

    async def _uptime_and_id(self) -> tuple[float, int]:
        request = DriverMsg(type=DriverMsg.DATA)
        request.Extensions[schemas.mediator.request].get_statistics.SetInParent()
        answer = await self._ask(MEDIATOR, request, _LIVENESS_PERIOD)
        statistics = answer.Extensions[schemas.mediator.reply].statistics
        return float(statistics.uptime_ms) / 1000.0, int(statistics.client_id)

    async def _follow(self, events: Subscription[Any]) -> None:
        async for event in events:
            if event.kind == schemas.mediator.Event.DEVICE_UP:
                self._subscribe_again(Device(event.device.type, event.device.id))


class Proxy:
    """One device, in its own messages. The typed proxies are built on this."""

    def __init__(self, client: Client, device: Device, deadline: float | None = None) -> None:
        self.client = client
        self.device = device
        #: Whether :meth:`with_deadline` was called.
        self.has_own_deadline = deadline is not None
        self.deadline = client.deadline if deadline is None else deadline
        #: How long commands that move something hold, in seconds; None for no limit.
        self.validity = client.validity

    def with_deadline(self, seconds: float) -> Proxy:
        """The same device with another deadline."""
        other = Proxy(self.client, self.device, seconds)
        other.validity = self.validity
        return other

    def with_validity(self, seconds: float | None) -> Proxy:
        """The same device; commands of typed devices that move it hold only for this time."""
        other = Proxy(self.client, self.device, self.deadline if self.has_own_deadline else None)
        other.validity = seconds
        return other

    def lease(
        self, name: str, *, force: bool = False, wait: bool = False, period: float = 2.0
    ) -> Lease:
        """The lease of the device, for ``async with``; see :class:`amber.lease.Lease`."""
        return Lease(self, name, force=force, wait=wait, period=period)

    async def ping(self) -> float:
        """Measures the round-trip time of a PING to the driver, in seconds."""
        start = time.perf_counter()
        await self.client._ask(self.device, DriverMsg(type=DriverMsg.PING), self.deadline)
        return time.perf_counter() - start

    async def request(self, message: Any) -> Any:
        """Sends a request, and returns its answer, which has the class of the request.

        Raises NoAnswer or DriverDied.
        A request is never repeated: only you know whether that is harmless.
        """
        message.type = DriverMsg.DATA
        answer = await self.client._ask(self.device, message, self.deadline)
        if answer.type != DriverMsg.DATA:
            raise BadAnswer(f"{self.device} answered with a message of type {answer.type}")
        return answer

    async def send(self, message: Any) -> None:
        """Sends a command that has no answer."""
        message.type = DriverMsg.DATA
        self.client._used.add(self.device)
        self.client._send(self.device, message)

    def subscription(
        self,
        read: Callable[[Any], T | None],
        start: Any = None,
        stop: Any = None,
    ) -> Subscription[T]:
        """The published data of the device; ``read`` converts a message to a value, or None.

        ``start`` and ``stop`` are messages for devices that do not use
        SUBSCRIBE and UNSUBSCRIBE.
        """
        return Subscription(
            self.client,
            self.device,
            read,
            start or DriverMsg(type=_SUBSCRIBE),
            stop or DriverMsg(type=_UNSUBSCRIBE),
        )

    def messages(self, message_class: Any = DriverMsg) -> Subscription[Any]:
        """All publications of the device, as DriverMsg."""
        start, stop = (message_class(type=kind) for kind in (_SUBSCRIBE, _UNSUBSCRIBE))
        return self.subscription(lambda message: message, start, stop)


class Subscription(Generic[T]):
    """The publications of a device: an asynchronous iterator.

    It starts with the first ``async for`` (or with ``async with``), continues
    after a restart of the driver or the mediator, and ends with the loop or
    with :meth:`close`. A reader that is too slow misses the oldest values.
    """

    def __init__(
        self,
        client: Client,
        device: Device,
        read: Callable[[Any], T | None],
        start: Any,
        stop: Any,
    ) -> None:
        self.device = device
        #: The number of values dropped because the reader was too slow.
        self.missed = 0
        #: Messages that did not fit the device.
        self.unreadable = 0
        self._client = client
        self._read = read
        self._start = start
        self._stop = stop
        self._message_class = type(start)
        self._feed = _FeedKey(device, _request_of(start))
        self._values: collections.deque[T] = collections.deque()
        # Before Python 3.10, an event belongs to the loop in which it is made.
        self._changed: asyncio.Event | None = None
        self._ended = False

    def open(self) -> Subscription[T]:
        """Subscribes now, if that has not been done yet."""
        self._opened()
        return self

    def _opened(self) -> asyncio.Event:
        if self._changed is None:
            self._changed = asyncio.Event()
            self._client._add(self)
        return self._changed

    def close(self) -> None:
        """Unsubscribes."""
        if self._changed is not None and not self._ended:
            self._client._remove(self)
        self._end()

    async def __aenter__(self) -> Subscription[T]:
        return self.open()

    async def __aexit__(self, *_: object) -> None:
        self.close()

    def __aiter__(self) -> AsyncIterator[T]:
        return self._iterate()

    async def _iterate(self) -> AsyncIterator[T]:
        try:
            while True:
                value = await self.next()
                if value is None:
                    return
                yield value
        finally:
            self.close()

    async def next(self) -> T | None:
        """The next value; None when the subscription has ended."""
        changed = self._opened()
        while not self._values:
            if self._ended:
                return None
            changed.clear()
            await changed.wait()
        return self._values.popleft()

    def _deliver(self, message: Any) -> None:
        try:
            value = self._read(message)
        except BadAnswer:
            self.unreadable += 1
            return
        if value is None:
            return
        if len(self._values) == BUFFER:
            self._values.popleft()
            self.missed += 1
        self._values.append(value)
        self._wake()

    def _end(self) -> None:
        self._ended = True
        self._wake()

    def _wake(self) -> None:
        if self._changed is not None:
            self._changed.set()


def _request_of(start: Any) -> int | None:
    """The field of the request that starts a stream; None for SUBSCRIBE."""
    if start.type == _SUBSCRIBE:
        return None
    return min((field.number for field, _ in start.ListFields() if field.is_extension), default=0)


def _host_and_port(text: str) -> tuple[str, int]:
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


class _Endpoint:
    def __init__(self, endpoint: asyncio.DatagramTransport) -> None:
        self._endpoint = endpoint

    def send(self, frame: bytes) -> None:
        self._endpoint.sendto(frame)

    def close(self) -> None:
        self._endpoint.close()


class _Udp(asyncio.DatagramProtocol):
    def __init__(self, client: Client) -> None:
        self._client = client

    def datagram_received(self, data: bytes, addr: Any) -> None:
        self._client._handle_datagram(data)

    def error_received(self, exc: Exception) -> None:
        if isinstance(exc, ConnectionRefusedError):
            where = self._client.mediator_address
            self._client._fail_all(
                Unreachable(f"no mediator is listening at {where}; start one with `amber demo`")
            )
