"""A robot, as programs without asyncio see it. IO."""

from __future__ import annotations

import contextlib
import html

from . import aio, client
from .aio_robot import CONNECT_TIMEOUT
from .device import Device
from .errors import Closed
from .scene import Scene


class Robot(client.Client):
    """A robot: a connection to its mediator, with a method for each kind of device.

    ::

        with amber.Robot() as robot:
            end = robot.drive_to_point().drive_to(amber.Target(1.4, 1.0))
            print(end)

    ``mediator`` is ``HOST`` or ``HOST:PORT``; by default ``AMBER_MEDIATOR`` in the environment, or
    else this machine. ``deadline`` is the time limit for an answer in seconds, and ``validity`` how
    long commands that move something hold, in seconds: see :class:`amber.aio.Client`.

    A robot differs from a client in that it waits for its mediator, for ``connect_timeout``
    seconds. 0 waits for nothing: the mediator may come later, or be one of the original system.
    Raises Unreachable, with a ``hint``, if there is no such host, or if no mediator answers there.

    At the end of ``with``, what this program has set in motion stops. Notebooks show a robot as a
    drawing, also while an event loop of asyncio runs. It may be used from any thread.
    """

    _aio: aio.Robot

    def __init__(
        self,
        mediator: str | None = None,
        *,
        deadline: float = aio.DEADLINE,
        validity: float | None = None,
        connect_timeout: float = CONNECT_TIMEOUT,
    ) -> None:
        self._open(
            aio.Robot(
                mediator, deadline=deadline, validity=validity, connect_timeout=connect_timeout
            )
        )

    def with_role(self, role: str) -> Device | None:
        """The device with a role, such as ``"wheels"`` or ``"laser"``.

        None if no device has it, or if the robot has no configuration. Raises NoAnswer.
        """
        return self._run(self._aio.with_role(role))

    def take_wheels(
        self, name: str, *, force: bool = False, wait: bool = False, period: float = 2.0
    ) -> client.Lease:
        """Takes the lease of the wheels: until it is released, nobody else drives this robot.

        ``name`` is that of the program, for people. :class:`amber.lease.Lease` explains the others,
        and the errors. ``with robot.take_wheels("my program"):`` also releases it.
        """
        taken = self._aio.take_wheels(name, force=force, wait=wait, period=period)
        return client.Lease(self, self._run(taken))

    def halt(self, name: str) -> list[Device]:
        """Stops all devices that move, whoever moves them. They refuse motion until the halt is
        released, also after a restart of their drivers.

        ``name`` says to people who halts them. Returns the devices. This is no emergency stop: it
        needs the network, the mediator and the drivers.

        Raises AmberError if no running driver has a device that moves, or if one of them could not
        be halted; the others are.
        """
        return self._run(self._aio.halt(name))

    def release_halt(self, name: str) -> list[Device]:
        """Releases the halts of all devices, whoever has halted them. Returns the devices.

        Raises Refused if another client holds the lease of one: only that client may release its
        halt. The other devices may move again.
        """
        return self._run(self._aio.release_halt(name))

    def scene(self) -> Scene:
        """What the robot knows of its surroundings: map, pose, scan and path.

        What a device does not say within the deadline is in ``missing``. Raises Closed only.
        """
        return self._run(self._aio.scene())

    def __repr__(self) -> str:
        return f"<amber.Robot at {self.mediator_address}>"

    def _repr_html_(self) -> str:
        """For notebooks."""
        words = html.escape(repr(self))
        with contextlib.suppress(Closed):
            return f"<p>{words}</p>{self.scene()._repr_html_()}"
        return f"<p>{words}: closed</p>"
