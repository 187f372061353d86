"""Counts lines under gputensor/ that belong to the features of an earlier commit, and all others.

    python -m tests.project.line_counts 9cba6f9

A file counts for the earlier features if git finds that it descends from a file of that commit: by
its path, or as a rename or copy with a similarity of at least 25%. Later additions to such a file
are counted too, and a part of a split file counts as new if its similarity is lower.
"""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def git(*words):
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def count(revision):
    """Return the lines of (files that descend from those of the revision, other files)."""
    options = ("--name-status", "-M25%", "-C25%", "-l99999")
    changes = (line.split("\t") for line in git("diff", *options, revision, "HEAD", "gputensor"))
    added = {names[-1] for kind, *names in changes if kind == "A"}
    lines = [0, 0]
    for name in git("ls-tree", "-r", "--name-only", "HEAD", "gputensor"):
        lines[name in added] += len(git("show", f"HEAD:{name}"))
    return lines


if __name__ == "__main__":
    descended, new = count(sys.argv[1])
    print(f"descended from {sys.argv[1]}: {descended}; new: {new}")
