"""Photos of users."""

from __future__ import annotations

import io

from PIL import Image
from PIL.ExifTags import Base


def picture(width=800, height=600, *, format="JPEG", orientation=None, mode="RGB"):
    """Make a picture whose left half is red and whose right half is blue, as a telephone would write it."""
    image = Image.new(mode, (width, height), "red")
    image.paste("blue", (width // 2, 0, width, height))
    exif = Image.Exif()
    exif[Base.GPSInfo] = {1: "N", 2: (6.0, 27.0, 11.0), 3: "E", 4: (3.0, 23.0, 45.0)}
    if orientation is not None:
        exif[Base.Orientation] = orientation
    written = io.BytesIO()
    image.save(written, format, exif=exif, comment=b"12 Allen Avenue")
    return written.getvalue()


def put(api, user, content, name="photo.jpg"):
    return api.put(f"/users/{user['id']}/photo", data={"image": (io.BytesIO(content), name)})


def test_a_photo_is_set(api, make):
    user = make.user()["user"]
    shown = api.ok(put(api, user, picture()))
    print(shown)
    answer = api.get(shown["photo"].removeprefix("http://localhost"))
    assert answer.status_code == 200
    print(answer.headers)
    assert (
        api.get(f"/users/{user['id']}/photo", headers={"If-None-Match": answer.headers["ETag"]}).status_code
        == 304
    )
