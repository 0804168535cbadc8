"""The report: one page on a model, its promise and what test rows say of it."""
