"""Passwords, logins and API tokens."""

from typing import Annotated

from pydantic import Field

from holdfast.server.schemas.base import ListResponse, Name, RequestModel, ResponseModel, Timestamp

PasswordField = Annotated[str, Field(min_length=1, max_length=1000)]


class LoginRequest(RequestModel):
    password: PasswordField


class ChangePasswordRequest(RequestModel):
    current: Annotated[str, Field(max_length=1000)] | None = None
    new: PasswordField


class LoginResponse(ResponseModel):
    id: str
    device: str
    address: str
    created_at: Annotated[Timestamp, Field(description="When the password was entered.")]
    used_at: Annotated[Timestamp, Field(description="The last request, to within minutes.")]
    current: Annotated[bool, Field(description="Whether this request belongs to it.")]


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
