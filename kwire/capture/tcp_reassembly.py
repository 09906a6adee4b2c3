"""TCP reassembly: wrapped sequence numbers, retransmitted, overlapping, late and lost segments, reused ports."""

from __future__ import annotations

import heapq
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field

from kwire.capture.exchange import Connection, Direction, Exchange, Lost
from kwire.capture.framing import MOST_HELD, Conversation, begins_request
from kwire.capture.pcap import TcpSegment

_MOST_LATE = 16 << 20  # bytes of one direction that wait for an earlier segment
_MOST_CONNECTIONS = 50_000
_MOST_ENDED = 1000  # ended connections that still accept late segments
_PATIENCE = 64  # packets of a connection by which a segment that the peer acknowledged may be late
_SETTLING = 16  # packets of a connection before which its SYN may still come
_OVERHEAD = 256  # bytes that a late segment costs beside its own
_HALF, _WHOLE = 1 << 31, 1 << 32
_MOST_WINDOW = 1 << 30  # bytes that a sender may be ahead of its peer (RFC 7323)


@dataclass(slots=True)
class _Flow:
    """The state of one direction, in unwrapped sequence numbers.

    next: the first byte not delivered yet, None until known.
    """

    next: int | None = None
    syn: bool = False  # the start is known
    end: int | None = None  # of FIN
    acked: int | None = None  # the first byte that the peer has not acknowledged
    reset: int | None = None  # of RST: all bytes before it were sent
    late: list[tuple[int, int, TcpSegment]] = field(default_factory=list)  # (sequence number, arrival, segment), a heap
    held: int = 0

    def unwrap(self, number: int) -> int:
        """The unwrapped number of a sequence number: the one nearest to the current position."""
        base = self.next if self.next is not None else self.late[0][0] if self.late else number
        return base + (number - base + _HALF) % _WHOLE - _HALF

    @property
    def done(self) -> bool:
        """Whether every byte up to the FIN was delivered."""
        return self.end is not None and self.next is not None and self.next >= self.end


