"""Ctrl-C, SIGTERM and SIGHUP end a command with 130 and one line, and leave nothing half-written."""

import functools
import os
import signal
import subprocess
import sys

import pytest

LINE = "guardband: stopped. No half-written file is left behind.\n"
BEGIN = """
import os, signal, sys
from pathlib import Path
import guardband.cli.process as process
from guardband.data import files
from guardband.data.files import write_whole
which = signal.Signals(int(sys.argv[1]))
sys.argv = ["guardband", "plan", "--json"]
def send(): os.kill(os.getpid(), which)
def during(work):
    import guardband.cli.plan as plan
    plan.needed = lambda *_: work() or []
def slow(part):
    part.write_text("half")
    send()
    for _ in range(10**9): pass
def stopped():
    send()
    for _ in range(10**9): pass
"""
CASES = {
    "while a file is written": "during(lambda: write_whole(Path('out'), slow))",
    "while a folder is tried": "during(lambda: files.need_room(Path('out'))); files._lock = lambda handle: send()",
    "twice": """
unlink = Path.unlink
def again(path, **more):
    send()
    unlink(path, **more)
Path.unlink = again
during(lambda: write_whole(Path('out'), slow))""",
    "while packages load": """
class Finder:
    def find_spec(self, name, *_):
        if name == "guardband.cli.app": send()
sys.meta_path.insert(0, Finder())""",
    "where Python drops what is raised": """
class Dropped:
    def __del__(self): send(); sum(range(1000))
during(lambda: write_whole(Path('out'), lambda part: [Dropped(), None].pop(0) and None or slow_end(part)))
def slow_end(part):
    for _ in range(10**9): pass""",
    "where a library makes another error of it": """
def drawn():
    try: slow(Path('part'))
    except KeyboardInterrupt: raise SystemError("not a Python object") from None
    finally: os.remove('part')
during(drawn)""",
    "where a library makes another error of it, and a second one comes": """
def drawn():
    try: slow(Path('part'))
    except KeyboardInterrupt: os.remove('part'); send(); raise ValueError("Invalid RGBA argument")
during(drawn)""",
    "where guardband refuses what became of it": """
def refused():
    try: stopped()
    except KeyboardInterrupt: exec("raise ValueError('Give another.')", {"__name__": "guardband.somewhere"})
during(refused)""",
    "where it ends as if all was done": """
def left():
    try: stopped()
    except KeyboardInterrupt: raise SystemExit(0)
during(left)""",
    "where it ends as a broken promise": """
from guardband.cli.exit_codes import BROKEN
def left():
    try: stopped()
    except KeyboardInterrupt: raise SystemExit(BROKEN)
during(left)""",
    "where a thread fails because of it": """
import threading
def drawn():
    try: stopped()
    finally:
        thread = threading.Thread(target=lambda: {}["closed"])
        thread.start()
        thread.join()
during(drawn)""",
    "while the end is told": """
complain = process.complain
def late(words):
    complain(words)
    if words != process.STOPPED_WORDS: send()
process.complain = late
during(lambda: 1 / 0)""",
}


def run(code, which, folder, hanging_up=signal.SIG_DFL, **environment):
    """Run a program that sends itself a signal; ``hanging_up`` is what it inherits for SIGHUP, also under nohup."""
    program = [sys.executable, "-c", f"{BEGIN}\n{code}\nprocess.main()", str(int(which))]
    inherit = functools.partial(signal.signal, signal.SIGHUP, hanging_up)
    around = {"cwd": folder, "env": os.environ | environment, "preexec_fn": inherit}
    return subprocess.run(program, capture_output=True, text=True, **around)


@pytest.mark.parametrize(
    ("name", "which"),
    [(name, signal.SIGTERM) for name in CASES]
    + [("while a file is written", signal.SIGINT), ("while a file is written", signal.SIGHUP)]
    + [("twice", signal.SIGINT)],
)
def test_a_signal_ends_a_command_in_one_line(tmp_path, name, which):
    (tmp_path / "old").write_text("old")
    done = run(CASES[name], which, tmp_path)
    assert done.returncode == 130, done
    assert done.stdout == ""
    assert done.stderr.endswith(LINE)
    if name != "while the end is told":
        assert done.stderr == LINE
    assert [path.name for path in tmp_path.iterdir()] == ["old"]


