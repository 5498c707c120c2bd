"""The bytes on the wire: length, header, length, message. PURE.

The same frame travels on UDP (one per datagram) and on the stdin and stdout
of a driver (one after the other). Lengths are two bytes, the high one first.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from .errors import FrameError
from .schemas import DriverHdr

#: The longest header or message that is sent, in bytes: older programs read
#: the length as a signed number.
MAX_PART = 32767


class Header(NamedTuple):
    """The device or the clients. ``None`` and an empty tuple stand for what is absent."""

    device_type: int | None = None
    device_id: int | None = None
    clients: tuple[int, ...] = ()


class Frame(NamedTuple):
    """A header, and the bytes of a message."""

    header: Header
    message: bytes


def encode(header: Header, message: bytes) -> bytes:
    """The bytes of a frame. Raises FrameError when the message is too long."""
    raw = DriverHdr()
    if header.device_type is not None:
        raw.deviceType = header.device_type
    if header.device_id is not None:
        raw.deviceID = header.device_id
    raw.clientIDs.extend(header.clients)
    frame = b""
    for part in (raw.SerializeToString(), message):
        if len(part) > MAX_PART:
            raise FrameError(f"{len(part)} bytes are too long for a frame (at most {MAX_PART})")
        frame += struct.pack(">H", len(part)) + part
    return frame


def decode(datagram: bytes) -> Frame:
    """The one frame of a datagram. Raises FrameError."""
    frame, rest = _take(datagram)
    if frame is None:
        raise FrameError(f"the datagram of {len(datagram)} bytes ends within the frame")
    if rest != len(datagram):
        raise FrameError(f"{len(datagram) - rest} bytes follow the frame")
    return frame


class FrameReader:
    """Extracts frames from a stream that arrives in pieces of any size."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, piece: bytes) -> list[Frame]:
        """The frames that are complete now. Raises FrameError."""
        self._buffer += piece
        frames = []
        start = 0
        view = bytes(self._buffer)
        while True:
            frame, end = _take(view, start)
            if frame is None:
                break
            frames.append(frame)
            start = end
        del self._buffer[:start]
        return frames

    @property
    def waiting(self) -> int:
        """Bytes of a frame that is not complete yet."""
        return len(self._buffer)


def _take(data: bytes, start: int = 0) -> tuple[Frame | None, int]:
    parts = []
    end = start
    for _ in range(2):
        if len(data) < end + 2:
            return None, start
        (length,) = struct.unpack_from(">H", data, end)
        end += 2 + length
        if len(data) < end:
            return None, start
        parts.append(data[end - length : end])
    raw = DriverHdr()
    try:
        raw.ParseFromString(parts[0])
    except Exception as error:
        raise FrameError(f"the header {parts[0].hex()} cannot be read: {error}") from error
    header = Header(
        raw.deviceType if raw.HasField("deviceType") else None,
        raw.deviceID if raw.HasField("deviceID") else None,
        tuple(raw.clientIDs),
    )
    return Frame(header, parts[1]), end