class _Tracked:
    """One TCP connection while it is read: delivers bytes and gaps to its conversation."""

    def __init__(self, connection: Connection, source: str, target: str, servers: set[str]) -> None:
        self.connection, self.servers = connection, servers
        self.flows = {source: _Flow(), target: _Flow()}
        self.conversation: Conversation | None = None
        self.client: str | None = None
        self.starts: dict[str, int] = {}  # endpoint -> sequence number of its first byte, where known
        self.reset = False
        self.packets = 0
        self.foreign = 0  # bytes that cannot be of this connection

    @property
    def held(self) -> int:
        """Bytes in memory."""
        flows = sum(flow.held for flow in self.flows.values())
        return flows + (self.conversation.held if self.conversation else 0)

    @property
    def ended(self) -> bool:
        """Whether the connection was reset, or closed in both directions."""
        return self.reset or all(flow.done for flow in self.flows.values())

    def reuses_ports(self, segment: TcpSegment) -> bool:
        """Whether a packet belongs to a later connection between the same ports: a SYN, or data after the end."""
        flow = self.flows[segment.source]
        if not segment.syn:
            return self.ended and self._is_foreign(segment, flow)
        if flow.next is None and not flow.late:
            return self.conversation is not None  # which side is the client was decided without this one
        start = flow.unwrap(segment.seq) + 1
        if flow.syn:
            return start != self.starts[segment.source]
        return flow.next is not None or any(start > seq for seq, _, _ in flow.late)

    def _is_foreign(self, segment: TcpSegment, flow: _Flow) -> bool:
        """Whether a packet's bytes are none of this connection: the capture lacks the SYN of theirs."""
        if not segment.size or segment.rst or flow.next is None:
            return False
        seq, start = flow.unwrap(segment.seq), self.starts.get(segment.source)
        is_before = start is not None and seq + segment.size < start  # a keep-alive has the byte before the first
        return is_before or abs(seq - flow.next) > _MOST_WINDOW or (flow.end is not None and seq >= flow.end)

    def _is_stale(self, source: str, flow: _Flow, seq: int) -> bool:
        """Whether a packet is a late one of an earlier connection between the same ports, by its sequence number."""
        start = self.starts.get(source)
        is_before = start is not None and seq < start - 1  # a keep-alive has the byte before the first
        return is_before or (flow.next is not None and abs(seq - flow.next) > _MOST_WINDOW)

    def take(self, segment: TcpSegment) -> None:
        """Take the connection's next packet."""
        self.packets += 1
        flow, back = self.flows[segment.source], self.flows[segment.target]
        seq = flow.unwrap(segment.seq)
        if segment.syn:
            self._synchronise(segment, flow, back, seq)
            seq += 1
        if not self._is_stale(segment.source, flow, seq):
            if segment.ack is not None:
                self._acknowledge(segment, flow, back, seq)
            if segment.fin and flow.end is None:
                flow.end = seq + segment.size
        if segment.rst:
            self.reset, flow.reset = True, seq
        if segment.size and not segment.rst and (flow.next is None or seq + segment.size > flow.next):
            heapq.heappush(flow.late, (seq, self.packets, segment))
            flow.held += len(segment.data) + _OVERHEAD
        elif self._is_foreign(segment, flow):
            self.foreign += segment.size
        if self.conversation is None and not self._settled():
            return
        self._advance()

    def _synchronise(self, segment: TcpSegment, flow: _Flow, back: _Flow, seq: int) -> None:
        if not flow.syn:
            flow.syn = True
            self.starts[segment.source] = seq + 1
            if flow.next is None:
                flow.next = seq + 1
        if self.conversation is None:  # else it is decided which side's bytes are requests
            self.client = segment.target if segment.ack is not None else segment.source
        if segment.ack is not None and back.next is None:
            back.next, back.syn = back.unwrap(segment.ack), True
            self.starts[segment.target] = back.next

    def _acknowledge(self, segment: TcpSegment, flow: _Flow, back: _Flow, seq: int) -> None:
        assert segment.ack is not None
        if back.next is None and not back.late and flow.syn and seq == flow.next and self.client == segment.source:
            back.next, back.syn = segment.ack, True  # the handshake's third packet: the second was not captured
            self.starts[segment.target] = segment.ack
        if back.next is not None:
            acked = back.unwrap(segment.ack)
            if acked - back.next <= _MOST_WINDOW:
                back.acked = acked if back.acked is None else max(acked, back.acked)

    def _settled(self) -> bool:
        """Whether the start of the connection and the client are decided, if only because nothing better will come."""
        known = self.ended or all(flow.syn for flow in self.flows.values()) or self.packets > _PATIENCE
        if known or (self.packets > _SETTLING and self._known_client()):
            self._settle()
        return self.conversation is not None

    def _settle(self) -> None:
        """Decide which side is the client, and where each direction begins."""
        # without any other evidence the server is the side with the lower port
        self.client = self._known_client() or max(self.flows, key=lambda name: int(name.rpartition(":")[2]))
        (client, _), (server, _) = self._in_order()
        self.connection.client, self.connection.server = client, server
        self.conversation = Conversation(self.connection)
        unknown = [name for name, flow in self.flows.items() if not flow.syn]
        if len(unknown) == 2 and any(flow.late for flow in self.flows.values()):
            self.conversation.pairing.lose("the capture begins in the middle of this connection")
        elif unknown and self.flows[unknown[0]].late:
            why = "the capture lacks the beginning of this direction of the connection"
            self.conversation.pairing.lose(why, self._direction(unknown[0]))
        for name in unknown:
            flow = self.flows[name]
            if flow.next is None and flow.late:
                flow.next = flow.late[0][0]
            self.conversation.begin_anywhere(self._direction(name))

    def _known_client(self) -> str | None:
        """The side that sent the SYN; or whose peer is a server elsewhere; or that sends apparent requests; or None."""
        if self.client is not None:
            return self.client
        first, second = self.flows
        if (first in self.servers) != (second in self.servers):
            return second if first in self.servers else first
        requests = {name: sum(begins_request(segment.data) for _, _, segment in flow.late)
                    for name, flow in self.flows.items()}
        return None if requests[first] == requests[second] else max(requests, key=lambda name: requests[name])

    def _direction(self, name: str) -> Direction:
        return "request" if name == self.client else "response"

    def _advance(self) -> None:
        """Deliver what is in order, requests first; skip a gap once its bytes can no longer be expected."""
        assert self.conversation is not None
        (client, requests), (server, responses) = self._in_order()
        self._deliver(client, requests)
        while self._hopeless(requests):
            self._step_over(client, requests)
        self.conversation.requests_late = bool(requests.late)
        self._deliver(server, responses)
        while self._hopeless(responses):
            ack = responses.late[0][2].ack  # requests acknowledged by then will not come either: skip them first
            while ack is not None and requests.late and requests.late[0][0] <= requests.unwrap(ack):
                self._step_over(client, requests)
            self._step_over(server, responses)

    def _step_over(self, name: str, flow: _Flow) -> None:
        """Report the gap before the late segments and deliver what comes after it."""
        self._skip(name, flow, flow.late[0][0])
        self._deliver(name, flow)

    def _hopeless(self, flow: _Flow) -> bool:
        """Whether the gap before the late segments will not be filled: the peer acknowledged it, many packets ago."""
        if not flow.late or flow.held > _MOST_LATE:
            return bool(flow.late)
        seq, arrival, _ = flow.late[0]
        return flow.acked is not None and flow.acked >= seq and self.packets - arrival > _PATIENCE

    def _in_order(self) -> list[tuple[str, _Flow]]:
        """The client's direction, then the server's."""
        return sorted(self.flows.items(), key=lambda item: item[0] != self.client)

    def _deliver(self, name: str, flow: _Flow) -> None:
        assert self.conversation is not None
        direction = self._direction(name)
        time = flow.late[0][2].time if flow.late else None
        while flow.late and (flow.next is None or flow.late[0][0] <= flow.next):
            seq, _, segment = heapq.heappop(flow.late)
            flow.held -= len(segment.data) + _OVERHEAD
            flow.next = seq if flow.next is None else flow.next
            known = flow.next - seq
            if known < len(segment.data):
                self.conversation.feed(direction, segment.data[known:], segment.time, known == 0)
                flow.next = seq + len(segment.data)
            if seq + segment.size > flow.next:
                cut = seq + segment.size - flow.next
                flow.next += cut
                why = "bytes of a packet truncated by the capture's snap length"
                self.conversation.hole(direction, cut, segment.time, why)
        if direction == "request" and self.conversation.requests_late:
            self.conversation.requests_came(not flow.late, time)

    def _skip(self, name: str, flow: _Flow, end: int) -> None:
        assert self.conversation is not None and flow.next is not None
        if end > flow.next:
            time = flow.late[0][2].time if flow.late else None
            why = "bytes of segments that are not in the capture"
            self.conversation.hole(self._direction(name), end - flow.next, time, why)
            flow.next = end

    def close(self) -> None:
        """End the connection, or the capture: segments that waited for an earlier one are delivered after the gap."""
        if self.conversation is None:
            if not any(flow.late for flow in self.flows.values()):
                return
            self._settle()
        assert self.conversation is not None
        for name, flow in self._in_order():
            while flow.late:
                self._deliver(name, flow)
                if flow.late:
                    self._skip(name, flow, flow.late[0][0])
            if flow.next is not None:
                last = flow.end if flow.end is not None else flow.acked
                if flow.end is None and flow.reset is not None and 1 < flow.reset - flow.next < _MOST_WINDOW:
                    last = flow.reset  # one more may be a FIN, which counts as a byte
                if last is not None:
                    self._skip(name, flow, last)
        if self.foreign:
            self.conversation.pairing.lose("bytes of another connection between the same ports", size=self.foreign)
        self.conversation.close()

    def give_up(self, reason: str) -> None:
        """Stop reading the connection and free what is held."""
        if self.conversation is None:
            self._settle()
        assert self.conversation is not None
        self.conversation.give_up(reason)
        for flow in self.flows.values():
            flow.late.clear()
            flow.held = 0


