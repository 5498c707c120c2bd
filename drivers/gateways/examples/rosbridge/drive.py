"""Drives an Amber robot one metre ahead with roslibpy, and prints what the robot reports.

    pip install roslibpy && python3 drive.py 127.0.0.1 9090
"""

import json
import math
import queue
import sys
import threading

import roslibpy

DISTANCE_M = 1.0
SPEED_M_S = 0.3
STANDING_M_S = 0.005
# The robot stands if this many messages in a row say so, about a second: the first ones may have been
# on their way before it was told to stop.
STANDING_MESSAGES = 10
PATIENCE_S = 60


def first(topic):
    """The first message of a topic."""
    arrived = threading.Event()
    messages = []

    def take(message):
        messages.append(message)
        arrived.set()

    topic.subscribe(take)
    if not arrived.wait(PATIENCE_S):
        sys.exit(f"error: no message on {topic.name}")
    topic.unsubscribe()
    return messages[0]


def main():
    host, port = (sys.argv[1:] + ["127.0.0.1", "9090"][len(sys.argv) - 1 :])[:2]
    ros = roslibpy.Ros(host=host, port=int(port))
    ros.run(timeout=PATIENCE_S)

    scan = first(roslibpy.Topic(ros, "/scan", "sensor_msgs/LaserScan"))
    grid = first(roslibpy.Topic(ros, "/map", "nav_msgs/OccupancyGrid"))
    pose = first(roslibpy.Topic(ros, "/robot_pose", "geometry_msgs/Pose"))
    odometry = roslibpy.Topic(ros, "/odom", "nav_msgs/Odometry", throttle_rate=100)
    messages = queue.Queue()
    odometry.subscribe(messages.put)
    begin = messages.get(timeout=PATIENCE_S)["pose"]["pose"]["position"]

    def newest():
        """How far the robot has come, and its speed, when there is news."""
        message = messages.get(timeout=PATIENCE_S)
        while not messages.empty():
            message = messages.get()
        here = message["pose"]["pose"]["position"]
        way_m = math.hypot(here["x"] - begin["x"], here["y"] - begin["y"])
        return way_m, message["twist"]["twist"]["linear"]["x"]

    motion = roslibpy.Topic(ros, "/cmd_vel", "geometry_msgs/Twist")
    motion.advertise()
    way_m = 0.0
    while way_m < DISTANCE_M:
        # A command is valid for half a second. Odometry comes ten times per second.
        motion.publish(
            {"linear": {"x": SPEED_M_S, "y": 0, "z": 0}, "angular": {"x": 0, "y": 0, "z": 0}}
        )
        way_m, _ = newest()
    stop = roslibpy.Service(ros, "/stop", "std_srvs/Trigger")
    stopped = stop.call(roslibpy.ServiceRequest(), timeout=PATIENCE_S)
    standing = 0
    while standing < STANDING_MESSAGES:
        way_m, speed_m_s = newest()
        standing = standing + 1 if abs(speed_m_s) <= STANDING_M_S else 0
    print(
        json.dumps(
            {
                "ranges": len(scan["ranges"]),
                "map_cells": len(grid["data"]),
                "x_m": pose["position"]["x"],
                "way_m": way_m,
                "stopped": stopped["success"],
                "topics": ros.get_topics(),
            }
        )
    )
    ros.terminate()


main()
