"""Cases of identification in files: what they become, and what is refused."""

import numpy as np
import pytest
import xarray
from cli.case_files import PENDULUM, RACKET, ROOT, TEXT, case_of, experiment_of, replace_text
from cli.program import assert_refused

import rigidjax as rj
from rigidjax.cli.case import read_case
from rigidjax.cli.case.schema import parse
from rigidjax.cli.case.settings import IntervalMethods, MethodTable
from rigidjax.cli.demo import PENDULUM_INERTIA, racket_case
from rigidjax.formulations.leaves import find_leaf
from rigidjax.identification import PrincipalInertia


def test_racket_case_agrees_with_the_package():
    case, of_package = read_case(RACKET), racket_case()
    assert case.text == of_package.text and case.state0 is None and case.options == {}
    assert [len(m.ts) for m in case.measurements] == [95, 68, 84, 85, 77]
    np.testing.assert_array_equal(case.model.system.inertia, PENDULUM_INERTIA)
    experiment = experiment_of(case)
    inertia, drag, rates = case.parameters
    assert inertia.transform == PrincipalInertia(fixed=("I3",)) and rates.per_run
    assert inertia.leaf(experiment) is case.model.system.inertia
    assert drag.leaf(experiment) is case.model.system.moment.coefficient
    np.testing.assert_array_equal(rates.leaf(experiment), np.zeros((1, 3)))


def test_problem_as_model(tmp_path):
    text = TEXT[TEXT.index("[data]") : TEXT.index("[[parameter]]")]
    text = (
        '[model]\nproblem = "four-bar"\narguments = { rate = 5.0 }\nformulation = "absolute"\n'
        + text.replace('"hinge"', '"revolute ground-crank"').replace('"arm"', '"crank"')
        + '[[parameter]]\nname = "m"\npath = "model.system.bodies.crank.mass"\n'
        'transform = "bounded"\nlower = 0.1\nupper = 1.0\nstart = 0.4\n'
    )
    case = read_case(case_of(tmp_path, text))
    assert type(case.model) is rj.Absolute
    np.testing.assert_array_equal(case.state0.angular_velocity[0], [0, 0, 5.0])
    assert float(case.parameters[0].start) == 0.4


def test_every_kind_of_body_joint_force_and_frame(tmp_path):
    text = """
body = [
  { name = "box", shape = "box", size = [0.1, 0.2, 0.3], density = 1e3, position = [1, 0, 0] },
  { name = "rod 1", mass = 1.0, inertia = [[0.1, 0, 0], [0, 0.1, 0], [0, 0, 0.1]], \
    position = [2, 0, 0], velocity = [1, 0, 0] },
]
joint = [
  { type = "Universal", parent = "ground", child = "box", point = [0.5, 0, 0], \
    axis1 = [0, 1, 0], axis2 = [0, 0, 1] },
  { type = "prismatic", parent = "box", child = "rod 1", axis = [1, 0, 0] },
]
force = [
  { type = "Spring", a = "ground", b = "rod 1", a_point = [0, 0, 0], b_point = [2, 0, 0], \
    stiffness = 10.0 },
  { type = "Drag", body = "box", linear = 0.1 },
]
frame = [{ name = "tip", body = "rod 1", point = [0.1, 0, 0] }]
sensor = [{ type = "Position", body = "tip", file = "rates.csv", time = "t_ms", \
            columns = ["gx", "gy", "gz"] }]
parameter = [
  { name = "k", path = "model.system.forces.Spring.stiffness" },
  { name = "m", path = 'model.system.bodies["rod 1"].mass' },
  { name = "c", path = "model.system.forces[1].linear" },
]
state = { velocity = [[0, 0, 0], [0.5, 0, 0]] }
"""
    case = read_case(case_of(tmp_path, text))
    system = case.model.system
    np.testing.assert_allclose(system.bodies[0].mass, 6.0)
    assert [type(j).__name__ for j in system.joints] == ["Universal", "Prismatic"]
    np.testing.assert_array_equal(case.state0.velocity[1], [0.5, 0, 0])
    np.testing.assert_array_equal(case.state0.position, system.reference_state().position)
    np.testing.assert_array_equal(system.frames[0].point, [0.1, 0, 0])
    experiment = experiment_of(case)
    assert [float(p.leaf(experiment)) for p in case.parameters] == [10.0, 1.0, 0.1]


