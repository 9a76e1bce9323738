"""Parameters of a case beyond a path: priors, tied ones, start states, sensors of every run."""

import numpy as np
import pytest
from cli.case_files import TEXT, case_of, experiment_of, replace_text
from cli.program import assert_refused

from rigidjax.cli.case import read_case
from rigidjax.identification import GaussianPrior, LogDetPrior

BEFORE_METHOD = TEXT[: TEXT.index("[method]")]
# A second spring like the first one, after it.
TWO_SPRINGS = BEFORE_METHOD.replace(
    "[data]", '[[force]]\ntype = "TorsionSpring"\njoint = "hinge"\nstiffness = 1.0\n[data]'
).replace("forces.TorsionSpring.damping", "forces[1].damping")


def test_priors_agree_with_python(tmp_path):
    drawing = "prior = { type = 'log-det', value = [0.02, 0.05, 0.05], weight = 100 }\n"
    text = replace_text(
        'transform = "positive"\nwhich = [2]\n', f'transform = "principal-inertia"\n{drawing}'
    )
    text = text.replace(
        "upper = 1.0\n", "upper = 1.0\nprior = { type = 'gaussian', mean = 0.05, std = inf }\n"
    )
    inertia, damping = (p.prior for p in read_case(case_of(tmp_path, text)).parameters)
    assert isinstance(inertia, LogDetPrior) and isinstance(damping, GaussianPrior)
    np.testing.assert_array_equal(inertia.value, [0.02, 0.05, 0.05])
    assert float(inertia.weight) == 100.0
    assert float(damping.mean) == 0.05 and np.isinf(damping.std)


def test_tied_parameters_are_equal(tmp_path):
    text = TWO_SPRINGS + 'tied = ["model.system.forces[2].damping"]\n'
    case = read_case(case_of(tmp_path, text))
    (tied,), experiment = case.parameters[1].tied, experiment_of(case)
    assert tied(experiment) is experiment.model.system.forces[2].damping
    assert tied(experiment) is not case.parameters[1].leaf(experiment)


def test_initial_state_of_a_hinge_is_fitted(tmp_path):
    text = BEFORE_METHOD + '[[parameter]]\nname = "start"\npath = "start_state"\nper_run = false\n'
    start = read_case(case_of(tmp_path, text)).parameters[2]
    assert start.labels == (
        "start: change of angle of hinge",
        "start: change of rate of angle of hinge",
    )
    assert start.unit == ("rad", "rad/s") and not start.per_run and start.prior is None


PRIOR = "[[parameter]]\nname = 'p'\npath = 'model.system.bodies.arm.inertia'\nprior = "
START = "[[parameter]]\nname = 'p'\npath = 'start_state'\n"


@pytest.mark.parametrize(
    ("addition", "message"),
    [
        (f"{PRIOR}3\n", r"3 \('p'\): `prior` must be a table; got 3"),
        (f"{PRIOR}{{ type = 'gauss' }}\n",
         r"\[prior\]: There is no `type` 'gauss'. Did you mean 'gau"),
        (f"{PRIOR}{{ mean = 3 }}\n", r"\[prior\]: `type` is missing"),
        (f"{PRIOR}{{ type = 'gaussian', mean = 3 }}\n",
         r"`std` is missing, an argument of GaussianPrior"),
        (f"{PRIOR}{{ type = 'gaussian', mean = 0, sd = 1 }}\n",
         r"\[prior\]: there is no `sd` here. Did you mean `std`"),
        (f"{PRIOR}{{ type = 'gaussian', mean = 0, std = 0 }}\n",
         r"\[prior\]: `GaussianPrior\(std=...\)` must be positive"),
        (f"{PRIOR}{{ type = 'gaussian', mean = [0, 1], std = 1 }}\n",
         r"3 \('p'\): `GaussianPrior\(mean=...\)` of 'p' must be a number or have the shape"),
        (f"{PRIOR}{{ type = 'log-det', value = [1, 1, 1], weight = 1 }}\n",
         r"prior=LogDetPrior.* got Unconstrained. Use `GaussianPrior`"),
        (f"{START}positions = false\nrates = false\n",
         r"3 \('p'\): `start_state` needs `positions"),
        (f"{START}rate = true\n", r"there is no `rate` here. Did you mean `rates`"),
        (f"{START}transform = 'free'\n", r"there is no `transform` here"),
    ],
)  # fmt: skip
def test_invalid_parameters_raise(tmp_path, addition, message):
    assert_refused(message, "identify", case_of(tmp_path, BEFORE_METHOD + addition))


@pytest.mark.parametrize(
    ("tied", "message"),
    [
        ("'model.system.forces[2].dampin'", r"2 \('damping'\): .*Did you mean 'damping'"),
        ("3", r"`tied` must be an array of texts; got \[3\]"),
    ],
)
def test_invalid_ties_raise(tmp_path, tied, message):
    path = case_of(tmp_path, TWO_SPRINGS + f"tied = [{tied}]\n")
    assert_refused(message, "identify", path)
