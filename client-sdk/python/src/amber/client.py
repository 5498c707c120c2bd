"""A client for programs without asyncio. IO.

::

    with amber.Client("192.168.2.201") as robot:
        robot.roboclaw().drive(amber.WheelSpeeds.all(200))
        for scan in robot.hokuyo().scans():
            print(scan.nearest())

It runs :mod:`amber.aio` in its own thread, and may be used from any
thread. Errors, deadlines and values are the same.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Iterable, Iterator, Mapping
from typing import (
    Any,
    Generic,
    TypeVar,
)

from . import aio, proxies
from .device import Device
from .errors import Closed
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

T = TypeVar("T")
Self = TypeVar("Self", bound="Typed")


class Client:
    """A connection to a mediator; see :class:`amber.aio.Client`.

    Raises OSError if the host name cannot be resolved.
    """

    def __init__(self, mediator: str | None = None, *, deadline: float = aio.DEADLINE) -> None:
        self._aio = aio.Client(mediator, deadline=deadline)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="amber", daemon=True)
        self._closed = False
        self._thread.start()
        try:
            self._run(self._aio.connect())
        except BaseException:
            self._end()
            raise

    @classmethod
    def _over(cls, transport: aio.Transport) -> Client:
        """For drivers: uses their own pipe."""
        self = cls.__new__(cls)
        self._aio = aio.Client("", deadline=aio.DEADLINE)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="amber", daemon=True)
        self._closed = False
        self._thread.start()

        async def start() -> None:
            self._aio.over(transport, is_driver=True)

        self._run(start())
        return self

    def _handle(self, frame: Any) -> None:
        self._loop.call_soon_threadsafe(self._aio.handle, frame)

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        if self._closed:
            work.close()
            raise Closed("the client has been closed")
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def close(self) -> None:
        """Tells the mediator and all used devices that this client leaves."""
        if not self._closed:
            self._run(self._aio.close())
            self._end()

    def _end(self) -> None:
        self._closed = True
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def late_answers(self) -> int:
        """The number of answers that were late or duplicated."""
        return self._aio.late_answers

    def device(self, device: str | Device) -> Proxy:
        """Any device, in its own messages: ``"dummy"``, ``"4:1"``."""
        return Proxy(self, self._aio.device(device))

    def mediator(self) -> Mediator:
        """The mediator itself: the state of all drivers."""
        return Mediator(self, self._aio.mediator())

    def ninedof(self, id: int = 0) -> NineDof:
        """Accelerometer, gyroscope and magnetometer."""
        return NineDof(self, self._aio.ninedof(id))

    def roboclaw(self, id: int = 0) -> Roboclaw:
        """Four driven wheels."""
        return Roboclaw(self, self._aio.roboclaw(id))

    def stargazer(self, id: int = 0) -> Stargazer:
        """Pose from landmarks on the ceiling."""
        return Stargazer(self, self._aio.stargazer(id))

    def hokuyo(self, id: int = 0) -> Hokuyo:
        """Laser scanner."""
        return Hokuyo(self, self._aio.hokuyo(id))

    def dummy(self, id: int = 0) -> Dummy:
        """No hardware, for experiments."""
        return Dummy(self, self._aio.dummy(id))

    def location(self, id: int = 0) -> Location:
        """Where the robot is on its map."""
        return Location(self, self._aio.location(id))

    def maestro(self, id: int = 0) -> Maestro:
        """Hobby servos."""
        return Maestro(self, self._aio.maestro(id))

    def drive_to_point(self, id: int = 0) -> DriveToPoint:
        """Drives to targets, one after the other."""
        return DriveToPoint(self, self._aio.drive_to_point(id))

    def collision_avoidance(self, id: int = 0) -> CollisionAvoidance:
        """Drives like the Roboclaw and avoids collisions."""
        return CollisionAvoidance(self, self._aio.collision_avoidance(id))

    def pid_follow_trajectory(self, id: int = 0) -> PidFollowTrajectory:
        """Follows a line of points."""
        return PidFollowTrajectory(self, self._aio.pid_follow_trajectory(id))


class Subscription(Generic[T]):
    """The publications of a device: an iterator, ended by leaving the loop or :meth:`close`."""

    def __init__(self, client: Client, inner: aio.Subscription[T]) -> None:
        self._client = client
        self._inner = inner

    @property
    def missed(self) -> int:
        """The number of values dropped because the reader was too slow."""
        return self._inner.missed

    def open(self) -> Subscription[T]:
        """Subscribes now, if that has not been done yet."""

        async def work() -> None:
            self._inner.open()

        self._client._run(work())
        return self

    def next(self, timeout: float | None = None) -> T | None:
        """The next value; None when the subscription has ended.

        Raises TimeoutError after ``timeout`` seconds.
        """
        try:
            return self._client._run(asyncio.wait_for(self._inner.next(), timeout))
        except asyncio.TimeoutError:
            raise TimeoutError(f"nothing from {self._inner.device} within {timeout:g} s") from None

    def close(self) -> None:
        """Unsubscribes."""

        async def work() -> None:
            self._inner.close()

        if not self._client._closed:
            self._client._run(work())

    def __enter__(self) -> Subscription[T]:
        return self.open()

    def __exit__(self, *_: object) -> None:
        self.close()

    def __iter__(self) -> Iterator[T]:
        try:
            while True:
                value = self.next()
                if value is None:
                    return
                yield value
        finally:
            self.close()


class Proxy:
    """One device, in its own messages; see :class:`amber.aio.Proxy`."""

    def __init__(self, client: Client, inner: aio.Proxy) -> None:
        self._client = client
        self._inner = inner

    def ping(self) -> float:
        """Measures the round-trip time of a PING to the driver, in seconds."""
        return self._client._run(self._inner.ping())

    def request(self, message: Any) -> Any:
        """Sends a request, and returns its answer."""
        return self._client._run(self._inner.request(message))

    def send(self, message: Any) -> None:
        """Sends a command that has no answer."""
        self._client._run(self._inner.send(message))

    def messages(self) -> Subscription[Any]:
        """All publications of the device, as DriverMsg."""
        return Subscription(self._client, self._inner.messages())


class Typed:
    """Base class of the typed devices. The methods are those of the
    class of the same name in :mod:`amber.proxies`, and documented there."""

    def __init__(self, client: Client, inner: Any) -> None:
        self._client = client
        self._inner = inner

    def with_deadline(self: Self, seconds: float) -> Self:
        """The same device with another deadline."""
        return type(self)(self._client, self._inner.with_deadline(seconds))

    def ping(self) -> float:
        """Measures the round-trip time of a PING to the driver, in seconds."""
        return float(self._run(self._inner.ping()))

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._client._run(work)

    def _listen(self, subscription: aio.Subscription[T]) -> Subscription[T]:
        return Subscription(self._client, subscription)


class Dummy(Typed):
    """No hardware, for experiments."""

    _inner: proxies.Dummy

    def status(self) -> DummyStatus:
        """The flag and the text."""
        return self._run(self._inner.status())

    def set_enable(self, enable: bool) -> None:
        """Sets the flag; no answer."""
        self._run(self._inner.set_enable(enable))

    def set_message(self, text: str) -> None:
        """Sets the text; no answer."""
        self._run(self._inner.set_message(text))

    def messages(self) -> Subscription[str]:
        """Its publications, ten per second."""
        return self._listen(self._inner.messages())


class Roboclaw(Typed):
    """Four driven wheels."""

    _inner: proxies.Roboclaw

    def drive(self, speeds: WheelSpeeds) -> None:
        """Sets the speeds; no answer."""
        self._run(self._inner.drive(speeds))

    def stop(self) -> None:
        """Stops all wheels; no answer."""
        self._run(self._inner.stop())

    def speeds(self) -> WheelSpeeds:
        """The measured speeds."""
        return self._run(self._inner.speeds())


class Hokuyo(Typed):
    """Laser scanner."""

    _inner: proxies.Hokuyo

    def scan(self) -> Scan:
        """One scan."""
        return self._run(self._inner.scan())

    def scans(self) -> Subscription[Scan]:
        """Every scan that the device takes."""
        return self._listen(self._inner.scans())


class NineDof(Typed):
    """Accelerometer, gyroscope and magnetometer."""

    _inner: proxies.NineDof

    def data(
        self, *, accelerometer: bool = True, gyroscope: bool = True, magnetometer: bool = True
    ) -> ImuReading:
        """One reading of the selected sensors."""
        return self._run(
            self._inner.data(
                accelerometer=accelerometer, gyroscope=gyroscope, magnetometer=magnetometer
            )
        )

    def readings(
        self,
        period_ms: int = 100,
        *,
        accelerometer: bool = True,
        gyroscope: bool = True,
        magnetometer: bool = True,
    ) -> Subscription[ImuReading]:
        """A reading every ``period_ms`` milliseconds."""
        return self._listen(
            self._inner.readings(
                period_ms,
                accelerometer=accelerometer,
                gyroscope=gyroscope,
                magnetometer=magnetometer,
            )
        )


class Stargazer(Typed):
    """Pose from landmarks on the ceiling."""

    _inner: proxies.Stargazer

    def pose(self) -> Pose | None:
        """The last pose."""
        return self._run(self._inner.pose())

    def poses(self, period_ms: int = 0) -> Subscription[Pose]:
        """A pose every ``period_ms`` milliseconds; every pose if it is 0."""
        return self._listen(self._inner.poses(period_ms))


class Maestro(Typed):
    """Hobby servos. Nothing here has an answer."""

    _inner: proxies.Maestro

    def set_angle(self, servo: int, angle_deg: int) -> None:
        """Turns one servo, 0 to 180 degrees."""
        self._run(self._inner.set_angle(servo, angle_deg))

    def set_same_angle(self, servos: Iterable[int], angle_deg: int) -> None:
        """Turns several servos to one angle."""
        self._run(self._inner.set_same_angle(servos, angle_deg))

    def set_angles(self, angles_deg: Mapping[int, int]) -> None:
        """Turns several servos, each to its own angle."""
        self._run(self._inner.set_angles(angles_deg))

    def set_speed(self, servo: int, speed: int) -> None:
        """Sets the speed of a servo in the controller's unit; 0 is the maximum speed."""
        self._run(self._inner.set_speed(servo, speed))


