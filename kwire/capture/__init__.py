"""Captured Kafka traffic: packets and frame files to exchanges, the upgrade audit, and the tap that records."""

from __future__ import annotations

from kwire.lazy import attach

TYPE_CHECKING = False  # typing's, without importing it
if TYPE_CHECKING:  # what type checkers and editors see; at run time __getattr__ imports at first use
    from kwire.capture.exchange import Connection as Connection
    from kwire.capture.exchange import Exchange as Exchange
    from kwire.capture.exchange import Frame as Frame
    from kwire.capture.exchange import Lost as Lost
    from kwire.capture.files import captures as captures
    from kwire.capture.files import read_capture as read_capture
    from kwire.capture.frame_files import FrameWriter as FrameWriter
    from kwire.capture.upgrade_audit import Audit as Audit
    from kwire.capture.upgrade_audit import audit as audit

# module -> the public names that it defines
_NAMES = {
    "kwire.capture.upgrade_audit": ("Audit", "audit"),
    "kwire.capture.exchange": ("Connection", "Exchange", "Frame", "Lost"),
    "kwire.capture.files": ("captures", "read_capture"),
    "kwire.capture.frame_files": ("FrameWriter",),
}

if not TYPE_CHECKING:
    __getattr__, __dir__, __all__ = attach(__name__, _NAMES)
