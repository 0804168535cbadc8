"""What importing costs: guardband, and its command line's help, beside the packages that they stand on.

python benchmarks/import_time.py [turns]
"""

import os
import resource
import subprocess
import sys

ALL_NAMES = "import guardband as gb; [getattr(gb, name) for name in gb.__all__]"
PROGRAMS = {
    "import torch": ["-c", "import torch"],
    "import torch, sklearn": ["-c", "import torch, sklearn"],
    "import guardband": ["-c", "import guardband"],
    "all public names": ["-c", ALL_NAMES],
    "guardband --help": ["-m", "guardband", "--help"],
}
# What, beside what, and the most that it may take.
PAIRS = [
    ("import guardband", "import torch, sklearn", 1.3),
    ("all public names", "import torch, sklearn", 1.3),
    ("guardband --help", "import torch", 0.5),
]


def cpu_seconds(program: list[str]) -> float:
    """Return the processor time of a program in a process of its own: other programs hardly change it."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *program], check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Print the least time of each program, taken in turns, and the ratios."""
    turns = int(sys.argv[1]) if len(sys.argv) > 1 else 5
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
