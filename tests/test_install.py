"""How make installs: by uv, or by pip where uv cannot be had."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
_UV = "pip install -q --python {python} -c constraints.txt -e .[dev]"
_PIP = "-m pip install -q --disable-pip-version-check -c constraints.txt -e .[dev]"
_GET_UV = "-m pip install -q --disable-pip-version-check -c constraints.txt uv"


def _program(path: Path, body: str) -> Path:
    """Write a program that notes its arguments and then does as told."""
    path.parent.mkdir(exist_ok=True)
    name = path.parent.parent / "calls"
    path.write_text(f'#!/bin/sh\necho "{path.name} $*" "$UV_DEFAULT_INDEX" >> {name}\n{body}\n')
    path.chmod(0o755)
    return path


@pytest.fixture
def install(tmp_path, monkeypatch):
    """A function that installs with stand-ins for Python and uv, and returns output and calls."""
    found = tmp_path / "found"
    found.mkdir()

    def run(python: str = "exit 0", uv: str | None = None) -> tuple[str, list[str]]:
        if uv is not None:
            _program(found / "uv", uv)
        monkeypatch.setenv("PATH", f"{found}:/usr/bin:/bin")
        monkeypatch.delenv("UV_DEFAULT_INDEX", raising=False)
        path = _program(tmp_path / "bin" / "python", python)
        ended = subprocess.run(
            [ROOT / ".ci" / "install", path, "-e", ".[dev]"], capture_output=True, text=True
        )
        calls = (tmp_path / "calls").read_text().replace(str(path), "{python}").splitlines()
        assert ended.returncode == 0, ended.stderr
        return ended.stdout, [call.strip() for call in calls]

    return run


def test_uv_on_the_path_installs_with_the_same_versions(install):
    told, calls = install(uv="exit 0")
    assert told.startswith("Installing by uv into ") and "by pip" not in told
    assert calls == ["python -m pip config list", f"uv {_UV}"]


def test_uv_is_installed_where_there_is_none(install, tmp_path):
    _program(tmp_path / "bin" / "uv", "exit 0")
    told, calls = install()
    assert "by uv" in told and "by pip" not in told
    assert calls == [f"python {_GET_UV}", "python -m pip config list", f"uv {_UV}"]


def test_without_uv_pip_installs(install):
    told, calls = install(python='case "$*" in *" uv") exit 1;; esac')
    assert told.splitlines()[1].startswith("Installing by pip into ")
    assert calls == [f"python {_GET_UV}", f"python {_PIP}"]


def test_where_uv_fails_pip_installs(install):
    told, calls = install(uv="exit 1")
    assert "uv has failed" in told and "Installing by pip into " in told
    assert calls[-1] == f"python {_PIP}"


def test_uv_takes_packages_from_where_pip_does(install):
    mirror = "https://mirror.example/simple"
    python = f"""echo "global.cert='/a'"; echo "global.index-url='{mirror}'" """
    _, calls = install(python=python, uv="exit 0")
    assert calls[-1] == f"uv {_UV} {mirror}"
