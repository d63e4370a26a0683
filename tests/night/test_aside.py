"""The process beside a night's own, which judges and draws."""

import multiprocessing
import sys
import threading

import pytest

from pipeline.audit.judge import failed_among
from pipeline.audit.results import Measure
from pipeline.night.aside import Aside
from pipeline.process.draw import draw

_MEASURES = [
    Measure("DE", "offer", f"check {value}", severity, "", "rule", float(value), lowest, 5.0)
    for value in range(-2, 9)
    for severity, lowest in (("critical", 0.0), ("warning", None))
]
_SPEC = {"mark": "bar", "data": {"values": [{"a": 1}]}, "encoding": {"x": {"field": "a", "type": "quantitative"}}}


@pytest.mark.slow
def test_what_is_judged_and_drawn_aside_is_what_the_night_itself_would_judge_and_draw():
    with Aside() as aside:
        aside.warm()
        drawn = aside.draw(_SPEC)
        assert aside.judge(_MEASURES) == failed_among(_MEASURES)
        assert drawn() == draw(_SPEC)


def test_a_night_whose_process_aside_is_killed_judges_and_draws_itself(caplog: pytest.LogCaptureFixture):
    with Aside() as aside:
        aside.draw(_SPEC)()
        for child in multiprocessing.active_children():
            child.kill()
            child.join()
        assert aside.judge(_MEASURES) == failed_among(_MEASURES)
        assert aside.draw(_SPEC)() == draw(_SPEC)
    assert caplog.text.count("the night does that work itself") == 1


@pytest.mark.slow
def test_libraries_that_start_slowly_start_aside_alone():
    there = "great_expectations" in sys.modules
    with Aside() as aside:
        aside.warm()
        aside.draw(_SPEC)()
    assert ("great_expectations" in sys.modules) == there


def test_nothing_of_the_process_aside_is_left_to_the_interpreter_s_end():
    # Its thread would close a pipe while the interpreter writes to it: a traceback after a night's summary.
    with Aside() as aside:
        aside.draw(_SPEC)()
        (child,) = multiprocessing.active_children()
    assert not child.is_alive()
    assert not [thread for thread in threading.enumerate() if "ExecutorManager" in type(thread).__name__]
