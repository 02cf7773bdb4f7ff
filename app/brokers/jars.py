"""Fetches the jars of Apache Kafka through Maven into a cache folder."""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from faust_oslrau.app.errors import BrokerError

from .process import die_with_parent

_POM = Path(__file__).with_name("pom.xml")
_OLDEST_JAVA = 17  # what the broker of Kafka 4 is compiled for


def cache_folder() -> Path:
    """Return FAUST_OSLRAU_CACHE, else `faust-oslrau` in the user's cache folder."""
    if own := os.environ.get("FAUST_OSLRAU_CACHE"):
        return Path(own).absolute()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "faust-oslrau"


def jars_folder() -> Path:
    """Return the folder for the jars of this pom.xml, which may not exist yet."""
    return cache_folder() / f"kafka-jars-{hashlib.sha256(_POM.read_bytes()).hexdigest()[:12]}"


def kafka_jars() -> Path:
    """Return the folder with Kafka's jars; Maven fetches them once, about 45 MB.

    Raises
    ------
    BrokerError
        Maven is missing or cannot fetch them.
    """
    folder = jars_folder()
    # The folder gets this name when it is complete.
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with _lock(folder.with_suffix(".lock")):
            if not folder.is_dir():
                _fetch(folder)
    return folder


def find_java() -> str:
    """Return the path of a Java that can run the broker.

    Raises
    ------
    BrokerError
        There is no Java, or it is too old.
    """
    java = _java_of(os.environ.get("JAVA_HOME")) or shutil.which("java")
    if java is None:
        raise BrokerError(f"a real Kafka needs Java {_OLDEST_JAVA} or newer, but no java was found")
    found = _java_version(java)
    if found < _OLDEST_JAVA:
        raise BrokerError(
            f"a real Kafka needs Java {_OLDEST_JAVA} or newer, {java} is Java {found}"
        )
    return java


def _java_of(home: str | None) -> str | None:
    return shutil.which("java", path=f"{home}/bin") if home else None


def _java_version(java: str) -> int:
    shown = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    version = re.search(r'version "(\d+)', shown)
    return int(version[1]) if version else 0


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # the kernel releases it with the process
        yield


def _fetch(folder: Path) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise BrokerError("the jars of Kafka are fetched through Maven, but no mvn was found")
    part = folder.with_suffix(".part")
    shutil.rmtree(part, ignore_errors=True)
    fetched = subprocess.run(
        [
            maven,
            *["-B", "-ntp", "-q", "-DincludeScope=runtime", "dependency:copy-dependencies"],
            f"-DoutputDirectory={part}",
            "-f",
            str(_POM),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        preexec_fn=die_with_parent,
    )
    if fetched.returncode != 0:
        raise BrokerError(
            f"Maven could not fetch the jars of Kafka: {_first_error(fetched.stdout)}"
        )
    part.rename(folder)


def _first_error(output: str) -> str:
    errors = [line for line in output.splitlines() if "ERROR" in line]
    return (errors or [output.strip() or "it said nothing"])[0]
