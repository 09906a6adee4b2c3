"""Server configurations: what kafka-storage needs of them, and slips (the runs of the real tool have most of them)."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from kwire import schema
from kwire.properties import parse_properties
from kwire.storage.formatting import ConfigError, Formatter, ServerConfig, storage_info
from kwire.storage.formatting.server_config import definitions

pytestmark = pytest.mark.quick
BASE = {
    "process.roles": "broker,controller", "node.id": "1", "log.dirs": "d", "controller.listener.names": "CONTROLLER",
    "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093", "controller.quorum.bootstrap.servers": "localhost:9093",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SAFE:SASL_SSL",
}  # fmt: skip


def config(release: str = "4.4", **changes: str) -> ServerConfig:
    return ServerConfig({**BASE, **{key.replace("__", "."): value for key, value in changes.items()}}, release=release)


@pytest.mark.parametrize("key, value, reason", [
    ("controller__quorum__bootstrap__servers", "localhost", "Failed to parse host name from localhost"),
    ("controller__quorum__bootstrap__servers", "a" * 100_000, "Failed to parse host name"),
    ("controller__quorum__voters", "1@" + "a" * 100_000, "Failed to parse host name"),
    ("controller__quorum__bootstrap__servers", "localhost:65536", "port out of range:65536"),
    ("controller__quorum__voters", "1@localhost:99999", "port out of range:99999"),
    ("early__start__listeners", "CONTROLLER, OTHER", "early.start.listeners contains listener OTHER, but"),
    ("metadata__log__dir", " ", "metadata.log.dir: expected a directory, found nothing"),
    ("queued__max__request__bytes", "5", "must be larger or equal to socket.request.max.bytes"),
    ("connections__max__idle__ms", "5", "should always be less than connections.max.idle.ms=5"),
    ("inter__broker__listener__name", "SAFE", "must be a listener name defined in advertised.listeners"),
    ("log__retention__ms", "0", "log.retention.ms must be unlimited (-1) or, greater than or equal to 1"),
    ("replica__fetch__wait__max__ms", "50000", "replica.socket.timeout.ms should always be at least"),
    ("log__cleaner__dedupe__buffer__size", "1000", "at least 1MB per cleaner thread"),
    ("offsets__topic__compression__codec", "5", "Unknown compression type id: 5"),
    ("offsets__topic__compression__codec", "-1", "Unknown compression type id: -1"),
    ("share__coordinator__state__topic__compression__codec", "9", "Unknown compression type id: 9"),
    ("cordoned__log__dirs", "x", "log.dirs or log.dir. Missing entries : x"),
    ("cordoned__log__dirs", "d,*", "requirement failed: When cordoned.log.dirs is set to *, it must not contain other"),
    ("listeners", "PLAINTEXT://:99999999999,CONTROLLER://:9093", 'For input string: "99999999999"'),
    ("listeners", "PLAINTEXT://" * 100_000, "Unable to parse"),
])  # fmt: skip
def test_slips(key: str, value: str, reason: str) -> None:
    with pytest.raises(ConfigError) as caught:
        config(**{key: value})
    assert reason in caught.value.reason


@pytest.mark.parametrize("release", ["3.3", "3.7", "3.9"])
@pytest.mark.parametrize("key, value, reason", [
    ("control__plane__listener__name", "X", "Listener with X defined in control.plane.listener.name not found"),
    ("control__plane__listener__name", "safe", "requirement failed: control.plane.listener.name is not supported"),
    ("log__message__format__version", "all", "Version all is not a valid version"),
    ("log__message__format__version", "4.0", "log.message.format.version: Version 4.0 is not a valid version"),
])  # fmt: skip
def test_slips_before_4_0(key: str, value: str, reason: str, release: str) -> None:
    quorum = {"controller__quorum__voters": "1@localhost:9093"}
    with pytest.raises(ConfigError) as caught:
        config(release, **quorum, **{key: value})
    assert reason in caught.value.reason


@pytest.mark.parametrize("release, changes", [
    ("4.4", {"cordoned__log__dirs": "*"}), ("4.4", {"cordoned__log__dirs": "d"}), ("4.3", {"cordoned__log__dirs": ""}),
    ("3.9", {"log__message__format__version": "0.10.0", "controller__quorum__voters": "1@localhost:9093"}),
    ("3.9", {"log__message__format__version": "3.0", "controller__quorum__voters": "1@localhost:9093"}),
])  # fmt: skip
def test_no_slips(release: str, changes: dict[str, str]) -> None:
    assert config(release, **changes).log_dirs == ("d",)


@pytest.mark.parametrize("call, name", [
    (lambda: ServerConfig([("a", "b")]), "properties"),  # type: ignore[arg-type]
    (lambda: ServerConfig({"node.id": 1}), "node.id"),  # type: ignore[dict-item]
    (lambda: ServerConfig(BASE, release=[]), "release"),  # type: ignore[arg-type]
    (lambda: ServerConfig(BASE, path=b"x"), "path"),  # type: ignore[arg-type]
    (lambda: ServerConfig.read(5), "path"),  # type: ignore[arg-type]
    (lambda: storage_info("server.properties"), "config"),  # type: ignore[arg-type]
    (lambda: Formatter(BASE, "id"), "config"),  # type: ignore[arg-type]
    (lambda: Formatter(config(), 5), "cluster_id"),  # type: ignore[arg-type]
    (lambda: Formatter(config(), "id", release_version=4.3), "release_version"),  # type: ignore[arg-type]
    (lambda: Formatter(config(), "id", features=[]), "features"),  # type: ignore[arg-type]
    (lambda: Formatter(config(), "id", features={"group.version": "1"}), "group.version"),  # type: ignore[dict-item]
    (lambda: Formatter(config(), "id", initial_controllers=[]), "initial_controllers"),  # type: ignore[arg-type]
    (lambda: Formatter(config(), "id", scram="SCRAM-SHA-256=[name=a,password=b]"), "scram"),
    (lambda: Formatter(config(), "id", report="x"), "report"),  # type: ignore[arg-type]
])  # fmt: skip
def test_arguments_of_a_wrong_type(call: Callable[[], object], name: str) -> None:
    with pytest.raises(TypeError, match=re.escape(name)) as caught:
        call()
    assert "password" not in str(caught.value)


def test_acks_of_offset_commits() -> None:
    voters = {"controller__quorum__voters": "1@localhost:9093"}
    for release, words in (("3.9.1", "offsets.commit.required.acks must be greater or equal to -1 and less"),
                           ("3.7", "requirement failed: offsets.commit.required.acks must be greater or equal -1 and")):
        config(release, **voters, offsets__commit__required__acks="3")
        for acks in ("4", "-2"):
            with pytest.raises(ConfigError) as caught:
                config(release, **voters, offsets__commit__required__acks=acks)
            assert caught.value.reason.startswith(words)
    config("4.0", **voters, offsets__commit__required__acks="4")  # no setting any more


def test_where_controllers_are_reached() -> None:
    """4.0.1 does not look at the voters, 4.1 takes this node's."""
    for release, expected in (("4.0.1", (None, 9093)), ("4.1", ("voter", 1234))):
        (endpoint,) = config(release, controller__quorum__voters="1@voter:1234").controller_endpoints()
        assert (endpoint.host, endpoint.port) == expected
    config("4.0.1", controller__quorum__voters="1@0.0.0.0:9093")


