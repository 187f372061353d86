"""``python -m gputensor`` is the `gputensor` command."""

import sys

from gputensor.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
