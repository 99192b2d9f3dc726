"""Which model a command asks, from its options."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from ferrule.cli.complaints import Complaints
from ferrule.errors import SettingsError
from ferrule.models.protocol import Model
from ferrule.pipeline import Pipeline, model
from ferrule.runs.modes import speaking

_WITHOUT_ADDRESS = ("embedded", "echo", "local")


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """What `--model` and its companions say; `base_url` is the model's own, not that of its fallback."""

    name: str
    base_url: str | None = None
    fallback: str | None = None
    mode: str = "auto"

    def pipeline(self) -> Pipeline:
        """A pipeline on the model. Raises `ModelError` for what can't be had, `DialectError` for an unknown mode."""
        _tell_of_warnings()
        options = {} if self.base_url is None else {"base_url": self._address()}
        if self.name.startswith("compatible:") and self.base_url is None:
            raise SettingsError(f"{self.name}: give the server's address by --base-url http://…/v1")
        return model(self.name, fallback=self.fallback, **options).using(mode=self.mode)

    def spoken_to(self, pipeline: Pipeline) -> Model:
        """The model as it is asked: where the mode is a notation, calls stand in its text."""
        return speaking(pipeline.model, self.mode)[0]

    def _address(self) -> str:
        address = self.base_url or ""
        if self.name.partition(":")[0] in _WITHOUT_ADDRESS:
            raise SettingsError(f"--base-url is for a provider's model, and {self.name} is asked at no address")
        if not address.startswith(("http://", "https://")):
            raise SettingsError(f"--base-url {address}: an address begins with http:// or https://")
        return address


def _tell_of_warnings() -> None:
    """Such as that another model is asked."""
    logger = logging.getLogger("ferrule.models")
    if not any(isinstance(handler, Complaints) for handler in logger.handlers):
        logger.addHandler(Complaints())
