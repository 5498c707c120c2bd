"""Checks that the installed protobuf can read Amber's schemas. IO."""

from __future__ import annotations

#: The oldest version that works, as in pyproject.toml.
_OLDEST = (3, 20)


def check_protobuf() -> None:
    """Raises ImportError with a remedy, instead of errors that nobody understands."""
    try:
        from google.protobuf import __version__ as version
    except ModuleNotFoundError:
        raise ImportError("amber needs the package protobuf: pip install protobuf") from None
    error = problem(version)
    if error is not None:
        raise ImportError(error)


def problem(version: str) -> str | None:
    """The reason why a version of protobuf cannot be used."""
    try:
        major, minor = (int(part) for part in version.split(".")[:2])
    except ValueError:
        return None  # a version of somebody's own
    if (major, minor) >= _OLDEST:
        return None
    oldest = ".".join(str(part) for part in _OLDEST)
    return f"amber needs protobuf {oldest} or newer, not {version}: pip install --upgrade protobuf"
