"""The reference of case files: keys of each table, and arguments of the classes that they name."""

import inspect
import typing

from rigidjax import bodies, forces, identification, joints, sensors
from rigidjax.cli.base.choices import (
    find_kinds,
    option_name,
    part_kind,
    takes_function,
    takes_only_functions,
)

INTRODUCTION = """# Case files

A case describes a model, its data and a task in [TOML](https://toml.io):

| command | task |
|---|---|
| `rigidjax run case.toml` | simulation |
| `rigidjax model case.toml --html page.html` | tables and a view of the model |
| `rigidjax identify case.toml` | [fit of parameters](identification.md), with `--html`, `--out` and `--report` for the results |
| `rigidjax export case.toml` | [FMUs and C libraries](export.md) |
| `rigidjax regress case.toml` | [linear regression](regression.md#in-a-shell), with tables of its own |

Nothing in a case is evaluated. Unknown keys are rejected, with the closest valid key as a suggestion; values are in SI units where no key
states a unit; file names are relative to the case. A complete small case:

```toml
title = "Pendulum"

[[body]]
name = "arm"
mass = 1.3
inertia = [0.02, 0.06, 0.05]
position = [0.4, 0.0, 0.0]

[[joint]]
name = "hinge"
type = "Revolute"
parent = "ground"
child = "arm"
point = [0.0, 0.0, 0.0]
axis = [0.0, 0.0, 1.0]

[[force]]
type = "Gravity"
vector = [0.0, -9.81, 0.0]

[run]
t1 = 2.0
samples = 101
```

To start a case of your own, copy and modify one of the examples of the repository: `examples/pendulum` has simulated data of an arm on a hinge,
measured by an encoder and a gyroscope at different rates; `examples/wheels` is a spacecraft driven by the torques of its wheels, which are
columns of the data; `examples/racket` has the measured tosses of a tennis racket.

```console
rigidjax identify examples/pendulum/pendulum.toml --html fit.html --out fit.nc
```

In the tables below a key without a default is required.
"""

