"""Marks every text that comes from outside, reads every text that leaves: python -m tests.hostile.taint --seconds N.

Two kinds of marks: secrets, which may stand nowhere (nor any eight characters of them, in any form), and signs that a
terminal obeys or that hide text, which may appear only escaped. Each round has a seed; exit 0: nothing found.
What `kwire decode`, `kwire frame` and the repr of a message show is the message itself: there are no secrets in those.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import io
import itertools
import json
import logging
import os
import pickle
import random
import shutil
import string
import sys
import tempfile
import time
import traceback
import urllib.parse
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import chdir, contextmanager
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from uuid import UUID

import kwire
from kwire import messages
from kwire.capture import Connection, Exchange, FrameWriter, Lost, audit, read_capture
from kwire.capture.recorder import Recording
from kwire.cli import main as command
from kwire.net import AuthenticationError, Cluster, connect
from kwire.storage import ClusterImage, DowngradeError, LogDirectory
from tests.capture.making import Talk, hello, metadata, welcome, write_pcap
from tests.net import fake
from tests.net.test_sasl import Guarded
from tests.storage.making import aborted_index, batch, in_transaction, marker, write_segment
from tests.storage.metadata.records import write_log

SIGNS = (
    "\x1b[31m", "\x1b]0;x\x07", "\x9b2J", "\x9d0;x\x9c", "\x08", "\x7f", "\r", "\n", "\t", "\x0b", "\x85", "\u2028",
    "\u202e",
    "\u2066", "\u200b", "\ufeff", "\U000e0041", "\U0001b000", "<script>alert(1)</script>", "<img src=x onerror=y>",
    "&amp;", "[red]", "[/]", ":smile:", "{{7*7}}", "{0}", "%s%n", "$x^2$", '"', "'", "\\", "\\x1b", "é", "日本",
    "a" * 700,
)  # fmt: skip
SURROGATES = ("\udc80", "\udcff", "\udc9b")  # bytes of a file's name that are no UTF-8
PIECE = 8  # bytes of a secret that stand nowhere by chance


class Tainted(AssertionError):
    """A mark that came out."""


class Marks:
    """Makes marked texts and secrets, and knows the secrets that it made."""

    def __init__(self, seed: int) -> None:
        self.dice, self.read = random.Random(seed), Counter[str]()
        self.begins: defaultdict[str, set[str]] = defaultdict(set)  # the first characters of pieces of secrets -> these

    def text(self, most: int = 200, signs: tuple[str, ...] = SIGNS) -> str:
        """A text with signs in it."""
        words = itertools.chain.from_iterable((self.dice.choice(signs), f"w{number}") for number in range(3))
        return "".join(words)[:most]

    def name(self) -> str:
        """The name of a file."""
        text = self.text(60, (*SIGNS, *SURROGATES)).replace("/", "|")
        while len(os.fsencode(text)) > 150:
            text = text[:-5]
        return text

    def secret(self, size: int = 24) -> str:
        """A new secret."""
        made = "".join(self.dice.choices(string.ascii_letters + string.digits, k=size))
        return self.hide(made)

    def hide(self, secret: str) -> str:
        """The same, which is a secret from now on."""
        for piece in forms(secret):
            self.begins[piece[:PIECE]].add(piece)
        return secret


def forms(secret: str) -> set[str]:
    """Every eight characters of a secret and of what it becomes in base64, hex, URLs, halves and turned round.

    Of hex the digits of eight bytes: those of four are found by chance.
    """
    data = secret.encode()
    whole = [secret, secret[::-1], urllib.parse.quote(secret)]
    whole += [base64.b64encode(data[skip:]).decode().rstrip("=") for skip in range(3)]
    pieces = {text[at : at + PIECE] for text in whole for at in range(len(text) - PIECE + 1)}
    parts = [data[at : at + PIECE] for at in range(len(data) - PIECE + 1)]
    return pieces | {text for part in parts for text in (part.hex(), part.hex(" "))}


def no_secret(marks: Marks, where: str, text: str | bytes) -> None:
    """Fail if the text contains a piece of a secret."""
    if isinstance(text, bytes):
        text = text.decode("latin-1")
    begins = marks.begins.keys() & {text[at : at + PIECE] for at in range(len(text) - PIECE + 1)}
    for piece in itertools.chain.from_iterable(marks.begins[begin] for begin in begins):
        if piece in text:
            at = text.index(piece)
            raise Tainted(f"{where}: a secret comes out: {text[max(0, at - 100) : at + 60]!r}")


def shown(marks: Marks, where: str, text: str) -> None:
    """Fail if a terminal would do more than show this text, or if it contains a secret."""
    marks.read[where.split(" ")[0]] += 1
    for sign in text:
        if not sign.isprintable() and sign not in "\n\t":
            at = text.index(sign)
            raise Tainted(f"{where}: {sign!r} comes out raw: {text[max(0, at - 80) : at + 80]!r}")
    no_secret(marks, where, text)


class Page(HTMLParser):
    """Fails on tags and attributes that no page of ours has."""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """A tag."""
        if tag in ("script", "img", "link", "iframe", "object") or any(
            name.startswith("on") or name in ("src", "href") for name, _ in attrs
        ):
            raise Tainted(f"a page has <{tag} {attrs}>")


def shown_error(marks: Marks, where: str, error: BaseException) -> None:
    """Reads all that an exception says: its text, its repr, its traceback with what is chained to it, its pickle."""
    shown(marks, f"{where} str", str(error))
    shown(marks, f"{where} repr", repr(error))
    shown(marks, f"{where} traceback", "".join(traceback.format_exception(error)))
    no_secret(marks, f"{where} dict", repr(vars(error)))
    if isinstance(error, kwire.KwireError) and not isinstance(error, DowngradeError):  # whose losses are the records
        no_secret(marks, f"{where} pickle", pickle.dumps(error))
        told_again = pickle.loads(pickle.dumps(error))
        assert str(told_again) == str(error)


def attempt(marks: Marks, where: str, work: Callable[[], Any]) -> Any:
    """What work gives; an error of the family, of files or of use is read, any other fails."""
    try:
        return work()
    except (kwire.KwireError, OSError) as error:
        shown_error(marks, where, error)
        return None


@contextmanager
def listening(marks: Marks, where: str) -> Iterator[None]:
    """Reads the warnings and the logs that come meanwhile."""
    seen: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: seen.append(logging.Formatter().format(record))  # type: ignore[method-assign]
    logging.getLogger().addHandler(handler)
    try:
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            yield
        for one in warned:
            if not issubclass(one.category, ResourceWarning):
                shown(marks, f"{where} warning", str(one.message))
    finally:
        logging.getLogger().removeHandler(handler)
    for text in seen:
        shown(marks, f"{where} log", text)


def run(marks: Marks, *arguments: object, stdin: bytes = b"", codes: tuple[int, ...] = (0, 1, 2)) -> str:
    """What a command prints; all it says is read."""
    kept = sys.stdin, sys.stdout, sys.stderr
    encoding = marks.dice.choice(("utf-8", "utf-8", "ascii", "iso8859-1"))
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding=encoding, newline="") for _ in range(2))
    sys.stdin, sys.stdout, sys.stderr = io.TextIOWrapper(io.BytesIO(stdin)), out, err
    name = str(arguments[0])
    known = name if name.isalpha() and name.isascii() and len(name) < 20 else "?"
    where = f"kwire-{known} {' '.join(map(str, arguments))[:200]!a} ({encoding})"
    try:
        with listening(marks, where):
            code = command([str(one) for one in arguments])
        out.flush(), err.flush()
        said = [stream.buffer.getvalue().decode(encoding) for stream in (out, err)]  # type: ignore[attr-defined]
    finally:
        sys.stdin, sys.stdout, sys.stderr = kept
    assert code in codes, (where, code, said)
    for name, text in zip(("out", "err"), said, strict=True):
        shown(marks, f"{where} {name}", text)
    return said[0]


def parsed(where: str, text: str) -> list[Any]:
    """The JSON values of an output: one a line, or one in all."""
    try:
        return [json.loads(text)]
    except ValueError:
        try:
            return [json.loads(line) for line in text.split("\n") if line]
        except ValueError as error:
            raise Tainted(f"{where}: no JSON: {error}: {text[:500]!r}") from None


def same(where: str, found: Any, wanted: Any) -> None:
    """Fails where a value did not come back as it was."""
    if found != wanted:
        raise Tainted(f"{where}: {found!r} is not {wanted!r}")


# --- what is marked, room by room ---


def logs(marks: Marks, folder: Path) -> None:
    """Keys, header keys, values, topics and files of segments."""
    topic = marks.name()
    top = folder / marks.name()
    partition = top / f"{topic}-0"
    rows = [
        (1_700_000_000_000 + number, *(marks.text().encode() + marks.dice.choice((b"", b"\xff")) for _ in range(2)),
         [(marks.text(), marks.text().encode()), (marks.text(), None)])
        for number in range(3)
    ]
    whole = kwire.build_batch(rows, codec=marks.dice.choice(("none", "gzip", "zstd")))
    first = write_segment(partition, 0, [whole, in_transaction(3, 1), marker(6, 1, False)])
    aborted_index(first, [(1, 3, 6, 7)])
    bad = bytearray(batch(8, 4))
    bad[-3] ^= 1
    with write_segment(partition, 7, [batch(7, 1)]).open("ab") as file:
        file.write(bad + b"\0" * 30)
    lone = top / f"{marks.name()}.log"
    lone.write_bytes(whole)
    fields = parsed("log show", run(marks, "log", "show", first, "--json"))[:3]
    for row, (_, key, value, headers) in zip(fields, rows, strict=True):
        wanted = [as_json(key), as_json(value), [[name, as_json(content)] for name, content in headers]]
        same("log show --json", [row["key"], row["value"], row["headers"]], wanted)
        if "\n" not in topic:
            same("topic", row["topic"], topic)
    for arguments in (
        ["show", top], ["show", first, "--width", 9], ["show", lone, "--control"], ["show", top, "--batches"],
        ["stats", top], ["stats", top, "--segments"], ["verify", top], ["stats", lone], ["verify", lone],
        ["show", top / marks.name()], ["show", f"{top}/*{marks.name()}*"], ["show", top, "--topic", marks.text()],
        ["show", top, "--start-timestamp", marks.text()], ["to-parquet", top, "-o", folder / marks.name()],
        ["to-parquet", lone, "-o", lone], ["stats", lone, "--plot", folder / marks.name()], [marks.text()],
        ["dump", first], ["dump", lone], ["dump", "--files", marks.name()], ["dump", top / f"{marks.name()}.metadata"],
        ["dump", first, "--value-decoder-class", marks.text()], ["dump", first.with_suffix(".txnindex")],
    ):
        run(marks, "log", *arguments)
    for arguments in (
        ["show", top, "--batches"], ["stats", top], ["verify", top],
        ["to-parquet", lone, "--output", folder / f"{marks.name()}.parquet"],
    ):
        parsed(str(arguments), run(marks, "log", *arguments, "--json"))
    for option in ("--print-data-log", "--value-decoder-class", "--offsets-decoder"):
        parsed("log dump", run(marks, "log", "dump", first, option, "--json"))
    if marks.dice.random() < 0.2:
        picture = folder / f"{marks.name()}.svg"
        run(marks, "log", "stats", top, "--plot", picture, codes=(0, 1))
        shown(marks, "svg", picture.read_text())
    found = LogDirectory([str(top)])
    for made in (found, *found, *found.segments, found.files if hasattr(found, "files") else None):
        shown(marks, "repr", repr(made))
    for segment in found.segments:
        attempt(marks, "segment", lambda segment=segment: [repr(one) for one in segment.read()])
        for one in segment.batches(errors="keep"):
            shown(marks, "repr", repr(one))
        for record in attempt(marks, "segment", lambda segment=segment: list(segment.read())) or ():
            shown(marks, "repr", repr(record))
    attempt(marks, "directory", lambda: LogDirectory([str(folder / marks.name())]))


def as_json(data: bytes | None) -> Any:
    """Bytes as `log show --json` has them."""
    try:
        return None if data is None else data.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}


Pair = tuple[bytes, bytes]


def framed(name: str, version: int, number: int, reply: dict[str, Any] | None = None, **fields: Any) -> Pair:
    """A request and its response."""
    request, answer = getattr(messages, f"{name}Request")(**fields), getattr(messages, f"{name}Response")(**reply or {})
    return (
        kwire.encode_request(request, version, correlation_id=number, client_id="me"),
        kwire.encode_response(answer, version, correlation_id=number),
    )


def settings(marks: Marks, name: str, version: int, number: int) -> Pair:
    """AlterConfigs, with passwords among its values, and an answer that quotes them."""
    kind, reply = getattr(messages, f"{name}Request"), getattr(messages, f"{name}Response")
    row = kind.AlterableConfig
    names = ("ssl.key.password", "sasl.jaas.config", "x.ssl.keystore.key")
    values = [row(name=one, value=marks.secret()) for one in names]
    values.append(row(name=marks.text(), value=marks.text()))
    result = reply.AlterConfigsResourceResponse(
        error_code=40, error_message=f"{marks.text()} {values[0].value}", resource_name=marks.text())
    return framed(name, version, number, {"responses": [result]},
                  resources=[kind.AlterConfigsResource(resource_name=marks.text(), configs=values)])


def scram(marks: Marks, number: int) -> Pair:
    """AlterUserScramCredentials."""
    kind, reply = messages.AlterUserScramCredentialsRequest, messages.AlterUserScramCredentialsResponse
    salted = marks.secret()
    row = kind.ScramCredentialUpsertion(
        name=marks.text(), mechanism=1, iterations=4096, salt=b"s", salted_password=salted.encode())
    result = reply.AlterUserScramCredentialsResult(
        user=marks.text(), error_code=1, error_message=f"{marks.text()}{salted}")
    return framed("AlterUserScramCredentials", 0, number, {"results": [result]}, upsertions=[row])


def authentication(marks: Marks, number: int) -> Pair:
    """SaslAuthenticate of one mechanism, and an error that echoes it."""
    secret = marks.secret()
    token = marks.dice.choice((
        f"\0alice\0{secret}", f"n,,\x01auth=Bearer {secret}.{marks.secret()}\x01\x01", f"c=biws,r=n,p={secret}",
    )).encode()  # fmt: skip
    echo = f"{marks.text()} {base64.b64encode(token).decode()} {secret[:12]}"
    reply = {"error_code": 58, "error_message": echo, "auth_bytes": marks.secret().encode()}
    return framed("SaslAuthenticate", 2, number, reply, auth_bytes=token)


def talk(marks: Marks) -> list[tuple[bytes, bytes | None]]:
    """What one connection says: marked names all over, and secrets wherever the protocol has room for them."""
    number = itertools.count(1)
    pairs: list[tuple[bytes, bytes | None]] = [
        (hello(client_id=marks.text(), software=marks.text()), welcome()),
        framed("SaslHandshake", 0, next(number), {"mechanisms": [marks.text()]}, mechanism=marks.text()),
        (f"\0{marks.text()}\0{marks.secret()}".encode(), marks.secret().encode()),
        (marks.secret(50).encode(), marks.secret().encode()),
    ]
    rest: list[tuple[bytes, bytes | None]] = [
        authentication(marks, next(number)), scram(marks, next(number)),
        settings(marks, "AlterConfigs", 2, next(number)), settings(marks, "IncrementalAlterConfigs", 1, next(number)),
        framed("RenewDelegationToken", 2, next(number), hmac=marks.secret().encode()),
        framed("ExpireDelegationToken", 2, next(number), hmac=marks.secret().encode()),
        framed("CreateDelegationToken", 3, next(number),
               {"hmac": marks.secret().encode(), "token_id": marks.text()}),
        framed("FindCoordinator", 2, next(number), {"error_message": marks.text(), "host": marks.text()},
               key=marks.text()),
        (hello(next(number), client_id=marks.text()), None),
        metadata(next(number)),
    ]
    inner = marks.dice.choice((
        authentication(marks, 0), scram(marks, 0), settings(marks, "AlterConfigs", 2, 0),
        (marks.secret().encode(), b""),
    ))  # fmt: skip
    rest.append(framed("Envelope", 0, next(number), {"response_data": inner[1]}, request_data=inner[0],
                       request_principal=b"p", client_host_address=b"\x7f\0\0\1"))  # fmt: skip
    rest.append((authentication(marks, next(number))[0][:-3], b"\0\0\0" + bytes([next(number) - 1])))  # cannot be read
    marks.dice.shuffle(rest)
    return pairs + rest


def captures(marks: Marks, folder: Path) -> None:
    """Packets, frame files and what a tap records: nothing that leaves them has a secret, whatever is in them."""
    said, made = talk(marks), Talk().open()
    for request, answer in said:
        made.exchange(request, answer)
    packets = write_pcap(folder / f"{marks.name()}.pcap", made.bytes())
    out = folder / f"{marks.name()}t"
    with FrameWriter(str(out)) as writer:
        recording = Recording(Connection(str(out), 0, f"{marks.text()}:1", f"{marks.text()}:9092"), writer)
        for request, answer in said:
            recording.feed("request", kwire.pack_frame(request))
            if answer is not None:
                recording.feed("response", kwire.pack_frame(answer))
        recording.close()
    for kind in ("jsonl", "bin"):
        with kwire.capture.frame_files._Packed(f"{out}.{kind}.gz")._stream as stream:
            no_secret(marks, f"tap {kind}", stream.read())
    odd = folder / marks.name()
    row = {"conn": marks.text(), "dir": "c2s", "off": 0, "len": 0, "client": marks.text(), "server": marks.text(),
           "lost": marks.text()}
    request = kwire.pack_frame(said[0][0])
    Path(f"{odd}.jsonl").write_text(f"{json.dumps(row)}\n{json.dumps(row | {'len': len(request)})}\n"
                                    f"{json.dumps(row | {'off': len(request), 'len': 99})}\n")
    Path(f"{odd}.bin").write_bytes(request)
    broken = folder / f"{marks.name()}.pcap"
    broken.write_bytes(packets.read_bytes()[: marks.dice.randrange(20, 2000)])
    paths = [packets, Path(f"{out}.jsonl.gz"), Path(f"{odd}.jsonl"), broken]
    for path in paths:
        with listening(marks, "capture"):
            attempt(marks, "capture", lambda path=path: events(marks, path))
            attempt(marks, "spark", lambda path=path: in_spark(marks, path, "capture"))
    found = audit([str(path) for path in paths], "4.4")
    same("audit --json", parsed("audit", run(marks, "audit", *paths, "--to", "4.4", "--json"))[0],
         json.loads(json.dumps(found.to_json())))
    page = folder / f"{marks.name()}.html"
    for arguments in (paths, [*paths, "--html", page], [*paths, "--html", page], [folder / marks.name()]):
        run(marks, "audit", *arguments, "--to", "4.4")
    run(marks, "audit", *paths, "--to", marks.text())
    if not page.exists():
        raise Tainted("audit --html: no page was written")
    shown(marks, "html", page.read_text())
    Page().feed(page.read_text())


def events(marks: Marks, path: Path) -> None:
    """All that a capture gives, as Python shows it."""
    for event in read_capture(path):
        shown(marks, "repr", repr(event))
        if isinstance(event, Lost):
            shown(marks, "lost", event.reason)
        if isinstance(event, Exchange):
            for work in (event.to_json, event.decode_request, event.decode_response):
                text = attempt(marks, "exchange", work)
                no_secret(marks, "exchange", repr(text))


def in_spark(marks: Marks, path: Path, kind: str) -> None:
    """The rows, warnings and errors of Spark's reader, without Spark."""
    from kwire.spark.source import KwireDataSource

    for mode in ("PERMISSIVE", "FAILFAST"):
        source = KwireDataSource({"path": str(path), "kind": kind, "mode": mode})
        reader = source.reader(source.schema())
        for part in reader.partitions():
            shown(marks, "spark repr", repr(part))
            for rows in reader.read(part):
                no_secret(marks, "spark rows", json.dumps(rows.to_pylist(), default=str))


