"""Drivers whose requests and streams come from a description. IO.

::

    lamp = amber.load_proto("lamp.proto")

    class MyLamp(lamp.LampDriver):
        period = 1.0                            # seconds between two publications

        def set_brightness(self, percent):      # ask: return the answer
            return percent

        def get_brightness(self):
            return 40

        def brightness(self):                   # stream: return what subscribers get
            return self.get_brightness()

    amber.serve(MyLamp())

Python refuses to create a driver in which a request is missing, and names it.

- *ask* and *tell* are methods with the arguments of the request. The result of an *ask* is the
  answer: a single value, or a tuple or dict if there are several. Raise :class:`amber.Refused`
  to refuse a request. Any other exception refuses it as well, with "the driver failed".
- A *stream* by SUBSCRIBE is a method without arguments, called every ``period`` seconds while
  there are subscribers. None publishes nothing. Instead of it, or in addition, call
  ``send_STREAM(value)`` whenever there is something to publish.
- A *stream* by a request is a method with the arguments of the request, called once per
  period for each client. Clients that asked for no period get what ``send_STREAM(value)`` sends.
- A method whose name a driver needs itself ends with ``_``: ``start_``, ``stop_``.
"""

from __future__ import annotations

import abc
import inspect
import time
import traceback
from typing import Any

from . import motion, schemas
from .driver import REASON, Driver, Request, Timer, failure, log
from .errors import BadAnswer, Refused
from .interface import Interface, Method, read
from .typed import add_class, docs_of, dressed, signature_of


class TypedDriver(Driver):
    """Base class of drivers whose device is described; see :mod:`amber.typed_driver`."""

    #: The description of the device.
    interface: Interface
    reports_outcomes = True

    _client = 0
    #: For each stream by a request and each of its clients: the arguments.
    _listeners: dict[tuple[str, int], dict[str, Any]] | None = None

    @property
    def client(self) -> int:
        """The client whose request is being handled; valid until ``client_gone``."""
        return self._client

    def request(self, request: Request) -> Any:
        """Calls the methods of the request. Override it for requests without a description."""
        self._client = request.client
        fitting = [it for it in self.interface.methods if it.fits(request.message)]
        if not fitting:
            answer = super().request(request)
            unknown = Refused("not a request for this device")
            return self._outcome(request.message, unknown) if answer is None else answer
        answer, refusal = None, None
        for method in fitting:
            try:
                reply = self._handle(method, request)
            except Refused as error:
                refusal = error
                reply = method.refuse(error)
            except Exception as error:
                if method.refusal is None:
                    raise  # the caller gets the outcome, if it asked for it
                log(traceback.format_exc().strip())
                reply = method.refuse(failure(error))
            answer = reply if answer is None else answer
        if refusal is not None and answer is None:
            log(f"refused {fitting[0].name}: {refusal}")
        return self._outcome(request.message, refusal) if answer is None else answer

    def publish(self) -> Any:
        """Calls the methods of all streams by SUBSCRIBE."""
        for method in self.interface.methods:
            handler = getattr(self, handler_name(method))
            if method.kind == "subscribe" and not hasattr(handler, "_publishes_nothing"):
                value = handler()
                if value is not None:
                    self.send_to_subscribers(method.reply(value))

    @property
    def _description(self) -> bytes:
        return self.interface.description

    @property
    def _moves(self) -> motion.Moves | None:
        methods = self.interface.methods
        if all(method.moves is None for method in methods):
            return None
        stops = [method.stop_message for method in methods if method.stop_message() is not None]
        return motion.Moves(self._motion, stops[0] if stops else None, self._refusal)

    def _motion(self, message: Any) -> int:
        fitting = [it.motion(message) for it in self.interface.methods if it.fits(message)]
        return max(fitting, default=motion.NOTHING)

    def _refusal(self, message: Any, why: str) -> Any:
        refused = Refused(why)
        for method in self.interface.methods:
            if method.moves is not None and method.fits(message):
                answer = method.refuse(refused)
                if answer is not None:
                    return answer
        return self._outcome(message, refused)

    def _handle(self, method: Method, request: Request) -> Any:
        try:
            arguments = method.read_arguments(request.message)
        except (ValueError, BadAnswer) as error:
            raise Refused(f"the request is invalid: {error}") from None
        if method.kind == "stream":
            self._change_stream(method, request, arguments)
            return None
        value = getattr(self, handler_name(method))(*arguments.values())
        return method.reply(value) if method.kind == "ask" else None

    def _change_stream(self, method: Method, request: Request, arguments: dict[str, Any]) -> None:
        key = (method.name, request.client)
        self._drop(key)
        if method.is_stop(request.message):
            return
        period_ms = arguments.pop(method.period, None) if method.period else None
        if period_ms:

            def work() -> None:
                value = getattr(self, handler_name(method))(*arguments.values())
                if value is not None:
                    self._serving().publish_to((request.client,), method.reply(value))

            self._timers[key] = Timer(period_ms / 1000, time.monotonic(), work)
        else:
            self._listeners = {**(self._listeners or {}), key: arguments}

    def _drop(self, key: tuple[str, int]) -> None:
        self._timers.pop(key, None)
        # Other threads may be reading the old one.
        self._listeners = {it: args for it, args in (self._listeners or {}).items() if it != key}

    def _forget_client(self, client: int) -> None:
        for method in self.interface.methods:
            self._drop((method.name, client))

    def _send(self, method: Method, value: Any) -> None:
        message = method.reply(value)
        if method.kind == "subscribe":
            self.send_to_subscribers(message)
        else:
            clients = (client for name, client in self._listeners or {} if name == method.name)
            self._serving().publish_to(tuple(sorted(clients)), message)

    def _outcome(self, message: Any, refusal: Refused | None) -> Any:
        """The answer to a command, for clients that ask whether it is carried out."""
        if not message.Extensions[self.interface.want_outcome]:
            return None
        answer = self.message_class(type=self.message_class.DATA)
        outcome = answer.Extensions[self.interface.outcome]
        outcome.SetInParent()
        if refusal is not None:
            outcome.refused = str(refusal)[:REASON]
        return answer


