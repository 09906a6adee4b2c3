"""Captures of Kafka's traffic: packets and frame files to paired exchanges, the upgrade audit, the tap that records."""

from kwire.capture.audit import Audit, audit
from kwire.capture.exchange import Connection, Exchange, Frame, Lost
from kwire.capture.files import captures, read_capture
from kwire.capture.frame_files import FrameWriter

__all__ = ["Audit", "Connection", "Exchange", "Frame", "FrameWriter", "Lost", "audit", "captures", "read_capture"]
