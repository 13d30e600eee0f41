#!/bin/sh
# Nothing to install: proves that the harness starts in a cell.
set -e
/packages/node_modules/opencode-linux-x64/bin/opencode --version
