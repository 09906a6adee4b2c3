"""The credentials that a client sent on one connection, to find them where they are repeated."""

from __future__ import annotations

import re
import sys
from collections import OrderedDict

_PIECE = 8  # bytes of a secret, too many to match by chance
_SHORT = 128  # bytes of a secret of which every piece is kept; of a longer one each eighth
_MOST_PIECES = 8192  # of one connection, the newest
_FEW = 64  # pieces that are faster searched for one by one
_WRAPPED = b"\x05\x04"  # begins a GSSAPI token of after the login (RFC 4121)
_OCTET_STRING, _CONSTRUCTED = 0x04, 0x20  # of DER
_LARGEST_TOKEN = 512 << 10  # bytes that a broker takes (sasl.server.max.receive.size)
_BEARER = re.compile(rb"auth=bearer +([^\x01]*)", re.IGNORECASE)  # as Kafka's OAuthBearerClientInitialResponse reads it


class Credentials:
    """Secrets of SASL tokens, in pieces of eight bytes; at most 64 KiB of long ones, after which the oldest go."""

    def __init__(self) -> None:
        # by age, whose first is found at once; as numbers in this processor's byte order
        self._pieces: OrderedDict[int, None] = OrderedDict()

    def add(self, token: bytes, mechanism: str | None = None) -> None:
        """Keep every eight bytes in a row of a SASL token's secret; of a long one only each eighth of these.

        mechanism: of the client's handshake, None where it is not known.
        """
        for secret in _secrets(token, mechanism or ""):
            step = 1 if len(secret) <= _SHORT else _PIECE
            for at in range(0, len(secret) - _PIECE + 1, step):
                piece = int.from_bytes(secret[at : at + _PIECE], sys.byteorder)
                self._pieces.pop(piece, None)
                self._pieces[piece] = None
        while len(self._pieces) > _MOST_PIECES:
            self._pieces.popitem(last=False)

    def are_in(self, data: bytes) -> bool:
        """Whether data holds a piece: any 8 bytes of a short secret, any 15 of a long one."""
        if len(self._pieces) <= _FEW:
            return any(piece.to_bytes(_PIECE, sys.byteorder) in data for piece in self._pieces)
        view = memoryview(data)
        ends = (at + (len(data) - at) // _PIECE * _PIECE for at in range(_PIECE))
        return any(not self._pieces.keys().isdisjoint(view[at:end].cast("Q")) for at, end in enumerate(ends))


def _secrets(token: bytes, mechanism: str) -> list[bytes]:
    """The parts of a client's token that are secret; the whole token if it or its mechanism is not known."""
    if mechanism == "PLAIN" and token.count(b"\0") == 2:
        return [token.rpartition(b"\0")[2]]
    if mechanism == "OAUTHBEARER" and (bearers := _BEARER.findall(token)):
        return bearers  # after one there may be host and port (RFC 7628)
    if mechanism == "GSSAPI":
        if token[:2] == _WRAPPED:  # who the client is, in the clear
            return []
        found = _octet_strings(token) if len(token) <= _LARGEST_TOKEN else []
        # the ticket and its authenticator; the host name is in the clear
        return [one for one in found if len(one) >= _PIECE] or [token]
    if mechanism.startswith("SCRAM-"):
        if b",p=" in token:  # the last message
            return [token.rpartition(b",p=")[2]]
        if token[:2] in (b"n,", b"y,", b"p=") and b",r=" in token:  # the first: a name and a nonce
            return []
    return [token]


def _octet_strings(data: bytes) -> list[bytes]:
    """The octet strings in DER, at any depth: what is encrypted in a Kerberos ticket (RFC 4120); [] if it is no DER."""
    found, at = list[bytes](), 0
    while at < len(data):
        kind, size = data[at], int.from_bytes(data[at + 1 : at + 2])
        at += 2
        if size & 0x80:
            digits = size & 0x7F
            size = int.from_bytes(data[at : at + digits])
            at += digits
        if at + size > len(data):
            return []
        if kind == _OCTET_STRING:
            found.append(data[at : at + size])
        if not kind & _CONSTRUCTED:  # else its content is walked, not skipped
            at += size
    return found if at == len(data) else []
