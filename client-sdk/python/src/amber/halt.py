"""Who moves a device, and the halt of one device or of all. IO only through :class:`amber.aio.Proxy`.

::

    async with amber.aio.Robot() as robot:
        await robot.halt("my program")                       # everything that moves stops
        print((await robot.device("wheels").motion_state()).halted_by)
        await robot.release_halt("my program")
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from . import schemas
from .device import Device
from .errors import AmberError, BadAnswer, DriverDied, Refused
from .extras import _repeated
from .interface import OURS
from .schemas import DriverMsg
from .values import MotionState

if TYPE_CHECKING:
    from .aio import Client, Proxy


async def state(proxy: Proxy) -> MotionState:
    """Who moves a device, and who has halted it."""
    message = DriverMsg(type=DriverMsg.DATA)
    message.Extensions[schemas.motion.get_motion_state] = True
    return _read(proxy, await proxy.request(message))


async def change(proxy: Proxy, is_halted: bool, name: str) -> MotionState:
    """Halts a device, or releases the halt."""
    message = DriverMsg(type=DriverMsg.DATA)
    request = message.Extensions[schemas.motion.halt_request]
    request.halt, request.name = is_halted, name
    return _read(proxy, await proxy.request(message))


def _read(proxy: Proxy, answer: Any) -> MotionState:
    field = schemas.motion.motion_state
    if not answer.HasExtension(field):
        raise BadAnswer(f"{proxy.device} answered without the motion state")
    state = answer.Extensions[field]
    if state.HasField("refused"):
        raise Refused(f"{proxy.device} refused the request: {state.refused}")
    return MotionState._read(state)


async def change_all(client: Client, is_halted: bool, name: str) -> list[Device]:
    """Halts all devices that move, or releases their halts, at the same time."""
    drivers = await _repeated(lambda: client.mediator().drivers())
    running = [driver for driver in drivers if driver.state in ("up", "starting")]
    devices = [Device.parse(device) for driver in running for device in driver.devices]

    async def change_one(device: Device) -> Device | None:
        if not await _moves(client, device):
            return None
        await _repeated(lambda: change(client.device(device), is_halted, name))
        return device

    # If one fails, the others are halted all the same.
    done = await asyncio.gather(*map(change_one, devices), return_exceptions=True)
    for result in done:
        if isinstance(result, BaseException):
            raise result
    changed = [result for result in done if isinstance(result, Device)]
    if not changed:
        raise AmberError("no running driver has a device that moves")
    return changed


async def _moves(client: Client, device: Device) -> bool:
    """Whether a device has something that moves, by its description."""
    known = [it for it in OURS if it.device_type == device.type]
    if not known:
        try:
            found = await _repeated(lambda: client.mediator().load(device))
        except (BadAnswer, DriverDied):
            # Most devices of users have no description, and older mediators refuse the request.
            return False
        known = [it.interface for it in vars(found.aio).values()]
        known = [it for it in known if it.device_type == device.type]
    return any(method.moves for it in known for method in it.methods)
