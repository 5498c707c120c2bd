"""Reads messages in CDR with rosbags, and prints some of their values as JSON.

The input is a list of {"type": ..., "hex": ...}. Exits with 77 if rosbags is missing.
"""

import json
import sys

try:
    from rosbags.typesys import Stores, get_typestore
except ImportError:
    sys.exit(77)

VALUES = {
    "sensor_msgs/msg/LaserScan": lambda m: [
        m.header.frame_id, m.angle_min, list(m.ranges), list(m.intensities)],
    "sensor_msgs/msg/BatteryState": lambda m: [
        m.voltage, m.present, list(m.cell_voltage), m.serial_number],
    "sensor_msgs/msg/NavSatFix": lambda m: [
        m.status.status, m.status.service, m.latitude, m.position_covariance[8],
        m.position_covariance_type],
    "sensor_msgs/msg/Joy": lambda m: [m.header.frame_id, list(m.axes), list(m.buttons)],
    "sensor_msgs/msg/CompressedImage": lambda m: [
        m.header.stamp.sec, m.header.stamp.nanosec, m.header.frame_id, m.format, list(m.data)],
    "sensor_msgs/msg/CameraInfo": lambda m: [
        m.height, m.width, m.distortion_model, list(m.d), m.k[4], m.p[11], m.roi.x_offset],
    "sensor_msgs/msg/JointState": lambda m: [
        m.name, list(m.position), list(m.velocity), list(m.effort)],
    "diagnostic_msgs/msg/DiagnosticArray": lambda m: [
        m.status[0].level, m.status[0].name, m.status[0].message,
        m.status[0].values[0].key, m.status[0].values[0].value],
    "nav_msgs/msg/OccupancyGrid": lambda m: [
        m.info.resolution, m.info.width, m.info.height, list(m.data), m.info.origin.position.y],
    "nav_msgs/msg/Path": lambda m: [
        m.poses[0].header.stamp.sec, m.poses[0].header.stamp.nanosec,
        m.poses[0].pose.position.x, m.poses[0].pose.position.y, m.poses[0].pose.orientation.w],
    "sensor_msgs/msg/Imu": lambda m: [
        m.orientation_covariance[0], m.linear_acceleration.z],
    "nav_msgs/msg/Odometry": lambda m: [
        m.child_frame_id, m.pose.covariance[35], m.twist.twist.angular.z],
    "geometry_msgs/msg/TwistStamped": lambda m: [
        m.header.stamp.sec, m.header.stamp.nanosec, m.header.frame_id, m.twist.angular.z],
}


def plain(value):
    """NumPy's numbers are not for JSON."""
    if isinstance(value, list):
        return [plain(it) for it in value]
    return value.item() if hasattr(value, "item") else value


store = get_typestore(Stores.ROS2_JAZZY)
found = []
for sample in json.load(sys.stdin):
    message = store.deserialize_cdr(bytes.fromhex(sample["hex"]), sample["type"])
    found.append(plain(VALUES[sample["type"]](message)))
json.dump(found, sys.stdout)
