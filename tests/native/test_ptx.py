"""Kernels as PTX: written for two GPUs, and assembled where `ptxas` is found."""

import subprocess

import jax
import jax.numpy as jnp
import pytest
from external_programs import NO_PTXAS, PTXAS
from rule_cases import ARITHMETIC, X, Y

from rigidjax.native.runtime.cuda import ptx as gpu
from rigidjax.native.runtime.kernel import Signature


def loops(x, y):
    """Branches, loops at run time, arrays in memory, dynamic indices."""

    def turn(carry):
        k, x, history = carry
        x = jax.lax.cond(x[0] > 1.0, lambda v: v * 0.9, lambda v: jnp.sin(v) + y, x)
        return k + 1, x, history.at[k % 100].set(x)

    start = 0, x, jnp.zeros((100, 3))
    k, x, history = jax.lax.while_loop(lambda carry: carry[1][0] < 50.0, turn, start)
    return x, history[k % 7], jax.lax.scan(lambda c, v: (c * v + 1.0, c), x, history)


PROGRAMS = {name: ARITHMETIC[name] for name in ("functions", "extremes")} | {"loops": loops}


def write_ptx(name, architecture):
    closed = jax.make_jaxpr(PROGRAMS[name])(X, Y)
    batched = (True,) * len(closed.in_avals)
    return gpu.ptx(closed, Signature(batched, True), architecture).ptx


@pytest.mark.skipif(PTXAS is None, reason=NO_PTXAS)
@pytest.mark.parametrize("architecture", ["sm_80", "sm_90"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_ptx_is_assembled(name, architecture, tmp_path):
    source, target = tmp_path / "kernel.ptx", tmp_path / "kernel.cubin"
    source.write_text(write_ptx(name, architecture))
    command = [str(PTXAS), f"-arch={architecture}", str(source), "-o", str(target)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert target.stat().st_size > 0


def test_ptx_text():
    """The text has an entry, double precision, and no external library."""
    text = write_ptx("functions", "sm_80")
    assert ".visible .entry kernel(" in text
    assert "fma.rn.f64" in text
    assert ".extern" not in text
    assert "__nv_" not in text


def test_unknown_architecture_raises():
    with pytest.raises(ValueError, match="`architecture` must be one of sm_80, .*; got 'sm_1'"):
        write_ptx("extremes", "sm_1")
