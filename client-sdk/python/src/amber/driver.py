"""Drivers: programs that the mediator starts, one per device. IO.

::

    my = amber.load_proto("thermometer.proto")

    class Thermometer(amber.Driver):
        period = 1.0                       # seconds between two publications

        def request(self, request):        # handles a request of a client
            return self.publish()

        def publish(self):                 # the data for subscribers
            message = amber.DriverMsg()
            message.Extensions[my.celsius] = read_sensor()
            return message

    amber.serve(Thermometer())

One thread calls the methods of a driver, one after the other, so they
need no locks and may take long: another thread answers PINGs meanwhile.
"""

from __future__ import annotations

import collections
import functools
import os
import random
import select
import signal
import sys
import threading
import time
import traceback
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO, Callable

from . import aio, motion, pieces, schemas
from .errors import FrameError, Refused
from .frame import MAX_PART, Frame, FrameReader, Header, encode
from .schemas import DriverMsg
from .wire import claim_stdout

if TYPE_CHECKING:
    from .client import Client

#: The maximum number of queued requests; then the oldest is dropped.
WAITING = 256
#: The maximum size of a description that a mediator keeps.
DESCRIPTION_BYTES = 16_000
#: The longest reason of a refusal, in characters.
REASON = 200


@dataclass(frozen=True)
class Request:
    """A request of a client."""

    #: A DriverMsg of type DATA.
    message: Any
    #: The client: a number that is valid until :meth:`Driver.client_gone`.
    client: int
    #: Whether an answer is expected (the message has a synNum).
    wants_answer: bool


@dataclass
class Timer:
    """Work that is repeated."""

    period_s: float
    #: When it was done last, or when it was requested.
    last_s: float
    work: Callable[[], None]


class Driver:
    """Base class of a driver. Override the methods that the device needs."""

    #: Seconds between two calls of :meth:`publish`; None if it publishes with
    #: :meth:`send_to_subscribers` only.
    period: float | None = None
    #: The class of the messages of requests. ``load_proto(...).DriverMsg`` for a file that has a
    #: number or a name of another one.
    message_class: Any = DriverMsg
    #: Whether an outcome follows every request that wants one; clients that ask are told so.
    reports_outcomes = False

    _pipe: _Pipe | None = None

    def start(self) -> None:
        """Called once, before anything else. Open the device here."""

    def request(self, request: Request) -> Any:
        """Handles a request. Return the DriverMsg that answers it, or None."""
        log("ignored an unknown request:", str(request.message).strip() or "(empty)")
        return None

    def publish(self) -> Any:
        """Returns the DriverMsg for subscribers every :attr:`period` seconds, or None.

        Called only while there are subscribers.
        """
        return None

    def client_gone(self, client: int) -> None:
        """A client left or was lost. Stop all motion that it started."""

    def stop(self) -> None:
        """Called last: stdin was closed, or SIGTERM arrived. Bring the device to a safe state."""

    @property
    def subscribers(self) -> tuple[int, ...]:
        """The subscribed clients, in order of their numbers."""
        return tuple(sorted(self._serving().subscribers))

    def send_to_subscribers(self, message: Any) -> None:
        """Publishes a message now. May be called from any thread.

        A message that is longer than a frame (32 767 bytes) travels in pieces, to the subscribers
        that join them; others do not get it.
        """
        self._serving().publish(message)

    def trouble(self, why: str) -> None:
        """Reports that the device does not work although the driver does: one
        sentence for people, such as "/dev/ttyACM0 does not exist".

        ``amber events``, ``amber devices`` and ``amber status`` show it until
        :meth:`recovered` or the end of the driver. Saying the same again does
        nothing; of several troubles the last one counts. More than 200
        characters are cut off. It is not logged. May be called from any
        thread. A mediator of the original system is not told.
        """
        self._serving().say_health(" ".join(why.split())[:200] or "the device does not work")

    def recovered(self) -> None:
        """Reports that the device works, which is the initial state.
        May be called from any thread, at any rate."""
        self._serving().say_health(None)

    @property
    def robot(self) -> Client:
        """Other devices of the same robot, used over this driver's own pipe.

        Use it from the methods of the driver or from your own threads.
        """
        return self._serving().robot()

    @property
    def _timers(self) -> dict[Any, Timer]:
        return self._serving().timers

    #: Whether :meth:`client_gone` stops what the client moved. If not, the driver gets the request
    #: that stops, if its description has one (``moves``).
    handles_gone_clients: bool = False

    @property
    def _moves(self) -> motion.Moves | None:
        """The requests that move something."""
        return None

    @property
    def _description(self) -> bytes:
        """The description of the device, for the mediator."""
        return b""

    def _forget_client(self, client: int) -> None:
        """Ends the streams of a client."""

    def _serving(self) -> _Pipe:
        if self._pipe is None:
            raise RuntimeError("the driver is not running yet; amber.serve() starts it")
        return self._pipe


