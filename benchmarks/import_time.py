"""What starting costs: guardband, its command line's help and a short prediction, beside the packages below them.

python benchmarks/import_time.py [turns]
"""

import os
import resource
import subprocess
import sys
import tempfile

import numpy as np

ALL_NAMES = "import guardband as gb; [getattr(gb, name) for name in gb.__all__]"
PROGRAMS = {
    "import torch": ["-c", "import torch"],
    "import torch, sklearn": ["-c", "import torch, sklearn"],
    "import guardband": ["-c", "import guardband"],
    "all public names": ["-c", ALL_NAMES],
    "guardband --help": ["-m", "guardband", "--help"],
    "guardband predict": ["-m", "guardband", "predict", "m.guardband", "ten.csv", "-o", "out.csv", "--quiet"],
    "guardband audit": ["-m", "guardband", "audit", "m.guardband", "t.csv", "--target", "y", "--quiet"],
    "guardband report": ["-m", "guardband", "report", "m.guardband", "-o", "page.html", "--quiet"],
    "gb.load": ["-c", "import guardband as gb; gb.load('m.guardband')"],
}
# What, beside what, and the most that it may take.
PAIRS = [
    ("import guardband", "import torch, sklearn", 1.3),
    ("all public names", "import torch, sklearn", 1.3),
    ("guardband --help", "import torch", 0.5),
    ("guardband predict", "import torch", 2.0),
    ("guardband audit", "import torch", 2.2),
    ("guardband report", "import torch", 1.6),
    ("gb.load", "import torch, sklearn", 1.3),
]


def make_model() -> None:
    """Write a model of 500 rows, 300 rows to audit it with, and ten to predict."""
    random = np.random.default_rng(0)
    for name, n in (("fit.csv", 500), ("t.csv", 300), ("ten.csv", 10)):
        x = random.standard_normal((n, 4))
        rows = np.column_stack([x, x[:, 0] + random.standard_normal(n) / 2])
        np.savetxt(name, rows, "%.4f", ",", header="a,b,c,d,y", comments="")
    fit = ["fit", "fit.csv", "--target", "y", "-o", "m.guardband", "--quiet"]
    subprocess.run([sys.executable, "-m", "guardband", *fit], check=True, stdout=subprocess.DEVNULL)


def cpu_seconds(program: list[str]) -> float:
    """Return the processor time of a program in a process of its own: other programs hardly change it."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *program], check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Print the least time of each program, taken in turns, and the ratios."""
    turns = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    os.chdir(tempfile.mkdtemp())
    make_model()
    least = dict.fromkeys(PROGRAMS, float("inf"))
    for _ in range(turns):
        for name, program in PROGRAMS.items():
            least[name] = min(least[name], cpu_seconds(program))
    print(f"{os.cpu_count()} cores, Python {sys.version.split()[0]}, least processor time of {turns} turns")
    for ours, base, bar in PAIRS:
        ratio = least[ours] / least[base]
        print(f"{ours}: {least[ours]:.2f} s, {ratio:.2f} times {base} ({least[base]:.2f} s); bar: {bar}")


if __name__ == "__main__":
    main()