@pytest.mark.parametrize("changes, reason", [
    ({"inter__broker__listener__name": "OTHER"}, "Listener with name OTHER defined in inter.broker.listener.name"),
    ({"inter__broker__listener__name": "PLAINTEXT", "security__inter__broker__protocol": "PLAINTEXT"}, "Only one of"),
    ({"zookeeper__metadata__migration__enable": "true"}, "`zookeeper.connect` must also be set"),
])  # fmt: skip
def test_slips_of_a_controller(changes: dict[str, str], reason: str) -> None:
    """What a broker asks of its own listener, a controller asks too."""
    alone = {"process__roles": "controller", "listeners": "CONTROLLER://:9093"}
    voters = {"controller__quorum__voters": "1@localhost:9093"}
    config("3.6", **alone, **voters)
    with pytest.raises(ConfigError) as caught:
        config("3.6", **alone, **voters, **changes)
    assert reason in caught.value.reason


@pytest.mark.parametrize("release, names, roles, reason", [
    ("3.3", ",CONTROLLER", "broker,controller", "must only contain values appearing in the 'listeners'"),
    ("3.3", ",CONTROLLER", "broker", "Controller listener with name  defined in controller.listener.names not found"),
    ("3.6", ",CONTROLLER", "broker", "The provided listener name is null or empty string"),
    ("3.9", "CONTROLLER,,CONTROLLER", "broker,controller", "The provided listener name is null or empty string"),
    ("4.0", "X, CONTROLLER", "broker,controller", "must contain at least one value appearing in the 'listeners'"),
    ("4.4", "controller", "broker,controller", "must contain at least one value appearing in the 'listeners'"),
    ("4.4", "controller,CONTROLLER", "broker,controller", "must only contain values appearing in the 'listeners'"),
])  # fmt: skip
def test_odd_names_of_controllers(release: str, names: str, roles: str, reason: str) -> None:
    """As the real classes of each release take them."""
    voters = {"controller__quorum__voters": f"{2 if roles == 'broker' else 1}@localhost:9093"}
    listeners = {"listeners": "PLAINTEXT://:9092"} if roles == "broker" else {}
    with pytest.raises(ConfigError) as caught:
        config(release, controller__listener__names=names, process__roles=roles, **voters, **listeners)
    assert reason in caught.value.reason
    for fine in ("CONTROLLER,", "CONTROLLER,,"):
        config("4.0", controller__listener__names=fine)
    config("4.1", controller__listener__names=",CONTROLLER")


