"""Mutation tests: change a source file in one place, and see whether a test fails.

``python benchmarks/mutants/run.py bands/ranks.py`` repeats it for a file of ``src/guardband``; without a name it does
so for all files in ``FILES``. A change that no test notices is a survivor. ``equivalent.csv`` lists those that alter no
bound and no stated number, with the reason; every other one is printed, and the program then ends with status 1.

One process collects the tests once and loads torch once. For every change it forks, puts the changed code in place of
the function's own, and runs the tests that execute this function: those of the file's own tests first, quick ones
before slow ones, until one fails. Which tests execute a function is measured before and kept in ``build/mutants``. So
are the changes that a test found: ``--again`` leaves them out. A change is named by its statement, and tried again when
that is another.
"""

from __future__ import annotations

import argparse
import ast
import csv
import functools
import gc
import hashlib
import importlib
import inspect
import json
import os
import resource
import signal
import sys
import time
from collections import Counter, defaultdict
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

os.environ["CI"] = "1"  # hypothesis then tries the same cases in every run
os.environ["OMP_NUM_THREADS"] = "1"

import pytest
from changes import Change, changes

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "guardband"
EQUIVALENT = Path(__file__).with_name("equivalent.csv")
RESULTS = ROOT / "benchmarks" / "results" / "mutants"
KEPT = ROOT / "build" / "mutants"
FILES = [
    "bands/ranks",
    "bands/law",
    "bands/levels",
    "bands/simultaneous",
    "bands/risk_bounds",
    "bands/cross_bounds",
    "calibration/score",
    "calibration/cut",
    "calibration/group_ranks",
    "calibration/grouped_cut",
    "calibration/weighted_cut",
    "calibration/rejection_cut",
    "calibration/selection",
    "calibration/sorted_lists",
    "calibration/pav",
    "calibration/conformal",
    "bands/rank_promise",
    "bands/pav_promise",
    "bands/weighted_promise",
    "bands/parted_promise",
    "bands/kept_promise",
    "bands/risk_promise",
    "bands/cross_promise",
    "bands/distribution_promise",
    "bands/promise",
    "calibration/cross",
    "calibration/joint",
    "calibration/each",
    "calibration/places",
    "calibration/risk_control",
    "calibration/overlapping_groups",
    "calibration/pattern_paths",
    "calibration/pattern_exact",
    "calibration/sided",
    "bands/placement",
    "doors/stored_values",
    "doors/stored_groups",
    "doors/stored_arguments",
    "doors/stored_columns",
    "doors/stored_rows",
    "doors/stored_certificate",
    "bands/each_promise",
    "bands/long_run_promise",
    "bands/recent_promise",
    "calibration/online/aci",
    "calibration/online/scale_free",
    "calibration/online/tracking",
    "calibration/online/recent",
    "calibration/online/past_scores",
    "calibration/online/rule",
    "calibration/online/stream",
    "calibration/weighted_search",
    "calibration/counted",
    "calibration/counted_at",
    "calibration/group_widths",
    "calibration/group_patterns",
    "calibration/recalibration",
    "calibration/target_calibrated",
    "calibration/unadjusted",
    "bands/sides",
    "bands/risk",
    "bands/distribution",
    "bands/numbered_groups",
    "bands/time_split",
    "bands/units",
    "bands/stated",
    "bands/certificate",
    "calibration/calibrated",
    "calibration/several",
    "calibration/summary",
    "calibration/rule",
    "doors/stored",
    "doors/calibration_file",
    "doors/file_format",
    "doors/file_arguments",
    "doors/network_file",
    "doors/table_model_file",
    "doors/model_file",
]
NEAR = [
    "tests/bands",
    "tests/calibration",
    "src/guardband/bands",
    "src/guardband/calibration",
    "tests/test_planning.py",
]
STORAGE = [
    "tests/doors/test_stored.py",
    "tests/doors/test_calibration_file.py",
    "tests/doors/test_file_format.py",
    "tests/doors/test_band_file.py",
    "tests/doors/test_network_file.py",
    "tests/doors/test_model_file.py",
    "tests/doors/test_model_file_entries.py",
    "tests/doors/test_model_file_refusals.py",
]
"""The tests of files of doors, which those of bands and calibration do not use."""
FAR = [
    "tests/audit",
    "tests/report/test_promised.py",
    "tests/report/test_document.py",
    "tests/report/test_cases.py",
    "tests/test_stored_results.py",
    "tests/cli/test_groups.py",
    "tests/cli/test_sides.py",
    "tests/cli/test_weights.py",
    "tests/cli/test_entities.py",
    "tests/cli/test_several_targets.py",
    "tests/doors/test_groups.py",
    "tests/doors/test_sides.py",
    "tests/doors/test_weights.py",
    "tests/doors/test_entities.py",
    "tests/doors/test_bands.py",
    "tests/doors/test_risk.py",
    "tests/doors/test_choose.py",
    "tests/doors/test_several_bands.py",
    "tests/doors/test_several_targets.py",
    "tests/doors/test_guarded_model.py",
    "tests/doors/test_distribution_calibrator.py",
    "tests/doors/test_crossed.py",
    "tests/doors/test_model_file.py",
    "tests/doors/test_model_file_entries.py",
    "tests/doors/test_model_file_refusals.py",
    "tests/doors/test_band_file.py",
    "tests/doors/test_hostile_model_file.py",
    "tests/doors/test_network_file.py",
    "tests/doors/test_network.py",
]
"""The tests that may find a change: those of bands and calibration, and, where these do not, others that use them."""
EXECUTED_WHOLE = [name for name in FILES if name.startswith("doors/stored")]
"""Files of types that are made of each other: a change of one is executed with all that follow, also in later files."""
SLOWEST = 1.5
"""Tests that take more seconds than this are left out."""
MOST_SECONDS = 3.0
"""Near tests of one change take no longer than this together, unless those of the file itself do; far ones likewise.

All tests that ``--tests`` names are tried.
"""


