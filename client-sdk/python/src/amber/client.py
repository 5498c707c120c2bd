"""A client for programs without asyncio. IO.

::

    with amber.Client("192.168.2.201") as robot:
        robot.roboclaw().drive(amber.WheelSpeeds.all(200))
        for scan in robot.hokuyo().scans():
            print(scan.nearest())
            break

It runs :mod:`amber.aio` in its own thread, and may be used from any
thread. Errors, deadlines and values are the same.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import os
import threading
from collections.abc import Coroutine, Iterator
from typing import Any, Generic, TypeVar

from . import aio, devices, lease
from .device import Device
from .devices import *  # noqa: F403  (their names were here before)
from .errors import Closed
from .values import MotionState

T = TypeVar("T")
Self = TypeVar("Self", bound="Client")
#: Seconds for work that goes on although the client is closed.
_LAST_WORDS = 0.5


class Client(devices.Devices):
    """A connection to a mediator; see :class:`amber.aio.Client`.

    Raises Unreachable if there is no such host. Belongs to the process that made it: after a
    fork, the child needs a client of its own.
    """

    def __init__(
        self,
        mediator: str | None = None,
        *,
        deadline: float = aio.DEADLINE,
        validity: float | None = None,
    ) -> None:
        self._open(aio.Client(mediator, deadline=deadline, validity=validity))

    def _open(self, client: aio.Client) -> None:
        self._start(client)
        try:
            self._run(self._aio.connect())
        except BaseException:
            self.close()
            raise

    @classmethod
    def _over(cls, transport: aio.Transport) -> Client:
        """For drivers: uses their own pipe."""
        self = cls.__new__(cls)
        self._start(aio.Client("", deadline=aio.DEADLINE))

        async def start() -> None:
            self._aio.over(transport, is_driver=True)

        self._run(start())
        return self

    def _start(self, client: aio.Client) -> None:
        self._aio = client
        # The default loop of Windows cannot watch sockets.
        self._loop = asyncio.SelectorEventLoop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="amber", daemon=True)
        self._pid = os.getpid()
        self._closed = False
        #: Held while work is handed over, so that none comes after the end.
        self._handing_over = threading.Lock()
        self._thread.start()

    def _handle(self, frame: Any) -> None:
        self._loop.call_soon_threadsafe(self._aio.handle, frame)

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        if os.getpid() != self._pid:
            work.close()
            raise Closed("the client belongs to the parent of this process; make another one")
        with self._handing_over:
            if self._closed:
                work.close()
                raise Closed("the client has been closed")
            future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except concurrent.futures.CancelledError:
            raise Closed("the client has been closed") from None
        except BaseException:
            future.cancel()
            raise

    def close(self) -> None:
        """Tells the mediator and all used devices that this client leaves.

        Other threads that read or wait for an answer return at once: subscriptions end, and
        requests raise Closed.
        """
        if os.getpid() != self._pid:  # the parent still uses it
            self._closed = True
            return
        with self._handing_over:
            if self._closed:
                return
            self._closed = True
            ended = asyncio.run_coroutine_threadsafe(self._end(), self._loop)
        ended.result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _end(self) -> None:
        await self._aio.close()
        # Threads wait for the results of these.
        others = asyncio.all_tasks() - {asyncio.current_task()}
        if others:
            _, late = await asyncio.wait(others, timeout=_LAST_WORDS)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<amber.Client of {self.mediator_address}>"

    @property
    def mediator_address(self) -> str:
        """The address of the mediator, as it was given."""
        return self._aio.mediator_address

    @property
    def late_answers(self) -> int:
        """The number of answers that were late or duplicated."""
        return self._aio.late_answers

    def device(self, device: str | Device) -> Proxy:
        """Any device, in its own messages: ``"dummy"``, ``"4:1"``."""
        return Proxy(self, self._aio.device(device))

    def _listen(self, subscription: aio.Subscription[T]) -> Subscription[T]:
        return Subscription(self, subscription)


class Subscription(Generic[T]):
    """The publications of a device: an iterator, ended by leaving the loop or :meth:`close`."""

    def __init__(self, client: Client, inner: aio.Subscription[T]) -> None:
        self._client = client
        self._inner = inner

    @property
    def missed(self) -> int:
        """The number of values that are lost: as in :class:`amber.aio.Subscription`."""
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

        async def work() -> T | None:
            return await asyncio.wait_for(self._inner.next(), timeout)

        try:
            return self._client._run(work())
        except Closed:
            if self._client._closed:
                return None
            raise
        except asyncio.TimeoutError:
            raise TimeoutError(f"nothing from {self._inner.device} within {timeout:g} s") from None

    def close(self) -> None:
        """Unsubscribes."""

        async def work() -> None:
            self._inner.close()

        with contextlib.suppress(Closed):
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

    def messages(self, message_class: Any = aio.DriverMsg) -> Subscription[Any]:
        """All publications of the device, as DriverMsg."""
        return Subscription(self._client, self._inner.messages(message_class))

    def lease(
        self, name: str, *, force: bool = False, wait: bool = False, period: float = 2.0
    ) -> Lease:
        """The lease of the device, for ``with``; see :class:`amber.lease.Lease`."""
        inner = self._inner.lease(name, force=force, wait=wait, period=period)
        return Lease(self._client, inner)

    def motion_state(self) -> MotionState:
        """Who moves the device, and who has halted it; see :class:`amber.aio.Proxy`."""
        return self._client._run(self._inner.motion_state())

    def halt(self, name: str) -> MotionState:
        """Stops the device, which refuses motion until the halt is released.

        ``name`` says to people who halts it. This is no emergency stop: see
        :class:`amber.aio.Proxy`.
        """
        return self._client._run(self._inner.halt(name))

    def release_halt(self, name: str) -> MotionState:
        """Releases a halt. Raises Refused while another client holds the lease."""
        return self._client._run(self._inner.release_halt(name))


class Lease:
    """The lease of a device, for ``with`` or :meth:`take`; see :class:`amber.lease.Lease`."""

    def __init__(self, client: Client, inner: lease.Lease) -> None:
        self._client = client
        self._inner = inner

    @property
    def lost(self) -> str | None:
        """Why the lease was lost; None if it is held."""
        return self._inner.lost

    def take(self) -> Lease:
        """Takes the lease, and keeps it from now on. Does nothing while it is held.

        After it was lost, this takes it again.
        """
        self._client._run(self._inner.take())
        return self

    def release(self) -> None:
        """Releases the lease."""
        self._client._run(self._inner.release())

    def __enter__(self) -> Lease:
        return self.take()

    def __exit__(self, *_: object) -> None:
        self._client._run(self._inner.__aexit__())
