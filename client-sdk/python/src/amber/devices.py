"""Typed devices for programs without asyncio, made from the descriptions of the devices. IO.

The methods of clients are those of the classes of the same name in :mod:`amber.proxies`, and raise
the same errors. The base classes of drivers are also in :mod:`amber.drivers`. ``devices.pyi`` lists
all of them.
"""

from __future__ import annotations

from . import extras, proxies, typed
from .interface import OURS
from .typed import PlainTyped
from .typed_driver import TypedDriver, driver_class

_CLASSES = {
    name: typed.plain_class(made, __name__) for name, made in proxies._CLASSES.items()
}
_DRIVERS = {
    f"{interface.service}Driver": driver_class(interface, "amber.drivers")
    for interface in OURS
    if interface.device_type != 0
}
Devices = typed.accessors(_CLASSES.values(), __name__)
globals().update(_CLASSES, **_DRIVERS)
globals().update({alias: _CLASSES[name] for alias, name in extras.ALIASES.items()})
__all__ = ["Devices", "PlainTyped", "TypedDriver", *_CLASSES, *_DRIVERS, *extras.ALIASES]
