"""Errors that users meet."""

from __future__ import annotations

import inspect
import re
import signal

import obstore.exceptions
import pytest
from deltalake.exceptions import DeltaError
from polars.exceptions import PolarsError

from pipeline.domain import errors
from pipeline.domain.errors import NightauditError, RequestRefused, first_line
from pipeline.process.failures import as_ours

TREE = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, NightauditError)]


def drawn():
    """Parent of every error as the module's docstring draws it, by indentation."""
    parents, above = {}, {}
    for line in errors.__doc__.splitlines():
        if found := re.match(r"(?P<lead>[ │├└─]*)(?P<name>[A-Z]\w+)( {2,}|$)", line):
            depth = len(found["lead"])
            nearest = max((level for level in above if level < depth), default=None)
            parents[found["name"]] = above.get(nearest)
            above = {level: name for level, name in above.items() if level < depth} | {depth: found["name"]}
    return parents


def test_the_drawing_of_the_tree_is_the_tree():
    real = {kind.__name__: kind.__base__.__name__ for kind in TREE}
    assert drawn() == real | {"NightauditError": None}


@pytest.mark.parametrize(
    ("name", "exit_code"),
    [
        ("NightauditError", 1),
        ("InputError", 2),
        ("SettingsError", 2),
        ("SpecError", 2),
        ("RequestRefused", 2),
        ("SupplierUnreachable", 1),
        ("TokenRefused", 1),
        ("LakeBusy", 5),
        ("LakeFull", 6),
        ("NothingUsable", 4),
        ("OutOfResources", 1),
        ("UnknownSweep", 2),
        ("SweepStopped", 1),
        ("GateBlocked", 3),
        ("TooManyFailures", 4),
    ],
)
def test_an_error_has_the_exit_code_that_scripts_rely_on(name, exit_code):
    assert getattr(errors, name).exit_code == exit_code


@pytest.mark.parametrize(("number", "exit_code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_what_a_signal_has_stopped_ends_as_in_a_shell(number, exit_code):
    assert errors.SweepStopped("Stopped.", signal_number=number).exit_code == exit_code


def test_the_innermost_step_says_what_was_kept_and_how_to_go_on():
    error = errors.LakeFull("Full.", hint="Free some space.")
    error.at_step("The sweep stays loaded.", "nightaudit audit x")
    error.at_step("Answers that have landed are kept.", "nightaudit nightly")
    assert str(error) == "Full.\nThe sweep stays loaded.\nFree some space.\nThen: nightaudit audit x"


def test_a_command_that_cannot_continue_a_step_says_so_in_its_place():
    error = errors.LakeFull("Full.", hint="Free some space.")
    error.at_step("The sweep stays loaded.", "nightaudit audit x")
    error.at_outer_step("The nights stay.", "nightaudit demo")
    assert str(error) == "Full.\nThe nights stay.\nFree some space.\nThen: nightaudit demo"


def test_how_to_go_on_is_said_once():
    error = errors.LakeFull("Full.", hint="Fix the cause, then: nightaudit publish x")
    error.at_step("The sweep stays loaded.", "nightaudit publish x")
    assert str(error) == "Full.\nThe sweep stays loaded.\nFix the cause, then: nightaudit publish x"


def test_a_chain_of_causes_that_leads_back_to_where_it_began_comes_to_an_end():
    first, second = ValueError("first"), ValueError("second")
    first.__cause__, second.__context__ = second, first
    assert as_ours(first) is None
    second.__cause__ = OSError(28, "No space left on device")
    assert isinstance(as_ours(first), errors.LakeFull)


FULL = "No space left on device (os error 28)"


@pytest.mark.parametrize("error", [obstore.exceptions.GenericError, PolarsError, DeltaError, OSError])
def test_a_library_that_gives_the_systems_number_in_its_text_alone_is_understood(error):
    assert isinstance(as_ours(error(f"Generic error: {FULL}")), errors.LakeFull)


@pytest.mark.parametrize("error", [ValueError(FULL), KeyError(FULL), RuntimeError(FULL), OSError(2, f"{FULL}.txt")])
def test_a_text_of_any_other_error_is_not_read(error):
    assert as_ours(error) is None


def test_a_thread_that_the_system_does_not_start_is_want_of_resources():
    assert isinstance(as_ours(RuntimeError("can't start new thread")), errors.OutOfResources)
    assert as_ours(ValueError("can't start new thread")) is None


def test_an_error_says_what_happened_what_was_kept_and_what_to_do():
    error = NightauditError("It failed.", kept="Much was kept.", hint="Fix it.")
    assert str(error) == "It failed.\nMuch was kept.\nFix it."
    assert str(NightauditError("It failed.", hint="Fix it.")) == "It failed.\nFix it."
    assert error.args == ("It failed.",)


def test_a_refused_request_carries_its_codes():
    assert RequestRefused("No.", codes=(1014, 1027)).codes == (1014, 1027)
    assert RequestRefused("No.").codes == ()


def test_an_error_of_a_library_that_says_nothing_is_named_by_its_type():
    assert first_line(OSError()) == first_line(OSError("\n ")) == "OSError"
    assert first_line(OSError("\nno space\nat all")) == "no space"
