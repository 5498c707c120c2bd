"""Tests that the schemas in the package match those of the repository."""

import importlib.util
import os
import pkgutil
import pydoc
import shutil
import subprocess
import sys
import tempfile
import unittest

from google.protobuf import descriptor_pb2

import amber
from amber import requires, schemas

PROTO = os.path.join(os.path.dirname(__file__), "..", "..", "..", "proto")

HAS_COMPILER = bool(importlib.util.find_spec("grpc_tools") or shutil.which("protoc"))

MINE = """
syntax = "proto2";
package mine;
import "drivermsg.proto";
extend amber.DriverMsg { optional Reading reading = 110; }
message Reading { optional double celsius = 1; }
"""

DESCRIBED = """
syntax = "proto2";
package described;
import "drivermsg.proto";
import "interface.proto";
extend amber.DriverMsg { optional int32 level = 127 [(amber.unit) = "mm"]; }
service Tank {
  option (amber.device) = { type: 212 name: "tank" };
  rpc Levels(amber.DriverMsg) returns (stream amber.DriverMsg) {
    option (amber.stream) = { data: "level" };
  }
}
"""


class Protobuf(unittest.TestCase):
    def test_versions_that_do_not_work_are_named_with_a_remedy(self):
        for version in ("3.20.0", "3.20.3", "4.21.12", "4.25.0", "7.36.2", "8.1rc1", "main"):
            self.assertIsNone(requires.problem(version, "upb"), version)
        for version in ("3.19.6", "3.6.1", "2.6.1"):
            words = f"protobuf 3.20 or newer, not {version}: pip install --upgrade protobuf"
            self.assertIn(words, requires.problem(version, "python"))
        for version in ("4.22.0", "4.22.5", "4.23.4", "4.24.4"):
            self.assertIsNone(requires.problem(version, "python"), version)
            words = f"protobuf {version} crashes Python with amber: pip install --upgrade"
            self.assertIn(words, requires.problem(version, "upb"))

    def test_a_missing_protobuf_is_named_with_a_remedy(self):
        program = "import sys; sys.modules['google.protobuf'] = None; import amber"
        source = os.path.dirname(os.path.dirname(amber.__file__))
        run = subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONPATH": source},
            stderr=subprocess.PIPE,
            check=False,
        )
        self.assertIn(b"ImportError: amber needs the package protobuf: pip install", run.stderr)


class Schemas(unittest.TestCase):
    def test_help_works_for_the_package_and_its_modules(self):
        self.assertIn("claim_stdout", pydoc.render_doc(amber))
        for module in pkgutil.iter_modules(amber.__path__):
            pydoc.render_doc(f"amber.{module.name}")
        pydoc.render_doc(schemas.roboclaw.MotorsSpeed)

    def test_bytes_of_an_extension(self):
        message = schemas.DriverMsg(type=schemas.DriverMsg.DATA)
        message.Extensions[schemas.roboclaw.motorsCommand].frontLeftSpeed = 5
        raw = message.SerializeToString()
        self.assertEqual(raw.hex(), "1001a201020805")
        again = schemas.DriverMsg.FromString(raw)
        self.assertEqual(again.Extensions[schemas.roboclaw.motorsCommand].frontLeftSpeed, 5)

    @unittest.skipUnless(importlib.util.find_spec("grpc_tools"), "grpcio-tools is missing")
    @unittest.skipUnless(os.path.isdir(PROTO), "not in the repository")
    def test_the_bundle_matches_the_repository(self):
        """If this fails, run scripts/python-schemas."""
        files = sorted(name for name in os.listdir(PROTO) if name.endswith(".proto"))
        with tempfile.TemporaryDirectory() as folder:
            made = os.path.join(folder, "made.binpb")
            subprocess.run(
                [sys.executable, "-m", "grpc_tools.protoc", f"-I{PROTO}"]
                + [f"--descriptor_set_out={made}", *files],
                check=True,
            )
            with open(made, "rb") as file:
                made_set = descriptor_pb2.FileDescriptorSet.FromString(file.read())
        bundled = descriptor_pb2.FileDescriptorSet.FromString(schemas._bundled())
        self.assertEqual(
            {file.name: file for file in bundled.file}, {file.name: file for file in made_set.file}
        )

    @unittest.skipUnless(HAS_COMPILER, "neither grpcio-tools nor protoc")
    def test_a_file_with_a_description(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "described.proto")
            with open(path, "w") as file:
                file.write(DESCRIBED)
            described = schemas.load(path)
            message = schemas.DriverMsg(type=schemas.DriverMsg.DATA)
            message.Extensions[described.level] = 5
            self.assertEqual(message.SerializeToString().hex(), "1001f80705")

    @unittest.skipUnless(HAS_COMPILER, "neither grpcio-tools nor protoc")
    def test_a_user_defined_file(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "mine.proto")
            with open(path, "w") as file:
                file.write(MINE)
            mine = schemas.load(path)
            self.assertEqual(mine.Reading, schemas.load(path).Reading)
            message = schemas.DriverMsg(type=schemas.DriverMsg.DATA)
            message.Extensions[mine.reading].celsius = 21.5
            again = schemas.DriverMsg.FromString(message.SerializeToString())
            self.assertEqual(again.Extensions[mine.reading].celsius, 21.5)
            with open(os.path.join(folder, "bad.proto"), "w") as file:
                file.write(MINE.replace("double", "doubel").replace("mine", "bad"))
            with self.assertRaisesRegex(ValueError, "doubel"):
                schemas.load(os.path.join(folder, "bad.proto"))
        with self.assertRaises(FileNotFoundError):
            schemas.load(path)


if __name__ == "__main__":
    unittest.main()
