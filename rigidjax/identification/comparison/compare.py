"""Comparison of fitted models of the same data."""

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float

from ...checks import find_duplicates
from ...io.document import Block, Bullets, Paragraph, Table, std_text, to_markdown
from ..result.result import Fit
from .likelihood import Likelihood, check_same_data, cross_validate, likelihood

# Difference of AICc below which the data do not decide, and p-value that rejects a smaller model.
_UNDECIDED, _REJECTED = 2.0, 0.05
# Deviance by which a smaller model may fit better before the larger one counts as not converged.
_BETTER = 1e-2


@dataclasses.dataclass(frozen=True)
class LikelihoodRatio:
    """Likelihood-ratio test of a model within a larger one.

    **Attributes:** `smaller`, `larger`, names of the models; `statistic`, the decrease of the
    deviance; `freedom`, number of additional parameters of the larger model, the degrees of freedom
    of the chi-square distribution; `p_value`, the probability of a larger statistic if the smaller
    model is true.
    """

    smaller: str
    larger: str
    statistic: float
    freedom: int
    p_value: float


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class ModelComparison:
    r"""Criteria of M models of the same data.

    **Attributes:**

    - `names`: of the M models.
    - `likelihoods`: with the deviance $-2\log L$, the number of parameters, AIC, AICc and BIC of
      each.
    - `odds` (M,): relative probabilities $e^{-\Delta/2}$ by AICc, with the sum one.
    - `ratios`: a `LikelihoodRatio` for each pair of models that were declared nested.
    - `predicted` (M, B): deviance of each run, predicted by a fit without it; NaN for a model that
      could not be fitted, empty for a single run or without cross-validation.
    - `best`: name of the model that the data support, the smallest one if they do not decide.
    - `notes`: limits of the comparison.
    """

    names: tuple[str, ...]
    likelihoods: tuple[Likelihood, ...]
    ratios: tuple[LikelihoodRatio, ...]
    predicted: Float[np.ndarray, "M B"]
    notes: tuple[str, ...]

    @property
    def odds(self) -> Float[np.ndarray, " M"]:
        """Relative probabilities of the models by AICc, with the sum one."""
        criterion = np.array([x.aicc for x in self.likelihoods])
        odds = np.exp(-0.5 * (criterion - criterion.min()))
        return odds / odds.sum()

    @property
    def best(self) -> str:
        """Name of the model that the data support, the smallest one if they do not decide."""
        criterion = np.array([x.aicc for x in self.likelihoods])
        best = self.names[int(np.argmin(criterion))]
        rejected = [r.smaller for r in self.ratios if r.larger == best and r.p_value < _REJECTED]
        candidates = [
            (x.num_parameters, name)
            for x, name, value in zip(self.likelihoods, self.names, criterion, strict=True)
            if value <= criterion.min() + _UNDECIDED and name not in rejected
        ]
        return min(candidates)[1]

    @property
    def sentence(self) -> str:
        """Sentence on the model to use, and how clearly the data support it."""
        best = self.best
        k = self.names.index(best)
        others = [i for i in range(len(self.names)) if i != k]
        criterion = [x.aicc for x in self.likelihoods]
        rival = min(others, key=lambda i: criterion[i])
        gap = criterion[rival] - criterion[k]
        if abs(gap) < _UNDECIDED:
            text = (
                f"The data do not decide between {best!r} and {self.names[rival]!r} (AICc differs "
                f"by {abs(gap):.2g}); {best!r} has fewer parameters"
                if self.likelihoods[k].num_parameters < self.likelihoods[rival].num_parameters
                else f"The data support {best!r} only weakly: AICc prefers it to "
                f"{self.names[rival]!r} by {gap:.2g}"
            )
        else:
            text = (
                f"Use {best!r}: AICc prefers it to {self.names[rival]!r} by {gap:.3g} "
                f"(odds {np.exp(0.5 * min(gap, 1400.0)):.2g} to 1)"
            )
        parts = [text]
        for r in self.ratios:
            if best in (r.smaller, r.larger):
                verdict = "rejects" if r.p_value < _REJECTED else "does not reject"
                parts.append(
                    f"the likelihood ratio {verdict} {r.smaller!r} within {r.larger!r} "
                    f"(p {_p_text(r.p_value)})"
                )
        bic = self.names[int(np.argmin([x.bic for x in self.likelihoods]))]
        if bic != best:
            parts.append(f"BIC prefers {bic!r}")
        if self.predicted.size:
            parts.append(self._prediction_text(k, rival))
        return "; ".join(parts) + "."

    def _prediction_text(self, k: int, rival: int) -> str:
        """Return how two models compare in the prediction of runs that were left out."""
        by_run = self.predicted[rival] - self.predicted[k]
        if not np.isfinite(by_run).all():
            return "a model could not be fitted without some of the runs"
        gain, error = float(by_run.sum()), float(np.sqrt(len(by_run) * by_run.var(ddof=1)))
        verdict = "better than" if gain > 2 * error else "as well as"
        verdict = "worse than" if gain < -2 * error else verdict
        return (
            f"runs left out are predicted {verdict} by {self.names[rival]!r} (deviance "
            f"{-gain:+.3g} +- {std_text(error)})"
        )

    def to_markdown(self) -> str:
        """Return the table of the criteria, the tests, the sentence and the notes as Markdown."""
        parts: list[Block] = [self.table]
        if self.ratios:
            rows = [
                (f"{r.smaller} in {r.larger}", f"{r.statistic:.4g}", r.freedom, _p_text(r.p_value))
                for r in self.ratios
            ]
            parts.append(Table(("likelihood ratio", "statistic", "degrees of freedom", "p"), rows))
        return to_markdown([*parts, Paragraph(self.sentence), Bullets(self.notes)])

    @property
    def table(self) -> Table:
        """The criteria; all after the deviance are differences from the smallest one."""
        values = np.array([[x.deviance, x.aic, x.aicc, x.bic] for x in self.likelihoods])
        predicted = self.predicted.sum(axis=1) if self.predicted.size else None
        rows = []
        for k, name in enumerate(self.names):
            differences = values[k, 1:] - values[:, 1:].min(axis=0)
            score = "-" if predicted is None else f"{predicted[k] - np.nanmin(predicted):.4g}"
            rows.append(
                (
                    name,
                    str(self.likelihoods[k].num_parameters),
                    f"{values[k, 0]:.6g}",
                    *(f"{x:.4g}" for x in differences),
                    f"{self.odds[k]:.2g}",
                    score,
                )
            )
        return Table(
            ("model", "parameters", "deviance", "AIC", "AICc", "BIC", "odds",
             "deviance of runs left out"),
            rows,
        )  # fmt: skip

    def __repr__(self) -> str:
        return "\n".join([str(self.table), self.sentence, *self.notes])


