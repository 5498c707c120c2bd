"""The messages of LeRobot's LeKiwiClient, and what they mean for Amber. PURE.

They are those of LeRobot 0.6. A command is a JSON object. An observation has several parts: a JSON
object, and one JPEG file for each camera that this object names.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, NamedTuple, Optional

#: The joints of the arm, by the names that Amber uses: degrees, and percent for the gripper.
JOINTS = (
    "shoulder_pan",
    "shoulder_lift",
    "elbow_flex",
    "wrist_flex",
    "wrist_roll",
    "gripper",
)
_JOINT_KEYS = {f"arm_{name}.pos": name for name in JOINTS}
#: m/s ahead, m/s to the left, degrees per second counter-clockwise.
_VELOCITY_KEYS = ("x.vel", "y.vel", "theta.vel")

#: A command has nine numbers, and an attacker may send more.
MAX_COMMAND_BYTES = 64 * 1024
#: What a base of Amber may be told at all. Its driver has tighter limits.
_MAX_MM_S = 10_000.0
_MAX_DEG_S = 3_600.0


class Malformed(ValueError):
    """A message is no command; the text says why."""


class Unknown(Exception):
    """Amber does not know something that an observation needs; the text says what and why."""


class Velocity(NamedTuple):
    """How a base moves, in Amber's units."""

    forward_mm_s: float
    left_mm_s: float
    turn_deg_s: float


class Command(NamedTuple):
    """What a client wants."""

    #: By the names of JOINTS; those that are absent stay where they are.
    joints: dict[str, float]
    #: None: the command is for the arm alone.
    velocity: Optional[Velocity]


def read_command(parts: list[bytes]) -> Command:
    """Reads the parts of a message. Raises Malformed. Other keys are ignored, as LeRobot does."""
    if len(parts) != 1:
        raise Malformed(f"it has {len(parts)} parts instead of one")
    if len(parts[0]) > MAX_COMMAND_BYTES:
        raise Malformed(f"it has {len(parts[0])} bytes, and may have {MAX_COMMAND_BYTES}")
    try:
        found = json.loads(parts[0])
    except (ValueError, RecursionError):
        raise Malformed("it is not JSON") from None
    if not isinstance(found, dict):
        raise Malformed("it is not a JSON object")
    joints = {name: _number(key, found[key]) for key, name in _JOINT_KEYS.items() if key in found}
    given = {key: _number(key, found[key]) for key in _VELOCITY_KEYS if key in found}
    if not joints and not given:
        raise Malformed("it names neither a joint nor a velocity")
    missing = [key for key in _VELOCITY_KEYS if key not in given]
    if given and missing:
        raise Malformed(f"{' and '.join(missing)} missing")
    velocity = _possible(*(given[key] for key in _VELOCITY_KEYS)) if given else None
    return Command(joints, velocity)


def _number(key: str, value: Any) -> float:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if math.isfinite(number):
            return number
    raise Malformed(f"{key} is not a finite number")


def _possible(x_m_s: float, y_m_s: float, turn_deg_s: float) -> Velocity:
    """The same way in Amber's units, more slowly if a number is beyond what Amber can be told."""
    excess = max(
        1.0,
        abs(x_m_s) / (_MAX_MM_S / 1000),
        abs(y_m_s) / (_MAX_MM_S / 1000),
        abs(turn_deg_s) / _MAX_DEG_S,
    )
    return Velocity(x_m_s / excess * 1000, y_m_s / excess * 1000, turn_deg_s / excess)


def observation(
    joints: Mapping[str, float], velocity: Velocity, pictures: Mapping[str, bytes]
) -> list[bytes]:
    """The parts of a message. A camera without a picture has no bytes: the client has none, too."""
    measured = (velocity.forward_mm_s / 1000, velocity.left_mm_s / 1000, velocity.turn_deg_s)
    header: dict[str, Any] = {"_cams": list(pictures)}
    header.update((key, joints[name]) for key, name in _JOINT_KEYS.items())
    header.update(zip(_VELOCITY_KEYS, measured))
    return [json.dumps(header).encode(), *pictures.values()]


def joints_of(arm_state: Any) -> dict[str, float]:
    """The positions of all JOINTS.

    Raises Unknown if one of them is not measured: the client would take 0 for it.
    """
    known = {joint.name: joint for joint in arm_state.joints}
    found = {}
    for name in JOINTS:
        joint = known.get(name)
        if joint is None:
            raise Unknown(f"it has no joint {name}, but {', '.join(known) or 'none'}")
        if not joint.HasField("position"):
            raise Unknown(f"{name} {joint.problem or 'is not measured'}")
        found[name] = joint.position
    return found


def velocity_of(base_state: Any) -> Velocity:
    """How a base moves, as it was measured."""
    measured = base_state.measured
    return Velocity(measured.forward, measured.left, measured.turn)
