"""The loop of the host: commands in, observations out. IO."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Mapping
from typing import NamedTuple, Optional

import amber

from .hands import Hands
from .messages import Command, Malformed, Unknown, observation, read_command
from .problems import Problems
from .seat import VALIDITY_S, Change, Freshness, Seat
from .senses import Senses, known_devices
from .sockets import Sockets

LOG = logging.getLogger("amber_lekiwi_host")

#: Cameras that are used if the options name none, as far as the robot has them.
USUAL_CAMERAS = {"front": amber.Device.parse("camera:0"), "wrist": amber.Device.parse("camera:1")}
#: Observations per second, at most: those of LeRobot's own host.
_RATE_HZ = 30
#: The time between two looks at the ports, in seconds, and while no client is connected.
_TURN_S, _IDLE_TURN_S = 0.01, 0.1
_GREETING_S = 1.0


class Settings(NamedTuple):
    """What the host serves."""

    arm: amber.Device
    base: amber.Device
    #: By the names that the client uses. None: USUAL_CAMERAS.
    cameras: Optional[Mapping[str, amber.Device]]
    #: Wider pictures are made smaller. None: pictures are as the camera makes them.
    max_width: Optional[int]


class Host:
    """Serves until it is cancelled."""

    def __init__(self, robot: amber.aio.Client, sockets: Sockets, settings: Settings) -> None:
        self._robot, self._sockets, self._settings = robot, sockets, settings
        self._problems = Problems()
        self._seat = Seat()
        self._freshness = Freshness(time.monotonic())
        arm, base = settings.arm, settings.base
        self._senses = Senses(robot, arm, base, settings.max_width)
        self._hands = Hands(robot, arm, base, self._refused, LOG.info)
        self._observe_at_s = 0.0
        #: For people: how much of what has come and gone.
        self.counts = dict.fromkeys(("commands", "malformed", "of other clients", "observations"), 0)

    async def run(self) -> None:
        """Ends only by an exception, such as CancelledError. Then the robot stops."""
        meeting = asyncio.ensure_future(self._meet())
        resting: Optional[asyncio.Future[None]] = None
        try:
            while True:
                lines, gone = self._sockets.look()
                for line in lines:
                    LOG.info("%s", line)
                for client in gone:
                    self._seat.left(client)
                # What cannot be carried out now is lost: it would be old later.
                command = self._newest_command()
                is_resting = resting is not None and not resting.done()
                if meeting.done():
                    meeting.result()
                    if command is not None and not is_resting:
                        await self._hands.command(command)
                    await self._observe()
                while (change := self._seat.changed(time.monotonic())) is not None:
                    if change is Change.PAUSED:
                        LOG.info("no command for %g s: the robot stops", VALIDITY_S)
                    else:
                        resting = asyncio.ensure_future(self._hands.rest())
                for line in self._problems.over(time.monotonic()):
                    LOG.info("%s", line)
                is_used = self._sockets.observers or self._sockets.commanders
                await asyncio.sleep(_TURN_S if is_used else _IDLE_TURN_S)
        finally:
            meeting.cancel()
            others = [meeting] if resting is None else [meeting, resting]
            await asyncio.gather(*others, return_exceptions=True)
            await self._hands.rest()
            with contextlib.suppress(amber.Closed):
                await self._senses.close()

    # The robot

    async def _meet(self) -> None:
        """Waits for the mediator, and says what is not there."""
        while True:
            try:
                known = await known_devices(self._robot)
                break
            except amber.AmberError as error:
                self._warn(self._problems.condition(time.monotonic(), "mediator", str(error)))
                await asyncio.sleep(_GREETING_S)
        cameras = self._settings.cameras
        if cameras is None:
            cameras = {name: it for name, it in USUAL_CAMERAS.items() if it in known}
        used = {self._settings.arm, self._settings.base, *cameras.values()}
        for device in sorted(used - known, key=str):
            has = ", ".join(sorted(str(it) for it in known if it.type == device.type))
            LOG.warning("the robot has no %s%s", device, f", but {has}" if has else "")
        names = [f"{name} is {device}" for name, device in cameras.items()]
        LOG.info("cameras: %s", ", ".join(names) or "none")
        self._senses.set_cameras(cameras)

    def _refused(self, device: str, why: str) -> None:
        now_s = time.monotonic()
        self._warn(self._problems.condition(now_s, f"{device} does not move", why, says_end=False))

    def _warn(self, line: Optional[str]) -> None:
        if line is not None:
            LOG.warning("%s", line)

    # Commands

    def _newest_command(self) -> Optional[Command]:
        """Of the client that has the seat. Older ones are of no use any more."""
        newest = None
        now_s = time.monotonic()
        received = self._sockets.receive()
        are_fresh = self._freshness.turn(now_s, len(received))
        if received and not are_fresh:
            text = "commands are ignored for a moment: they have waited, in the network or here"
            self._warn(self._problems.event(now_s, "old", text))
        for client, parts in received:
            try:
                command = read_command(parts)
            except Malformed as error:
                self.counts["malformed"] += 1
                text = f"a command of {self._sockets.address_of(client)} is ignored: {error}"
                self._warn(self._problems.event(now_s, "malformed", text))
                continue
            if self._seat.claims(now_s, client):
                self.counts["commands"] += 1
                newest = command if are_fresh else None
                continue
            self.counts["of other clients"] += 1
            assert self._seat.holder is not None
            mover = self._sockets.address_of(self._seat.holder)
            text = f"commands of {self._sockets.address_of(client)} are ignored: {mover} moves the robot"
            self._warn(self._problems.event(now_s, "another client", text))
        return newest

    # Observations

    async def _observe(self) -> None:
        if not self._sockets.observers:
            if self._senses.is_open:
                await self._senses.close()
            return
        if not self._senses.is_open:
            self._senses.open()
        now_s = time.monotonic()
        if now_s < self._observe_at_s:
            return
        # Observations that are late are not sent faster afterwards.
        self._observe_at_s = max(self._observe_at_s + 1 / _RATE_HZ, now_s)
        try:
            measured = self._senses.measured()
        except Unknown as error:
            text = f"no observations: {error}"
            self._warn(self._problems.condition(now_s, "the robot", text))
            return
        if measured is None:
            return
        pictures, reasons = self._senses.pictures()
        for name, why in reasons.items():
            self._warn(self._problems.condition(now_s, name, f"no pictures: {why}"))
        if any(not picture and name not in reasons for name, picture in pictures.items()):
            return  # the first picture of a camera takes a moment
        self._sockets.send(observation(*measured, pictures))
        self.counts["observations"] += 1