def compare_models(
    fits: Sequence[Fit] | Mapping[str, Fit],
    names: Sequence[str] | None = None,
    *,
    nested: Sequence[tuple[str, str]] = (),
    folds: int = 5,
) -> ModelComparison:
    r"""Compare fitted models of the same data: which one do the data support, and how surely.

    The likelihoods are those of normal noise, given, estimated or with a noise model. AIC, AICc and
    BIC compare any models. The likelihood ratio of models that are declared nested is tested
    against the chi-square distribution. It holds for parameters inside their bounds; a note names
    parameters of the larger model with bounds. In cross-validation every fold of runs is left out
    once, all parameters are fitted to the other runs, and the runs left out are predicted;
    parameters with one value per run are fitted to them first.

    ```python
    with_damping = rj.identify(model, runs, [stiffness, damping])
    without = rj.identify(model, runs, [stiffness])
    fits = {"with damping": with_damping, "without": without}
    print(rj.compare_models(fits, nested=[("without", "with damping")]))
    ```

    **Arguments:** `fits`, two or more converged fits of the same measurements, or a mapping from
    names to fits; `names`, of the models, by default their numbers; `nested`, pairs of names, each
    of a model and of a larger one that contains it; `folds`, the number of groups of runs for
    cross-validation, at most the number of runs; 0 for none.
    **Returns:** a `ModelComparison`.
    **Errors:** `TypeError` and `ValueError` for other arguments, fits that did not converge, of
    different data, or with a robust loss.
    **Source:** Burnham and Anderson, Model Selection and Multimodel Inference (2002), chapter 2.
    """
    if isinstance(fits, Mapping):
        names = tuple(fits) if names is None else names
        fits = tuple(fits.values())
    fits = _check_fits(fits)
    names = tuple(str(k + 1) for k in range(len(fits))) if names is None else tuple(names)
    if len(names) != len(fits) or find_duplicates(names):
        raise ValueError(
            f"`compare_models(names=...)` must be {len(fits)} different names; got {names}."
        )
    num_runs = len(fits[0].run_names)
    if folds < 0 or folds == 1:
        raise ValueError(
            f"`compare_models(folds=...)` must be 0 or a number of groups above 1; got {folds}."
        )
    notes = _notes(fits, names)
    ratios = _test_nested(dict(zip(names, fits, strict=True)), nested, notes)
    predicted = np.zeros((len(fits), 0))
    if folds and num_runs > 1:
        rows = [cross_validate(fit.optimum, folds) for fit in fits]
        predicted = np.stack([np.full(num_runs, np.nan) if r is None else r for r in rows])
    elif folds:
        notes.append("There is a single run: none can be left out for a prediction.")
    return ModelComparison(
        names=names,
        likelihoods=tuple(map(likelihood, fits)),
        ratios=ratios,
        predicted=predicted,
        notes=tuple(notes),
    )


