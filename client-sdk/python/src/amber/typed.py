"""Classes for devices, made from their descriptions. IO only through :class:`amber.aio.Proxy`."""

from __future__ import annotations

import inspect
import sys
import textwrap
from collections.abc import Iterable
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Callable, TypeVar

from . import schemas
from .convert import snake
from .device import MEDIATOR, Device
from .errors import Refused
from .interface import REQUIRED, Interface, Method, read

if TYPE_CHECKING:
    from . import aio, client

__all__ = ["PlainTyped", "Typed"]

#: How much longer than it was told to a device may take: ninedof takes up to 5 s for its readings.
_MARGIN_S = 6.0

Self = TypeVar("Self", bound="Typed")
SelfPlain = TypeVar("SelfPlain", bound="PlainTyped")


class Typed:
    """Base class of the typed devices for asyncio.

    ``client`` is an :class:`amber.aio.Client`; or a Proxy of the device, without ``id``.
    """

    #: The description of the device.
    interface: Interface

    def __init__(self, client: aio.Client | aio.Proxy, id: int = 0) -> None:
        found: Any = client
        if not hasattr(client, "request"):
            found = found.device(Device(self.interface.device_type, id))
        self.proxy: aio.Proxy = found

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.address}>"

    @property
    def address(self) -> Device:
        """The device."""
        return self.proxy.device

    def with_deadline(self: Self, seconds: float) -> Self:
        """The same device with another deadline for all requests."""
        return type(self)(self.proxy.with_deadline(seconds))

    def without_waiting(self: Self, on_refusal: aio.Report | None = None) -> Self:
        """The same device, whose commands do not wait for the driver.

        If the driver then reports that it refuses a command, ``on_refusal`` is called with the
        error; without it, the logger ``amber`` writes a warning.
        """
        return type(self)(self.proxy.without_waiting(on_refusal))

    def with_validity(self: Self, seconds: float | None) -> Self:
        """The same device; commands that move it hold only for this time, in seconds."""
        return type(self)(self.proxy.with_validity(seconds))

    async def ping(self) -> float:
        """Measures the round-trip time of a PING to the driver, in seconds."""
        return await self.proxy.ping()

    def _limited(self, method: Method, message: Any) -> Any:
        """The message; if it moves something, with the time for which it holds."""
        validity = self.proxy.validity
        if method.moves is not None and not method.moves.errand and validity is not None:
            message.Extensions[self.interface.valid_ms] = int(validity * 1000)
        return message


class PlainTyped:
    """Base class of the typed devices for programs without asyncio.

    ``client`` is an :class:`amber.Client`.
    """

    #: The same device for asyncio.
    _typed: type[Typed]

    def __init__(self, client: client.Client, id: int = 0, *, _inner: Any = None) -> None:
        self._client = client
        self._inner = self._typed(client._aio, id) if _inner is None else _inner

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.address}>"

    @property
    def address(self) -> Device:
        """The device."""
        address: Device = self._inner.address
        return address

    def with_deadline(self: SelfPlain, seconds: float) -> SelfPlain:
        """The same device with another deadline for all requests."""
        return type(self)(self._client, _inner=self._inner.with_deadline(seconds))

    def without_waiting(self: SelfPlain, on_refusal: aio.Report | None = None) -> SelfPlain:
        """The same device, whose commands do not wait for the driver.

        If the driver then reports that it refuses a command, ``on_refusal`` is called with the
        error, in the thread of the client; without it, the logger ``amber`` writes a warning.
        """
        return type(self)(self._client, _inner=self._inner.without_waiting(on_refusal))

    def with_validity(self: SelfPlain, seconds: float | None) -> SelfPlain:
        """The same device; commands that move it hold only for this time, in seconds."""
        return type(self)(self._client, _inner=self._inner.with_validity(seconds))

    def ping(self) -> float:
        """Measures the round-trip time of a PING to the driver, in seconds."""
        return float(self._client._run(self._inner.ping()))


