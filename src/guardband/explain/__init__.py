"""Why an interval is wide: what each column adds to the width and to the prediction."""
