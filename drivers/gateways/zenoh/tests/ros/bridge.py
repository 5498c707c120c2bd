"""A bridge for nodes that use DDS, made of other people's packages: eclipse-zenoh and rosbags.

    bridge.py PORT look                     the tokens that it finds
    bridge.py PORT read TOPIC TYPE ...      the last of a few messages of each topic
    bridge.py PORT late TOPIC TYPE ...      the message that a late subscriber gets of each topic
    bridge.py PORT drive NAME METRES        drives by NAME/cmd_vel, then falls silent
    bridge.py PORT stop NAME                calls the service NAME/stop

Prints one line of JSON. Exits with 77 if a package is missing.
"""

import json
import math
import os
import sys
import threading
import time

try:
    import zenoh
    from messages import STORE, plain
except ImportError as error:
    print(error, file=sys.stderr)
    sys.exit(77)

PATIENCE_S = 60


def look(session):
    """What a bridge learns about the others. Tokens take a while to arrive."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        replies = session.liveliness().get("@/*/@ros2_lv/**")
        tokens = [str(reply.ok.key_expr) for reply in replies if reply.ok]
        if any("odom" in token for token in tokens) or time.monotonic() > deadline:
            return {"tokens": tokens}


def message_of(sample, kind):
    """A message without an attachment, as all are in this layout."""
    assert sample.attachment is None, sample.key_expr
    return STORE.deserialize_cdr(sample.payload.to_bytes(), kind)


def read(session, topics, count=5):
    """Subscribes to all topics, and waits for some messages of each."""
    found = {name: [] for name, _ in topics}
    is_done = threading.Event()

    def take(name, kind, sample):
        found[name].append(message_of(sample, kind))
        if all(len(messages) >= count for messages in found.values()):
            is_done.set()

    subscribers = [
        session.declare_subscriber(
            name[1:], lambda sample, name=name, kind=kind: take(name, kind, sample))
        for name, kind in topics]
    is_done.wait(PATIENCE_S)
    for subscriber in subscribers:
        subscriber.undeclare()
    return {name: {"count": len(messages), "last": plain(messages[-1]) if messages else None}
            for name, messages in found.items()}


def late(session, topics):
    """What a bridge gets for a reader with durability TRANSIENT_LOCAL, as it asks for it."""
    found = {}
    for name, kind in topics:
        arrived = threading.Event()

        def take(sample, name=name, kind=kind, arrived=arrived):
            found[name] = {"last": plain(message_of(sample, kind))}
            arrived.set()

        history = zenoh.ext.HistoryConfig(detect_late_publishers=True, max_samples=1)
        subscriber = zenoh.ext.declare_advanced_subscriber(session, name[1:], take, history=history)
        arrived.wait(PATIENCE_S)
        subscriber.undeclare()
    return found


def drive(session, name, metres):
    """Drives until the odometry says that the robot has moved so far, then waits for its rest."""
    poses, speeds = [], []

    def take(sample):
        message = message_of(sample, "nav_msgs/msg/Odometry")
        at = message.pose.pose.position
        poses.append((at.x, at.y))
        speeds.append((time.monotonic(), message.twist.twist.linear.x))

    prefix = f"@/{session.info.zid()}/@ros2_lv"
    hash_ = STORE.hash_rihs01("geometry_msgs/msg/Twist")
    here = session.liveliness().declare_token(prefix)
    node = session.liveliness().declare_token(
        f"{prefix}/MP/{name[1:]}§cmd_vel/geometry_msgs§msg§Twist/:1:0:0,10:typehash={hash_};")
    odometry = session.declare_subscriber(f"{name[1:]}/odom", take)
    commands = session.declare_publisher(f"{name[1:]}/cmd_vel")
    vector = STORE.types["geometry_msgs/msg/Vector3"]
    twist = STORE.types["geometry_msgs/msg/Twist"](
        linear=vector(x=0.25, y=0.0, z=0.0), angular=vector(x=0.0, y=0.0, z=0.0))
    payload = bytes(STORE.serialize_cdr(twist, "geometry_msgs/msg/Twist"))
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        if poses and math.dist(poses[0], poses[-1]) >= metres:
            break
        commands.put(payload)
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
    odometry.undeclare()
    # The node that has driven is still there: nothing but the clock of the robot has stopped it.
    result = {
        "moved_m": at_silence,
        "total_m": math.dist(poses[0], poses[-1]),
        "rest_s": rest and rest - silent,
    }
    node.undeclare()
    here.undeclare()
    return result


def stop(session, name):
    """Calls the service that stops the robot. A bridge adds the number of its DDS request."""
    request = bytes([0, 1, 0, 0, 0])
    replies = session.get(f"{name[1:]}/stop", payload=request, attachment=b"rqh" + bytes(17),
                          timeout=PATIENCE_S)
    replies = [reply.ok.payload.to_bytes() for reply in replies if reply.ok]
    assert len(replies) == 1, replies
    # A bool, and an empty text: its length with the zero at its end.
    header, success, text = replies[0][:4], replies[0][4], replies[0][8:]
    assert header == bytes([0, 1, 0, 0]) and text == bytes([1, 0, 0, 0, 0]), replies
    return {"success": success == 1}


def main():
    port, verb, *args = sys.argv[1:]
    pairs = list(zip(args[::2], args[1::2]))
    config = zenoh.Config.from_json5(json.dumps({
        "mode": "client",
        "connect": {"endpoints": [f"tcp/127.0.0.1:{port}"]},
        "scouting": {"multicast": {"enabled": False}, "gossip": {"enabled": False}},
    }))
    session = zenoh.open(config)
    if verb == "look":
        result = look(session)
    elif verb == "read":
        result = read(session, pairs)
    elif verb == "late":
        result = late(session, pairs)
    elif verb == "drive":
        result = drive(session, args[0], float(args[1]))
    else:
        result = stop(session, args[0])
    print(json.dumps(result), flush=True)
    session.close()
    # Python may hang at its end otherwise.
    os._exit(0)


main()