def _add_clients(inside: Any, pool: Any, file: str) -> None:
    """Adds clients of the devices that a user's file describes to its namespace."""
    inside.aio = SimpleNamespace()
    for interface in read(pool, [file]):
        module = file[: -len(".proto")]
        typed = client_class(interface, module=module)
        for name, made in {
            interface.service: plain_class(typed, module),
            **{result.__name__: result for result in results(interface)},
        }.items():
            add_class(inside, file, name, made)
        setattr(inside.aio, interface.service, typed)


def add_class(inside: Any, file: str, name: str, made: Any) -> None:
    """Adds a class of a described device to the namespace of its file."""
    if hasattr(inside, name):
        raise ValueError(f"{file}: the name {name} is needed for the device itself")
    setattr(inside, name, made)


schemas.when_loaded(_add_clients)


def results(interface: Interface) -> list[Any]:
    """The named tuples that methods return."""
    found = [method.result for method in interface.methods]
    return [result for result in found if hasattr(result, "_fields")]


def client_class(interface: Interface, extras: Any = None, module: str = "") -> Any:
    """The class of a device for asyncio; ``extras`` adds or replaces methods."""
    bases = (Typed,) if extras is None else (extras, Typed)
    inside: dict[str, Any] = {
        "interface": interface,
        "__doc__": interface.docs,
        "__module__": module,
    }
    for method in interface.methods:
        if hasattr(Typed, method.name) or method.name == "proxy":
            raise ValueError(f"{interface.file}: every client already has a method {method.name}")
        # Extras use the described method that they replace by a private name.
        is_replaced = hasattr(extras, method.name)
        inside[f"_{method.name}" if is_replaced else method.name] = _client_method(method)
    return type(interface.service, bases, inside)


def _client_method(method: Method) -> Any:
    signature = signature_of(method)
    proxy_message = method.message_class

    def arguments(self: Typed, args: Any, kwargs: Any) -> dict[str, Any]:
        bound = signature.bind(self, *args, **kwargs)
        bound.apply_defaults()
        return bound.arguments

    async def ask(self: Typed, *args: Any, **kwargs: Any) -> Any:
        given = arguments(self, args, kwargs)
        proxy = self.proxy
        duration_ms = given.get(method.duration) if method.duration else None
        seconds = method.timeout_s if duration_ms is None else duration_ms / 1000 + _MARGIN_S
        if seconds is not None and not proxy.has_own_deadline:
            proxy = proxy.with_deadline(seconds)
        order = self._limited(method, method.order(given))
        # A driver that fails has no other way to say so.
        if method.refusal is None and proxy.device != MEDIATOR and proxy.client._mediator_answers:
            order.Extensions[self.interface.want_outcome] = True
        answer = await proxy.request(order)
        refused = answer.Extensions[self.interface.outcome].refused
        if refused:
            raise Refused(f"{proxy.device} refused the request: {refused}")
        return method.answer(answer, proxy.device)

    async def tell(self: Typed, *args: Any, **kwargs: Any) -> None:
        order = self._limited(method, method.order(arguments(self, args, kwargs)))
        await self.proxy.command(order, self.interface.want_outcome, self.interface.outcome)

    def subscribe(self: Typed) -> Any:
        kinds = proxy_message.SUBSCRIBE, proxy_message.UNSUBSCRIBE
        start, stop = (proxy_message(type=kind) for kind in kinds)
        return self.proxy.subscription(method.published, start, stop, method.fields)

    def stream(self: Typed, *args: Any, **kwargs: Any) -> Any:
        given = arguments(self, args, kwargs)
        period_ms = given.get(method.period) if method.period else None
        least = {it.name: 1 if it.default is REQUIRED else 0 for it in method.arguments}
        if period_ms is not None and period_ms < least["period_ms"]:
            raise ValueError(f"period_ms is at least {least['period_ms']}, not {period_ms}")
        start, stop = (method.order(given, last) for last in (method.start, method.stop))
        return self.proxy.subscription(method.published, start, stop, method.fields)

    call: Any = {"ask": ask, "tell": tell, "subscribe": subscribe, "stream": stream}[method.kind]
    return dressed(call, method.name, signature, docs_of(method))


