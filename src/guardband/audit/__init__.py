"""Audits: is the promise kept on labelled rows, where is it kept less well, and has the data changed?"""
