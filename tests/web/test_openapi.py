"""The OpenAPI document, and the page that shows it."""

from __future__ import annotations

import json
import re
import warnings
from dataclasses import replace
from urllib.parse import urljoin

import pytest
from openapi_schema_validator import OAS30Validator

from school_service.app import create_app
from school_service.features.auth_provider.token_form import FORM
from school_service.web.openapi import documentation
from tests.client import Document

# Members of an answer that are there where there is something to tell.
_OF_UPLOADS = {"changes", "not_in_sheet", "ignored_columns", "warnings"}
_OF_PROVIDERS = {
    *("authorization_endpoint", "userinfo_endpoint", "revocation_endpoint", "end_session_endpoint"),
    *("response_modes_supported", "revocation_endpoint_auth_methods_supported", "scopes_supported"),
    *("code_challenge_methods_supported", "subject_types_supported", "claims_supported"),
    *("id_token_signing_alg_values_supported", "authorization_response_iss_parameter_supported"),
    *("request_parameter_supported", "request_uri_parameter_supported"),
}
_OF_PROFILES = {"name", "given_name", "family_name", "preferred_username"}
_OF_GAINS = {"credentials", "credentials_total", "credentials_of_kind"}
AT_TIMES = {
    ("POST", "/auth/oauth/token"): {"refresh_token", "scope", "school_id", "id_token"},
    ("GET", "/.well-known/oauth-authorization-server"): _OF_PROVIDERS,
    ("GET", "/.well-known/oauth-authorization-server/auth"): _OF_PROVIDERS,
    ("GET", "/auth/.well-known/oauth-authorization-server"): _OF_PROVIDERS,
    ("GET", "/auth/.well-known/openid-configuration"): _OF_PROVIDERS,
    **dict.fromkeys((("GET", "/auth/userinfo"), ("POST", "/auth/userinfo")), _OF_PROFILES),
    ("POST", "/assessments/{id}/scoresheet"): _OF_UPLOADS,
    ("POST", "/cohort-subjects/{id}/mark-sheet"): _OF_UPLOADS,
    ("POST", "/comments/upload-sheet"): _OF_UPLOADS,
    ("POST", "/metrics/upload-sheet"): _OF_UPLOADS,
    ("GET", "/cohort-subjects"): {"arms_without_teacher"},
    ("GET", "/cohorts"): {"batches"},
    ("GET", "/submissions"): {"cohort", "classroom"},
    ("GET", "/result-settings"): {"level", "marks"},
    ("PATCH", "/result-settings"): {"level", "marks"},
    ("POST", "/publications"): {
        *("registers_missing", "without_assessments", "comments_missing", "traits_missing", "photos_missing"),
    },
    ("POST", "/publications/{id}/reopening"): {"chain"},
    ("POST", "/registers/upload-sheet"): _OF_UPLOADS,
    ("POST", "/students/update-sheet"): _OF_UPLOADS | _OF_GAINS,
    ("POST", "/employees/import-sheet"): {"replaced_values", "ignored_columns", "warnings"},
    ("POST", "/students/import-sheet"): {
        *("enrolled", "replaced_values", "ignored_columns", "warnings"),
        *("guardians_created", "guardians_found"),
        *_OF_GAINS,
    },
    ("GET", "/verify/{school}/{code}"): {"sessions"},
    **dict.fromkeys(
        (
            ("POST", "/permissions"),
            ("PATCH", "/roles/{id}/permissions"),
            ("PUT", "/role-reaches"),
            ("PUT", "/users/{id}/roles"),
            ("PUT", "/users/{id}/restore"),
            ("PUT", "/guardians/{id}/account"),
            ("PUT", "/students/{id}/guardians/{guardian_id}"),
            ("DELETE", "/students/{id}/guardians/{guardian_id}/stop"),
            ("POST", "/students"),
            ("PATCH", "/students/{id}"),
        ),
        _OF_GAINS,
    ),
}

NAME = re.compile(r"[A-Z][A-Za-z]*")


