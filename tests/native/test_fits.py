"""Batches of whole fits as kernels of a GPU, which the processor plays."""

import _gpu_parts as parts
import _studies as studies
import jax
import numpy as np
import pytest
from call_frames import launch_kernel
from external_programs import NO_PTXAS, PTXAS
from jax.extend.core import jaxpr_as_fun

from rigidjax.identification import identify_batch
from rigidjax.identification.fit import batch
from rigidjax.identification.search import batch_search
from rigidjax.native.runtime.cuda import ptx as gpu

ERRORS = np.random.default_rng(0).normal(size=(5, 21, 3))
STUDY = studies.free_body(21)


@pytest.fixture(scope="module")
def kernel():
    return parts.trace_fit(STUDY, ERRORS)


def test_fits_as_a_gpu_kernel(kernel):
    """Searches with simulations and their tangents are the threads of one launch."""
    inputs = [*map(np.asarray, kernel.arguments)]
    error, found, device = launch_kernel(kernel.closed, kernel.signature, len(ERRORS), inputs)
    assert error is None and device.launches == [(1, 32)]
    axes = [0 if b else None for b in kernel.signature.batched]
    expected = jax.vmap(jaxpr_as_fun(kernel.closed), axes)(*kernel.arguments)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-7, atol=1e-12)


@pytest.mark.skipif(PTXAS is None, reason=NO_PTXAS)
def test_fit_is_assembled(kernel):
    """A hundred thousand fits need less than half of the memory of an H200."""
    written = gpu.ptx(kernel.closed, kernel.signature, "sm_90")
    report = parts.assemble(written.ptx, "sm_90", PTXAS)
    assert 1e5 * (written.scratch + report["stack_bytes"]) < 70e9


def test_batches_are_cut_to_the_memory(monkeypatch, tmp_path):
    """Fits by one or by several kernels, also into a store, equal those by XLA."""
    data = [STUDY.measure(STUDY.readings(), lambda _, shape, e=e: e) for e in ERRORS]

    def fit(**options):
        return identify_batch(STUDY.model, data, STUDY.parameters, state0=STUDY.state0, **options)

    expected = fit()
    for module in (batch_search, batch):
        monkeypatch.setattr(module, "runs_on_gpu", lambda: True)
    found = [fit(), fit(out=tmp_path / "fits.zarr")]
    monkeypatch.setattr(batch_search, "free_memory", lambda: 12e3)
    with pytest.warns(UserWarning, match=r"5 fits take .* GB left: 2 are fitted at a time"):
        found.append(fit())
    for one in found:
        np.testing.assert_allclose(one.values, expected.values, rtol=1e-9)
        np.testing.assert_allclose(one.covariance, expected.covariance, rtol=1e-7)
        assert np.array_equal(one.iterations, expected.iterations)