def main() -> int:
    """Read the arguments, run, print what survived."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", help="files of src/guardband, such as bands/ranks.py; all in FILES if none")
    parser.add_argument("--far", action="store_true", help="try further tests on what those of these folders let pass")
    parser.add_argument("--only", default="", help="only changes whose name contains this")
    parser.add_argument("--again", action="store_true", help="leave out what a test found in an earlier run")
    parser.add_argument("--tests", nargs="+", default=[], help="files of tests in place of all that are near")
    parser.add_argument("--every", type=int, default=1, help="try only every so many-th change, which is not recorded")
    parser.add_argument("--known", action="store_true", help="leave out changes that equivalent.csv lists")
    parser.add_argument("-v", "--verbose", action="store_true", help="print every change with the test that failed")
    options = parser.parse_args()
    names = [name.removesuffix(".py") for name in options.files] or FILES
    trials = Trials(names, options)
    near = STORAGE if all(name.startswith("doors/") for name in names) else NEAR
    tests = [t for t in options.tests or near + (FAR if options.far else []) if (ROOT / t).exists()]
    os.chdir(ROOT)
    sys.path.insert(0, str(ROOT / "src"))
    sys.dont_write_bytecode = True
    quiet = [
        "-q",
        "-s",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
        "--basetemp",
        str(KEPT / f"temporary-{os.getpid()}"),
    ]
    status = pytest.main([*quiet, *tests], plugins=[trials])
    return trials.unexplained if status == 0 else int(status)


class Trials:
    """A plugin of pytest that runs the collected tests once for every change instead of once."""

    def __init__(self, names: list[str], options: argparse.Namespace) -> None:
        self.names, self.options, self.unexplained = names, options, 0
        self.failed = ""

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Measure what tests execute, then try every change of every file."""
        self.items = {item.nodeid: item for item in session.items}
        self.measured = self.measure()
        for name in self.names:
            importlib.import_module("guardband." + name.replace("/", "."))
        gc.unfreeze()  # or objects that were frozen on the way are not found
        _functions(), _caches()
        gc.freeze()
        for name in self.names:
            self.try_file(name)
        return True

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """End the process of a change at its first failure."""
        if report.failed and hasattr(self, "tell"):
            os.write(self.tell, report.nodeid.encode())
            os._exit(1)

    # what tests execute

    def measure(self) -> dict[str, dict[str, Any]]:
        """Return seconds and executed functions of each test, from the last time where its file has not changed."""
        KEPT.mkdir(parents=True, exist_ok=True)
        kept = KEPT / "measured.json"
        before = json.loads(kept.read_text()) if kept.exists() else {}
        prints = {
            p: hashlib.sha256(Path(p).read_bytes()).hexdigest() for p in {str(i.path) for i in self.items.values()}
        }
        prints = {n: prints[str(i.path)] for n, i in self.items.items()}
        known = {n: own for n, own in before.items() if prints.get(n, own["print"]) == own["print"]}
        fresh = [item for n, item in self.items.items() if n not in known]
        if fresh:
            for nodeid, own in in_a_fork(lambda: measured(fresh)).items():
                known[nodeid] = own | {"print": prints[nodeid]}
            kept.write_text(json.dumps(known))
        return {n: known[n] for n in self.items if n in known}

    def tests_for(self, name: str, function: str) -> list[str]:
        """Return the tests that execute a function, in the order in which they are tried."""
        together = EXECUTED_WHOLE if name in EXECUTED_WHOLE else [name]
        whole = tuple(f"{own}.py:" for own in together)
        near = [
            n
            for n, own in self.measured.items()
            if own["seconds"] <= SLOWEST and any(f.startswith(whole) for f in own["functions"])
        ]
        own_function = [
            n for n in near if any(is_in(function, f) for f in self.measured[n]["functions"] if f.startswith(whole))
        ]
        if function and own_function:
            near = own_function
        folder, _, stem = together[-1].rpartition("/")
        mirror = f"{folder}/test_{stem}.py"
        near.sort(key=lambda n: (mirror not in n and f"{name}.py" not in n, self.measured[n]["seconds"]))
        taken = []
        for part in (False, True):
            total = 0.0
            for n in near:
                if n.startswith(tuple(FAR)) == part:
                    total += self.measured[n]["seconds"]
                    if total <= MOST_SECONDS or mirror in n or self.options.tests:
                        taken.append(n)
        return taken

    # changes

    def try_file(self, name: str) -> None:
        """Try every change of one file, and write the table."""
        path = PACKAGE / f"{name}.py"
        equivalent = explained().get(f"{name}.py", {})
        tree = ast.parse(path.read_text())
        module = sys.modules["guardband." + name.replace("/", ".")]
        every = [(said, c) for said, c in changes(tree) if self.options.only in said]
        if self.options.known:
            every = [(said, c) for said, c in every if said not in equivalent]
        every, killed, alike = self.left(name, every[:: self.options.every], equivalent)
        done, started, survivors, unapplied = len(killed) + len(alike), time.time(), alike, 0
        killers: dict[str, str] = {}
        ends = Counter[str]()
        outcome, by = self.try_change(None, tree, path, module, self.tests_for(name, ""))
        if outcome != "survived":
            raise RuntimeError(f"Without any change {by} fails.")
        for said, change in every:
            tests = self.tests_for(name, change.function)
            if change.function in killers and killers[change.function] in tests:
                tests.remove(killers[change.function])
                tests.insert(0, killers[change.function])
            outcome, by = self.try_change(change, tree, path, module, tests)
            if self.options.verbose:
                print(f"{outcome:9} {change.line:4} {said}   {by}")
            if outcome == "killed":
                killed.append(said)
                if by in self.items:
                    killers[change.function] = by
                ends[by if by.startswith("SIG") else "a test" if by else "no test"] += 1
            elif outcome == "unapplied":
                unapplied += 1
            else:
                survivors.append((change.line, said, len(tests)))
        new = [(line, said, n) for line, said, n in survivors if said not in equivalent]
        stale = set(equivalent) - {said for _, said, _ in survivors}
        print(
            f"{name}.py: {done + len(every) - unapplied} changes, {len(killed)} killed, {len(survivors)} survived, "
            f"{len(survivors) - len(new)} equivalent, {unapplied} could not be tried, {time.time() - started:.0f} s",
            flush=True,
        )
        print("  found now by " + ", ".join(f"{what}: {number}" for what, number in sorted(ends.items())), flush=True)
        for line, said, n in new:
            print(f"  survivor  {line:4} {said}   [{n} tests]", flush=True)
        if not self.options.only and not self.options.known and self.options.every == 1:
            for said in sorted(stale):
                print(f"  listed as equivalent, yet it does not survive: {said}")
            counts = done + len(every) - unapplied, len(killed), len(survivors), len(survivors) - len(new)
            record(f"{name}.py", *counts)
            self.keep(name, killed)
        self.unexplained |= bool(new)

    def left(
        self, name: str, every: list[tuple[str, Change]], equivalent: dict[str, str]
    ) -> tuple[list[tuple[str, Change]], list[str], list[tuple[int, str, int]]]:
        """Return the changes to try, the names of those that were killed before, and those that are equivalent.

        Tests that are only added kill what was killed; and what is listed as equivalent survived when it was listed.
        """
        if not self.options.again:
            return every, [], []
        killed = set(killed_before().get(name, []))
        alike = [(c.line, said, 0) for said, c in every if said in equivalent and said not in killed]
        rest = [(said, c) for said, c in every if said not in killed and said not in equivalent]
        return rest, [said for said, _ in every if said in killed], alike

    def keep(self, name: str, killed: list[str]) -> None:
        """Write down what was killed."""
        (KEPT / "killed.json").write_text(json.dumps(killed_before() | {name: killed}))

    def try_change(
        self, change: Change | None, tree: ast.Module, path: Path, module: ModuleType, tests: list[str]
    ) -> tuple[str, str]:
        """Return what became of a change, and the test that found it."""
        seconds = sum(self.measured[n]["seconds"] for n in tests)
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(read)
            self.tell = write
            silent()
            used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (used + 4 * 2**30,) * 2)
            signal.alarm(int(300 + 100 * seconds))  # for a change that waits: a busy machine must not come so far
            try:
                if change is not None:
                    change.swap()
                    try:
                        if not put_in_place(change, tree, path, module):
                            os._exit(3)
                    except Exception:  # the file could not be imported
                        os._exit(1)
                items = [self.items[n] for n in tests]
                for item, following in zip(items, [*items[1:], None], strict=True):
                    # a change that runs on and on is found by this limit
                    signal.setitimer(signal.ITIMER_VIRTUAL, 1.5 + 4 * self.measured[item.nodeid]["seconds"])
                    item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            except BaseException as error:
                if "MemoryError" in f"{type(error).__name__}: {error}":  # it wants more than any test needs
                    os._exit(1)
                os.write(write, f"{type(error).__name__}: {error}".encode())
                os._exit(4)
            os._exit(0)
        os.close(write)
        with os.fdopen(read) as told:
            by = told.read()
        _, status = os.waitpid(child, 0)
        if status == 0:
            return "survived", ""
        if os.WIFEXITED(status) and os.WEXITSTATUS(status) == 4:
            raise RuntimeError(by)
        if os.WIFSIGNALED(status):
            ended = os.WTERMSIG(status)  # the clock says nothing on a busy machine: what it ended was not found
            return ("survived" if ended == signal.SIGALRM else "killed"), by or signal.Signals(ended).name
        return ("unapplied", "") if os.WIFEXITED(status) and os.WEXITSTATUS(status) == 3 else ("killed", by)


