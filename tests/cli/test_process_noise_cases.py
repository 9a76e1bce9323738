"""Process noise in case files."""

from rigidjax.cli.case.method import read_method
from rigidjax.cli.case.table import CaseTable


def test_process_noise_of_a_case():
    """Numbers, one per coordinate where there are several, and values that are estimated."""
    noise = {"hinge": 0.1, "elbow": "estimated", "arm": [1, "estimated"]}
    table = {"method": {"method": "prediction-error", "process_noise": noise}}
    options = read_method(CaseTable(table, "case.toml"))
    assert options["process_noise"] == {"hinge": 0.1, "elbow": None, "arm": [1.0, None]}
    assert options["method"] == "prediction-error"