class Reassembly:
    """The connections of one capture."""

    def __init__(self, capture: str) -> None:
        self.capture = capture
        self._tracked: OrderedDict[tuple[str, str], _Tracked] = OrderedDict()
        self._ended: OrderedDict[tuple[str, str], None] = OrderedDict()
        self._servers: set[str] = set()
        self._count = 0
        self._held = 0

    def take(self, segment: TcpSegment) -> Iterator[Exchange | Lost]:
        """Take the capture's next segment; yield the exchanges that it completes, and what is lost."""
        key = (min(segment.source, segment.target), max(segment.source, segment.target))
        tracked = self._tracked.get(key)
        if tracked is not None and tracked.reuses_ports(segment):
            yield from self._drop(key)
            tracked = None
        if tracked is None:
            if len(self._tracked) >= _MOST_CONNECTIONS:
                yield from self._drop(next(iter(self._tracked)))
            tracked = self._begin(key, segment)
        before = tracked.held
        tracked.take(segment)
        if segment.syn and tracked.client is not None and len(self._servers) < _MOST_CONNECTIONS:
            self._servers.add(segment.source if segment.ack is not None else segment.target)
        self._tracked.move_to_end(key)
        self._held += tracked.held - before
        if self._held > MOST_HELD:
            self._relieve()
        if tracked.conversation is not None:
            yield from tracked.conversation.take_events()
        if tracked.ended and key not in self._ended:
            self._ended[key] = None
            if len(self._ended) > _MOST_ENDED:
                yield from self._drop(next(iter(self._ended)))

    def close(self) -> Iterator[Exchange | Lost]:
        """End the capture; yield what was still waiting."""
        while self._tracked:
            yield from self._drop(next(iter(self._tracked)))

    def _begin(self, key: tuple[str, str], segment: TcpSegment) -> _Tracked:
        tracked = _Tracked(Connection(self.capture, self._count), segment.source, segment.target, self._servers)
        self._tracked[key] = tracked
        self._count += 1
        return tracked

    def _drop(self, key: tuple[str, str]) -> Iterator[Exchange | Lost]:
        tracked = self._tracked.pop(key)
        self._ended.pop(key, None)
        self._held -= tracked.held
        tracked.close()
        if tracked.conversation is not None:
            yield from tracked.conversation.take_events()

    def _relieve(self) -> None:
        """Drop the connections that hold the most memory, until a quarter is free again."""
        for tracked in sorted(self._tracked.values(), key=lambda tracked: -tracked.held):
            if self._held <= MOST_HELD * 3 // 4:
                break
            self._held -= tracked.held
            tracked.give_up(f"dropped: more than {MOST_HELD >> 20} MiB of all connections in memory")
            self._held += tracked.held
