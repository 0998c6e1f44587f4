"""Plans are those of a real control plane, scenario by scenario."""

from conformance.golden import open_suite
from conformance.runner import EQUAL, Apart
from tests.corpus import corpus


def test_scenarios_end_as_recorded() -> None:
    suite = open_suite()
    cases = suite.cases(corpus("golden"))
    assert cases is not None
    outcomes = {case.id: suite.compare(case) for case in cases}
    apart = {name for name, outcome in outcomes.items() if isinstance(outcome, Apart)}
    assert len(outcomes) - len(apart) >= 30
    assert {name: o for name, o in outcomes.items() if name not in apart and o != EQUAL} == {}
