"""Photos of people, made anew from uploaded pictures: small, upright, and without anything beside the picture.

A telephone writes the place of the shot into a picture: the home of a child.
"""

from __future__ import annotations

import io
import struct
from binascii import a2b_base64

from PIL import Image
from PIL.ExifTags import Base

from school_service.printing import BrokenPicture

FITS_INTO = (480, 600)  # pixels: width and height
QUALITY = 80  # of the JPEG
_FORMATS = ("JPEG", "PNG")
# How a picture is turned upright, by the number that its EXIF has (Exif 3.0, 4.6.5.1.6).
_TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
_LYING = 5  # from this number on width and height change places
# Errors of Pillow for a broken block of EXIF, where it reads it by itself.
_BROKEN_EXIF = (struct.error, KeyError, SyntaxError, TypeError, ValueError, OSError, ZeroDivisionError)


def make_photo(*, picture: str, most_pixels: int) -> bytes:
    """Make a photo, a JPEG no larger than FITS_INTO, of a JPEG or PNG in base64 with so many pixels at most.

    It is turned upright, on white, and has neither metadata nor a profile. Raises BrokenPicture.
    """
    try:
        with Image.open(io.BytesIO(a2b_base64(picture)), formats=_FORMATS) as image:
            if image.width * image.height > most_pixels:
                raise BrokenPicture("The picture is larger than its head says.")
            return _photo(image)
    except BrokenPicture:
        raise
    except Exception as error:
        # Decoders raise any error for broken bytes, and all of them mean the same.
        raise BrokenPicture(f"{type(error).__name__}: {error}") from error


def _photo(image: Image.Image) -> bytes:
    orientation = _orientation(image)
    width, height = FITS_INTO
    box = (height, width) if orientation >= _LYING else (width, height)
    image.draft("RGB", box)  # a JPEG is decoded at half, a quarter or an eighth of its size
    shown = _in_colours(image)
    shown.thumbnail(box, Image.Resampling.LANCZOS, reducing_gap=2.0)
    if orientation != 1:
        shown = shown.transpose(_TURNS[orientation])
    # A new picture has no metadata of the old one, such as comments.
    photo = Image.new("RGB", shown.size, "white")
    photo.paste(shown, mask=shown if shown.mode == "RGBA" else None)
    written = io.BytesIO()
    photo.save(written, "JPEG", quality=QUALITY)
    return written.getvalue()


def _orientation(image: Image.Image) -> int:
    """Read how the picture has to be turned; unreadable EXIF says nothing."""
    try:
        orientation = image.getexif().get(Base.Orientation)
    except _BROKEN_EXIF:
        return 1
    return orientation if orientation in _TURNS else 1


def _in_colours(image: Image.Image) -> Image.Image:
    if image.mode.startswith("I"):
        # Of 16 bits: Pillow would cut off all brightness above the lowest 256 steps.
        return image.point(lambda step: step / 256).convert("L").convert("RGB")
    return image.convert("RGBA" if image.has_transparency_data else "RGB")
