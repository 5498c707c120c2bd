"""A client for asyncio programs. IO.

::

    async with amber.aio.Client("192.168.2.201") as robot:
        scan = await robot.hokuyo().scan()
        async for scan in robot.hokuyo().scans():
            break

Everything here belongs to one event loop. For programs without
asyncio, see :mod:`amber.client`.
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import logging
import os
import random
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

from . import halt, pieces, proxies, schemas
from .device import MEDIATOR, Device
from .errors import (
    AmberError,
    BadAnswer,
    Closed,
    DriverDied,
    FrameError,
    NoAnswer,
    Refused,
    Unreachable,
)
from .frame import MAX_PART, Frame, Header, decode, encode
from .lease import Lease
from .liveness import Liveness
from .udp import PORT, UdpTransport
from .values import MotionState

__all__ = ["BUFFER", "DEADLINE", "PORT", "Client", "Proxy", "Robot", "Subscription", "Transport"]

#: The time to wait for an answer, in seconds.
DEADLINE = 1.0
#: The maximum number of queued values; then the oldest is dropped.
BUFFER = 64

#: How long a command waits for the report of its driver, in seconds. Drivers of this project
#: report at once; those of the original system never do.
_OUTCOME_WAIT = 0.25

_LOG = logging.getLogger("amber")

T = TypeVar("T")
Self = TypeVar("Self", bound="Client")
DriverMsg = schemas.DriverMsg
Envelope = schemas.Envelope
_SUBSCRIBE, _UNSUBSCRIBE = DriverMsg.SUBSCRIBE, DriverMsg.UNSUBSCRIBE


class Transport(Protocol):
    """The connection to the mediator: UDP, or the pipe of a driver."""

    def send(self, frame: bytes) -> None:
        """Sends a frame. Never blocks. Raises Unreachable if it could not be sent."""

    def close(self) -> None:
        """Ends it."""


class _Asked(NamedTuple):
    """A request without an answer so far."""

    device: Device
    message_class: Any
    future: asyncio.Future[Any]


class _UnderWay(NamedTuple):
    """A request in pieces."""

    device: Device
    upload: pieces.Upload


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
        #: The address of the mediator, as it was given.
        self.mediator_address: str = mediator or os.environ.get("AMBER_MEDIATOR") or "127.0.0.1"
        #: The time limit for an answer, in seconds.
        self.deadline: float = deadline
        #: How long commands that move something hold, in seconds; None for no limit.
        self.validity: float | None = validity
        #: The number of answers that were late or duplicated.
        self.late_answers: int = 0
        #: The number of invalid datagrams.
        self.malformed: int = 0
        self._transport: Transport | None = None
        self._last_number = random.randrange(1 << 20)
        self._pending: dict[int, _Asked] = {}
        self._feeds: dict[_FeedKey, list[Subscription[Any]]] = {}
        self._used: set[Device] = set()
        #: Whether the driver of a device reports outcomes of commands, as far as it is known.
        self._reports: dict[Device, bool] = {}
        self._liveness: Liveness | None = None
        self._mediator_answers = False
        self._has_waited_for_mediator = False
        self._is_driver = False
        self._pid = os.getpid()
        #: Joins messages that are longer than a frame.
        self._joiner = pieces.Joiner()
        #: Requests that are longer than a frame, by the numbers of their pieces.
        self._uploads: dict[int, _UnderWay] = {}
        self._last_long = random.randrange(1 << 20)
        self._pieces_timer: asyncio.TimerHandle | None = None

    # Connecting

    async def connect(self: Self) -> Self:
        """Opens the socket. Waits neither for the mediator nor for a network, which may come later.

        A client that was used in an event loop that has ended begins anew.
        Raises Unreachable if there is no such host.
        """
        self._leave_ended_loop()
        if self._transport is None:
            self._pid = os.getpid()
            self.over(await UdpTransport(self.mediator_address, _Owner(self)).open())
        return self

    def over(self, transport: Transport, is_driver: bool = False) -> Client:
        """Uses your own transport; pass its frames to :meth:`handle`."""
        self._transport = transport
        self._is_driver = is_driver
        self._announce()
        return self

    async def close(self) -> None:
        """Tells the mediator and all used devices that this client leaves."""
        if self._transport is None:
            return
        if os.getpid() != self._pid:  # the parent still uses it
            self._transport = None
            return
        if not self._is_driver:
            for device in [*(self._used - {MEDIATOR}), MEDIATOR]:
                self._try_send(device, DriverMsg(type=DriverMsg.CLIENT_DIED))
        liveness, self._liveness = self._liveness, None
        if liveness is not None:
            await liveness.end()
        if self._transport is not None:
            transport, self._transport = self._transport, None
            transport.close()
        self._forget(Closed("the client has been closed"))

    async def __aenter__(self: Self) -> Self:
        return await self.connect()

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"<amber.aio.Client of {self.mediator_address}>"

    def _announce(self) -> None:
        """The mediator notifies clients that have contacted it when drivers die."""
        self._try_send(MEDIATOR, DriverMsg(type=DriverMsg.PING, synNum=self._next_number()))

    def _leave_ended_loop(self) -> None:
        transport = self._transport
        if not isinstance(transport, UdpTransport):
            return
        if transport.loop is asyncio.get_running_loop():
            return
        if not transport.loop.is_closed():
            raise Closed("another event loop uses this client")
        transport.abandon()
        self._transport = self._liveness = self._pieces_timer = None
        self._uploads.clear()
        self._used.clear()
        # Nobody can wait for these any more.
        self._pending.clear()
        for subscription in self._subscriptions():
            subscription._changed, subscription._ended = None, True
        self._feeds.clear()

    def _forget(self, error: AmberError) -> None:
        self._fail_all(error)
        for subscription in self._subscriptions():
            subscription._end()
        self._feeds.clear()

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
        if pieces.is_about_pieces(envelope):
            if envelope.HasField("piece"):
                self._handle_piece(device, envelope.piece)
            else:
                self._handle_receipt(device, envelope)
            self._settle_pieces()
        elif envelope.type == DriverMsg.PING:
            self._try_send(device, DriverMsg(type=DriverMsg.PONG, ackNum=envelope.synNum))
        elif envelope.type == DriverMsg.DRIVER_DIED:
            self._driver_died(device, envelope.ackNum)
        elif envelope.ackNum != 0:
            self._answer(device, envelope.ackNum, frame.message)
        elif envelope.type == DriverMsg.DATA:
            self._publish(device, frame.message)

    def _handle_piece(self, device: Device, piece: Any) -> None:
        joined = self._joiner.piece(time.monotonic(), device, piece)
        if joined is not None:
            try:
                envelope = Envelope.FromString(joined.data)
            except Exception:
                envelope = Envelope()
            if envelope.type != DriverMsg.DATA or pieces.is_about_pieces(envelope):
                self.malformed += 1
            elif envelope.ackNum != 0:
                self._answer(device, envelope.ackNum, joined.data)
            else:
                self._publish(device, joined.data, joined.stream or 0)

    def _handle_receipt(self, device: Device, envelope: Any) -> None:
        """A receipt of a driver, or its call for pieces of a request."""
        is_receipt = envelope.HasField("receipt")
        about = envelope.receipt if is_receipt else envelope.missing
        found = self._uploads.get(about.message)
        if found is None or found.device != device:
            return
        if not is_receipt:
            found.upload.missing(about.index)
        elif found.upload.receipt(time.monotonic(), about.upto):
            del self._uploads[about.message]

    def _settle_pieces(self) -> None:
        """Sends pieces of requests and calls for missing ones, and counts what is lost."""
        calls, self._joiner.to_send = self._joiner.to_send, []
        for device, message in calls:
            self._try_send(device, message)
        for number, (device, upload) in list(self._uploads.items()):
            if upload.long.syn is not None and upload.long.syn not in self._pending:
                del self._uploads[number]  # its call has ended
                continue
            while (piece := upload.poll()) is not None:
                with contextlib.suppress(Unreachable):
                    self._send_bytes(device, piece)
        lost, self._joiner.lost = self._joiner.lost, []
        for message in lost:
            if message.stream is not None:
                for subscription in self._readers(message.sender, message.stream):
                    subscription.missed += 1
        times = [found.upload.due for found in self._uploads.values()]
        joiner = self._joiner.next_timeout()
        due = min(times if joiner is None else [*times, joiner], default=None)
        if due is None or self._transport is None:
            return
        loop = asyncio.get_running_loop()
        at = loop.time() + max(0.0, due - time.monotonic())
        timer = self._pieces_timer
        # Waking up too early costs less than a timer for each piece.
        if timer is None or at < timer.when():
            if timer is not None:
                timer.cancel()
            self._pieces_timer = loop.call_at(at, self._pieces_timeout)

    def _pieces_timeout(self) -> None:
        self._pieces_timer = None
        if self._transport is None:
            return
        now = time.monotonic()
        self._joiner.timeout(now)
        for number, (device, upload) in list(self._uploads.items()):
            verdict = upload.timeout(now)
            if verdict is pieces.Verdict.GOES_ON:
                continue
            del self._uploads[number]
            if verdict is pieces.Verdict.NOT_UNDERSTOOD:
                error = FrameError(_too_long(len(upload.long.data), device))
                asked = self._pending.get(upload.long.syn or 0)
                if asked is None:
                    _warn(error)
                elif not asked.future.done():
                    asked.future.set_exception(error)
        self._settle_pieces()

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

    def _publish(self, device: Device, data: bytes, stream: int | None = None) -> None:
        parsed: dict[Any, Any] = {}
        for subscription in self._subscriptions(device):
            kind = subscription._message_class
            if kind not in parsed:
                parsed[kind] = self._parsed(kind, data)
            if parsed[kind] is not None:
                subscription._deliver(parsed[kind], stream)

    def _parsed(self, message_class: Any, data: bytes) -> Any:
        try:
            return message_class.FromString(data)
        except Exception:
            self.malformed += 1
            return None

    def _driver_died(self, device: Device, number: int) -> None:
        self._reports.pop(device, None)
        if number == 0:
            self._joiner.forget(lambda sender: sender == device)
        error = DriverDied(f"{device} is unavailable; `amber status {device}` shows the reason")
        for key, asked in list(self._pending.items()):
            if asked.device == device and number in (0, key) and not asked.future.done():
                asked.future.set_exception(error)

    def _fail_all(self, error: AmberError) -> None:
        for asked in self._pending.values():
            if not asked.future.done():
                asked.future.set_exception(error)

    def _moved(self) -> None:
        """The mediator does not know this client by its new address."""
        self._announce()
        if self._liveness is not None and self._mediator_answers:
            self._liveness.moved()
        else:
            self._renew()

    # Outgoing messages

    def _send(self, device: Device, message: Any) -> None:
        transport = self._transport
        if transport is None:
            raise Closed("the client is not connected; use `async with`, or connect()")
        if os.getpid() != self._pid:
            raise Closed("the client belongs to the parent of this process; connect another one")
        if isinstance(transport, UdpTransport) and transport.loop.is_closed():
            raise Closed("the event loop of the client has ended; use `async with`, or connect()")
        data = message.SerializeToString()
        if device != MEDIATOR and message.type in (DriverMsg.DATA, _SUBSCRIBE):
            is_local = not isinstance(transport, UdpTransport) or transport.is_local
            joins = _JOINS[is_local]
            # An old driver may take the message only if it does not become longer.
            if len(data) + len(joins) <= MAX_PART or len(data) > MAX_PART:
                data += joins
            if len(data) > MAX_PART:
                return self._upload(device, message, data, is_local)
        transport.send(encode(Header(device.type, device.id), data))

    def _upload(self, device: Device, message: Any, data: bytes, is_local: bool) -> None:
        """Sends a request in pieces."""
        if len(data) > pieces.MAX_LONG:
            raise FrameError(f"{len(data)} bytes are too long (at most {pieces.MAX_LONG})")
        self._last_long = self._last_long + 1 & 0xFFFF_FFFF
        syn = message.synNum if message.HasField("synNum") else None
        long = pieces.Long(self._last_long, None, data, syn)
        size = pieces.LOCAL_PIECE_BYTES if is_local else pieces.PIECE_BYTES
        upload = pieces.Upload(time.monotonic(), long, size)
        self._uploads[long.number] = _UnderWay(device, upload)
        self._settle_pieces()

    def _send_bytes(self, device: Device, data: bytes) -> None:
        if self._transport is not None:
            self._transport.send(encode(Header(device.type, device.id), data))

    def _try_send(self, device: Device, message: Any) -> None:
        """Sends what is sent again later, or is of no use later."""
        with contextlib.suppress(Unreachable):
            self._send(device, message)

    def _next_number(self) -> int:
        """A number that no request without an answer has; 0 marks published data."""
        while True:
            self._last_number = self._last_number % 0xFFFF_FFFF + 1
            if self._last_number not in self._pending:
                return self._last_number

    def _sent(self, device: Device, message: Any, deadline: float) -> asyncio.Future[Any]:
        """Sends a request, and returns its answer: a future that ends with the deadline."""
        number = message.synNum = self._next_number()
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        # Not wait_for: before Python 3.12 it may swallow a cancellation.
        timer = loop.call_later(deadline, self._give_up, future, device, deadline)

        def end(_: asyncio.Future[Any]) -> None:
            timer.cancel()
            self._pending.pop(number, None)

        self._pending[number] = _Asked(device, type(message), future)
        future.add_done_callback(end)
        if device != MEDIATOR:
            self._used.add(device)
        try:
            self._send(device, message)
        except BaseException:
            future.cancel()
            raise
        return future

    async def _ask(self, device: Device, message: Any, deadline: float) -> Any:
        return await self._sent(device, message, deadline)

    def _give_up(self, future: asyncio.Future[Any], device: Device, deadline: float) -> None:
        if not future.done():
            future.set_exception(NoAnswer(self._no_answer(device, deadline)))
            if isinstance(self._transport, UdpTransport):
                self._transport.look_for_another_way()

    async def _hear_mediator(self) -> bool:
        """Whether the mediator answers. Waits for it once."""
        if not self._mediator_answers and not self._has_waited_for_mediator:
            self._has_waited_for_mediator = True
            with contextlib.suppress(NoAnswer, Unreachable):
                await self._ask(MEDIATOR, DriverMsg(type=DriverMsg.PING), _OUTCOME_WAIT)
        return self._mediator_answers

    def _no_answer(self, device: Device, deadline: float) -> str:
        text = f"no answer from {device} within {deadline:g} s"
        if self._is_driver or self._mediator_answers:
            return text
        return f"{text}; is a mediator running at {self.mediator_address}?"

    # Subscriptions

    def _readers(self, device: Device, field: int) -> list[Subscription[Any]]:
        """The subscriptions that miss a lost message whose first field is this one."""
        known = self._subscriptions(device)
        claimed = any(field in it._fields for it in known)
        # One that nobody claims belongs to all.
        return [it for it in known if not claimed or not it._fields or field in it._fields]

    def _subscriptions(self, device: Device | None = None) -> list[Subscription[Any]]:
        feeds = self._feeds.items()
        return [s for key, feed in feeds if device in (None, key.device) for s in feed]

    def _add(self, subscription: Subscription[Any]) -> None:
        feed = self._feeds.setdefault(subscription._feed, [])
        feed.append(subscription)
        self._used.add(subscription.device)
        if len(feed) == 1:
            self._try_send(subscription.device, subscription._start)
        else:
            self._change(feed[-2], subscription)
        if self._liveness is None:
            self._liveness = Liveness(self)

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
                self._try_send(subscription.device, subscription._stop)
            elif was_latest:
                self._change(subscription, feed[-1])

    def _change(self, old: Subscription[Any], new: Subscription[Any]) -> None:
        """The driver knows one subscription of a feed: the latest one."""
        if old._start.SerializeToString() != new._start.SerializeToString():
            self._try_send(old.device, old._stop)
            self._try_send(new.device, new._start)

    def _is_up(self, device: Device) -> None:
        """The driver is a new process."""
        self._reports.pop(device, None)
        for key, feed in self._feeds.items():
            if key.device == device:
                self._try_send(device, feed[-1]._start)

    def _renew(self) -> None:
        """Drivers may or may not have forgotten this client."""
        for key, feed in self._feeds.items():
            # An old driver would keep a second subscription in addition to the first one.
            self._try_send(key.device, feed[-1]._stop)
            self._try_send(key.device, feed[-1]._start)


#: What a client says in its requests: what it joins, by whether its mediator is on this computer.
_JOINS = {
    False: pieces.Ability().to_append(),
    True: pieces.Ability(piece_bytes=pieces.LOCAL_PIECE_BYTES).to_append(),
}

def _too_long(length: int, device: Device) -> str:
    return f"{length} bytes are too long for {device}: its driver takes at most {MAX_PART}"


#: Called with the reason why a command was not carried out.
Report = Callable[[AmberError], None]


def _warn(error: AmberError) -> None:
    _LOG.warning("a command was not carried out: %s", error)


class _Outcome(NamedTuple):
    """Reads what a driver reports about a command."""

    client: Client
    device: Device
    outcome: Any
    report: Report = _warn

    def read(self, answer: asyncio.Future[Any]) -> None:
        """Takes note that the driver reports."""
        if not answer.cancelled() and answer.exception() is None:
            self.client._reports[self.device] = True

    def error(self, answer: asyncio.Future[Any]) -> AmberError | None:
        """The reason why the command is not carried out."""
        if answer.cancelled() or isinstance(answer.exception(), (NoAnswer, Closed)):
            return None
        failed = answer.exception()
        if failed is not None:
            return failed if isinstance(failed, AmberError) else None
        refused = answer.result().Extensions[self.outcome].refused
        return Refused(f"{self.device} refused the command: {refused}") if refused else None

    def pass_on(self, answer: asyncio.Future[Any]) -> None:
        error = self.error(answer)
        if error is not None:
            self.report(error)


class Proxy:
    """One device, in its own messages. The typed proxies are built on this."""

    def __init__(
        self,
        client: Client,
        device: Device,
        deadline: float | None = None,
        report: Report | None = None,
    ) -> None:
        self.client = client
        self.device = device
        #: Whether :meth:`with_deadline` was called.
        self.has_own_deadline: bool = deadline is not None
        self.deadline: float = client.deadline if deadline is None else deadline
        self._report = report
        #: How long commands that move something hold, in seconds; None for no limit.
        self.validity: float | None = client.validity

    def with_deadline(self, seconds: float) -> Proxy:
        """The same device with another deadline."""
        other = self._copy()
        other.deadline, other.has_own_deadline = seconds, True
        return other

    def with_validity(self, seconds: float | None) -> Proxy:
        """The same device; commands of typed devices that move it hold only for this time."""
        other = self._copy()
        other.validity = seconds
        return other

    def without_waiting(self, on_refusal: Report | None = None) -> Proxy:
        """The same device, whose commands do not wait for the driver.

        If the driver then reports that it refuses a command, ``on_refusal`` is called with the
        error; without it, the logger ``amber`` writes a warning.
        """
        other = self._copy()
        other._report = on_refusal or _warn
        return other

    def _copy(self) -> Proxy:
        own = self.deadline if self.has_own_deadline else None
        other = Proxy(self.client, self.device, own, self._report)
        other.validity = self.validity
        return other

    def lease(
        self, name: str, *, force: bool = False, wait: bool = False, period: float = 2.0
    ) -> Lease:
        """The lease of the device, for ``async with``; see :class:`amber.lease.Lease`."""
        return Lease(self, name, force=force, wait=wait, period=period)

    async def motion_state(self) -> MotionState:
        """Who moves the device, and who has halted it.

        Raises NoAnswer if the device does not move, or if its driver knows neither leases nor
        halts.
        """
        return await halt.state(self)

    async def halt(self, name: str) -> MotionState:
        """Stops the device. It refuses motion until the halt is released, also after a restart of
        its driver. ``name`` says to people who halts it.

        Anybody may halt a device. This is no emergency stop: it needs the network, the mediator
        and the driver. Raises NoAnswer as :meth:`motion_state` does: then cut the power.
        """
        return await halt.change(self, True, name)

    async def release_halt(self, name: str) -> MotionState:
        """Releases a halt, whoever has halted the device.

        Raises Refused while another client holds the lease: only that one may release it.
        """
        return await halt.change(self, False, name)

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

    async def command(self, message: Any, want_outcome: Any, outcome: Any) -> None:
        """Sends a command, and asks the driver whether it carries the command out.

        ``want_outcome`` and ``outcome`` are the extensions of ``mediator.proto`` in the class of
        the message. Raises Refused. A driver that does not report is waited for once, for a
        quarter of a second. A missing report is no error: it or the command may be lost.
        """
        client, device, report = self.client, self.device, self._report
        message.type = DriverMsg.DATA
        if not (client._mediator_answers if report else await client._hear_mediator()):
            return await self.send(message)  # to the original system
        message.Extensions[want_outcome] = True
        answer = client._sent(device, message, max(self.deadline, _OUTCOME_WAIT))
        answer.add_done_callback(_Outcome(client, device, outcome).read)
        if report is not None:
            return answer.add_done_callback(_Outcome(client, device, outcome, report).pass_on)
        if client._reports.get(device) is False:
            return answer.add_done_callback(_Outcome(client, device, outcome, _warn).pass_on)
        await asyncio.wait({answer}, timeout=_OUTCOME_WAIT)
        if answer.done():
            error = _Outcome(client, device, outcome).error(answer)
            if error is not None:
                raise error
        else:
            client._reports.setdefault(device, False)
            answer.add_done_callback(_Outcome(client, device, outcome, _warn).pass_on)

    def subscription(
        self,
        read: Callable[[Any], T | None],
        start: Any = None,
        stop: Any = None,
        fields: frozenset[int] = frozenset(),
    ) -> Subscription[T]:
        """The published data of the device; ``read`` converts a message to a value, or None.

        ``start`` and ``stop`` are messages for devices that do not use
        SUBSCRIBE and UNSUBSCRIBE. ``fields`` are the numbers of the fields that ``read`` reads;
        empty: any.
        """
        return Subscription(
            self.client,
            self.device,
            read,
            start or DriverMsg(type=_SUBSCRIBE),
            stop or DriverMsg(type=_UNSUBSCRIBE),
            fields,
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
        fields: frozenset[int] = frozenset(),
    ) -> None:
        self.device = device
        #: The number of values that are lost: the reader was too slow, or a message that is longer
        #: than a frame did not arrive completely. Of such messages, only the newest waits.
        self.missed: int = 0
        #: Messages that did not fit the device.
        self.unreadable: int = 0
        self._client = client
        self._read = read
        self._start = start
        self._stop = stop
        self._fields = fields
        self._message_class = type(start)
        self._feed = _FeedKey(device, _request_of(start))
        #: Each with the stream of a message that came in pieces.
        self._values: collections.deque[tuple[T, int | None]] = collections.deque()
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
        return self._values.popleft()[0]

    def _deliver(self, message: Any, stream: int | None = None) -> None:
        try:
            value = self._read(message)
        except BadAnswer:
            self.unreadable += 1
            return
        if value is None:
            return
        if stream is not None:
            newer = [it for it in self._values if it[1] != stream]
            self.missed += len(self._values) - len(newer)
            self._values = collections.deque(newer)
        if len(self._values) == BUFFER:
            self._values.popleft()
            self.missed += 1
        self._values.append((value, stream))
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


class _Owner:
    """Connects the socket to its client."""

    def __init__(self, client: Client) -> None:
        self.received = client._handle_datagram
        self.unreachable = client._fail_all
        self.moved = client._moved


# A robot is a Client.
from .aio_robot import Robot  # noqa: E402
