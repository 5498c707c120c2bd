"""Reads the simulated camera with OpenCV, finds the ArUco markers, and computes where the camera is.

argv[1] is JSON: the address of the pictures (url), the optics (f, cx, cy), the markers (id, x, y,
heading, side, height) and the true pose of the camera (pose: x, y, heading), in metres and radians, with
y to the left of x. Prints "ok" on success.
"""

import json
import math
import sys

import cv2
import numpy as np

told = json.loads(sys.argv[1])
capture = cv2.VideoCapture(
    told["url"],
    cv2.CAP_FFMPEG,
    [cv2.CAP_PROP_OPEN_TIMEOUT_MSEC, 20000, cv2.CAP_PROP_READ_TIMEOUT_MSEC, 20000],
)
assert capture.isOpened(), told["url"]
for _ in range(10):
    is_read, picture = capture.read()
    assert is_read
capture.release()
assert picture.shape == (480, 640, 3), picture.shape

parameters = cv2.aruco.DetectorParameters()
parameters.cornerRefinementMethod = cv2.aruco.CORNER_REFINE_SUBPIX
dictionary = cv2.aruco.getPredefinedDictionary(cv2.aruco.DICT_4X4_50)
detector = cv2.aruco.ArucoDetector(dictionary, parameters)
corners, ids, _ = detector.detectMarkers(cv2.cvtColor(picture, cv2.COLOR_BGR2GRAY))
assert ids is not None, "no markers"
found = {int(one): corner.reshape(4, 2) for one, corner in zip(ids.flatten(), corners)}
missing = set(told["visible"]) - set(found)
assert not missing, f"not found: {missing}"


def places(marker):
    """The corners clockwise from the upper left, as one sees them."""
    heading, half = marker["heading"], told["side"] / 2
    right = np.array([-math.sin(heading), math.cos(heading), 0]) * half
    up = np.array([0, 0, half])
    centre = np.array([marker["x"], marker["y"], told["height"]])
    return [centre - right + up, centre + right + up, centre + right - up, centre - right - up]


on_walls, in_picture = [], []
for marker in told["markers"]:
    if marker["id"] in found:
        on_walls += places(marker)
        in_picture += list(found[marker["id"]])
optics = np.array([[told["f"], 0, told["cx"]], [0, told["f"], told["cy"]], [0, 0, 1]], float)
solved, rotation, shift = cv2.solvePnP(
    np.array(on_walls), np.array(in_picture, float), optics, None, flags=cv2.SOLVEPNP_SQPNP
)
assert solved
turned, _ = cv2.Rodrigues(rotation)
x, y, z = (-turned.T @ shift).flatten()
ahead = turned.T @ np.array([0, 0, 1])
heading = math.atan2(ahead[1], ahead[0])
true_x, true_y, true_heading = told["pose"]
error_m = math.hypot(x - true_x, y - true_y)
error_deg = math.degrees(math.remainder(heading - true_heading, 2 * math.pi))
assert error_m <= 0.05 and abs(z - told["height"]) <= 0.05, (x, y, z, told["pose"])
assert abs(error_deg) <= 1, error_deg
print("ok")
