"""A dynamometer for caches and session stores: measurements and their records.

>>> record = cachedyno.bench("redis", rate="20k", duration="10s")
>>> print(record.verdict, record.answer)
>>> record.results

`run`, `bench` and `find_max` start the program `cachedyno` and return a `Record`; `open` reads one
again. docs/PYTHON.md has more.
"""

from importlib.metadata import PackageNotFoundError, version

from cachedyno._errors import (
    CachedynoError,
    Interrupted,
    RequirementError,
    TargetError,
    UsageError,
)
from cachedyno._fleet import Fleet, fleet
from cachedyno._measure import bench, find_max, open, run
from cachedyno._progress import Progress
from cachedyno._record import Record, Verdict
from cachedyno._tables import Row, Table, Tables, set_tables

__all__ = [
    "CachedynoError",
    "Fleet",
    "Interrupted",
    "Progress",
    "Record",
    "RequirementError",
    "Row",
    "Table",
    "Tables",
    "TargetError",
    "UsageError",
    "Verdict",
    "bench",
    "find_max",
    "fleet",
    "open",
    "run",
    "set_tables",
]

try:
    __version__ = version("cachedyno")
except PackageNotFoundError:  # used from its sources
    __version__ = "0"
