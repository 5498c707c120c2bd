"""Methods of typed devices that no description has, or not in this form. IO by other methods.

Both kinds of clients have them; the annotations go to the stubs.
"""

from __future__ import annotations

import asyncio
import os
import random
import sys
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Any

from . import schemas
from .device import Device
from .errors import BadAnswer, NoAnswer, Refused
from .values import (
    DriveEnd,
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

#: The interval between questions about an order, in seconds.
_PERIOD_S = 0.2
#: How often a request is sent, because UDP loses datagrams. A driver does not start an order twice.
_ATTEMPTS = 3

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


class Robot:
    def odometry_updates(self: Any, period_ms: int = 100) -> Subscription[Any]:
        """The odometry every ``period_ms`` milliseconds, which is at least 1.

        None comes while the wheels report no speeds. The device keeps one period per client, that
        of the last subscription.
        """
        return self._odometry_updates(period_ms)  # type: ignore[no-any-return]


class Camera:
    def pictures(
        self: Any,
        period_ms: int = 200,
        *,
        max_width: int | None = None,
        quality_percent: int | None = None,
        format: int | str = "JPEG",
    ) -> Subscription[Any]:
        """The newest picture every ``period_ms`` milliseconds, which is at least 1.

        A period shorter than that of the camera means each picture. A picture wider than
        ``max_width`` pixels is made smaller. The device keeps one period and one kind of picture
        per client, those of the last subscription.
        """
        return self._pictures(  # type: ignore[no-any-return]
            period_ms, max_width, quality_percent, format
        )


class DriveToPoint:
    async def stop(self: Any) -> None:
        """Deletes all targets, which stops the robot. No answer."""
        await self.set_targets([])

    async def drive_to(self: Any, target: Target) -> DriveEnd:
        """Drives to one target and waits for the end. This replaces all other targets.

        The result tells whether the robot has arrived, and if not, why. The robot may wait forever,
        for example for a lost laser: ``progress()`` shows why.

        An error or cancelling does not stop the robot: call ``stop()``, or close the client. To stop
        only what you have started, use ``drive_as``.
        """
        return await self.drive_as(new_order_id(), [target])  # type: ignore[no-any-return]

    async def drive_as(self: Any, id: int, targets: Iterable[Target]) -> DriveEnd:
        """Like ``drive_to``, with any number of targets and an id from :func:`amber.new_order_id`.

        With the id, ``cancel_order`` stops this trip and no other one.
        """
        targets = list(targets)
        order = await _ended(
            self, id, lambda: self.go(id, targets, _program()), lambda: self.configuration()
        )
        pose = None
        if _state(order) == "ARRIVED":
            pose = (await _repeated(lambda: self.progress())).location
        return _end(order, pose)


class PidFollowTrajectory:
    async def set_trajectory(self: Any, points: Iterable[TrajectoryPoint]) -> None:
        """Another name of ``set_targets``, without settings. No answer."""
        await self.set_targets(points)

    async def drive_along(
        self: Any,
        points: Iterable[TrajectoryPoint],
        configuration: Any = None,
        id: int | None = None,
    ) -> DriveEnd:
        """Follows a trajectory and waits for the end.

        This replaces the trajectory that the robot follows, if any. With an ``id`` from
        :func:`amber.new_order_id`, ``cancel_order`` stops it. The result has no pose.
        """
        points = list(points)
        id = new_order_id() if id is None else id
        settings = {} if configuration is None else configuration
        order = await _ended(
            self,
            id,
            lambda: self.follow(id, points, settings, _program()),
            lambda: self.next_targets(),
        )
        return _end(order, None)

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


def new_order_id() -> int:
    """A new id for an order, at random: two clients do not choose the same one."""
    return random.SystemRandom().randrange(2**32, 2**53)


async def _ended(
    device: Any,
    id: int,
    begin: Callable[[], Awaitable[Any]],
    known_to_all: Callable[[], Awaitable[Any]],
) -> Any:
    """Begins an order and waits for its end. Returns the order."""
    order = await _begun(device, begin, known_to_all)
    while _state(order) == "RUNNING":
        await asyncio.sleep(_PERIOD_S)
        order = await _repeated(lambda: device.order(id))
    return order


async def _begun(
    device: Any, begin: Callable[[], Awaitable[Any]], known_to_all: Callable[[], Awaitable[Any]]
) -> Any:
    """Begins an order, and tells an old driver from a bad network.

    ``known_to_all`` is a request that each driver of the device answers.
    """
    for _ in range(_ATTEMPTS):
        try:
            return await begin()
        except NoAnswer:
            await known_to_all()
    raise Refused(
        f"{device.address} refused the request: its driver knows no orders with ids",
        "BAD_REQUEST",
        "use the driver of this version of Amber; or set the targets without an id, and ask for the "
        "next targets until none are left",
    )


async def _repeated(request: Callable[[], Awaitable[Any]]) -> Any:
    """Repeats a request whose answer is lost."""
    for _ in range(_ATTEMPTS - 1):
        try:
            return await request()
        except NoAnswer:
            pass
    return await request()


def _state(order: Any) -> str:
    states = order.DESCRIPTOR.fields_by_name["state"].enum_type.values_by_number
    return str(states[order.state].name)


def _end(order: Any, pose: MapPose | None) -> DriveEnd:
    state, reason = _state(order), str(order.reason)
    if state == "UNKNOWN":
        reason = (
            "the driver no longer knows the order: it was restarted, or many orders came since"
        )
    return DriveEnd(state, reason, pose)


def _program() -> str | None:
    """The name of this program, for people who ask who drives."""
    return os.path.basename(sys.argv[0]) or None if sys.argv else None


def _driver_status(message: Any) -> DriverStatus:
    names = {number: name for name, number in vars(schemas.mediator.DriverState).items()}
    return DriverStatus(
        tuple(str(Device(device.type, device.id)) for device in message.devices),
        names.get(message.state, str(message.state)).lower(),
        message.pid if message.HasField("pid") else None,
        message.restarts,
        message.reason or None,
    )
