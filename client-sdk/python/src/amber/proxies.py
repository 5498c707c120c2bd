"""Typed devices for asyncio, made from the descriptions of the devices. IO.

Methods that send a request raise NoAnswer, DriverDied, BadAnswer or Refused. Those that
command without an answer say so; they raise nothing when the datagram gets
lost. Cancelling forgets the answer; the device may have got the request.

``proxies.pyi`` lists all classes and methods.
"""

from __future__ import annotations

from . import extras, typed
from .interface import OURS
from .typed import Typed as Typed

_CLASSES = {
    interface.service: typed.client_class(
        interface, getattr(extras, interface.service, None), __name__
    )
    for interface in OURS
}
_RESULTS = {
    result.__name__: result
    for interface in OURS
    for result in typed.results(interface)
}
for _result in _RESULTS.values():
    _result.__module__ = __name__
Devices = typed.accessors(_CLASSES.values(), __name__)
globals().update(_CLASSES, **_RESULTS)
globals().update({alias: _CLASSES[name] for alias, name in extras.ALIASES.items()})
_NAMES = ["Devices", "Typed", *_CLASSES, *_RESULTS, *extras.ALIASES]
__all__ = _NAMES  # pyright: ignore[reportUnsupportedDunderAll]
