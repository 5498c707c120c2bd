"""Messages that are longer than a frame: they travel in pieces. PURE.

Programs see whole messages; this module cuts and joins them below the queues of clients and
drivers. docs/notes/pieces.md in the repository has the fields, the limits and their reasons.
"""

from __future__ import annotations

import collections
import enum
from collections.abc import Hashable
from typing import Any, Callable, NamedTuple

from .schemas import DriverMsg

#: The longest message that travels in pieces, in bytes.
MAX_LONG = 8 << 20
#: The bytes in a piece for peers on other computers: no network cuts the datagram.
PIECE_BYTES = 1180
#: The bytes in a piece for peers on this computer.
LOCAL_PIECE_BYTES = 32_000
#: The fewest bytes in a piece that a peer may ask for.
MIN_PIECE_BYTES = 1024

#: `picture` of camera.proto: pictures go in pieces as soon as they do not fit into a datagram.
_PICTURE = 261
#: Longer messages in one frame are more than old clients can receive, and the mediator warns of them.
_LONGEST_WHOLE = 16_384 - 2 * 11

_MAX_PIECES = MAX_LONG // MIN_PIECE_BYTES
_MAX_PART = 32_767
_MAX_MISSING = 400

# Joining: the same numbers as in proto/pieces/join.rs. Times are in seconds.
_MAX_OF_SENDER = 4
_MAX_PARTIALS = 64
_MAX_BYTES = 2 * MAX_LONG
_MAX_FINISHED = 256
_OVERHEAD = 256
_OUTDATES = 1.0
_GAP = 0.005
_TAIL = 0.010
_AGAIN = 0.012
_STREAM_CALLS = 3
_OTHER_CALLS = 8
_FEW = 4
_STREAM_AGE = 1.0
_OTHER_AGE = 5.0
_RECEIPT_BYTES = 32_000

# Sending: the same numbers as in proto/pieces/paced.rs.
_BURST = 16
_BURST_BYTES = 256_000
_PAUSE = 0.005
_SHORTEST_PAUSE = 0.001
_KEEP = 0.5

# Requests: the same numbers as in proto/pieces/upload.rs.
_AHEAD = 64
_AHEAD_BYTES = 256_000
_PATIENCE = 0.1
_TRIES = 3
_GIVE_UP = 5.0


