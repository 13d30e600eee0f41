"""A coding-agent harness. The tree may be read-only, so no byte code is written."""

import sys

sys.dont_write_bytecode = True
