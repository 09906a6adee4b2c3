"""The error of a storage command."""

from __future__ import annotations

from kwire.errors import KwireError


class FormatterError(KwireError):
    """A storage directory cannot be formatted; the text is the one that Kafka's tool has, where it has one.

    Kafka: FormatterException, TerseFailure, and the exceptions that the tool shows with a stack trace.
    """


class ConfigError(FormatterError):
    """A server configuration is invalid (Kafka's ConfigException, and what KafkaConfig requires).

    reason: the text without the file's name.
    """

    def __init__(self, reason: str, path: str | None = None) -> None:
        super().__init__(reason if path is None else f"{path}: {reason}")
        self.reason = reason
        self.path = path

    def __reduce__(self) -> tuple[type[ConfigError], tuple[str, str | None]]:
        return type(self), (self.reason, self.path)