def serve(driver: Driver) -> None:
    """Runs a driver on stdin and stdout until its stdin ends or SIGTERM comes.

    stdout carries frames only, so ``print`` writes to stderr. In a process that
    a mediator of this project started, this applies from ``import amber``. With
    another parent (the original mediator, a shell script) it begins here; call
    :func:`amber.claim_stdout` first if your program prints before.
    """
    if sys.stdin.isatty():
        log("this is a driver: a mediator starts it, e.g. with")
        log(f"  amber mediator --driver '201:0=python3 {sys.argv[0]}'")
        log(f"or check it with `amber check -- python3 {sys.argv[0]}`")
    pipe = _Pipe(driver, claim_stdout())
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, lambda *_: pipe.end())
        signal.signal(signal.SIGINT, lambda *_: pipe.end())
    pipe.run(sys.stdin.fileno())


def failure(error: Exception) -> Refused:
    """The refusal of a request that the driver could not handle."""
    device = os.environ.get("AMBER_DEVICE", "DEVICE")
    hint = f"`amber logs {device}` shows where"
    told = f"the driver failed: {type(error).__name__}: {error}"[: REASON - len(hint) - 2]
    return Refused(f"{told}; {hint}", "FAILED")


def _wants_outcome(message: Any) -> bool:
    known = DriverMsg.FromString(message.SerializeToString())
    return bool(known.Extensions[schemas.mediator.want_outcome])


def _outcome_of_failure(message: Any, error: Exception) -> Any:
    """The answer for clients that ask for the outcome of their requests."""
    if not _wants_outcome(message):
        return None
    answer = DriverMsg(type=DriverMsg.DATA)
    answer.Extensions[schemas.mediator.outcome].refused = str(failure(error))
    return answer


def log(*words: object) -> None:
    """Writes a line to the mediator's log."""
    print(*words, file=sys.stderr, flush=True)


