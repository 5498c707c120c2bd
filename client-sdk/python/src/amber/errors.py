"""The errors. PURE."""

from __future__ import annotations

import sys

#: For the address of a mediator.
_FIND_A_MEDIATOR = "start one there with `amber demo`, or set AMBER_MEDIATOR to HOST or HOST:PORT"


class AmberError(Exception):
    """Base class of all errors between this program and a device."""

    #: What to do about it, as text; None if unknown. From Python 3.11 on, tracebacks show it.
    hint: str | None = None

    def _advise(self, hint: str | None) -> None:
        self.hint = hint
        if hint is not None and sys.version_info >= (3, 11):
            self.add_note(f"hint: {hint}")


class FrameError(AmberError, ValueError):
    """The bytes are not a frame, or the message is too long for one."""


class NoAnswer(AmberError, TimeoutError):
    """There was no answer within the deadline. UDP may have lost the request or its answer."""


class DriverDied(AmberError):
    """No driver serves the device, or the driver died before it answered."""


class Unreachable(AmberError, ConnectionError):
    """No mediator can be reached at the address."""

    def __init__(self, message: str, hint: str | None = _FIND_A_MEDIATOR) -> None:
        super().__init__(message)
        self._advise(hint)


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
        self._advise(hint)


class Closed(AmberError):
    """The client has been closed."""
