"""A client of an action of ROS 2 that sends one goal, and then only lives.

    navigate.py CONFIG TOKEN KEY REQUEST ATTACHMENT     the last two in hexadecimal digits
"""

import sys
import threading
import time

import zenoh

config, token, key, request, attachment = sys.argv[1:]
session = zenoh.open(zenoh.Config.from_json5(config))
announced = session.liveliness().declare_token(token)
deadline = time.monotonic() + 60
while time.monotonic() < deadline:
    replies = session.get(
        key, payload=bytes.fromhex(request), attachment=bytes.fromhex(attachment),
        target=zenoh.QueryTarget.ALL_COMPLETE, timeout=60)
    answers = [reply.ok.payload.to_bytes() for reply in replies if reply.ok]
    if answers:
        # The header of CDR, then whether the goal is accepted.
        print("accepted" if answers[0][4] == 1 else "rejected", flush=True)
        break
    time.sleep(0.05)
threading.Event().wait()
