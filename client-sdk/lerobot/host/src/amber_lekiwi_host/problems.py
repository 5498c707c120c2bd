"""Keeps the log short: each problem is a line when it begins, when it changes, and when it ends. PURE."""

from __future__ import annotations

from typing import NamedTuple, Optional

#: A condition is over when nobody has reported it for this time, in seconds.
_OVER_S = 3.0
#: The least time between two lines about events of the same kind, in seconds.
_EVENTS_S = 10.0


class _Condition(NamedTuple):
    text: str
    reported_s: float
    #: Whether its end is worth a line.
    says_end: bool


class _Events(NamedTuple):
    said_s: float
    #: Those after the last line.
    unsaid: int


class Problems:
    """What is said about each topic, such as "arm:0"."""

    def __init__(self) -> None:
        self._conditions: dict[str, _Condition] = {}
        self._events: dict[str, _Events] = {}

    def condition(
        self, now_s: float, topic: str, text: str, says_end: bool = True
    ) -> Optional[str]:
        """A condition lasts: report it again and again. Returns the line to write, if any."""
        before = self._conditions.get(topic)
        self._conditions[topic] = _Condition(text, now_s, says_end)
        return None if before is not None and before.text == text else f"{topic}: {text}"

    def over(self, now_s: float) -> list[str]:
        """The conditions that nobody has reported for a while, as lines."""
        ended = {
            topic: condition
            for topic, condition in self._conditions.items()
            if now_s - condition.reported_s >= _OVER_S
        }
        for topic in ended:
            del self._conditions[topic]
        return [f"{topic}: works again" for topic, it in ended.items() if it.says_end]

    def event(self, now_s: float, topic: str, text: str) -> Optional[str]:
        """Something has happened. Returns the line to write, if any."""
        before = self._events.get(topic)
        if before is not None and now_s - before.said_s < _EVENTS_S:
            self._events[topic] = _Events(before.said_s, before.unsaid + 1)
            return None
        self._events[topic] = _Events(now_s, 0)
        more = f" ({before.unsaid} more before)" if before is not None and before.unsaid else ""
        return f"{topic}: {text}{more}"
