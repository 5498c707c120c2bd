"""Checks that the installed protobuf can read Amber's schemas. IO."""

from __future__ import annotations

#: The oldest version that works, as in pyproject.toml.
_OLDEST = (3, 20)
#: From the first to the last, these crash the interpreter if they use upb: they read freed memory
#: in messages of descriptor.proto that do not come from the default pool.
_CRASHING = ((4, 22), (4, 24))


def check_protobuf() -> None:
    """Raises ImportError with a remedy, instead of errors that nobody understands, or a crash."""
    try:
        from google.protobuf import __version__ as version
        from google.protobuf.internal import api_implementation
    except ModuleNotFoundError:
        raise ImportError("amber needs the package protobuf: pip install protobuf") from None
    error = problem(version, api_implementation.Type())
    if error is not None:
        raise ImportError(error)


def problem(version: str, implementation: str) -> str | None:
    """The reason why a version of protobuf cannot be used."""
    remedy = "pip install --upgrade protobuf"
    try:
        major, minor = (int(part) for part in version.split(".")[:2])
    except ValueError:
        return None  # a version of somebody's own
    if (major, minor) < _OLDEST:
        oldest = ".".join(str(part) for part in _OLDEST)
        return f"amber needs protobuf {oldest} or newer, not {version}: {remedy}"
    if implementation == "upb" and _CRASHING[0] <= (major, minor) <= _CRASHING[1]:
        return (
            f"protobuf {version} crashes Python with amber: {remedy}, or set "
            "PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION=python, which is slower"
        )
    return None