def plain_class(typed: type[Typed], module: str) -> Any:
    """The same device for programs without asyncio."""
    inside: dict[str, Any] = {"_typed": typed, "__doc__": typed.__doc__, "__module__": module}
    for name, function in public_methods(typed):
        inside[name] = _plain_method(name, function)
    return type(typed.__name__, (PlainTyped,), inside)


def _plain_method(name: str, function: Callable[..., Any]) -> Any:
    def ask(self: PlainTyped, *args: Any, **kwargs: Any) -> Any:
        return self._client._run(getattr(self._inner, name)(*args, **kwargs))

    def stream(self: PlainTyped, *args: Any, **kwargs: Any) -> Any:
        return self._client._listen(getattr(self._inner, name)(*args, **kwargs))

    call = ask if inspect.iscoroutinefunction(function) else stream
    return dressed(call, name, inspect.signature(function), inspect.getdoc(function) or "")


def public_methods(typed: type[Typed]) -> Iterable[tuple[str, Callable[..., Any]]]:
    """The methods that a typed device has in addition to :class:`Typed`."""
    for level in typed.__mro__[: typed.__mro__.index(Typed)]:
        for name, function in vars(level).items():
            if inspect.isfunction(function) and not name.startswith("_"):
                yield name, function


def accessors(classes: Iterable[Any], module: str) -> Any:
    """A base class of clients, with a method for each of Amber's devices."""
    inside: dict[str, Any] = {"__doc__": "A method for each device.", "__module__": module}
    for made in classes:
        for name in accessor_names(made):
            inside[name] = _accessor(made, name)
    return type("Devices", (), inside)


def accessor_names(made: Any) -> list[str]:
    """The name of a device, and its other name if it has one."""
    interface = getattr(made, "_typed", made).interface
    return [snake(name) for name in (interface.name, interface.alias) if name]


def _accessor(made: Any, name: str) -> Any:
    def device(self: Any, id: int = 0) -> Any:
        return made(self, id)

    def mediator(self: Any) -> Any:
        return made(self)

    is_mediator = getattr(made, "_typed", made).interface.device_type == 0
    call = mediator if is_mediator else device
    signature = inspect.signature(call).replace(return_annotation=made.__name__)
    return dressed(call, name, signature, made.__doc__)


def signature_of(method: Method, with_self: bool = True) -> inspect.Signature:
    """The signature of a method in Python."""
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [inspect.Parameter("self", kind)] if with_self else []
    for argument in method.arguments:
        default = inspect.Parameter.empty if argument.default is REQUIRED else argument.default
        parameters.append(
            inspect.Parameter(
                argument.name, kind, default=default, annotation=argument.annotation
            )
        )
    result = method.result_annotation
    if method.is_stream:
        result = f"Subscription[{result}]"
    return inspect.Signature(parameters, return_annotation=result)


def docs_of(method: Method) -> str:
    """The comment on a method, and those on its arguments."""
    paragraphs = [method.docs] if method.docs else []
    if method.kind == "tell":
        paragraphs.append("No answer. Raises Refused if the driver reports that it refuses.")
    told = [f"``{it.name}``: {it.docs}" for it in method.arguments if it.docs]
    paragraphs += ["\n".join(textwrap.wrap(it, 80)) for it in told]
    return "\n\n".join(paragraphs)


def dressed(call: Any, name: str, signature: inspect.Signature, docs: str | None) -> Any:
    """A function with the name, signature and documentation that `help` shows."""
    call.__name__ = call.__qualname__ = name
    call.__annotations__ = annotations = {
        it.name: it.annotation
        for it in signature.parameters.values()
        if it.annotation is not inspect.Parameter.empty
    }
    if signature.return_annotation is not inspect.Signature.empty:
        annotations["return"] = signature.return_annotation
    call.__signature__ = signature
    call.__doc__ = docs
    call.__module__ = sys.modules[__name__].__name__
    return call
