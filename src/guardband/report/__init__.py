"""The report: one page on a model, its promise and how it was kept."""
