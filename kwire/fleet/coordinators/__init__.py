"""The coordinators of a fleet: groups of both protocols, transactions."""
