"""The regulator and the gains along the trajectory stabilise."""


def check_1(names, printed):
    assert not names["linear"].is_stable and names["closed"].is_stable
    assert abs(names["balanced"].coordinates["hinge"][-1, 0]) < 1e-3
    free, held = (
        abs(float(run.coordinates["hinge"][-1, 0] - names["nominal"].coordinates["hinge"][-1, 0]))
        for run in (names["free"], names["held"])
    )
    assert free > 0.1 and held < 0.1 * free
