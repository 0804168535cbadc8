"""The driver of a fit on Ray is killed in its third epoch, and the same fit is begun again: which epochs it trains.

    python benchmarks/ray/resume.py

It prints the epochs of each run, and whether the second went on from the last checkpoint of the first.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

EPOCHS, KILLED_IN = 6, 3


@dataclass(frozen=True)
class Watched:
    """Writes down every epoch, and kills the driver in one of them."""

    folder: Path
    driver: int
    is_first: bool

    def __call__(self, epoch, copied):
        """Look on."""
        import torch

        if torch.distributed.get_rank() == 0:
            with (self.folder / f"epochs-{'one' if self.is_first else 'two'}").open("a") as file:
                file.write(f"{epoch} ")
            if self.is_first and epoch == KILLED_IN:
                os.kill(self.driver, signal.SIGKILL)
                time.sleep(600)  # the cluster ends with its driver
        return False


def fit(folder, is_first):
    """Fit, with a checkpoint after every epoch."""
    import guardband as gb
    import ray
    from guardband.ray import streamed
    from guardband.ray.parallel import train_together

    def watched(plan, checkpoints):
        job = replace(plan.job, after_epoch=Watched(folder, os.getpid(), is_first))
        return train_together(replace(plan, job=job, every=0.0), checkpoints)

    streamed.train_together = watched
    ray.init(num_cpus=2, include_dashboard=False, object_store_memory=100 * 2**20, log_to_driver=False)
    model = gb.ray.fit(
        f"{folder}/*.parquet",
        target="y",
        memory_limit=1000,
        checkpoints=folder / "checkpoints",
        preset="fast",
        hidden=(16,),
        max_epochs=EPOCHS,
        patience=EPOCHS,
        random_state=0,
    )
    print(max(model.fitted_.learned.epochs))
    ray.shutdown()


def main():
    """Run both fits, each in a process of its own, and print what they did."""
    with tempfile.TemporaryDirectory() as name:
        folder, random = Path(name), np.random.default_rng(0)
        for i in range(2):
            x = random.standard_normal((2000, 3))
            frame = pd.DataFrame(x, columns=list("abc")).assign(y=x[:, 0] + random.standard_normal(2000))
            frame.to_parquet(folder / f"{i}.parquet")
        codes = [subprocess.run([sys.executable, __file__, name, run]).returncode for run in ("one", "two")]
        seen = [(folder / f"epochs-{run}").read_text().split() for run in ("one", "two")]
    went_on = seen[1] == [str(epoch) for epoch in range(KILLED_IN, EPOCHS + 1)]
    print(json.dumps({"codes": codes, "first": seen[0], "second": seen[1], "went on": went_on}))


if __name__ == "__main__":
    if len(sys.argv) == 1:
        main()
    else:
        fit(Path(sys.argv[1]), sys.argv[2] == "one")
