"""The messages, created from Amber's schemas when this module is imported. IO only in :func:`amber.load_proto`.

``DriverMsg`` is the message that all devices share. The additions of a device are
in a namespace with its name: ``schemas.roboclaw.MotorsSpeed`` is a message,
``schemas.roboclaw.currentSpeed`` an extension, used as
``message.Extensions[schemas.roboclaw.currentSpeed]``.

:func:`amber.load_proto` does the same for a ``.proto`` file of your own.

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
from collections.abc import Callable, Iterable, Iterator
from types import SimpleNamespace
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError


class Pool:
    """A set of files without conflicts, and their classes."""

    def __init__(self, files: Iterable[Any] = ()) -> None:
        self._pool = descriptor_pool.DescriptorPool()
        self._factory: Any = None
        if not hasattr(message_factory, "GetMessageClass"):  # before protobuf 4.22
            self._factory = message_factory.MessageFactory(self._pool)
        self._names: set[str] = set()
        #: The files as messages of the protobuf package, with comments.
        self.files: dict[str, Any] = {}
        self.add(files)

    def add(self, files: Iterable[Any]) -> None:
        """Adds the files that are not here yet."""
        for file in files:
            if file.name not in self.files:
                self.files[file.name] = file
                self._names.update(_declared(file))
                bare = type(file)()
                bare.CopyFrom(file)
                bare.ClearField("source_code_info")
                self._pool.AddSerializedFile(bare.SerializeToString())
                self._register(file.name)

    def _register(self, name: str) -> None:
        """Registers the extensions of a file, which some versions before protobuf 5 need."""
        for extension in self._pool.FindFileByName(name).extensions_by_name.values():
            if extension.message_type is not None:
                self.class_of(extension.message_type)
            extended = self.class_of(extension.containing_type)
            with contextlib.suppress(AttributeError, NotImplementedError):
                extended.RegisterExtension(extension)

    def has_room_for(self, file: Any) -> bool:
        """Whether a file declares nothing that another file of this pool declares."""
        if file.name in self.files:
            return bool(self.files[file.name] == file)
        return self._names.isdisjoint(_declared(file))

    def message(self, name: str) -> Any:
        """The class of a message."""
        return self.class_of(self._pool.FindMessageTypeByName(name))

    def extension(self, name: str) -> Any:
        """The descriptor of an extension, or None."""
        try:
            return self._pool.FindExtensionByName(name)
        except KeyError:
            return None

    def class_of(self, descriptor: Any) -> Any:
        """The class of a message, from its descriptor."""
        if self._factory is not None:
            made = self._factory.GetPrototype(descriptor)
        else:
            made = message_factory.GetMessageClass(descriptor)
        # protobuf leaves None here, which breaks `help()`.
        if made.__module__ is None:
            made.__module__ = __name__
        return made

    def namespace(self, name: str) -> Any:
        """All declarations of a file, by name."""
        file = self._pool.FindFileByName(name)
        inside = SimpleNamespace()
        for message in file.message_types_by_name.values():
            setattr(inside, message.name, self.class_of(message))
        for extension in file.extensions_by_name.values():
            setattr(inside, extension.name, extension)
        for enum in file.enum_types_by_name.values():
            values = {value.name: value.number for value in enum.values}
            setattr(inside, enum.name, SimpleNamespace(**values))
        return inside


def _declared(file: Any) -> Iterator[str]:
    """Names and numbers that must be unique in a pool."""
    prefix = f"{file.package}." if file.package else ""
    kinds = (file.message_type, file.enum_type, file.extension, file.service)
    for declared in [one for kind in kinds for one in kind]:
        yield prefix + declared.name
    for enum in file.enum_type:
        for value in enum.value:
            yield prefix + value.name
    messages = list(file.message_type)
    extensions = list(file.extension)
    while messages:
        message = messages.pop()
        messages += message.nested_type
        extensions += message.extension
    for extension in extensions:
        yield f"{extension.extendee} {extension.number}"


def load(path: str | os.PathLike[str]) -> Any:
    """Compiles your own ``.proto`` file, and returns its declarations.

    ``import "drivermsg.proto";`` finds Amber's own schemas. Needs a compiler:
    ``pip install grpcio-tools``, or ``protoc`` on the PATH.

    ``DriverMsg`` of the result is the message with the extensions of the
    file. It is ``amber.DriverMsg``, unless the file uses a number or a name of
    a file that was loaded before.

    If the file describes a device by a ``service``, say ``Lamp``, the result also has
    ``Lamp``, a client for :class:`amber.Client`; ``aio.Lamp`` for :class:`amber.aio.Client`;
    and ``LampDriver``, the base class of a driver (see :mod:`amber.typed_driver`).

    Raises ValueError if the file has errors, and RuntimeError if there
    is no compiler.
    """
    return _loaded(compile_files(path))


def from_description(files: bytes) -> Any:
    """Like :func:`load`, from the description that a driver has sent to the mediator.

    Raises ValueError if it is invalid.
    """
    try:
        return _loaded(list(descriptor_pb2.FileDescriptorSet.FromString(files).file))
    except (DecodeError, IndexError, KeyError, TypeError) as error:
        raise ValueError(f"the description is invalid: {error}") from error


def description_of(pool: Pool, name: str) -> bytes:
    """The description of a user's device, for programs that do not have its file."""
    found: dict[str, Any] = {}

    def add(name: str) -> None:
        if name not in found and name not in _BASE_NAMES:
            for imported in pool.files[name].dependency:
                add(imported)
            bare = found[name] = descriptor_pb2.FileDescriptorProto()
            bare.CopyFrom(pool.files[name])
            bare.ClearField("source_code_info")
            for place in pool.files[name].source_code_info.location:
                if place.leading_comments:
                    kept = bare.source_code_info.location.add(path=place.path)
                    kept.leading_comments = place.leading_comments

    add(name)
    return descriptor_pb2.FileDescriptorSet(file=found.values()).SerializeToString()