def test_listeners_are_shown_as_they_were_written_before_4_2() -> None:
    for release, shown in (("3.9", " A://h:1 ,, B://h:2,"), ("4.2", "A://h:1, B://h:2")):
        voters = {"controller__quorum__voters": "1@localhost:9093"}
        with pytest.raises(ConfigError) as caught:
            config(release, listeners=shown, **voters)
        text = f"[{shown}]" if release == "4.2" else shown.strip()
        assert caught.value.reason.startswith(f"Error creating broker listeners from '{text}': No security protocol")


def test_a_name_of_controllers_that_is_given_twice() -> None:
    """4.1 makes a map of them, if it makes their protocols."""
    twice = {**BASE, "controller.listener.names": "CONTROLLER,CONTROLLER"}
    without = {key: value for key, value in twice.items() if key != "listener.security.protocol.map"}
    for release in ("3.9", "4.0", "4.2"):
        ServerConfig(without, release=release)
    ServerConfig(twice, release="4.1")
    with pytest.raises(ConfigError, match=r"Duplicate key ListenerName\(CONTROLLER\)"):
        ServerConfig(without, release="4.1")


def test_without_roles_controllers_have_a_protocol_from_4_0_on() -> None:
    """So that the tool can tell of a legacy cluster."""
    without = {key: value for key, value in BASE.items() if key != "listener.security.protocol.map"}
    ServerConfig({**without, "process.roles": ""}, release="4.0")
    with pytest.raises(ConfigError, match="No security protocol defined for listener CONTROLLER"):
        ServerConfig({**without, "process.roles": "", "zookeeper.connect": "x"}, release="3.9")


def test_bootstrap_servers_are_enough_from_3_9_on() -> None:
    config("3.9")
    for release in ("3.7", "3.8"):
        with pytest.raises(ConfigError, match=r"controller\.quorum\.voters must contain a parseable set of voters"):
            config(release)


def test_blanks_around_a_protocol_version_do_not_count() -> None:
    voters = {"controller__quorum__voters": "1@localhost:9093"}
    config("3.7", **voters, inter__broker__protocol__version=" 3.7 ")
    with pytest.raises(ConfigError, match=r"A non-KRaft version 2\.8 given"):
        config("3.7", **voters, inter__broker__protocol__version="2.8 ")


def test_sasl_between_brokers() -> None:
    changes = {"listeners": "SAFE://:9092,CONTROLLER://:9093", "inter__broker__listener__name": "SAFE"}
    config(**changes)  # GSSAPI by default
    with pytest.raises(ConfigError, match=r"must be included in sasl\.enabled\.mechanisms"):
        config(**changes, sasl__mechanism__inter__broker__protocol="PLAIN")
    config(**changes, sasl__mechanism__inter__broker__protocol="PLAIN",
           listener__name__safe__sasl__enabled__mechanisms="PLAIN, SCRAM-SHA-256")  # fmt: skip


def test_values_of_config_providers() -> None:
    providers = {"config__providers": "env"}
    config(**providers, num__io__threads="${env:THREADS}", ssl__keystore__password="${env:X}")
    with pytest.raises(ConfigError, match=r"log\.dirs: expected a value, found one of config\.providers"):
        config(**providers, log__dirs="${env:LOG_DIR}")
    assert config(log__dirs="${env:LOG_DIR}").log_dirs == ("${env:LOG_DIR}",)  # as Kafka without providers


def test_definitions_of_every_release() -> None:
    for release in schema.releases():
        if schema.releases().index(release) >= schema.releases().index("3.3"):
            found = definitions(release)
            assert len(found) > 250 and ("zookeeper.connect" in found) is (release < "4.0")
            node = config(release, controller__quorum__voters="1@localhost:9093")
            assert node.process_roles == ("broker", "controller")


