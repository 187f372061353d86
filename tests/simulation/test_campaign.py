"""The campaign runs each part; it counts a failure and goes on."""

from tests.simulation import campaign


def test_a_round_runs_every_part(monkeypatch, capsys):
    monkeypatch.setattr(campaign, "PROGRAMS", 2)
    monkeypatch.setattr(campaign, "EXAMPLES", 1)
    monkeypatch.setattr(campaign.machine, "CONFIGURATIONS", {"default": ""})
    scenarios = {"mixed sizes": campaign.faults.SCENARIOS["mixed sizes"]}
    monkeypatch.setattr(campaign.faults, "SCENARIOS", scenarios)
    tally = campaign.run(0)
    assert {"threads on host", "allocator", "state machine", "fault sweep"} <= set(tally.run)
    assert min(tally.run.values()) > 0 and not tally.bugs
    assert "round 1, 0 min left; programs: threads on host 2" in capsys.readouterr().out


def test_a_failure_is_counted_and_printed_with_its_facts(capsys):
    tally = campaign.Tally()

    def fail():
        raise AssertionError("two holders")

    tally.attempt("allocator", "seed 7", fail)
    tally.attempt("allocator", "seed 8", lambda: None)
    assert (tally.run, tally.bugs) == ({"allocator": 2}, {"allocator": 1})
    printed = capsys.readouterr().out
    assert "BUG in allocator: seed 7" in printed and "two holders" in printed
    assert str(tally) == "programs: allocator 2; bugs: allocator 1"
