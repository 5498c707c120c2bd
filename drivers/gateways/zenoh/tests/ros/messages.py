"""The messages of ROS as other people's package rosbags reads and writes them."""

import dataclasses
import math

from rosbags.typesys import Stores, get_typestore

STORE = get_typestore(Stores.ROS2_JAZZY)


def plain(value):
    """A message as JSON has it: numbers that JSON does not have become texts."""
    if dataclasses.is_dataclass(value):
        return {it.name: plain(getattr(value, it.name))
                for it in dataclasses.fields(value) if it.name != "__msgtype__"}
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return [plain(it) for it in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value
