"""Typed devices for asyncio. IO only through :class:`amber.aio.Proxy`.

Methods that send a request raise NoAnswer, DriverDied or BadAnswer. Those that
command without an answer say so; they raise nothing when the datagram gets
lost. Cancelling forgets the answer; the device may have got the request.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar, cast

from . import schemas
from .aio import Proxy, Subscription
from .errors import BadAnswer
from .schemas import DriverMsg
from .values import (
    DriverStatus,
    DummyStatus,
    ImuReading,
    MapPose,
    Pose,
    Scan,
    Target,
    TrajectoryPoint,
    WheelSpeeds,
)

Self = TypeVar("Self", bound="Typed")


class Typed:
    """Base class of the typed devices."""

    def __init__(self, proxy: Proxy) -> None:
        self.proxy = proxy

    def with_deadline(self: Self, seconds: float) -> Self:
        """The same device with another deadline."""
        return type(self)(self.proxy.with_deadline(seconds))

    async def ping(self) -> float:
        """Measures the round-trip time of a PING to the driver, in seconds."""
        return await self.proxy.ping()

    def _part(self, answer: Any, extension: Any) -> Any:
        if not answer.HasExtension(extension):
            raise BadAnswer(f"{self.proxy.device} answered without {extension.name}")
        return answer.Extensions[extension]

    async def _flag(self, extension: Any) -> Any:
        """Sends a request that is a flag."""
        message = DriverMsg()
        message.Extensions[extension] = True
        return await self.proxy.request(message)


class Dummy(Typed):
    """No hardware, for experiments."""

    async def status(self) -> DummyStatus:
        """The flag and the text."""
        answer = await self._flag(schemas.dummy.get_status)
        return DummyStatus(
            bool(self._part(answer, schemas.dummy.enable)),
            str(self._part(answer, schemas.dummy.message)),
        )

    async def set_enable(self, enable: bool) -> None:
        """Sets the flag; no answer."""
        message = DriverMsg()
        message.Extensions[schemas.dummy.enable] = enable
        await self.proxy.send(message)

    async def set_message(self, text: str) -> None:
        """Sets the text; no answer."""
        message = DriverMsg()
        message.Extensions[schemas.dummy.message] = text
        await self.proxy.send(message)

    def messages(self) -> Subscription[str]:
        """Its publications, ten per second."""
        text = schemas.dummy.message
        return self.proxy.subscription(
            lambda m: cast(str, m.Extensions[text]) if m.HasExtension(text) else None
        )


class Roboclaw(Typed):
    """Four driven wheels.

    The driver stops them by itself a few seconds after the last command and
    when this client goes away: a program that drives repeats its command.
    """

    async def drive(self, speeds: WheelSpeeds) -> None:
        """Sets the speeds; no answer. A command beyond the limit (1200 mm/s
        unless configured otherwise) is dropped whole."""
        message = DriverMsg()
        speeds._write(message.Extensions[schemas.roboclaw.motorsCommand])
        await self.proxy.send(message)

    async def stop(self) -> None:
        """Stops all wheels; no answer."""
        await self.drive(WheelSpeeds())

    async def speeds(self) -> WheelSpeeds:
        """The measured speeds."""
        answer = await self._flag(schemas.roboclaw.currentSpeedRequest)
        return WheelSpeeds._read(self._part(answer, schemas.roboclaw.currentSpeed))


class Hokuyo(Typed):
    """Laser scanner."""

    async def scan(self) -> Scan:
        """One scan."""
        answer = await self._flag(schemas.hokuyo.get_single_scan)
        self._part(answer, schemas.hokuyo.scan)
        return cast(Scan, _scan(answer))

    def scans(self) -> Subscription[Scan]:
        """Every scan that the device takes."""
        return self.proxy.subscription(_scan)


def _scan(message: Any) -> Scan | None:
    if not message.HasExtension(schemas.hokuyo.scan):
        return None
    timestamp_ms = message.Extensions[schemas.hokuyo.timestamp]
    return Scan._read(message.Extensions[schemas.hokuyo.scan], timestamp_ms)


class NineDof(Typed):
    """Accelerometer, gyroscope and magnetometer."""

    async def data(
        self, *, accelerometer: bool = True, gyroscope: bool = True, magnetometer: bool = True
    ) -> ImuReading:
        """One reading of the selected sensors."""
        message = DriverMsg()
        request = message.Extensions[schemas.ninedof.dataRequest]
        request.accel, request.gyro, request.magnet = accelerometer, gyroscope, magnetometer
        request.extended = True
        answer = await self.proxy.request(message)
        return ImuReading._read(self._part(answer, schemas.ninedof.sensorData))

    def readings(
        self,
        period_ms: int = 100,
        *,
        accelerometer: bool = True,
        gyroscope: bool = True,
        magnetometer: bool = True,
    ) -> Subscription[ImuReading]:
        """A reading every ``period_ms`` milliseconds.

        The device keeps one period and one set of sensors per client, those of
        the last subscription.
        """
        data = schemas.ninedof.sensorData

        def order(period: int) -> Any:
            message = DriverMsg(type=DriverMsg.DATA)
            action = message.Extensions[schemas.ninedof.subscribeAction]
            action.freq = period  # a period, in spite of its name
            action.accel, action.gyro, action.magnet = accelerometer, gyroscope, magnetometer
            action.extended = True
            return message

        return self.proxy.subscription(
            lambda m: ImuReading._read(m.Extensions[data]) if m.HasExtension(data) else None,
            order(period_ms),
            order(0),
        )


class Stargazer(Typed):
    """Pose from landmarks on the ceiling."""

    async def pose(self) -> Pose | None:
        """The most recent pose, which may be old (see :attr:`Pose.lost_ms`); None
        when there was none so far."""
        message = DriverMsg()
        message.Extensions[schemas.stargazer.dataRequest].SetInParent()
        answer = await self.proxy.request(message)
        data = schemas.stargazer.localizationData
        return Pose._read(answer.Extensions[data]) if answer.HasExtension(data) else None

    def poses(self, period_ms: int = 0) -> Subscription[Pose]:
        """The last pose every ``period_ms`` milliseconds; every pose if it is 0.

        There are none while no marker is in view.
        """
        data = schemas.stargazer.localizationData

        def order(action: int) -> Any:
            message = DriverMsg(type=DriverMsg.DATA)
            subscribe = message.Extensions[schemas.stargazer.subscribeAction]
            subscribe.action, subscribe.freq = action, period_ms
            return message

        actions = schemas.stargazer.SubscribeAction
        return self.proxy.subscription(
            lambda m: Pose._read(m.Extensions[data]) if m.HasExtension(data) else None,
            order(actions.SUBSCRIBE),
            order(actions.UNSUBSCRIBE),
        )


class Maestro(Typed):
    """Hobby servos. Nothing here has an answer."""

    async def set_angle(self, servo: int, angle_deg: int) -> None:
        """Turns one servo, 0 to 180 degrees."""
        message = DriverMsg()
        command = message.Extensions[schemas.maestro.setAngleCommand]
        command.servoAddress, command.angle = servo, angle_deg
        await self.proxy.send(message)

    async def set_same_angle(self, servos: Iterable[int], angle_deg: int) -> None:
        """Turns several servos to one angle."""
        message = DriverMsg()
        command = message.Extensions[schemas.maestro.setSameAngleCommand]
        command.servoAddresses.extend(servos)
        command.angle = angle_deg
        await self.proxy.send(message)

    async def set_angles(self, angles_deg: Mapping[int, int]) -> None:
        """Turns several servos, each to its own angle."""
        message = DriverMsg()
        command = message.Extensions[schemas.maestro.setDifferentAnglesCommand]
        command.servoAddresses.extend(angles_deg.keys())
        command.angles.extend(angles_deg.values())
        await self.proxy.send(message)

    async def set_speed(self, servo: int, speed: int) -> None:
        """Sets the speed of a servo in the controller's unit; 0 is the maximum speed."""
        message = DriverMsg()
        command = message.Extensions[schemas.maestro.setSpeedCommand]
        command.servoAddress, command.speed = servo, speed
        await self.proxy.send(message)


