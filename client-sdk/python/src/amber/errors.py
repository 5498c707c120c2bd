"""What can go wrong. PURE."""

from __future__ import annotations


class AmberError(Exception):
    """Anything that goes wrong between this program and a device."""


class FrameError(AmberError, ValueError):
    """Bytes that are no frame, or a message that fits into none."""


class NoAnswer(AmberError, TimeoutError):
    """The deadline passed. UDP may have lost the request or its answer."""


class DriverDied(AmberError):
    """The device is not there, or its driver died before it answered."""


class Unreachable(AmberError, ConnectionError):
    """The network says that no mediator listens at the address."""


class BadAnswer(AmberError, ValueError):
    """The device answered with something that does not fit the question."""


class Closed(AmberError):
    """The client has been closed."""
