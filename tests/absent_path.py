"""A path at which there is nothing, whatever the machine has."""

import secrets
import tempfile

NOWHERE = f"{tempfile.gettempdir()}/nowhere-{secrets.token_hex(8)}"