class Ability(NamedTuple):
    """What a client joins."""

    longest: int = MAX_LONG
    piece_bytes: int = PIECE_BYTES

    @staticmethod
    def stated(message: Any) -> Ability | None:
        """What a request or SUBSCRIBE says; None if its client joins nothing."""
        if not message.HasField("joins"):
            return None
        joins = message.joins
        longest = joins.longest if joins.HasField("longest") else MAX_LONG
        size = joins.piece_bytes if joins.HasField("piece_bytes") else PIECE_BYTES
        size = min(max(size, MIN_PIECE_BYTES), LOCAL_PIECE_BYTES)
        return Ability(min(longest, MAX_LONG), size)

    def cuts(self, message: Any, length: int) -> bool:
        """Whether it gets a message of this length in pieces although that fits into a frame."""
        whole = min(self.piece_bytes, _LONGEST_WHOLE)
        return whole < length <= self.longest and stream_of(message) == _PICTURE

    def size(self, length: int) -> int:
        """The bytes in a piece of a message. There are at least two pieces."""
        return -(-length // 2) if length <= self.piece_bytes else self.piece_bytes

    def to_append(self) -> bytes:
        """The field that says so, encoded, to be appended to a message."""
        message = DriverMsg()
        message.joins.piece_bytes = self.piece_bytes
        if self.longest != MAX_LONG:
            message.joins.longest = self.longest
        return bytes(message.SerializePartialToString())


def is_about_pieces(message: Any) -> bool:
    """Whether a message is a piece of a longer one, or about pieces."""
    names = ("piece", "missing", "receipt")
    return bool(message.type == DriverMsg.DATA) and any(map(message.HasField, names))


def stream_of(message: Any) -> int:
    """The stream of published data: the number of its first field behind the base fields."""
    numbers = (field.number for field, _ in message.ListFields() if field.number > 9)
    return min(numbers, default=0)


class Long(NamedTuple):
    """A message in pieces, at its sender."""

    number: int
    #: A message replaces earlier ones of its stream; answers and requests have none.
    stream: int | None
    data: bytes
    #: The number of the request; the first piece has it, too.
    syn: int | None = None

    def count(self, piece_bytes: int) -> int:
        """The number of pieces of this length."""
        return -(-len(self.data) // piece_bytes)

    def piece(self, piece_bytes: int, index: int) -> bytes:
        """One piece, as the bytes of a message."""
        message = DriverMsg(type=DriverMsg.DATA)
        if self.syn is not None and index == 0:
            message.synNum = self.syn
        piece = message.piece
        piece.message, piece.index, piece.count = self.number, index, self.count(piece_bytes)
        piece.data = self.data[index * piece_bytes : (index + 1) * piece_bytes]
        if self.stream is not None:
            piece.stream = self.stream
        return bytes(message.SerializeToString())


class Joined(NamedTuple):
    """A complete message."""

    data: bytes
    #: None for answers and requests.
    stream: int | None


class Lost(NamedTuple):
    """A message that was given up."""

    sender: Any
    stream: int | None
    missing: int


class _Finished(NamedTuple):
    """A message of which nothing more is needed."""

    sender: Hashable
    number: int
    stream: int | None
    #: When it was joined; None if it was given up.
    at: float | None


class _Partial:
    """A message of which pieces are missing."""

    def __init__(self, now: float, sender: Hashable, piece: Any) -> None:
        self.sender = sender
        self.number: int = piece.message
        self.count: int = piece.count
        self.stream = _stream(piece)
        self.length: int | None = None
        self.last_length: int | None = None
        self.data: dict[int, bytes] = {}
        self.memory = _OVERHEAD
        self.upto = 0
        self.highest = 0
        self.last_at = now
        self.gap_at: float | None = None
        self.called_at: float | None = None
        self.calls = 0
        self.told: int | None = None

    def fits(self, piece: Any) -> bool:
        """Whether a new piece agrees with the others."""
        length = len(piece.data)
        if _stream(piece) != self.stream:
            return False
        if piece.index + 1 == self.count:
            return self.length is None or length <= self.length
        if self.length is not None:
            return length == self.length
        return self.last_length is None or self.last_length <= length

    def is_too_long(self) -> bool:
        last = 1 if self.last_length is None else self.last_length
        return self.length is not None and (self.count - 1) * self.length + last > MAX_LONG

    def add(self, now: float, piece: Any) -> None:
        if piece.index + 1 == self.count:
            self.last_length = len(piece.data)
        else:
            self.length = len(piece.data)
        self.data[piece.index] = piece.data
        self.memory += len(piece.data) + 64
        self.last_at = now
        self.highest = max(self.highest, piece.index)
        before = self.upto
        while self.upto in self.data:
            self.upto += 1
        if self.upto > before and self.stream is None:
            self.calls = 0
        if self.upto > self.highest:
            self.gap_at = None
        elif self.gap_at is None:
            self.gap_at = now

    def ends_at(self) -> float:
        return self.last_at + (_OTHER_AGE if self.stream is None else _STREAM_AGE)

    def call_at(self) -> float | None:
        if self.calls >= (_OTHER_CALLS if self.stream is None else _STREAM_CALLS):
            return None
        due = self.last_at + _TAIL
        if self.gap_at is not None:
            due = min(due, self.gap_at + _GAP)
        return due if self.called_at is None else max(due, self.called_at + _AGAIN)

    def call(self, now: float, is_upload: bool) -> list[int]:
        """The pieces to call for now."""
        is_tail = self.last_at + _TAIL <= now and not is_upload
        end = self.count if is_tail else self.highest
        self.gap_at, self.called_at = None, now
        self.calls += 1
        missing = (index for index in range(self.upto, end) if index not in self.data)
        return [index for index, _ in zip(missing, range(_MAX_MISSING))]


class Joiner:
    """Joins the pieces of any number of senders, within bounds."""

    def __init__(self, gives_receipts: bool = False) -> None:
        self._partials: list[_Partial] = []
        self._finished: collections.deque[_Finished] = collections.deque(maxlen=_MAX_FINISHED)
        self._gives_receipts = gives_receipts
        #: Messages about pieces to send, with their receivers. The user of the joiner takes them.
        self.to_send: list[tuple[Any, Any]] = []
        #: Messages that were given up. The user of the joiner takes them.
        self.lost: list[Lost] = []
        #: Pieces that contradict themselves or others.
        self.malformed: int = 0

    def piece(self, now: float, sender: Hashable, piece: Any) -> Joined | None:
        """A piece has arrived. Returns the message if it was the last missing one."""
        if not (
            2 <= piece.count <= _MAX_PIECES
            and piece.index < piece.count
            and 1 <= len(piece.data) <= _MAX_PART
        ):
            self.malformed += 1
            return None
        partial = self._find(sender, piece)
        if partial is None:
            for done in self._finished:
                if done.sender == sender and done.number == piece.message:
                    if done.at is not None:
                        self._receipt(sender, piece.message, piece.count)
                    return None
            if any(_outdates(done, now, sender, piece) for done in self._finished):
                self._lose(sender, piece.message, _stream(piece), piece.count)
                return None
            partial = self._begin(now, sender, piece)
        if piece.index in partial.data:
            self._receipt(sender, piece.message, partial.upto)
            return None
        if not partial.fits(piece):
            self.malformed += 1
            return None
        partial.add(now, piece)
        if partial.is_too_long():
            self._give_up(partial)
            return None
        if len(partial.data) == partial.count:
            return self._finish(now, partial)
        if self._gives_receipts:
            every = 1 if partial.length is None else max(1, _RECEIPT_BYTES // partial.length)
            if partial.told is None or partial.upto >= partial.told + every:
                partial.told = partial.upto
                self._receipt(sender, partial.number, partial.upto)
        while self.memory > _MAX_BYTES:
            self._give_up_one()
        return None

    def timeout(self, now: float) -> None:
        """The time of :meth:`next_timeout` may have come."""
        for partial in [it for it in self._partials if it.ends_at() <= now]:
            self._give_up(partial)
        for partial in self._partials:
            due = partial.call_at()
            if due is None or due > now:
                continue
            index = partial.call(now, self._gives_receipts)
            if partial.stream is not None and len(index) > max(partial.count // 4, _FEW):
                partial.calls = _STREAM_CALLS  # the network is congested
            elif index:
                message = DriverMsg(type=DriverMsg.DATA)
                message.missing.message = partial.number
                message.missing.index.extend(index)
                self.to_send.append((partial.sender, message))

    def next_timeout(self) -> float | None:
        """When to call :meth:`timeout`."""
        times = [it.ends_at() for it in self._partials]
        times += [due for it in self._partials if (due := it.call_at()) is not None]
        return min(times, default=None)

    def forget(self, is_gone: Callable[[Any], bool]) -> None:
        """These senders are gone, and others may get their names and numbers."""
        for partial in [it for it in self._partials if is_gone(it.sender)]:
            self._give_up(partial)
        kept = [it for it in self._finished if not is_gone(it.sender)]
        self._finished = collections.deque(kept, maxlen=_MAX_FINISHED)

    @property
    def memory(self) -> int:
        """The memory of all unfinished messages, in bytes."""
        return sum(it.memory for it in self._partials)

    def _find(self, sender: Hashable, piece: Any) -> _Partial | None:
        for it in self._partials:
            if (it.number, it.count, it.sender) == (piece.message, piece.count, sender):
                return it
        return None

    def _begin(self, now: float, sender: Hashable, piece: Any) -> _Partial:
        own = [it for it in self._partials if it.sender == sender]
        if len(own) >= _MAX_OF_SENDER:
            self._give_up(own[0])
        if len(self._partials) >= _MAX_PARTIALS:
            self._give_up_one()
        partial = _Partial(now, sender, piece)
        self._partials.append(partial)
        return partial

    def _finish(self, now: float, done: _Partial) -> Joined:
        self._partials.remove(done)
        self._receipt(done.sender, done.number, done.count)
        for other in [it for it in self._partials if it.sender == done.sender]:
            if other.number == done.number:
                self._partials.remove(other)
            elif (
                done.stream is not None
                and other.stream == done.stream
                and _is_newer(done.number, other.number)
            ):
                self._give_up(other)
        self._finished.append(_Finished(done.sender, done.number, done.stream, now))
        data = b"".join(done.data[index] for index in range(done.count))
        return Joined(data, done.stream)

    def _receipt(self, sender: Hashable, number: int, upto: int) -> None:
        if self._gives_receipts:
            message = DriverMsg(type=DriverMsg.DATA)
            message.receipt.message, message.receipt.upto = number, upto
            self.to_send.append((sender, message))

    def _give_up_one(self) -> None:
        """The oldest message of the sender that needs most memory."""
        memory: collections.Counter[Hashable] = collections.Counter()
        for it in self._partials:
            memory[it.sender] += it.memory
        greedy = memory.most_common(1)[0][0]
        self._give_up(next(it for it in self._partials if it.sender == greedy))

    def _give_up(self, partial: _Partial) -> None:
        self._partials.remove(partial)
        missing = partial.count - len(partial.data)
        self._lose(partial.sender, partial.number, partial.stream, missing)

    def _lose(self, sender: Hashable, number: int, stream: int | None, missing: int) -> None:
        self._finished.append(_Finished(sender, number, stream, None))
        self.lost.append(Lost(sender, stream, missing))


class Burst(NamedTuple):
    """Pieces to send now to the same clients."""

    clients: tuple[int, ...]
    pieces: list[bytes]


class _Kept:
    """A message that is being sent, or may have to be sent again."""

    def __init__(
        self, now: float, long: Long, clients: tuple[int, ...], piece_bytes: int, pause: float
    ) -> None:
        self.long, self.clients, self.piece_bytes, self.pause = long, clients, piece_bytes, pause
        self.next = 0
        #: When to send the next burst, and behind the last one, when to forget the message.
        self.due: float = now
        self.again: dict[int, int] = {}

    def is_sent(self) -> bool:
        return self.next == self.long.count(self.piece_bytes)

    def burst(self, now: float) -> Burst:
        count = self.long.count(self.piece_bytes)
        end = min(count, self.next + _burst(self.piece_bytes))
        pieces = [self.long.piece(self.piece_bytes, index) for index in range(self.next, end)]
        self.next = end
        self.due = now + _KEEP if end == count else max(self.due + self.pause, now)
        return Burst(self.clients, pieces)


class Paced:
    """The long messages of a driver: when to send which pieces, to whom, and again."""

    def __init__(self, last_number: int = 0) -> None:
        self._last_number = last_number
        self._kept: list[_Kept] = []
        self._again: collections.deque[Burst] = collections.deque()
        #: When the latest message of a stream was added, by stream and first client.
        self._latest: dict[tuple[int, int], float] = {}

    def push(
        self,
        now: float,
        data: bytes,
        stream: int | None,
        groups: dict[int, list[int]],
    ) -> None:
        """Begins to send a message; ``groups`` are the clients by the length of their pieces."""
        self._last_number = (self._last_number + 1) & 0xFFFF_FFFF
        long = Long(self._last_number, stream, data)
        for piece_bytes, clients in groups.items():
            period = None
            if stream is not None:
                key = (stream, clients[0])
                period = now - self._latest[key] if key in self._latest else None
                self._latest[key] = now
                self._drop_overtaken(stream, tuple(clients))
            bursts = -(-long.count(piece_bytes) // _burst(piece_bytes))
            kept = _Kept(now, long, tuple(clients), piece_bytes, _pause(period, bursts))
            self._kept.append(kept)
        while len(self._kept) > 1 and self._bytes() > MAX_LONG:
            del self._kept[0]

    def poll(self, now: float) -> Burst | None:
        """The next burst, if one is due."""
        if self._again:
            return self._again.popleft()
        self._kept = [it for it in self._kept if it.due > now or not it.is_sent()]
        due = [it for it in self._kept if it.due <= now]
        return min(due, key=lambda it: it.due).burst(now) if due else None

    def next_timeout(self) -> float | None:
        """When :meth:`poll` has something to do."""
        if self._again:
            return 0.0
        return min((it.due for it in self._kept), default=None)

    def missing(self, client: int, call: Any) -> None:
        """A client calls for missing pieces."""
        for kept in self._kept:
            if kept.long.number != call.message or client not in kept.clients:
                continue
            sent = kept.again.get(client, 0)
            room = kept.long.count(kept.piece_bytes) - sent
            wanted = [index for index in call.index if index < kept.next][:room]
            kept.again[client] = sent + len(wanted)
            pieces = [kept.long.piece(kept.piece_bytes, index) for index in wanted]
            size = _burst(kept.piece_bytes)
            for start in range(0, len(pieces), size):
                self._again.append(Burst((client,), pieces[start : start + size]))
            return

    def forget(self, client: int) -> None:
        """A client is gone."""
        for kept in self._kept:
            kept.clients = tuple(it for it in kept.clients if it != client)
        self._kept = [it for it in self._kept if it.clients]
        self._again = collections.deque(it for it in self._again if it.clients != (client,))
        self._latest = {key: at for key, at in self._latest.items() if key[1] != client}

    def _bytes(self) -> int:
        return sum({it.long.number: len(it.long.data) for it in self._kept}.values())

    def _drop_overtaken(self, stream: int, clients: tuple[int, ...]) -> None:
        """Two messages of a stream may be under way to the same clients."""
        waiting = [
            it
            for it in self._kept
            if it.long.stream == stream and it.clients == clients and not it.is_sent()
        ]
        if len(waiting) >= 2:
            self._kept.remove(waiting[0])


class Verdict(enum.Enum):
    """Whether an upload goes on."""

    GOES_ON = 1
    #: The driver has sent no receipt at all: it cannot join pieces.
    NOT_UNDERSTOOD = 2
    #: There was no progress for long.
    STUCK = 3


class Upload:
    """A long request: its sender waits for receipts of the driver."""

    def __init__(self, now: float, long: Long, piece_bytes: int) -> None:
        self.long = long
        self._piece_bytes = piece_bytes
        self._count = long.count(piece_bytes)
        self._ahead = max(1, min(_AHEAD, _AHEAD_BYTES // piece_bytes))
        self._next = 0
        #: All pieces before this one have arrived; None before the first receipt.
        self._upto: int | None = None
        self._again: collections.deque[int] = collections.deque()
        self._progress_at = now
        self.due: float = now + _PATIENCE
        self._tries = 0

    def poll(self) -> bytes | None:
        """The next piece that may be sent now."""
        if self._again:
            return self.long.piece(self._piece_bytes, self._again.popleft())
        end = 1 if self._upto is None else min(self._count, self._upto + self._ahead)
        if self._next >= end:
            return None
        self._next += 1
        return self.long.piece(self._piece_bytes, self._next - 1)

    def receipt(self, now: float, upto: int) -> bool:
        """A receipt of the driver. Returns whether all pieces have arrived."""
        upto = min(upto, self._next)
        if self._upto is None or upto > self._upto:
            self._upto, self._progress_at, self._tries = upto, now, 0
            self.due = now + _PATIENCE
            self._again = collections.deque(it for it in self._again if it >= upto)
        return self._upto == self._count

    def missing(self, index: Any) -> None:
        """The driver calls for missing pieces."""
        for it in index:
            if (self._upto or 0) <= it < self._next and it not in self._again:
                self._again.append(it)

    def timeout(self, now: float) -> Verdict:
        """The time of :attr:`due` may have come."""
        if now < self.due:
            return Verdict.GOES_ON
        if self._upto is None and self._tries == _TRIES:
            return Verdict.NOT_UNDERSTOOD
        if now >= self._progress_at + _GIVE_UP:
            return Verdict.STUCK
        first = self._upto or 0
        if first < self._next and first not in self._again:
            self._again.append(first)
        self.due = now + _PATIENCE * 2 ** min(self._tries, _TRIES)
        self._tries += 1
        return Verdict.GOES_ON


def _stream(piece: Any) -> int | None:
    return piece.stream if piece.HasField("stream") else None


def _outdates(done: _Finished, now: float, sender: Hashable, piece: Any) -> bool:
    return (
        done.at is not None
        and done.stream is not None
        and done.sender == sender
        and done.stream == _stream(piece)
        and _is_newer(done.number, piece.message)
        and now < done.at + _OUTDATES
    )


def _is_newer(number: int, than: int) -> bool:
    return 0 < (number - than) & 0xFFFF_FFFF < 1 << 31


def _burst(piece_bytes: int) -> int:
    return max(1, min(_BURST, _BURST_BYTES // piece_bytes))


def _pause(period: float | None, bursts: int) -> float:
    most = _PAUSE if period is None else 0.8 * period / max(1, bursts)
    return min(max(most, _SHORTEST_PAUSE), _PAUSE)
