"""Exceptions, one for each exit code of the program that is not a result."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cachedyno._record import Record


class _Ended(BaseException):
    """What every exception of a program that ended has."""

    exit_code: int
    """Exit code of the program; negative for the signal that ended it."""
    message: str
    """What the program printed as its error, without passwords."""
    record: Record | None
    """The record of the run, if the program wrote one."""

    def __init__(self, message: str, exit_code: int, record: Record | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.exit_code = exit_code
        self.record = record

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.message, self.exit_code, self.record)


class CachedynoError(_Ended, Exception):
    """The program failed (exit code 1, or one without its own class)."""


class UsageError(CachedynoError):
    """Wrong arguments, or a study, target or record that cannot be used (exit code 2)."""


class TargetError(CachedynoError):
    """A named target cannot be used (exit code 3)."""


class RequirementError(CachedynoError):
    """A requirement does not hold (exit code 5); `record` has the results."""


class Interrupted(_Ended, KeyboardInterrupt):
    """The run was interrupted (exit code 130) and its record sealed as interrupted.

    Like `KeyboardInterrupt`, it is no `Exception`: `except Exception` does not stop it.
    """


INTERRUPTED = 130
UNUSABLE = 3
UNMET = 5
_CLASSES: dict[int, type[CachedynoError]] = {
    2: UsageError,
    UNUSABLE: TargetError,
    UNMET: RequirementError,
}
RESULT_CODES = (0, 4)
"""Exit codes of a run with a result: VALID or UNREPLICATED, and INVALID or NOT-STEADY."""


def failure(
    exit_code: int, message: str, record: Record | None = None
) -> CachedynoError | Interrupted:
    """Return the exception for an exit code of the program."""
    if exit_code == INTERRUPTED:
        return Interrupted(message, exit_code, record)
    return _CLASSES.get(exit_code, CachedynoError)(message, exit_code, record)
