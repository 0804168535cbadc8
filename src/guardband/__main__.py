"""``python -m guardband``: the command line."""

from guardband.cli import program

program()
