#!/usr/bin/env python3
"""Visits one room after the other.

    cargo run --release -- demo          # in one terminal
    python3 tour.py                      # in another; Ctrl-C stops
    python3 tour.py 3.35,1 5.5,1         # only these places

The driver drive_to_point finds the path. A point that it cannot reach is skipped until the next
round. AMBER_MEDIATOR is the address of the mediator [default: 127.0.0.1:26233].
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time

import amber

#: The rooms of the demo's flat: kitchen, bath, bedroom, study, living room.
ROOMS = ["1.4,1", "3.35,1", "5.5,1", "5.7,4.4", "2.1,4.3"]
PAUSE_S = 1.0


def place(text: str) -> amber.Target:
    x_m, y_m = text.split(",")
    return amber.Target(float(x_m), float(y_m))


def tour(drive: amber.devices.DriveToPoint, rooms: list[amber.Target], rounds: int | None) -> None:
    """Visits the rooms, endlessly without ``rounds``, and prints its progress."""
    for _ in itertools.count() if rounds is None else range(rounds):
        for room in rooms:
            print(f"driving to {room.x_m:g}, {room.y_m:g}", flush=True)
            try:
                end = drive.drive_to(room)
            except amber.AmberError as error:
                # The driver may recover.
                print(f"error: {error}", file=sys.stderr)
            else:
                if end.pose is None:
                    print(f"does not reach {room.x_m:g}, {room.y_m:g}: {end.reason}", flush=True)
                else:
                    print(f"arrived at {end.pose.x_m:.2f}, {end.pose.y_m:.2f}", flush=True)
            time.sleep(PAUSE_S)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "rooms",
        type=place,
        nargs="*",
        metavar="X,Y",
        help="points on the map in metres, with y down (default: the rooms of the demo's flat)",
    )
    parser.add_argument("--rounds", type=int, help="how many rounds to drive (default: endless)")
    options = parser.parse_args()
    rooms = options.rooms or [place(room) for room in ROOMS]
    with amber.Client() as robot:
        drive = robot.drive_to_point()
        # An error at the start is one that the user must correct.
        drive.configuration()
        # No other program drives the robot meanwhile, and it stops if this program freezes.
        with robot.device("drive_to_point").lease("tour", period=0.5):
            try:
                tour(drive, rooms, options.rounds)
            except KeyboardInterrupt:
                pass
            finally:
                # Deletes the targets, and the driver stops the wheels.
                drive.stop()
        print("the robot was stopped")


if __name__ == "__main__":
    try:
        main()
    except amber.AmberError as error:
        sys.exit(f"error: {error}")
