"""A server's configuration as kafka-storage reads and checks it (KafkaConfig, ConfigDef)."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Collection, Mapping
from functools import lru_cache
from types import NoneType
from typing import Any, NamedTuple

from kwire.codec.arguments import check_type
from kwire.java_semantics import java_double, java_int, java_trim
from kwire.properties import JOINT, Properties, unescaped
from kwire.schema import files, is_at_least, metadata_versions, releases
from kwire.storage.formatting.errors import ConfigError, FormatterError
from kwire.storage.formatting.levels import version_from_text
from kwire.storage.formatting.properties import read_properties
from kwire.storage.formatting.rules import rules_of
from kwire_c.codecs import CODECS
from kwire_c.printable import brief
from kwire_c.secrets import SECRET_SETTING

MOST_SHOWN = 500  # characters of an invalid value
BROKER, CONTROLLER = "broker", "controller"
_LISTENER = re.compile(r"(.*)://\[?([0-9a-zA-Z\-%._:]*)\]?:(-?[0-9]+)")
_NO_HOST = re.compile(r"[^0-9a-zA-Z\-%._:]")
# what a line that continues another one would set by itself: a name and, not shown here, a value
_JOINED = re.compile(
    r"\\\n(?=[#! \t\f]*+((?:[^\\=: \t\f]|\\u[0-9a-fA-F]{4}|\\.){,200}+)"
    r"(?:[ \t\f]*+[=:][ \t\f]*+|[ \t\f]++(?![,=:]))(?!\Z))", re.S)
_SETTING = re.compile(r"[\w-]*\.[\w.-]*(?![^\s\\])")  # what may be the name of one
_PORT = re.compile(r"[0-9]{1,5}[ \t\f]*+(?:,|\\\n|\Z)")  # after a host and a colon
_BETWEEN = " \t\n\x0b\f\r"  # what may be around a comma
_HIGHEST_PORT = 65535  # of an InetSocketAddress
_NEEDED = {
    "process.roles", "node.id", "broker.id", "log.dirs", "log.dir", "metadata.log.dir", "controller.listener.names",
    "controller.quorum.voters", "controller.quorum.bootstrap.servers", "listeners", "advertised.listeners",
    "listener.security.protocol.map", "inter.broker.listener.name", "security.inter.broker.protocol",
    "inter.broker.protocol.version", "unstable.feature.versions.enable", "unstable.metadata.versions.enable",
}  # fmt: skip
_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_ANY = "0.0.0.0"
_NO_ROUTE = "advertised.listeners cannot use the nonroutable meta-address 0.0.0.0. Use a routable IP address."


class Endpoint(NamedTuple):
    """A listener: its name in upper case, its host (None: not given), port and security protocol."""

    listener: str
    host: str | None
    port: int
    protocol: str


class ServerConfig:
    """The configuration of a broker or controller, checked as Kafka of a release checks it before it formats.

    properties: as in the file. Attributes have the names of the keys: process_roles, node_id, log_dirs,
    metadata_log_dir, controller_listener_names, listeners, quorum_voters ({id: (host, port)}), unstable
    (unstable.feature.versions.enable). Unknown keys are ignored, as Kafka does; checks of classes, authorizers and
    tiered storage are left to the broker. Raises ConfigError with Kafka's text.
    """

    def __init__(self, properties: Mapping[str, str], *, release: str | None = None, path: str | None = None) -> None:
        check_type(properties, Mapping, "properties", "a mapping of str to str")
        check_type(release, (str, NoneType), "release", "a str or None")
        check_type(path, (str, NoneType), "path", "a str or None")
        self.properties = dict(properties)
        for name, value in self.properties.items():
            check_type(name, str, "the name in properties", "a str")
            check_type(value, str, f"properties[{brief(name)}]", "a str")
        self._continued = properties.continued if isinstance(properties, Properties) else {}
        self.rules = rules_of(release)
        self.path = path
        try:
            self._parse()
            self._validate()
        except ConfigError as error:
            raise ConfigError(error.reason, path) from None
        except FormatterError as error:
            raise ConfigError(str(error), path) from None

    @classmethod
    def read(cls, path: str | os.PathLike[str], *, release: str | None = None) -> ServerConfig:
        """The configuration in a properties file. Raises OSError, ConfigError."""
        check_type(path, (str, bytes, os.PathLike), "path", "a str or os.PathLike")
        return cls(read_properties(path), release=release, path=os.fsdecode(path))

    @property
    def directories(self) -> list[str]:
        """All log directories, that of the metadata log too, sorted."""
        return sorted({*self.log_dirs, self.metadata_log_dir})

    def controller_endpoints(self) -> list[Endpoint]:
        """Where controllers are reached: by advertised.listeners, else by listeners.

        Source: KafkaConfig.effectiveAdvertisedControllerListeners.
        """
        if not self.rules.formatter:
            return self._controllers_of(self.listeners)
        advertised = {one.listener: one for one in self._controllers_of(self._advertised or [])}
        listening = {one.listener: one for one in self._controllers_of(self.listeners)}
        if not advertised and not listening:
            return []
        found = []
        for at, name in enumerate(map(_normalised, self.controller_listener_names)):
            if name in advertised:
                found.append(advertised[name])
            elif name in listening:
                found.append(self._routable(listening[name], first=at == 0))
        return found

    def _routable(self, endpoint: Endpoint, first: bool) -> Endpoint:
        voter = self.quorum_voters.get(self.node_id)
        if self.rules.checks_voters and first and endpoint.host in (None, _ANY) and voter is not None:
            return endpoint._replace(host=voter[0], port=voter[1])
        return endpoint._replace(host=None) if endpoint.host == _ANY else endpoint

    # --- reading

    def _parse(self) -> None:
        values: dict[str, Any] = {}
        given = dict(self.properties)
        for one, other in (("broker.id", "node.id"), ("node.id", "broker.id")):
            if one not in given and other in given:
                given[one] = given[other]
        providers = "config.providers" in given
        known = definitions(self.rules.release)
        for name, written in self._continued.items():
            if name in known and not SECRET_SETTING.search(name):
                _check_holds_no_secret(name, written, known)
        for name, (kind, default, validator) in known.items():
            if providers and "${" in given.get(name, ""):
                if name in _NEEDED:
                    raise ConfigError(f"{name}: expected a value, found one of config.providers (kwire asks none)")
                del given[name]  # not looked at
            values[name] = parse_value(name, kind, given.get(name, default), name in given, validator)
        message_format = values.get("log.message.format.version")
        if message_format is not None:  # its validator is a class of Kafka's
            try:
                version_from_text(message_format, self.rules, True)
            except FormatterError as error:
                raise ConfigError(f"Invalid value {message_format[:MOST_SHOWN]} for configuration "
                                  f"log.message.format.version: {str(error)[:MOST_SHOWN]}") from None
        self.values = values
        self.process_roles = self._roles(values["process.roles"])
        self.node_id: int = values["node.id"]
        dirs = _list(values["log.dirs"])
        self.log_dirs = tuple((_list(values["log.dir"]) or []) if dirs is None else dirs)
        self.unstable = any(values.get(f"unstable.{what}.versions.enable") for what in ("feature", "metadata"))
        self.quorum_voters = parse_quorum_voters(values["controller.quorum.voters"])
        self.controller_listener_names = self._names_of_controllers(values["controller.listener.names"])
        self.protocols = self._security_protocols()
        self.listeners = self._endpoints(values["listeners"], distinct_ports=True)
        advertised = values["advertised.listeners"]
        self._advertised = None if advertised is None else self._endpoints(advertised, distinct_ports=False)
        self._between = self._between_brokers()
        listening = {one.listener for one in self.listeners}
        for name in _list(values["early.start.listeners"]) or ():
            if name not in listening:
                raise ConfigError(
                    f"early.start.listeners contains listener {name}, but this is not contained in "
                    "listeners or controller.listener.names"
                )
        require(self.log_dirs, "At least one log directory must be defined via log.dirs or log.dir.")
        if values["metadata.log.dir"] == "":  # Kafka takes the current folder
            raise ConfigError("metadata.log.dir: expected a directory, found nothing")
        self.metadata_log_dir: str = values["metadata.log.dir"] or self.log_dirs[0]
        for name in self.directories:
            if "\0" in name:
                raise ConfigError("Nul character not allowed")

    def _between_brokers(self) -> str:
        """The name of the listener that brokers use among themselves."""
        name, protocol = self.values["inter.broker.listener.name"], self.values["security.inter.broker.protocol"]
        if name is None:
            return _protocol(protocol, "security.inter.broker.protocol")
        if "security.inter.broker.protocol" in self.properties:
            both = "inter.broker.listener.name and security.inter.broker.protocol"
            raise ConfigError(f"Only one of {both} should be set.")
        listener: str = name.upper()
        if listener not in self.protocols:
            raise ConfigError(
                f"Listener with name {listener} defined in inter.broker.listener.name not found in "
                "listener.security.protocol.map."
            )
        return listener

    def _roles(self, names: list[str]) -> tuple[str, ...]:
        for name in names:
            if name not in (BROKER, CONTROLLER):
                raise ConfigError(f"Unknown process role '{name}' (only 'broker' and 'controller' are allowed roles)")
        if len(set(names)) != len(names):
            shown = ", ".join(name if self.rules.plain_roles else f"{name.capitalize()}Role" for name in names)
            raise ConfigError(f"Duplicate role names found in `process.roles`: ArrayBuffer({shown})")
        return tuple(names)

    def _names_of_controllers(self, value: Any) -> tuple[str, ...]:
        """The listeners of controllers. Before 4.1 the text was cut at its commas: empty names but the last stay."""
        if value is None or self.rules.checks_voters:
            return tuple(_list(value) or ())
        names = value.split(",")
        while names and not names[-1]:
            names.pop()
        return tuple(names)

    def _security_protocols(self) -> dict[str, str]:
        """Listener name -> security protocol (KafkaConfig.effectiveListenerSecurityProtocolMap)."""
        protocols = {}
        for pair in _list(self.values["listener.security.protocol.map"]) or []:
            name, colon, protocol = pair.rpartition(":")
            if not colon:
                reason = f"begin 0, end -1, length {len(pair)}: expected LISTENER:PROTOCOL, found {pair}"
                raise ConfigError(f"Error parsing configuration property 'listener.security.protocol.map': {reason}")
            protocols[name.strip().upper()] = _protocol(protocol.strip(), "listener.security.protocol.map")
        zookeeper = not self.process_roles and not self.rules.kraft_only
        if "listener.security.protocol.map" in self.properties or zookeeper:
            return protocols
        names = [*self.controller_listener_names]
        listening = [one.partition(":")[0].upper() for one in _list(self.values["listeners"]) or []]
        if not any(name in _PROTOCOLS[1:] for name in [*names, *listening]):
            added = [name for name in names if name != "PLAINTEXT"]
            counts = Counter(added)
            if self.rules.checks_voters and (twice := next((one for one in added if counts[one] > 1), None)):
                raise ConfigError(
                    f"Duplicate key ListenerName({twice}) (attempted merging values PLAINTEXT and PLAINTEXT)")
            protocols.update(dict.fromkeys(added, "PLAINTEXT"))
        return protocols

    def _endpoints(self, value: Any, distinct_ports: bool) -> list[Endpoint]:
        texts = _list(value) or []
        shown = java_trim(value) if isinstance(value, str) else f"[{', '.join(texts)}]"
        found = []
        try:
            for text in texts:
                match = _LISTENER.fullmatch(text)
                if match is None:
                    raise ValueError(f"Unable to parse {text} to a broker endpoint")
                listener = match[1].upper()
                protocol = self.protocols.get(listener)
                if protocol is None:
                    raise ValueError(f"No security protocol defined for listener {listener}")
                try:
                    port = java_int(match[3])
                except ValueError:
                    raise ValueError(f'For input string: "{match[3]}"') from None
                found.append(Endpoint(listener, match[2] or None, port, protocol))
        except ValueError as error:
            raise ConfigError(f"Error creating broker listeners from '{shown}': {error}") from None
        by_port: dict[int, list[Endpoint]] = {}
        for one in found:
            by_port.setdefault(one.port, []).append(one)
        same = None
        if len({one.listener for one in found}) != len(found):
            same = "name"
        elif distinct_ports and any(_clash(group) for port, group in by_port.items() if port):
            same = "port"
        if same is not None:
            where = "requirement failed"
            if self.rules.wraps_listener_errors:
                where = f"Error creating broker listeners from '{shown}'"
            raise ConfigError(f"{where}: Each listener must have a different {same}, listeners: {shown}")
        return found

    def _controllers_of(self, endpoints: list[Endpoint]) -> list[Endpoint]:
        names = set(self.controller_listener_names)
        return [one for one in endpoints if one.listener in names]

    # --- checks (KafkaConfig.validateValues)

    def _validate(self) -> None:
        for topic in ("offsets", "share.coordinator.state"):
            codec = self.values.get(f"{topic}.topic.compression.codec", 0)
            if not 0 <= codec < len(CODECS):
                raise ConfigError(f"Unknown compression type id: {codec}")
        if self.node_id != self.values["broker.id"]:
            raise ConfigError(
                "`node.id` and `broker.id` must be set to the same value. `broker.id` is deprecated, please use "
                "`node.id` instead." if self.rules.one_checkpoint
                else "You must set `node.id` to the same value as `broker.id`."
            )
        roles = set(self.process_roles)
        if not roles:
            self._validate_zookeeper()
            return
        if self.node_id < 0:
            raise ConfigError(
                "Missing configuration `node.id` which is required when `process.roles` is defined (i.e. when running "
                "in KRaft mode)."
            )
        if self.values.get("zookeeper.metadata.migration.enable") and self.values["zookeeper.connect"] is None:
            raise ConfigError(
                "If using `zookeeper.metadata.migration.enable` in KRaft mode, `zookeeper.connect` must also be set."
            )
        self._validate_protocol_version()
        self._validate_control_plane()
        self._validate_logs()
        self._validate_quorum()
        if roles == {BROKER}:
            self._validate_broker()
        else:
            self._validate_controller()
        if BROKER in roles:
            self._validate_broker_listeners()
        every = self.listeners if self._advertised is None else self._advertised
        controllers = set(self.controller_listener_names)
        brokers = [one for one in every if one.listener not in controllers]
        require(all(one.host != _ANY for one in brokers), _NO_ROUTE)
        if self.rules.formatter:
            require(all(one.host != _ANY for one in self.controller_endpoints()), _NO_ROUTE)
        self._validate_limits()

    def _validate_limits(self) -> None:
        values = self.values
        between = self._between
        if self.protocols.get(between, "").startswith("SASL"):
            key = "sasl.enabled.mechanisms"
            own = self.properties.get(f"listener.name.{between.lower()}.{key}")
            enabled: list[str] = values[key] if own is None else _list(own) or []
            require(values["sasl.mechanism.inter.broker.protocol"] in enabled,
                    "sasl.mechanism.inter.broker.protocol must be included in sasl.enabled.mechanisms when SASL is "
                    "used for inter-broker communication")
        queued = values["queued.max.request.bytes"]
        require(queued <= 0 or queued >= values["socket.request.max.bytes"],
                "queued.max.request.bytes must be larger or equal to socket.request.max.bytes")
        idle, delay = values["connections.max.idle.ms"], values["connection.failed.authentication.delay.ms"]
        require(idle < 0 or delay < idle,
                f"connection.failed.authentication.delay.ms={delay} should always be less than "
                f"connections.max.idle.ms={idle} to prevent failed authentication responses from timing out")

    def _validate_zookeeper(self) -> None:
        """Before 4.0: without process.roles it is a ZooKeeper cluster's, which is not formatted."""
        if not self.rules.kraft_only and self.values.get("zookeeper.connect") is None:
            raise ConfigError("Missing required configuration `zookeeper.connect` which has no default value.")

    def _validate_protocol_version(self) -> None:
        if self.rules.kraft_only or "inter.broker.protocol.version" not in self.properties:
            return
        text = self.values["inter.broker.protocol.version"]
        if version_from_text(text, self.rules, True).level < 0:
            minimum = next(row.name for row in metadata_versions(self.rules.release))
            raise ConfigError(
                f"A non-KRaft version {text} given for inter.broker.protocol.version. The minimum version is {minimum}"
            )

    def _validate_control_plane(self) -> None:
        """Before 4.0: what only a ZooKeeper cluster may have."""
        name = self.values.get("control.plane.listener.name")
        if name is not None and name.upper() not in self.protocols:
            raise ConfigError(f"Listener with {name} defined in control.plane.listener.name not found in "
                              "listener.security.protocol.map.")
        require(name is None, "control.plane.listener.name is not supported in KRaft mode.")

    def _validate_logs(self) -> None:
        values = self.values
        cordoned = _list(values.get("cordoned.log.dirs")) or []
        require("*" not in cordoned or len(cordoned) == 1,
                "When cordoned.log.dirs is set to *, it must not contain other values")
        known = {"*", *self.log_dirs}
        missing = [name for name in cordoned if name not in known]
        require(not missing, "All entries in cordoned.log.dirs must be present in log.dirs or log.dir. Missing "
                f"entries : {', '.join(missing)}")

        def milliseconds(name: str, unit: int, *others: str) -> int:
            if values.get(name) is not None:
                return int(values[name])
            for other, factor in zip(others, (unit, 60 * unit), strict=False):
                if values.get(other) is not None:
                    return int(values[other]) * factor
            return 1

        require(milliseconds("log.roll.ms", 3_600_000, "log.roll.hours") >= 1,
                "log.roll.ms must be greater than or equal to 1")
        require(milliseconds("log.roll.jitter.ms", 3_600_000, "log.roll.jitter.hours") >= 0,
                "log.roll.jitter.ms must be greater than or equal to 0")
        kept = milliseconds("log.retention.ms", 60_000, "log.retention.minutes", "log.retention.hours")
        require(kept != 0, "log.retention.ms must be unlimited (-1) or, greater than or equal to 1")
        threads = values["log.cleaner.threads"] or 1
        require(values["log.cleaner.dedupe.buffer.size"] // threads > 1 << 20,
                "log.cleaner.dedupe.buffer.size must be at least 1MB per cleaner thread.")
        waiting = values["replica.fetch.wait.max.ms"]
        require(waiting <= values["replica.socket.timeout.ms"],
                "replica.socket.timeout.ms should always be at least replica.fetch.wait.max.ms to prevent unnecessary "
                "socket timeouts")
        require(waiting <= values["replica.lag.time.max.ms"],
                "replica.fetch.wait.max.ms should always be less than or equal to replica.lag.time.max.ms to prevent "
                "frequent changes in ISR")
        acks = values.get("offsets.commit.required.acks", -1)  # up to 3.9
        if not -1 <= acks <= values["offsets.topic.replication.factor"]:
            least = "to -1" if self.rules.formatter else "-1"
            raise ConfigError(
                f"{'' if self.rules.formatter else 'requirement failed: '}offsets.commit.required.acks must be greater "
                f"or equal {least} and less or equal to offsets.topic.replication.factor")

    def _validate_quorum(self) -> None:
        # 3.8 knows the bootstrap servers already, but takes them for nothing
        if self.quorum_voters or (self.rules.formatter and self.values["controller.quorum.bootstrap.servers"]):
            return
        if self.rules.formatter:
            raise ConfigError(
                "If using process.roles, either controller.quorum.bootstrap.servers must contain the set of bootstrap "
                "controllers or controller.quorum.voters must contain a parseable set of controllers."
            )
        raise ConfigError("If using process.roles, controller.quorum.voters must contain a parseable set of voters.")

    def _validate_broker(self) -> None:
        role = "when running KRaft with just the broker role"
        voters = f"controller.quorum.voters={_scala_set(self.quorum_voters)}"
        require(self.node_id not in self.quorum_voters,
                f"If process.roles contains just the 'broker' role, the node id {self.node_id} must not be included in "
                f"the set of voters {voters}")
        names = self.controller_listener_names
        require(names, f"controller.listener.names must contain at least one value {role}")
        require(not self._controllers_of(self.listeners),
                f"controller.listener.names must not contain a value appearing in the 'listeners' configuration {role}")
        for name in names:
            if (_normalised(name) if is_at_least(self.rules.release, "3.6") else name.upper()) not in self.protocols:
                raise ConfigError(
                    f"Controller listener with name {name.upper()} defined in controller.listener.names not found in "
                    "listener.security.protocol.map  (an explicit security mapping for each controller listener is "
                    "required if listener.security.protocol.map is non-empty, or if there are security protocols other "
                    "than PLAINTEXT in use)"
                )
        require(not self.values.get("controller.quorum.auto.join.enable"),
                "controller.quorum.auto.join.enable is only supported when process.roles contains the 'controller' "
                "role.")

    def _validate_controller(self) -> None:
        endpoints, names = self.controller_endpoints(), self.controller_listener_names
        if BROKER not in self.process_roles:
            advertised = self.properties.get("advertised.listeners")
            if not self.rules.formatter:
                require(advertised is None,
                        "The advertised.listeners config must be empty when process.roles=controller")
            require(len(endpoints) == len(self.listeners),
                    "The listeners config must only contain KRaft controller listeners from controller.listener.names "
                    "when process.roles=controller")
            between = self.values["inter.broker.listener.name"]
            if self.rules.checks_voters and between is not None:
                require(between.upper() not in names,
                        "controller.listener.names must not contain an explicitly set inter.broker.listener.name "
                        "configuration value when process.roles=controller'")
        require(not self.quorum_voters or self.node_id in self.quorum_voters,
                f"If process.roles contains the 'controller' role, the node id {self.node_id} must be included in the "
                f"set of voters controller.quorum.voters={_scala_set(self.quorum_voters)}")
        role = "when running the KRaft controller role"
        require(endpoints, "controller.listener.names must contain at least one value appearing in the 'listeners' "
                           f"configuration {role}")
        listening = {one.listener for one in self.listeners}
        require(all(name in listening for name in names),
                "controller.listener.names must only contain values appearing in the 'listeners' configuration "
                f"{role}")

    def _validate_broker_listeners(self) -> None:
        every = self.listeners if self._advertised is None else self._advertised
        if not self.rules.formatter and self._advertised is not None:
            require(not self._controllers_of(self._advertised),
                    "The advertised.listeners config must not contain KRaft controller listeners from "
                    "controller.listener.names when process.roles contains the broker role because Kafka clients that "
                    "send requests via advertised listeners do not send requests to KRaft controllers -- they only "
                    "send requests to KRaft brokers.")
        controllers = set(self.controller_listener_names)
        names = [one.listener for one in every if one.listener not in controllers]
        require(names, f"There must be at least one {'broker ' if self.rules.formatter else ''}advertised listener. "
                       "Perhaps all listeners appear in controller.listener.names?")
        require(self._between in names,
                "inter.broker.listener.name must be a listener name defined in advertised.listeners. The valid options "
                f"based on currently configured listeners are {','.join(names)}")
        listening = [one.listener for one in self.listeners]
        require(set(names) <= set(listening),
                "advertised.listeners listener names must be equal to or a subset of the ones defined in listeners. "
                f"Found {','.join(names)}. The valid options based on the current configuration are "
                f"{','.join(listening)}")