def test_couplings_damping_and_armature(tmp_path):
    bodies = ", ".join(
        f"{{ name = '{name}', mass = 1.0, inertia = [0.1, 0.1, 0.1] }}" for name in "abc"
    )
    hinges = "".join(
        f"""{{ type = "Revolute", parent = "ground", child = "{name}", point = [0, 0, 0], \
        axis = [0, 0, 1], name = "{name}", damping = 0.2, armature = 0.05 }}, """
        for name in "ab"
    )
    text = f"""
body = [{bodies}]
joint = [{hinges}
  {{ type = "Coupling", joint = "b", by = "a", ratio = -2.0 }},
  {{ type = "Free", child = "c" }},
]
sensor = [{{ type = "Position", body = "c", file = "rates.csv", time = "t_ms", \
             columns = ["gx", "gy", "gz"] }}]
parameter = [{{ name = "d", path = "model.system.joints.a.damping" }},
             {{ name = "b.mass" }}, {{ name = "a.armature", tied = ["b.armature"] }}]
"""
    case = read_case(case_of(tmp_path, text))
    system = case.model.system
    assert [type(item).__name__ for item in (*system.joints, *system.constraints)] == [
        "Revolute", "Revolute", "Free", "Coupling",
    ]  # fmt: skip
    np.testing.assert_allclose(system.armatures, [0.05, 0.05, *[0.0] * 6])
    experiment = experiment_of(case)
    assert np.asarray(case.parameters[0].leaf(experiment)).item() == 0.2
    assert [p.name for p in case.parameters] == ["d", "b.mass", "a.armature, b.armature"]
    assert [p.unit for p in case.parameters] == ["", "kg", "kg m^2"]


def test_equal_paths_give_equal_functions():
    case = read_case(RACKET)
    experiment = experiment_of(case)
    first, second = (find_leaf("model.system.inertia", experiment) for _ in range(2))
    assert first == second and hash(first) == hash(second)


