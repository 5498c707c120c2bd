"""The joints of an arm of Amber by the names that LeRobot uses."""

import math
from typing import Any

import amber

#: The joints of SO-100, SO-101, Koch v1.1 and LeKiwi.
JOINTS = (
    "shoulder_pan",
    "shoulder_lift",
    "elbow_flex",
    "wrist_flex",
    "wrist_roll",
    "gripper",
)


def device_id(text: str, kind: str) -> int:
    """The number of a device such as ``arm:0``."""
    device = amber.Device.parse(text)
    if device != amber.Device.parse(f"{kind}:{device.id}"):
        raise ValueError(f"{text} is no {kind}: use for example {kind}:0")
    return device.id


class Joints:
    """Reads and moves the joints of an arm: degrees, and percent for a gripper."""

    def __init__(self, arm: Any, names: list[str], prefix: str) -> None:
        self._arm = arm
        self._keys = {name: f"{prefix}{name}.pos" for name in names}
        self._limits: dict[str, tuple[float, float]] = {}

    def features(self) -> dict[str, type]:
        return features(list(self._keys), "")

    def check(self) -> None:
        """Checks that the arm has these joints and a calibration, and learns their limits."""
        description = self._arm.description()
        if not description.calibrated:
            raise amber.Refused("the arm has no calibration: give its driver --calibration")
        known = {joint.name: joint for joint in description.joints}
        missing = [name for name in self._keys if name not in known]
        if missing:
            raise ValueError(
                f"the arm has no joint {', '.join(missing)}: it has {', '.join(known)}"
            )
        for name in self._keys:
            joint = known[name]
            if joint.HasField("lowest") and joint.HasField("highest"):
                self._limits[name] = (joint.lowest, joint.highest)

    def positions(self) -> dict[str, float]:
        """Where all joints are. Raises Refused if one of them does not say it."""
        joints = {joint.name: joint for joint in self._arm.state().joints}
        found = {}
        for name, key in self._keys.items():
            joint = joints.get(name)
            if joint is None or not joint.HasField("position"):
                why = joint.problem if joint is not None else ""
                raise amber.Refused(f"{name} {why or 'is not measured'}")
            found[key] = joint.position
        return found

    def follow(self, action: dict[str, Any]) -> dict[str, float]:
        """Moves the joints that an action names, within their limits. Returns what was sent."""
        targets, sent = {}, {}
        for name, key in self._keys.items():
            if key not in action:
                continue
            position = float(action[key])
            if not math.isfinite(position):
                raise ValueError(f"{key} must be a number, not {position}")
            low, high = self._limits.get(name, (-math.inf, math.inf))
            targets[name] = sent[key] = min(max(position, low), high)
        if targets:
            self._arm.follow(targets)
        return sent


def features(names: list[str], prefix: str) -> dict[str, type]:
    """What LeRobot is told of the joints. Their robot need not be connected."""
    return {f"{prefix}{name}.pos": float for name in names}
