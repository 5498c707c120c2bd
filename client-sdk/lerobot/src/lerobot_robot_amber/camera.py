"""A camera of Amber as a camera of LeRobot."""

import threading
import time
from dataclasses import dataclass
from typing import Any

import amber
import cv2
import numpy as np
from lerobot.cameras import Camera, CameraConfig

from lerobot_robot_amber.joints import device_id

#: A camera that nobody has used needs up to three seconds for its first picture.
START_S = 10.0


@CameraConfig.register_subclass("amber")
@dataclass
class AmberCameraConfig(CameraConfig):
    #: HOST[:PORT] of the mediator. Empty: AMBER_MEDIATOR, or this computer.
    mediator: str = ""
    camera: str = "camera:0"

    def __post_init__(self) -> None:
        for name in ("width", "height", "fps"):
            if not getattr(self, name):
                raise ValueError(f"a camera of Amber needs its {name}")


class AmberCamera(Camera):
    """A thread receives and decodes pictures, so that the newest one is at hand."""

    def __init__(self, config: AmberCameraConfig) -> None:
        super().__init__(config)
        self.config = config
        self._robot: amber.Robot | None = None
        self._changed = threading.Condition()
        self._picture: np.ndarray | None = None
        self._taken_s = 0.0
        self._problem: str | None = None

    @property
    def is_connected(self) -> bool:
        return self._robot is not None

    @staticmethod
    def find_cameras() -> list[dict[str, Any]]:
        """Those of the mediator that AMBER_MEDIATOR names, or of this computer."""
        with amber.Robot() as robot:
            devices = [device for status in robot.mediator().drivers() for device in status.devices]
            cameras = [str(device) for device in devices if str(device).startswith("camera:")]
        return [{"type": "amber", "name": camera, "id": camera} for camera in cameras]

    def connect(self, warmup: bool = True) -> None:
        if self._robot is not None:
            raise RuntimeError("this camera is connected")
        robot = amber.Robot(self.config.mediator or None)
        try:
            camera = robot.camera(device_id(self.config.camera, "camera"))
            period_ms = max(1, round(1000 / self.config.fps))
            pictures = camera.pictures(period_ms, max_width=self.config.width).open()
        except BaseException:
            robot.close()
            raise
        self._robot, self._picture, self._problem = robot, None, None
        self._thread = threading.Thread(target=self._receive, args=(pictures,), daemon=True)
        self._thread.start()
        if warmup:
            try:
                self.async_read(timeout_ms=1000 * START_S)
            except BaseException:
                self.disconnect()
                raise

    def read(self) -> np.ndarray:
        """The next picture: height x width x 3, red first."""
        return self.async_read(timeout_ms=1000 * START_S)

    def async_read(self, timeout_ms: float = 200) -> np.ndarray:
        """The next picture, or TimeoutError."""
        self._expect_connection()
        with self._changed:
            before = self._taken_s
            self._changed.wait_for(lambda: self._taken_s != before, timeout_ms / 1000)
            if self._taken_s == before:
                why = self._problem or "it sends none"
                raise TimeoutError(f"no picture of {self.config.camera} in {timeout_ms} ms: {why}")
            assert self._picture is not None
            return self._picture

    def read_latest(self, max_age_ms: int = 500) -> np.ndarray:
        """The newest picture, at once. TimeoutError if it is older than this."""
        self._expect_connection()
        with self._changed:
            age_ms = 1000 * (time.monotonic() - self._taken_s)
            if self._picture is None or age_ms > max_age_ms:
                raise TimeoutError(f"no picture of {self.config.camera} since {age_ms:.0f} ms")
            return self._picture

    def disconnect(self) -> None:
        if self._robot is not None:
            robot, self._robot = self._robot, None
            robot.close()
            self._thread.join()

    def _receive(self, pictures: amber.Subscription[Any]) -> None:
        try:
            while (picture := pictures.next()) is not None:
                decoded = cv2.imdecode(np.frombuffer(picture.data, np.uint8), cv2.IMREAD_COLOR)
                if decoded is None:
                    self._problem = "a picture is damaged"
                    continue
                size = (self.config.width, self.config.height)
                if (decoded.shape[1], decoded.shape[0]) != size:
                    decoded = cv2.resize(decoded, size, interpolation=cv2.INTER_AREA)
                rgb = cv2.cvtColor(decoded, cv2.COLOR_BGR2RGB)
                with self._changed:
                    self._picture, self._taken_s = rgb, time.monotonic()
                    self._changed.notify_all()
        except amber.Closed:
            pass

    def _expect_connection(self) -> None:
        if self._robot is None:
            raise RuntimeError("this camera is not connected: call connect() first")