# Remarks below the tables.
REMARKS = {
    "[model]": """`formulation` is one of `null-space`, `relative`, `absolute`, `euler-parameters`, `hamiltonian`; `relative` uses joint
coordinates, and is fast for open chains. [Models from files](robots.md#in-a-shell) has an example.
""",
    "[state]": """Without `[state]`, a system with joints starts in its reference configuration (with `start_state`: from the first samples of the
sensors, [estimated](recordings.md#pieces-and-their-starts) for each run), a problem in its own initial state, and free bodies in their reference
configuration with the first samples of gyroscopes and attitude sensors. If such a sample is too late to be the initial value (the reading may have
changed by more than its noise since), the initial state is fitted as well, and a note in the report names the sensor. If the initial state is not
fitted and disagrees with a joint sensor, an error is raised.
""",
    "[data]": """[Recordings](recordings.md#files) describes the formats, columns, units, gaps and times, and how keys
[prepare recordings](recordings.md#in-case-files).
""",
    "[[sensor]]": """An encoder that wraps has a `period`, such as `6.283185307179586`, or `inf` if it counts revolutions; by default
[the samples decide](fit_options.md#encoders-and-delays).
""",
    "[[input]]": """```toml
[[input]]
name = "wheels"
columns = ["tx", "ty", "tz"]    # or one column, for a motor or a motion
unit = "mN m"
interpolation = "hold"          # "linear" (default), "hold" or "cubic"
delay = 0.0                     # s; required if it is fitted
extrapolation = "constant"      # "error" (default), "constant" or "zero"
```

An input is an `rj.Signal`, $g\\,x(t - \\tau) + b$, with a separate table for each run: the lines of the data that belong to the run. `file`,
`time`, `run` and the other keys default to those of `[data]`, except `every`. `gain`, `delay` and `bias` can be parameters, such as
`body.moment.delay`. An input of `type = "fourier"` with `frequency`, `sine`, `cosine`, `offset` is an `rj.FourierSeries`.
[Inputs](fit_options.md#inputs) says which interpolation to use.

A law names its input in one of two ways. `torque = "wheels"` puts the signal into the model; `torque = { input = "wheels" }` an
`rj.Input`, with the keys `size` and `entry` (from 0) of a vector and `default`, its value while the case gives none. The short form of the
tables binds names to numbers, arrays or columns:

```toml
[[motor]]
joint = "hip"
torque = { input = "torques", size = 2, entry = 0 }

[[force]]
type = "DCMotor"
joint = "knee"
command = { input = "volts" }
# ...

[inputs]
volts = 12.0                                                            # as [[input]] with name = "volts", value = 12.0
torques = { file = "torques.csv", columns = ["t1", "t2"], unit = "N mm" }   # the keys of [[input]], without `name`
```

An input that is neither bound nor has a default, a name that no law uses, and another number of columns than that of the law are errors that
name the table. Leaves of a bound input can be fitted: `torque.value` of a number, `torque.gain` of a signal.
""",
    "[[parameter]]": """```toml
[[parameter]]
name = "hinge.damping"          # unit and range follow from the class of the part

[[parameter]]
name = "arm.inertia"
transform = "principal-inertia"    # the default of an inertia; a transform that is stated may have further keys
fixed = ["I3"]
start = [0.02, 0.06, 0.05]

[[parameter]]
name = "start.hinge"            # change of the start of a joint or free body; "start.hinge.rate" of its rate
```

With a `path` the name is any name for reports, and the path names the array by its fields, as in
`path = "model.system.bodies.arm.inertia"`: `model.system` holds `bodies`, `joints` and `forces` (a fixed-point body: `inertia`, `potential`,
`moment`), `state0` is the initial state, and `sensors` have biases, scales, positions and delays (for a `JointCoordinate` with a `delay` the bias
is `sensors[0].sensor.bias`). Select items by name or index (`forces[1]`), and forces by their type if it is unique. Names that are not
identifiers are written as `bodies["rod 1"]`; one of several forces of a type is `forces["DCMotor knee"]`, by its joint, body or frame.

[Parameters](identification.md#parameters) says what the transforms, `per_run`, `start` and `labels` do. The initial state of any system can be a
parameter that satisfies all joints:

```toml
[[parameter]]
name = "start"
path = "start_state"
positions = true      # default; `false` keeps the positions fixed
rates = true          # default; `false` keeps the rates fixed
per_run = true        # default, unlike other parameters
```

A [prior](fit_options.md#priors) is a table:

```toml
prior = { type = "log-det", value = [0.02, 0.05, 0.05], weight = 100.0 }
prior = { type = "gaussian", mean = 0.05, std = 0.01 }
```
""",
    "[method]": """`noise` names [models of noise](fit_options.md#noise-that-is-not-white), `process_noise` disturbances of the [motion](prediction_error.md):

```toml
[method]
noise = "ar1"                                                  # for all sensors, or by sensor:
# noise = { gyroscope = "random-walk", "coordinate of hinge" = "ar(p)" }
# process_noise = { hinge = 0.002, elbow = "estimated" }
```
""",
    "[intervals]": """On the command line: `--intervals profile --intervals posterior`, and `--profile damping` for one parameter.
""",
    "[output]": """The options `--out`, `--html`, `--report` override them. All files are written together at the end. No output may overwrite the case or
its data, and its extension must match the format. Ctrl-C stops the command at once, with code 130 and without partial files.
""",
}