def test_many_listeners() -> None:
    names = [f"L{number}" for number in range(20_000)]
    listeners = ",".join(f"{name}://:{number + 1000}" for number, name in enumerate(names))
    mapped = ",".join(f"{name}:PLAINTEXT" for name in ["PLAINTEXT", "CONTROLLER", *names])
    node = config(listeners=f"PLAINTEXT://:1,CONTROLLER://:2,{listeners}", listener__security__protocol__map=mapped,
                  controller__listener__names="CONTROLLER")  # fmt: skip
    assert len(node.listeners) == 20_002 and node.controller_endpoints()[0].port == 2


@pytest.mark.parametrize("line", [
    "ssl.key.password=s3cr3t,s3cr3t", "sasl.jaas.config = x password=s3cr3t;", "ssl.keystore.password\ts3cr3t",
    "listener.name.x.ssl.truststore.password:s3cr3t", "ssl.keystore.passw\\r ord s3cr3t",
    "\x1b[31m\\\nssl.key.password s3cr3t", "\\u0073sl.key.p\\u0061ssword=s3cr3t",
])  # fmt: skip
@pytest.mark.parametrize("name", ["node.id", "process.roles", "listeners", "controller.quorum.voters", "log.dirs"])
def test_a_line_that_takes_in_the_next_one_does_not_show_its_secret(name: str, line: str) -> None:
    """A backslash at the end of a line: the password came out in the error, or as the name of a directory."""
    with pytest.raises(ConfigError, match="does the line before that one end in a backslash") as caught:
        ServerConfig(
            parse_properties(
                "".join(f"{key}={value}\n" for key, value in BASE.items() if key != name)
                + f"{name}={BASE.get(name, '1@h:1')}\\\n{line}\n"
            )
        )
    assert "s3cr3t" not in str(caught.value)


@pytest.mark.parametrize("line", [
    "controller.quorum.voters=1@token-broker.example.com:9093",
    "controller.quorum.bootstrap.servers=a:1,\\\n  token-broker.example.com:9093,\\\n  b.token:9093",
    "listeners=PLAINTEXT://kafka.tokens.svc:9092,\\\n  CONTROLLER://api.token:9093",
    "advertised.listeners=PLAINTEXT://kafka.api-key.svc.cluster.local:9092",
    "sasl.oauthbearer.jwks.endpoint.url=https://token.example.com:443/x",
    "authorizer.class.name=com.acme.TokenAuthorizer ", "authorizer.class.name=\\\n com.acme.TokenAuthorizer ",
    "log.dirs=/data/api.key 1,/b", "ssl.principal.mapping.rules=RULE:^CN=(.*?),OU=x.secret =$/$1/",
    "metric.reporters=com.acme.A,\\\n com.acme.TokenReporter , com.acme.B", "my.plugin=a\\\nb.password=c",
])  # fmt: skip
def test_a_value_that_looks_like_a_secret_is_none(line: str) -> None:
    name = line.partition("=")[0]
    text = "".join(f"{key}={value}\n" for key, value in BASE.items() if key != name)
    ServerConfig(parse_properties(f"{text}{line}\n"))


@pytest.mark.parametrize("line", [
    "ssl.key.password:12345", "#ssl.key.password=s3cr3t", "ssl.key.pass\\\nword=s3cr3t", "ssl.key.password=\\\ns3cr3t",
    "log.dir=1\\\nssl.key.password=s3cr3t", "listener.name.x.ssl.key.password:12345",
])  # fmt: skip
def test_a_secret_on_a_line_that_was_joined(line: str) -> None:
    with pytest.raises(ConfigError, match="holds another setting"):
        ServerConfig(parse_properties(f"node.id=1\\\n{line}\n"))


def test_secrets_in_long_values_are_searched_in_linear_time() -> None:
    for value in ("a." * (1 << 20), "password" * (1 << 18), "a.password " * (1 << 16), "a. " * (1 << 18)):
        with pytest.raises(ConfigError):
            config(node__id=value)
    for piece in ("a.\\\n", "a=\\\n", "\\\n", "# \\\n", "a.b:1\\\n", "token.b:1,\\\n"):
        with pytest.raises(ConfigError):
            ServerConfig(parse_properties("node.id=x\\\n" + piece * (1 << 15)))
    assert config(log__dirs="/a/my.token/x").log_dirs == ("/a/my.token/x",)