def put_in_place(change: Change, tree: ast.Module, path: Path, module: ModuleType) -> bool:
    """Let the loaded package run the changed code; return whether that was possible."""
    names = change.function.split(".") if change.function else []
    if change.default:
        return _new_default(change, names, module)
    code = compile(tree, str(path), "exec", dont_inherit=True)
    found = None
    for name in names:
        inner = next((c for c in code.co_consts if isinstance(c, CodeType) and c.co_name == name), None)
        if inner is None:
            return False
        code = inner
        if code.co_flags & inspect.CO_NEWLOCALS and code.co_flags & inspect.CO_OPTIMIZED:
            found = code
            break
    file = path.relative_to(PACKAGE).with_suffix("").as_posix()
    if found is None and file in EXECUTED_WHOLE:
        exec(compile(tree, str(path), "exec", dont_inherit=True), vars(module))
        for name in EXECUTED_WHOLE[EXECUTED_WHOLE.index(file) + 1 :]:
            following = PACKAGE / f"{name}.py"
            code = compile(following.read_text(), str(following), "exec", dont_inherit=True)
            exec(code, vars(importlib.import_module("guardband." + name.replace("/", "."))))
        return True
    if found is None:
        return _new_value(change, names, module)
    live = [
        f
        for f in _functions()
        if f.__code__.co_filename == str(path)
        and (f.__code__.co_qualname, f.__code__.co_firstlineno) == (found.co_qualname, found.co_firstlineno)
    ]
    for f in live:
        if f.__code__.co_freevars != found.co_freevars:
            return False
        f.__code__ = found
    for cache in _caches():
        cache.cache_clear()
    return bool(live)