@pytest.fixture
def visitor(app):
    return app.test_client()


def assets(page, prefix=""):
    """The addresses that the page names, as a browser that has it from below a prefix finds them."""
    written = re.findall(r'(?:src|href|data-document)="([^"]*)"', page.get_data(as_text=True))
    return [urljoin(f"{prefix}/docs", address) for address in written]


def resolve(document, node):
    while "$ref" in node:
        kind, name = node["$ref"].split("/")[-2:]
        node = document.spec["components"][kind][name]
    return node


def parts(document, schema):
    """Give a schema and all that it is made of."""
    schema = resolve(document, schema)
    yield schema
    for inner in (*schema.get("properties", {}).values(), *schema.get("anyOf", ()), schema.get("items")):
        if inner is not None:
            yield from parts(document, inner)


def bodies(document):
    """Give each operation that takes a body, with the media type and the schema of it."""
    for key, operation in document.operations().items():
        for kind, media in operation.get("requestBody", {"content": {}})["content"].items():
            yield key, kind, media["schema"]


def answers(document):
    """Give each operation with the media type and the schema of its answer."""
    for key, operation in document.operations().items():
        for kind, media in operation["responses"]["200"]["content"].items():
            yield key, kind, resolve(document, media["schema"])


# The addresses


def test_the_document_needs_no_token_and_is_the_applications_own(visitor, app, document):
    answer = visitor.get("/openapi.json")

    assert (answer.status_code, answer.mimetype) == (200, "application/json")
    assert answer.get_json() == json.loads(app.json.dumps(document.spec))


def test_a_document_that_is_known_is_not_sent_again(visitor):
    tag = visitor.get("/openapi.json").headers["ETag"]

    again = visitor.get("/openapi.json", headers={"If-None-Match": tag})

    assert (again.status_code, again.get_data()) == (304, b"")


