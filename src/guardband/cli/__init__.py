"""The command line: one file for each command. Heavy packages load inside them: ``--help`` answers at once."""

import gc
import sys


def main() -> None:
    """Run the command line, and end the process with its exit code."""
    try:
        from guardband.cli.process import main as run
    except KeyboardInterrupt:  # Ctrl-C is heard from the first import on
        sys.exit(130)
    run()


def program() -> None:
    """Be the process ``guardband``, and nothing else: signals are heard from here to its end."""
    from guardband.cli.stops import hear_signals

    hear_signals()
    try:
        main()
    finally:
        gc.freeze()  # Python looks through all objects when it ends, for half a second: there is nothing to find
        gc.disable()
