"""What the robot measures: its arm, its base, and pictures. IO.

It listens only while a client wants observations, so that cameras are off otherwise.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any, Awaitable, Callable, Optional

import amber

from .messages import Unknown, Velocity, joints_of, velocity_of

#: An older measurement says nothing about now, in seconds.
_MEASUREMENT_AGE_S = 0.5
#: An older picture is none. Cameras may be slow, and networks, too.
_PICTURE_AGE_S = 1.5
#: How long a client waits for the first measurements before there is a problem, in seconds.
_FIRST_MEASUREMENTS_S = 2.0
#: How long a client waits for the first picture of each camera, in seconds. A camera that nobody has
#: used needs up to three seconds, and LeRobot's client waits for five.
_FIRST_PICTURES_S = 4.0
#: The pause between two questions to a device that publishes nothing, in seconds.
_ASK_AGAIN_S = 1.0
_PICTURE_PERIOD_MS = 33


class Senses:
    """``cameras`` are their devices by the names that LeRobot's client knows."""

    def __init__(
        self,
        robot: amber.aio.Client,
        arm: amber.Device,
        base: amber.Device,
        max_width: Optional[int],
    ) -> None:
        self._robot = robot
        self._max_width = max_width
        the_arm, the_base = robot.arm(arm.id), robot.base(base.id)
        self._arm = _Source(str(arm), the_arm.state_updates, the_arm.state)
        self._base = _Source(str(base), the_base.state_updates, the_base.state)
        self._cameras: dict[str, _Source] = {}
        self._opened_s: Optional[float] = None

    def set_cameras(self, cameras: Mapping[str, amber.Device]) -> None:
        """Call this before :meth:`open`."""
        # Two names of one camera share its pictures.
        sources = {device: self._pictures(device) for device in cameras.values()}
        self._cameras = {name: sources[device] for name, device in cameras.items()}

    def _pictures(self, device: amber.Device) -> _Source:
        camera, width = self._robot.camera(device.id), self._max_width
        return _Source(
            str(device),
            lambda: camera.pictures(_PICTURE_PERIOD_MS, max_width=width),
            lambda: camera.picture(max_width=width, max_age_ms=1000),
        )

    @property
    def is_open(self) -> bool:
        return self._opened_s is not None

    def open(self) -> None:
        """Begins to listen."""
        self._opened_s = time.monotonic()
        for source in self._sources():
            source.open()

    async def close(self) -> None:
        """Listens no more."""
        self._opened_s = None
        await asyncio.gather(*(source.close() for source in self._sources()))

    def _sources(self) -> set[_Source]:
        return {self._arm, self._base, *self._cameras.values()}

    def measured(self) -> Optional[tuple[dict[str, float], Velocity]]:
        """The positions of the joints, and the velocity of the base. None: they are still to come.

        Raises Unknown.
        """
        states = []
        for source in (self._arm, self._base):
            state = source.newest(_MEASUREMENT_AGE_S)
            if state is None and self._age_s() < _FIRST_MEASUREMENTS_S:
                return None
            if state is None:
                raise Unknown(source.silence)
            states.append(state)
        try:
            return joints_of(states[0]), velocity_of(states[1])
        except Unknown as error:
            raise Unknown(f"{self._arm.name}: {error}") from None

    def pictures(self) -> tuple[dict[str, bytes], dict[str, str]]:
        """A JPEG file of each camera, and the reasons why there is none, by the names of the cameras.

        A picture without a file is still to come if it has no reason.
        """
        files: dict[str, bytes] = {}
        reasons = {}
        for name, source in self._cameras.items():
            picture = source.newest(_PICTURE_AGE_S)
            files[name] = b"" if picture is None else picture.data
            is_late = source.is_refused or self._age_s() >= _FIRST_PICTURES_S
            if picture is None and is_late:
                reasons[name] = source.silence
        return files, reasons

    def _age_s(self) -> float:
        """For how long it listens."""
        return 0.0 if self._opened_s is None else time.monotonic() - self._opened_s


class _Source:
    """The newest value that a device publishes, or the reason why it is silent."""

    def __init__(
        self,
        name: str,
        subscribe: Callable[[], amber.aio.Subscription[Any]],
        ask: Callable[[], Awaitable[Any]],
    ) -> None:
        self.name = name
        #: Why there is nothing new: a sentence without a capital letter.
        self.silence = ""
        #: Whether it was asked, and had a reason.
        self.is_refused = False
        self._subscribe, self._ask = subscribe, ask
        self._subscription: Optional[amber.aio.Subscription[Any]] = None
        self._tasks: list[asyncio.Task[None]] = []
        self._value: Any = None
        self._received_s = 0.0

    def open(self) -> None:
        self._value, self.is_refused = None, False
        self.silence = f"{self.name} says nothing"
        self._received_s = time.monotonic()
        self._subscription = self._subscribe()
        self._tasks = [asyncio.ensure_future(it) for it in (self._listen(), self._question())]

    async def close(self) -> None:
        if self._subscription is not None:
            self._subscription.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def newest(self, max_age_s: float) -> Any:
        """The newest value, or None if there is none that is new enough."""
        return self._value if time.monotonic() - self._received_s <= max_age_s else None

    async def _listen(self) -> None:
        assert self._subscription is not None
        async for value in self._subscription:
            self._take(value)

    async def _question(self) -> None:
        """A device that publishes nothing says why, if it is asked."""
        while True:
            await asyncio.sleep(_ASK_AGAIN_S)
            if time.monotonic() - self._received_s < _ASK_AGAIN_S:
                continue
            try:
                self._take(await self._ask())
            except amber.AmberError as error:
                self.silence, self.is_refused = str(error), True

    def _take(self, value: Any) -> None:
        # The lower part of a damaged picture is grey or wrong.
        if not getattr(value, "damaged", False):
            self._value, self._received_s, self.is_refused = value, time.monotonic(), False


async def known_devices(robot: amber.aio.Client) -> set[amber.Device]:
    """The devices that the mediator has drivers for. Raises AmberError."""
    drivers = await robot.mediator().drivers()
    return {amber.Device.parse(device) for driver in drivers for device in driver.devices}
