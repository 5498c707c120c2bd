"""Measurements and commands, with units. PURE.

Angles of a scan and wheels follow Amber's frame: x to the front, y **to the
right**, angles positive clockwise.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from .errors import BadAnswer


@dataclass(frozen=True)
class WheelSpeeds:
    """One speed per wheel in mm/s, positive = forward."""

    front_left_mm_s: int = 0
    front_right_mm_s: int = 0
    rear_left_mm_s: int = 0
    rear_right_mm_s: int = 0

    @classmethod
    def all(cls, mm_s: float) -> WheelSpeeds:
        """Straight ahead, or backwards if negative."""
        return cls.sides(mm_s, mm_s)

    @classmethod
    def sides(cls, left_mm_s: float, right_mm_s: float) -> WheelSpeeds:
        """One speed per side; the robot turns to its slower side."""
        left, right = round(left_mm_s), round(right_mm_s)
        return cls(left, right, left, right)

    def _write(self, message: Any) -> None:
        message.frontLeftSpeed = self.front_left_mm_s
        message.frontRightSpeed = self.front_right_mm_s
        message.rearLeftSpeed = self.rear_left_mm_s
        message.rearRightSpeed = self.rear_right_mm_s

    @classmethod
    def _read(cls, message: Any) -> WheelSpeeds:
        return cls(
            message.frontLeftSpeed,
            message.frontRightSpeed,
            message.rearLeftSpeed,
            message.rearRightSpeed,
        )


@dataclass(frozen=True)
class Point:
    """One beam of a scan."""

    #: Degrees, 0 = ahead, positive = to the right.
    angle_deg: float
    #: Millimetres; values outside 20..60000 are not distances.
    distance_mm: int

    @property
    def is_valid(self) -> bool:
        """Whether the distance is valid."""
        return 20 <= self.distance_mm <= 60_000

    @property
    def x_y_m(self) -> tuple[float, float]:
        """Its position in metres, x to the front and y to the right."""
        angle = math.radians(self.angle_deg)
        distance = self.distance_mm / 1000.0
        return distance * math.cos(angle), distance * math.sin(angle)


@dataclass(frozen=True)
class Scan:
    """One turn of a laser scanner, from left to right."""

    angles_deg: Sequence[float] = field(repr=False)
    distances_mm: Sequence[int] = field(repr=False)
    #: The time of the scan, in seconds since the Unix epoch; None if unknown.
    taken_at_s: float | None = None

    def __post_init__(self) -> None:
        if len(self.angles_deg) != len(self.distances_mm):
            angles, distances = len(self.angles_deg), len(self.distances_mm)
            raise BadAnswer(f"a scan with {angles} angles and {distances} distances")

    def __len__(self) -> int:
        return len(self.distances_mm)

    def __iter__(self) -> Iterator[Point]:
        return (Point(*pair) for pair in zip(self.angles_deg, self.distances_mm))

    def points(self) -> list[Point]:
        """The points with a valid distance."""
        return [point for point in self if point.is_valid]

    def nearest(self, from_deg: float = -180.0, to_deg: float = 180.0) -> Point | None:
        """The nearest valid point within a sector; None if there is none."""
        within = (point for point in self.points() if from_deg <= point.angle_deg <= to_deg)
        return min(within, key=lambda point: point.distance_mm, default=None)

    def svg(self) -> str:
        """The scan around its laser, whose front is at the top, as the text of an SVG file."""
        from .scene import drawing_of  # it uses the values here

        return drawing_of(self)

    def _repr_html_(self) -> str:
        """For notebooks."""
        return self.svg()

    @classmethod
    def _read(cls, message: Any, timestamp_ms: int | None = None) -> Scan:
        taken = timestamp_ms / 1000.0 if timestamp_ms else None
        return cls(tuple(message.angles), tuple(message.distances), taken)

    def _write(self, message: Any) -> None:
        message.angles.extend(self.angles_deg)
        message.distances.extend(self.distances_mm)

    @classmethod
    def _join(cls, scan: Scan, timestamp: int | None) -> Scan:
        """The value of a whole answer."""
        taken = timestamp / 1000.0 if timestamp else None
        return cls(scan.angles_deg, scan.distances_mm, taken)

    def _split(self) -> dict[str, Any]:
        """The fields of a whole answer."""
        taken = self.taken_at_s
        return {"scan": self, "timestamp": None if taken is None else round(taken * 1000)}


@dataclass(frozen=True)
class Sensors:
    """Some of the sensors of a NineDof."""

    accelerometer: bool = True
    gyroscope: bool = True
    magnetometer: bool = True

    @classmethod
    def _read(cls, message: Any) -> Sensors:
        return cls(message.accel, message.gyro, message.magnet)

    def _write(self, message: Any) -> None:
        message.accel, message.gyro = self.accelerometer, self.gyroscope
        message.magnet = self.magnetometer
        message.extended = True  # also what only new drivers know


Vector = tuple[float, float, float]


@dataclass(frozen=True)
class Attitude:
    """Heading and tilt of a robot at rest or at constant speed."""

    #: Degrees clockwise from magnetic north, in [0, 360). Wrong by tens of
    #: degrees unless ``heading_calibrated``.
    heading_deg: float
    #: Degrees, positive when the front is up.
    pitch_deg: float
    #: Degrees, positive when the right side is down.
    roll_deg: float
    #: Whether the magnetometer has been calibrated on this robot, as
    #: ``amber call ninedof calibrate-magnet`` does. False also if the driver
    #: does not report it.
    heading_calibrated: bool = False

    @classmethod
    def _read(cls, message: Any) -> Attitude:
        calibrated = message.headingCalibrated
        return cls(message.headingDeg, message.pitchDeg, message.rollDeg, calibrated)

    def _write(self, message: Any) -> None:
        message.headingDeg, message.pitchDeg = self.heading_deg, self.pitch_deg
        message.rollDeg, message.headingCalibrated = self.roll_deg, self.heading_calibrated


@dataclass(frozen=True)
class ImuReading:
    """The requested values of an inertial measurement unit; the others are None."""

    #: Acceleration x, y, z in thousandths of g.
    acceleration_mg: Vector | None = None
    #: Turn rate about x, y, z in degrees per second; whole ones from old drivers.
    rate_deg_s: Vector | None = None
    #: Magnetic field x, y, z in thousandths of gauss.
    field_mgauss: Vector | None = None
    #: Milliseconds since the driver started.
    timestamp_ms: int | None = None
    #: Only with acceleration and field; old drivers do not send it.
    attitude: Attitude | None = None

    @classmethod
    def _read(cls, message: Any) -> ImuReading:
        def vector(name: str) -> Vector | None:
            if not message.HasField(name):
                return None
            axes = getattr(message, name)
            return (axes.xAxis, axes.yAxis, axes.zAxis)

        time_ms = message.timestamp if message.HasField("timestamp") else None
        rate = vector("gyro")
        if message.HasField("gyroMilli"):
            milli = message.gyroMilli
            rate = (milli.xAxis / 1000, milli.yAxis / 1000, milli.zAxis / 1000)
        attitude = Attitude._read(message.attitude) if message.HasField("attitude") else None
        return cls(vector("accel"), rate, vector("magnet"), time_ms, attitude)

    def _write(self, message: Any) -> None:
        def write(name: str, vector: Vector | None, factor: int = 1) -> None:
            if vector is not None:
                axes = getattr(message, name)
                axes.xAxis, axes.yAxis, axes.zAxis = (round(axis * factor) for axis in vector)

        write("accel", self.acceleration_mg)
        write("gyro", self.rate_deg_s)
        write("gyroMilli", self.rate_deg_s, 1000)
        write("magnet", self.field_mgauss)
        if self.timestamp_ms is not None:
            message.timestamp = self.timestamp_ms
        if self.attitude is not None:
            self.attitude._write(message.attitude)


@dataclass(frozen=True)
class Finding:
    """One result of a test or a calibration of a NineDof."""

    #: The subject: ``accel``, ``gyro``, ``magnet`` or ``file``.
    about: str
    #: Whether the result is good.
    good: bool
    #: Details for people.
    text: str

    @classmethod
    def _read(cls, message: Any) -> Finding:
        return cls(message.about, message.good, message.text)

    def _write(self, message: Any) -> None:
        message.about, message.good, message.text = self.about, self.good, self.text


@dataclass(frozen=True)
class Pose:
    """A pose from a landmark on the ceiling.

    On the map if the driver has a file of markers (x to the right, y down);
    otherwise relative to the marker, with y up. Headings are clockwise in both.
    """

    #: Position in centimetres.
    x_cm: float
    y_cm: float
    z_cm: float
    #: Heading in degrees.
    heading_deg: float
    marker: int
    #: Milliseconds since the driver started.
    timestamp_ms: int | None = None
    #: Only in answers while no marker is in view: the age of the pose.
    lost_ms: int | None = None

    @classmethod
    def _read(cls, message: Any) -> Pose:
        def optional(name: str) -> int | None:
            return getattr(message, name) if message.HasField(name) else None

        return cls(
            message.xPos,
            message.yPos,
            message.zPos,
            message.angle,
            message.markerID,
            optional("timestamp"),
            optional("lostMs"),
        )

    def _write(self, message: Any) -> None:
        message.xPos, message.yPos, message.zPos = self.x_cm, self.y_cm, self.z_cm
        message.angle, message.markerID = self.heading_deg, self.marker
        if self.timestamp_ms is not None:
            message.timestamp = self.timestamp_ms
        if self.lost_ms is not None:
            message.lostMs = self.lost_ms


#: The name of this class in descriptions of devices.
MarkerPose = Pose


@dataclass(frozen=True)
class MapPose:
    """The pose of the robot on its map: metres, x to the right, y down."""

    x_m: float
    y_m: float
    #: Heading in radians, positive clockwise.
    heading_rad: float
    #: Quality from 0 to 1.
    quality: float
    #: Seconds since the Unix epoch; None if unknown.
    taken_at_s: float | None = None

    @property
    def is_known(self) -> bool:
        """Whether the robot knows its position; all values are 0 until it does."""
        return any((self.x_m, self.y_m, self.heading_rad, self.quality))

    @classmethod
    def _read(cls, message: Any) -> MapPose:
        taken = message.timeStamp / 1000.0 if message.timeStamp else None
        return cls(message.x, message.y, message.alfa, message.p, taken)

    def _write(self, message: Any) -> None:
        message.x, message.y, message.p = self.x_m, self.y_m, self.quality
        message.alfa = self.heading_rad
        if self.taken_at_s is not None:
            message.timeStamp = round(self.taken_at_s * 1000)


@dataclass(frozen=True)
class Target:
    """A target, in the frame of the map."""

    x_m: float
    y_m: float
    #: The robot has reached the target within this distance.
    radius_m: float = 0.2

    #: The columns of the message, in the order of the fields above.
    _columns: ClassVar[tuple[str, ...]] = ("longitudes", "latitudes", "radiuses")


@dataclass(frozen=True)
class TrajectoryPoint:
    """A point of a trajectory, in the frame of the map."""

    x_m: float
    y_m: float
    #: Milliseconds from the start.
    time_ms: int

    #: As in :class:`Target`; in this device's messages latitude is x.
    _columns: ClassVar[tuple[str, ...]] = ("latitudes", "longitudes", "times")


@dataclass(frozen=True)
class DriveEnd:
    """How a trip to targets, or along a trajectory, ended."""

    #: ``ARRIVED``; or ``SKIPPED`` (the driver gave a target up), ``REPLACED``, ``STOPPED``,
    #: ``CANCELLED``, ``CLIENT_LOST``, ``HALTED``, ``LEASE_LOST``; or ``UNKNOWN``.
    state: str
    #: Why the robot has not arrived, as a sentence for people; empty if it has.
    reason: str
    #: The pose of the robot at the last target, if it has arrived there.
    pose: MapPose | None = None

    @property
    def arrived(self) -> bool:
        """Whether the robot has visited all targets."""
        return self.state == "ARRIVED"

    def __str__(self) -> str:
        """The end in words, such as ``arrived at 1.40 m, 1.00 m``."""
        if self.pose is not None:
            return f"arrived at {self.pose.x_m:.2f} m, {self.pose.y_m:.2f} m"
        return self.reason or self.state.lower().replace("_", " ")


@dataclass(frozen=True)
class DriverStatus:
    """The state of a driver in the mediator."""

    #: The devices that it serves, as ``hokuyo:0``.
    devices: tuple[str, ...]
    #: ``up``, ``starting``, ``backoff``, ``failed``, ``stopping`` or ``down``.
    state: str
    pid: int | None
    restarts: int
    #: The reason why it is not up.
    reason: str | None


@dataclass(frozen=True)
class MotionState:
    """Who moves a device, and who has halted it, in words for people."""

    #: Who holds the lease; None if nobody does: then the newest command counts.
    holder: str | None
    #: Whether this client holds the lease.
    yours: bool
    #: Who waits for the lease, the next one first.
    waiting: tuple[str, ...]
    #: Who has halted the device; None if it may move.
    halted_by: str | None

    @classmethod
    def _read(cls, message: Any) -> MotionState:
        def name(client: Any) -> str:
            return client.name or f"client {client.client_id}"

        return cls(
            name(message.holder) if message.HasField("holder") else None,
            message.yours,
            tuple(map(name, message.waiting)),
            (message.halt.by or "a client") if message.HasField("halt") else None,
        )


#: The classes that ``(amber.value)`` can name.
CLASSES: dict[str, Any] = {
    "Attitude": Attitude,
    "Finding": Finding,
    "ImuReading": ImuReading,
    "MapPose": MapPose,
    "MarkerPose": Pose,
    "Scan": Scan,
    "Sensors": Sensors,
    "Target": Target,
    "TrajectoryPoint": TrajectoryPoint,
    "WheelSpeeds": WheelSpeeds,
}
