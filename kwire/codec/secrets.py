"""Which settings hold a secret, so that their values are not shown."""

from __future__ import annotations

from kwire_c.secrets import SECRET_SETTING as SECRET_SETTING
