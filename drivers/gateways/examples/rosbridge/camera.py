"""Shows what the camera of an Amber robot sees, with roslibpy: saves one picture as a file, and prints what
is known of the camera.

    pip install roslibpy && python3 camera.py 127.0.0.1 9090 picture.jpg
"""

import base64
import json
import queue
import sys

import roslibpy

PATIENCE_S = 60


def main():
    usual = ["127.0.0.1", "9090", "picture.jpg"]
    host, port, file = (sys.argv[1:] + usual[len(sys.argv) - 1 :])[:3]
    ros = roslibpy.Ros(host=host, port=int(port))
    ros.run(timeout=PATIENCE_S)

    # At most five pictures per second. The camera is on while somebody subscribes.
    pictures = roslibpy.Topic(
        ros,
        "/camera/image_raw/compressed",
        "sensor_msgs/CompressedImage",
        throttle_rate=200,
        queue_length=1,
    )
    optics = roslibpy.Topic(ros, "/camera/camera_info", "sensor_msgs/CameraInfo")
    seen, known = queue.Queue(), queue.Queue()
    optics.subscribe(known.put)
    pictures.subscribe(seen.put)

    # A picture and its optics have the same time.
    by_time = {}
    picture = info = None
    while info is None:
        picture = seen.get(timeout=PATIENCE_S)
        while not known.empty():
            message = known.get()
            stamp = message["header"]["stamp"]
            by_time[stamp["secs"], stamp["nsecs"]] = message
        stamp = picture["header"]["stamp"]
        info = by_time.get((stamp["secs"], stamp["nsecs"]))
    data = base64.b64decode(picture["data"])
    with open(file, "wb") as out:
        out.write(data)
    print(
        json.dumps(
            {
                "format": picture["format"],
                "bytes": len(data),
                "frame": picture["header"]["frame_id"],
                "width": info["width"],
                "height": info["height"],
                "focal_length": info["K"][0],
                "topics": ros.get_topics(),
            }
        )
    )
    ros.terminate()


main()