def require(condition: object, text: str) -> None:
    """Raise ConfigError unless the condition holds, with the words of Scala's require."""
    if not condition:
        raise ConfigError(f"requirement failed: {text}")


@lru_cache(4)
def definitions(release: str) -> dict[str, tuple[str, str | None, Mapping[str, Any] | None]]:
    """Name -> (type, default, validator) of a release's broker configurations; the default "?" means required."""
    order = {name: at for at, name in enumerate(releases())}
    found = {}
    for name, rows in files.load("broker_configs.json").items():
        known = [row for first, row in rows.items() if order[first] <= order[release]]
        if known and known[-1] is not None:
            kind, default, validator = known[-1]
            found[name] = (kind, default, validator)
    return found


def parse_value(
    name: str, kind: str, text: str | None, given: bool, validator: Mapping[str, Any] | None
) -> Any:
    """A configuration's value, by its type, checked (ConfigDef.parseValue). Raises ConfigError with Kafka's text."""
    if text == "?" and not given:
        raise ConfigError(f'Missing required configuration "{name}" which has no default value.')
    value = None if text is None else _typed(name, kind, text)
    if validator is not None and given:
        if validator["kind"] == "ValidList" and "isEmptyAllowed" in validator:
            value = list(dict.fromkeys(value or ()))
        _check(name, value, validator)
    return value


