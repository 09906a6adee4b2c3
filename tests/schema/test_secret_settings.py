"""Kafka's configs of type PASSWORD, whose values are shown nowhere."""

from __future__ import annotations

import json

import pytest

from kwire_c.secrets import SECRET_SETTING
from tools.places import ROOT

pytestmark = pytest.mark.quick


def test_every_password_of_a_broker_is_a_secret() -> None:
    known = json.loads((ROOT / "kwire/schema/broker_configs.json").read_bytes())
    passwords = [name for name, rows in known.items() if "PASSWORD" in {row[0] for row in rows.values() if row}]
    assert len(passwords) >= 9 and "ssl.keystore.certificate.chain" in passwords
    assert [name for name in passwords if not SECRET_SETTING.search(name)] == []


def test_what_plug_ins_call_their_secrets() -> None:
    for name in ("rsm.config.storage.azure.account.key", "rsm.config.azure.connection.string", "s3.secret.access.key",
                 "storage.sas.token", "gcs.credentials.json", "confluent.license.api_key",
                 "private key", "api key"):
        assert SECRET_SETTING.search(name)


def test_ordinary_settings_are_shown() -> None:
    for name in ("ssl.keystore.location", "ssl.keystore.type", "ssl.truststore.location", "retention.ms"):
        assert not SECRET_SETTING.search(name)
