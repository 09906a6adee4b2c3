"""python -m kwire: the command line."""

import sys

from kwire.cli import process

if __name__ == "__main__":
    sys.exit(process())