def _typed(name: str, kind: str, text: str) -> Any:
    value = java_trim(text)
    if kind == "BOOLEAN":
        if value.lower() not in ("true", "false"):
            raise _invalid(name, text, "Expected value to be either true or false")
        return value.lower() == "true"
    if kind in ("INT", "SHORT", "LONG"):
        try:
            return java_int(value, {"INT": 32, "SHORT": 16, "LONG": 64}[kind])
        except ValueError:
            raise _invalid(name, text, f"Not a number of type {kind}") from None
    if kind == "DOUBLE":
        try:
            return java_double(value)
        except ValueError:
            raise _invalid(name, text, "Not a number of type DOUBLE") from None
    if kind == "LIST":
        return _split(value) if value else []
    return value


def _check_holds_no_secret(name: str, written: str, known: Collection[str]) -> None:
    """Raise ConfigError if the lines of a setting, which errors may show, have taken in a line with a secret.

    written: the lines, with JOINT between them. A host with a port is no secret.
    """
    if not SECRET_SETTING.search(unescaped(written.replace(JOINT, ""))):
        return
    for joined in _JOINED.finditer(written):
        setting = _SETTING.match(unescaped(joined[1].replace(JOINT, "")))
        if setting is None or not SECRET_SETTING.search(setting[0]):
            continue
        is_known = setting[0] in known or setting[0].startswith("listener.name.")
        if is_known or written[joined.end(1)] != ":" or not _PORT.match(written, joined.end(1) + 1):
            reason = "its value holds another setting, with a secret: does the line before that one end in a backslash?"
            raise ConfigError(f"{name}: {reason}")