REQUIRED = "required"
# Keys by table, with default and meaning. `tests/docs/test_references.py` compares them with the reader.
TABLES: dict[str, tuple[str, dict[str, tuple[str, str]]]] = {
    "Top level": (
        "Keys above all tables.",
        {
            "title": ("name of the file", "title of reports and pages"),
            "model": ("", '`model = "arm.urdf"` is short for `[model]` with `file`'),
        },
    ),
    "[model]": (
        "Formulation, and optionally the source of the model. Without `problem` or `file` the model is in the tables of bodies.",
        {
            "problem": ("", "name of a problem, see `rigidjax list`"),
            "arguments": ("", "table of arguments of the problem, such as `{ rate = 5.0 }`"),
            "file": ("", "URDF, SDF or MJCF file; the following keys are options of its loader"),
            "fixed_base": ("as the file says", "whether the base is fixed to the ground"),
            "mimic": ("true", "whether mimic joints become couplings"),
            "lump_fixed": ("as the loader", "whether links on fixed joints become one body"),
            "meshes": ("as the loader", "whether meshes are read for the viewer"),
            "physical": ('`"keep"`', 'impossible inertias: `"keep"`, `"nearest"` or `"error"`'),
            "friction": ("true", "whether dry friction of joints is kept"),
            "friction_velocity": ("of the loader", "velocity below which friction is smooth, rad/s or m/s"),
            "stops": ("", "table of an `rj.Stop` for joint limits"),
            "gravity": ("of the file", "vector, m/s^2"),
            "ignore": ("`[]`", "unsupported features to leave out, as the error names them"),
            "packages": ("`[]`", "folders in which `package://` is searched"),
            "formulation": ('`"null-space"`', "formulation, as in `rigidjax run --formulation`"),
            "rotation": ('`"quaternion"`', "rotation parametrization"),
            "rates": ('`"body"`', 'components of the angular velocity: `"body"` or `"space"`'),
            "recharting": ("true", "whether three-parameter rotations change charts"),
            "index": ("0", "differentiation index of absolute coordinates, 0 to 3"),
        },
    ),
    "[state]": (
        "State at the first sample; omitted values are those of the reference configuration.",
        {
            "joints": ("", "joint coordinates by name, rad or m: `{ hinge = 0.44 }`; loops are closed"),
            "joint_rates": ("", "joint rates by name, rad/s or m/s"),
            "position": ("", "centres of mass, one row for each body, m, space components"),
            "orientation": ("", "quaternions, scalar first, one row for each body"),
            "velocity": ("", "velocities, one row for each body, m/s, space components"),
            "angular_velocity": ("", "angular velocities, one row for each body, rad/s, body components"),
            "angles": ("", "unwrapped joint angles by name, rad, beside the rows"),
        },
    ),
    "[data]": (
        "Defaults for all sensors and inputs, each of which may override them.",
        {
            "file": ("", "file of the samples: text, NetCDF, NumPy, Parquet, MATLAB, MCAP"),
            "time": ("", "column of the times"),
            "time_unit": ("s", "unit of the times"),
            "run": ("", "column that numbers the runs"),
            "gaps": ('`"raise"`', '`"mask"` accepts missing samples'),
            "every": ("1", "uses every n-th sample of each sensor"),
            "delimiter": ("detected", "separator of cells in text files"),
            "decimal": ("detected", "decimal sign in text files"),
            "shift": ("0", "s, added to the times"),
            "align": ("", "table `column`, `max_shift`, `reference` that [finds the shift](recordings.md#clocks)"),
            "cutoff": ("", "low-pass filter without delay, Hz"),
            "rate": ("", "rate at which samples are interpolated, Hz"),
            "cut": ("", "table `flag`, `length`, `gap`, `shortest` that [cuts runs](recordings.md#in-case-files)"),
        },
    ),
    "[[sensor]]": (
        "A measured quantity. The arguments of its class and the keys of `[data]` are further keys.",
        {
            "type": (REQUIRED, "class of the sensor, see below"),
            "columns": (REQUIRED, "columns in the order of the values of the sensor"),
            "unit": ("unit of the sensor", "unit of all columns"),
            "units": ("", "one unit for each column"),
            "noise": ("estimated", "standard deviation, one or one for each channel"),
            "noise_unit": ("unit of the sensor", "unit of `noise`"),
            "orientation": ("", 'of an `Attitude`: `"wxyz"`, `"xyzw"`, `"matrix"` or a sequence of Euler angles'),
            "delay": ("0", "s, by which the sensor reads late"),
            "skew": ("", "ppm, by which the clock of the sensor is fast; required if it is fitted"),
        },
    ),
    "[[input]]": (
        "Samples or values of a named law. `[inputs]` binds names to the same keys without `name`, or to numbers.",
        {
            "name": (REQUIRED, "name that laws of the model refer to"),
            "type": ('`"signal"`', '`"fourier"` has the arguments of `rj.FourierSeries`'),
            "value": ("", "a constant value, instead of columns"),
            "columns": ("", "columns of the samples"),
            "unit": ("SI", "unit of the columns"),
            "interpolation": ('`"linear"`', '`"linear"`, `"hold"` or `"cubic"`'),
            "extrapolation": ('`"error"`', '`"error"`, `"constant"` or `"zero"`'),
            "gain": ("1", "factor of the samples"),
            "delay": ("", "s; required if it is fitted"),
            "bias": ("0", "added to the samples"),
        },
    ),
    "[[parameter]]": (
        "A fitted quantity; see [parameters](identification.md#parameters).",
        {
            "name": (REQUIRED, "[name of an array](models.md#names-of-arrays), such as `arm.inertia`; with `path` any name for reports"),
            "path": ("`name`", 'fields of an array, such as `model.system.bodies.arm.inertia`, or `"start_state"`'),
            "transform": ('that of the class; with `path` `"free"`', "transform, see below, with its arguments `which`, `fixed`, `lower`, `upper`"),
            "which": ("all", "indices of the fitted elements"),
            "fixed": ("", "names of moments that are held"),
            "lower": ("", "lower bound"),
            "upper": ("", "upper bound"),
            "tied": ("`[]`", "names, or with `path` paths, of arrays with the same value"),
            "per_run": ("false", "whether each run has its own value (true for `start_state` and `start.` names)"),
            "start": ("from the model", "start value of the fit, SI units"),
            "unit": ("that of the class", "label of the unit"),
            "labels": ("", "labels of the components"),
            "prior": ("", "table of a prior, with `type`, see below"),
            "positions": ("true", "of `start_state`: whether positions are fitted"),
            "rates": ("true", "of `start_state`: whether velocities are fitted"),
        },
    ),
    "[method]": (
        "Options of `rj.identify`.",
        {
            "solver": ('`"dopri8"`', "adaptive solver"),
            "rtol": ("1e-8", "relative tolerance"),
            "atol": ("1e-8", "absolute tolerance"),
            "projection": ("true", "projection onto the constraints after each step"),
            "max_steps": ("of `rj.identify`", "limit of steps of a run"),
            "max_iterations": ("of `rj.identify`", "limit of iterations of the fit"),
            "tolerance": ("of `rj.identify`", "tolerance of the fit"),
            "horizons": ("", "end times in s, or fractions of the runs, of a fit in stages"),
            "segments": ("", "multiple shooting: number of pieces of each run"),
            "starts": ("1", "number of start values"),
            "start_spread": ("of `rj.identify`", "relative spread of the start values"),
            "seed": ("0", "seed of random start values"),
            "loss": ('`"squares"`', '`"squares"`, `"huber"` or `"cauchy"`'),
            "noise": ("white", 'noise model: `"ar1"`, `"gp"`, ..., or a table by sensor'),
            "covariance": ("by tests of the residuals", "method of the standard deviations"),
            "method": ('`"shooting"`', '`"shooting"` or `"prediction-error"`'),
            "process_noise": ("", 'standard deviations by name, or `"estimated"`'),
        },
    ),
    "[intervals]": (
        "Intervals beside the linearised ones, in `rigidjax identify`; see "
        "[which one to use](intervals.md#which-one-to-trust).",
        {
            "profile": ("false", "true for the profiles of all parameters, or an array of labels"),
            "posterior": ("none", "number of samples of each chain"),
            "seed": ("0", "seed of the posterior"),
        },
    ),
    "[run]": (
        "Settings of `rigidjax run case.toml`, and the method of `rigidjax export`.",
        {
            "t1": ("of the problem", "end time, s"),
            "samples": ("1001", "number of saved times, both ends included"),
            "solver": ('`"dopri8"`', "solver"),
            "dt": ("", "fixed step, s"),
            "rtol": ("1e-9", "relative tolerance"),
            "atol": ("`rtol`", "absolute tolerance"),
            "projection": ("true", "projection onto the constraints after each step"),
        },
    ),
    "[output]": (
        "Output files, which options of the command override.",
        {
            "netcdf": ("", "results, `.nc`"),
            "html": ("", "page with figures and a view"),
            "report": ("", "report: `.md`, `.txt`, `.json` or `.csv`"),
        },
    ),
}  # fmt: skip

