"""The files of a feature agree on its fields: a field forgotten in one of them is named, with the file."""

from __future__ import annotations

import inspect
import pkgutil
import re
import sys
from importlib import import_module
from uuid import UUID, uuid4

import pytest
from marshmallow import fields
from openapi_schema_validator import OAS30Validator

from school_service import features
from school_service.core.read_models import ReadModel
from school_service.features.people.employees import service as employee_service
from school_service.features.people.gains.schemas import PlantedSchema
from school_service.features.school.classrooms import service as classroom_service
from school_service.features.school.classrooms.views import ClassroomSchema
from school_service.web import schemas as shared_schemas
from school_service.web.schemas import Schema

# Schemas of answers without a read model, and the reasons.
WITHOUT_READ_MODEL = {
    "UserSessionSchema": "names of clients come from the registry, and which session is the caller's from the token",
    "InvitationCodeSchema": "codes are known to nobody but the service, while it makes them",
    "DeletedSchema": "the id of a record that is there no more",
    "BroadsheetSchema": "computed of entered marks, or made of stored cards",
    "StudentSubjectResultSchema": "computed of entered marks, or made of stored cards",
    "SubmissionSchema": "counted of entered marks",
    "ListedSubmissionSchema": "counted of entered marks",
    "TermResultSchema": "computed of entered marks, or made of a stored card",
    "ReportCardSchema": "made of a stored card, or computed of entered marks",
    "VerifiedPaperSchema": "made of a stored card or transcript",
    "TranscriptSchema": "the published record, and beside it the moment of the request",
    "HealthSchema": "found out by the view",
    "ReadinessSchema": "found out by the view",
    "LifeSchema": "said by the view",
    "ImportedSchema": "counts of an import",
    "ImportedRowsSchema": "counts of an import",
    "SwitchedRolesSchema": "roles as the service judges them",
    "CopiedSchema": "counts of a copy",
    "UploadedRowsSchema": "counts of a sheet",
    "GuardianInvitationSchema": "the same of guardians, with codes that are stored nowhere",
    "UploadedMarksSchema": "the same, and computed figures",
    "SubjectMarksSchema": "made of the row of a read model",
    "SessionCopySchema": "decided record by record, in a service",
    "TokenSchema": "made by the built-in identity provider",
    "KeySetSchema": "the keys of the built-in identity provider",
    "NothingSchema": "says nothing",
    "ProviderSchema": "the built-in identity provider's description of itself",
    "NationalitySchema": "rows of the registry, which the service reads",
    "StateSchema": "rows of the registry, which the service reads",
    "ReopenedPublicationSchema": "a publication, in a dry run with the acts that the service finds",
    "ChangesSchema": "found behind a cursor, in statements of their own",
    "ChangedCardSchema": "made of two stored cards",
    "NewVersionSchema": "a publication, in a dry run with findings of the service",
    "LgaSchema": "rows of the registry, which the service reads",
}

_NAMED = re.compile(r"Read model of (\w+Schema)\b")
_SOME_VALUES = {
    "hh:mm": "08:15",
    "date-time": "2025-09-08T08:00:00Z",
    "date": "2025-09-08",
    "email": "adaeze@example.com",
}


def modules(*names):
    """Give each area's modules of these names, by the area."""
    for info in pkgutil.walk_packages(features.__path__, f"{features.__name__}."):
        *_, area, module = info.name.split(".")
        if module in names:
            yield area, import_module(info.name)


def source(module):
    return f"{module.__name__.replace('.', '/')}.py"


def is_read_model_of(value, module):
    function = value.query if isinstance(value, ReadModel) else value
    return inspect.isfunction(function) and function.__module__ == module.__name__


READ_MODELS = {
    f"{area}.{name}": (module, value, _NAMED.search(value.__doc__)[1])
    for area, module in modules("reads", "service")
    for name, value in vars(module).items()
    if is_read_model_of(value, module) and _NAMED.search(value.__doc__ or "")
}
SCHEMAS = {
    schema.__name__: schema
    for module in (shared_schemas, *(module for _, module in modules("schemas", "views")))
    for schema in vars(module).values()
    # Looked up, as issubclass would ask every schema that there is.
    if inspect.isclass(schema) and Schema in inspect.getmro(schema)
}


# Read models and the schemas of their answers


def columns(read_model):
    """Name the columns of a read model; which of its filters are given makes no difference to them."""
    make = read_model.query if isinstance(read_model, ReadModel) else read_model
    return make(**dict.fromkeys(inspect.signature(make).parameters)).selected_columns.keys()


def members(schema):
    """Name the members of a schema's answer."""
    return [field.data_key or name for name, field in schema().fields.items()]


def differences(name, module, read_model, schema):
    """Name the members that a read model lacks of its schema or has too much, and the file to mend."""
    shown, documented = columns(read_model), members(schema)
    called = f"{module.__name__.rpartition('.')[2]}.{name}"
    lacking = [
        f"{schema.__name__} has `{member}`, {called} lacks it: add the column in {source(module)}"
        for member in documented
        if member not in shown and member not in getattr(schema, "SOMETIMES", ())
    ]
    unknown = [
        f"{called} has `{column}`, {schema.__name__} lacks it: add the field in "
        f"{source(sys.modules[schema.__module__])}"
        for column in shown
        if column not in documented
    ]
    return lacking + unknown


@pytest.mark.parametrize("key", READ_MODELS)
def test_a_read_model_has_the_columns_that_its_schema_has_as_fields(key):
    module, read_model, schema_name = READ_MODELS[key]
    assert schema_name in SCHEMAS, f"{key} is of {schema_name}, which no area has"

    faults = differences(key.partition(".")[2], module, read_model, SCHEMAS[schema_name])

    assert not faults, "\n".join(faults)


