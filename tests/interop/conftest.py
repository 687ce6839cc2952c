"""Real Holdfast servers with a scripted upstream, and programs of other people in environments of their own."""

from tests.chat.conftest import chat_forker, shared, start, up

__all__ = ["chat_forker", "shared", "start", "up"]