def handler_name(method: Method) -> str:
    """The name of a method in a driver."""
    return f"{method.name}_" if hasattr(TypedDriver, method.name) else method.name


def handler_signature(method: Method) -> inspect.Signature:
    """The signature that a driver implements."""
    signature = signature_of(method)
    parameters = [it for it in signature.parameters.values() if it.name != method.period]
    # Values of requests are read, not written.
    read = {it.name: method.codec.annotation(it.path[-1], False) for it in method.arguments}
    for index, parameter in enumerate(parameters[1:], 1):
        annotation = read[parameter.name]
        if parameter.default is None and annotation != "Any":
            annotation += " | None"
        empty = inspect.Parameter.empty
        # A driver may choose names of its own.
        parameters[index] = parameter.replace(
            annotation=annotation, default=empty, kind=parameter.POSITIONAL_ONLY
        )
    parameters[0] = parameters[0].replace(kind=parameters[-1].kind)
    result = method.result_annotation
    if method.is_stream and result != "Any" and not result.endswith("None"):
        result += " | None"
    return inspect.Signature(parameters, return_annotation=result)


def driver_class(interface: Interface, module: str) -> Any:
    """The base class of drivers of a device."""
    inside: dict[str, Any] = {
        "interface": interface,
        "message_class": interface.message_class,
        "__doc__": interface.docs,
        "__module__": module,
    }
    for method in interface.methods:
        inside[handler_name(method)] = _handler(method)
        if method.is_stream:
            inside[f"send_{method.name}"] = _sender(method)
    return abc.ABCMeta(f"{interface.service}Driver", (TypedDriver,), inside)


def _add_drivers(inside: Any, pool: Any, file: str) -> None:
    """Adds driver classes of the devices that a user's file describes to its namespace."""
    for interface in read(pool, [file]):
        made = driver_class(interface, file[: -len(".proto")])
        add_class(inside, file, made.__name__, made)


schemas.when_loaded(_add_drivers)


def _handler(method: Method) -> Any:
    def handler(self: TypedDriver, *arguments: Any) -> Any:
        return None

    dressed(handler, handler_name(method), handler_signature(method), docs_of(method))
    if method.kind == "subscribe":
        handler._publishes_nothing = True  # type: ignore[attr-defined]
        return handler
    return abc.abstractmethod(handler)


def _sender(method: Method) -> Any:
    def send(self: TypedDriver, value: Any) -> None:
        self._send(method, value)

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    value = inspect.Parameter("value", kind, annotation=method.result_annotation)
    signature = inspect.Signature(
        [inspect.Parameter("self", kind), value], return_annotation="None"
    )
    docs = "Publishes a value now. May be called from any thread."
    return dressed(send, f"send_{method.name}", signature, docs)
