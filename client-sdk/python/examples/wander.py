#!/usr/bin/env python3
"""Drives around without touching a wall.

    cargo run --release -- demo          # in one terminal
    python3 wander.py [SECONDS]          # in another; Ctrl-C stops

Drives on while the path ahead is free, slower with less space, and keeps away from
obstacles at the sides. If the path is blocked, turns in place to the side with more space.
AMBER_MEDIATOR is the address of the mediator [default: 127.0.0.1:26233].
"""

from __future__ import annotations

import argparse
import math
import sys
import time

import amber

HALF_WIDTH_MM = 260  # half of the width that must be free
TURN_AT_MM = 500  # the robot turns if an obstacle ahead is nearer
FREE_MM = 900  # it turns until this distance is free
FASTEST_MM_S = 300
TURN_MM_S = 120


def ahead_mm(scan: amber.Scan) -> float:
    """The free distance straight ahead."""
    nearest = 5000.0
    for point in scan.points():
        angle = math.radians(point.angle_deg)
        forward = point.distance_mm * math.cos(angle)
        aside = point.distance_mm * math.sin(angle)
        if forward > 0 and abs(aside) < HALF_WIDTH_MM:
            nearest = min(nearest, forward)
    return nearest


def nearest_mm(scan: amber.Scan, from_deg: float, to_deg: float) -> float:
    point = scan.nearest(from_deg, to_deg)
    return point.distance_mm if point else 5000.0


def room_mm(scan: amber.Scan, from_deg: float, to_deg: float) -> float:
    """The mean distance in a sector."""
    seen = [p.distance_mm for p in scan.points() if from_deg <= p.angle_deg <= to_deg]
    return sum(seen) / len(seen) if seen else 0.0


def speeds(scan: amber.Scan, turning: int) -> tuple[amber.WheelSpeeds, int]:
    """The next command; `turning` is 1 to the right, -1 to the left, 0 ahead."""
    ahead = ahead_mm(scan)
    if turning == 0 and ahead < TURN_AT_MM:
        # Keep the direction until the path is free, so that the robot does not oscillate in
        # corners.
        turning = -1 if room_mm(scan, -110, -20) > room_mm(scan, 20, 110) else 1
    elif turning != 0 and ahead > FREE_MM:
        turning = 0
    if turning:
        return amber.WheelSpeeds.sides(turning * TURN_MM_S, -turning * TURN_MM_S), turning
    speed = min((ahead - TURN_AT_MM) * 0.6 + 60, FASTEST_MM_S)
    left = min(nearest_mm(scan, -100, -25), 600)
    right = min(nearest_mm(scan, 25, 100), 600)
    turn = max(-0.4 * speed, min((left - right) * 0.25, 0.4 * speed))
    # With more space on the left, the right wheels turn faster.
    return amber.WheelSpeeds.sides(speed - turn, speed + turn), 0


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "seconds", type=float, nargs="?", default=math.inf, help="how long to drive (default: forever)"
    )
    seconds = parser.parse_args().seconds
    end = time.monotonic() + seconds
    turning = 0
    taken = 0
    with amber.Client() as robot:
        wheels = robot.roboclaw()
        scans = robot.hokuyo().scans()
        try:
            for scan in scans:
                taken += 1
                now, turning = speeds(scan, turning)
                wheels.drive(now)
                if time.monotonic() > end:
                    break
        except KeyboardInterrupt:
            pass
        finally:
            wheels.stop()
        print(f"{taken} scans, {scans.missed} missed")


if __name__ == "__main__":
    try:
        main()
    except amber.AmberError as error:
        sys.exit(f"error: {error}")
