"""Who may move a device, and until when: lease, halt and expiry. PURE.

The same rules as in the driver SDK for Rust (``drivers/sdk/src/motion``). Times are seconds on the
clock of the caller.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Callable

from . import schemas

messages: Any = schemas.motion

#: What a request does, by severity.
NOTHING, STOPS, MOVES, ERRAND = range(4)

_LEASE_S, _LEASE_MIN_S, _LEASE_MAX_S = 2.0, 0.2, 10.0
#: The longest name of a client, in bytes.
_NAME = 100
#: The maximum number of clients that wait for a lease.
_WAITING = 16
#: While there are leases, the driver looks at the clock this often.
_TICK_S = 0.05
#: A driver that looks so late did not run in between: its machine is busy. Its clients may be just as
#: late, so their leases get another period, once.
_LATE_S = 0.1
#: The interval of news about refused commands, and of those about stops.
_NEWS_S = 1.0

_Report: Any = messages.MotionReport
_Action: Any = messages.LeaseRequest


@dataclass(frozen=True)
class Moves:
    """The requests of a device that moves."""

    #: What a message does: NOTHING, STOPS, MOVES or ERRAND.
    motion: Callable[[Any], int]
    #: Makes the request that stops all motion; None if there is none.
    stop: Callable[[], Any] | None
    #: Makes the answer that refuses a request; it returns None if the request has none.
    refusal: Callable[[Any, str], Any]


class Refusal(Exception):
    """A request that moves is not allowed."""


@dataclass
class _Lease:
    client: int
    for_client: int | None
    name: str
    since: float
    period_s: float
    until: float
    #: Whether it was extended since the last sign of its client, because this driver was late.
    is_extended: bool = False

    def keep(self, now: float) -> None:
        self.until, self.is_extended = now + self.period_s, False

    def extend(self, now: float) -> None:
        """The driver was late. Extends the lease, once until the next sign of its client."""
        if not self.is_extended:
            self.keep(now)
            self.is_extended = True

    def is_of(self, client: int | None) -> bool:
        return client is not None and client in (self.client, self.for_client)


@dataclass
class Stop:
    """The device must stop, or commands that wait are outdated."""

    is_needed: bool = False
    #: The client that moved it.
    client: int = 0
    #: Commands of these clients that still wait are outdated.
    outdated: set[int] = field(default_factory=set)


class Control:
    """Lease, halt and expiry of one device."""

    def __init__(self, halted_by: str | None = None) -> None:
        self._holder: _Lease | None = None
        self._waiting: list[_Lease] = []
        self._halt: tuple[str, float | None] | None = None
        if halted_by is not None:
            self._halt = (halted_by, None)
        # The client of the last command that moves, and until when it holds.
        self._moving: tuple[int, float | None] | None = None
        #: When the driver looks at the clock next, while there are leases.
        self._tick: float | None = None
        self._stop: Stop | None = None
        self._news: list[tuple[int, str]] = []
        self._next_news: dict[int, float] = {}
        self._counts = {"holder": 0, "halt": 0, "late": 0, "expired": 0}

    def request(self, now: float, client: int, message: Any) -> Any:
        """Answers a request for the lease or a halt; None if the message is none."""
        extensions, motion = message.Extensions, messages
        refused = for_client = None
        if message.HasExtension(motion.halt_request):
            refused = self._change_halt(now, client, extensions[motion.halt_request])
        elif message.HasExtension(motion.lease_request):
            if message.HasExtension(motion.for_client):
                for_client = extensions[motion.for_client]
            refused = self._lease(now, client, for_client, extensions[motion.lease_request])
        elif not extensions[motion.get_motion_state]:
            return None
        if self._tick is None and self._has_leases():
            self._tick = now + _TICK_S
        state = motion.MotionState(
            yours=self._is_held_by(client, for_client),
            refused_for_holder=self._counts["holder"],
            refused_for_halt=self._counts["halt"],
            too_late=self._counts["late"],
            expired=self._counts["expired"],
        )
        self._describe(now, state)
        for waiting in self._waiting:
            _fill(state.waiting.add(), waiting, now)
        if refused is not None:
            state.refused = refused
        return state

    def command(
        self,
        now: float,
        motion: int,
        client: int,
        for_client: int | None = None,
        valid_until: float | None = None,
    ) -> None:
        """A request moves or stops the device. Raises Refusal."""
        if motion == NOTHING:
            return
        if motion == STOPS:
            self._moving = None
            return
        if self._halt is not None:
            self._counts["halt"] += 1
            raise self._refuse(now, client, f"the device was halted by {self._halt[0]}")
        if self._holder is not None:
            if not (self._holder.is_of(client) or self._holder.is_of(for_client)):
                self._counts["holder"] += 1
                raise self._refuse(now, client, self._held())
            self._holder.keep(now)
        if valid_until is not None and valid_until <= now:
            self._counts["late"] += 1
            why = "the command came too late: it is no longer valid"
            raise self._refuse(now, client, why)
        self._moving = (client, valid_until)
        # A stop that was not carried out yet is about an earlier command.
        self._stop = None

    def client_gone(self, now: float, client: int, stops: bool) -> None:
        """A client is gone. ``stops``: the driver does not stop by itself what it moved."""
        self._waiting = [it for it in self._waiting if it.client != client]
        if self._holder is not None and self._holder.is_of(client):
            self._end_lease(now, "is gone")
        if stops:
            self._outdate(client)
            if self._moving is not None and self._moving[0] == client:
                self._stop_now()

    def next_timeout(self) -> float | None:
        """When :meth:`timeout` is due."""
        times = [it.until for it in self._waiting]
        if self._tick is not None:
            times.append(self._tick)
        if self._holder is not None:
            times.append(self._holder.until)
        if self._moving is not None and self._moving[1] is not None:
            times.append(self._moving[1])
        return min(times) if times else None

    def timeout(self, now: float) -> None:
        """Ends what is due. Before this, all requests that have come by now must have been handled:
        one of them may keep a lease."""
        if self._tick is not None and now - self._tick > _LATE_S:
            for lease in (*self._waiting, *([self._holder] if self._holder else [])):
                lease.extend(now)
        self._waiting = [it for it in self._waiting if it.until > now]
        if self._moving is not None:
            client, until = self._moving
            if until is not None and until <= now:
                self._counts["expired"] += 1
                why = f"stopped: the last command of client {client} is no longer valid"
                self._say(now, _Report.STOPPED, why)
                self._stop_now()
        if self._holder is not None and self._holder.until <= now:
            self._end_lease(now, "did not keep its lease")
        self._tick = now + _TICK_S if self._has_leases() else None

    def _has_leases(self) -> bool:
        return self._holder is not None or bool(self._waiting)

    def poll_stop(self) -> Stop | None:
        """What to do now."""
        stop, self._stop = self._stop, None
        return stop

    def poll_report(self, now: float) -> Any:
        """The next report for the mediator, or None."""
        if not self._news:
            return None
        news, text = self._news.pop(0)
        report = _Report(news=news, text=text, waiting=len(self._waiting))
        self._describe(now, report)
        return report

    def _lease(self, now: float, client: int, for_client: int | None, request: Any) -> str | None:
        """Returns why the request is not carried out."""
        period_s = request.period_ms / 1000 if request.HasField("period_ms") else _LEASE_S
        period_s = min(max(period_s, _LEASE_MIN_S), _LEASE_MAX_S)
        name = _name_of(request.name, client)
        lease = _Lease(client, for_client, name, now, period_s, now + period_s)
        holder, action = self._holder, request.action
        is_holder = holder is not None and holder.is_of(client)
        takes = action in (_Action.TAKE, _Action.WAIT, _Action.TAKE_BY_FORCE)
        if holder is not None and not is_holder and (takes or action == _Action.KEEP):
            # A driver of the holder: it may move the device already.
            if holder.is_of(for_client):
                holder.keep(now)
                return None
        if takes and holder is not None and is_holder:
            lease.since = holder.since
            self._holder = lease
            return None
        is_next = not self._waiting or self._waiting[0].client == client
        if action in (_Action.TAKE, _Action.WAIT) and holder is None and is_next:
            self._leave_list(client)
            self._grant(now, lease)
            return None
        if action == _Action.TAKE:
            if holder is None:
                return f"{self._waiting[0].name} waits for the lease of this device"
            return self._held()
        if action == _Action.WAIT:
            for index, waiting in enumerate(self._waiting):
                if waiting.client == client:
                    lease.since = waiting.since
                    self._waiting[index] = lease
                    return None
            if len(self._waiting) == _WAITING:
                return f"{_WAITING} clients wait already"
            self._waiting.append(lease)
            return None
        if action == _Action.TAKE_BY_FORCE:
            self._leave_list(client)
            if holder is None:
                self._grant(now, lease)
                return None
            self._holder = None
            self._stop_motion_of(holder)
            self._holder = lease
            why = f"{lease.name} took the lease from {holder.name} by force"
            self._say(now, _Report.LEASE, why)
            return None
        if action == _Action.KEEP:
            if holder is None:
                return "nobody holds the lease of this device"
            if not is_holder:
                return self._held()
            holder.keep(now)
            return None
        self._leave_list(client)
        if is_holder:
            self._end_lease(now, "released the lease")
        return None

    def _is_held_by(self, client: int, for_client: int | None) -> bool:
        holder = self._holder
        return holder is not None and (holder.is_of(client) or holder.is_of(for_client))

    def _leave_list(self, client: int) -> None:
        self._waiting = [it for it in self._waiting if it.client != client]

    def _grant(self, now: float, lease: _Lease) -> None:
        # What others moved before is no longer allowed.
        if self._moving is not None and not lease.is_of(self._moving[0]):
            self._stop_now()
        self._holder = lease
        self._say(now, _Report.LEASE, f"{lease.name} holds the lease")

    def _end_lease(self, now: float, why: str) -> None:
        old, self._holder = self._holder, None
        assert old is not None
        self._stop_motion_of(old)
        after = "nobody holds it now"
        if self._waiting:
            following = self._waiting.pop(0)
            following.since = now
            following.keep(now)
            self._holder = following
            after = f"{following.name} holds the lease"
        self._say(now, _Report.LEASE, f"{old.name} {why}; {after}")

    def _stop_motion_of(self, lease: _Lease) -> None:
        self._outdate(lease.client, lease.for_client)
        if self._moving is not None and lease.is_of(self._moving[0]):
            self._stop_now()

    def _stop_now(self) -> None:
        stop = self._stop = self._stop or Stop()
        stop.is_needed = True
        if self._moving is not None:
            stop.client = self._moving[0]
        self._moving = None

    def _outdate(self, *clients: int | None) -> None:
        """Commands of these clients that wait are older than what has just happened."""
        stop = self._stop = self._stop or Stop()
        stop.outdated.update(client for client in clients if client is not None)

    def _change_halt(self, now: float, client: int, request: Any) -> str | None:
        by = _name_of(request.name, client)
        if request.halt:
            # Also if nothing is known to move: it may be something that was there before.
            self._stop_now()
            if self._stop is not None and not self._stop.client:
                self._stop.client = client
            if self._halt is None:
                self._halt = (by, now)
                self._say(now, _Report.HALTED, f"halted by {by}")
            return None
        if self._holder is not None and not self._holder.is_of(client):
            return self._held()
        if self._halt is not None:
            self._halt = None
            self._say(now, _Report.HALT_RELEASED, f"halt released by {by}")
        return None

    def _held(self) -> str:
        assert self._holder is not None
        return f"{self._holder.name} holds the lease of this device"

    def _refuse(self, now: float, client: int, why: str) -> Refusal:
        self._say(now, _Report.REFUSED, f"refused a command of client {client}: {why}")
        return Refusal(why)

    def _say(self, now: float, news: int, text: str) -> None:
        if news in (_Report.REFUSED, _Report.STOPPED):
            if now < self._next_news.get(news, now):
                return
            self._next_news[news] = now + _NEWS_S
        self._news.append((news, text))

    def _describe(self, now: float, told: Any) -> None:
        if self._holder is not None:
            _fill(told.holder, self._holder, now)
        if self._halt is not None:
            by, since = self._halt
            told.halt.by = by
            if since is not None:
                told.halt.since_ms = int((now - since) * 1000)


def read_halts(text: str) -> dict[tuple[int, int], str]:
    """The halts that the mediator hands to a new process: a line ``TYPE:ID=BY`` for each."""
    found = {}
    for line in text.splitlines():
        device, separator, by = line.partition("=")
        device_type, _, device_id = device.partition(":")
        if separator and device_type.isdecimal() and device_id.isdecimal():
            found[int(device_type), int(device_id)] = by
    return found


def _fill(told: Any, lease: _Lease, now: float) -> None:
    told.client_id = lease.client
    told.name = lease.name
    told.since_ms = int((now - lease.since) * 1000)
    told.left_ms = max(0, int((lease.until - now) * 1000))
    if lease.for_client is not None:
        told.for_client = lease.for_client


def _name_of(name: str, client: int) -> str:
    """The name of a client in one printable line."""
    line = "".join(c if c.isprintable() else " " for c in name)
    short = line.encode()[:_NAME].decode(errors="ignore").strip()
    return short or f"client {client}"
