"""Bugs on purpose: each patch breaks one behavior, and a test that names the behavior's id must notice.

A patch is `<ID>-<name>.patch`: three lines that say what it is, then a unified diff against `src`:

    id: C3
    breaks: what no longer holds, in one sentence
    tests: arguments for pytest that select tests whose docstrings name the id

It is applied strictly: one that no longer fits makes the run fail. To renew it, change a copy of `src` and take
`diff -U1`. `python -m tests.mutants --only C3` runs what has this id or name.
"""
