"""The messages, created from Amber's schemas when this module is imported. PURE.

``DriverMsg`` is the message that all devices share. The additions of a device are
in a namespace with its name: ``schemas.roboclaw.MotorsSpeed`` is a message,
``schemas.roboclaw.currentSpeed`` an extension, used as
``message.Extensions[schemas.roboclaw.currentSpeed]``.

:func:`load` does the same for a ``.proto`` file of your own.

The classes are made at run time, so any version of protobuf from 3.20 works,
and they do not conflict with generated modules of the program.
"""

from __future__ import annotations

import contextlib
import os
import pkgutil
import shutil
import subprocess
import sys
import tempfile
from types import SimpleNamespace
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_POOL = descriptor_pool.DescriptorPool()
_FACTORY: Any = None
if not hasattr(message_factory, "GetMessageClass"):  # before protobuf 4.22
    _FACTORY = message_factory.MessageFactory(_POOL)


def load(path: str) -> Any:
    """Compiles your own ``.proto`` file, and returns its declarations.

    ``import "drivermsg.proto";`` finds Amber's own schemas. Needs a compiler:
    ``pip install grpcio-tools``, or ``protoc`` on the PATH.

    Raises ValueError if the file has errors, and RuntimeError if there
    is no compiler.
    """
    folder, name = os.path.split(os.path.abspath(path))
    if not os.path.exists(path):
        raise FileNotFoundError(f"{path} does not exist")
    with tempfile.TemporaryDirectory() as temporary:
        known = os.path.join(temporary, "known.binpb")
        with open(known, "wb") as file:
            file.write(_known())
        made = os.path.join(temporary, "made.binpb")
        run = subprocess.run(
            [
                *_compiler(),
                f"--descriptor_set_in={known}",
                f"-I{folder}",
                f"--descriptor_set_out={made}",
                name,
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if run.returncode != 0:
            raise ValueError(f"{path} cannot be compiled:\n{run.stdout.strip()}")
        with open(made, "rb") as file:
            names = _add(file.read())
    return _namespace(names[-1])


def _compiler() -> list[str]:
    try:
        import grpc_tools.protoc  # type: ignore[import-untyped,import-not-found,unused-ignore]  # noqa: F401

        return [sys.executable, "-m", "grpc_tools.protoc"]
    except ImportError:
        pass
    found = shutil.which("protoc")
    if found is None:
        raise RuntimeError(
            "no compiler for .proto files; pip install grpcio-tools, or install protoc"
        )
    return [found]


def _bundled() -> bytes:
    data = pkgutil.get_data(__name__.rpartition(".")[0], "schemas.binpb")
    assert data is not None, "schemas.binpb is a part of the package"
    return data


def _known() -> bytes:
    """Amber's schemas with what they import: descriptor.proto, from the protobuf package."""
    options = descriptor_pb2.FileDescriptorSet()
    options.file.add().ParseFromString(descriptor_pb2.DESCRIPTOR.serialized_pb)
    return options.SerializeToString() + _bundled()


def _add(descriptor_set: bytes) -> list[str]:
    """Adds files to the pool; returns their names, in order."""
    names = []
    for file in descriptor_pb2.FileDescriptorSet.FromString(descriptor_set).file:
        _POOL.AddSerializedFile(file.SerializeToString())
        names.append(file.name)
    return names


def _class(descriptor: Any) -> Any:
    if _FACTORY is not None:
        made = _FACTORY.GetPrototype(descriptor)
    else:
        made = message_factory.GetMessageClass(descriptor)
    # protobuf leaves None here, which breaks `help()`.
    if made.__module__ is None:
        made.__module__ = __name__
    return made


def _namespace(name: str) -> Any:
    """All declarations of a file, by name."""
    file = _POOL.FindFileByName(name)
    inside = SimpleNamespace()
    for message in file.message_types_by_name.values():
        setattr(inside, message.name, _class(message))
    for extension in file.extensions_by_name.values():
        if extension.message_type is not None:
            _class(extension.message_type)
        extended = _class(extension.containing_type)
        # Only some implementations before protobuf 5 need this.
        with contextlib.suppress(AttributeError, NotImplementedError):
            extended.RegisterExtension(extension)
        setattr(inside, extension.name, extension)
    for enum in file.enum_types_by_name.values():
        values = {value.name: value.number for value in enum.values}
        setattr(inside, enum.name, SimpleNamespace(**values))
    return inside


# Files that declare only options have nothing for programs.
_OPTIONS = ("google/protobuf/descriptor.proto", "interface.proto")
_FILES = {
    name[: -len(".proto")]: _namespace(name) for name in _add(_known()) if name not in _OPTIONS
}

DriverHdr: Any = _FILES["drivermsg"].DriverHdr
DriverMsg: Any = _FILES["drivermsg"].DriverMsg
mediator: Any = _FILES["mediator"]
ninedof: Any = _FILES["ninedof"]
roboclaw: Any = _FILES["roboclaw"]
stargazer: Any = _FILES["stargazer"]
hokuyo: Any = _FILES["hokuyo"]
dummy: Any = _FILES["dummy"]
location: Any = _FILES["location"]
maestro: Any = _FILES["maestro"]
drive_to_point: Any = _FILES["drive_to_point"]
collision_avoidance: Any = _FILES["collision_avoidance"]
pid_follow_trajectory: Any = _FILES["pid_follow_trajectory"]
