"""What a printer and the process that serves say to each other: a head of a fixed size, and what follows it.

Answers bear the number of their task: what does not answer the task under way is no answer.
"""

from __future__ import annotations

from struct import Struct

TASK = Struct("!QQ")
"""Head of a task: its number, and how many bytes of JSON follow."""

ANSWER = Struct("!Q?QQ")
"""Head of an answer: number of the task, whether it was printed, bytes of memory the printer has now, how many follow.

What follows is the file or, where typst refused, what it said.
"""