def _check(name: str, value: Any, validator: Mapping[str, Any]) -> None:
    kind = validator["kind"]
    if kind == "Range":
        if "min" in validator and value < validator["min"]:
            raise _invalid(name, value, f"Value must be at least {validator['min']}")
        if "max" in validator and value > validator["max"]:
            raise _invalid(name, value, f"Value must be no more than {validator['max']}")
    elif kind == "ValidList":
        if validator.get("isEmptyAllowed") is False and not value:
            allowed = f"[{', '.join(validator['strings'])}]" if validator["strings"] else "any non-empty value"
            raise ConfigError(f"Configuration '{name}' must not be empty. Valid values include: {allowed}")
        for one in value:
            if "isEmptyAllowed" in validator and not one:
                raise ConfigError(f"Configuration '{name}' values must not be empty.")
            if validator["strings"] and one not in validator["strings"]:
                raise _invalid(name, one, f"String must be one of: {', '.join(validator['strings'])}")
    elif kind == "ValidString" and value not in validator["strings"]:
        raise _invalid(name, value, f"String must be one of: {', '.join(validator['strings'])}")
    elif kind == "CaseInsensitiveValidString" and value.upper() not in map(str.upper, validator["strings"]):
        allowed = ", ".join(validator["strings"])
        raise _invalid(name, value, f"String must be one of (case insensitive): {allowed}")
    elif kind == "NonEmptyString" and not value:
        raise _invalid(name, value, "String must be non-empty")
    elif kind == "ControllerQuorumVotersValidator":
        parse_quorum_voters(value)
    elif kind == "ControllerQuorumBootstrapServersValidator":
        for server in value:
            _bootstrap_server(server)


