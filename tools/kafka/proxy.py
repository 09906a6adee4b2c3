"""A recording proxy for Kafka's frames on loopback: python -m tools.kafka.proxy --pair LISTEN:TARGET --out PREFIX.

Writes PREFIX.bin (every frame with its 4-byte size, in the order seen) and PREFIX.jsonl, one line a frame: seq, us
since the start, conn, port, dir (c2s or s2c), corr, api_key, api_version, client_id, off (in .bin), len, hex (without
the size; none over --max-hex bytes). Prints "ready"; SIGTERM or SIGINT ends it cleanly.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import struct
import time
from pathlib import Path
from typing import Any

BUFFER = 1 << 22


class Recorder:
    """The two files and what is known of each frame."""

    def __init__(self, prefix: str, max_hex: int) -> None:
        self.frames = open(f"{prefix}.bin", "wb")  # noqa: SIM115 (close() closes both)
        self.lines = open(f"{prefix}.jsonl", "w")  # noqa: SIM115
        self.max_hex, self.start, self.count, self.offset = max_hex, time.monotonic(), 0, 0

    def add(self, connection: int, port: int, way: str, frame: bytes, requests: dict[int, tuple[int, int]]) -> None:
        """Write one frame down."""
        told: dict[str, Any] = {"seq": self.count, "us": int((time.monotonic() - self.start) * 1e6)}
        told |= {"conn": connection, "port": port, "dir": way}
        try:
            if way == "c2s":
                key, version, correlation, size = struct.unpack(">hhih", frame[:10])
                client = frame[10 : 10 + size].decode("utf8", "replace") if size >= 0 else None
                told |= {"corr": correlation, "api_key": key, "api_version": version, "client_id": client}
                requests[correlation] = key, version
            else:
                (correlation,) = struct.unpack(">i", frame[:4])
                asked = requests.pop(correlation, (None, None))
                told |= {"corr": correlation, "api_key": asked[0], "api_version": asked[1]}
        except struct.error:
            told["short"] = True
        told |= {"off": self.offset, "len": len(frame) + 4}
        if len(frame) <= self.max_hex:
            told["hex"] = frame.hex()
        self.frames.write(struct.pack(">i", len(frame)) + frame)
        self.lines.write(json.dumps(told) + "\n")
        self.count += 1
        self.offset += len(frame) + 4

    def close(self) -> None:
        """Close both files."""
        self.frames.close()
        self.lines.close()


class Proxy:
    """Listens on one port for each pair and passes frames on, recording them."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder, self.connections = recorder, 0

    async def serve(self, listen: int, target: int) -> asyncio.Server:
        """Listen on one port for a target."""
        async def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            connection, self.connections = self.connections, self.connections + 1
            try:
                there = await asyncio.open_connection("127.0.0.1", target, limit=BUFFER)
            except OSError:
                writer.close()
                return
            requests: dict[int, tuple[int, int]] = {}
            await asyncio.gather(
                self.pump(reader, there[1], connection, listen, "c2s", requests),
                self.pump(there[0], writer, connection, listen, "s2c", requests),
            )

        return await asyncio.start_server(accepted, "127.0.0.1", listen, limit=BUFFER)

    async def pump(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, connection: int, port: int, way: str,
        requests: dict[int, tuple[int, int]],
    ) -> None:  # fmt: skip
        """Pass frames on, one way, until the end."""
        try:
            while True:
                head = await reader.readexactly(4)
                frame = await reader.readexactly(struct.unpack(">i", head)[0])
                self.recorder.add(connection, port, way, frame, requests)
                writer.write(head + frame)
                await writer.drain()
        except (asyncio.IncompleteReadError, OSError):
            pass
        finally:
            writer.close()


async def run(pairs: list[str], out: str, max_hex: int) -> None:
    """Record until it is ended."""
    recorder = Recorder(out, max_hex)
    proxy = Proxy(recorder)
    servers = [await proxy.serve(*map(int, pair.split(":"))) for pair in pairs]
    print("ready", flush=True)
    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    await ended.wait()
    for server in servers:
        server.close()
    recorder.close()


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pair", action="append", required=True, metavar="LISTEN:TARGET")
    parser.add_argument("--out", required=True, type=Path)
    parser.add_argument("--max-hex", type=int, default=16384)
    told = parser.parse_args()
    asyncio.run(run(told.pair, str(told.out), told.max_hex))


if __name__ == "__main__":
    main()
