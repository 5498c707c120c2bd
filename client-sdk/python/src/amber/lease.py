"""The lease of a device that moves: while a client holds it, nobody else moves the device. IO only
through :class:`amber.aio.Proxy`.

::

    async with amber.aio.Robot() as robot:
        async with await robot.take_wheels("my program"):
            await robot.wheels().drive(amber.WheelSpeeds.all(100))

:meth:`amber.aio.Proxy.lease` is the same for any device that moves.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

from . import schemas
from .errors import AmberError, NoAnswer, Refused
from .schemas import DriverMsg

if TYPE_CHECKING:
    from .aio import Proxy

#: How often a lease is kept in one period: some datagrams get lost.
_KEEPS = 4
#: Seconds between two requests of a client that waits in turn.
_ASK_AGAIN_S = 0.2
#: A lease is lost when its device has not answered for this long, or for two periods. The device ends
#: it earlier: this is for the client, and longer than a busy machine needs for an answer.
_SILENCE_S = 5.0


class Lease:
    """A lease, taken with ``async with`` or :meth:`take` and kept until the end or :meth:`release`.

    ``name`` says to people who drives. The device stops if nothing comes from this client for
    ``period`` seconds (0.2 to 10), and at the release, if this client moved it. ``force`` takes the
    lease from its holder; ``wait`` waits in turn.

    Taking it raises Refused, which names the holder, or NoAnswer: the device does not move, or its
    driver keeps no leases.
    """

    def __init__(
        self,
        proxy: Proxy,
        name: str,
        *,
        force: bool = False,
        wait: bool = False,
        period: float = 2.0,
    ) -> None:
        self._proxy = proxy
        self._name = name
        self._force = force
        self._wait = wait
        self._period = min(max(period, 0.2), 10.0)
        self._task: asyncio.Task[None] | None = None
        self._lost: str | None = None

    @property
    def lost(self) -> str | None:
        """Why the lease was lost, such as that another client took it; None if it is held."""
        return self._lost

    async def take(self) -> Lease:
        """Takes the lease, and keeps it from now on. Does nothing while it is held.

        After it was lost, this takes it again. If this is cancelled, a lease that the device has
        granted ends by itself, after its period.
        """
        if self._task is not None and not self._task.done():
            return self
        action = schemas.motion.LeaseRequest
        if self._wait:
            while not (state := await self._ask(action.WAIT)).yours:
                if state.HasField("refused"):
                    raise Refused(f"{self._proxy.device} refused the request: {state.refused}")
                await asyncio.sleep(min(_ASK_AGAIN_S, self._period / _KEEPS))
        else:
            state = await self._ask(action.TAKE_BY_FORCE if self._force else action.TAKE)
            if not state.yours:
                raise Refused(f"{self._proxy.device} refused the request: {state.refused}")
        self._lost = None
        self._task = asyncio.ensure_future(self._keep())
        return self

    async def release(self) -> None:
        """Releases the lease."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None
            if self._lost is None:
                await self._ask(schemas.motion.LeaseRequest.RELEASE)

    async def __aenter__(self) -> Lease:
        return await self.take()

    async def __aexit__(self, *_: object) -> None:
        try:
            await self.release()
        except NoAnswer:
            pass  # The lease ends by itself.

    async def _keep(self) -> None:
        """An answer counts whenever it comes: on a busy machine, each may take longer than the pause
        between two requests."""
        pause = self._period / _KEEPS
        silence = max(_SILENCE_S, 2 * self._period)
        proxy = self._proxy.with_deadline(silence)
        kept = time.monotonic()
        ask_at = kept + pause
        asking: set[asyncio.Task[tuple[float, Any]]] = set()
        try:
            while True:
                wait = max(0.0, ask_at - time.monotonic())
                if asking:
                    first = asyncio.FIRST_COMPLETED
                    done, asking = await asyncio.wait(asking, timeout=wait, return_when=first)
                else:
                    done = set()
                    await asyncio.sleep(wait)
                if time.monotonic() >= ask_at:
                    ask_at = time.monotonic() + pause
                    asking.add(asyncio.ensure_future(self._ask_to_keep(proxy)))
                for asked, answer in (task.result() for task in done):
                    if isinstance(answer, AmberError):
                        # Commands may have kept it.
                        if time.monotonic() - kept >= silence:
                            self._lost = str(answer)
                            return
                    elif not answer.yours:
                        self._lost = answer.refused
                        return
                    else:
                        kept = max(kept, asked)
        finally:
            for task in asking:
                task.cancel()

    async def _ask_to_keep(self, proxy: Proxy) -> tuple[float, Any]:
        """Returns when it asked, and the state of the device or the error."""
        asked = time.monotonic()
        try:
            return asked, await self._ask(schemas.motion.LeaseRequest.KEEP, proxy)
        except AmberError as error:
            return asked, error

    async def _ask(self, action: int, proxy: Proxy | None = None) -> Any:
        message = DriverMsg(type=DriverMsg.DATA)
        request = message.Extensions[schemas.motion.lease_request]
        request.action, request.name = action, self._name
        request.period_ms = int(self._period * 1000)
        answer = await (proxy or self._proxy).request(message)
        return answer.Extensions[schemas.motion.motion_state]
