"""The command line: one file for each command. Heavy packages load inside them, so that ``--help`` answers at once."""

from guardband.cli.process import main as main