def when_loaded(add: Callable[[Any, Pool, str], None]) -> None:
    """From now on, calls ``add`` with the namespace, the pool and the name of each loaded file."""
    _WHEN_LOADED.append(add)


def _loaded(files: list[Any]) -> Any:
    key = b"".join(file.SerializeToString(deterministic=True) for file in files)
    if key not in _LOADED:
        pool = _SHARED
        if not all(pool.has_room_for(file) for file in files):
            pool = Pool(_bundled_files())
        pool.add(files)
        inside = [pool.namespace(file.name) for file in files][-1]
        inside.DriverMsg = pool.message("amber.DriverMsg")
        for add in _WHEN_LOADED:
            add(inside, pool, files[-1].name)
        _LOADED[key] = inside
    return _LOADED[key]


def compile_files(path: str | os.PathLike[str]) -> list[Any]:
    """The descriptors of a file and of the files next to it that it imports; it is the last."""
    folder, name = os.path.split(os.path.abspath(path))
    if not os.path.exists(path):
        raise FileNotFoundError(f"{path} does not exist")
    with tempfile.TemporaryDirectory() as temporary:
        known = os.path.join(temporary, "known.binpb")
        with open(known, "wb") as file:
            for each in _bundled_files():
                file.write(descriptor_pb2.FileDescriptorSet(file=[each]).SerializeToString())
        made = os.path.join(temporary, "made.binpb")
        run = subprocess.run(
            [
                *_compiler(),
                f"--descriptor_set_in={known}",
                f"-I{folder}",
                "--include_imports",
                "--include_source_info",
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
            found = descriptor_pb2.FileDescriptorSet.FromString(file.read()).file
    return [each for each in found if each.name not in _BASE_NAMES]


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


def _bundled(comments: bool = False) -> bytes:
    """Amber's schemas."""
    data = pkgutil.get_data(__name__.rpartition(".")[0], "schemas.binpb")
    assert data is not None, "schemas.binpb is a part of the package"
    if comments:
        return data
    bundled = descriptor_pb2.FileDescriptorSet.FromString(data)
    for file in bundled.file:
        file.ClearField("source_code_info")
    return bundled.SerializeToString()


def _bundled_files() -> list[Any]:
    """Amber's schemas with what they import: descriptor.proto, from the protobuf package."""
    options = descriptor_pb2.FileDescriptorProto.FromString(descriptor_pb2.DESCRIPTOR.serialized_pb)
    bundled = descriptor_pb2.FileDescriptorSet.FromString(_bundled(comments=True))
    return [options, *bundled.file]


#: Results of :func:`load`, by descriptors.
_LOADED: dict[bytes, Any] = {}
_WHEN_LOADED: list[Callable[[Any, Pool, str], None]] = []
#: Amber's schemas, and those of users as long as they do not conflict.
_SHARED = Pool(_bundled_files())
_BASE_NAMES = tuple(_SHARED.files)
_FILES = {name[: -len(".proto")]: _SHARED.namespace(name) for name in _BASE_NAMES}
#: Reads only the fields that all messages share, whatever a device adds.
Envelope: Any = Pool(
    file for file in _SHARED.files.values() if file.name == "drivermsg.proto"
).message("amber.DriverMsg")

DriverHdr: Any = _FILES["drivermsg"].DriverHdr
DriverMsg: Any = _FILES["drivermsg"].DriverMsg


def __getattr__(name: str) -> Any:
    """The declarations of a device, such as ``schemas.roboclaw``."""
    try:
        return _FILES[name]
    except KeyError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None


def __dir__() -> list[str]:
    return [*globals(), *(name for name in _FILES if "/" not in name and name != "interface")]