def spark(marks: Marks, folder: Path) -> None:
    """Segments that Spark reads: torn, damaged, named by others."""
    partition = folder / marks.name() / "t-0"
    bad = bytearray(batch(3))
    bad[-3] ^= 1
    with write_segment(partition, 0, [batch(0)]).open("ab") as file:
        file.write(marks.dice.choice((bad + batch(6), batch(3) + batch(6)[:-9])))
    with listening(marks, "spark"):
        attempt(marks, "spark", lambda: in_spark(marks, partition, "records"))
        attempt(marks, "spark", lambda: in_spark(marks, folder / f"{marks.name()}x", "records"))


def codec(marks: Marks, folder: Path) -> None:
    """Messages as JSON and back, frames, and what is wrong with them."""
    kind = messages.MetadataResponse
    rows = [kind.MetadataResponseBroker(node_id=1, host=marks.text(), port=1, rack=marks.text())]
    topics = [kind.MetadataResponseTopic(name=marks.text(), error_code=3)]
    message = kind(brokers=rows, topics=topics, cluster_id=marks.text())
    data, wanted = kwire.encode(message, 9), kwire.to_json(message, 9)
    (value,) = parsed("decode", run(marks, "decode", "MetadataResponse", 9, stdin=data.hex().encode(), codes=(0,)))
    same("decode", value, wanted)
    file = folder / marks.name()
    file.write_text(json.dumps(wanted))
    same("encode", run(marks, "encode", "MetadataResponse", 9, file, codes=(0,)).strip(), data.hex())
    request = hello(client_id=marks.text(), software=marks.text(), version=3)
    (value,) = parsed("frame", run(marks, "frame", "--from", "base64", stdin=base64.b64encode(request), codes=(0,)))
    same("frame", value["client_id"], kwire.decode_request(request).client_id)
    wrong = marks.dice.choice(([1], {marks.text(): 1}, {"brokers": [{marks.text(): 1}]}, {"brokers": marks.text()},
                               wanted | {"clusterId": 7}, wanted | {"_unknownTags": {marks.text(): marks.text()}}))
    file.write_text(json.dumps(wrong))
    cut = data[: marks.dice.randrange(len(data))]
    for arguments, stdin in (
        (("encode", "MetadataResponse", 9, file), b""), (("encode", "MetadataResponse", 9), marks.text().encode()),
        (("decode", "MetadataResponse", 9), marks.text().encode()), (("decode", marks.text(), 9), b""),
        (("decode", "MetadataResponse", 9), cut.hex().encode()),
        (("decode", "MetadataResponse", 9, folder / marks.name()), b""),
        (("frame", "--api", marks.text(), "--version", 1), b"00"), (("frame", "--from", "raw"), cut),
        (("apis", "--release", marks.text()), b""), (("protocol", marks.text()), b""), ((marks.text(),), b""),
        (("protocol", "diff", marks.text(), "4.4"), b""), (("decode", "MetadataResponse", marks.text()), b""),
        (("tap", "--listen", marks.text(), "--target", "a:1", "--out", folder / "x"), b""),
    ):
        run(marks, *arguments, stdin=stdin)
    for made in (message, kwire.decode_request(request), *kwire.read_batches(batch(0))):
        shown(marks, "repr", repr(made))
    for work in (
        lambda: kwire.decode("MetadataResponse", 9, cut), lambda: kwire.from_json("MetadataResponse", 9, wrong),
        lambda: kwire.decode(marks.text(), 9, cut), lambda: kwire.decode_request(cut),
        lambda: kwire.schema.apis(marks.text()),
        lambda: kwire.decode_response(cut, api=18, version=3), lambda: list(kwire.read_batches(cut * 9)),
        lambda: kwire.encode(messages.MetadataResponse(cluster_id=marks.text() * 2000), 8),
    ):
        attempt(marks, "codec", work)
    secret = marks.secret()
    for work in (
        lambda: messages.SaslAuthenticateRequest(auth_bytes=secret), lambda: kwire.from_json(
            "SaslAuthenticateRequest", 2, {"authBytes": f"{secret}!"}),
        lambda: kwire.decode("SaslAuthenticateRequest", 2, secret.encode()),
        lambda: kwire.decode_request(b"\0\x24\0\2" + secret.encode()),
        lambda: kwire.from_json("SaslAuthenticateRequest", 2, {"authBytes": [secret]}),
    ):
        try:
            work()
        except (TypeError, kwire.KwireError) as error:
            shown(marks, "codec str", f"{error} {error!r}")


