"""A robot, as programs with asyncio see it. IO."""

from __future__ import annotations

import asyncio
import contextlib
import html
import time
from collections.abc import Awaitable
from typing import Any, TypeVar

from . import halt
from .aio import DEADLINE, Client
from .device import MEDIATOR, Device
from .errors import AmberError, Closed, DriverDied, NoAnswer, Unreachable
from .lease import Lease
from .scene import Place, Scene, ground, is_sure, places, pose_of
from .schemas import DriverMsg
from .values import MapPose

#: How long a robot waits for its mediator, in seconds.
CONNECT_TIMEOUT = 3.0

#: The wheels of a robot without a configuration.
_WHEELS, _LASER = Device.parse("roboclaw"), Device.parse("hokuyo")
#: Seconds between two PINGs while the mediator has not answered.
_GREETING_S = 0.2
#: A scan is drawn at the pose of its time, which is known a moment later: after so many more poses.
_POSES, _BETWEEN_POSES_S = 3, 0.1

T = TypeVar("T")
Self = TypeVar("Self", bound="Robot")


class Robot(Client):
    """A robot: a connection to its mediator, with a method for each kind of device.

    ::

        async with amber.aio.Robot() as robot:
            end = await robot.drive_to_point().drive_to(amber.Target(1.4, 1.0))
            print(end)

    ``mediator`` is ``HOST`` or ``HOST:PORT``; by default ``AMBER_MEDIATOR`` in the environment, or
    else this machine. ``deadline`` is the time limit for an answer in seconds, and ``validity`` how
    long commands that move something hold, in seconds: see :class:`amber.aio.Client`.

    A robot differs from a client in that it waits for its mediator, for ``connect_timeout``
    seconds. 0 waits for nothing: the mediator may come later, or be one of the original system.

    At the end of ``async with``, what this program has set in motion stops. In a notebook, write
    ``robot = await amber.aio.Robot().connect()``, and ``await robot.scene()`` to see it.
    """

    def __init__(
        self,
        mediator: str | None = None,
        *,
        deadline: float = DEADLINE,
        validity: float | None = None,
        connect_timeout: float = CONNECT_TIMEOUT,
    ) -> None:
        super().__init__(mediator, deadline=deadline, validity=validity)
        #: How long to wait for the mediator, in seconds.
        self.connect_timeout: float = connect_timeout

    async def connect(self: Self) -> Self:
        """Connects to the mediator, and waits until it answers.

        Raises Unreachable, with a ``hint``, if there is no such host, or if no mediator answers
        there. Cancelling closes the robot.
        """
        await super().connect()
        try:
            await self._greet()
        except BaseException:
            await self.close()
            raise
        return self

    async def _greet(self) -> None:
        until = time.monotonic() + self.connect_timeout
        while not self._mediator_answers and self.connect_timeout > 0:
            left = until - time.monotonic()
            if left <= 0:
                where, seconds = self.mediator_address, self.connect_timeout
                raise Unreachable(f"no mediator answers at {where} within {seconds:g} s")
            with contextlib.suppress(NoAnswer):
                await self._ask(MEDIATOR, DriverMsg(type=DriverMsg.PING), min(left, _GREETING_S))

    async def with_role(self, role: str) -> Device | None:
        """The device with a role, such as ``"wheels"`` or ``"laser"``.

        None if no device has it, or if the robot has no configuration. Raises NoAnswer.
        """
        try:
            shape = await self.robot().shape()
        except DriverDied:
            return None
        return _in_role(shape, role)

    async def take_wheels(
        self, name: str, *, force: bool = False, wait: bool = False, period: float = 2.0
    ) -> Lease:
        """Takes the lease of the wheels: until it is released, nobody else drives this robot.

        ``name`` is that of the program, for people. :class:`amber.lease.Lease` explains the others,
        and the errors. ``async with await robot.take_wheels("my program"):`` also releases it.
        """
        wheels = self.device(await self.with_role("wheels") or _WHEELS)
        return await wheels.lease(name, force=force, wait=wait, period=period).take()

    async def halt(self, name: str) -> list[Device]:
        """Stops all devices that move, whoever moves them. They refuse motion until the halt is
        released, also after a restart of their drivers.

        ``name`` says to people who halts them. Returns the devices. This is no emergency stop: it
        needs the network, the mediator and the drivers.

        Raises AmberError if no running driver has a device that moves, or if one of them could not
        be halted; the others are.
        """
        return await halt.change_all(self, True, name)

    async def release_halt(self, name: str) -> list[Device]:
        """Releases the halts of all devices, whoever has halted them. Returns the devices.

        Raises Refused if another client holds the lease of one: only that client may release its
        halt. The other devices may move again.
        """
        return await halt.change_all(self, False, name)

    async def scene(self) -> Scene:
        """What the robot knows of its surroundings: map, pose, scan and path.

        What a device does not say within the deadline is in ``missing``. Raises Closed only.
        """
        missing: dict[str, str] = {}

        async def part(name: str, request: Awaitable[T]) -> T | None:
            try:
                return await request
            except Closed:
                raise
            except AmberError as error:
                missing.setdefault(name, str(error))
                return None

        location, drive = self.location(), self.drive_to_point()
        pose, quality, found, progress, targets, shape = await asyncio.gather(
            part("pose", location.pose()),
            part("quality", location.quality()),
            part("map", location.map()),
            part("path", drive.progress()),
            part("path", drive.next_targets()),
            part("shape", self.robot().shape()),
        )
        missing.pop("quality", None)
        missing.pop("shape", None)
        world = None
        if found is not None:
            try:
                world = ground(found)
            except ValueError as error:
                missing["map"] = f"the map of the driver is invalid: {error}"
        if pose is not None and not pose.is_known:
            pose, missing["pose"] = None, f"{location.address} does not know the position yet"
        path = None if progress is None else progress.progress.path
        return Scene(
            map=world,
            pose=pose,
            is_sure=pose is not None and is_sure(pose, quality is not None),
            scan=await self._scan(pose, shape, missing),
            path=() if path is None else list(zip(path.xs, path.ys)),
            targets=() if targets is None else targets.targets,
            missing=missing,
        )

    async def _scan(
        self, pose: MapPose | None, shape: Any, missing: dict[str, str]
    ) -> list[Place]:
        """The points of a scan on the map."""
        if shape is None or not shape.HasField("laser"):
            missing["laser"] = "the robot does not know the place of its laser: docs/robot.md"
        if pose is None or shape is None or "laser" in missing:
            return []
        laser = self.hokuyo((_in_role(shape, "laser") or _LASER).id)
        try:
            scan = await laser.scan()
            poses = [pose]
            for _ in range(_POSES):
                if scan.taken_at_s is None or pose_of(scan, poses) is not None:
                    break
                await asyncio.sleep(_BETWEEN_POSES_S)
                poses.append(await self.location().pose())
        except Closed:
            raise
        except AmberError as error:
            missing["laser"] = str(error)
            return []
        # The clocks may differ.
        return places(scan, pose_of(scan, poses) or poses[-1], shape.laser)

    def __repr__(self) -> str:
        return f"<amber.aio.Robot at {self.mediator_address}>"

    def _repr_html_(self) -> str:
        """For notebooks, which cannot wait for an answer here."""
        return f"{html.escape(repr(self))}: <code>await robot.scene()</code> shows it"


def _in_role(shape: Any, role: str) -> Device | None:
    found = (Device(it.type, it.id) for it in shape.roles if it.role == role)
    return next(found, None)
