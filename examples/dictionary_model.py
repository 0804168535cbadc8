"""A model as text libraries have them: inputs by name, a dictionary out, the loss inside, and a loop of one's own.

The texts are sequences of made-up words; the response is the sum of the words' values, in noise.
"""

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

import guardband as gb

WORDS, LENGTH = 50, 12
VALUES = torch.randn(WORDS, generator=torch.Generator().manual_seed(0))


class Texts(Dataset):
    """Rows as dictionaries, padded with zeros at the end."""

    def __init__(self, n: int, seed: int) -> None:
        generator = torch.Generator().manual_seed(seed)
        self.ids = torch.randint(1, WORDS, (n, LENGTH), generator=generator)
        lengths = torch.randint(4, LENGTH + 1, (n, 1), generator=generator)
        self.mask = (torch.arange(LENGTH) < lengths).long()
        self.ids *= self.mask
        noise = torch.randn(n, generator=generator)
        self.labels = (VALUES[self.ids] * self.mask).sum(1) / 3 + 0.3 * noise

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, i: int) -> dict[str, Tensor]:
        return {"input_ids": self.ids[i], "attention_mask": self.mask[i], "labels": self.labels[i]}


class TextModel(nn.Module):
    """Embeds words, sums them up, and ends in a ``TripleHead``; given labels, it also puts out the loss."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(WORDS, 16)
        self.head = gb.nn.TripleHead(16)
        self.loss = gb.nn.IntervalLoss(tau=0.1)

    def forward(self, input_ids: Tensor, attention_mask: Tensor, labels: Tensor | None = None) -> dict[str, Tensor]:
        """Return the bands, and the loss if there are labels."""
        bands = self.head((self.embed(input_ids) * attention_mask[..., None]).sum(1))
        return {"bands": bands} if labels is None else {"bands": bands, "loss": self.loss(bands, labels)}


def main() -> tuple[gb.GuardedNetwork, Tensor]:
    """Return the calibrated network, and which of 2,000 new texts have their response inside."""
    torch.manual_seed(0)
    model = TextModel()
    optimiser = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(5):
        for batch in DataLoader(Texts(2000, seed=1), batch_size=64, shuffle=True):
            optimiser.zero_grad()
            model(**batch)["loss"].backward()
            optimiser.step()
    guarded = gb.calibrate(
        model,
        Texts(1000, seed=2),  # a Dataset will do
        confidence_level=0.9,
        target="labels",  # where the responses stand in a batch; all else is an input by its name
        outputs=lambda out: out["bands"],  # how to read the bands off what the model puts out
    )
    new = Texts(2000, seed=3)
    lower, _, upper = guarded(input_ids=new.ids, attention_mask=new.mask).unbind(1)
    return guarded, (lower <= new.labels) & (new.labels <= upper)


if __name__ == "__main__":
    guarded, inside = main()
    print(guarded.certificate)
    print(f"New texts with their response inside: {inside.float().mean():.3f}")
