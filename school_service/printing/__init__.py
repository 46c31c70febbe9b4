"""Printing on paper: PDF files, made by typst in processes of their own.

`printers`       starts these processes, gives them tasks and takes their answers
`portions`       cards of a class, as several tasks
`worker`         what such a process runs
`papers`         the papers that can be printed, by name
`report_cards`   what stands where on a report card
`transcripts`    what stands where on a transcript
`slips`          what stands where on the slips of invitations
`wording`        how figures, dates and names are written on paper
`picture_format` whether a picture is PNG or JPEG and how large, before anything decodes it
`photos`         photos of people, made anew of what was uploaded
`typesetting`    from a template and what stands in it to a PDF
`archives`       several files in one

The process that serves imports `printers`, `portions`, `archives` and `picture_format` alone. All else runs in the
processes that `printers` starts, from `worker` on, which imports nothing of what serves: neither flask, nor the
database, nor a secret. Between the two go tasks and answers, each a head of a fixed size and what follows it. An answer
bears the number of its task: one that bears another number is not taken.
"""

from __future__ import annotations

from struct import Struct

TASK = Struct("!QQ")
"""Head of a task: its number, and how many bytes of JSON follow."""

ANSWER = Struct("!Q?QQ")
"""Head of an answer: number of the task, whether it was printed, bytes of memory the printer has now, how many follow.

What follows is the file or, where typst or Pillow refused, the error message.
"""


class BrokenPicture(Exception):
    """What was to be a picture can't be read; the message has no text of a person in it."""
