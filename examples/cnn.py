"""A convolutional network for images, made to put out intervals.

The images show a bright disc in noise; the response is its radius, blurred more the larger it is.
"""

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import guardband as gb


def draw(n: int, seed: int) -> tuple[Tensor, Tensor]:
    """Return n images of 16 x 16 and their responses."""
    generator = torch.Generator().manual_seed(seed)
    radius = 2 + 5 * torch.rand(n, generator=generator)
    place = torch.arange(16.0) - 7.5
    inside = (place[:, None] ** 2 + place[None, :] ** 2).sqrt() < radius[:, None, None]
    images = inside.float() + 0.5 * torch.randn(n, 16, 16, generator=generator)
    return images[:, None], radius + 0.1 * radius * torch.randn(n, generator=generator)


class SmallNet(nn.Module):
    """A network for classification as one finds them: features, pooling, and a linear layer called ``fc``."""

    def __init__(self, num_classes: int = 10) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 16, 3), nn.ReLU()
        )
        self.pool = nn.AdaptiveAvgPool2d(2)
        self.fc = nn.Linear(64, num_classes)

    def forward(self, x: Tensor) -> Tensor:
        """Return the scores of the classes."""
        return self.fc(self.pool(self.features(x)).flatten(1))


def main() -> tuple[gb.GuardedNetwork, Tensor]:
    """Return the calibrated network, and which of 2,000 new images have their response inside."""
    torch.manual_seed(0)
    images, radius = draw(2000, seed=1)
    mean, scale = radius.mean(), radius.std()  # the response standardised, by the rows that train

    network = gb.with_intervals(SmallNet())  # fc becomes a head with lower bound, point and upper bound
    loader = DataLoader(TensorDataset(images, (radius - mean) / scale), batch_size=64, shuffle=True)
    gb.train(network, loader, gb.nn.IntervalLoss(tau=0.1), epochs=4, learning_rate=3e-3, verbose=False)

    held_out, response = draw(1000, seed=2)
    guarded = gb.calibrate(network, (held_out, (response - mean) / scale), confidence_level=0.9)

    new, truth = draw(2000, seed=3)
    lower, _, upper = (mean + scale * guarded(new)).unbind(1)
    return guarded, (lower <= truth) & (truth <= upper)


if __name__ == "__main__":
    guarded, inside = main()
    print(guarded.certificate)
    print(f"New images with their response inside: {inside.float().mean():.3f}")
