"""The letterhead of a school's papers: its texts, its logo and its signature."""

from __future__ import annotations

import struct
import subprocess
import sys
import zlib
from hashlib import sha256
from io import BytesIO
from zipfile import ZipFile

import pytest
from sqlalchemy import text

from school_service.core.database import db
from school_service.core.errors import Busy, Invalid
from school_service.features.school.letterheads import service
from school_service.printing.picture_format import PictureFormat, read_format
from school_service.printing.printers import NotPrinted
from tenants.registry.schools import schema_name
from tests.postgres import on_postgresql_alone
from tests.printing.pictures import png
from tests.threads import run_concurrently

PATH = "/letterhead"
TEXTS = {
    "name": "Queen's College, Yàbá",
    "address": "P.M.B. 1001\nYàbá, Èkó",
    "phone_number": "+234 803 123 4567",
    "email_address": "office@example.com",
    "website": "https://example.com",
    "motto": "#let pass = $on$ *the* torch",
    "principal_name": "Dr Ọláyínká Ṣówándé",
    "principal_title": "Principal",
}
NOTHING = {**dict.fromkeys(TEXTS), "logo": None, "signature": None}


def jpeg(width=40, height=30):
    """Make the beginning of a JPEG, which no decoder would take: its kind and size stand in it."""
    application = b"\xff\xe0\x00\x10JFIF\0\x01\x01\0\0\x01\0\x01\0\0"
    frame = b"\xff\xc0\x00\x0b\x08" + struct.pack(">HH", height, width) + b"\x01\x01\x11\0"
    return b"\xff\xd8" + application + b"\xff\xff" + frame[1:]


def huge_png(width, height):
    """Make a PNG that says it is as large, of few bytes."""
    header = b"IHDR" + struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + header + struct.pack(">I", zlib.crc32(header))


def chunk(kind, content):
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def png_of(*chunks, depth=8, colours=2, interlaced=0, size=40):
    """Make a PNG of 40 pixels a side of these chunks."""
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", size, size, depth, colours, 0, 0, interlaced))
    return b"\x89PNG\r\n\x1a\n" + header + b"".join(chunks) + chunk(b"IEND", b"")


PIXELS = chunk(b"IDAT", zlib.compress((b"\0" + bytes(120)) * 40))
LOSSLESS_JPEG = b"\xff\xd8\xff\xc3\x00\x0b\x08\x00\x20\x00\x20\x01\x01\x11\0" + b"\xff\xd9"

# Files with the header of a picture of a good size that are none: refused by the printer.
UNPRINTABLE = {
    "no pixels": png_of(),
    "pixels cut off": png()[:60],
    "pixels of another size": png_of(chunk(b"IDAT", zlib.compress(b"\0" * 10))),
    "pixels that are not compressed": png_of(chunk(b"IDAT", b"\0" * 200)),
    "wrong checksum of the header": png()[:29] + b"\0\0\0\0" + png()[33:],
    "colours without a palette": png_of(PIXELS, colours=3),
    "unknown depth": png_of(PIXELS, depth=7),
    "unknown colours": png_of(PIXELS, colours=5),
    "unknown chunk that matters": png_of(chunk(b"ABCD", b""), PIXELS).replace(b"IDAT", b"IDAX"),
    "chunk longer than the file": png()[:33] + b"\x7f\xff\xff\xff" + png()[37:],
    "jpeg without pixels": jpeg(),
    "jpeg cut off": jpeg() + b"\xff\xda\x00\x08\x01\x01\x00\x00\x3f\x00",
    "jpeg with bad markers": jpeg() + b"\xff\x02\x00\x00" * 9,
    "lossless jpeg": LOSSLESS_JPEG,
}


@pytest.fixture
def printed(monkeypatch):
    """The tasks of printing: a process for each picture is for the tests of printers, and for one of these."""
    tasks = []
    monkeypatch.setattr(service, "print_paper", lambda task, _school: tasks.append(task))
    return tasks


