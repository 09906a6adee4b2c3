"""The KRaft controllers of a fleet: the metadata log, the active controller, and the rules that it follows."""
