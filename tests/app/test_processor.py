import os

import pytest
from command_line import run

from faust_oslrau.app.errors import OslrauError
from faust_oslrau.app.processor import check_processor, choose_level

_OLD = "processor : 0\nflags\t\t: fpu sse4_2 avx movbe\n"
_NEW = _OLD.rstrip() + " abm avx2 bmi1 bmi2 f16c fma\n"
_LEVEL = {"NUMBA_CPU_NAME": "x86-64-v3"}


_ARM = "Features : asimd\n"


def cpuinfo(folder, told):
    """Return a file in which a processor tells what it has; it is missing for None."""
    path = folder / "cpuinfo"
    if told is not None:
        path.write_text(told)
    return path


def test_a_processor_below_the_level_of_the_kernels_is_refused(tmp_path):
    with pytest.raises(OslrauError, match="no abm, avx2, bmi1, bmi2, f16c, fma; set NUMBA_CPU_N"):
        check_processor(_LEVEL, cpuinfo(tmp_path, _OLD))


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        *((_LEVEL, told) for told in (_NEW, _ARM, None)),
        *((asked, _OLD) for asked in ({}, {"NUMBA_CPU_NAME": "generic"})),
    ],
)
def test_a_processor_that_may_have_what_is_asked_for_is_accepted(asked, told, tmp_path):
    check_processor(asked, cpuinfo(tmp_path, told))


def test_a_command_ends_with_one_line(monkeypatch):
    def refuse(environ):
        assert environ is os.environ
        raise OslrauError("this processor has no avx2")

    monkeypatch.setattr("faust_oslrau.app.cli.check_processor", refuse)
    result = run("replay", "none", "--out", "none")
    assert result.exit_code == 1
    assert result.stderr == "Error: this processor has no avx2\n"


@pytest.mark.parametrize(
    ("asked", "brought", "told", "added"),
    [
        ({}, True, _NEW, {**_LEVEL, "NUMBA_CPU_FEATURES": ""}),
        *(({}, True, told, {}) for told in (_OLD, _ARM, None)),
        ({}, False, _NEW, {}),
        ({"NUMBA_CPU_NAME": "generic"}, True, _NEW, {}),  # what a user asks for stays
        ({"NUMBA_CPU_FEATURES": "generic"}, True, _NEW, {}),
    ],
)
def test_kernels_that_the_package_brings_are_used_where_the_processor_has_their_level(
    asked, brought, told, added, tmp_path
):
    if brought:
        (tmp_path / "compiled" / "x86-64-v3").mkdir(parents=True)
    environ = dict(asked)
    choose_level(environ, tmp_path, cpuinfo(tmp_path, told))
    assert environ == asked | added