def test_a_difference_is_named_with_the_file_to_mend():
    # Among the fields of a classroom, one that its read model lacks, and not the name.
    shown = {**ClassroomSchema().fields, "made_up": fields.Integer()}
    del shown["name"]
    other = Schema.from_dict(shown, name="ClassroomSchema")
    other.__module__ = ClassroomSchema.__module__

    assert differences("classrooms", classroom_service, classroom_service.classrooms, ClassroomSchema) == []
    assert differences("classrooms", classroom_service, classroom_service.classrooms, other) == [
        "ClassroomSchema has `made_up`, service.classrooms lacks it: "
        "add the column in school_service/features/school/classrooms/service.py",
        "service.classrooms has `name`, ClassroomSchema lacks it: "
        "add the field in school_service/features/school/classrooms/views.py",
    ]


def record_schema(document, schema):
    """Name the schema of the records that an answer holds: one, a list of them, or a page."""
    name = schema.get("items", schema)["$ref"].rsplit("/", 1)[1]
    properties = document.spec["components"]["schemas"][name]["properties"]
    if name.endswith("Page") and "data" in properties:
        return record_schema(document, properties["data"])
    return f"{name}Schema"


def without_planted(name):
    """Name the schema of the record itself where members are answered beside it."""
    bases = SCHEMAS[name].__bases__ if name in SCHEMAS else ()
    return bases[1].__name__ if bases[:1] == (PlantedSchema,) and len(bases) > 1 else name


def test_all_that_is_answered_has_a_read_model_or_is_on_the_list(document):
    answered = {
        without_planted(record_schema(document, content["application/json"]["schema"]))
        for operation in document.operations().values()
        if "application/json" in (content := operation["responses"]["200"]["content"])
    }

    without = answered - {schema for _, _, schema in READ_MODELS.values()}

    assert len(answered) > len(without)
    assert without == WITHOUT_READ_MODEL.keys(), "begin a read model's docstring with `Read model of …Schema`"


# Bodies and the services that they reach


def example(document, schema, ids, name=""):
    """Make a value that a schema of the document allows, with every property; of no record, unless `ids` name one."""
    while "$ref" in schema:
        schema = document.spec["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]]
    for combination in {"allOf", "anyOf"} & schema.keys():
        return example(document, schema[combination][0], ids, name)
    if "enum" in schema:
        return schema["enum"][0]
    match schema.get("type", "string"):
        case "object":
            if "properties" not in schema:
                return {"x": example(document, schema["additionalProperties"], ids)}
            properties = schema["properties"].items()
            return {member: example(document, value, ids, member) for member, value in properties}
        case "array":
            return [example(document, schema["items"], ids)]
        case "boolean":
            return True
        case "integer" | "number":
            return max(1, schema.get("minimum", 1))
        case "string" if schema.get("format") == "uuid":
            return ids.get(name) or str(uuid4())
        case "string" if name == "gender":
            return "FEMALE"
        case "string":
            return _SOME_VALUES.get(schema.get("format"), "a")
        case other:
            raise AssertionError(f"No example of the type {other!r}: add one here.")


def bodies(document):
    """Give each operation that takes JSON, with the schema of its body."""
    for key, operation in document.operations().items():
        content = operation.get("requestBody", {"content": {}})["content"]
        if "application/json" in content:
            yield key, content["application/json"]["schema"]


def failures(api, logs, ids):
    """Send every operation a body with all of its properties; say which were not prepared for one, and why."""
    faults = []
    for (method, path), schema in bodies(api.document):
        body = example(api.document, schema, ids)
        before = len(logs())
        answer = api.request(method, re.sub(r"\{[^}]*\}", lambda _: str(uuid4()), path), json=body)
        if answer.status_code >= 500:
            errors = [line["exception"].splitlines()[-1] for line in logs()[before:] if "exception" in line]
            faults.append(
                f"{method} {path} answers {answer.status_code} to a body with every field: {errors}"
            )
    return faults


@pytest.fixture
def ids(make):
    """Ids of the records that an employee refers to, so that the employee's other rows are written too."""
    named = make.employee_body().items()
    return {name: value for name, value in named if isinstance(value, str) and _is_uuid(value)}


def _is_uuid(text):
    try:
        return bool(UUID(text))
    except ValueError:
        return False


def test_every_field_of_a_body_reaches_its_service(api, logs, ids):
    faults = failures(api, logs, ids)

    assert not faults, "\n".join(["Let the service take the field, in the feature's service.py:", *faults])


def test_a_field_that_a_service_does_not_take_is_named(api, logs, ids, monkeypatch):
    def create_classroom(*, name):
        raise AssertionError(name)

    def new_contact(*, owner, email_address):
        raise AssertionError(owner, email_address)

    monkeypatch.setattr(classroom_service, "create_classroom", create_classroom)
    monkeypatch.setattr(employee_service, "new_contact", new_contact)

    classrooms, employees = (line for line in failures(api, logs, ids) if line.startswith("POST "))

    assert classrooms.startswith("POST /classrooms answers 500 ")
    assert "create_classroom() got an unexpected keyword argument" in classrooms
    assert employees.startswith("POST /employees answers 500 ")
    assert "new_contact() got an unexpected keyword argument" in employees


def test_the_bodies_that_are_sent_are_valid(document):
    """Else a service would not be reached, and the test above could not fail."""
    sent = dict(bodies(document))
    assert len(sent) > 20
    for key, schema in sent.items():
        body = example(document, schema, {})
        validator = OAS30Validator({**schema, "components": document.spec["components"]})
        assert [error.message for error in validator.iter_errors(body)] == [], key
        if "$ref" in schema:
            assert SCHEMAS[f"{schema['$ref'].rsplit('/', 1)[1]}Schema"]().validate(body) == {}, key
