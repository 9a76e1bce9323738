"""Methods of intervals besides the linearised ones: `[intervals]`."""

from typing import NamedTuple

from ...identification.intervals.bootstrap import KINDS
from .table import CaseTable

# Number of refits and of samples of each chain, if a case does not give them.
REFITS, SAMPLES = 500, 1000


class IntervalMethods(NamedTuple):
    """Methods of intervals: parameters with a profile, number of refits, samples of each chain.

    `profile` is `None` for all parameters; `bootstrap` and `posterior` are 0 where they are not
    requested; `kind` of the bootstrap, `None` to choose it by the residuals; `seed` of both.
    """

    profile: tuple[str, ...] | None = ()
    bootstrap: int = 0
    kind: str | None = None
    posterior: int = 0
    seed: int = 0


def read_intervals(top: CaseTable) -> IntervalMethods:
    """Read `[intervals]`.

    **Errors:** `ValueError` naming the table.
    """
    table = top.table("intervals", {})
    profile: tuple[str, ...] | None = ()
    if table.has("profile"):
        given = table.values.pop("profile")
        if isinstance(given, list) and all(isinstance(name, str) for name in given):
            profile = tuple(given)
        elif isinstance(given, bool):
            profile = None if given else ()
        else:
            table.fail(f"`profile` must be true, false or an array of labels; got {given!r}.")
    counts = {}
    for key, least in (("bootstrap", 2), ("posterior", 2), ("seed", 0)):
        if table.has(key):
            counts[key] = table.take(key, "an integer")
            if counts[key] < least:
                table.fail(f"`{key}` must be {least} or more; got {counts[key]}.")
    kind = table.pick("kind", {name: name for name in KINDS}) if table.has("kind") else None
    table.reject_unknown()
    return IntervalMethods(profile, kind=kind, **counts)


def add_methods(
    methods: IntervalMethods, names: tuple[str, ...], profiles: tuple[str, ...]
) -> IntervalMethods:
    """Return the methods of a case with those of the command line.

    **Arguments:** `names` of methods, any of "profile", "bootstrap" and "posterior"; `profiles`,
    parameters whose profile is requested.
    **Errors:** `ValueError` for another name.
    """
    unknown = [name for name in names if name not in ("profile", "bootstrap", "posterior")]
    if unknown:
        raise ValueError(
            f"`--intervals {unknown[0]}` must be profile, bootstrap or posterior; it may be "
            "repeated."
        )
    known = methods.profile
    return methods._replace(
        profile=None if known is None or "profile" in names else (*known, *profiles),
        bootstrap=methods.bootstrap or ("bootstrap" in names) * REFITS,
        posterior=methods.posterior or ("posterior" in names) * SAMPLES,
    )
