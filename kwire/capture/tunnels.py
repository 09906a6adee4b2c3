"""The IP packets that tunnels carry: traffic mirrors of clouds and switches, overlay networks of containers.

IP in IP and 6in4 (RFC 2003, 4213), GRE (RFC 2784) with ERSPAN, VXLAN (RFC 7348) and Geneve (RFC 8926) on the ports that
are in use for them, PPPoE (RFC 2516).
"""

from __future__ import annotations

import struct
from typing import Any

_MOST = 4  # tunnels in tunnels
_IP_IN_IP, _IPV6_IN_IP, _GRE, _UDP = 4, 41, 47, 17
_IPV4, _IPV6, _ETHERNET, _ERSPAN_2, _ERSPAN_3 = 0x0800, 0x86DD, 0x6558, 0x88BE, 0x22EB
_VXLAN_PORTS, _GENEVE_PORT = (4789, 8472), 6081  # 8472: of Linux, before the port was assigned (flannel)


def carried(dpkt: Any, packet: Any) -> Any:
    """The innermost packet in that of a link layer: an IP packet, or what is none.

    A fragment of a tunnel's packet is given back as it is. Raises as dpkt for what is damaged.
    """
    if isinstance(packet, dpkt.pppoe.PPPoE):
        packet = getattr(packet.data, "data", None)
    for _ in range(_MOST):
        if not is_of_tunnel(dpkt, packet) or is_fragment(packet):
            break
        inner = _inner(dpkt, packet)
        if not isinstance(inner, (dpkt.ip.IP, dpkt.ip6.IP6)):
            break
        packet = inner
    return packet


def is_fragment(packet: Any) -> bool:
    """Is an IP packet of dpkt a fragment of one?"""
    if packet.v == 4:
        return bool(packet.mf or packet.offset)
    return any(getattr(header, "frag_off", 0) or getattr(header, "m_flag", 0)
               for header in packet.all_extension_headers)


def is_of_tunnel(dpkt: Any, packet: Any) -> bool:
    """Is it an IP packet of a tunnel? Of fragments of UDP only the first tells."""
    if not isinstance(packet, (dpkt.ip.IP, dpkt.ip6.IP6)):
        return False
    udp = packet.data
    return packet.p in (_IP_IN_IP, _IPV6_IN_IP, _GRE) or (
        packet.p == _UDP and isinstance(udp, dpkt.udp.UDP) and udp.dport in (*_VXLAN_PORTS, _GENEVE_PORT))


def _inner(dpkt: Any, packet: Any) -> Any:
    """What the packet of a tunnel carries, None if it is not known."""
    data = packet.data
    if packet.p in (_IP_IN_IP, _IPV6_IN_IP):  # dpkt may have read it
        kind = _IPV4 if packet.p == _IP_IN_IP else _IPV6
        return _of_kind(dpkt, kind, data) if isinstance(data, bytes) else data
    if packet.p == _UDP:
        return _of_udp(dpkt, data.dport, bytes(data.data))
    return _of_gre(dpkt, data.p, bool(data.flags & dpkt.gre.GRE_SP), data.data)


def _of_gre(dpkt: Any, kind: int, has_sequence: bool, data: Any) -> Any:
    if not isinstance(data, bytes):  # dpkt knows the protocol
        return data.data if isinstance(data, dpkt.ethernet.Ethernet) else data
    if kind == _ERSPAN_2:  # without a sequence number it is of type I, which has no header
        return _of_kind(dpkt, _ETHERNET, data[8 if has_sequence else 0:])
    if kind == _ERSPAN_3:
        return _of_kind(dpkt, _ETHERNET, data[20 if data[11] & 1 else 12:])
    return _of_kind(dpkt, kind, data)


def _of_udp(dpkt: Any, port: int, data: bytes) -> Any:
    if port in _VXLAN_PORTS and len(data) > 8 and data[0] & 0x08:
        return _of_kind(dpkt, _ETHERNET, data[8:])
    if port == _GENEVE_PORT and len(data) > 8 and data[0] >> 6 == 0:
        (kind,) = struct.unpack_from(">H", data, 2)
        return _of_kind(dpkt, kind, data[8 + 4 * (data[0] & 0x3F):])
    return None


def _of_kind(dpkt: Any, kind: int, data: bytes) -> Any:
    if kind == _IPV4:
        return dpkt.ip.IP(data)
    if kind == _IPV6:
        return dpkt.ip6.IP6(data)
    return dpkt.ethernet.Ethernet(data).data if kind == _ETHERNET else None