SWALLOWED = """
def drawn():
    try: stopped()
    except BaseException: pass
during(drawn)"""
LATER = """
def drawn():
    try: stopped()
    except KeyboardInterrupt: pass
    {}["missing"]
during(drawn)"""


@pytest.mark.parametrize("which", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_command_that_went_on_because_a_library_dropped_the_signal_is_stopped_all_the_same(tmp_path, which):
    done = run(SWALLOWED, which, tmp_path)
    assert (done.returncode, done.stderr) == (130, LINE)
    assert done.stdout.startswith("{")


@pytest.mark.parametrize("debug", ["", "1"])
def test_a_fault_after_a_signal_is_shown_to_who_looks_for_faults(tmp_path, debug):
    done = run(LATER, signal.SIGTERM, tmp_path, GUARDBAND_DEBUG=debug)
    assert done.returncode == 130
    if debug:
        assert "Traceback (most recent call last)" in done.stderr
        assert "\nguardband: This is guardband's own fault: KeyError: 'missing' (" in done.stderr
        assert done.stderr.endswith(f"\n{LINE}")
    else:
        assert done.stderr == LINE


def test_a_refusal_after_a_signal_is_shown_to_who_looks_for_faults(tmp_path):
    done = run(CASES["where guardband refuses what became of it"], signal.SIGTERM, tmp_path, GUARDBAND_DEBUG="1")
    assert (done.returncode, done.stderr) == (130, f"guardband: Give another.\n{LINE}")


@pytest.mark.parametrize("which", [signal.SIGINT, signal.SIGTERM])
def test_python_does_not_kill_itself_for_what_was_caught(tmp_path, which):
    """It would if the signal was heard while a string is executed, which dataclasses do, and a module is run by -m."""
    string = "send()\\nfor _ in range(10**9): pass"
    (tmp_path / "module.py").write_text(f'{BEGIN}during(lambda: exec("{string}"))\nprocess.main()')
    program = [sys.executable, "-m", "module", str(int(which))]
    done = subprocess.run(program, capture_output=True, text=True, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", LINE)


PROGRAM = """
import os, signal, sys
from guardband.cli import program
which = signal.Signals(int(sys.argv[1]))
sys.argv = ["guardband", "plan", "--json"]
def send(): os.kill(os.getpid(), which)
"""


@pytest.mark.parametrize("which", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_program_is_stopped_by_a_signal_before_it_has_begun(tmp_path, which):
    code = """
signal.signal(signal.SIGHUP, signal.SIG_DFL)
class Finder:
    def find_spec(self, name, *_):
        if name == "guardband.cli.process":
            try: send()
            except KeyboardInterrupt: raise SyntaxError  # as Python does where a name of a character is looked up
sys.meta_path.insert(0, Finder())
program()"""
    program = [sys.executable, "-c", PROGRAM + code, str(int(which))]
    done = subprocess.run(program, capture_output=True, text=True, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", LINE)


@pytest.mark.parametrize("which", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_program_that_is_done_is_not_stopped_any_more(tmp_path, which):
    code = "leave = sys.exit\nsys.exit = lambda code: (send(), leave(code))\nprogram()"
    program = [sys.executable, "-c", PROGRAM + code, str(int(which))]
    done = subprocess.run(program, capture_output=True, text=True, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("{")


def test_who_asked_to_go_on_after_hanging_up_goes_on(tmp_path):
    """``nohup`` ignores the signal before it starts a command."""
    done = run("during(send)", signal.SIGHUP, tmp_path, hanging_up=signal.SIG_IGN)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("{")


def test_a_child_that_was_forked_ends_as_any_process_does(tmp_path):
    code = """
def work():
    child = os.fork()
    if not child:
        send()
        sum(range(10**9))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -which
during(work)"""
    done = run(code, signal.SIGTERM, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


def test_signals_after_the_command_change_nothing(tmp_path):
    done = run("import atexit\natexit.register(send)\nduring(lambda: None)", signal.SIGTERM, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


def test_handlers_are_put_back(command):
    before = [signal.getsignal(which) for which in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]
    streams = sys.stdin, sys.stdout, sys.stderr, sys.unraisablehook
    assert command("--version").code == 0
    assert before == [signal.getsignal(which) for which in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]
    assert streams == (sys.stdin, sys.stdout, sys.stderr, sys.unraisablehook)
