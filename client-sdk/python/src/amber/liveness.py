"""Notices that the mediator or a driver was restarted, or has forgotten this client. IO."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

from . import schemas
from .device import MEDIATOR, Device
from .errors import AmberError

if TYPE_CHECKING:
    from .aio import Client, Subscription

#: Seconds between two requests to the mediator, and the deadline of its answer.
PERIOD = 2.0
#: Missing answers that count as an outage: one may get lost.
_MISSES = 2
#: During an outage, requests do not wait for the answers to earlier ones.
_PERIOD_IN_OUTAGE = 0.5
#: A datagram of so many bytes passes every network whole.
_UNFRAGMENTED = 1200
#: The answer may take this long, and clocks drift.
_SLACK = 1.05


class Liveness:
    """Asks the mediator while there are subscriptions."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._started: float | None = None
        self._known_as = 0
        self._is_outage = False
        create = asyncio.get_running_loop().create_task
        self._events = create(self._follow(client.mediator().events()))
        # A driver ends with its mediator.
        self._questions = None if client._is_driver else create(self._ask())

    async def end(self) -> None:
        tasks = [it for it in (self._events, self._questions) if it is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def moved(self) -> None:
        """The mediator does not know this client any more: asks it at once."""
        self._is_outage = True
        if self._questions is not None:
            self._questions.cancel()
            self._questions = asyncio.get_running_loop().create_task(self._ask())

    async def _ask(self) -> None:
        missed = 0
        while True:
            try:
                answer = await (self._first_answer() if self._is_outage else self._uptime_and_id())
            except (AmberError, OSError):
                missed += 1
                # A mediator of the original system never answers, and gets few requests.
                self._is_outage = missed >= _MISSES and self._client._mediator_answers
                await asyncio.sleep(PERIOD / 2)
                continue
            self._answered(*answer, was_lost=self._is_outage or missed >= _MISSES)
            self._is_outage, missed = False, 0
            await asyncio.sleep(PERIOD)

    def _answered(self, uptime: float, client_id: int, was_lost: bool) -> None:
        now = time.monotonic() - uptime
        restarted = self._started is not None and now > self._started + _SLACK
        forgotten = self._known_as != 0 and client_id not in (0, self._known_as)
        self._started = now
        self._known_as = client_id or self._known_as
        if restarted or forgotten or was_lost:
            self._client._renew()

    async def _first_answer(self) -> tuple[float, int]:
        """The first answer to one of many requests."""
        create = asyncio.get_running_loop().create_task
        asked: set[asyncio.Task[tuple[float, int]]] = set()
        try:
            while True:
                asked.add(create(self._uptime_and_id()))
                done, asked = await asyncio.wait(
                    asked, timeout=_PERIOD_IN_OUTAGE, return_when=asyncio.FIRST_COMPLETED
                )
                for task in done:
                    error = task.exception()
                    if error is None:
                        return task.result()
                    if not isinstance(error, (AmberError, OSError)):
                        raise error
                if done:  # the network is not there
                    await asyncio.sleep(_PERIOD_IN_OUTAGE / 2)
        finally:
            for task in asked:
                task.cancel()
            await asyncio.gather(*asked, return_exceptions=True)

    async def _uptime_and_id(self) -> tuple[float, int]:
        request = schemas.DriverMsg(type=schemas.DriverMsg.DATA)
        request.Extensions[schemas.mediator.request].get_statistics.SetInParent()
        # Whether the mediator lives must not depend on whether the network loses fragments.
        request.Extensions[schemas.mediator.max_answer_bytes] = _UNFRAGMENTED
        answer = await self._client._ask(MEDIATOR, request, PERIOD)
        statistics = answer.Extensions[schemas.mediator.reply].statistics
        return float(statistics.uptime_ms) / 1000.0, int(statistics.client_id)

    async def _follow(self, events: Subscription[Any]) -> None:
        async for event in events:
            if event.kind == schemas.mediator.Event.DEVICE_UP:
                self._client._is_up(Device(event.device.type, event.device.id))