@functools.lru_cache
def _functions() -> list[FunctionType]:
    """Return the functions of the package and of its tests; by type, since lazy objects answer for others."""
    return [f for f in gc.get_objects() if type(f) is FunctionType and f.__code__.co_filename.startswith(str(ROOT))]


@functools.lru_cache
def _caches() -> list[Any]:
    every = [c for c in gc.get_objects() if type(c) is functools._lru_cache_wrapper]
    return [c for c in every if str(c.__module__).startswith("guardband")]


def _new_default(change: Change, names: list[str], module: ModuleType) -> bool:
    """Give a function the changed default."""
    arguments = change.head
    assert isinstance(arguments, ast.arguments)
    live = [f for f in _functions() if f.__module__ == module.__name__ and f.__qualname__ == ".".join(names)]
    space = vars(module)
    for f in live:
        f.__defaults__ = tuple(_value(node, space) for node in arguments.defaults) or None
        kept = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        f.__kwdefaults__ = {a.arg: _value(node, space) for a, node in kept if node is not None} or None
    return bool(live)


def _new_value(change: Change, names: list[str], module: ModuleType) -> bool:
    """Give a name of a module or class the changed value, wherever it was imported or became a default."""
    statement = change.head
    if not isinstance(statement, ast.Assign | ast.AnnAssign) or statement.value is None:
        return False
    target = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
    if not isinstance(target, ast.Name):
        return False
    holder: Any = module
    for name in names:
        holder = getattr(holder, name)
    new = _value(statement.value, vars(module) | (dict(vars(holder)) if names else {}))
    name = target.id
    if isinstance(statement.value, ast.Call) and getattr(statement.value.func, "id", "") == "field":
        return False
    if not names:
        old = getattr(module, name)
        for other in list(sys.modules.values()):
            if getattr(other, "__dict__", {}).get(name) is old:
                setattr(other, name, new)
        for f in _functions():
            if isinstance(old, float) and f.__defaults__:
                f.__defaults__ = tuple(new if d is old else d for d in f.__defaults__)
        return True
    kinds = [holder]
    for kind in kinds:
        kinds.extend(kind.__subclasses__())
    setattr(holder, name, new)
    for kind in kinds:
        build = vars(kind).get("__init__")
        if isinstance(build, FunctionType):
            signature = inspect.signature(build).parameters
            if name in signature and (kind is holder or name not in vars(kind).get("__annotations__", {})):
                named = [
                    p.name for p in signature.values() if p.default is not p.empty and p.kind is not p.KEYWORD_ONLY
                ]
                build.__defaults__ = tuple(
                    new if n == name else d for n, d in zip(named, build.__defaults__ or (), strict=True)
                )
                if build.__kwdefaults__ and name in build.__kwdefaults__:
                    build.__kwdefaults__[name] = new
    return True


