"""Base classes of drivers for Amber's own devices, made from their descriptions. IO.

See :mod:`amber.typed_driver`; ``drivers.pyi`` lists the classes and what to implement.
"""

from __future__ import annotations

from .interface import OURS
from .typed_driver import TypedDriver, driver_class

_DRIVERS = {
    f"{interface.service}Driver": driver_class(interface, __name__)
    for interface in OURS
    if interface.device_type != 0
}
globals().update(_DRIVERS)
__all__ = ["TypedDriver", *_DRIVERS]  # pyright: ignore[reportUnsupportedDunderAll]
