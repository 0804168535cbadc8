"""A Lightning module: the head and the loss are all that it takes from guardband before calibration."""

import lightning
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import guardband as gb
from guardband.data.artificial import PaperModel

MODEL = PaperModel(n_features=8)


def rows(n: int, seed: int) -> TensorDataset:
    """Return rows of the paper's artificial data, the response divided by ten."""
    X, y = MODEL.draw(n, seed)
    return TensorDataset(torch.tensor(X, dtype=torch.float32), torch.tensor(y / 10, dtype=torch.float32))


class Intervals(lightning.LightningModule):
    """Any Lightning module that ends in a ``TripleHead``."""

    def __init__(self) -> None:
        super().__init__()
        self.network = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), gb.nn.TripleHead(32))
        self.loss = gb.nn.IntervalLoss(tau=0.1)

    def forward(self, x: Tensor) -> Tensor:
        """Return lower bound, point and upper bound."""
        return self.network(x)

    def training_step(self, batch: list[Tensor], index: int) -> Tensor:
        """Return the loss of a batch."""
        x, y = batch
        return self.loss(self(x), y)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Return Adam."""
        return torch.optim.Adam(self.parameters(), lr=0.01)


def main() -> tuple[gb.GuardedNetwork, Tensor]:
    """Return the calibrated network, and which of 2,000 new rows have their response inside."""
    lightning.seed_everything(0, verbose=False)
    module = Intervals()
    trainer = lightning.Trainer(
        max_epochs=5,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(module, DataLoader(rows(2000, seed=1), batch_size=64, shuffle=True))
    guarded = gb.calibrate(module.network, DataLoader(rows(1000, seed=2), batch_size=256), confidence_level=0.9)
    x, y = rows(2000, seed=3).tensors
    lower, _, upper = guarded(x).unbind(1)
    return guarded, (lower <= y) & (y <= upper)


if __name__ == "__main__":
    guarded, inside = main()
    print(guarded.certificate)
    print(f"New rows with their response inside: {inside.float().mean():.3f}")
