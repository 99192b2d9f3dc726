"""An MCP server with an authorization server of the SDK's, in one process, over HTTP on loopback.

    python login_server.py

Prints its address. Every login is granted; tokens live an hour.
"""

from __future__ import annotations

import secrets
import socket
import time

import uvicorn
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    OAuthAuthorizationServerProvider,
    RefreshToken,
    construct_redirect_uri,
)
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions
from mcp.server.mcpserver import MCPServer
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken

LIFETIME = 3600
renewed = 0


class Everybody(OAuthAuthorizationServerProvider[AuthorizationCode, RefreshToken, AccessToken]):
    def __init__(self) -> None:
        self.clients: dict[str, OAuthClientInformationFull] = {}
        self.codes: dict[str, AuthorizationCode] = {}
        self.tokens: dict[str, AccessToken] = {}
        self.refreshing: dict[str, RefreshToken] = {}

    async def get_client(self, client_id):
        return self.clients.get(client_id)

    async def register_client(self, client_info):
        self.clients[client_info.client_id] = client_info

    async def authorize(self, client, params: AuthorizationParams) -> str:
        code = AuthorizationCode(
            code=secrets.token_hex(),
            scopes=params.scopes or [],
            expires_at=time.time() + 60,
            client_id=client.client_id,
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=True,
            resource=params.resource,
        )
        self.codes[code.code] = code
        return construct_redirect_uri(str(params.redirect_uri), code=code.code, state=params.state)

    async def load_authorization_code(self, client, authorization_code):
        return self.codes.get(authorization_code)

    async def exchange_authorization_code(self, client, authorization_code):
        del self.codes[authorization_code.code]
        return self.grant(client.client_id, authorization_code.scopes, authorization_code.resource)

    async def load_refresh_token(self, client, refresh_token):
        return self.refreshing.get(refresh_token)

    async def exchange_refresh_token(self, client, refresh_token, scopes):
        global renewed
        renewed += 1
        del self.refreshing[refresh_token.token]
        return self.grant(client.client_id, scopes, refresh_token.resource)

    async def load_access_token(self, token):
        found = self.tokens.get(token)
        return found if found is not None and found.expires_at > time.time() else None

    async def revoke_token(self, token):
        self.tokens.pop(token.token, None)

    def grant(self, client_id, scopes, resource) -> OAuthToken:
        access, refresh = secrets.token_hex(), secrets.token_hex()
        expires = int(time.time()) + LIFETIME
        self.tokens[access] = AccessToken(
            token=access, client_id=client_id, scopes=scopes, expires_at=expires, resource=resource
        )
        self.refreshing[refresh] = RefreshToken(token=refresh, client_id=client_id, scopes=scopes, resource=resource)
        return OAuthToken(access_token=access, refresh_token=refresh, expires_in=LIFETIME, scope=" ".join(scopes))


def main() -> None:
    listening = socket.create_server(("127.0.0.1", 0))
    base = f"http://127.0.0.1:{listening.getsockname()[1]}"
    settings = AuthSettings(
        issuer_url=base,
        resource_server_url=f"{base}/mcp",
        client_registration_options=ClientRegistrationOptions(enabled=True, valid_scopes=["use"]),
        validate_token_resource=True,
        required_scopes=["use"],
    )
    server = MCPServer("login", auth_server_provider=Everybody(), auth=settings)

    @server.tool()
    def count_renewals() -> str:
        """Count how often tokens were renewed."""
        return str(renewed)

    print(f"{base}/mcp", flush=True)
    uvicorn.Server(uvicorn.Config(server.streamable_http_app(), log_level="warning")).run(sockets=[listening])


if __name__ == "__main__":
    main()