def _invalid(name: str, value: object, reason: str) -> ConfigError:
    text = str(value)
    shown = text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}…"
    return ConfigError(f"Invalid value {shown} for configuration {name}: {reason}")


def parse_quorum_voters(entries: list[str]) -> dict[int, tuple[str, int]]:
    """The voters in controller.quorum.voters, id -> (host, port). Raises ConfigError (QuorumConfig)."""
    form = "Each entry should be in the form `{id}@{host}:{port}`."
    voters = {}
    for entry in entries:
        parts = entry.split("@")
        while len(parts) > 1 and not parts[-1]:
            parts.pop()
        if len(parts) != 2:
            raise ConfigError(f"Invalid configuration value for controller.quorum.voters. {form}")
        try:
            node_id = java_int(parts[0])
        except ValueError:
            raise ConfigError("Failed to parse voter ID as an integer from " + parts[0]) from None
        found = _host_port(parts[1])
        if found is None:
            raise ConfigError(
                f"Failed to parse host name from entry {entry} for the configuration controller.quorum.voters. {form}"
            )
        voters[node_id] = (found[0], _port(found[1]))
    return voters


def _host_port(text: str) -> tuple[str, str] | None:
    """Host and port at the end of a text, in linear time.

    Source: Utils.getHost, Utils.getPort, ".*?\\[?([0-9a-zA-Z\\-%._:]*)\\]?:([0-9]+)".
    """
    front, colon, port = text.rpartition(":")
    if not colon or not port.isascii() or not port.isdigit() or "\n" in front:
        return None
    return _NO_HOST.split(front.removesuffix("]"))[-1], port


