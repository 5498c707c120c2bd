"""Clients and drivers for Amber, the robot mediator.

=====================  =======================================================
:class:`Robot`         asks and commands devices (:mod:`amber.aio` for asyncio)
:class:`Client`        the same, without waiting for the mediator
:class:`Driver`        base class of a driver; :func:`serve` runs it
:func:`load_proto`     your own device: its messages, clients and base class of drivers
:mod:`amber.schemas`   the messages of Amber's devices
:mod:`amber.proxies`   the methods of each device (:mod:`amber.devices` without asyncio)
:mod:`amber.drivers`   base classes of drivers for these devices
:mod:`amber.stubs`     types of your own device for editors and mypy
=====================  =======================================================
"""

# First of all, so that output of other modules does not reach the mediator.
from .wire import claim_stdout, claim_stdout_of_driver

claim_stdout_of_driver()

from .requires import check_protobuf  # noqa: E402

check_protobuf()

# ruff: noqa: E402
from . import aio, drivers, schemas
from .client import Client, Subscription
from .device import Device
from .driver import Driver, Request, serve
from .errors import (
    AmberError,
    BadAnswer,
    Closed,
    DriverDied,
    FrameError,
    NoAnswer,
    Refused,
    Unreachable,
)
from .extras import new_order_id
from .proxies import DummyStatus
from .robot import Robot
from .scene import Scene
from .schemas import DriverMsg
from .schemas import load as load_proto
from .values import (
    Attitude,
    DriveEnd,
    DriverStatus,
    Finding,
    ImuReading,
    MapPose,
    MarkerPose,
    MotionState,
    Point,
    Pose,
    Scan,
    Sensors,
    Target,
    TrajectoryPoint,
    WheelSpeeds,
)

__version__ = "0.2.0"
__all__ = [
    "AmberError",
    "Attitude",
    "BadAnswer",
    "Client",
    "Closed",
    "Device",
    "DriveEnd",
    "Driver",
    "DriverDied",
    "DriverMsg",
    "DriverStatus",
    "DummyStatus",
    "Finding",
    "FrameError",
    "ImuReading",
    "MapPose",
    "MarkerPose",
    "MotionState",
    "NoAnswer",
    "Point",
    "Pose",
    "Refused",
    "Request",
    "Robot",
    "Scan",
    "Scene",
    "Sensors",
    "Subscription",
    "Target",
    "TrajectoryPoint",
    "Unreachable",
    "WheelSpeeds",
    "aio",
    "claim_stdout",
    "drivers",
    "load_proto",
    "new_order_id",
    "schemas",
    "serve",
]
