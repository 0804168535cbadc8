#!/bin/sh
# Makes the peers' environments beside this file: their pins clash with ours.
set -e
cd "$(dirname "$0")"
for name in trees networks; do
    python3 -m venv "environments/$name"
    "environments/$name/bin/pip" install -q -r "requirements-$name.txt"
done
