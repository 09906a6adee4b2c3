"""Mistakes that type checkers find: one in each line that ends in a comment."""
# ruff: noqa: B018

from __future__ import annotations

import kwire
from kwire import messages, net, storage


async def mistakes(data: bytes, connection: net.Connection) -> None:
    kwire.decode(messages.FetchResponse, "12", data)  # wrong
    kwire.decode(messages.FetchResponse, 12, "data")  # wrong
    kwire.decode("FetchResponse", 12, data).responses  # wrong
    kwire.decode(messages.FetchRequest.FetchTopic, 12, data)  # wrong
    kwire.encode("FetchRequest", 12)  # wrong
    kwire.build_batch([(1, "key", b"value")])  # wrong
    kwire.build_batch([("now", b"key", b"value")])  # wrong
    kwire.nothing  # wrong
    kwire.schema.nothing  # wrong
    messages.NoSuchRequest  # wrong
    messages.FetchRequest(max_wait_ms="soon")  # wrong
    messages.FetchRequest(no_such_field=1)  # wrong
    messages.FetchRequest().topics[0].no_such_field  # wrong
    kwire.RequestMessage[messages.FetchResponse]().nothing  # wrong
    next(kwire.read_batches(data, errors="keep")).base_offset  # wrong
    storage.LogSegment("x.log").columns(no_such_keyword=1)  # wrong
    (await connection.send(messages.MetadataRequest())).responses  # wrong
    await connection.send(messages.MetadataResponse())  # wrong
    net.connect("localhost:9092", no_such_keyword=1)  # wrong
