"""Stand-ins for the results of `torch.export` without torch: nodes, signature, state.

`Builder` writes graphs as the exporter does. A target prints like an OpOverload and has its
`__name__`; weights are NumPy arrays.
"""

from types import SimpleNamespace

import numpy as np


class Target:
    """An operator; it prints as its text, such as `aten.linear.default`."""

    def __init__(self, text):
        self.text = text
        self.__name__ = text.partition(".")[2]
        self.__module__ = "torch._ops.aten"

    def __str__(self):
        return self.text


class Dtype:
    """A dtype; it prints as `torch.float16` does, and has an itemsize like torch's dtypes."""

    def __init__(self, name):
        self.name, self.itemsize = name, np.dtype(name.replace("bfloat16", "int16")).itemsize

    def __str__(self):
        return f"torch.{self.name}"


class Symbol:
    """A free extent; it prints as its name."""

    def __init__(self, name):
        self.name = name

    def __str__(self):
        return self.name


def nodes_in(value):
    """Yield the nodes among arguments."""
    if isinstance(value, SimpleNamespace) and hasattr(value, "users"):
        yield value
    elif isinstance(value, (list, tuple, dict)):
        for one in value.values() if isinstance(value, dict) else value:
            yield from nodes_in(one)


class Builder:
    """A graph under construction; `program` is shaped like the exporter's result."""

    def __init__(self):
        self.nodes, self.inputs, self.state, self.outputs = [], [], {}, []
        self.ranges, self.module = {}, SimpleNamespace()

    def node(self, op, name, target, args=(), kwargs=None, meta=None):
        made = SimpleNamespace(
            op=op, name=name, target=target, args=args, kwargs=kwargs or {}, meta=meta or {},
            users=[],
        )  # fmt: skip
        for one in nodes_in((args, kwargs)):
            one.users.append(made)
        self.nodes.append(made)
        return made

    def _placeholder(self, kind, name, target, meta):
        argument = SimpleNamespace(name=name)
        kind = SimpleNamespace(name=kind)
        self.inputs.append(SimpleNamespace(kind=kind, arg=argument, target=target))
        return self.node("placeholder", name, name, meta=meta)

    def input(self, name, shape, dtype="float32"):
        value = SimpleNamespace(shape=shape, dtype=Dtype(dtype))
        return self._placeholder("USER_INPUT", name, None, {"val": value})

    def weight(self, name, array, kind="PARAMETER"):
        self.state[name] = array
        return self._placeholder(kind, "p_" + name.replace(".", "_"), name, {})

    def call(self, text, *args, **kwargs):
        target = Target(text) if isinstance(text, str) else text
        name = f"{getattr(target, '__name__', 'call').partition('.')[0]}_{len(self.nodes)}"
        return self.node("call_function", name, target, args, kwargs)

    def attribute(self, name, value):
        setattr(self.module, name, value)
        return self.node("get_attr", name, name)

    def output(self, *nodes, kind="USER_OUTPUT"):
        self.outputs += [SimpleNamespace(kind=SimpleNamespace(name=kind)) for _node in nodes]
        self.node("output", "output", "output", (tuple(nodes),))
        return self

    @property
    def graph(self):
        return SimpleNamespace(nodes=self.nodes)

    @property
    def program(self):
        signature = SimpleNamespace(input_specs=self.inputs, output_specs=self.outputs)
        return SimpleNamespace(
            graph=self.graph, graph_module=self.module, graph_signature=signature,
            state_dict=self.state, constants={}, range_constraints=self.ranges,
        )  # fmt: skip
