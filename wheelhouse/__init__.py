"""The recipe for the wheels: `make wheels` builds, inspects and tests them, and writes them into this folder."""
