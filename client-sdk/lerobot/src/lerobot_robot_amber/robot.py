"""A robot of Amber as a robot of LeRobot: an arm, perhaps on a base, with cameras."""

import math
from dataclasses import dataclass, field
from typing import Any

import amber
from lerobot.cameras import CameraConfig, make_cameras_from_configs
from lerobot.robots import Robot, RobotConfig

from lerobot_robot_amber.joints import JOINTS, Joints, device_id, features

#: The velocity of a base: m/s ahead and to the left, degrees per second counter-clockwise.
VELOCITY = ("x.vel", "y.vel", "theta.vel")


@RobotConfig.register_subclass("amber")
@dataclass
class AmberRobotConfig(RobotConfig):
    #: HOST[:PORT] of the mediator. Empty: AMBER_MEDIATOR, or this computer.
    mediator: str = ""
    arm: str = "arm:0"
    joints: list[str] = field(default_factory=lambda: list(JOINTS))
    #: Stands before the name of each joint: "arm_" for policies of a LeKiwi.
    prefix: str = ""
    #: Such as "base:0". Empty: the arm stands on a table.
    base: str = ""
    cameras: dict[str, CameraConfig] = field(default_factory=dict)
    #: Whether to switch the motors off at the end. The arm falls then.
    release_at_end: bool = False


class AmberRobot(Robot):
    """Holds the lease of the arm while it is connected, so that no other program moves it.

    Amber's rules hold: limits and speeds of its drivers, halts, and that the arm holds its place half a
    second after the last action.
    """

    config_class = AmberRobotConfig
    name = "amber"

    def __init__(self, config: AmberRobotConfig) -> None:
        super().__init__(config)
        self.config = config
        self.cameras = make_cameras_from_configs(config.cameras)
        self._robot: amber.Robot | None = None

    @property
    def _motions(self) -> dict[str, type]:
        velocity = dict.fromkeys(VELOCITY if self.config.base else (), float)
        return features(self.config.joints, self.config.prefix) | velocity

    @property
    def observation_features(self) -> dict[str, Any]:
        pictures = self.config.cameras.items()
        return self._motions | {name: (it.height, it.width, 3) for name, it in pictures}

    @property
    def action_features(self) -> dict[str, type]:
        return self._motions

    @property
    def is_connected(self) -> bool:
        return self._robot is not None and all(it.is_connected for it in self.cameras.values())

    @property
    def is_calibrated(self) -> bool:
        """The driver of the arm has the calibration, and refuses to move without one."""
        return True

    def calibrate(self) -> None:
        pass

    def configure(self) -> None:
        pass

    def connect(self, calibrate: bool = True) -> None:
        if self._robot is not None:
            raise RuntimeError("this robot is connected")
        config = self.config
        robot = amber.Robot(config.mediator or None)
        try:
            arm = robot.arm(device_id(config.arm, "arm"))
            self._joints = Joints(arm, config.joints, config.prefix)
            self._joints.check()
            self._base = robot.base(device_id(config.base, "base")) if config.base else None
            self._lease = robot.device(config.arm).lease("LeRobot").take()
            # It holds the position that it has.
            arm.set_torque(True)
            for camera in self.cameras.values():
                camera.connect()
        except BaseException:
            robot.close()
            raise
        self._robot, self._arm = robot, arm

    def get_observation(self) -> dict[str, Any]:
        self._expect_connection()
        observation: dict[str, Any] = self._joints.positions()
        if self._base is not None:
            measured = self._base.state().measured
            found = measured.forward / 1000, measured.left / 1000, measured.turn
            observation |= dict(zip(VELOCITY, found, strict=True))
        for name, camera in self.cameras.items():
            observation[name] = camera.read_latest()
        return observation

    def send_action(self, action: dict[str, Any]) -> dict[str, Any]:
        """Returns what was sent: positions within the limits of the joints."""
        self._expect_connection()
        lost = self._lease.lost
        if lost is not None:
            raise amber.Refused(f"another program moves the arm: {lost}")
        sent: dict[str, Any] = self._joints.follow(action)
        if self._base is not None and all(key in action for key in VELOCITY):
            forward, left, turn = (float(action[key]) for key in VELOCITY)
            if not all(map(math.isfinite, (forward, left, turn))):
                raise ValueError(f"a velocity must be a number, not {(forward, left, turn)}")
            self._base.drive(forward * 1000, left * 1000, turn)
            sent |= dict(zip(VELOCITY, (forward, left, turn), strict=True))
        return sent

    def disconnect(self) -> None:
        if self._robot is None:
            return
        robot, self._robot = self._robot, None
        try:
            for camera in self.cameras.values():
                if camera.is_connected:
                    camera.disconnect()
            if self._base is not None:
                self._base.drive()
            if self.config.release_at_end:
                self._arm.set_torque(False)
        finally:
            # This releases the lease, too.
            robot.close()

    def _expect_connection(self) -> None:
        if self._robot is None:
            raise RuntimeError("this robot is not connected: call connect() first")