def test_the_page_needs_no_token_and_lets_the_browser_load_from_here_alone(visitor):
    page = visitor.get("/docs")

    assert (page.status_code, page.mimetype) == (200, "text/html")
    policy = dict(part.strip().split(" ", 1) for part in page.headers["Content-Security-Policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert {policy[kind] for kind in ("script-src", "style-src", "connect-src")} == {"'self'"}
    assert "<title>School Service" in page.get_data(as_text=True)


def test_all_that_the_page_loads_comes_from_here_and_may_be_kept_for_good(visitor):
    addresses = [address for address in assets(visitor.get("/docs")) if "assets" in address]

    assert len(set(addresses)) == 5
    for address in addresses:
        assert address.startswith("/docs/assets/")
        answer = visitor.get(address)
        assert answer.status_code == 200
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.cache_control.immutable
        assert answer.cache_control.max_age == 365 * 24 * 3600
        answer.close()


def test_browsers_find_an_icon_for_every_page(visitor):
    icon = visitor.get("/favicon.ico")

    assert (icon.status_code, icon.mimetype) == (200, "image/svg+xml")
    assert icon.get_data().startswith(b"<svg")


def test_the_page_leads_to_the_guide_which_finds_all_that_it_loads(visitor):
    page = visitor.get("/docs")
    assert 'href="docs/guide"' in page.get_data(as_text=True)

    guide = visitor.get("/docs/guide")

    assert (guide.status_code, guide.mimetype) == (200, "text/html")
    text = guide.get_data(as_text=True)
    for section in (
        "the-principal-sets-up-the-next-session",
        "papers",
        "the-principal-corrects-published-results",
    ):
        assert f'href="#{section}"' in text
        assert f'<h2 id="{section}">' in text
    assert "copy-from?dry_run=true" in text
    assert guide.headers["Content-Security-Policy"] == page.headers["Content-Security-Policy"]
    linked = re.findall(r'(?:src|href)="([^"#]*)"', text)
    for address in {urljoin("/docs/guide", address) for address in linked if "https:" not in address}:
        answer = visitor.get(address)
        assert answer.status_code == 200, address
        answer.close()


# Of two proxies one hands the prefix on, the other takes it away.
@pytest.mark.parametrize("script_name", ["/schools", ""])
def test_behind_a_prefix_the_page_still_finds_all_that_it_loads(visitor, script_name):
    page = visitor.get("/docs", environ_overrides={"SCRIPT_NAME": script_name})

    addresses = assets(page, "/schools")

    assert {address.replace("/schools/", "/", 1) for address in addresses} == set(
        assets(visitor.get("/docs"))
    )
    assert all(address.startswith("/schools/") for address in addresses)


@pytest.mark.parametrize(
    ("environ", "location"),
    [
        ({}, "docs"),
        ({"SCRIPT_NAME": "/schools"}, "/schools/docs"),
        ({"SCRIPT_NAME": "/schools", "PATH_INFO": ""}, "/schools/docs"),
        # The request has no say in where it leads.
        ({"HTTP_HOST": "evil.example", "HTTP_X_FORWARDED_PREFIX": "//evil.example"}, "docs"),
    ],
)
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_the_root_leads_to_the_page(visitor, method, environ, location):
    answer = visitor.open("/", method=method, environ_overrides=environ)

    assert (answer.status_code, answer.headers["Location"], answer.data) == (302, location, b"")
    assert visitor.get("/", follow_redirects=True).request.path == "/docs"


def test_the_root_takes_nothing(visitor):
    assert visitor.post("/", json={}).status_code == 405


@pytest.mark.parametrize("name", ["index.css", "swagger-ui.js", "../documents.py", "..%2fdocuments.py", ""])
def test_other_files_are_not_given_out(visitor, name):
    folder = next(address for address in assets(visitor.get("/docs")) if "assets" in address).rpartition("/")[
        0
    ]

    assert visitor.get(f"{folder}/{name}").status_code == 404


@pytest.mark.parametrize("path", ["/docs", "/openapi.json", "/"])
def test_both_can_be_turned_off(settings, tenancy, path):
    answer = create_app(replace(settings, docs=False)).test_client().get(path)

    assert answer.status_code == 404
    assert answer.get_json() == {
        "code": 404,
        "status": "Not Found",
        "type": "unknown-address",
        "message": "There is nothing at this address.",
        "request_id": answer.headers["X-Request-ID"],
    }


# The document


def test_making_it_raises_no_warning(settings, tenancy):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert Document(create_app(settings)).operations()


def test_no_reader_gets_a_document_with_a_failed_part(settings, tenancy):
    api = create_app(settings).extensions["flask-smorest"]["apis"][""]["ext_obj"]

    def fail():
        raise ValueError("no such part")

    api.document_later(fail)

    for _ in range(2):
        with pytest.raises(ValueError, match="no such part"):
            assert api.spec


def test_every_route_is_documented(app, document):
    routes = {
        (method, re.sub(r"<(?:[^:<>]+:)?([^<>]+)>", r"{\1}", rule.rule))
        for rule in app.url_map.iter_rules()
        # Pages for people are no part of it.
        if not rule.endpoint.startswith(("docs.", "sign_in.", "invitation_page.", "sign_out."))
        for method in rule.methods - {"HEAD", "OPTIONS"}
    }

    assert routes == set(document.operations())


def test_every_operation_has_a_summary_and_a_tag(document):
    tags = [tag["name"] for tag in document.spec["tags"]]

    for (method, path), operation in document.operations().items():
        assert re.fullmatch(r"[A-Z][^`]{5,110}\.", operation["summary"]), (method, path)
        assert len(operation["tags"]) == 1
        assert operation["tags"][0] in tags
    assert {tag for operation in document.operations().values() for tag in operation["tags"]} == set(tags)
    assert all(tag["description"] for tag in document.spec["tags"])


def test_every_tag_is_in_one_group(document):
    grouped = [tag for group in document.spec["x-tagGroups"] for tag in group["tags"]]
    used = {tag for operation in document.operations().values() for tag in operation["tags"]}

    assert sorted(grouped) == sorted(used)


def test_null_stands_beside_a_type_or_is_one_of_several(document):
    def nullable(node, place):
        if isinstance(node, dict) and node.get("nullable") is True:
            yield place, node
        for name, inner in node.items() if isinstance(node, dict) else enumerate(node):
            if isinstance(inner, dict | list) and name not in {"example", "examples"}:
                yield from nullable(inner, (*place, name))

    schemas = list(nullable(document.spec, ()))

    assert len(schemas) > 100
    assert [place for place, schema in schemas if "type" not in schema] == []


def test_values_that_have_a_name_are_one_schema_wherever_they_stand(document):
    def enums(node, place):
        for name, inner in node.items() if isinstance(node, dict) else enumerate(node):
            if name == "enum":
                yield tuple(inner), place
            elif isinstance(inner, dict | list):
                yield from enums(inner, (*place, name))

    schemas = document.spec["components"]["schemas"]
    for name in ("AssessmentCategory", "AuditAction", "MetricType", "StudentStatus", "TermName", "TokenType"):
        values = tuple(schemas[name]["enum"])
        places = [place for members, place in enums(document.spec, ()) if members == values]
        assert places == [("components", "schemas", name)], places
    assert schemas["Term"]["properties"]["term"]["allOf"] == [{"$ref": "#/components/schemas/TermName"}]


def test_the_errors_of_rows_have_a_type(document):
    schemas = document.spec["components"]["schemas"]

    rows = resolve(document, schemas["ErrorDetails"])["properties"]["rows"]
    assert rows["items"] == {"$ref": "#/components/schemas/RowError"}
    assert set(schemas["RowError"]["required"]) == {"row", "column", "code", "message"}


def described(document):
    """Give each property and parameter with its place."""
    for schema, written in document.spec["components"]["schemas"].items():
        for name, member in written.get("properties", {}).items():
            yield f"{schema}.{name}", member
    for path, item in document.spec["paths"].items():
        for method, part in item.items():
            for parameter in part if method == "parameters" else part.get("parameters", ()):
                yield f"{method} {path} {parameter['name']}", parameter


def test_every_property_and_parameter_has_a_description(document):
    schemas = dict(described(document))

    assert len(schemas) > 500
    unsaid = [
        place
        for place, schema in schemas.items()
        if not re.search(r"\w.*[.…)`]$", schema.get("description", ""))
    ]
    assert unsaid == [], "describe them in the field's metadata, or in web/documentation/properties.json"
    assert [place for place, schema in schemas.items() if "$ref" in schema] == []


def test_a_parameter_of_a_path_is_described_as_an_id_of_a_record_or_in_its_own_words(document):
    told = {
        parameter["description"]
        for item in document.spec["paths"].values()
        for parameter in item.get("parameters", ())
        if parameter["in"] == "path"
    }

    assert "The id of the student." in told
    assert {text for text in told if not re.fullmatch(r"The id of the [a-z ]+\.", text)} == {
        "The id of the school, as it is printed on the paper.",
        "The code, as it is printed on the paper.",
    }
    assert "The id of the verify." not in told


def test_no_words_are_of_a_property_that_is_not_there(document):
    names = {place.rsplit(".", 1)[-1].rsplit(" ", 1)[-1] for place, _ in described(document)}
    places = {place for place, _ in described(document)}

    for name in documentation("properties"):
        assert name in places or name in names, name


def test_schemas_have_names_of_their_own_and_all_are_used(document):
    schemas = document.spec["components"]["schemas"]

    assert [name for name in schemas if not NAME.fullmatch(name)] == []
    text = str(document.spec)
    assert [name for name in schemas if f"#/components/schemas/{name}'" not in text] == []


def test_every_operation_documents_its_errors(document):
    for (method, path), operation in document.operations().items():
        documented = set(operation["responses"])
        expected = {"200", "500", "503"}
        if operation["security"]:
            expected |= {"400", "401", "403", "404"}
        if "requestBody" in operation:
            # A form's errors are OAuth's: 400 for all that is no such form.
            kinds = set(operation["requestBody"]["content"])
            expected |= {"400", "413"} if kinds == {FORM} else {"400", "413", "415", "422"}
        if any(parameter["in"] == "query" for parameter in operation.get("parameters", ())):
            expected.add("422")
        assert expected <= documented, (method, path)
        assert [status for status in documented if status.startswith("2")] == ["200"], (method, path)


def test_errors_are_shown_in_their_one_shape(document):
    responses = document.spec["components"]["responses"]

    for name, response in responses.items():
        shown = response["content"]["application/json"]
        assert response["description"]
        assert shown["schema"] == {"$ref": "#/components/schemas/Error"}
        validator = OAS30Validator({**shown["schema"], "components": document.spec["components"]})
        assert list(validator.iter_errors(shown["example"])) == [], name
    assert "WWW-Authenticate" in responses["Unauthorized"]["headers"]
    assert "Retry-After" in responses["TooManyRequests"]["headers"]
    assert "Retry-After" in responses["ServiceUnavailable"]["headers"]


def test_the_permission_of_an_operation_is_told_to_programs_and_to_people(document):
    for operation in document.operations().values():
        permission = operation.get("x-permission")
        for name in (permission or "").split():
            assert f"`{name}`" in operation["description"]


def test_the_document_names_its_own_place_as_the_server(document):
    assert [server["url"] for server in document.spec["servers"]] == ["."]


def shown_examples(document):
    """Give each body in JSON, taken or answered, with its operation."""
    for (method, path), operation in document.operations().items():
        for part, content in (
            ("request", operation.get("requestBody", {}).get("content", {})),
            ("response", operation["responses"]["200"]["content"]),
        ):
            if "application/json" in content:
                yield f"{method} {path} {part}", content["application/json"]


def test_every_operation_shows_a_request_and_an_answer_that_its_schemas_allow(document):
    shown = dict(shown_examples(document))

    assert len(shown) > 150
    lacking = [place for place, content in shown.items() if "example" not in content]
    assert lacking == [], "run: python docs/write_examples.py"
    for place, content in shown.items():
        schema = {**content["schema"], "components": document.spec["components"]}
        validator = OAS30Validator(schema, format_checker=OAS30Validator.FORMAT_CHECKER)
        problems = [error.message for error in validator.iter_errors(content["example"])]
        assert problems == [], (place, "run: python docs/write_examples.py")


def test_no_example_is_of_an_operation_that_is_not_there_or_has_a_real_secret(document):
    operations = {f"{method} {path}" for method, path in document.operations()}

    assert documentation("examples").keys() <= operations
    text = json.dumps(documentation("examples"))
    # A token has three parts, and none that is shown has more than the beginning of one.
    assert re.findall(r"eyJ[\w-]+\.[\w-]+\.[\w-]+", text) == []
    assert "BEGIN" not in text


# Rules of all schemas: the conventions of the contract.


def test_every_body_refuses_members_that_it_does_not_know(document):
    for key, kind, schema in bodies(document):
        for part in parts(document, schema):
            if part.get("type") == "object" and "enum" not in part and kind != FORM:
                # Scores are by the name of the trait, which may be any.
                is_map = "properties" not in part
                assert is_map or part["additionalProperties"] is False, key


def test_the_form_of_a_revocation_is_described_by_its_parameters(document):
    content = document.operations()["POST", "/auth/oauth/revoke"]["requestBody"]["content"]
    form = resolve(document, content[FORM]["schema"])

    assert form["properties"].keys() == {"token", "token_type_hint", "client_id", "client_secret"}
    assert form["required"] == ["token"]
    # RFC 6749, section 3.2: others are not looked at.
    assert "additionalProperties" not in form


def test_an_answer_is_an_object_an_array_of_objects_an_envelope_or_a_file(document):
    for key, kind, shape in answers(document):
        if kind == "text/html":
            assert shape == {"type": "string"}, key
        elif kind != "application/json":
            assert shape == {"type": "string", "format": "binary"}, key
        elif shape["type"] == "array":
            assert resolve(document, shape["items"])["type"] == "object", key
        else:
            assert shape["type"] == "object", key


LOST_A_PART = {
    "/users/{id}/roles/{roleId}": "User",
    "/users/{id}/photo": "User",
    "/guardians/{id}/account": "Guardian",
} | {f"/letterhead/{which}": "Letterhead" for which in ("logo", "signature")}


def test_a_delete_answers_id_and_deleted_or_the_record_that_lost_something(document):
    schemas = document.spec["components"]["schemas"]
    for (method, path), _kind, shape in answers(document):
        if method == "DELETE" and shape["type"] == "array":
            assert path.startswith("/students/{id}/guardians/{guardian_id}"), path
            name = "LinkedGuardian" if path.endswith("/stop") else "StudentGuardian"
            assert resolve(document, shape["items"]) == schemas[name]
        elif method == "DELETE" and path in LOST_A_PART:
            assert shape == schemas[LOST_A_PART[path]], path
        elif method == "DELETE":
            assert set(shape["properties"]) == {"id", "deleted"}, path


def test_every_page_is_in_the_one_envelope_and_is_asked_for_in_one_way(document):
    for key, _kind, shape in answers(document):
        if "data" not in shape.get("properties", {}):
            continue
        assert set(shape["properties"]) == {"page_number", "page_size", "total_pages", "total", "data"}, key
        assert resolve(document, shape["properties"]["data"]["items"])["type"] == "object", key
        given = {parameter["name"]: parameter for parameter in document.operations()[key]["parameters"]}
        assert given["pageNumber"]["schema"]["default"] == 0, key
        assert given["pageSize"]["schema"]["default"] == 50, key
        assert given["pageSize"]["schema"]["maximum"] == 1000, key


def test_every_member_of_an_answer_is_always_there(document):
    for key, _kind, shape in answers(document):
        for part in parts(document, shape):
            sometimes = set(part.get("properties", ())) - set(part.get("required", ()))
            assert sometimes <= AT_TIMES.get(key, set()), key


def test_members_that_are_there_at_times_alone_say_when(document):
    conditions = {}
    for key, _kind, answered in answers(document):
        shape = resolve(document, answered.get("items", answered))
        rows = shape.get("properties", {}).get("data", {})
        shape = resolve(document, rows["items"]) if "items" in rows else shape
        sometimes = set(shape.get("properties", ())) - set(shape.get("required", ()))
        if sometimes:
            conditions[key] = sometimes
        for name in sometimes:
            assert re.match(r"(Of|Where) .+: ", shape["properties"][name]["description"]), (key, name)

    assert conditions == AT_TIMES


def test_bounds_are_numbers(visitor):
    def bounds(node):
        for name, inner in node.items() if isinstance(node, dict) else enumerate(node):
            if name in {"minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems"}:
                yield inner
            elif isinstance(inner, dict | list):
                yield from bounds(inner)

    limits = list(bounds(visitor.get("/openapi.json").get_json()["paths"]))
    limits += bounds(visitor.get("/openapi.json").get_json()["components"]["schemas"])
    assert len(limits) > 20
    assert [bound for bound in limits if not isinstance(bound, int | float)] == []


def test_a_nullable_schema_has_its_type_beside_it(visitor):
    def nullable(node):
        if isinstance(node, dict) and node.get("nullable") is True:
            yield node
        for inner in node.values() if isinstance(node, dict) else node:
            if isinstance(inner, dict | list):
                yield from nullable(inner)

    document = visitor.get("/openapi.json").get_json()
    schemas = [*nullable(document["paths"]), *nullable(document["components"])]
    assert len(schemas) > 20
    assert [schema for schema in schemas if "type" not in schema] == []


def test_every_text_that_is_taken_is_bounded(document):
    for key, _, schema in bodies(document):
        for part in parts(document, schema):
            assert part.get("type") != "string" or {"maxLength", "enum", "format"} & set(part), (key, part)
