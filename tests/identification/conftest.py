"""Data shared by the tests of regression."""

import pytest
from identification.arms import arm_data

from rigidjax import identification as ident


@pytest.fixture(scope="session")
def exact_arm():
    return arm_data(0.0)


@pytest.fixture(scope="session")
def noisy_arm():
    return ident.regress(arm_data(0.5, 25), noise=[0.5, 0.5])
