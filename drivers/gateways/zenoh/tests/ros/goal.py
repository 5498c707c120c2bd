"""A node of ROS 2 that sets a goal once, and then only lives.

    goal.py CONFIG TOKEN KEY PAYLOAD ATTACHMENT     the last two in hexadecimal digits
"""

import sys
import threading
import time

import zenoh

config, token, key, payload, attachment = sys.argv[1:]
session = zenoh.open(zenoh.Config.from_json5(config))
announced = session.liveliness().declare_token(token)
publisher = session.declare_publisher(key)
while not publisher.matching_status.matching:
    time.sleep(0.01)
publisher.put(bytes.fromhex(payload), attachment=bytes.fromhex(attachment))
print("set", flush=True)
threading.Event().wait()