class Location(Typed):
    """Where the robot is on its map."""

    _inner: proxies.Location

    def pose(self) -> MapPose:
        """The pose; see :attr:`MapPose.is_known`."""
        return self._run(self._inner.pose())

    def upload_map(self, roson: str) -> None:
        """Replaces the map; no answer."""
        self._run(self._inner.upload_map(roson))


class DriveToPoint(Typed):
    """Drives to targets, one after the other."""

    _inner: proxies.DriveToPoint

    def set_targets(self, targets: Iterable[Target]) -> None:
        """Replaces all targets and starts; an empty list stops."""
        self._run(self._inner.set_targets(targets))

    def stop(self) -> None:
        """Deletes all targets; no answer."""
        self._run(self._inner.stop())

    def next_targets(self) -> list[Target]:
        """The targets that are still to be reached."""
        return self._run(self._inner.next_targets())

    def visited_targets(self) -> list[Target]:
        """The targets that have been reached."""
        return self._run(self._inner.visited_targets())


class CollisionAvoidance(Typed):
    """Drives like the Roboclaw and avoids collisions."""

    _inner: proxies.CollisionAvoidance

    def drive(self, speeds: WheelSpeeds) -> None:
        """Sets the wanted speeds; no answer."""
        self._run(self._inner.drive(speeds))

    def stop(self) -> None:
        """Stops all wheels; no answer."""
        self._run(self._inner.stop())

    def speeds(self) -> WheelSpeeds:
        """The measured speeds."""
        return self._run(self._inner.speeds())

    def scan(self) -> Scan:
        """The last scan."""
        return self._run(self._inner.scan())

    def speeds_and_scan(self) -> tuple[WheelSpeeds, Scan]:
        """Both at once."""
        return self._run(self._inner.speeds_and_scan())


class PidFollowTrajectory(Typed):
    """Follows a line of points."""

    _inner: proxies.PidFollowTrajectory

    def set_trajectory(self, points: Iterable[TrajectoryPoint]) -> None:
        """Replaces the line; no answer."""
        self._run(self._inner.set_trajectory(points))

    def start(self) -> None:
        """Starts; no answer."""
        self._run(self._inner.start())

    def stop(self) -> None:
        """Stops; no answer."""
        self._run(self._inner.stop())

    def next_points(self) -> list[TrajectoryPoint]:
        """The points that are still to be reached."""
        return self._run(self._inner.next_points())

    def visited_points(self) -> list[TrajectoryPoint]:
        """The points that have been reached."""
        return self._run(self._inner.visited_points())


class Mediator(Typed):
    """The mediator itself."""

    _inner: proxies.Mediator

    def drivers(self) -> list[DriverStatus]:
        """All drivers, in the order of the configuration."""
        return self._run(self._inner.drivers())

    def events(self) -> Subscription[Any]:
        """Events of devices and clients, as messages of mediator.proto."""
        return self._listen(self._inner.events())
