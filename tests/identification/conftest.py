"""Data and fits that several files share."""

import pytest
from identification import cases
from identification.arms import arm_data

from rigidjax import identification as ident


@pytest.fixture(scope="session")
def exact_arm():
    return arm_data(0.0)


@pytest.fixture(scope="session")
def noisy_arm():
    return ident.regress(arm_data(0.5, 25), noise=[0.5, 0.5])


@pytest.fixture(scope="session")
def noisy_fit():
    """A fit of runs with noise that is given."""
    runs = cases.measurements(cases.NOISE, known=True)
    options = {"rtol": cases.TOLERANCE, "atol": cases.TOLERANCE}
    return ident.identify(cases.START, runs, cases.parameters(), **options)


@pytest.fixture(scope="session")
def fit_with_unknown_noise():
    """A fit of equal data whose noise is estimated."""
    return ident.identify(cases.START, cases.measurements(cases.NOISE), cases.parameters())
