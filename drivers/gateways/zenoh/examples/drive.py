"""Drives a robot of the fleet for some seconds, with Zenoh and Amber's messages only.

    pip install eclipse-zenoh ./client-sdk/python
    python3 drive.py tcp/127.0.0.1:7447 r1 --speed 200 --seconds 5
"""

import argparse
import json
import secrets
import struct
import time

import zenoh
from amber import schemas

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("router")
parser.add_argument("robot")
parser.add_argument("--who", default="alice", help="the name of the operator")
parser.add_argument("--speed", type=int, default=200, help="mm/s")
parser.add_argument("--seconds", type=float, default=5.0)
options = parser.parse_args()

command = schemas.DriverMsg(type=schemas.DriverMsg.DATA)
speeds = command.Extensions[schemas.roboclaw.motorsCommand]
speeds.frontLeftSpeed = speeds.frontRightSpeed = options.speed
speeds.rearLeftSpeed = speeds.rearRightSpeed = options.speed

config = zenoh.Config.from_json5(json.dumps({
    "mode": "client",
    "connect": {"endpoints": [options.router]},
    "scouting": {"multicast": {"enabled": False}, "gossip": {"enabled": False}},
}))
with zenoh.open(config) as session:
    instance = secrets.randbits(64)
    own = f"amber/{options.robot}/operators/{options.who}/{instance:016x}"
    # The wheels stop when this token is gone.
    with session.liveliness().declare_token(own):
        key = f"amber/{options.robot}/roboclaw/0/drive/{options.who}"
        for number in range(1, int(options.seconds * 10) + 1):
            session.put(key, command.SerializeToString(),
                        attachment=struct.pack("<QQQ", instance, number, time.monotonic_ns()))
            # A command is valid for half a second.
            time.sleep(0.1)
