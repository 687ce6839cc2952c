"""Passwords, logins and API tokens. Their rules: `server.authenticator`."""

from typing import Annotated

from pydantic import Field

from holdfast.server.schemas.base import ListResponse, Name, RequestModel, ResponseModel, Timestamp

PasswordField = Annotated[str, Field(min_length=1, max_length=1000)]


class LoginRequest(RequestModel):
    password: PasswordField


class LoginLinkResponse(ResponseModel):
    path: Annotated[str, Field(description="What follows the address of the server in the link. It contains a secret.")]
    root_path: Annotated[
        str, Field(description="The path below which the server is published; empty if there is none.")
    ]
    expires_in: Annotated[float, Field(description="Seconds.")]


class ChangePasswordRequest(RequestModel):
    current: Annotated[str, Field(max_length=1000)] | None = None
    new: PasswordField


class LoginResponse(ResponseModel):
    id: str
    device: str
    address: str
    created_at: Annotated[Timestamp, Field(description="When the password was entered.")]
    used_at: Annotated[Timestamp, Field(description="When it was last used, to within minutes.")]
    current: Annotated[bool, Field(description="Whether this request was made with this login.")]


class LoginListResponse(ListResponse[LoginResponse]): ...


class CreateTokenRequest(RequestModel):
    name: Name


class TokenResponse(ResponseModel):
    id: str
    name: str
    created_at: Timestamp


class TokenListResponse(ListResponse[TokenResponse]): ...


class CreatedTokenResponse(TokenResponse):
    token: str