def _check_fits(fits: Sequence[Fit]) -> tuple[Fit, ...]:
    fits = tuple(fits)
    wrong = [type(fit).__name__ for fit in fits if not isinstance(fit, Fit)]
    if wrong:
        raise TypeError(f"`compare_models(fits=...)` takes results of `identify`; got {wrong[0]}.")
    if len(fits) < 2:
        raise ValueError(f"`compare_models(fits=...)` takes two or more fits; got {len(fits)}.")
    for number, fit in enumerate(fits, 1):
        if not fit.converged:
            raise ValueError(
                f"`compare_models(fits=...)` takes converged fits; fit {number} ended with: "
                f"{fit.result}."
            )
    check_same_data(fits)
    return fits


def _notes(fits: Sequence[Fit], names: Sequence[str]) -> list[str]:
    """Return assumptions of the comparison that the fits contradict."""
    notes = []
    for fit, name in zip(fits, names, strict=True):
        tests = [w for channels in fit.whiteness.values() for w in channels.values() if w]
        if tests and min(w.p_value for w in tests) < 0.01 / len(tests):
            notes.append(
                f"The residuals of {name!r} are not independent, as the likelihoods assume; "
                "differences between models are then overstated."
            )
        if any(p.prior is not None for p in fit.optimum.problem.parameters):
            notes.append(
                f"The likelihood of {name!r} is that of the data at estimates that include priors."
            )
    counts = [likelihood(fit).num_samples for fit in fits]
    if len(set(counts)) > 1:
        notes.append(
            f"The noise models of the fits leave {counts} samples to compare, as noise of unknown "
            "start takes the first one of a channel: criteria of different numbers do not compare."
        )
    return notes


def _test_nested(
    fits: Mapping[str, Fit], nested: Sequence[tuple[str, str]], notes: list[str]
) -> tuple[LikelihoodRatio, ...]:
    """Return the test of each pair of models, the smaller one first; add to the notes."""
    from scipy import special

    ratios = []
    for pair in nested:
        if isinstance(pair, str) or len(pair) != 2 or not set(pair) <= set(fits):
            raise ValueError(
                "`compare_models(nested=...)` takes pairs of names, of a model and of a larger one "
                f"that contains it, among {tuple(fits)}; got {pair!r}."
            )
        smaller, larger = pair
        small, large = (likelihood(fits[name]) for name in pair)
        freedom = len(fits[larger].labels) - len(fits[smaller].labels)
        if large.num_parameters - small.num_parameters != freedom:
            raise ValueError(
                f"`compare_models(nested=...)`: {smaller!r} and {larger!r} differ in the noise "
                "that they estimate, so that their ratio has no chi-square distribution. Compare "
                "them by AICc."
            )
        if freedom <= 0:
            raise ValueError(
                f"`compare_models(nested=...)`: {larger!r} contains {smaller!r} only if it has "
                f"more parameters; got {fits[larger].labels} and {fits[smaller].labels}."
            )
        if not fits[larger].identifiability.identifiable:
            raise ValueError(
                f"`compare_models(nested=...)`: the data do not determine all parameters of "
                f"{larger!r}, so that the likelihood ratio has no chi-square distribution."
            )
        statistic = small.deviance - large.deviance
        if statistic < -_BETTER:
            notes.append(
                f"{larger!r} fits worse than {smaller!r}: it does not contain it, or ended in a "
                "local minimum. Fit it from the values of the smaller model."
            )
        notes += _bound_notes(fits[smaller], fits[larger], pair)
        p_value = float(special.chdtrc(freedom, max(statistic, 0.0)))
        ratios.append(LikelihoodRatio(smaller, larger, statistic, freedom, p_value))
    return tuple(ratios)


def _bound_notes(small: Fit, large: Fit, names: tuple[str, str]) -> list[str]:
    """Return a note on bounds, on which the chi-square distribution does not hold."""
    optimum = large.optimum
    bounded = [
        label
        for label in large.labels
        if label not in small.labels and optimum.parameter_of(label).transform.is_bounded
    ]
    notes = []
    if bounded:
        notes.append(
            f"{names[1]!r} has bounds of {bounded}. If {names[0]!r} is on such a bound, the "
            "p-value of their likelihood ratio is too large, for one parameter twice the right one."
        )
    if shared := [b.quantity for b in large.bounds if b.label not in bounded]:
        notes.append(
            f"{names[1]!r} has {shared} on a bound; the p-value of {names[0]!r} is approximate."
        )
    return notes


def _p_text(p: float) -> str:
    return f"= {p:.2g}" if p > 1e-15 else "< 1e-15"
