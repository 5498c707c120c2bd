#!/usr/bin/env python3
"""Drives back to the start position each time you press Enter.

    cargo run --release -- demo          # in one terminal
    python3 return_home.py               # in another
    amber drive                          # in a third: drive somewhere, and press q

Then press Enter in the second terminal; Ctrl-C or the end of the input ends the program. A program
that knows when to return, for example from the voltage of a battery, calls ``drive_to`` instead of
waiting for Enter. AMBER_MEDIATOR is the address of the mediator [default: 127.0.0.1:26233].
"""

from __future__ import annotations

import argparse
import sys
import time

import amber

#: Poses with a lower quality may be wrong.
SURE = 0.9
#: How long the location driver may need to find the robot.
SEARCH_S = 30.0


def place(text: str) -> amber.Target:
    x_m, y_m = text.split(",")
    return amber.Target(float(x_m), float(y_m))


def here(robot: amber.Client) -> amber.Target:
    """The position of the robot, as soon as it is reliable."""
    end = time.monotonic() + SEARCH_S
    while True:
        pose = robot.location().pose()
        if pose.quality > SURE:
            return amber.Target(pose.x_m, pose.y_m)
        if time.monotonic() > end:
            hint = "`amber status location` shows the reason"
            sys.exit(f"error: the position of the robot is unknown\nhint: {hint}")
        time.sleep(0.2)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--home", type=place, metavar="X,Y", help="metres on the map (default: where the robot is)"
    )
    home = parser.parse_args().home
    with amber.Client() as robot:
        drive = robot.drive_to_point()
        try:
            home = home or here(robot)
            print(f"home is {home.x_m:.2f}, {home.y_m:.2f}: press Enter to drive there", flush=True)
            for _ in sys.stdin:
                end = drive.drive_to(home)
                if end.pose is None:
                    print(f"not at home: {end.reason}", flush=True)
                else:
                    print(f"arrived at {end.pose.x_m:.2f}, {end.pose.y_m:.2f}", flush=True)
        except KeyboardInterrupt:
            pass
        finally:
            drive.stop()


if __name__ == "__main__":
    try:
        main()
    except amber.AmberError as error:
        sys.exit(f"error: {error}")
