"""The package and LeRobot's own classes, with a simulated LeKiwi: AMBER is the program `amber`."""

import os
import re
import subprocess
import tempfile
import time
import unittest
from typing import Any, Callable

import amber
from lerobot.robots import RobotConfig, make_robot_from_config
from lerobot.teleoperators import TeleoperatorConfig, make_teleoperator_from_config
from lerobot.utils.import_utils import register_third_party_plugins

AMBER = os.environ["AMBER"]
#: A busy machine is slow.
PATIENCE_S = 120.0


def wait_for(what: str, found: Callable[[], Any]) -> Any:
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        value = found()
        if value:
            return value
        time.sleep(0.03)
    raise AssertionError(f"no {what} within {PATIENCE_S} s")


class Demo:
    def __init__(self, port: int = 0) -> None:
        self.folder = tempfile.TemporaryDirectory()
        folder = os.path.join(self.folder.name, "sim")
        command = [AMBER, "demo", "--robot", "lekiwi", "--no-dashboard", "--port", str(port)]
        command += ["--dir", folder]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        lines = iter(self.process.stdout.readline, "")
        addresses = (re.match(r"listening on (\S+)", line) for line in lines)
        self.address = next(found[1] for found in addresses if found)
        # The demo must never wait for a reader.
        import threading

        threading.Thread(target=self.process.stdout.read, daemon=True).start()

    def close(self) -> None:
        self.process.terminate()
        self.process.wait()
        self.folder.cleanup()


class Plugin(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        register_third_party_plugins()
        cls.demo = Demo()
        with amber.Robot(cls.demo.address) as robot:
            wait_for("arm", lambda: knows(robot.arm(), "state"))
            wait_for("base", lambda: knows(robot.base(), "state"))

    @classmethod
    def tearDownClass(cls) -> None:
        cls.demo.close()

    def robot(self, **options: Any) -> Any:
        config = RobotConfig.get_choice_class("amber")
        return make_robot_from_config(config(mediator=self.demo.address, **options))

    def camera(self) -> Any:
        from lerobot.cameras import CameraConfig

        config = CameraConfig.get_choice_class("amber")
        return config(mediator=self.demo.address, width=320, height=240, fps=10)

    def test_features_are_known_before_the_connection(self) -> None:
        robot = self.robot(base="base:0", prefix="arm_", cameras={"front": self.camera()})
        self.assertFalse(robot.is_connected)
        features = robot.observation_features
        self.assertEqual(features["arm_gripper.pos"], float)
        self.assertEqual(features["theta.vel"], float)
        self.assertEqual(features["front"], (240, 320, 3))
        self.assertEqual(len(robot.action_features), 9)

    def test_the_robot_moves_and_observes(self) -> None:
        robot = self.robot(base="base:0", cameras={"front": self.camera()})
        robot.connect()
        try:
            still = {"x.vel": 0.0, "y.vel": 0.0, "theta.vel": 0.0}

            def arrives() -> bool:
                action = {"elbow_flex.pos": 15.0, "gripper.pos": 140.0, **still}
                sent = robot.send_action(action)
                self.assertEqual(sent["elbow_flex.pos"], 15.0)
                self.assertEqual(sent["gripper.pos"], 100.0, "the limit of the gripper")
                found = robot.get_observation()
                self.assertEqual(found["front"].shape, (240, 320, 3))
                self.assertEqual(set(found), set(robot.observation_features))
                near = abs(found["elbow_flex.pos"] - 15) < 1 and abs(found["gripper.pos"] - 100) < 2
                return near

            wait_for("arm that arrives", arrives)

            def drives_left() -> bool:
                robot.send_action({"x.vel": 0.0, "y.vel": 0.08, "theta.vel": 0.0})
                found = robot.get_observation()
                return abs(found["y.vel"] - 0.08) < 0.02 and abs(found["x.vel"]) < 0.02

            wait_for("base that drives to the left", drives_left)
            # Another program is told about the lease.
            with amber.Robot(self.demo.address) as other:
                with self.assertRaisesRegex(amber.Refused, "LeRobot"):
                    other.arm().follow({"gripper": 0.0})
        finally:
            robot.disconnect()
        self.assertFalse(robot.is_connected)

    def test_a_leader_is_read(self) -> None:
        config = TeleoperatorConfig.get_choice_class("amber")
        # The demo has one arm.
        leader = make_teleoperator_from_config(config(mediator=self.demo.address, arm="arm:0"))
        leader.connect()
        try:
            self.assertEqual(set(leader.get_action()), set(leader.action_features))
        finally:
            leader.disconnect()

    def test_mistakes_are_told(self) -> None:
        with self.assertRaisesRegex(ValueError, "no joint tail: it has shoulder_pan"):
            self.robot(joints=["tail"]).connect()
        with self.assertRaisesRegex(ValueError, "base:0 is no arm"):
            self.robot(arm="base:0").connect()
        with self.assertRaisesRegex(RuntimeError, "connect"):
            self.robot().send_action({})
        robot = self.robot()
        robot.connect()
        try:
            with self.assertRaisesRegex(ValueError, "must be a number"):
                robot.send_action({"gripper.pos": float("nan")})
        finally:
            robot.disconnect()


def knows(device: Any, request: str) -> bool:
    try:
        getattr(device, request)()
        return True
    except (amber.Refused, amber.NoAnswer, amber.DriverDied):
        return False


if __name__ == "__main__":
    unittest.main()
