#!/usr/bin/env python3
"""A driver that uses other devices: it keeps a wall at its right hand.

    amber mediator ... --driver '202:0=python3 follow_wall.py'

Its messages are in ../follow_wall.proto. It speaks with the Hokuyo and the
Roboclaw over its own stdin and stdout, as the mediator allows every driver;
so it needs no address, and knows when they die. Needs the package `amber`.
"""

import math
import os
import threading

import amber

HERE = os.path.dirname(os.path.abspath(__file__))
follow_wall = amber.load_proto(os.path.join(HERE, "..", "follow_wall.proto"))

SPEED_MM_S = 200
WALL_MM = 600  # the distance to keep
FREE_MM = 700  # nearer than this ahead, it turns to the left
HALF_WIDTH_MM = 260


class FollowWall(amber.Driver):
    def start(self):
        self.followed_by = None  # the client that has started it
        self.wall_mm = None
        self.speeds = amber.WheelSpeeds()
        threading.Thread(target=self.drive, daemon=True).start()

    def request(self, request):
        message = request.message
        if message.HasExtension(follow_wall.follow):
            go = message.Extensions[follow_wall.follow]
            self.followed_by = request.client if go else None
            if not go:
                self.halt()
        elif not message.HasExtension(follow_wall.get_status):
            return super().request(request)
        return self.status()

    def client_gone(self, client):
        if client == self.followed_by:  # nobody drives a robot from the grave
            self.followed_by = None
            self.halt()

    def stop(self):
        self.followed_by = None
        self.halt()

    def halt(self):
        self.speeds = amber.WheelSpeeds()
        self.robot.roboclaw().stop()

    def drive(self):
        """A thread of its own: every scan becomes a command."""
        for scan in self.robot.hokuyo().scans():
            self.wall_mm, wanted = steer(scan)
            if self.followed_by is not None:
                self.speeds = wanted
                self.robot.roboclaw().drive(wanted)
            self.send_to_subscribers(self.status())

    def status(self):
        message = amber.DriverMsg()
        status = message.Extensions[follow_wall.status]
        status.following = self.followed_by is not None
        if self.wall_mm is not None:
            status.wall_mm = self.wall_mm
        status.left_mm_s = self.speeds.front_left_mm_s
        status.right_mm_s = self.speeds.front_right_mm_s
        return message


def steer(scan):
    """The distance of the wall, and what to do about it."""
    beside = scan.nearest(40, 120)
    wall_mm = beside.distance_mm if beside else None
    ahead = min(
        (forward for forward, aside in map(place, scan.points()) if abs(aside) < HALF_WIDTH_MM),
        default=math.inf,
    )
    if ahead < FREE_MM:
        return wall_mm, amber.WheelSpeeds.sides(-SPEED_MM_S / 2, SPEED_MM_S / 2)
    error = min(wall_mm or 2 * WALL_MM, 2 * WALL_MM) - WALL_MM
    # Too far away: the left wheels go faster, to the right.
    turn = max(-0.5, min(error / 800.0, 0.5)) * SPEED_MM_S
    return wall_mm, amber.WheelSpeeds.sides(SPEED_MM_S + turn, SPEED_MM_S - turn)


def place(point):
    """Millimetres ahead (infinite behind) and to the right."""
    angle = math.radians(point.angle_deg)
    forward = point.distance_mm * math.cos(angle)
    return (forward if forward > 0 else math.inf), point.distance_mm * math.sin(angle)


if __name__ == "__main__":
    amber.serve(FollowWall())
