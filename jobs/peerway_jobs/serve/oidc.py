"""Login through OpenID Connect: the authorization code flow with PKCE, state and nonce (Authlib, joserfc)."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from peerway_common.located_toml import LocatedToml
from peerway_common.printable import shortened

MOST_PENDING = 1000
_ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "ES256", "ES384"]  # no shared secret, never "none"


class LoginFailed(Exception):
    """The provider, or something that claims to be it, did not prove who logs in."""


@dataclass
class Provider:
    """An OpenID provider.

    Its settings are a TOML file: issuer, client_id, client_secret, redirect, and the claim with the name that
    Slurm knows (preferred_username).
    """

    issuer: str
    client_id: str
    client_secret: str
    redirect: str
    claim: str = "preferred_username"
    _pending: dict[str, tuple[str, str, float]] = field(default_factory=dict, repr=False)
    _known: dict[str, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def read(cls, path: Path) -> Provider:
        """Read the provider's settings. Raises OSError, ValueError."""
        content = LocatedToml.read(path, ValueError).values
        wanted = ("issuer", "client_id", "client_secret", "redirect")
        if unknown := sorted(set(content) - {*wanted, "claim"}):
            raise ValueError(
                f"{path}: there is no {', '.join(unknown)}; there are {', '.join(wanted)}, claim"
            )
        for name in wanted:
            if not isinstance(content.get(name), str) or not content[name]:
                raise ValueError(f"{path}: {name} is missing; there have to be {', '.join(wanted)}")
        if not content["issuer"].startswith("https://"):
            raise ValueError(f"{path}: issuer = {content['issuer']!r} is not an address with https")
        if not content["redirect"].startswith(("https://", "http://")):
            raise ValueError(
                f"{path}: redirect = {content['redirect']!r} is not an address such as "
                "https://jobs.example.org/oidc/back"
            )
        claim = content.get("claim", "preferred_username")
        if not isinstance(claim, str) or not claim:
            raise ValueError(f"{path}: claim = {claim!r} is not the name of a claim")
        values: dict[str, Any] = {name: content[name] for name in wanted}
        return cls(**values, claim=claim)

    async def start(self, now: float) -> tuple[str, str]:
        """The address to send the browser to, and the state for its cookie. Raises LoginFailed."""
        from authlib.common.security import generate_token
        from authlib.integrations.httpx_client import AsyncOAuth2Client
        from httpx import HTTPError

        verifier, nonce = generate_token(48), secrets.token_urlsafe(32)
        async with AsyncOAuth2Client(
            self.client_id,
            self.client_secret,
            scope="openid profile",
            redirect_uri=self.redirect,
            code_challenge_method="S256",
        ) as client:
            try:
                place = (await self._metadata(client))["authorization_endpoint"]
            except (HTTPError, KeyError, ValueError) as error:
                raise LoginFailed(
                    f"the provider {self.issuer} does not answer as it should: "
                    f"{error or type(error).__name__}; try again later"
                ) from None
            url, state = client.create_authorization_url(place, code_verifier=verifier, nonce=nonce)
        self._pending = {key: each for key, each in self._pending.items() if each[2] > now - 600}
        if len(self._pending) >= MOST_PENDING:
            raise LoginFailed("too many logins are under way; try again in a minute")
        self._pending[state] = (verifier, nonce, now)
        return url, state

    async def finish(self, url: str, state: str, cookie: str) -> str:
        """The name of the person whom the provider sent back. Raises LoginFailed."""
        from authlib.common.errors import AuthlibBaseError
        from authlib.integrations.httpx_client import AsyncOAuth2Client
        from httpx import HTTPError

        if (
            not state
            or not secrets.compare_digest(state.encode(), cookie.encode())
            or state not in self._pending
        ):
            raise LoginFailed("this login was not begun in this browser, or took too long")
        verifier, nonce, _ = self._pending.pop(state)
        answer = parse_qs(urlsplit(url).query)
        if "code" not in answer:
            why = " ".join(answer.get("error", ["no code"]) + answer.get("error_description", []))
            raise LoginFailed(f"the provider let nobody in: {shortened(why, 200)}")
        try:
            async with AsyncOAuth2Client(
                self.client_id, self.client_secret, redirect_uri=self.redirect, state=state
            ) as client:
                metadata = await self._metadata(client)
                token = await client.fetch_token(
                    metadata["token_endpoint"], authorization_response=url, code_verifier=verifier
                )
                keys = await self._public(client, metadata["jwks_uri"])
                claims = self.proved(str(token.get("id_token", "")), keys, nonce)
                if self.claim not in claims and "userinfo_endpoint" in metadata:
                    claims |= await self._userinfo(client, metadata["userinfo_endpoint"], claims["sub"])
            return self.name_of(claims)
        except (AuthlibBaseError, HTTPError, KeyError, ValueError) as error:
            raise LoginFailed(f"the provider's answer was refused: {error}") from None

    def proved(self, token: str, keys: Any, nonce: str) -> dict[str, Any]:
        """The claims of an ID token, checked for signature, audience and nonce. Raises LoginFailed."""
        from joserfc import jwt
        from joserfc.errors import JoseError
        from joserfc.jwk import KeySet

        wanted = jwt.JWTClaimsRegistry(
            leeway=60,
            iss={"essential": True, "value": self.issuer},
            aud={"essential": True, "value": self.client_id},
            exp={"essential": True},
            sub={"essential": True},
            nonce={"essential": True, "value": nonce},
        )
        try:
            claims = jwt.decode(token, KeySet.import_key_set(keys), algorithms=_ALGORITHMS).claims
            wanted.validate(claims)
        except (JoseError, ValueError, KeyError, TypeError) as error:
            raise LoginFailed(f"the ID token was refused: {error}") from None
        return dict(claims)

    def name_of(self, claims: dict[str, Any]) -> str:
        """The name that Slurm knows, from the claims. Raises LoginFailed."""
        name = claims.get(self.claim)
        if not isinstance(name, str) or not 0 < len(name) <= 64 or not name.isprintable():
            raise LoginFailed(f"the provider gives no name in {self.claim}")
        return name

    @staticmethod
    async def _userinfo(client: Any, place: str, subject: str) -> dict[str, Any]:
        """Claims that are not in the ID token; the standard allows a provider to return them here."""
        claims = (await client.get(place)).raise_for_status().json()
        if not isinstance(claims, dict) or claims.get("sub") != subject:
            raise LoginFailed("the provider tells of somebody else than its ID token")
        return claims

    @staticmethod
    async def _public(client: Any, place: str) -> Any:
        """A public document of the provider; the request carries no token."""
        return (await client.request("GET", place, withhold_token=True)).raise_for_status().json()

    async def _metadata(self, client: Any) -> dict[str, Any]:
        if not self._known:
            place = f"{self.issuer.rstrip('/')}/.well-known/openid-configuration"
            metadata = await self._public(client, place)
            if not isinstance(metadata, dict) or metadata.get("issuer") != self.issuer:
                raise LoginFailed(f"{place} is of another issuer")
            self._known = metadata
        return self._known