# --- bad cases


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("title = ", "title : ", r"case\.toml is not TOML: .*line 5"),
        ("[method]", "[methods]", r"there is no `methods` here. Did you mean `method`"),
        ('title = "Arm on a damped hinge"', "title = 3", r"`title` must be a text; got 3"),
        ('rotation = "q', 'rotation = "k', r"\[model\]: There is no rotation 'kuaterni"),
        ("[model]", '[model]\nproblem = "four_bar"', r"a complete model; remove `problem` or \["),
        ("mass = 1.3 ", "mas = 1.3 ",
         r"\[\[body\]\] 1 \('arm'\): there is no `mas` here. Did you mean `mass`"),
        ("mass = 1.3 ", "", r"\[\[body\]\] 1 \('arm'\): `mass` is missing, an argument of Body"),
        ("mass = 1.3 ", "mass = -1.3 ", r"\[\[body\]\] 1 \('arm'\): `Body\(mass"),
        ('"Revolute"', '"Revolut"',
         r"\[\[joint\]\] 1 .'hinge'.: There is no `type` 'Revolut'. Did"),
        ('child = "arm"', 'child = "arn"', r"case\.toml: .*'arn'.* Did you mean 'arm'"),
        ("axis = [0.0, 0.0, 1.0]", 'axis = [0.0, 0.0, 1.0]\nmotion = "sin(t)"',
         r"`motion = 'sin\(t\)'` must be the name of an \[\[input\]\]"),
        ('joint = "hinge"\nst', 'joint = "hing"\nst',
         r"no joint called 'hing'. Did you mean 'hinge'"),
        ("[data]", "[state]\nvelocity = [1.0]\n[data]", r"\[state\]: `State\(velocity=...\)` must"),
        # data
        ('"angle.csv"', '"angles.csv"', r"There is no file .*angles\.csv"),
        ('file = "angle.csv"\n', "",
         r"\[\[sensor\]\] 1: `file` is missing; name the file of the samples"),
        ('"angle_deg"', '"angle"', r"angle\.csv, line 1: there is no column 'angle'.*'angle_deg'"),
        ('["angle_deg"]', '["angle_deg", "t_ms"]', r"must name 1 columns for the sensor 'coordina"),
        ('unit = "deg"\n', 'unit = "degr"\n', r"sensor\]\] 1: The unit 'degr' is not known. Did"),
        ('unit = "deg/s"\nnoise', 'unit = "deg"\nnoise',
         r"Column 'gx' of the gyroscope of arm: The"),
        ('noise_unit = "deg"\n', "", r"\[\[sensor\]\] 1: the unit of `noise` is ambiguous"),
        ('noise_unit = "deg"\n', 'noise_unit = "mm/s"\n',
         r"sensor\]\] 1: The unit 'mm/s' is one of"),
        ("noise = 0.2\n", "noise = -0.2\n",
         r"noise of the sensor 'coordinate of hinge' must be pos"),
        ("noise = 0.2\n", 'noise = "2"\n',
         r"`noise` must be a number or an array of numbers; got '2'"),
        ('time_unit = "ms"', 'time_unit = "mm"', r"Column 't_ms': The unit 'mm' is one of length"),
        ('time_unit = "ms"', 'run = "toss"', r"line 1: there is no column 'toss'"),
        (TEXT[TEXT.index('type = "Gyroscope"') : TEXT.index("[[parameter]]")],
         'type = "Attitude"\nbody = "arm"\nfile = "rates.csv"\ncolumns = ["gx", "gy", "gz"]\n',
         r"Say how the columns of the attitude of arm write an orientation"),
        ('unit = "deg"\n', 'unit = "deg"\nunits = ["deg"]\n',
         r"use either `unit` for all columns, or `un"),
        ('unit = "deg"\n', 'units = ["deg", "m"]\n', r"`units` must have 1 entries"),
        # parameters
        ("forces.Tor", "force.Tor", r"model\.system has no 'force'; .* Did you mean 'forces'"),
        ("bodies.arm.", "bodies.arn.",
         r"1 \('inertia'\): .*model.system.bodies has no 'arn'; there"),
        ("arm.inertia", "arm",
         r"must end at an array of numbers; model.system.bodies.arm is Body. C"),
        ("arm.inertia", "arm.inertia.T",
         r"model.system.bodies.arm.inertia has no 'T'; it has no parts"),
        ("arm.inertia", "arm.__init__", r"cannot be read at '.__init__'"),
        ("arm.inertia", "arm.kinetic_energy",
         r"bodies.arm has no 'kinetic_energy'; there are: mass"),
        ("model.system.b", "(model).system.b", "begins with no part of the model"),
        ("which = [2]", "which = [3]",
         r"1 \('inertia'\): .*`which` must be between 0 and 2; got 3"),
        ("which = [2]", "which = [2.5]", r"`which` must be an array of integers; got \[2.5"),
        ('transform = "positive"', 'transform = "log"', r"There is no `transform` 'log'"),
        ("lower = 0.0\n", "", r"2 \('damping'\): `lower` is missing, an argument of Bounded"),
        ("lower = 0.0\n", "lower = 2.0\n", r"2 \('damping'\): `Bounded"),
        ('unit = "kg m^2"', 'unit = "mm"', r"`unit` is a label.*write 'm' for 'mm'"),
        ('path = "model.system.bodies.arm.inertia"\n', "",
         r"1 \('inertia'\): .*begins with no part"),
        # method
        ('"dopri5"', '"dopri6"', r"\[method\]: There is no solver 'dopri6'. Did you mean 'dopri"),
        ('"dopri5"', '"euler"', r"`solver` must have an error estimate"),
        ("rtol = 1e-8", "rtol = 0", r"\[method\]: `rtol 0` is below what double precision reaches"),
        ("horizons = [0.3, 1.0]", "max_iterations = 0",
         r"`max_iterations` must be 1 or more; got 0"),
        ("[method]", '[method]\nprocess_noise = {a = "x"}',
         r"must be a number, \"estimated\" or an"),
        ("[method]", "[method]\nprocess_noise = {a = 1}", r"needs `method=\"prediction-error\"`"),
        ("[method]", '[output]\nnetcdf = "no/a.nc"\n[method]', r"Cannot write .*no/a\.nc"),
        ("[method]", '[output]\nreport = "a.pdf"\n[method]',
         r"writes .md, .txt, .json or .csv; got"),
        ("[method]", '[output]\nnetcdf = "a.md"\n[method]', r"`--out` writes .nc, .nc4 or .h5"),
    ],
)  # fmt: skip
def test_invalid_cases_raise(tmp_path, old, new, message):
    assert_refused(message, "identify", case_of(tmp_path, replace_text(old, new)))


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        ("angle.csv", "20,-0.158", "20,", r"line 3: column 'angle_deg' is empty.*gaps=\"mask\""),
        ("angle.csv", "20,-0.158", "-20,-0.158", r"line 3: .* goes from 0 \(line 2\) to -20"),
        ("rates.csv", "gx,gy,gz", "gx,gx,gz", r"line 1: there are 2 columns called 'gx'"),
    ],
)
def test_invalid_data_raise(tmp_path, file, old, new, message):
    path = case_of(tmp_path, TEXT)
    data = (tmp_path / file).read_text()
    assert old in data
    (tmp_path / file).write_text(data.replace(old, new, 1))
    assert_refused(message, "identify", path)


