"""One gateway per address: limits, retries, timeouts and a circuit breaker for all requests to a provider."""

from ferrule.models.gateway.gateway import NOT_YET, Gateway, configure, get_gateway
from ferrule.models.gateway.report import GatewayReport
from ferrule.models.gateway.retries import PromptTooLong, RequestFailure, ToolsRefused
from ferrule.models.gateway.settings import GatewaySettings, Timeouts

__all__ = [
    "NOT_YET",
    "Gateway",
    "GatewayReport",
    "GatewaySettings",
    "PromptTooLong",
    "RequestFailure",
    "Timeouts",
    "ToolsRefused",
    "configure",
    "get_gateway",
]
