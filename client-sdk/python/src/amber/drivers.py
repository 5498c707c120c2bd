"""Base classes of drivers for Amber's own devices, made from their descriptions. IO.

See :mod:`amber.typed_driver`; ``devices.pyi`` lists the classes and what to implement.
"""

from .devices import *  # noqa: F403