def put(api, content, which="logo", name="logo.png"):
    return api.put(f"{PATH}/{which}", data={"image": (BytesIO(content), name)})


def logged(api):
    entries = api.ok(api.get("/audit", query_string={"entity": "letterhead"}))["data"]
    assert {change["entity_id"] for change in entries} <= {str(api.school)}
    return [(change["old"], change["new"]) for change in reversed(entries)]


def about(content, media_type="image/png", width=40, height=40):
    return {"media_type": media_type, "bytes": len(content), "width": width, "height": height}


# The texts


def test_texts_are_null_until_they_are_set(api):
    assert api.ok(api.get(PATH)) == NOTHING
    assert api.ok(api.patch(PATH, TEXTS)) == {**NOTHING, **TEXTS}
    assert api.ok(api.get(PATH)) == {**NOTHING, **TEXTS}


@pytest.mark.parametrize("name", TEXTS)
def test_a_text_is_changed_and_taken_back_and_the_others_stay(api, name):
    api.ok(api.patch(PATH, TEXTS))

    assert api.ok(api.patch(PATH, {name: None})) == {**NOTHING, **TEXTS, name: None}
    assert api.ok(api.patch(PATH, {name: TEXTS[name]})) == {**NOTHING, **TEXTS}


def test_the_log_has_old_and_new_texts_except_the_principals_name(api):
    api.ok(api.patch(PATH, {"motto": "Light", "principal_name": "A"}))
    api.ok(api.patch(PATH, {"motto": "Light", "principal_name": "B", "website": None}))
    api.ok(api.patch(PATH, {}))

    assert logged(api) == [
        ({"motto": None}, {"motto": "Light", "changed": ["principal_name"]}),
        ({}, {"changed": ["principal_name"]}),
    ]


def test_the_name_of_the_school_elsewhere_stays(api, make, place):
    api.ok(api.patch(PATH, {"name": "Another name"}))

    assert make.user()["user"]["school"]["name"] == place.name


@pytest.mark.parametrize(
    "body",
    [
        {"name": ""},
        {"name": "x" * 121},
        {"name": 1},
        {"name": "a\0"},
        {"name": "a\u0007"},
        {"address": "x" * 2001},
        {"email_address": "nobody"},
        {"website": "x" * 255},
        {"motto": "x" * 251},
        {"principal_name": " "},
        {"logo": None},
        {"only": True},
        [],
    ],
    ids=lambda body: str(body)[:30],
)
def test_bad_texts_are_422(api, body):
    assert api.patch(PATH, body).status_code == 422
    assert api.ok(api.get(PATH)) == NOTHING


# The pictures


@pytest.mark.parametrize("which", ["logo", "signature"])
def test_a_picture_is_set_shown_and_taken_away(api, printed, which):
    content = png(40, 16)
    api.ok(api.patch(PATH, TEXTS))

    answer = api.ok(put(api, content, which))

    assert answer == {**NOTHING, **TEXTS, which: about(content, height=16)} == api.ok(api.get(PATH))
    assert len(printed) == 1
    shown = api.get(f"{PATH}/{which}")
    assert (shown.status_code, shown.content_type, shown.get_data()) == (200, "image/png", content)
    assert shown.headers["X-Content-Type-Options"] == "nosniff"
    assert shown.headers["Content-Disposition"] == f'inline; filename="{which}.png"'
    assert api.ok(api.delete(f"{PATH}/{which}")) == {**NOTHING, **TEXTS}
    for answer in (api.get(f"{PATH}/{which}"), api.delete(f"{PATH}/{which}")):
        message = f"The letterhead has no {which}."
        assert (answer.status_code, answer.get_json()["message"]) == (404, message)
    digest = sha256(content).hexdigest()
    assert logged(api)[1:] == [({which: None}, {which: digest}), ({which: digest}, {which: None})]


