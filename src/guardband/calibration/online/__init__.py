"""Online rules: a threshold that moves with each true value that arrives."""
