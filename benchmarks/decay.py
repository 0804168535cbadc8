"""conf-nn's length relative to the oracle's on the paper's artificial data, by weight decay and epochs."""

import guardband as gb
from guardband.data.artificial import PaperModel

EPOCHS = (5, 10, 20, 40)


def main() -> None:
    """Print a line per decay: 15,000 training rows, lr 0.01, one network of 200 units."""
    model = PaperModel()
    X, y = model.draw(20_000, seed=0)
    X_new, y_new = model.draw(20_000, seed=1)
    oracle = gb.metrics.mean_length(y_new, model.oracle(X_new))
    for decay in (0.0, 3e-4, 1e-3, 3e-3):
        lengths = []
        for epochs in EPOCHS:
            fitted = gb.IntervalRegressor(network="plain", epochs=epochs, weight_decay=decay, random_state=0).fit(X, y)
            lengths.append(gb.metrics.mean_length(y_new, fitted.predict_interval(X_new)) / oracle)
        shown = "  ".join(f"{n} epochs {length:.3f}" for n, length in zip(EPOCHS, lengths, strict=True))
        print(f"decay {decay:g}: {shown}", flush=True)


if __name__ == "__main__":
    main()
