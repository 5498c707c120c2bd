"""The errors. PURE."""

from __future__ import annotations


class AmberError(Exception):
    """Base class of all errors between this program and a device."""


class FrameError(AmberError, ValueError):
    """The bytes are not a frame, or the message is too long for one."""


class NoAnswer(AmberError, TimeoutError):
    """There was no answer within the deadline. UDP may have lost the request or its answer."""


class DriverDied(AmberError):
    """No driver serves the device, or the driver died before it answered."""


class Unreachable(AmberError, ConnectionError):
    """The network reports that no mediator is listening at the address."""


class BadAnswer(AmberError, ValueError):
    """The answer of the device is invalid or does not fit the request."""


class Refused(BadAnswer):
    """The device understood the request and refused it.

    A driver may raise it to refuse a request.
    """

    def __init__(self, message: str, reason: str | None = None, hint: str | None = None) -> None:
        super().__init__(message)
        #: The reason as a name, such as ``NOT_ALLOWED``; None if there is none.
        self.reason = reason
        #: A hint as text; None if unknown.
        self.hint = hint


class Closed(AmberError):
    """The client has been closed."""
