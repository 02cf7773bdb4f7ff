import asyncio
import os
import ssl

import faust
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


def test_tls_checks_the_broker_and_its_name():
    settings = Settings(security=SecuritySettings(protocol="SSL"))
    context = client_arguments(settings)["ssl_context"]
    assert context.verify_mode is ssl.CERT_REQUIRED and context.check_hostname
    assert isinstance(faust_credentials(settings.security), faust.SSLCredentials)


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
    settings = Settings(security=SecuritySettings(**by_token, sasl_token_file=str(file)))
    arguments = client_arguments(settings)
    assert arguments["sasl_mechanism"] == "OAUTHBEARER" and "sasl_plain_username" not in arguments
    provider = faust_credentials(settings.security).oauth_cb
    assert asyncio.run(provider.token()) == "a.b.c"
    file.write_text("d.e.f")
    assert asyncio.run(provider.token()) == "d.e.f"
    file.unlink()
    with pytest.raises(SettingsError, match=r"security\.sasl_token_file: .*'.*token': No such"):
        client_arguments(settings)


@pytest.mark.parametrize("name", ["ca_file", "cert_file"])
def test_a_file_that_is_no_certificate_is_named(tmp_path, name):
    path = tmp_path / "file.pem"
    path.write_text("no certificate")
    settings = Settings(security=SecuritySettings(protocol="SSL", **{name: str(path)}))
    with pytest.raises(SettingsError, match=rf"security\.{name}: .*file\.pem"):
        client_arguments(settings)


@pytest.mark.timeout(20)
@pytest.mark.parametrize("kind", ["pipe", "endless", "missing"])
@pytest.mark.parametrize("name", ["ca_file", "cert_file", "key_file"])
def test_what_is_no_regular_file_is_refused_at_once(tmp_path, name, kind):
    keys, path = Keys(tmp_path), "/dev/zero" if kind == "endless" else str(tmp_path / kind)
    if kind == "pipe":
        os.mkfifo(path)  # nobody writes to it
    files = {each: str(getattr(keys, each)) for each in ("ca_file", "cert_file", "key_file")}
    settings = Settings(security=SecuritySettings(protocol="SSL", **(files | {name: path})))
    reason = "No such file or directory" if kind == "missing" else "not a regular file"
    with pytest.raises(SettingsError) as failure:
        client_arguments(settings)
    expected = f"setting security.{name}: expected a readable PEM, got '{path}': {reason}"
    assert str(failure.value) == expected
