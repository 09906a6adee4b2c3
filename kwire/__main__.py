"""python -m kwire: the command line."""

import sys

from kwire.cli import main

if __name__ == "__main__":
    sys.exit(main())
