"""The paper's experiments, all of them, in cells."""
