"""An arm of Amber that a person moves, as a leader of LeRobot."""

from dataclasses import dataclass, field
from typing import Any

import amber
from lerobot.teleoperators import Teleoperator, TeleoperatorConfig

from lerobot_robot_amber.joints import JOINTS, Joints, device_id, features


@TeleoperatorConfig.register_subclass("amber")
@dataclass
class AmberTeleoperatorConfig(TeleoperatorConfig):
    #: HOST[:PORT] of the mediator. Empty: AMBER_MEDIATOR, or this computer.
    mediator: str = ""
    arm: str = "arm:1"
    joints: list[str] = field(default_factory=lambda: list(JOINTS))
    #: Stands before the name of each joint: "arm_" for a LeKiwi.
    prefix: str = ""


class AmberTeleoperator(Teleoperator):
    """Its motors are off: a person moves it."""

    config_class = AmberTeleoperatorConfig
    name = "amber"

    def __init__(self, config: AmberTeleoperatorConfig) -> None:
        super().__init__(config)
        self.config = config
        self._robot: amber.Robot | None = None

    @property
    def action_features(self) -> dict[str, type]:
        return features(self.config.joints, self.config.prefix)

    @property
    def feedback_features(self) -> dict[str, type]:
        return {}

    @property
    def is_connected(self) -> bool:
        return self._robot is not None

    @property
    def is_calibrated(self) -> bool:
        return True

    def calibrate(self) -> None:
        pass

    def configure(self) -> None:
        pass

    def connect(self, calibrate: bool = True) -> None:
        if self._robot is not None:
            raise RuntimeError("this leader is connected")
        robot = amber.Robot(self.config.mediator or None)
        try:
            arm = robot.arm(device_id(self.config.arm, "arm"))
            self._joints = Joints(arm, self.config.joints, self.config.prefix)
            self._joints.check()
            arm.set_torque(False)
        except BaseException:
            robot.close()
            raise
        self._robot = robot

    def get_action(self) -> dict[str, float]:
        if self._robot is None:
            raise RuntimeError("this leader is not connected: call connect() first")
        return self._joints.positions()

    def send_feedback(self, feedback: dict[str, Any]) -> None:
        raise NotImplementedError("an arm of Amber gives its leader no feedback")

    def disconnect(self) -> None:
        if self._robot is not None:
            robot, self._robot = self._robot, None
            robot.close()