def test_a_jpeg_is_shown_as_one(api, printed):
    content = jpeg()

    assert api.ok(put(api, content, name="x.png"))["logo"] == about(content, "image/jpeg", 40, 30)

    shown = api.get(f"{PATH}/logo")
    assert (shown.content_type, shown.get_data()) == ("image/jpeg", content)
    assert 'filename="logo.jpg"' in shown.headers["Content-Disposition"]


@pytest.mark.parametrize(
    ("accept", "media_type"),
    [
        ("", "image/png"),
        ("*/*", "image/png"),
        ("image/*", "image/png"),
        ("text/html", "image/png"),
        ("application/octet-stream", "application/octet-stream"),
        ("application/octet-stream, image/png", "image/png"),
        ("application/octet-stream, */*;q=0.1", "application/octet-stream"),
    ],
)
def test_a_picture_has_the_media_type_that_the_client_prefers(api, printed, accept, media_type):
    api.ok(put(api, png()))

    answer = api.get("/letterhead/logo", headers={"Accept": accept})

    assert (answer.status_code, answer.mimetype, answer.data) == (200, media_type, png())
    assert "Accept" in answer.headers["Vary"]


def test_a_real_picture_is_printed_and_a_broken_one_is_refused(api):
    """With a printer, as it is served."""
    assert api.ok(put(api, png()))["logo"] == about(png())

    broken = png(colour=(9, 9, 9))[:60]
    answer = put(api, broken)

    assert (answer.status_code, answer.get_json()["message"]) == (
        422,
        "The image can't be printed: it is broken, or of a form that is not known.",
    )
    assert api.get(f"{PATH}/logo").get_data() == png()
    assert len(logged(api)) == 1


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "neither PNG nor JPEG"),
        (b"GIF89a" + b"\0" * 40, "neither PNG nor JPEG"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'><script/></svg>", "neither PNG nor JPEG"),
        (b"\x89PNG\r\n\x1a\n", "neither PNG nor JPEG"),
        (png()[:20], "its size can't be read"),
        (b"\xff\xd8\xff\xe0\x00\x10JFIF", "its size can't be read"),
        (b"\xff\xd8\xff\xff\xff\xff\xff", "its size can't be read"),
        (jpeg()[:-5], "its size can't be read"),
        (huge_png(20_000, 20_000), "20,000 × 20,000 pixels"),  # noqa: RUF001 -- times
        (huge_png(2**32 - 1, 16), "each side must be from 16 to 2,000"),
        (jpeg(2001, 100), "each side must be from 16 to 2,000"),
        (png(15, 40), "each side must be from 16 to 2,000"),
        (png(40, 15), "each side must be from 16 to 2,000"),
        (jpeg(0, 0), "each side must be from 16 to 2,000"),
        (png(15, 15), "each side must be from 16 to 2,000"),
        (huge_png(0, 0), "each side must be from 16 to 2,000"),
        (huge_png(2001, 2001), "each side must be from 16 to 2,000"),
        (b"RIFF\x24\0\0\0WEBPVP8 " + b"\0" * 40, "neither PNG nor JPEG"),
        (b"BM" + b"\0" * 60, "neither PNG nor JPEG"),
        (b"\0\0\1\0\1\0" + png(), "neither PNG nor JPEG"),
        (b"II*\0" + b"\0" * 60, "neither PNG nor JPEG"),
        (b"%PDF-1.7\n%%EOF", "neither PNG nor JPEG"),
        (b"A text", "neither PNG nor JPEG"),
        (b"<!DOCTYPE html><script>alert(1)</script>" + png(), "neither PNG nor JPEG"),
        (b"\xff\xd8\xff\xe0\xff\xff" + b"\0" * 40, "its size can't be read"),
    ],
    ids=range(25),
)
def test_a_file_that_is_no_picture_or_too_large_is_refused_before_it_is_decoded(api, printed, content, words):
    answer = put(api, content)

    assert answer.status_code == 422
    assert words in answer.get_json()["message"]
    assert printed == []
    assert api.ok(api.get(PATH)) == NOTHING


