"""Clients and drivers for Amber, the robot mediator.

=====================  =======================================================
:class:`Client`        asks and commands devices (:mod:`amber.aio` for asyncio)
:class:`Driver`        base class of a driver; :func:`serve` runs it
:mod:`amber.schemas`   the messages; :func:`load_proto` reads your own
=====================  =======================================================
"""

# First of all, so that output of other modules does not reach the mediator.
from .wire import claim_stdout, claim_stdout_of_driver

claim_stdout_of_driver()

# ruff: noqa: E402
from . import aio, schemas
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
    Unreachable,
)
from .schemas import DriverMsg
from .schemas import load as load_proto
from .values import (
    Attitude,
    DriverStatus,
    DummyStatus,
    ImuReading,
    MapPose,
    Point,
    Pose,
    Scan,
    Target,
    TrajectoryPoint,
    WheelSpeeds,
)

__version__ = "0.1.0"
__all__ = [
    "AmberError",
    "Attitude",
    "BadAnswer",
    "Client",
    "Closed",
    "Device",
    "Driver",
    "DriverDied",
    "DriverMsg",
    "DriverStatus",
    "DummyStatus",
    "FrameError",
    "ImuReading",
    "MapPose",
    "NoAnswer",
    "Point",
    "Pose",
    "Request",
    "Scan",
    "Subscription",
    "Target",
    "TrajectoryPoint",
    "Unreachable",
    "WheelSpeeds",
    "aio",
    "claim_stdout",
    "load_proto",
    "schemas",
    "serve",
]
