import asyncio
import os
import re
from itertools import product

import pytest
from secure_kafka import Keys

from faust_oslrau.app.errors import SettingsError
from faust_oslrau.app.kafka.security import client_arguments, faust_credentials
from faust_oslrau.app.settings import SecuritySettings, Settings

SCRAM = SecuritySettings(
    protocol="SASL_SSL",
    sasl_mechanism="SCRAM-SHA-512",
    sasl_username="meter",
    sasl_password="hunter-2",
)


@pytest.mark.parametrize(
    "security",
    [
        SCRAM,
        SecuritySettings(protocol="SSL"),
        SecuritySettings(protocol="SASL_PLAINTEXT", sasl_username="u", sasl_password="p"),
    ],
)
def test_faust_reaches_the_broker_with_the_same_arguments(security):
    from faust.transport.drivers.aiokafka import credentials_to_aiokafka_auth

    through_faust = dict(credentials_to_aiokafka_auth(faust_credentials(security)))
    direct = client_arguments(Settings(security=security))
    del direct["bootstrap_servers"]
    for arguments in (through_faust, direct):
        arguments["ssl_context"] = arguments.get("ssl_context") is not None
    assert through_faust == direct


def test_a_token_is_read_again_for_each_connection(tmp_path):
    file = tmp_path / "token"
    file.write_text("a.b.c\n")
    by_token = {"protocol": "SASL_SSL", "sasl_mechanism": "OAUTHBEARER"}
    security = SecuritySettings(**by_token, sasl_token_file=str(file))
    provider = faust_credentials(security).oauth_cb
    assert asyncio.run(provider.token()) == "a.b.c"
    file.write_text("d.e.f")
    assert asyncio.run(provider.token()) == "d.e.f"


_FILES = ("ca_file", "cert_file", "key_file")
_REASONS = {
    "pipe": "not a regular file",
    "/dev/zero": "not a regular file",
    "missing": "No such file or directory",
}


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    ("name", "kind"),
    [
        *product([*_FILES, "sasl_token_file"], _REASONS),
        *product(["ca_file", "cert_file"], ["a text"]),
    ],
)
def test_a_file_that_cannot_be_used_is_named_at_once(tmp_path, name, kind):
    keys, path = Keys(tmp_path), tmp_path / kind
    if kind == "pipe":
        os.mkfifo(path)  # nobody writes to it
    if kind == "a text":
        path.write_text("no certificate")
    given = {"protocol": "SSL"} | {each: str(getattr(keys, each)) for each in _FILES}
    if name == "sasl_token_file":
        given = {"protocol": "SASL_SSL", "sasl_mechanism": "OAUTHBEARER"}
    security = SecuritySettings(**(given | {name: str(path)}))
    content = "token" if name == "sasl_token_file" else "PEM"
    told = f"setting security.{name}: expected a readable {content}, got '{path}': "
    with pytest.raises(SettingsError, match=re.escape(told + _REASONS.get(kind, ""))):
        client_arguments(Settings(security=security))