def _port(digits: str) -> int:
    try:
        port = java_int(digits)
    except ValueError:
        raise ConfigError(f'For input string: "{digits}"') from None
    if port > _HIGHEST_PORT:
        raise ConfigError(f"port out of range:{port}")
    return port


def _bootstrap_server(entry: str) -> None:
    found = _host_port(entry)
    if found is None:
        raise ConfigError(
            f"Failed to parse host name from {entry} for the configuration controller.quorum.bootstrap.servers. "
            "Each entry should be in the form \"{host}:{port}\""
        )
    _port(found[1])


def _normalised(name: str) -> str:
    """The name of a listener as Kafka compares it (ListenerName.normalised)."""
    if not name.strip():
        raise ConfigError("The provided listener name is null or empty string")
    return name.upper()


def _list(value: Any) -> list[str] | None:
    """A list; what is a comma separated string in older releases is cut, and empty pieces count for nothing."""
    if value is None or isinstance(value, list):
        return value
    return [piece for piece in _split(java_trim(value)) if piece]


def _split(text: str) -> list[str]:
    return [piece.strip(_BETWEEN) for piece in text.split(",")]


def _protocol(name: str, where: str) -> str:
    if name.upper() not in _PROTOCOLS:
        raise ConfigError(f"Invalid security protocol `{name}` defined in {where}")
    return name.upper()


def _clash(endpoints: list[Endpoint]) -> bool:
    """Whether listeners cannot share their port: two may, if one has an IPv4 address and the other an IPv6 one."""
    import ipaddress

    if len(endpoints) < 2:
        return False
    families = []
    for one in endpoints:
        try:
            families.append(ipaddress.ip_address(one.host or "").version)
        except ValueError:
            return True
    return sorted(families) != [4, 6]


def _scala_set(numbers: Mapping[int, object]) -> str:
    return f"Set({', '.join(map(str, numbers))})"
