"""Prints the ArUco markers that OpenCV finds in the picture argv[1]: per line, the number and the corners."""

import sys

import cv2

parameters = cv2.aruco.DetectorParameters()
parameters.cornerRefinementMethod = cv2.aruco.CORNER_REFINE_SUBPIX
dictionary = cv2.aruco.getPredefinedDictionary(cv2.aruco.DICT_4X4_50)
detector = cv2.aruco.ArucoDetector(dictionary, parameters)
picture = cv2.imread(sys.argv[1], cv2.IMREAD_GRAYSCALE)
assert picture is not None, sys.argv[1]
corners, ids, _ = detector.detectMarkers(picture)
for number, corner in zip([] if ids is None else ids.flatten(), corners):
    print(int(number), *(f"{value:.3f}" for value in corner.flatten()))
