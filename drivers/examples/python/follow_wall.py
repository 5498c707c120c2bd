#!/usr/bin/env python3
"""A driver that uses other devices: it keeps a wall on its right-hand side.

    amber demo --driver '202:0=python3 follow_wall.py'

Its description is in ../follow_wall.proto. It uses the Hokuyo and the
Roboclaw over its own stdin and stdout, like every driver can;
it needs no address, and notices when they die. Needs the package `amber`.
"""

import math
import os
import threading

import amber

HERE = os.path.dirname(os.path.abspath(__file__))
follow_wall = amber.load_proto(os.path.join(HERE, "..", "follow_wall.proto"))

SPEED_MM_S = 200
WALL_MM = 600  # the distance to keep
FREE_MM = 700  # if an obstacle ahead is nearer, turn left
HALF_WIDTH_MM = 260
BLIND_S = 0.5  # stop after this time without a scan; scans come ten times per second


class FollowWall(follow_wall.FollowWallDriver):
    def start(self):
        # Two threads share the following: the one that handles requests, and the one that drives.
        self.lock = threading.Lock()
        self.followers = set()  # the robot stops when the last of them leaves
        self.wall_mm = None
        self.speeds = amber.WheelSpeeds()
        threading.Thread(target=self.drive, daemon=True).start()

    def follow(self, follow):
        if follow:
            with self.lock:
                self.followers.add(self.client)
        else:
            self.halt()  # one client can stop the robot for all
        return self.status()

    def status(self):
        return follow_wall.Status(
            following=bool(self.followers),
            wall_mm=self.wall_mm,
            left_mm_s=self.speeds.front_left_mm_s,
            right_mm_s=self.speeds.front_right_mm_s,
        )

    def client_gone(self, client):
        if self.followers == {client}:  # the last client is gone
            self.halt()
        self.followers.discard(client)

    def stop(self):
        self.halt()

    def halt(self):
        with self.lock:
            if self.followers:
                self.followers.clear()
                self.go(amber.WheelSpeeds())

    def go(self, speeds):
        self.speeds = speeds
        self.robot.roboclaw().drive(speeds)

    def drive(self):
        """Runs in its own thread: turns every scan into a command."""
        with self.robot.hokuyo().scans() as scans:
            while True:
                try:
                    scan = scans.next(timeout=BLIND_S)
                    if scan is None:
                        return  # only at the end of the driver
                    self.wall_mm, wanted = steer(scan)
                    self.recovered()
                except TimeoutError:
                    self.wall_mm, wanted = None, amber.WheelSpeeds()
                    self.trouble("no scans from hokuyo:0")
                with self.lock:  # no command may follow the stop
                    if self.followers:
                        self.go(wanted)
                self.send_statuses(self.status())


def steer(scan):
    """The distance of the wall, and the resulting command."""
    beside = scan.nearest(40, 120)
    wall_mm = beside.distance_mm if beside else None
    ahead = min(
        (forward for forward, aside in map(place, scan.points()) if abs(aside) < HALF_WIDTH_MM),
        default=math.inf,
    )
    if ahead < FREE_MM:
        return wall_mm, amber.WheelSpeeds.sides(-SPEED_MM_S / 2, SPEED_MM_S / 2)
    error = min(wall_mm or 2 * WALL_MM, 2 * WALL_MM) - WALL_MM
    # Too far away: the left wheels turn faster, which steers right.
    turn = max(-0.5, min(error / 800.0, 0.5)) * SPEED_MM_S
    return wall_mm, amber.WheelSpeeds.sides(SPEED_MM_S + turn, SPEED_MM_S - turn)


def place(point):
    """Millimetres ahead (infinite behind) and to the right."""
    angle = math.radians(point.angle_deg)
    forward = point.distance_mm * math.cos(angle)
    return (forward if forward > 0 else math.inf), point.distance_mm * math.sin(angle)


if __name__ == "__main__":
    amber.serve(FollowWall())
