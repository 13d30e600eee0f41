#!/bin/sh
# Nothing to install: proves that the cell's Python can load the compiled packages.
set -e
PYTHONPATH=/packages/site exec python3 -c 'import sys, pydantic_core, tokenizers
assert sys.version_info[:2] == (3, 11), f"the packages are for Python 3.11, the cell has {sys.version}"'
