"""The command line: one file for each command. Heavy packages load inside them, so that ``--help`` answers at once."""

from guardband.cli.app import app as app
from guardband.cli.app import main as main
