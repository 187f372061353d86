"""The order of work in a capture on several streams, computed from what each piece of work uses.

Shares no code with the library. A piece of work names what it reads and writes. Two pieces conflict
if both use something and at least one writes it. A piece waits for every stream with earlier work
that conflicts with it, as that stream stands then, and for nothing else.
"""

import re


class BranchOrder:
    """Work of one capture in the order of the calls."""

    def __init__(self):
        self.known = {}  # stream -> the pieces that its next work comes after
        self.pieces = []  # stream, what it uses, the number of its nodes in the graph
        self.before = []  # for each piece, those that may come before it

    def wait(self, stream, other):
        """The program makes a stream wait for another one."""
        self.known.setdefault(stream, set()).update(self.known.get(other, ()))

    def work(self, stream, uses, node_count=1):
        """Work that uses a dict: what -> whether it writes that."""
        others = {
            former for former, used, _ in self.pieces if former != stream and conflict(uses, used)
        }
        for other in others:
            self.wait(stream, other)
        known = self.known.setdefault(stream, set())
        self.before.append(set(known))
        known.add(len(self.pieces))
        self.pieces.append((stream, uses, node_count))

    def check(self, dump, is_exact):
        """Compare with the text of `debug_dump` of a host device's graph.

        It is exact if the streams did no work before the capture: for what a stream wrote before,
        its later reads count like the write.
        """
        owner = [at for at, (_, _, count) in enumerate(self.pieces) for _ in range(count)]
        after = {}
        for first, second in re.findall(r"n(\d+) -> n(\d+);", dump):
            after.setdefault(int(second), set()).add(int(first))
        closure = []
        for node in range(len(owner)):
            found = set()
            for former in after.get(node, ()):
                found |= closure[former] | {former}
            closure.append(found)
        assert dump.count("[label=") == len(owner), "the graph has other nodes"
        for node, at in enumerate(owner):
            for former, earlier in enumerate(owner[:node]):
                if earlier == at:
                    continue
                if former in closure[node]:
                    is_needed = earlier in self.before[at]
                    assert is_needed or not is_exact, f"{at} need not come after {earlier}"
                else:
                    is_needed = conflict(self.pieces[at][1], self.pieces[earlier][1])
                    assert not is_needed, f"{at} has to come after {earlier}"


def conflict(uses, others):
    return any(what in others and (writes or others[what]) for what, writes in uses.items())
