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
| `rigidjax identify case.toml` | [fit of parameters](identification.md) |
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

In the tables below a key without a default is required.
"""

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
        "[which one to use](profiles_and_samples.md#which-one-to-trust).",
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
        "`type` and its arguments. Laws (`motion`) are names of inputs; objects (`friction`, `stop`) are tables.\n",
        *by_type(joint_kinds),
        "## [[force]]\n",
        "`type` and its arguments. Laws are numbers, names of inputs, or `{ input = \"u\" }` with `size`, `entry` and `default`.\n",
        *by_type(find_kinds(forces.AbstractForce, forces)),
        "## [[motor]] and [[frame]]\n",
        "Arguments of `rj.Motor` and `rj.Frame`.\n",
        *by_type(frames, "table"),
        "## [fixed_point_body]\n",
        "A body that rotates about a fixed point, instead of bodies and joints.\n",
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
