"""Drives an Amber robot to a point on the map with roslibpy, as a goal of Nav2's action, and prints
how it went.

    pip install roslibpy && python3 goal.py 127.0.0.1 9090 1.4 -1
"""

import json
import queue
import sys

import roslibpy

PATIENCE_S = 60
LONGEST_TRIP_S = 300


def main():
    given = sys.argv[1:]
    host, port, x, y = given + ["127.0.0.1", "9090", "1.4", "-1"][len(given) :]
    ros = roslibpy.Ros(host=host, port=int(port))
    ros.run(timeout=PATIENCE_S)
    action = roslibpy.ActionClient(ros, "/navigate_to_pose", "nav2_msgs/action/NavigateToPose")
    # In metres on the map, with y up.
    position = {"x": float(x), "y": float(y), "z": 0}
    goal = roslibpy.Goal({"pose": {"header": {"frame_id": "map"}, "pose": {"position": position}}})
    distances_m = []
    ends = queue.Queue()
    action.send_goal(
        goal,
        ends.put,
        lambda feedback: distances_m.append(feedback["distance_remaining"]),
        ends.put,
    )
    end = ends.get(timeout=LONGEST_TRIP_S)
    print(
        json.dumps(
            {
                "end": end["status"].name.lower(),
                "result": end["values"],
                "feedback": len(distances_m),
                "farthest_m": max(distances_m, default=0),
            }
        )
    )
    ros.terminate()


main()
