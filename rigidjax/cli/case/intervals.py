"""Methods of intervals besides the linearised ones: `[intervals]`."""

from typing import NamedTuple

from .table import CaseTable

# Number of samples of each chain, if a case does not give it.
SAMPLES = 1000


class IntervalMethods(NamedTuple):
    """Methods of intervals: parameters with a profile, samples of each chain.

    `profile` is `None` for all parameters; `posterior` is 0 if it is not requested; `seed` is that
    of the posterior.
    """

    profile: tuple[str, ...] | None = ()
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
    for key, least in (("posterior", 2), ("seed", 0)):
        if table.has(key):
            counts[key] = table.take(key, "an integer")
            if counts[key] < least:
                table.fail(f"`{key}` must be {least} or more; got {counts[key]}.")
    table.reject_unknown()
    return IntervalMethods(profile, **counts)


def add_methods(
    methods: IntervalMethods, names: tuple[str, ...], profiles: tuple[str, ...]
) -> IntervalMethods:
    """Return the methods of a case with those of the command line.

    **Arguments:** `names` of methods, any of "profile" and "posterior"; `profiles`, parameters
    whose profile is requested.
    **Errors:** `ValueError` for another name.
    """
    unknown = [name for name in names if name not in ("profile", "posterior")]
    if unknown:
        raise ValueError(
            f"`--intervals {unknown[0]}` must be profile or posterior; it may be repeated."
        )
    known = methods.profile
    return methods._replace(
        profile=None if known is None or "profile" in names else (*known, *profiles),
        posterior=methods.posterior or ("posterior" in names) * SAMPLES,
    )
