"""Encryption of messages, against the vectors of RFC 8291 and a decryption of our own."""

from typing import Final

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, derive_private_key, generate_private_key

from holdfast.push.message_encryption import BLOCK, MAX_PLAINTEXT, encrypt
from tests.push.service import Browser, decode, encode

SALT: Final = bytes(range(16))

# RFC 8291, appendix A
PLAINTEXT: Final = "V2hlbiBJIGdyb3cgdXAsIEkgd2FudCB0byBiZSBhIHdhdGVybWVsb24"
OURS: Final = "yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw"
THEIRS: Final = "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"
MESSAGE: Final = (
    "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A_"
    "yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN"
)


def test_the_example_of_the_rfc_is_encrypted_to_its_bytes() -> None:
    """RFC 8291, section 5: the same keys and salt yield the same message, to the byte."""
    key = derive_private_key(int.from_bytes(decode(OURS)), SECP256R1())
    salt = decode("DGv6ra1nlYgDCS1FRnbzlw")
    found = encrypt(decode(PLAINTEXT), THEIRS, "BTBZMqHH6r4Tts7J_aSIgg", salt=salt, key=key, block=1)
    assert encode(found) == MESSAGE


@pytest.mark.parametrize("length", [0, 1, BLOCK - 1, BLOCK, 2 * BLOCK, MAX_PLAINTEXT])
def test_a_browser_reads_what_was_encrypted(length: int) -> None:
    """Of every length, within the size that push services must accept; short ones are equally long."""
    browser, text = Browser("phone"), b"x" * length
    keys = browser.keys()
    found = encrypt(text, keys["p256dh"], keys["auth"], salt=SALT, key=generate_private_key(SECP256R1()))
    assert browser.decrypt(found) == text
    assert len(found) <= 4096
    if length < BLOCK:
        assert len(found) == 86 + BLOCK + 16


def test_a_text_that_is_too_long_is_refused() -> None:
    """Push services need not accept it."""
    keys = Browser("phone").keys()
    with pytest.raises(ValueError, match="3993"):
        encrypt(
            b"x" * (MAX_PLAINTEXT + 1), keys["p256dh"], keys["auth"], salt=SALT, key=generate_private_key(SECP256R1())
        )
