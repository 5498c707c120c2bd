"""Numbers and names of devices. PURE."""

from __future__ import annotations

from typing import NamedTuple

from .interface import OURS

#: Device types that have a name.
TYPES = {interface.name.replace("-", "_"): interface.device_type for interface in OURS}
_ALIASES = {interface.alias: interface.device_type for interface in OURS if interface.alias}
_NAMES = {number: name for name, number in TYPES.items()}


class Device(NamedTuple):
    """One device: its type, and its number among devices of that type."""

    type: int
    id: int = 0

    @classmethod
    def parse(cls, text: str | Device) -> Device:
        """``hokuyo``, ``laser``, ``hokuyo:1`` or ``4:1``. Raises ValueError if it is invalid."""
        if isinstance(text, Device):
            return text
        name, _, number = text.partition(":")
        usual = name.replace("-", "_").lower()
        kind = TYPES.get(usual, _ALIASES.get(usual))
        try:
            return cls(int(name) if kind is None else kind, int(number or 0))
        except ValueError:
            known = ", ".join([*TYPES, *_ALIASES])
            raise ValueError(
                f"unknown device {text!r}; write TYPE or TYPE:ID with a number or one of {known}"
            ) from None

    def __str__(self) -> str:
        return f"{_NAMES.get(self.type, self.type)}:{self.id}"


#: The mediator itself.
MEDIATOR = Device(0, 0)
