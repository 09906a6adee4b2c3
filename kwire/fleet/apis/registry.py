"""Handlers by API: what a node calls for a request."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from kwire import schema
from kwire.codec.frames import Request
from kwire.fleet.errors import ApiError

if TYPE_CHECKING:
    from kwire.fleet.cluster import ClusterState
    from kwire.fleet.connection import Connection
    from kwire.fleet.node import Node

Handler = Callable[["Call"], Any | Awaitable[Any]]
F = TypeVar("F", bound=Handler)
HANDLERS: dict[int, Handler] = {}  # of brokers
CONTROLLER_HANDLERS: dict[int, Handler] = {}
FINISHED: set[int] = set()  # APIs whose requests are carried out to their end although the client goes


@dataclass(slots=True)
class Call:
    """A request that a node answers."""

    node: Node
    connection: Connection
    request: Request

    @property
    def cluster(self) -> ClusterState:
        """The state that the nodes share."""
        return self.node.cluster

    @property
    def message(self) -> Any:
        """The request's message."""
        return self.request.message

    @property
    def version(self) -> int:
        """The version of the request and of its response."""
        return self.request.version


def answered(
    items: Iterable[Any], row_of: Callable[[Any], Any], fill: Callable[[Any, Any], None],
    text: Callable[[ApiError], str | None] | None = None,
) -> list[Any]:
    """A row of an answer for each item of a request: row_of(item), which fill(item, row) completes or refuses.

    The code of an ApiError that fill raises is the row's error code; text: what of it is the row's error message.
    """
    rows = []
    for item in items:
        row = row_of(item)
        try:
            fill(item, row)
        except ApiError as error:
            row.error_code = error.code
            if text is not None:
                row.error_message = text(error)
        rows.append(row)
    return rows


def handles(
    name: str, *, broker: bool = True, controller: bool = False, finishes: bool = False
) -> Callable[[F], F]:
    """Make a function the handler of an API: it takes a Call and gives the response's message, None for no response.

    broker, controller: whose listeners it answers at; finishes: also if the client goes while others are answered.
    """

    def register(handler: F) -> F:
        for handlers, wanted in ((HANDLERS, broker), (CONTROLLER_HANDLERS, controller)):
            if wanted:
                handlers[schema.api(name).key] = handler
        if finishes:
            FINISHED.add(schema.api(name).key)
        return handler

    return register
