"""The image formats that models read, recognized by their first bytes. Pure. Which models see images:
`models.model_list_cache`."""

from typing import Final

_MAGIC: Final = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)
IMAGE_TYPES: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})


def image_type(start: bytes) -> str | None:
    """The media type by the content. A declared type is not trusted, because a provider rejects a request with a wrong
    one."""
    for magic, kind in _MAGIC:
        if start.startswith(magic):
            return kind
    return "image/webp" if start[:4] == b"RIFF" and start[8:12] == b"WEBP" else None
