"""Robots of Amber as robots, leaders and cameras of LeRobot.

LeRobot finds this package by its name and imports it. Then ``--robot.type=amber``,
``--teleop.type=amber`` and cameras with ``type: amber`` work in its commands.
"""

from lerobot_robot_amber.camera import AmberCamera, AmberCameraConfig
from lerobot_robot_amber.robot import AmberRobot, AmberRobotConfig
from lerobot_robot_amber.teleoperator import AmberTeleoperator, AmberTeleoperatorConfig

__all__ = [
    "AmberCamera",
    "AmberCameraConfig",
    "AmberRobot",
    "AmberRobotConfig",
    "AmberTeleoperator",
    "AmberTeleoperatorConfig",
]
