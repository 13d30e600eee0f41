#!/bin/sh
# Nothing to install: proves that the harness starts in a cell.
set -e
/packages/node_modules/@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex --version
