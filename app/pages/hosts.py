"""The names under which a browser may read the pages.

A web site can point its own name to the address of a worker (DNS rebinding). Its scripts could then
read the worker's pages through the browser of a person who can reach the worker. The browser sends
the site's name in the Host header.
"""

from __future__ import annotations

import re
from ipaddress import ip_address

from faust_oslrau.app.settings import Settings

_HEADER = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([^\s:/@\[\]]+))(?::[0-9]*)?")


def is_allowed(header: str, settings: Settings) -> bool:
    """Return whether a Host header names a loopback address, or a host of the settings."""
    if "*" in settings.web_allowed_hosts:
        return True
    found = _HEADER.fullmatch(header)
    if found is None:
        return False
    name = (found[1] or found[2]).lower().removesuffix(".")
    named = (settings.web_host.lower(), settings.page_host, *settings.web_allowed_hosts)
    return name in named or _is_loopback(name)


def _is_loopback(name: str) -> bool:
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return name == "localhost"