SHAPES = ("box", "cylinder", "sphere", "cone", "rod", "ellipsoid")


def on_files(files, config):
    """Add the page."""
    # Tests of the page do without MkDocs.
    from mkdocs.structure.files import File  # pyright: ignore[reportMissingImports]

    files.append(File.generated(config, "case_files.md", content=page()))
    return files


def page():
    """Return the page in Markdown."""
    parts = [INTRODUCTION]
    for name, (text, keys) in TABLES.items():
        parts += [f"## {name}\n", f"{text}\n", "| key | default | meaning |", "|---|---|---|"]
        parts += [
            f"| `{key}` | {default} | {meaning} |" for key, (default, meaning) in keys.items()
        ]
        parts.append("")
        if name in REMARKS:
            parts.append(REMARKS[name])
        if name == "[model]":
            parts += model_parts()
        if name == "[[sensor]]":
            parts += by_type(find_kinds(sensors.AbstractSensor, sensors))
        if name == "[[parameter]]":
            transforms = find_kinds(identification.AbstractTransform, identification)
            named = ", ".join(
                f"`{name}`" for name in ["free", *map(option_name, transforms.values())]
            )
            parts += [f"Transforms: {named}. Priors:\n"]
            priors = find_kinds(identification.AbstractPrior, identification)
            parts += by_type({option_name(kind): kind for kind in priors.values()})
    return "\n".join(parts)


