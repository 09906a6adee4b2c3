"""Which settings hold a secret, so that their values are not shown."""

from __future__ import annotations

import re

# Kafka's configs of type PASSWORD, and what plug-ins call theirs
SECRET_SETTING = re.compile(
    r"passw|passphrase|secret|jaas|keystore\.key|credential|token|private.?key|api.?key|master\.key", re.I)