def test_sensor_files_must_have_equal_runs(tmp_path):
    path = case_of(tmp_path, TEXT.replace('time_unit = "ms"', 'run = "toss"'))
    (tmp_path / "angle.csv").write_text("toss,t_ms,angle_deg\na,0,1\na,1,1\nb,0,1\nb,1,1\n")
    (tmp_path / "rates.csv").write_text("toss,t_ms,gx,gy,gz\na,0,1,1,1\na,1,1,1,1\n")
    message = r"the same runs in the same order; angle\.csv: \['a', 'b'\]; rates\.csv: \['a'\]"
    assert_refused(message, "identify", path)


def test_fewer_data_than_parameters_raise(tmp_path):
    text = RACKET.read_text().replace("../../datasets/racket_flips/flips.csv", "few.csv")
    (tmp_path / "few.csv").write_text(
        "trial,time_s,omega1_rad_s,omega2_rad_s,omega3_rad_s\n1,0,1,2,3\n1,0.1,1,2,3\n"
    )
    text += '\n[[parameter]]\nname = "start"\npath = "state0.orientation"\n'
    text += 'transform = "orientation"\nper_run = true\n'
    assert_refused(
        "There are 6 scalar samples for 9 parameters", "identify", case_of(tmp_path, text)
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[model]", r"a model is one of: `problem`, the name of a problem"),
        ('[model]\nformulatoin = "relative"',
         r"\[model\]: there is no `formulatoin` here. Did you mean `formulation`"),
        ('[model]\nproblem = "fourbar"', r"\[model\]: There is no problem 'fourbar'. Did you mean"),
        (RACKET.read_text().replace("../..", str(ROOT)) + '[[joint]]\ntype = "Weld"',
         r"\[joint\] is not used by this kind of model"),
        ('[model]\nproblem = "four_bar"\narguments = { n = 2 }',
         r"\[arguments\]: there is no `n` here"),
        ("body = 3", r"`body` must be an array; got 3"),
        ("body = [3]", r"`body` must be written as tables `\[\[body\]\]`; got 3"),
        ('[model]\nproblem = "four_bar"', r"there is no \[\[sensor\]\]"),
    ],
)  # fmt: skip
def test_invalid_models_raise(tmp_path, text, message):
    assert_refused(message, "identify", case_of(tmp_path, text))


def test_data_from_netcdf(tmp_path):
    """A NetCDF file has the rates in one variable, with its unit as an attribute."""
    path = case_of(
        tmp_path,
        replace_text(
            'file = "rates.csv"\ncolumns = ["gx", "gy", "gz"]\nunit = "deg/s"',
            'file = "rates.nc"\ntime = "t"\ncolumns = "rates"\ntime_unit = "ms"',
        ),
    )
    raw = np.loadtxt(PENDULUM / "rates.csv", delimiter=",", skiprows=1)
    xarray.Dataset(
        {"rates": (("t", "axis"), raw[:, 1:], {"units": "deg/s"}), "t": ("t", raw[:, 0])}
    ).to_netcdf(tmp_path / "rates.nc", engine="h5netcdf")
    (run,), (other,) = (
        read_case(path).measurements,
        read_case(PENDULUM / "pendulum.toml").measurements,
    )
    for k in range(2):
        np.testing.assert_allclose(run.values[k], other.values[k], rtol=1e-12)
        np.testing.assert_array_equal(run.mask[k], other.mask[k])