def brokers(marks: Marks, folder: Path) -> None:
    """Hosts and racks that brokers tell, and words in which they echo what they were sent."""
    honest = fake.Broker(fake.of_release("4.4"))
    answer = fake.cluster_answer(honest, rack=marks.text())

    def tells_of_others(request: Any) -> Any:
        reply = answer(request)
        row = type(reply).MetadataResponseBroker
        reply.brokers.append(row(node_id=2, host=marks.text(30), port=9, rack=marks.text()))
        return reply

    honest.answer = tells_of_others
    mechanism = marks.dice.choice(("PLAIN", "SCRAM-SHA-256", "OAUTHBEARER"))
    secret = marks.secret()

    def echo(token: bytes) -> str:
        known = secret
        if mechanism.startswith("SCRAM"):
            marks.hide(token.decode().rpartition("p=")[2])
        elif mechanism == "OAUTHBEARER":
            known = marks.hide(token.decode().partition("Bearer ")[2].rstrip("\x01"))
        form = marks.dice.choice((
            str, bytes.hex, lambda data: base64.b64encode(data).decode(), bytes.decode, lambda _: "",
        ))  # fmt: skip
        return f"{marks.text()} {form(token)} {known[3:12]}"

    guarded, properties = Guarded("4.4", mechanism, echo=echo), folder / f"{marks.name()}.properties"
    properties.write_text(
        f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism={mechanism}\nsasl.jaas.config=a.B required "
        f'username="u" password="{secret}" unsecuredLoginStringClaim_sub="{secret}";\n')

    async def strange(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(100)
        writer.write(marks.dice.choice((marks.text().encode(), b"\0\0\0\x20" + marks.text().encode() + bytes(40))))
        await writer.drain()

    other = fake.Server(strange)
    with fake.serving(honest, guarded, other), listening(marks, "net"):
        at = ("versions", "--timeout", "2", "--bootstrap-server", honest.address)
        for more in ((), ("--kip97",), ("--feature", "headers"), ("--against", "2.0"), ("--feature", marks.text())):
            run(marks, *at, *more)
        (value,) = parsed("versions", run(marks, *at, "--json"))
        same("versions --json", {row["host"] for row in value["brokers"]}, {fake.HOST})
        login = ("versions", "--timeout", "5", "--bootstrap-server")
        run(marks, *login, guarded.address, "--command-config", properties, codes=(1,))
        wrong = marks.dice.choice(("", "a.B", "required"))
        properties.write_text(properties.read_text().replace("a.B required", wrong))
        run(marks, *login, guarded.address, "--command-config", properties, codes=(2,))
        run(marks, *login, other.address)
        run(marks, *login, marks.text())
        run(marks, *login, honest.address, "--command-config", folder / marks.name())
        asyncio.run(refused(marks, guarded.address, mechanism, secret))
        asyncio.run(unreachable(marks, honest.address))


async def refused(marks: Marks, address: str, mechanism: str, secret: str) -> None:
    """A login that fails, as a program sees it."""
    how: Any = (lambda: secret) if mechanism == "OAUTHBEARER" else (mechanism, "u", secret)
    connection = connect(address, sasl=how, timeout=5)
    for wrong in (how, (secret, "u", secret), (mechanism.lower(), secret, secret)):
        try:
            async with connect(address, sasl=wrong, timeout=5):
                raise Tainted("a wrong password was taken")
        except AuthenticationError as error:
            if wrong is how:
                shown_error(marks, "login", error)
            else:
                shown(marks, "login", f"{error} {error!r}") if wrong[0] != mechanism.lower() else None
    try:
        await connection.open()
    except AuthenticationError as error:
        shown_error(marks, "login", error)
    shown(marks, "repr", repr(connection) + repr(connection._sasl))
    await connection.close()


async def unreachable(marks: Marks, address: str) -> None:
    """A cluster that tells of brokers whose names nobody can look up."""
    async with Cluster(address, partial=True, timeout=3) as cluster:
        for made in (cluster, cluster.brokers, cluster.unreachable, cluster.api_versions):
            shown(marks, "repr", repr(made))
        for error in cluster.unreachable.values():
            shown_error(marks, "cluster", error)
        for node in (2, 77):
            try:
                await cluster.send(messages.MetadataRequest(), to=node)
            except kwire.KwireError as error:
                shown_error(marks, "cluster", error)


def cluster(marks: Marks, folder: Path) -> None:
    """The metadata of a cluster: names, hosts and texts in its records, SCRAM keys, secret configs, token ids."""
    m, dice, topic, keys = messages, marks.dice, UUID(int=9), ("salt", "stored_key", "server_key")

    def records() -> list[Any]:
        point = m.RegisterBrokerRecord.BrokerEndpoint(name=marks.text(), host=marks.text(), port=1)
        part = m.ClientQuotaRecord.EntityData(entity_type=marks.text(), entity_name=marks.text())
        return [
            m.FeatureLevelRecord(name="metadata.version", feature_level=25),
            m.FeatureLevelRecord(name=marks.text(), feature_level=1),
            m.RegisterBrokerRecord(broker_id=1, rack=marks.text(), end_points=[point], log_dirs=(UUID(int=5),)),
            m.TopicRecord(name=marks.text(), topic_id=topic),
            m.PartitionRecord(partition_id=0, topic_id=topic, replicas=(1,), isr=(1,), directories=(UUID(int=7),)),
            m.ConfigRecord(resource_type=2, resource_name=marks.text(), name=marks.text(), value=marks.text()),
            *(m.ConfigRecord(resource_type=4, resource_name=dice.choice(("", "1")), name=name, value=marks.secret())
              for name in ("ssl.key.password", "sasl.jaas.config", "listener.name.x.ssl.keystore.key")),
            m.ClientQuotaRecord(entity=[part], key=marks.text(), value=1.5),
            m.UserScramCredentialRecord(name=marks.text(), mechanism=dice.choice((1, 2, 9)), iterations=4096,
                                        **{key: marks.secret().encode() for key in keys}),
            m.AccessControlEntryRecord(id=UUID(int=3), resource_type=2, resource_name=marks.text(), pattern_type=3,
                                       principal=marks.text(), host=marks.text(), operation=3, permission_type=3),
            m.DelegationTokenRecord(owner=marks.text(), requester=marks.text(), renewers=[marks.text()],
                                    token_id=marks.text()),
        ]  # fmt: skip

    first, second = folder / "a", folder / "b"
    write_log(first, records())
    write_log(second, records())
    broken = folder / "c"
    write_log(broken, [*records(), m.PartitionChangeRecord(partition_id=77, topic_id=topic),
                       m.RemoveTopicRecord(topic_id=UUID(int=77))])
    for arguments in (
        ["show", first], ["show", broken], ["show", first, "--topic", marks.text()], ["diff", first, second],
        ["downgrade", first, folder / f"{marks.name()}x", "--metadata", 7, "--unsafe"],
        ["downgrade", first, "--metadata", 9, "--dry-run"],
        ["downgrade", first, "--metadata", marks.text(), "--dry-run"],
        ["show", folder / marks.name()], ["show", first, "--offset", 99], ["show", first, "--release", marks.text()],
    ):  # fmt: skip
        run(marks, "snapshot", *arguments)
    for arguments in (["show", first], ["diff", first, second], ["downgrade", first, "--metadata", 7, "--dry-run"]):
        parsed("snapshot", run(marks, "snapshot", *arguments, "--json"))
    image, other = ClusterImage.read(first), ClusterImage.read(second)
    lower = image.downgrade(7, unsafe=True)
    for made in (image, image.diff(other), lower.losses, lower, image.to_json()):
        no_secret(marks, "image", repr(made))
    for work in (lambda: image.downgrade(7), lambda: ClusterImage.read(broken), lambda: list(image.records())):
        attempt(marks, "image", work)


def formatted(marks: Marks, folder: Path) -> None:
    """kwire storage: what its configuration and its command line hold."""
    config, place = folder / marks.name(), folder / marks.name().replace(",", "")
    lines = {
        "process.roles": "broker,controller", "node.id": "1", "controller.listener.names": "C",
        "listeners": "P://h:9092,C://h:9093", "listener.security.protocol.map": "P:PLAINTEXT,C:PLAINTEXT",
        "inter.broker.listener.name": "P", "controller.quorum.voters": "1@h:9093", "log.dirs": str(place),
        "sasl.jaas.config": f'a.B required password="{marks.secret()}";', "ssl.key.password": marks.secret(),
    }  # fmt: skip
    wrong = marks.dice.choice((
        {}, {"node.id": marks.text()}, {"listeners": marks.text()}, {"controller.quorum.voters": marks.text()},
        {"log.dirs": f"{folder}/{marks.text()}"}, {"process.roles": marks.text()}, {"log.retention.ms": marks.text()},
        {"config.providers": marks.text()}, {"inter.broker.protocol.version": marks.text()},
        {"listener.security.protocol.map": marks.text()},
    ))  # fmt: skip
    config.write_bytes("".join(f"{key}={value}\n" for key, value in (lines | wrong).items()).encode("utf-8", "replace"))
    secret = marks.secret()
    scram = marks.dice.choice((
        "SCRAM-SHA-256=[name=alice,password={}]", "SCRAM-SHA-256=[name=alice,password={},iterations=1]",
        "SCRAM-SHA-256=[name=alice,password={}", "SCRAM-SHA-1=[name=alice,password={}]", "=[password={}]",
        "SCRAM-SHA-256=[name=alice,salt=%%,password={}]", "SCRAM-SHA-256=[password={},name=]",
        "SCRAM-SHA-256=[name=alice,password=x,{}]",
        "SCRAM-SHA-256=[name=alice,saltedpassword={}]", "SCRAM-SHA-512=[name=alice,password={},x=y]",
    )).format(secret)  # fmt: skip
    release = marks.dice.choice(([], ["--as", "3.9.1"], ["--as", "3.5.2"], ["--as", marks.text()]))
    run(marks, "storage", "info", "-c", config)
    run(marks, "storage", "format", "-c", config, "-t", marks.dice.choice(("AAAAAAAAAAAAAAAAAAAAAQ", marks.text())),
        "--add-scram", scram, *release)
    run(marks, "storage", "format", "-c", config, "-t", marks.text(), "--release-version", marks.text(), *release)
    run(marks, "storage", "format", "-c", folder / marks.name(), "-t", marks.text())
    run(marks, "storage", "format", "-c", config, "-t", marks.text(), "--feature", marks.text())
    run(marks, "storage", "info", "-c", config)
    run(marks, "storage", marks.text())


ROOMS: tuple[Callable[[Marks, Path], None], ...] = (
    logs, captures, codec, brokers, spark, cluster, formatted,
)  # fmt: skip


def one_round(room: Callable[[Marks, Path], None], seed: int) -> Counter[str]:
    """One round in a folder of its own: how many texts of each kind were read. Raises Tainted.

    That folder is the current one meanwhile: a relative log.dirs that "kwire storage format" is given lies in it.
    """
    marks, folder = Marks(seed), Path(tempfile.mkdtemp(prefix="taint"))
    try:
        with chdir(folder):
            room(marks, folder)
    finally:
        shutil.rmtree(folder)
    return marks.read


def main() -> int:
    """Rounds until the time is over."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seconds", type=float, default=60)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--room", choices=[room.__name__ for room in ROOMS])
    given = options.parse_args()
    read: Counter[str] = Counter()
    rooms = [room for room in ROOMS if given.room in (None, room.__name__)]
    end, rounds = time.monotonic() + given.seconds, 0
    while time.monotonic() < end or rounds < len(rooms):
        room, seed = rooms[rounds % len(rooms)], given.seed + rounds // len(rooms)
        try:
            read += one_round(room, seed)
        except Exception:
            print(f"--room {room.__name__} --seed {seed} --seconds 0:")
            traceback.print_exc()
            return 1
        rounds += 1
    kinds = ", ".join(f"{n} {k}" for k, n in read.most_common())
    print(f"{rounds} rounds, {read.total()} texts read ({kinds}): nothing found")
    return 0


if __name__ == "__main__":
    sys.exit(main())
