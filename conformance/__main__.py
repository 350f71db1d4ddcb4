"""``python -m conformance``, or from any folder ``python /path/to/checkout/conformance``."""

import sys
from pathlib import Path

if not __package__:
    # Started by its path: then this folder's parent is where the package is found.
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from conformance.main import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