def test_a_picture_that_can_not_be_decoded_is_refused_by_the_printer():
    """In one process, as one for each would take long; that nothing is stored then is told above."""
    for name, content in UNPRINTABLE.items():
        assert read_format(content, service.LIMITS), name
    program = f"""
from base64 import b64encode
from typst import TypstError
from school_service.printing.papers import print_picture
for name, content in {UNPRINTABLE!r}.items():
    try:
        print_picture(picture=b64encode(content).decode())
        print("printed", name)
    except TypstError:
        print("refused", name)
for content in {[png(), *TAKEN.values()]!r}:
    print_picture(picture=b64encode(content).decode())
"""
    said = subprocess.run([sys.executable, "-I", "-c", program], capture_output=True, text=True, check=True)

    assert said.stdout.splitlines() == [f"refused {name}" for name in UNPRINTABLE]


TAKEN = {
    "interlaced, 16 bits": png_of(
        chunk(b"IDAT", zlib.compress(bytes((4 * 15 + 40 * 6 * 4) * 400))), depth=16, interlaced=1
    ),
    "of several pictures": png_of(chunk(b"acTL", struct.pack(">II", 2, 0)), PIXELS),
    "a page behind its end": png() + b"<script>alert(1)</script>",
    "a comment and colours of 1 MiB": png_of(
        *(chunk(kind, b"name\0\0" + zlib.compress(bytes(2**20))) for kind in (b"iCCP", b"zTXt")), PIXELS
    ),
    "colours that are not compressed": png_of(chunk(b"iCCP", b"name\0\0" + bytes(20)), PIXELS),
}
"""Parts beside a picture that is printed; bytes behind its end are shown as a picture, by its media type."""


@pytest.mark.parametrize("name", TAKEN)
def test_a_picture_with_harmless_parts_beside_it_is_taken(api, printed, name):
    assert api.ok(put(api, TAKEN[name]))["logo"] == about(TAKEN[name])
    shown = api.get(f"{PATH}/logo")
    assert (shown.content_type, shown.get_data()) == ("image/png", TAKEN[name])
    assert shown.headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize("kind", [b"iCCP", b"zTXt"])
@pytest.mark.parametrize("behind", [False, True])
def test_a_chunk_that_would_fill_the_memory_beside_the_pixels_is_refused(api, printed, kind, behind):
    bomb = chunk(kind, b"bomb\0\0" + zlib.compress(bytes(4 * 2**20 + 1)))

    answer = put(api, png_of(*((PIXELS, bomb) if behind else (bomb, PIXELS))))

    assert (answer.status_code, answer.get_json()["message"]) == (422, MORE_THAN_4_MIB)
    assert printed == []
    assert api.ok(api.get(PATH)) == NOTHING


MORE_THAN_4_MIB = "The image has a colour profile or comments of more than 4 MiB."
PACKED = zlib.compress(bytes(2**20))
BESIDE = {
    "zTXt": chunk(b"zTXt", b"comment\0\0" + PACKED),
    "zTXt that break": chunk(b"zTXt", b"comment\0\0" + PACKED[:-4] + b"none"),
    "iTXt": chunk(b"iTXt", b"comment\0\1\0en\0\0" + PACKED),
}


@pytest.mark.parametrize("name", BESIDE)
def test_many_comments_count_together(api, printed, name):
    many = png_of(PIXELS, *[BESIDE[name]] * 5)

    answer = put(api, many)

    assert (answer.status_code, answer.get_json()["message"]) == (422, MORE_THAN_4_MIB)
    assert printed == []
    assert api.ok(put(api, png_of(PIXELS, *[BESIDE[name]] * 4)))["logo"]


