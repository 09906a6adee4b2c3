"""What the corpora began with: python -m tests.fuzz.seeds, then python -m tests.fuzz --keep makes them small."""

from __future__ import annotations

import json
from collections.abc import Iterator

import kwire
from tests.codec import wire
from tests.fuzz import targets
from tests.hostile import inputs
from tests.hostile.samples import pairs, samples


def face() -> Iterator[bytes]:
    """Inputs of face.py: what is done, which pair, the rest."""
    for number, pair in enumerate(pairs()):
        head = number.to_bytes(2, "big")
        for data in samples(pair)[:2]:
            yield b"\0" + head + data
        yield b"\7" + head + json.dumps(kwire.to_json(kwire.decode(*pair, data), pair[1])).encode()
    for capture in wire.captures():
        for _, frame in list(wire.frames(capture))[:40]:
            yield b"\4\0\0" + kwire.pack_frame(frame)
    for batch in inputs.sources():
        yield b"\6\0\0" + batch


if __name__ == "__main__":
    targets.keep("records", inputs.sources())
    targets.keep("containers", [batch[61:] for batch in inputs.sources() if len(batch) > 61])
    targets.keep("plans", [b"\1\0\x07\0"])
    targets.keep("face", (data for data in face() if len(data) <= 2048))
