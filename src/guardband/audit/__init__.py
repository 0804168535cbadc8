"""Audits: what labelled rows say of the promise, where coverage is lower, and whether the data have changed."""