class Location(Typed):
    """Where the robot is on its map."""

    async def pose(self) -> MapPose:
        """The pose; see :attr:`MapPose.is_known`."""
        answer = await self._flag(schemas.location.get_location)
        return MapPose._read(self._part(answer, schemas.location.currentLocation))

    async def upload_map(self, roson: str) -> None:
        """Replaces the map; no answer."""
        message = DriverMsg()
        message.Extensions[schemas.location.upload_map] = roson
        await self.proxy.send(message)


class DriveToPoint(Typed):
    """Drives to targets, one after the other."""

    async def set_targets(self, targets: Iterable[Target]) -> None:
        """Replaces all targets and starts; an empty list stops. No answer."""
        message = DriverMsg()
        message.Extensions[schemas.drive_to_point.setTargets] = True
        wanted = message.Extensions[schemas.drive_to_point.targets]
        wanted.SetInParent()
        for target in targets:
            wanted.longitudes.append(target.x_m)
            wanted.latitudes.append(target.y_m)
            wanted.radiuses.append(target.radius_m)
        await self.proxy.send(message)

    async def stop(self) -> None:
        """Deletes all targets; no answer."""
        await self.set_targets([])

    async def next_targets(self) -> list[Target]:
        """The targets that are still to be reached."""
        return await self._targets(schemas.drive_to_point.getNextTargets)

    async def visited_targets(self) -> list[Target]:
        """The targets that have been reached."""
        return await self._targets(schemas.drive_to_point.getVisitedTargets)

    async def _targets(self, request: Any) -> list[Target]:
        answer = await self._flag(request)
        return Target._read_all(self._part(answer, schemas.drive_to_point.targets))


