"""Which client moves the robot, and whether it still does. PURE."""

from __future__ import annotations

import enum
import math
from typing import Optional

#: How long a command for the base or the arm holds, in seconds. The drivers of Amber count it.
VALIDITY_S = 0.45
#: After this time without a command, other clients and other programs may move the robot.
FREE_S = 2.0


class Change(enum.Enum):
    """What has become of the client that moves the robot."""

    #: Its last command is no longer valid.
    PAUSED = 1
    #: It has left, or has not commanded for a while.
    FREE = 2


class Seat:
    """The first client that commands has the seat, until it leaves or sends no more commands."""

    def __init__(self) -> None:
        self._holder: Optional[int] = None
        self._commanded_s = 0.0
        self._paused = False

    @property
    def holder(self) -> Optional[int]:
        """The client that moves the robot."""
        return self._holder

    def claims(self, now_s: float, client: int) -> bool:
        """A client has sent a command. Returns whether it counts."""
        if self._holder is None:
            self._holder = client
        if self._holder != client:
            return False
        self._commanded_s, self._paused = now_s, False
        return True

    def left(self, client: int) -> None:
        """A client has disconnected: the seat is free at once."""
        if self._holder == client:
            self._commanded_s = -math.inf

    def changed(self, now_s: float) -> Optional[Change]:
        """What has changed by the time. Call it until it returns None."""
        if self._holder is None:
            return None
        silent_s = now_s - self._commanded_s
        if silent_s >= FREE_S:
            self._holder, self._paused = None, False
            return Change.FREE
        if silent_s >= VALIDITY_S and not self._paused:
            self._paused = True
            return Change.PAUSED
        return None


#: Commands that may be old are ignored for this time, in seconds: what has waited arrives at once.
_OLD_S = 0.5
#: More commands in one turn of the host have waited somewhere. LeRobot sends 30 per second.
_MANY = 3


class Freshness:
    """Whether commands may be old: they do not say when they were sent.

    TCP delivers everything, so the commands of a pause arrive after it, all at once: when the network
    was away, or when this program was.
    """

    def __init__(self, now_s: float) -> None:
        self._turn_s = now_s
        self._arrived_s = now_s
        self._old_until_s = now_s

    def turn(self, now_s: float, arrived: int) -> bool:
        """Call this in each turn, with the number of commands. Returns whether they count."""
        was_away = now_s - self._turn_s > VALIDITY_S
        were_waiting = arrived > _MANY and now_s - self._arrived_s > VALIDITY_S
        if was_away or were_waiting:
            self._old_until_s = now_s + _OLD_S
        self._turn_s = now_s
        if arrived:
            self._arrived_s = now_s
        return now_s >= self._old_until_s
