"""The paper's experiments, all of them, from one plan."""