def test_a_comment_that_is_not_compressed_is_as_large_as_it_is(api, printed):
    plain = chunk(b"iTXt", b"comment\0\0\0en\0\0" + PACKED)

    assert api.ok(put(api, png_of(PIXELS, *[plain] * 20)))["logo"]


def test_a_zip_named_png_is_refused(api, printed):
    file = BytesIO()
    with ZipFile(file, "w") as archive:
        archive.writestr("logo.png", png())

    assert put(api, file.getvalue()).status_code == 422


def test_more_than_512_kib_is_413(api, printed):
    def send(size):
        # Written by hand: the test client would leave a file open.
        head = b'Content-Disposition: form-data; name="image"; filename="logo.png"'
        form = b"--x\r\n%b\r\n\r\n%b\r\n--x--\r\n" % (head, png().ljust(size, b"\0"))
        return api.put(f"{PATH}/logo", data=form, content_type="multipart/form-data; boundary=x")

    answer = send(512 * 1024 + 1)
    message = f"The file has 524,289 bytes; 524,288 are allowed. {service.MAKE_SMALLER}"
    assert (answer.status_code, answer.get_json()["message"]) == (413, message)
    assert printed == []
    assert api.ok(send(512 * 1024))["logo"]["bytes"] == 512 * 1024


def test_the_bounds_themselves_are_taken(api, printed):
    for width, height in ((16, 16), (2000, 2000)):
        content = huge_png(width, height)
        assert api.ok(put(api, content))["logo"] == about(content, width=width, height=height)


def test_two_files_are_refused(api, printed):
    form = {"image": [(BytesIO(png()), "a.png"), (BytesIO(png(50)), "b.png")]}

    answer = api.put(f"{PATH}/logo", data=form, content_type="multipart/form-data")

    assert answer.status_code == 422
    assert api.ok(api.get(PATH)) == NOTHING


@pytest.mark.parametrize("form", [{}, {"logo": (BytesIO(png()), "x.png")}, {"image": "text"}], ids=range(3))
def test_a_form_without_the_file_is_422(api, printed, form):
    assert api.put(f"{PATH}/logo", data=form, content_type="multipart/form-data").status_code == 422


@pytest.mark.parametrize(("error", "status"), [(NotPrinted, 422), (Busy, 503)])
def test_a_refusal_of_the_printer_is_answered_and_nothing_is_stored(api, monkeypatch, error, status):
    def fail(_task, _school):
        raise error

    monkeypatch.setattr(service, "print_paper", fail)

    answer = put(api, png())

    assert answer.status_code == status
    assert ("Retry-After" in answer.headers) == (status == 503)
    assert api.ok(api.get(PATH)) == NOTHING


@on_postgresql_alone
def test_a_picture_is_printed_while_no_connection_is_taken(committing, monkeypatch):
    taken = []
    monkeypatch.setattr(
        service, "print_paper", lambda _task, _school: taken.append(db.engine.pool.checkedout())
    )

    committing.api.ok(put(committing.api, png()))

    assert taken == [0]


def test_the_same_picture_again_changes_nothing_and_may_be_both(api, printed):
    first = api.ok(put(api, png()))
    log = logged(api)

    assert api.ok(put(api, png())) == first
    assert logged(api) == log
    assert api.ok(put(api, png(), "signature"))["signature"] == first["logo"]
    # A picture that the logo gives up stays the signature.
    api.ok(api.delete(f"{PATH}/logo"))
    assert api.get(f"{PATH}/signature").get_data() == png()