class CollisionAvoidance(Typed):
    """Drives like the Roboclaw and avoids collisions."""

    async def drive(self, speeds: WheelSpeeds) -> None:
        """Sets the wanted speeds; no answer."""
        message = DriverMsg()
        message.Extensions[schemas.collision_avoidance.setSpeed] = True
        speeds._write(message.Extensions[schemas.collision_avoidance.motorsSpeed])
        await self.proxy.send(message)

    async def stop(self) -> None:
        """Stops all wheels; no answer."""
        await self.drive(WheelSpeeds())

    async def speeds(self) -> WheelSpeeds:
        """The measured speeds."""
        answer = await self._flag(schemas.collision_avoidance.getSpeed)
        return WheelSpeeds._read(self._part(answer, schemas.collision_avoidance.motorsSpeed))

    async def scan(self) -> Scan:
        """The last scan."""
        answer = await self._flag(schemas.collision_avoidance.getScan)
        return Scan._read(self._part(answer, schemas.collision_avoidance.scan))

    async def speeds_and_scan(self) -> tuple[WheelSpeeds, Scan]:
        """Both at once."""
        answer = await self._flag(schemas.collision_avoidance.getSpeedAndScan)
        return (
            WheelSpeeds._read(self._part(answer, schemas.collision_avoidance.motorsSpeed)),
            Scan._read(self._part(answer, schemas.collision_avoidance.scan)),
        )


class PidFollowTrajectory(Typed):
    """Follows a line of points."""

    async def set_trajectory(self, points: Iterable[TrajectoryPoint]) -> None:
        """Replaces the line; no answer."""
        message = DriverMsg()
        message.Extensions[schemas.pid_follow_trajectory.setTargets] = True
        wanted = message.Extensions[schemas.pid_follow_trajectory.targets]
        wanted.SetInParent()
        for point in points:
            wanted.latitudes.append(point.x_m)
            wanted.longitudes.append(point.y_m)
            wanted.times.append(point.time_ms)
        await self.proxy.send(message)

    async def start(self) -> None:
        """Starts; no answer."""
        await self._command(schemas.pid_follow_trajectory.startExecution)

    async def stop(self) -> None:
        """Stops; no answer."""
        await self._command(schemas.pid_follow_trajectory.stopExecution)

    async def next_points(self) -> list[TrajectoryPoint]:
        """The points that are still to be reached."""
        return await self._points(schemas.pid_follow_trajectory.getNextTargets)

    async def visited_points(self) -> list[TrajectoryPoint]:
        """The points that have been reached."""
        return await self._points(schemas.pid_follow_trajectory.getVisitedTargets)

    async def _command(self, extension: Any) -> None:
        message = DriverMsg()
        message.Extensions[extension] = True
        await self.proxy.send(message)

    async def _points(self, request: Any) -> list[TrajectoryPoint]:
        answer = await self._flag(request)
        return TrajectoryPoint._read_all(self._part(answer, schemas.pid_follow_trajectory.targets))


class Mediator(Typed):
    """The mediator itself."""

    async def drivers(self) -> list[DriverStatus]:
        """All drivers, in the order of the configuration."""
        found: list[DriverStatus] = []
        while True:
            message = DriverMsg()
            request = message.Extensions[schemas.mediator.request]
            request.list_drivers.skip = len(found)
            answer = await self.proxy.request(message)
            reply = self._part(answer, schemas.mediator.reply)
            if reply.HasField("refused"):
                raise BadAnswer(f"the mediator refused: {reply.refused.message}")
            found += [DriverStatus._read(driver) for driver in reply.drivers.drivers]
            if len(found) >= reply.drivers.total or not reply.drivers.drivers:
                return found

    def events(self) -> Subscription[Any]:
        """Events of devices and clients, as messages of mediator.proto."""
        event = schemas.mediator.event
        return self.proxy.subscription(
            lambda m: m.Extensions[event] if m.HasExtension(event) else None
        )