def _value(node: ast.expr, space: dict[str, Any]) -> Any:
    return eval(compile(ast.Expression(node), "changed", "eval", dont_inherit=True), space)


def is_in(function: str, executed: str) -> bool:
    """Return whether a name such as ``bands/law.py:Law.least`` is of this function or of one inside it."""
    own = executed.partition(":")[2].replace(".<locals>", "")
    return own == function or own.startswith(function + ".")


def measured(items: list[pytest.Item]) -> dict[str, dict[str, Any]]:
    """Run tests; return how long each took and which functions of the package it executed."""
    seen: set[CodeType] = set()
    of_fixture: dict[Any, set[CodeType]] = {}
    seconds: dict[Any, float] = {}
    results = {}

    def calls(frame: Any, event: str, _: Any) -> None:
        seen.add(frame.f_code)

    class Fixtures:
        @pytest.hookimpl(wrapper=True)
        def pytest_fixture_setup(self, fixturedef: Any) -> Any:
            nonlocal seen
            outer, seen = seen, set()
            begun = time.process_time()
            try:
                return (yield)
            finally:
                seconds[fixturedef] = time.process_time() - begun
                made.append(fixturedef)
                of_fixture[fixturedef] = seen
                seen = outer | seen

        def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
            nonlocal bad
            bad |= report.failed or report.skipped

    items[0].config.pluginmanager.register(Fixtures())
    for item, following in zip(items, [*items[1:], None], strict=True):
        for cache in _caches():
            cache.cache_clear()
        seen, bad, made = set(), False, list[Any]()
        started = time.process_time()
        sys.settrace(calls)
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        sys.settrace(None)
        # what a fixture does counts for each test that uses it, since any may be the first in its process
        own = time.process_time() - started - sum(seconds[definition] for definition in made)
        for definitions in getattr(getattr(item, "_fixtureinfo", None), "name2fixturedefs", {}).values():
            for definition in definitions:
                seen |= of_fixture.get(definition, set())
                own += seconds.get(definition, 0.0)
        if bad:
            continue  # skipped, or does not bear being watched
        files = defaultdict(set)
        for code in seen:
            if code.co_filename.startswith(str(PACKAGE)):
                files[code.co_filename[len(str(PACKAGE)) + 1 :]].add(code.co_qualname)
        functions = sorted(f"{file}:{name}" for file, names in files.items() for name in names)
        results[item.nodeid] = {"seconds": round(own, 4), "functions": functions}
    return results


