"""Typed devices for programs without asyncio, made from the descriptions of the devices. IO.

The methods of clients are those of the classes of the same name in :mod:`amber.proxies`, and raise
the same errors. ``devices.pyi`` lists all of them.
"""

from __future__ import annotations

from . import extras, proxies, typed
from .typed import PlainTyped as PlainTyped

_CLASSES = {
    name: typed.plain_class(made, __name__) for name, made in vars(proxies)["_CLASSES"].items()
}
Devices = typed.accessors(_CLASSES.values(), __name__)
globals().update(_CLASSES)
globals().update({alias: _CLASSES[name] for alias, name in extras.ALIASES.items()})
_NAMES = ["Devices", "PlainTyped", *_CLASSES, *extras.ALIASES]
__all__ = _NAMES  # pyright: ignore[reportUnsupportedDunderAll]
