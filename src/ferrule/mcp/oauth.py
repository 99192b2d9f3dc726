"""Logs in to servers by OAuth, through the SDK's own client: tokens in a file, the browser's answer on loopback.

`ferrule mcp login` asks the person once. After that the saved tokens are used, and renewed when they expire.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import socket
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from ferrule._util.user_folders import find_config_folder, write_private_file
from ferrule.errors import RegistryError, SettingsError

if TYPE_CHECKING:
    from mcp.client.auth import OAuthClientProvider
    from mcp.client.auth.oauth2 import OAuthContext
    from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthToken

_PATH = "/callback"
_PAGE = b"<!doctype html><title>ferrule</title><p>You can close this window, and go back to the terminal."
_EXPIRES_EARLY = 30
"""Seconds before its end at which a token is renewed."""


def find_token_file(url: str) -> Path:
    """Find the file of a server's tokens, in the folder of the user's settings, which no contained command reads."""
    host = "".join(mark if mark.isalnum() or mark in ".-" else "_" for mark in urlsplit(url).hostname or "server")
    return find_config_folder() / "mcp" / f"{host}-{hashlib.sha256(url.encode()).hexdigest()[:12]}.json"


def delete_tokens(url: str) -> bool:
    """Delete the saved tokens of a server; returns whether there were any. Raises `OSError`."""
    file = find_token_file(url)
    existed = file.exists()
    file.unlink(missing_ok=True)
    return existed


@asynccontextmanager
async def open_login(url: str, authorize: Callable[[str], None] | None) -> AsyncIterator[OAuthClientProvider | None]:
    """Open the SDK's authentication for a server; None without saved tokens or an `authorize`, which shows an address.

    Raises `SettingsError` for a file of tokens that can't be read. A login that would need a person where there is no
    `authorize` raises `RegistryError` when the server is asked.
    """
    storage = TokenFile(find_token_file(url))
    if authorize is None and not storage.path.exists():
        yield None
        return
    redirect = _Redirect(url, storage.find_port() if authorize is not None else None)
    if authorize is not None:
        if redirect.port != storage.find_port():
            storage.forget_client()  # the server knows it by another address to return to
        await redirect.open()
    try:
        yield _make_provider(url, storage, redirect, authorize)
    finally:
        await redirect.close()


def _make_provider(
    url: str, storage: TokenFile, redirect: _Redirect, authorize: Callable[[str], None] | None
) -> OAuthClientProvider:
    from mcp.client.auth import OAuthClientProvider
    from mcp.shared.auth import OAuthClientMetadata
    from pydantic import AnyUrl

    async def show(address: str) -> None:
        if authorize is None:
            raise RegistryError("the saved login has expired")
        redirect.expect_answer()
        authorize(address)

    metadata = OAuthClientMetadata(
        client_name="ferrule",
        redirect_uris=[AnyUrl(f"http://127.0.0.1:{redirect.port}{_PATH}")],
        token_endpoint_auth_method="none",
    )
    provider = OAuthClientProvider(url, metadata, storage, show, redirect.wait)
    storage.attach(provider.context)
    return provider


class TokenFile:
    """The SDK's storage of tokens, in a file with the mode 600.

    What the SDK finds out about the authorization server is saved too: without it a new process couldn't renew a token.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._saved: dict[str, Any] = {}
        self._context: OAuthContext | None = None
        with suppress(FileNotFoundError):
            try:
                self._saved = json.loads(path.read_text(encoding="utf-8"))
            except ValueError as error:
                raise SettingsError(f"{path} is not a file of tokens ({error}); delete it and log in again") from error

    def attach(self, context: OAuthContext) -> None:
        """Give the SDK's context what was saved of it, and save what it finds out from now on."""
        from mcp.shared.auth import OAuthMetadata, ProtectedResourceMetadata

        self._context = context
        context.token_expiry_time = self._saved.get("expires")
        if "authorization_server" in self._saved:
            context.oauth_metadata = OAuthMetadata.model_validate(self._saved["authorization_server"])
        if "resource" in self._saved:
            context.protected_resource_metadata = ProtectedResourceMetadata.model_validate(self._saved["resource"])

    def find_port(self) -> int | None:
        """The port that the server sends a browser back to, as far as it knows this client."""
        addresses: list[str] = self._saved.get("client", {}).get("redirect_uris") or [""]
        return urlsplit(str(addresses[0])).port

    def forget_client(self) -> None:
        """Register anew at the next login."""
        self._saved = {}

    async def get_tokens(self) -> OAuthToken | None:
        """See the SDK's `TokenStorage`."""
        from mcp.shared.auth import OAuthToken

        return OAuthToken.model_validate(self._saved["tokens"]) if "tokens" in self._saved else None

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """Save new tokens, and when they expire."""
        self._saved["tokens"] = _dump(tokens)
        lifetime = tokens.expires_in
        self._saved["expires"] = None if lifetime is None else time.time() + max(1, int(lifetime) - _EXPIRES_EARLY)
        if self._context is not None and self._context.oauth_metadata is not None:
            self._saved["authorization_server"] = _dump(self._context.oauth_metadata)
        if self._context is not None and self._context.protected_resource_metadata is not None:
            self._saved["resource"] = _dump(self._context.protected_resource_metadata)
        self._write()

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        """See the SDK's `TokenStorage`."""
        from mcp.shared.auth import OAuthClientInformationFull

        return OAuthClientInformationFull.model_validate(self._saved["client"]) if "client" in self._saved else None

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Save what the server registered."""
        self._saved["client"] = _dump(client_info)
        self._write()

    def _write(self) -> None:
        write_private_file(self.path, json.dumps(self._saved, indent=2).encode())


def _dump(value: Any) -> Any:
    return value.model_dump(mode="json", exclude_none=True)


class _Redirect:
    """Receives the browser's request at the end of a login, on a port of loopback."""

    def __init__(self, url: str, port: int | None) -> None:
        self._url = url
        self._socket = socket.socket()
        # Else the port of a login a minute ago would count as taken, by its closed connection.
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._socket.bind(("127.0.0.1", port or 0))
        except OSError:  # taken by another program
            self._socket.bind(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        self._server: asyncio.Server | None = None
        self._answer: asyncio.Future[dict[str, list[str]]] | None = None

    async def open(self) -> None:
        """Begin to listen."""
        self._server = await asyncio.start_server(self._serve, sock=self._socket)

    def expect_answer(self) -> None:
        """Forget earlier answers: a server may ask for several logins, each with its own state, in one connection."""
        self._answer = asyncio.get_running_loop().create_future()

    async def close(self) -> None:
        """Stop listening."""
        if self._server is not None:
            self._server.close()
        self._socket.close()

    async def wait(self) -> AuthorizationCodeResult:
        """Wait for the code. Raises `RegistryError` if the login was refused."""
        from mcp.shared.auth import AuthorizationCodeResult

        assert self._answer is not None, "without `authorize` the address isn't shown"
        found = {name: values[0] for name, values in (await self._answer).items()}
        if "code" not in found:
            reason = found.get("error_description") or found.get("error", "no code came back")
            raise RegistryError(f"the login to {self._url} was refused: {reason}")
        return AuthorizationCodeResult(code=found["code"], state=found.get("state"), iss=found.get("iss"))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            head = await reader.readuntil(b"\r\n\r\n")
            method, target, *_ = head.decode("latin-1").split(" ")
            address = urlsplit(target)
            is_answer = method == "GET" and address.path == _PATH
            status, page = (b"200 OK", _PAGE) if is_answer else (b"404 Not Found", b"")
            writer.write(
                b"HTTP/1.1 %b\r\nContent-Type: text/html\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%b"
                % (status, len(page), page)
            )
            await writer.drain()
            if is_answer and self._answer is not None and not self._answer.done():
                self._answer.set_result(parse_qs(address.query))
        writer.close()