def in_a_fork(work: Any) -> Any:
    """Return what a function returns in a process of its own, which leaves this one as it was."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        silent()
        with os.fdopen(write, "w") as told:
            json.dump(work(), told)
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as told:
        said = told.read()
    os.waitpid(child, 0)
    return json.loads(said)


def silent() -> None:
    """Send what this process prints nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)


def killed_before() -> dict[str, list[str]]:
    """Return the changes of each file that a test found in an earlier run."""
    kept = KEPT / "killed.json"
    return json.loads(kept.read_text()) if kept.exists() else {}


def explained() -> dict[str, dict[str, str]]:
    """Return the survivors that change no bound and no stated number, by file, with the reason."""
    found: dict[str, dict[str, str]] = defaultdict(dict)
    if EQUIVALENT.exists():
        with EQUIVALENT.open(newline="", encoding="utf-8") as lines:
            for row in csv.DictReader(lines):
                found[row["file"]][row["change"]] = row["reason"]
    return found


def record(file: str, mutants: int, killed: int, survived: int, equivalent: int) -> None:
    """Write a file's line of the table."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    table, head = RESULTS / "mutants.csv", ["file", "mutants", "killed", "survived", "equivalent", "unexplained"]
    rows = {}
    if table.exists():
        with table.open(newline="", encoding="utf-8") as lines:
            rows = {row["file"]: row for row in csv.DictReader(lines)}
    counts = [file, mutants, killed, survived, equivalent, survived - equivalent]
    rows[file] = dict(zip(head, map(str, counts), strict=True))
    with table.open("w", newline="", encoding="utf-8") as out:
        writer = csv.DictWriter(out, head, lineterminator="\n")
        writer.writeheader()
        order = [f"{name}.py" for name in FILES]
        writer.writerows(sorted(rows.values(), key=lambda r: order.index(r["file"]) if r["file"] in order else 99))


if __name__ == "__main__":
    sys.exit(main())