def model_parts():
    """Return the tables of bodies, joints and forces, from the signatures of their classes."""
    frames = {"[[frame]]": bodies.Frame, "[[motor]]": forces.Motor}
    shapes = {shape: getattr(bodies.Body, shape) for shape in SHAPES}
    joint_kinds = find_kinds(joints.AbstractJoint, joints)
    joint_kinds |= find_kinds(joints.AbstractConstraint, joints)
    laws = {
        kind: find_kinds(base, bodies)
        for kind, base in (
            ("potential", bodies.AbstractPotential),
            ("moment", bodies.AbstractMoment),
        )
    }
    return [
        "## [[body]]\n",
        "Arguments of `rj.Body`, or `shape` with the arguments of a shape and a pose.\n",
        *by_type({"(none)": bodies.Body, **shapes}, "shape"),
        "## [[joint]]\n",
        "`type` and its arguments; `point` is optional at a frame. Laws (`motion`) are names of inputs; objects are tables, as in "
        "`friction = { coulomb = 0.3, velocity = 0.001 }` and `stop = { stiffness = 500.0 }`. Your own joints, forces and sensors are types "
        "as well ([extending](extending.md#in-case-files-and-on-the-command-line)).\n",
        *by_type(joint_kinds),
        "## [[force]]\n",
        "`type` and its arguments. Laws are numbers, names of inputs, or `{ input = \"u\" }` with `size`, `entry` and `default`.\n",
        *by_type(find_kinds(forces.AbstractForce, forces)),
        "## [[motor]] and [[frame]]\n",
        "Arguments of `rj.Motor`, with `torque` a number or an input, and of `rj.Frame`, whose `name` may replace the name of a body in joints, "
        "forces and sensors.\n",
        *by_type(frames, "table"),
        "## [fixed_point_body]\n",
        "A body that rotates about a fixed point, instead of bodies and joints. `moment` is a table such as "
        '`{ type = "QuadraticDrag", coefficient = 1e-5 }`, or the name of an input.\n',
        *by_type({"(table)": bodies.FixedPointBody}),
        "`potential` and `moment` are tables with `type`:\n",
        *by_type({**laws["potential"], **laws["moment"]}),
    ]  # fmt: skip


def by_type(kinds, head="type"):
    """Return a table of classes with their required and optional arguments."""
    rows = [f"| `{head}` | required | optional |", "|---|---|---|"]
    for name, kind in kinds.items():
        required, optional = [], []
        for key, parameter in inspect.signature(kind).parameters.items():
            if parameter.kind is parameter.VAR_KEYWORD:
                optional += ["`position`", "`orientation`", "`velocity`", "`angular_velocity`"]
            elif takes_only_functions(parameter) and not takes_function(parameter):
                continue
            elif parameter.default is parameter.empty:
                required.append(f"`{key}`")
            else:
                optional.append(default_of(key, parameter))
        rows.append(f"| `{name}` | {', '.join(required)} | {', '.join(optional)} |")
    return [*rows, ""]


def default_of(key, parameter):
    """Return an argument with its default as a case writes it."""
    value, part = parameter.default, part_kind(parameter)
    if part is not None:
        return f"`{key}` (table of `rj.{part.__name__}`)"
    if value is None or not isinstance(value, str | int | float | tuple | bool):
        return f"`{key}`"
    text = str(value).lower() if isinstance(value, bool) else toml(value)
    return f"`{key} = {text}`"


def toml(value: typing.Any) -> str:
    if isinstance(value, tuple):
        return "[" + ", ".join(map(toml, value)) + "]"
    return f'"{value}"' if isinstance(value, str) else repr(value)