class _Pipe:
    """One thread reads, one calls the driver, and any thread may write."""

    def __init__(self, driver: Driver, output: BinaryIO) -> None:
        self.subscribers: dict[int, None] = {}
        #: Changed and used by the main thread only.
        self.timers: dict[Any, Timer] = {}
        self.dropped = 0
        self._driver = driver
        self._output = output
        self._writing = threading.Lock()
        self._changed = threading.Condition()
        self._work: collections.deque[_Work] = collections.deque()
        self._ended = False
        self._robot: Client | None = None
        self._robot_lock = threading.Lock()
        # The problem of the device according to the last report.
        self._trouble: str | None = None
        self._trouble_lock = threading.Lock()
        driver._pipe = self
        # Lease, halt and expiry, if the device moves. The lock protects the control.
        self._moves = driver._moves
        halts = motion.read_halts(os.environ.get("AMBER_HALTED", ""))
        self._control = motion.Control(next(iter(halts.values()), None))
        self._control_lock = threading.Lock()
        self._input_fd = -1
        # Messages that are longer than a frame.
        self._joiner = pieces.Joiner(gives_receipts=True)
        self._pacer = _Pacer(self)

    # The main thread calls the driver, because it receives signals.

    def run(self, input_fd: int) -> None:
        self._input_fd = input_fd
        reader = threading.Thread(target=self._read, args=(input_fd,), daemon=True)
        try:
            self._driver.start()
            self._describe(self._driver._description)
            reader.start()
            self._call_driver()
        finally:
            self._driver.stop()

    def end(self) -> None:
        # No lock: a signal may arrive while this thread holds it.
        self._ended = True

    def _call_driver(self) -> None:
        due = time.monotonic() + (self._driver.period or 0.0)
        while True:
            with self._changed:
                while not self._work and not self._ended:
                    wait = self._until(due)
                    if wait is not None and wait <= 0:
                        break
                    # Wakes up regularly even without work, because signals only set a flag.
                    self._changed.wait(min(0.2, wait) if wait is not None else 0.2)
                if self._ended and not self._work:
                    return
                work = self._work.popleft().call if self._work else None
            self._motion_timeout()
            if work is not None:
                self._guarded(work)
            period = self._driver.period
            if period is not None and time.monotonic() >= due:
                due = max(due + period, time.monotonic())
                if self.subscribers:
                    self._guarded(lambda: self.publish(self._driver.publish()))
            for timer in list(self.timers.values()):
                now = time.monotonic()
                if now >= timer.last_s + timer.period_s:
                    timer.last_s += timer.period_s
                    if now >= timer.last_s + timer.period_s:
                        timer.last_s = now  # too slow: no backlog
                    self._guarded(timer.work)

    def _until(self, due: float) -> float | None:
        times = [timer.last_s + timer.period_s for timer in self.timers.values()]
        if self._driver.period is not None and self.subscribers:
            times.append(due)
        motion_due = self._control.next_timeout() if self._moves is not None else None
        if motion_due is not None:
            times.append(motion_due)
        return min(times) - time.monotonic() if times else None

    def _guarded(self, work: Callable[[], Any]) -> None:
        """An error in one request must not end the driver for other clients."""
        try:
            work()
        except BrokenPipeError:
            self._ended = True
        except Exception:
            log(traceback.format_exc().strip())

    # The thread that reads.

    def _read(self, input_fd: int) -> None:
        frames = FrameReader()
        try:
            while True:
                piece = os.read(input_fd, 65536)
                if not piece:
                    break
                for frame in frames.feed(piece):
                    self._handle(frame)
        except (FrameError, OSError) as error:
            log("stdin:", error)
        with self._changed:
            self._ended = True
            # Nothing can receive the answers to waiting requests any more.
            self._work.clear()
            self._changed.notify()

    def _handle(self, frame: Frame) -> None:
        clients = frame.header.clients
        if self._robot is not None and not clients and frame.header.device_type is not None:
            self._robot._handle(frame)  # a reply of another device
            return
        envelope = _envelope(frame.message)
        if pieces.is_about_pieces(envelope):
            return self._handle_pieces(frame, envelope)
        if envelope.type in (DriverMsg.DATA, DriverMsg.SUBSCRIBE):
            self._pacer.note(clients, pieces.Ability.stated(envelope))
        try:
            message = self._driver.message_class.FromString(frame.message)
        except Exception as error:
            return log("ignored an invalid DriverMsg:", error)
        if not message.HasField("type"):
            return log("ignored a message without a known type")
        if message.type == DriverMsg.PING:
            pong = DriverMsg(type=DriverMsg.PONG)
            if message.HasField("synNum"):
                pong.ackNum = message.synNum
            if self._driver.reports_outcomes and _wants_outcome(message):
                pong.Extensions[schemas.mediator.outcome].SetInParent()
            self._send(frame.header, pong)
        elif message.type == DriverMsg.DATA:
            if self._moves is not None:
                terms = DriverMsg.FromString(frame.message)
                if not self._is_for_control(frame.header, terms):
                    self._enqueue_command(frame.header, message, terms)
                return
            self._enqueue(lambda: self._answer(frame.header, message), may_drop=True)
        elif message.type == DriverMsg.SUBSCRIBE:
            self._enqueue(lambda: self._subscribe(clients))
        elif message.type == DriverMsg.UNSUBSCRIBE:
            self._enqueue(lambda: self._unsubscribe(clients))
        elif message.type == DriverMsg.CLIENT_DIED:
            for client in clients:
                self._pacer.forget(client)
            self._joiner.forget(lambda sender: sender in clients)
            if self._moves is not None:
                with self._control_lock:
                    for client in clients:
                        stops = not self._driver.handles_gone_clients
                        self._control.client_gone(time.monotonic(), client, stops)
                self._settle()
            self._enqueue(lambda: self._forget(clients))

    def _handle_pieces(self, frame: Frame, envelope: Any) -> None:
        """A piece of a request, or a call for pieces of an earlier message."""
        clients = frame.header.clients
        if not clients:
            return log("ignored a request without a client")
        if envelope.HasField("missing"):
            self._pacer.missing(clients[0], envelope.missing)
        if not envelope.HasField("piece"):
            return
        now = time.monotonic()
        joined = self._joiner.piece(now, clients[0], envelope.piece)
        self._joiner.timeout(now)
        messages, self._joiner.to_send = self._joiner.to_send, []
        for client, message in messages:
            self._send(Header(clients=(client,)), message)
        self._joiner.lost.clear()
        if joined is None:
            return
        if pieces.is_about_pieces(_envelope(joined.data)):
            return log("ignored a piece in pieces")
        self._handle(Frame(frame.header, joined.data))

    def _enqueue(
        self, work: Callable[[], None], may_drop: bool = False, moved_by: int | None = None
    ) -> None:
        with self._changed:
            if may_drop and sum(1 for it in self._work if it.may_drop) >= WAITING:
                for index, it in enumerate(self._work):
                    if it.may_drop:
                        del self._work[index]
                        break
                self.dropped += 1
                if self.dropped & (self.dropped - 1) == 0:
                    log(f"too slow: {self.dropped} requests were dropped so far")
            self._work.append(_Work(work, may_drop, moved_by))
            self._changed.notify()

    # Lease, halt and expiry.

    def _is_for_control(self, header: Header, terms: Any) -> bool:
        """Answers a request for the lease or a halt. Returns whether it is one."""
        with self._control_lock:
            client = header.clients[0] if header.clients else 0
            state = self._control.request(time.monotonic(), client, terms)
        self._settle()
        if state is not None and terms.HasField("synNum"):
            answer = DriverMsg(type=DriverMsg.DATA, ackNum=terms.synNum)
            answer.Extensions[schemas.motion.motion_state].CopyFrom(state)
            self._send(header, answer)
        return state is not None

    def _enqueue_command(self, header: Header, message: Any, terms: Any) -> None:
        assert self._moves is not None
        what = self._moves.motion(message)
        valid_until = for_client = None
        if terms.HasExtension(schemas.motion.valid_ms):
            valid_until = time.monotonic() + terms.Extensions[schemas.motion.valid_ms] / 1000
        if terms.HasExtension(schemas.motion.for_client):
            for_client = terms.Extensions[schemas.motion.for_client]
        client = header.clients[0] if header.clients else 0

        def work() -> None:
            try:
                with self._control_lock:
                    now = time.monotonic()
                    self._control.command(now, what, client, for_client, valid_until)
            except motion.Refusal as refusal:
                self._refuse(header, message, str(refusal))
            else:
                self._answer(header, message)
            self._settle()

        moved_by = client if what > motion.STOPS else None
        self._enqueue(work, may_drop=True, moved_by=moved_by)

    def _refuse(self, header: Header, message: Any, why: str) -> None:
        assert self._moves is not None
        answer = self._moves.refusal(message, why)
        if answer is not None and message.HasField("synNum"):
            answer.type = DriverMsg.DATA
            answer.ackNum = message.synNum
            self._send(header, answer)

    def _motion_timeout(self) -> None:
        if self._moves is not None:
            due = self._control.next_timeout()
            if due is not None and due <= time.monotonic():
                self._let_reader_catch_up()
            with self._control_lock:
                self._control.timeout(time.monotonic())
            self._settle()

    def _let_reader_catch_up(self) -> None:
        """A request that waits in the pipe may keep a lease that ends now."""
        for _ in range(20):
            if self._ended or os.name != "posix":
                return
            if not select.select([self._input_fd], [], [], 0)[0]:
                return
            time.sleep(0.005)

    def _settle(self) -> None:
        """Carries out what lease, halt and expiry have decided."""
        assert self._moves is not None
        with self._control_lock:
            stop = self._control.poll_stop()
            now = time.monotonic()
            reports = list(iter(lambda: self._control.poll_report(now), None))
        if stop is not None:
            with self._changed:
                keep = [it for it in self._work if it.moved_by not in stop.outdated]
                self._work = collections.deque(keep)
                if stop.is_needed and self._moves.stop is not None:
                    request = Request(self._moves.stop(), stop.client, wants_answer=False)
                    call = functools.partial(self._driver.request, request)
                    self._work.appendleft(_Work(call, False, None))
                self._changed.notify()
        for report in reports if _is_under_amber() else ():
            message = DriverMsg(type=DriverMsg.DATA)
            message.Extensions[schemas.motion.motion_report].CopyFrom(report)
            self._send(Header(), message)

    # Work found by the reader, executed in the main thread.

    def _answer(self, header: Header, message: Any) -> None:
        wants_answer = bool(message.HasField("synNum"))
        client = header.clients[0] if header.clients else 0
        try:
            answer = self._driver.request(Request(message, client, wants_answer))
        except BrokenPipeError:
            raise
        except Exception as error:
            log(traceback.format_exc().strip())
            answer = _outcome_of_failure(message, error)
        if answer is not None and wants_answer:
            answer.type = DriverMsg.DATA
            answer.ackNum = message.synNum
            self._send(header, answer)

    def _subscribe(self, clients: tuple[int, ...]) -> None:
        for client in clients:
            self.subscribers[client] = None

    def _unsubscribe(self, clients: tuple[int, ...]) -> None:
        for client in clients:
            self.subscribers.pop(client, None)

    def _forget(self, clients: tuple[int, ...]) -> None:
        self._unsubscribe(clients)
        for client in clients:
            self._driver._forget_client(client)
            self._driver.client_gone(client)

    # Writing, from any thread.

    def publish(self, message: Any) -> None:
        self.publish_to(tuple(sorted(self.subscribers)), message)

    def publish_to(self, clients: tuple[int, ...], message: Any) -> None:
        if message is not None and clients:
            message.type = DriverMsg.DATA
            message.ackNum = 0  # an ackNum of 0 marks published data
            self._send(Header(clients=clients), message)

    def _describe(self, files: bytes) -> None:
        if len(files) > DESCRIPTION_BYTES:
            log(f"the description of the device has {len(files)} bytes, more than a mediator keeps")
        elif files and _is_under_amber():
            message = DriverMsg(type=DriverMsg.DATA)
            message.Extensions[schemas.mediator.description].files = files
            self._send(Header(), message)

    def say_health(self, trouble: str | None) -> None:
        with self._trouble_lock:
            if trouble == self._trouble:
                return
            self._trouble = trouble
            if not _is_under_amber():
                return
            message = DriverMsg(type=DriverMsg.DATA)
            health = message.Extensions[schemas.mediator.health]
            state = schemas.mediator.Health
            health.state = state.OK if trouble is None else state.TROUBLE
            if trouble is not None:
                health.text = trouble
            self._send(Header(), message)

    def _send(self, header: Header, message: Any) -> None:
        data = message.SerializeToString()
        is_long = len(data) > MAX_PART or self._pacer.cuts(header.clients, message, len(data))
        if is_long and header.clients:
            stream = pieces.stream_of(message) if message.ackNum == 0 else None
            return self._pacer.push(header.clients, data, stream)
        try:
            self.write(encode(header, data))
        except FrameError as error:
            log("message not sent:", error)

    def write(self, frame: bytes) -> None:
        """Sends a frame; blocks while the mediator does not read."""
        with self._writing:
            rest = memoryview(frame)
            while rest:
                rest = rest[self._output.write(rest) :]

    def robot(self) -> Client:
        with self._robot_lock:
            if self._robot is None:
                from .client import Client

                self._robot = Client._over(_ToMediator(self))
            return self._robot


