import os

import pytest
from click.testing import CliRunner

from faust_oslrau.app.cli import main
from faust_oslrau.app.errors import OslrauError
from faust_oslrau.app.processor import check_processor, choose_level

_OLD = "processor : 0\nflags\t\t: fpu sse4_2 avx movbe\n"
_NEW = _OLD.rstrip() + " abm avx2 bmi1 bmi2 f16c fma\n"
_LEVEL = {"NUMBA_CPU_NAME": "x86-64-v3"}


@pytest.fixture
def cpuinfo(tmp_path):
    return tmp_path / "cpuinfo"


def test_a_processor_below_the_level_of_the_kernels_is_refused(cpuinfo):
    cpuinfo.write_text(_OLD)
    with pytest.raises(OslrauError, match="no abm, avx2, bmi1, bmi2, f16c, fma; set NUMBA_CPU_N"):
        check_processor(_LEVEL, cpuinfo)


@pytest.mark.parametrize("told", [_NEW, "Features : asimd\n", None])
def test_a_processor_of_the_level_or_one_that_tells_nothing_is_accepted(told, cpuinfo):
    if told is not None:
        cpuinfo.write_text(told)
    check_processor(_LEVEL, cpuinfo)


def test_without_a_level_nothing_is_asked(cpuinfo):
    cpuinfo.write_text(_OLD)
    check_processor({}, cpuinfo)
    check_processor({"NUMBA_CPU_NAME": "generic"}, cpuinfo)


def test_a_command_ends_with_one_line(monkeypatch):
    def refuse(environ):
        assert environ is os.environ
        raise OslrauError("this processor has no avx2")

    monkeypatch.setattr("faust_oslrau.app.cli.check_processor", refuse)
    result = CliRunner().invoke(main, ["replay", "none", "--out", "none"])
    assert result.exit_code == 1
    assert result.stderr == "Error: this processor has no avx2\n"


@pytest.fixture
def learner(tmp_path):
    """The folder of a learner that brings kernels of a level."""
    (tmp_path / "learner" / "compiled" / "x86-64-v3").mkdir(parents=True)
    return tmp_path / "learner"


def test_kernels_that_the_package_brings_are_used_where_the_processor_has_their_level(
    learner, cpuinfo
):
    cpuinfo.write_text(_NEW)
    environ = {}
    choose_level(environ, learner, cpuinfo)
    assert environ == {**_LEVEL, "NUMBA_CPU_FEATURES": ""}


@pytest.mark.parametrize("told", [_OLD, "Features : asimd\n", None])
def test_they_are_not_on_an_older_processor_or_one_that_tells_nothing(told, learner, cpuinfo):
    if told is not None:
        cpuinfo.write_text(told)
    environ = {}
    choose_level(environ, learner, cpuinfo)
    assert environ == {}


def test_a_package_without_kernels_asks_for_no_level(tmp_path, cpuinfo):
    cpuinfo.write_text(_NEW)
    environ = {}
    choose_level(environ, tmp_path, cpuinfo)
    assert environ == {}


@pytest.mark.parametrize("name", ["NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES"])
def test_what_a_user_asks_for_stays(name, learner, cpuinfo):
    cpuinfo.write_text(_NEW)
    environ = {name: "generic"}
    choose_level(environ, learner, cpuinfo)
    assert environ == {name: "generic"}
