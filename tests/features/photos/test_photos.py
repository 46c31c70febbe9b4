"""Photos of users."""

from __future__ import annotations

import io
import struct
import sys
import zipfile
import zlib
from base64 import b64encode
from dataclasses import replace
from hashlib import sha256
from uuid import uuid4

import pytest
from PIL import Image
from PIL.ExifTags import Base

from school_service.auth.tokens import issue_client_token
from school_service.core.permissions import Permission
from school_service.printing.printers import MOST_MEMORY, Printers
from tenants.registry.clients import create_client
from tests.factories import UNKNOWN_ID
from tests.features.invitations.test_invitations import in_school
from tests.printing.pictures import png
from tests.threads import run_concurrently

pytestmark = pytest.mark.program
PLACE = b"12 Allen Avenue"
RED, BLUE = (254, 0, 0), (0, 0, 254)


def picture(width=800, height=600, *, format="JPEG", orientation=None, mode="RGB"):
    """Make a picture with a red left half and a blue right half, and with the place where it was taken."""
    image = Image.new(mode, (width, height), "red")
    image.paste("blue", (width // 2, 0, width, height))
    exif = Image.Exif()
    exif[Base.GPSInfo] = {1: "N", 2: (6.0, 27.0, 11.0), 3: "E", 4: (3.0, 23.0, 45.0)}
    exif[Base.ImageDescription] = PLACE.decode()
    if orientation is not None:
        exif[Base.Orientation] = orientation
    written = io.BytesIO()
    more = {"comment": PLACE} if format == "JPEG" else {}
    image.save(written, format, exif=exif, icc_profile=b"a profile", **more)
    return written.getvalue()


def put(api, user, content, boundary="a-boundary-of-parts"):
    """Send a photo; werkzeug's own way leaves a file open where the body is large."""
    head = f'--{boundary}\r\nContent-Disposition: form-data; name="image"; filename="a.jpg"\r\n\r\n'.encode()
    body = head + content + f"\r\n--{boundary}--\r\n".encode()
    return api.put(
        f"/users/{user['id']}/photo", data=body, content_type=f"multipart/form-data; boundary={boundary}"
    )


def photo_of(api, user, **options):
    return api.get(f"/users/{user['id']}/photo", **options)


def opened(content):
    image = Image.open(io.BytesIO(content))
    image.load()
    return image


def is_like(colour, other):
    return all(abs(left - right) < 30 for left, right in zip(colour, other, strict=True))


@pytest.fixture
def user(make):
    return make.user()["user"]


def test_a_photo_is_made_anew(api, user):
    assert photo_of(api, user).status_code == 404

    answer = api.ok(put(api, user, picture(3000, 4000)))

    content = photo_of(api, user)
    digest = sha256(content.get_data()).hexdigest()
    assert answer == {
        **user,
        "photo": f"https://schools.example.org/users/{user['id']}/photo?v={digest[:12]}",
    }
    assert api.ok(api.get(f"/users/{user['id']}")) == answer
    image = opened(content.get_data())
    assert (image.format, image.size, image.mode) == ("JPEG", (450, 600), "RGB")
    assert PLACE not in content.get_data()
    assert not image.getexif()
    assert not {"exif", "icc_profile", "comment"} & set(image.info)
    assert [
        content.headers[name] for name in ("Content-Type", "Cache-Control", "X-Content-Type-Options")
    ] == [
        "image/jpeg",
        "private, no-cache",
        "nosniff",
    ]
    [entry] = api.ok(api.get(f"/audit?id={user['id']}&pageSize=1"))["data"]
    assert (entry["action"], entry["new"]) == ("update", {"photo": "set"})


def test_the_address_and_the_tag_of_a_photo_change_with_its_content(api, user, monkeypatch):
    before = api.get(f"/users/{user['id']}").headers["ETag"]
    first = api.ok(put(api, user, picture()))
    tag, photo_tag = api.get(f"/users/{user['id']}").headers["ETag"], photo_of(api, user).headers["ETag"]
    assert tag != before
    # The same picture again is the same photo, and time changes nothing.
    assert api.ok(put(api, user, picture())) == first
    assert len(api.ok(api.get(f"/audit?id={user['id']}"))["data"]) == 2
    assert api.get(f"/users/{user['id']}", headers={"If-None-Match": tag}).status_code == 304
    kept = photo_of(api, user, headers={"If-None-Match": photo_tag})
    assert (kept.status_code, kept.get_data(), kept.headers["Cache-Control"]) == (
        304,
        b"",
        "private, no-cache",
    )
    assert api.get(first["photo"].removeprefix("https://schools.example.org")).status_code == 200
    assert api.get(f"/users/{user['id']}/photo?w=1").status_code == 422
    assert api.request("HEAD", f"/users/{user['id']}/photo").headers["ETag"] == photo_tag

    second = api.ok(put(api, user, picture(400, 400)))
    assert second["photo"] != first["photo"]
    assert photo_of(api, user, headers={"If-None-Match": photo_tag}).status_code == 200

    state = api.app.extensions["school-service"]
    monkeypatch.setattr(state, "settings", replace(state.settings, public_url="https://example.org/x"))
    address = api.ok(api.get(f"/users/{user['id']}"))["photo"]
    assert address == second["photo"].replace("https://schools.example.org", "https://example.org/x")


def test_a_generated_client_gets_the_bytes_as_the_type_that_it_knows(api, user):
    api.ok(put(api, user, picture()))

    as_file = photo_of(api, user, headers={"Accept": "application/octet-stream"})

    assert (as_file.mimetype, as_file.headers["Vary"]) == ("application/octet-stream", "Accept")
    assert as_file.data == photo_of(api, user).data


def test_an_address_that_was_written_by_hand_is_answered_as_it_is(api, user):
    address = "https://pictures.example.org/ada.jpg"
    in_school(api, "UPDATE users SET photo = :photo WHERE id = :id", photo=address, id=user["id"])

    assert api.ok(api.get(f"/users/{user['id']}"))["photo"] == address
    assert photo_of(api, user).status_code == 404


def test_a_photo_is_taken_away(api, user):
    api.ok(put(api, user, picture()))

    assert api.ok(api.delete(f"/users/{user['id']}/photo")) == user
    assert photo_of(api, user).status_code == 404
    assert api.delete(f"/users/{user['id']}/photo").status_code == 404
    assert api.ok(api.get(f"/audit?id={user['id']}"))["data"][0]["new"] == {"photo": "removed"}


@pytest.mark.parametrize(
    ("orientation", "left", "top", "size"),
    [
        (None, RED, None, (600, 450)),
        (1, RED, None, (600, 450)),
        (2, BLUE, None, (600, 450)),
        (3, BLUE, None, (600, 450)),
        (4, RED, None, (600, 450)),
        (5, None, RED, (450, 600)),
        (6, None, RED, (450, 600)),
        (7, None, BLUE, (450, 600)),
        (8, None, BLUE, (450, 600)),
        (9, RED, None, (600, 450)),
    ],
)
def test_a_photo_stands_upright(api, user, orientation, left, top, size):
    for format in ("JPEG", "PNG"):
        api.ok(put(api, user, picture(1200, 900, format=format, orientation=orientation)))

        image = opened(photo_of(api, user).get_data())
        width, height = image.size
        assert image.size == (size if size[0] < size[1] else (480, 360))
        if left is not None:
            assert is_like(image.getpixel((width // 4, height // 2)), left)
        else:
            assert is_like(image.getpixel((width // 2, height // 4)), top)


@pytest.mark.parametrize("mode", ["L", "1", "P", "RGBA", "LA", "I;16", "CMYK"])
def test_every_kind_of_colours_becomes_rgb(api, user, mode):
    image = Image.new("RGB", (100, 100), "white").convert("L" if mode == "I;16" else "RGB")
    if mode == "I;16":
        image = Image.new("I;16", (100, 100), 0x8000)
    elif mode in ("RGBA", "LA"):
        image = Image.new(mode, (100, 100), (0, 0, 0, 0) if mode == "RGBA" else (0, 0))
    else:
        image = image.convert(mode)
    written = io.BytesIO()
    image.save(written, "JPEG" if mode == "CMYK" else "PNG")

    api.ok(put(api, user, written.getvalue()))

    made = opened(photo_of(api, user).get_data())
    expected = (128,) * 3 if mode == "I;16" else (255,) * 3
    assert (made.mode, made.size) == ("RGB", (100, 100))
    assert is_like(made.getpixel((50, 50)), expected)


def zipped():
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as archive:
        archive.writestr("photo.jpg", picture())
    return written.getvalue()


def saved(format):
    written = io.BytesIO()
    Image.new("RGB", (100, 100)).save(written, format)
    return written.getvalue()


def chunk(kind, content):
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def png_of(width, height, *chunks):
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + b"".join(chunks) + chunk(b"IEND", b"")


def no_photos():
    """Make files that are no photo, by their kind."""
    zeros = zlib.compress(b"\0" * (24 * 2**20), 9)
    return {
        "nothing": b"",
        "text": b"hello",
        "zip": zipped(),
        "svg": b'<svg xmlns="http://www.w3.org/2000/svg" width="100" height="100"/>',
        "gif": saved("GIF"),
        "webp": saved("WEBP"),
        "tiff": saved("TIFF"),
        "truncated jpeg": picture()[:2000],
        "head of a jpeg": picture()[:700],
        "truncated png": picture(format="PNG")[:300],
        "20,000 pixels a side": png_of(20_000, 20_000, chunk(b"IDAT", zeros)),
        "more pixels than are allowed": png_of(8000, 3001, chunk(b"IDAT", zeros)),
        "smaller than a face": png(63, 64),
        "a bomb of comments": png_of(100, 100, chunk(b"zTXt", b"a\0\0" + zeros)),
        "a bomb of a profile": png_of(100, 100, chunk(b"iCCP", b"a\0\0" + zeros)),
        "pixels of another size": png_of(4000, 4000, chunk(b"IDAT", zlib.compress(b"\0" * 10))),
        "a gif that says it is a png": b"\x89PNG\r\n\x1a\n" + saved("GIF"),
        "a jpeg with two sizes": picture(100, 100)[:-2] + picture(7000, 7000)[2:],
    }


def test_a_file_that_is_no_photo_is_refused(api, user):
    for what, content in no_photos().items():
        answer = put(api, user, content)
        if what == "a jpeg with two sizes" and answer.status_code == 200:
            # Decoders stop at its first end.
            assert opened(photo_of(api, user).get_data()).size == (100, 100)
            api.ok(api.delete(f"/users/{user['id']}/photo"))
            continue
        assert answer.status_code == 422, what
    assert put(api, user, b"x" * (8 * 2**20 + 1)).status_code == 413
    assert api.put(f"/users/{user['id']}/photo", data={"picture": (io.BytesIO(b""), "a")}).status_code == 422
    assert api.put(f"/users/{user['id']}/photo", {"image": "x"}).status_code == 415
    assert photo_of(api, user).status_code == 404


def test_broken_pictures_of_all_kinds_are_refused_or_made(api, user):
    """Bytes changed here and there: no error but a refusal."""
    for format in ("JPEG", "PNG"):
        whole = bytearray(picture(200, 200, format=format, orientation=6))
        for place in range(20, len(whole), max(1, len(whole) // 8)):
            broken = bytearray(whole)
            broken[place : place + 3] = b"\xff\xda\x00"
            assert put(api, user, bytes(broken)).status_code in {200, 422}


def test_the_memory_of_a_printer_is_bounded():
    """A photo of as many pixels as are allowed, with transparency: the printer stays."""
    image = Image.new("RGBA", (6000, 4000), (255, 0, 0, 128))
    written = io.BytesIO()
    image.save(written, "PNG")
    del image
    task = {"paper": "photo", "picture": b64encode(written.getvalue()).decode(), "most_pixels": 24_000_000}
    printers = Printers(1)
    try:
        made = printers.print(task)
        [printer] = printers._idle.take_all()
        assert printer.memory < MOST_MEMORY
        printer.kill()
    finally:
        printers.close()
    assert opened(made).size == (480, 320)


def test_a_printer_that_hangs_is_busy(api, user, monkeypatch):
    hanging = Printers(1, command=(sys.executable, "-c", "import time; time.sleep(600)"), timeout=0.2)
    monkeypatch.setitem(api.app.extensions, "printers", hanging)
    try:
        answer = put(api, user, picture())
    finally:
        hanging.close()

    assert (answer.status_code, "Retry-After" in answer.headers) == (503, True)
    assert photo_of(api, user).status_code == 404


class TestSetting:
    def test_nobody_sets_the_photo_of_a_user_with_more_permissions(self, api, make, user):
        api.ok(api.put(f"/users/{user['id']}/roles", {"role": make.role("read:metrics")["id"]}))
        caller = make.caller("write:users")
        api.ok(put(api, user, picture()))

        for answer in (put(caller, user, picture(100, 100)), caller.delete(f"/users/{user['id']}/photo")):
            assert (answer.status_code, "read:metrics" in answer.get_json()["message"]) == (403, True)
        api.ok(put(make.caller("write:users", "read:metrics"), user, picture(100, 100)))

    def test_an_own_permission_of_the_user_is_needed_as_own(self, api, make, user):
        role = make.role("read:metrics", reach="OWN")
        api.ok(api.put(f"/users/{user['id']}/roles", {"role": role["id"]}))
        caller = make.caller("write:users")
        assert put(caller, user, picture()).status_code == 403

        api.ok(api.put(f"/users/{caller.user['id']}/roles", {"role": role["id"]}))

        api.ok(put(caller, user, picture()))

    def test_pupils_do_not_set_their_own(self, make):
        pupil = make.caller()

        assert put(pupil, pupil.user, picture()).status_code == 403
        assert pupil.delete(f"/users/{pupil.user['id']}/photo").status_code == 403

    def test_a_photo_of_an_unknown_deleted_or_foreign_user_is_not_found(
        self, api, make, other_api, make_other, user
    ):
        api.ok(put(api, user, picture()))
        theirs = make_other.user()["user"]
        other_api.ok(put(other_api, theirs, picture()))

        for method, data in (
            ("GET", {}),
            ("PUT", {"data": {"image": (io.BytesIO(picture()), "x")}}),
            ("DELETE", {}),
        ):
            assert api.request(method, f"/users/{theirs['id']}/photo", **data).status_code == 404
        assert photo_of(api, {"id": UNKNOWN_ID}).status_code == 404
        assert put(api, {"id": UNKNOWN_ID}, picture()).status_code == 404
        assert photo_of(api.using(token=None), user).status_code == 401
        assert photo_of(api.using(school=other_api.school), user).status_code == 403

        api.ok(api.delete(f"/users/{user['id']}/delete"))
        assert photo_of(api, user).status_code == 404
        assert put(api, user, picture()).status_code == 404
        assert api.ok(api.put(f"/users/{user['id']}/restore"))["photo"]
        assert photo_of(api, user).status_code == 200


def test_many_at_once_leave_one_whole_photo(committing):
    api = committing.api
    user = committing.user()["user"]
    sizes = [(100 + 20 * number, 100) for number in range(6)]

    answers = run_concurrently(6, lambda number: put(api.using(), user, picture(*sizes[number])).status_code)

    assert set(answers) <= {200, 503}
    address = api.ok(api.get(f"/users/{user['id']}"))["photo"]
    content = photo_of(api, user).get_data()
    assert address.endswith(f"?v={sha256(content).hexdigest()[:12]}")
    assert opened(content).size in sizes


class TestReaders:
    """A reader without a permission for all sees their own photo, and related students' and form teachers'."""

    @pytest.fixture
    def school(self, api, make):
        """Two arms, each with a student and a form teacher, and a subject teacher of the first."""

        def person(student_or_employee):
            return {"id": student_or_employee["user"]}

        cohort = make.cohort()
        other = make.batch(cohort)
        people = {}
        for name, batch in (("one", cohort["id"]), ("two", other["id"])):
            student = make.student()
            make.enrolled(cohort, student, batch=batch)
            teacher = make.employee()
            api.ok(api.patch(f"/teachers/{batch}/add_to_batch", {"teacher_id": teacher["id"]}))
            people[f"student {name}"], people[f"form teacher {name}"] = (
                person(student),
                make.account_of(teacher),
            )
            people[f"child {name}"] = student
        people["nobody"] = make.user()["user"]
        accounts = {name: user for name, user in people.items() if "child" not in name}
        for user in accounts.values():
            api.ok(put(api, user, picture(100, 100)))
        return {**people, "accounts": accounts, "cohort": cohort["id"]}

    def names_shown(self, client, school):
        answers = {name: photo_of(client, user).status_code for name, user in school["accounts"].items()}
        assert set(answers.values()) <= {200, 404}
        return {name for name, status in answers.items() if status == 200}

    def account(self, api, make, user, *permissions):
        api.ok(api.put(f"/users/{user['id']}/password", {"password": "correct horse battery"}))
        if permissions:
            role = make.role(*permissions, reach="OWN")
            api.ok(api.put(f"/users/{user['id']}/roles", {"role": role["id"]}))
        username = api.ok(api.get(f"/users/{user['id']}"))["username"]
        return make.signed_in({"username": username, **user}, "correct horse battery")

    def test_a_reader_sees_photos_by_their_relations(self, api, make, school):
        everybody = set(school["accounts"])
        names = {"student one", "form teacher one"}
        for permissions in ((), ("read:users",)):
            pupil = self.account(api, make, school["student one"], *permissions)
            assert self.names_shown(pupil, school) == names
            teacher = self.account(api, make, school["form teacher one"], *permissions)
            assert self.names_shown(teacher, school) == names
        guardian = make.guardian(school["child two"])
        api.ok(api.put(f"/guardians/{guardian['id']}/account", {"user": school["nobody"]["id"]}))
        parent = self.account(api, make, school["nobody"])
        assert self.names_shown(parent, school) == {"student two", "form teacher two", "nobody"}
        assert self.names_shown(make.caller("read:users"), school) == everybody
        assert self.names_shown(make.caller("read:students"), school) == set()
        # Out of reach is as unknown is.
        refused, unknown = (photo_of(pupil, {"id": id}) for id in (school["student two"]["id"], str(uuid4())))
        for answer in (refused, unknown):
            assert answer.status_code == 404
        assert refused.get_json()["message"] == unknown.get_json()["message"]

    def test_a_client_needs_the_permission(self, app, tenancy, document, committing):
        user = committing.user()["user"]
        committing.api.ok(put(committing.api, user, picture(100, 100)))
        for permissions, status in (([Permission.STUDENTS_READ], 403), ([Permission.USERS_READ], 200)):
            name = f"photos-{status}"
            with tenancy.admin.begin() as connection:
                create_client(
                    connection, client_id=name, school_ids=[committing.api.school], permissions=permissions
                )
            with app.app_context():
                key = app.extensions["school-service"].verifier.key
                token = issue_client_token(key, name, [])["access_token"]
            answer = photo_of(committing.api.using(token=token), user)
            assert answer.status_code == status
            assert status == 200 or "read:users" in answer.get_json()["message"]

    def test_form_teachers_are_shown_with_its_address(self, api, school):
        photo = api.ok(api.get(f"/users/{school['form teacher one']['id']}"))["photo"]

        listed = api.ok(api.get(f"/teachers/{school['cohort']}"))

        assert listed["image_url"] == photo

    def test_a_photo_is_one_message_with_the_permission_and_two_by_a_relation(
        self, api, make, school, messages
    ):
        everybody = make.caller("read:users")
        pupil = self.account(api, make, school["student one"])
        parent = self.account(api, make, school["nobody"], "read:terms")
        for client, user, number in (
            (everybody, school["student two"], 1),
            (pupil, school["student one"], 2),
            (pupil, school["form teacher one"], 2),
            (pupil, school["student two"], 2),
            (parent, school["student two"], 2),
        ):
            photo_of(client, user)
            with messages() as sent:
                photo_of(client, user)
            assert len(sent) == number


def test_a_student_is_shown_with_the_address_of_their_photo(api, make):
    student = make.student()
    assert student["photo"] is None
    account = {"id": student["user"]}

    api.ok(put(api, account, picture()))

    listed = api.ok(api.get("/students", query_string={"search": student["admission_number"]}))["data"]
    photo = api.ok(api.get(f"/users/{student['user']}"))["photo"]
    assert photo == listed[0]["photo"] == api.ok(api.get(f"/students/{student['id']}"))["photo"]
    assert photo.startswith(f"https://schools.example.org/users/{student['user']}/photo")
