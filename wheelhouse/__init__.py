"""The recipe for the wheels: `make wheels` builds, inspects and tests them, and they land in this folder."""