def _envelope(data: bytes) -> Any:
    """The base fields of a message; empty if it is not a DriverMsg."""
    try:
        return schemas.Envelope.FromString(data)
    except Exception:
        return schemas.Envelope()


class _Pacer:
    """Sends long messages in bursts, from a thread of its own that starts with the first one."""

    def __init__(self, pipe: _Pipe) -> None:
        self._pipe = pipe
        #: Protects everything below.
        self._changed = threading.Condition()
        self._abilities: dict[int, pieces.Ability] = {}
        self._paced = pieces.Paced(random.randrange(1 << 20))
        self._thread: threading.Thread | None = None
        self._has_warned = False

    def note(self, clients: tuple[int, ...], ability: pieces.Ability | None) -> None:
        """A request or SUBSCRIBE says what its clients join."""
        with self._changed:
            for client in clients:
                if ability is None:
                    self._abilities.pop(client, None)
                else:
                    self._abilities[client] = ability

    def forget(self, client: int) -> None:
        with self._changed:
            self._abilities.pop(client, None)
            self._paced.forget(client)

    def cuts(self, clients: tuple[int, ...], message: Any, length: int) -> bool:
        """Whether a message goes in pieces although it fits into a frame. Not if one of the clients
        does not join them: a recording would have it twice."""
        if length < pieces.MIN_PIECE_BYTES:
            return False
        with self._changed:
            known = [self._abilities.get(client) for client in clients]
        abilities = [it for it in known if it is not None and length <= it.longest]
        return len(abilities) == len(clients) and any(it.cuts(message, length) for it in abilities)

    def push(self, clients: tuple[int, ...], data: bytes, stream: int | None) -> None:
        """Takes a message. May be called from any thread."""
        with self._changed:
            groups: dict[int, list[int]] = {}
            for client in clients:
                ability = self._abilities.get(client)
                if ability is not None and len(data) <= ability.longest:
                    groups.setdefault(ability.size(len(data)), []).append(client)
            if sum(map(len, groups.values())) < len(clients) and not self._has_warned:
                self._has_warned = True
                log(
                    f"a message of {len(data)} bytes is too long for clients that do not join "
                    f"pieces: the limit is {MAX_PART} (logged once)"
                )
            if not groups:
                return
            self._paced.push(time.monotonic(), data, stream, groups)
            self._wake()

    def missing(self, client: int, call: Any) -> None:
        """A client calls for missing pieces."""
        with self._changed:
            self._paced.missing(client, call)
            self._wake()

    def _wake(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, daemon=True)
            self._thread.start()
        self._changed.notify()

    def _run(self) -> None:
        try:
            while True:
                burst = self._next()
                for piece in burst.pieces:
                    self._pipe.write(encode(Header(clients=burst.clients), piece))
        except BrokenPipeError:
            self._pipe.end()

    def _next(self) -> pieces.Burst:
        """Waits for the next burst."""
        with self._changed:
            while True:
                now = time.monotonic()
                burst = self._paced.poll(now)
                if burst is not None:
                    return burst
                due = self._paced.next_timeout()
                self._changed.wait(None if due is None else max(0.0, due - now))


@dataclass(frozen=True)
class _Work:
    """A call of the driver that waits."""

    call: Callable[[], Any]
    may_drop: bool
    #: The client whose command moves something.
    moved_by: int | None


def _is_under_amber() -> bool:
    """Whether the mediator understands reports; only one of this project sets this variable."""
    return "AMBER_DEVICE" in os.environ


class _ToMediator(aio.Transport):
    def __init__(self, pipe: _Pipe) -> None:
        self._pipe = pipe

    def send(self, frame: bytes) -> None:
        self._pipe.write(frame)

    def close(self) -> None:
        pass
