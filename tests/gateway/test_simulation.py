"""The simulation that docs/fleet.md is sized by, small: every call is answered, by any of the gateways."""

from support.simulation import simulating


def test_fifty_machines_and_two_gateways_answer_every_call(tmp_path):
    with simulating(tmp_path, 50, processes=1, gateways=2) as simulation:
        figures = simulation.load(rate=40, seconds=3)
    assert len(figures.calls) == 120
    assert [call for call in figures.calls if not call.done] == []
    # What a call costs is told by the processor, however busy the machine is with other things.
    for gateway in figures.gateways:
        assert gateway.processor / 60 < 0.05
    assert figures.percentile(50) < 1