def test_a_picture_without_a_use_is_gone_and_one_of_a_publication_stays(committing, tenancy, printed):
    api, schema = committing.api, schema_name(committing.api.school)

    def stored(statement="SELECT width FROM pictures ORDER BY width"):
        with tenancy.admin.begin() as connection:
            connection.execute(text(f'SET LOCAL search_path TO "{schema}"'))
            result = connection.execute(text(statement))
            return list(result.scalars()) if result.returns_rows else None

    for width in (20, 21, 22):
        api.ok(put(api, png(width)))
    assert stored() == [22]
    term = committing.term()
    cohort = committing.cohort(session={"id": term["sessionId"]})
    stored(
        "INSERT INTO publications (id, batch_id, cohort_id, session_id, term_id, version, state, rules, logo_id,"
        " published_at, published_by, published_by_name)"
        f" SELECT gen_random_uuid(), '{cohort['id']}', '{cohort['id']}', '{term['sessionId']}', '{term['id']}', 1,"
        " 'PUBLISHED', '{}', id, now(), 'x', 'x' FROM pictures"
    )

    api.ok(put(api, png(23)))
    api.ok(api.delete(f"{PATH}/logo"))

    assert stored() == [22]
    # It is there again, not a second time.
    assert api.ok(put(api, png(22)))["logo"]["width"] == 22
    assert stored() == [22]


def test_the_other_schools_letterhead_is_its_own(api, other_api, printed):
    api.ok(api.patch(PATH, TEXTS))
    api.ok(put(api, png()))

    assert other_api.ok(other_api.get(PATH)) == NOTHING
    assert other_api.get(f"{PATH}/logo").status_code == 404
    assert other_api.delete(f"{PATH}/logo").status_code == 404
    crossed = api.using(school=other_api.school)
    for path in (PATH, f"{PATH}/logo", f"{PATH}/signature"):
        assert crossed.get(path).status_code == 403
    assert put(crossed, png()).status_code == 403
    other_api.ok(put(other_api, png(50)))
    assert api.get(f"{PATH}/logo").get_data() == png()


def test_of_changes_at_once_each_holds(committing, printed):
    pictures = {"logo": png(60), "signature": png(61)}

    def change(number):
        api = committing.api.using()
        if number < 2:
            which = list(pictures)[number]
            return put(api, pictures[which], which).status_code
        name = list(TEXTS)[number - 2]
        return api.patch(PATH, {name: TEXTS[name]}).status_code

    assert run_concurrently(2 + len(TEXTS), change) == [200] * (2 + len(TEXTS))

    answer = committing.api.ok(committing.api.get(PATH))
    assert {name: answer[name] for name in TEXTS} == TEXTS
    assert (answer["logo"]["width"], answer["signature"]["width"]) == (60, 61)


def test_the_messages_of_letterheads(api, printed, messages):
    def cost(send):
        with messages() as sent:
            assert send().status_code == 200
        return len(sent)

    assert cost(lambda: api.patch(PATH, TEXTS)) == 4
    # Bound twice: nothing is taken while it is printed.
    assert cost(lambda: put(api, png())) <= 6
    assert cost(lambda: put(api, png(41))) <= 6
    assert cost(lambda: api.get(PATH)) == 1
    assert cost(lambda: api.delete(f"{PATH}/logo")) == 4


@pytest.mark.parametrize(
    ("content", "picture"),
    [
        (png(17, 1999), PictureFormat("image/png", 17, 1999)),
        (jpeg(1999, 17), PictureFormat("image/jpeg", 1999, 17)),
        # Progressive, behind an EXIF segment and a marker without a length.
        (
            b"\xff\xd8\xff\x01\xff\xe1\x00\x08Exif\0\0\xff\xc2\x00\x0b\x08\x00\x20\x00\x30\x01\x01\x11\0",
            PictureFormat("image/jpeg", 48, 32),
        ),
    ],
    ids=range(3),
)
def test_the_size_is_read_from_the_first_bytes(content, picture):
    assert read_format(content, service.LIMITS) == picture


def test_no_beginning_of_a_picture_is_read_beyond_its_end():
    for content in (png(), jpeg()):
        for length in range(len(content)):
            try:
                read_format(content[:length], service.LIMITS)
            except Invalid:
                continue
