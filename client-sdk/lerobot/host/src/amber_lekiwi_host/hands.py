"""Moves the base and the arm, for as long as it holds the leases of both. IO.

The leases of both are taken together: the base and the arm of a LeKiwi have the same servos, so a
lease of one keeps other programs from the other one, too.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import Callable, Optional

import amber

from .messages import Command
from .seat import VALIDITY_S

#: What other programs are told about the holder of the leases.
_NAME = "LeRobot, through amber-lekiwi-host"
#: The pause after an attempt to take the leases that has failed, in seconds.
_TRY_AGAIN_S = 1.0


class Hands:
    """``report`` gets the name of a device, and why it does not move: for as long as that lasts."""

    def __init__(
        self,
        robot: amber.aio.Client,
        arm: amber.Device,
        base: amber.Device,
        report: Callable[[str, str], None],
        say: Callable[[str], None],
    ) -> None:
        self._report, self._say = report, say
        self._names = (str(base), str(arm))
        self._leases = {name: robot.device(name).lease(_NAME) for name in self._names}
        self._arm = robot.arm(arm.id).with_validity(VALIDITY_S)
        self._follow = self._arm.without_waiting(lambda error: report(str(arm), str(error))).follow
        told = robot.base(base.id).with_validity(VALIDITY_S)
        self._drive = told.without_waiting(lambda error: report(str(base), str(error))).drive
        self._holds = False
        self._taking: Optional[asyncio.Task[None]] = None
        self._try_at_s = 0.0

    async def command(self, command: Command) -> None:
        """Sends a command. Without the leases, it takes these first, and the command is lost: the next
        one comes in a moment."""
        self._notice_losses()
        if not self._holds:
            if self._taking is None and time.monotonic() >= self._try_at_s:
                self._taking = asyncio.ensure_future(self._take())
            return
        try:
            if command.velocity is not None:
                await self._drive(*command.velocity)
            if command.joints:
                await self._follow(command.joints)
        except amber.Unreachable as error:
            self._report("mediator", str(error))

    async def rest(self) -> None:
        """Releases the leases, which stops the robot if it still moves."""
        if self._taking is not None:
            self._taking.cancel()
            await asyncio.gather(self._taking, return_exceptions=True)
            self._taking = None
        await self._release()

    async def _take(self) -> None:
        name = ""
        try:
            for name in self._names:
                await self._leases[name].take()
            # Motors that are on hold their place; switching them on again would move them a little.
            state = await self._arm.state()
            if not all(joint.torque for joint in state.joints):
                await self._arm.set_torque(True)
        except amber.AmberError as error:
            self._report(name, str(error))
            await self._release()
        except BaseException:
            await self._release()
            raise
        else:
            self._holds = True
            self._say(f"LeRobot moves {' and '.join(self._names)} now")
        finally:
            self._try_at_s = time.monotonic() + _TRY_AGAIN_S
            self._taking = None

    def _notice_losses(self) -> None:
        for name, lease in self._leases.items():
            if self._holds and lease.lost is not None:
                self._report(name, f"its lease is lost: {lease.lost or 'its driver is a new one'}")
                self._holds = False

    async def _release(self) -> None:
        held, self._holds = self._holds, False
        for lease in self._leases.values():
            # It ends by itself if this does not arrive.
            with contextlib.suppress(amber.AmberError):
                await lease.release()
        if held:
            self._say(f"other programs may move {' and '.join(self._names)} now")
