"""Random programs: arrays of several sizes, changed by operations, branches and loops.

What goes wrong in an emitter is seldom one primitive, and often one inside of another: whose memory
a result lies in after a branch, what a loop may change in place, which stacks go together.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np

# Held in registers, in memory, and stacks over which there are loops.
SHAPES = ((), (3,), (40,), (200,), (12, 3), (12, 3, 3), (4, 4))
NESTED = "cond switch while scan".split()


class RandomProgram:
    """A program of `flag`, a whole number, and arrays; its results have the shapes of these.

    **Arguments:** `seed`; `has_while`, whether there may be loops that reverse mode cannot do.
    """

    def __init__(self, seed: int, has_while: bool = True):
        self.rng = np.random.default_rng(seed)
        count = self.rng.integers(2, 5)
        self.shapes = [SHAPES[k] for k in self.rng.choice(len(SHAPES), count)]
        self.nested = NESTED if has_while else [kind for kind in NESTED if kind != "while"]
        self.run = self._program(3)

    def __call__(self, flag, *arrays):
        return tuple(self.run(list(arrays), flag))

    def arguments(self, count: int):
        """Of a batch."""
        flags = jnp.asarray(self.rng.integers(0, 8, count))
        return flags, *(jnp.asarray(self.rng.uniform(-1, 1, (count, *s))) for s in self.shapes)

    def _program(self, depth):
        steps = [self._step(depth) for _ in range(self.rng.integers(1, 4))]

        def run(arrays, flag):
            for step in steps:
                arrays = step(arrays, flag)
            return arrays

        return run

    def _step(self, depth):
        """A step: takes arrays and a flag, gives arrays."""
        kinds = [*_CHANGES, "swap", *(self.nested * 3 if depth else [])]
        kind = kinds[self.rng.integers(len(kinds))]
        number, other = (int(k) for k in self.rng.integers(len(self.shapes), size=2))
        if kind in self.nested:
            return getattr(self, f"_{kind}")(depth - 1, number, other)
        if kind == "swap":
            return self._swap(number)
        size = int(np.prod(self.shapes[number]))
        place, factor = int(self.rng.integers(size)), float(self.rng.uniform(0.5, 1.5))
        change = functools.partial(_CHANGES[kind], place=place, factor=factor)

        def step(arrays, flag):
            out = list(arrays)
            changed = change(arrays[number].reshape(-1), arrays[other].reshape(-1), flag)
            out[number] = jnp.reshape(changed, self.shapes[number])
            return out

        return step

    def _swap(self, number):
        """One array and the last of its shape in each other's place."""
        same = max(k for k, shape in enumerate(self.shapes) if shape == self.shapes[number])

        def step(arrays, flag):
            out = list(arrays)
            out[number], out[same] = arrays[same], arrays[number]
            return out

        return step

    def _cond(self, depth, number, other):
        bit, branches = int(self.rng.integers(3)), [self._program(depth) for _ in range(2)]
        return lambda arrays, flag: jax.lax.cond(
            (flag >> bit) & 1, *(functools.partial(b, flag=flag) for b in branches), arrays
        )

    def _switch(self, depth, number, other):
        branches = [self._program(depth) for _ in range(3)]
        return lambda arrays, flag: jax.lax.switch(
            flag % 4 - 1, [functools.partial(b, flag=flag) for b in branches], arrays
        )

    def _while(self, depth, number, other):
        body, most = self._program(depth), int(self.rng.integers(1, 4))
        return lambda arrays, flag: jax.lax.while_loop(
            lambda state: state[0] <= flag % most,
            lambda state: (state[0] + 1, body(state[1], flag + state[0])),
            (jnp.zeros((), int), arrays),
        )[1]

    def _scan(self, depth, number, other):
        body = self._program(depth)

        def turn(arrays, row, flag):
            arrays = body(arrays, flag)
            return arrays, (arrays[number], jnp.sum(arrays[other]) * row)

        def step(arrays, flag):
            rows = jnp.linspace(0.5, 1.0, 3)
            arrays, tables = jax.lax.scan(functools.partial(turn, flag=flag), arrays, rows)
            out = [x + 0.01 * jnp.sum(tables[1]) for x in arrays]
            out[number] = out[number] + 0.1 * jnp.sum(tables[0], axis=0)
            return out

        return step


def _chosen(x, y, flag, place, factor):
    return x * jnp.where(flag > 1, factor, y[0])


def _part(x, y, flag, place, factor):
    """A part of one array, from where the flag says, in another."""
    length = min(x.size, y.size, 5)
    piece = jax.lax.dynamic_slice(y, (flag % y.size,), (length,))
    return jax.lax.dynamic_update_slice(x, factor * piece, (place,))


def _product(x, y, flag, place, factor):
    """Each row of a stack by one matrix."""
    if x.size % 3:
        return x * y[place % y.size]
    matrix = factor * jnp.cos(y[:1]) + jnp.arange(9.0).reshape(3, 3) / 9
    return jnp.sin(x.reshape(-1, 3) @ matrix).reshape(-1)


_CHANGES = {
    "scale": lambda x, y, flag, place, factor: factor * jnp.sin(x),
    "change": lambda x, y, flag, place, factor: x.at[place].set(factor + y[0]),
    "change_there": lambda x, y, flag, place, factor: x.at[(flag + place) % x.size].set(
        y[flag % y.size]
    ),
    "total": lambda x, y, flag, place, factor: x + 0.01 * jnp.sum(y),
    "same": lambda x, y, flag, place, factor: x,
    "turned": lambda x, y, flag, place, factor: jnp.roll(x, 1),
    "chosen": _chosen,
    "product": _product,
    "running": lambda x, y, flag, place, factor: jnp.sin(jnp.cumsum(x)),
    "part": _part,
    "ordered": lambda x, y, flag, place, factor: jnp.sort(x),
}
