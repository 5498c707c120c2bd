"""Methods of typed devices that no description has, or not in this form. IO by other methods.

Both kinds of clients have them; the annotations go to the stubs.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from . import schemas
from .device import Device
from .errors import BadAnswer, NoAnswer
from .values import (
    DriverStatus,
    ImuReading,
    MapPose,
    Sensors,
    Target,
    TrajectoryPoint,
    WheelSpeeds,
)

if TYPE_CHECKING:
    from .aio import Subscription

#: The interval between requests for the progress, in seconds.
_PERIOD_S = 0.2
#: The maximum number of consecutive lost answers.
_MAX_LOST = 2
#: The driver computes in another frame, and so may round.
_ROUNDING_M = 1e-6

#: Names that classes had before.
ALIASES = {"Location": "LocationService"}


class Dummy:
    async def set_enable(self: Any, enable: bool) -> None:
        """Another name of ``enable``."""
        await self.enable(enable)

    async def set_message(self: Any, text: str) -> None:
        """Another name of ``message``."""
        await self.message(text)


class Roboclaw:
    async def stop(self: Any) -> None:
        """Stops all wheels. No answer."""
        await self.drive(WheelSpeeds())


class CollisionAvoidance(Roboclaw):
    pass


class NineDof:
    async def data(
        self: Any,
        *,
        accelerometer: bool = True,
        gyroscope: bool = True,
        magnetometer: bool = True,
    ) -> ImuReading:
        """One reading of the selected sensors."""
        sensors = Sensors(accelerometer, gyroscope, magnetometer)
        return await self._data(sensors)  # type: ignore[no-any-return]

    def readings(
        self: Any,
        period_ms: int = 100,
        *,
        accelerometer: bool = True,
        gyroscope: bool = True,
        magnetometer: bool = True,
    ) -> Subscription[ImuReading]:
        """A reading of the selected sensors every ``period_ms`` milliseconds, which is at least 1.

        The device keeps one period and one set of sensors per client, those of
        the last subscription.
        """
        return self._readings(  # type: ignore[no-any-return]
            period_ms, accelerometer, gyroscope, magnetometer, True
        )


class DriveToPoint:
    async def stop(self: Any) -> None:
        """Deletes all targets, which stops the robot. No answer."""
        await self.set_targets([])

    async def drive_to(self: Any, target: Target) -> MapPose | None:
        """Drives to one target and waits until the robot is there. This replaces all other targets.

        Returns the pose there; None if the driver gave the target up, or if another client has set
        its own. The robot may wait forever, for example for a lost laser: ``progress()`` shows why.

        An error or cancelling does not stop the robot: call ``stop()``, or close the client.
        """
        # This shows whether the driver works: commands have no answer.
        await self.configuration()
        await self.set_targets([target])
        lost = 0
        while True:
            try:
                remaining, _ = await self.next_targets()
                if not remaining:
                    visited, pose = await self.visited_targets()
                    arrived = any(_is_same(place, target) for place in visited)
                    return pose if arrived else None
                lost = 0
            except NoAnswer:
                # UDP may lose an answer.
                lost += 1
                if lost > _MAX_LOST:
                    raise
            await asyncio.sleep(_PERIOD_S)


class PidFollowTrajectory:
    async def set_trajectory(self: Any, points: Iterable[TrajectoryPoint]) -> None:
        """Another name of ``set_targets``, without settings. No answer."""
        await self.set_targets(points)

    async def next_points(self: Any) -> list[TrajectoryPoint]:
        """Another name of ``next_targets``."""
        return await self.next_targets()  # type: ignore[no-any-return]

    async def visited_points(self: Any) -> list[TrajectoryPoint]:
        """Another name of ``visited_targets``."""
        return await self.visited_targets()  # type: ignore[no-any-return]


class Mediator:
    async def drivers(self: Any) -> list[DriverStatus]:
        """All drivers, in the order of the configuration."""
        found: list[DriverStatus] = []
        while True:
            page = await self.list_drivers(len(found))
            found += [_driver_status(driver) for driver in page.drivers]
            if len(found) >= page.total or not page.drivers:
                return found

    async def driver(self: Any, device: str | Device) -> Any:
        """Details of the driver that serves a device, as a message of mediator.proto."""
        return await self.describe_driver(*Device.parse(device))

    async def load(self: Any, device: str | Device) -> Any:
        """The messages and clients of a device, from the description that its driver has sent.

        The result is that of :func:`amber.load_proto`; no file and no compiler are needed.
        """
        device = Device.parse(device)
        found = await self.get_description(*device)
        try:
            return schemas.from_description(found.files)
        except ValueError as error:
            raise BadAnswer(f"{device}: {error}") from error

    async def clients(self: Any) -> list[Any]:
        """All known clients, as messages of mediator.proto."""
        found: list[Any] = []
        while True:
            page = await self.list_clients(len(found))
            found += page.clients
            if len(found) >= page.total or not page.clients:
                return found

    async def start(self: Any, device: str | Device) -> str:
        """Starts the driver of a device. Returns a sentence that describes the result."""
        return await self.change_driver(device, "START")  # type: ignore[no-any-return]

    async def stop(self: Any, device: str | Device) -> str:
        """Stops the driver of a device. Returns a sentence that describes the result."""
        return await self.change_driver(device, "STOP")  # type: ignore[no-any-return]

    async def restart(self: Any, device: str | Device) -> str:
        """Restarts the driver of a device. Returns a sentence that describes the result."""
        return await self.change_driver(device, "RESTART")  # type: ignore[no-any-return]


def _driver_status(message: Any) -> DriverStatus:
    names = {number: name for name, number in vars(schemas.mediator.DriverState).items()}
    return DriverStatus(
        tuple(str(Device(device.type, device.id)) for device in message.devices),
        names.get(message.state, str(message.state)).lower(),
        message.pid if message.HasField("pid") else None,
        message.restarts,
        message.reason or None,
    )


def _is_same(one: Target, other: Target) -> bool:
    return math.hypot(one.x_m - other.x_m, one.y_m - other.y_m) < _ROUNDING_M
