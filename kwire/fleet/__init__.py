"""Embedded brokers of any release, with faults, for tests of clients: Fleet."""

from __future__ import annotations

from kwire.lazy import attach

TYPE_CHECKING = False  # typing's, without importing it
if TYPE_CHECKING:  # what type checkers and editors see; at run time __getattr__ imports at first use
    from kwire.fleet.clock import Clock as Clock
    from kwire.fleet.clock import ManualClock as ManualClock
    from kwire.fleet.errors import ApiError as ApiError
    from kwire.fleet.faults import Fault as Fault
    from kwire.fleet.fleet import Fleet as Fleet
    from kwire.fleet.node import Node as Node
    from kwire.fleet.proxy import Proxy as Proxy
    from kwire.fleet.simulation import Simulation as Simulation
    from kwire.fleet.simulation import SimulationError as SimulationError
    from kwire.fleet.simulation import simulate as simulate
    from kwire.fleet.simulation import simulate_all as simulate_all

# module -> the public names that it defines
_NAMES = {
    "kwire.fleet.clock": ("Clock", "ManualClock"),
    "kwire.fleet.errors": ("ApiError",),
    "kwire.fleet.faults": ("Fault",),
    "kwire.fleet.fleet": ("Fleet",),
    "kwire.fleet.node": ("Node",),
    "kwire.fleet.proxy": ("Proxy",),
    "kwire.fleet.simulation": ("Simulation", "SimulationError", "simulate", "simulate_all"),
}

__getattr__, __dir__, __all__ = attach(__name__, _NAMES)
