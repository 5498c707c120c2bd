"""A node of ROS 2 made of other people's packages: zenoh-ros2-sdk, eclipse-zenoh and rosbags.

    peer.py PORT look                     the topics and services that it finds
    peer.py PORT read TOPIC TYPE ...      the last of a few messages of each topic
    peer.py PORT late TOPIC TYPE ...      the message that a late subscriber gets of each topic
    peer.py PORT drive NAME METRES        drives by NAME/cmd_vel, then falls silent
    peer.py PORT stop NAME                calls the service NAME/stop

Prints one line of JSON. Exits with 77 if a package is missing.
"""

import dataclasses
import json
import logging
import math
import os
import pathlib
import sys
import tempfile
import threading
import time

os.environ["ZENOH_CONFIG_OVERRIDE"] = 'mode="client";scouting/gossip/enabled=false;listen/endpoints=[]'

try:
    import zenoh
    from messages import STORE, plain
    from zenoh_ros2_sdk import ROS2Publisher, ROS2ServiceClient, ROS2Subscriber
    from zenoh_ros2_sdk.discovery import (
        get_service_names_and_types, get_topic_info, get_topic_names_and_types)
    from zenoh_ros2_sdk.message_registry import get_registry
    from zenoh_ros2_sdk.session import ZenohSession
except ImportError as error:
    print(error, file=sys.stderr)
    sys.exit(77)

PATIENCE_S = 60
logging.basicConfig(stream=sys.stderr)


def definitions(folder):
    """Writes the definitions of all messages, so that nothing is fetched from elsewhere."""
    for name in STORE.fielddefs:
        package, _, message = name.split("/")
        path = pathlib.Path(folder, package, "msg", f"{message}.msg")
        path.parent.mkdir(parents=True, exist_ok=True)
        text, _ = STORE.generate_msgdef(name, ros_version=2)
        path.write_text(text.split("=" * 80)[0])


def look(place):
    """What `ros2 topic list` and the like show. Tokens take a while to arrive."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        topics = dict(get_topic_names_and_types(**place))
        if any(name.endswith("/odom") for name in topics) or time.monotonic() > deadline:
            break
    info = {name: dataclasses.asdict(get_topic_info(name, verbose=True, **place))
            for name in topics}
    return {"topics": topics, "services": dict(get_service_names_and_types(**place)), "info": info}


def read(place, topics, count=5):
    """Subscribes to all topics, and waits for some messages of each."""
    found = {name: [] for name, _ in topics}
    is_done = threading.Event()

    def take(name, message):
        found[name].append(message)
        if all(len(messages) >= count for messages in found.values()):
            is_done.set()

    subscribers = [
        ROS2Subscriber(name, kind, lambda message, name=name: take(name, message), **place)
        for name, kind in topics]
    is_done.wait(PATIENCE_S)
    for subscriber in subscribers:
        subscriber.close()
    return {name: {"count": len(messages), "last": plain(messages[-1]) if messages else None}
            for name, messages in found.items()}


def late(place, topics):
    """What a subscriber with durability TRANSIENT_LOCAL gets, as rmw_zenoh asks for it."""
    session = ZenohSession.get_instance(**place).session
    found = {}
    for name, kind in topics:
        package, _, message = kind.split("/")
        key = f"0{name}/{package}::msg::dds_::{message}_/{STORE.hash_rihs01(kind)}"
        arrived = threading.Event()

        def take(sample, name=name, kind=kind, arrived=arrived):
            message = STORE.deserialize_cdr(sample.payload.to_bytes(), kind)
            found[name] = {"attachment": len(sample.attachment.to_bytes()), "last": plain(message)}
            arrived.set()

        history = zenoh.ext.HistoryConfig(detect_late_publishers=True, max_samples=1)
        subscriber = zenoh.ext.declare_advanced_subscriber(session, key, take, history=history)
        arrived.wait(PATIENCE_S)
        subscriber.undeclare()
    return found


def drive(place, name, metres):
    """Drives until the odometry says that the robot has moved so far, then waits for its rest."""
    vector = STORE.types["geometry_msgs/msg/Vector3"]
    poses, speeds = [], []

    def take(message):
        at = message.pose.pose.position
        poses.append((at.x, at.y))
        speeds.append((time.monotonic(), message.twist.twist.linear.x))

    odometry = ROS2Subscriber(f"{name}/odom", "nav_msgs/msg/Odometry", take, **place)
    commands = ROS2Publisher(f"{name}/cmd_vel", "geometry_msgs/msg/Twist", **place)
    vector = commands.session_mgr.store.types["geometry_msgs/msg/Vector3"]
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        if poses and math.dist(poses[0], poses[-1]) >= metres:
            break
        commands.publish(linear=vector(x=0.25, y=0.0, z=0.0), angular=vector(x=0.0, y=0.0, z=0.0))
        time.sleep(0.05)
    silent = time.monotonic()
    at_silence = math.dist(poses[0], poses[-1])
    # It moves on for a while, and then it rests.
    rest = None
    while rest is None and time.monotonic() < deadline:
        later = [at for at, speed in list(speeds) if at > silent and abs(speed) < 0.02]
        rest = later[0] if later else None
        time.sleep(0.01)
    time.sleep(0.3)
    odometry.close()
    # The node that has driven is still there: nothing but the clock of the robot has stopped it.
    result = {
        "moved_m": at_silence,
        "total_m": math.dist(poses[0], poses[-1]),
        "rest_s": rest and rest - silent,
    }
    commands.close()
    return result


def stop(place, name):
    """Calls the service that stops the robot."""
    client = ROS2ServiceClient(
        f"{name}/stop", "std_srvs/srv/Trigger",
        # ROS gives empty messages this member, too.
        request_definition="uint8 structure_needs_at_least_one_member\n",
        response_definition="bool success\nstring message\n",
        type_hash="RIHS01_eeff2cd6fa5ad9d27cdf4dec64818317839b62f212a91e6b5304b634b2062c5f",
        timeout=PATIENCE_S, **place)
    answer = client.call(structure_needs_at_least_one_member=0)
    client.close()
    return plain(answer)


def main():
    port, verb, *args = sys.argv[1:]
    place = {"router_ip": "127.0.0.1", "router_port": int(port)}
    pairs = list(zip(args[::2], args[1::2]))
    with tempfile.TemporaryDirectory() as folder:
        definitions(folder)
        get_registry(folder)
        if verb == "look":
            result = look(place)
        elif verb == "read":
            result = read(place, pairs)
        elif verb == "late":
            result = late(place, pairs)
        elif verb == "drive":
            result = drive(place, args[0], float(args[1]))
        else:
            result = stop(place, args[0])
        print(json.dumps(result), flush=True)
        ZenohSession.get_instance(**place).close()
    # Python may hang at its end otherwise.
    os._exit(0)


main()
