"""Counts each word of a text, by sorting the numbers of the words.

python examples/numpy_programs/word_counts.py
"""

import numpy as np

import gputensor as gt

TEXT = """the quick brown fox jumps over the lazy dog the dog sleeps the fox runs over the hill
and the quick dog runs after the fox""".split()


def compute(xp):
    """Return the numbers of the words, most frequent first, and their counts."""
    names = sorted(set(TEXT))
    words = xp.asarray(np.array([names.index(one) for one in TEXT]))
    values, counts = xp.unique_counts(words)
    order = xp.lexsort((values, -counts))
    return values[order], counts[order]


if __name__ == "__main__":
    print(*compute(gt), sep="\n")
