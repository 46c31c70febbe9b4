"""The conventions of the API, each said once.

`blueprint`         the wrapping of views: permission, validation, rendering, and their documentation
`operations`        the statements of a view's decorators, each once
`request_scope`     token, school, transaction, commit; below it, each above the next:
`linking`           the user of an outside token, by the link of its identity
`reading`           reading requests, in one message or two
`admitting`         the sender of a request, judged by their state
`transactions`      transactions in a school, and the state of the school if one fails
`app_state`         the common state of all requests of an application
`rendering`         read models rendered to JSON by PostgreSQL
`paging`            pages of lists and their envelope
`fields`            the fields of input
`schemas`           the base of all schemas, and schemas common to all features
`body_parser`       bodies: JSON, size, nesting, uploads
`interface_operations`  the operations of the interface, and unknown parameters of operations
`idempotency`       Idempotency-Key: a POST sent again is done once
`entity_tags`       ETag, If-None-Match and If-Match
`response_headers`  header fields of every answer, and of answers to pages of other origins (CORS)
`application`       Flask's application: its JSON, its answers, its dispatch
`error_responses`   one table from exceptions to answers, in one shape
`error_bounds`      how much an error tells
`integrity_errors`  violated constraints, as the client reads of them
`openapi`           the OpenAPI document, and the meaning of each status of an error in it
`docs_page`         /openapi.json and /docs
`request_log`       request ids and logs
"""