def test_sensor_errors_are_parameters(tmp_path):
    own = "delay = 0.01\nbias = 0.2\nscale = 1.1\nperiod = inf"
    text = replace_text('joint = "hinge"\nfile', f'joint = "hinge"\n{own}\nfile')
    text = text.replace(
        'body = "arm"\nfile', 'body = "arm"\ndelay = 0.02\nbias = [0, 0, 0.1]\nfile'
    )
    text = text[: text.index("[method]")]
    paths = "sensors[0].sensor.bias", "sensors[0].sensor.scale"
    for path in (
        *paths,
        "sensors[0].delay",
        'sensors["gyroscope of arm"].bias',
        "sensors[1].delay",
    ):
        text += f"[[parameter]]\nname = {path!r}\npath = {path!r}\n"
    case = read_case(case_of(tmp_path, text))
    experiment = experiment_of(case)
    leaves = [p.leaf(experiment) for p in case.parameters[2:]]
    assert [float(x) for x in leaves[:3]] == [0.2, 1.1, 0.01] and float(leaves[4]) == 0.02
    np.testing.assert_array_equal(leaves[3], [0, 0, 0.1])
    assert experiment.sensors[0].sensor.period == np.inf


def test_case_without_parameters_raises(tmp_path):
    text = TEXT[: TEXT.index("[[parameter]]")]
    assert_refused(r"there is no \[\[parameter\]\]", "identify", case_of(tmp_path, text))


def test_forces_are_selected_by_index(tmp_path):
    text = replace_text(
        "[data]", '[[force]]\ntype = "TorsionSpring"\njoint = "hinge"\nstiffness = 1.0\n[data]'
    )
    message = r"forces has 2 called 'TorsionSpring'; select one by its number, 1 or 2, or as one of"
    assert_refused(message, "identify", case_of(tmp_path, text))


def test_process_noise_of_a_case():
    """Numbers, one per coordinate where there are several, and values that are estimated."""
    noise = {"hinge": 0.1, "elbow": "estimated", "arm": [1, "estimated"]}
    table = {"method": "prediction-error", "process_noise": noise}
    options = parse(MethodTable, table, "case.toml").given_values()
    assert options["process_noise"] == {"hinge": 0.1, "elbow": None, "arm": [1.0, None]}
    assert options["method"] == "prediction-error"


def test_missing_case_file_raises(tmp_path):
    assert_refused(r"There is no case .*nothing\.toml", "identify", tmp_path / "nothing.toml")
    (tmp_path / "bytes.toml").write_bytes(b"title = '\xff'")
    assert_refused(r"bytes\.toml is not text in UTF-8", "identify", tmp_path / "bytes.toml")


# --- intervals


def test_methods_of_intervals(tmp_path):
    table = '[intervals]\nprofile = ["damping"]\nposterior = 50\nseed = 3\n'
    methods = read_case(case_of(tmp_path, TEXT + table)).intervals
    assert dict(methods) == {"profile": ("damping",), "posterior": 50, "seed": 3}
    more = methods.add(("posterior",), ("I3",))
    assert dict(more) == {"profile": ("damping", "I3"), "posterior": 50, "seed": 3}
    assert IntervalMethods().add(("posterior",), ()).posterior == 1000
    assert methods.add(("profile",), ()).profile is True
    with pytest.raises(ValueError, match="`--intervals jackknife` must be profile or posterior"):
        methods.add(("jackknife",), ())


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("profile = 3", r"\[intervals\]: `profile` must be true, false or an array of labels"),
        ("posterior = 1", r"\[intervals\]: `posterior` must be 2 or more; got 1"),
        ("samples = 10", r"\[intervals\]: there is no `samples` here"),
    ],
)
def test_invalid_methods_of_intervals(tmp_path, line, message):
    case = case_of(tmp_path, f"{TEXT}[intervals]\n{line}\n")
    assert_refused(message, "identify", case)
