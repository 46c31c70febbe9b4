"""Printing on paper: PDF files, made by typst in processes of their own.

`printers`       starts these processes, gives them tasks and takes their answers
`portions`       cards of a class, as several tasks
`worker`         the program of such a process
`papers`         the papers for printing, by name
`card_documents` the document of a report card, as printers set it and screens show it
`report_cards`   the texts of a report card, by their places
`class_tables`   the table of subjects of all cards of a class: columns, and their widths
`table_fit`      how wide the columns of a table are, and how large its letters
`transcripts`    the texts of a transcript, by their places
`slips`          the texts of slips of invitations, by their places
`wording`        how figures, dates and names are written on paper
`picture_format` whether a picture is PNG or JPEG and how large, before anything decodes it
`photos`         photos of people, made anew of uploaded pictures
`typesetting`    from a template and its content to a PDF
`archives`       several files in one

The serving process imports `printers`, `portions`, `archives`, `picture_format` and `card_documents` alone. All else
runs in the processes started by `printers`, from `worker` on. `worker` imports nothing of the serving part: neither
flask, nor the database, nor a secret. Between the two go tasks and answers, each a head of a fixed size and a body. An
answer bears the number of its task: one with another number is not taken.
"""

from __future__ import annotations

from struct import Struct

TASK = Struct("!QQ")
"""Head of a task: its number, and how many bytes of JSON follow."""

ANSWER = Struct("!Q?QQ")
"""Head of an answer: number of the task, whether it was printed, bytes of memory the printer has now, how many follow.

The file follows or, if typst or Pillow refused, the error message.
"""


class BrokenPicture(Exception):
    """A supposed picture can't be read; the message has no text of a person in it."""
