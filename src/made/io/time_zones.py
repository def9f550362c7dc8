"""Time zones by name or by offset from UTC."""

from __future__ import annotations

import datetime
import re
import zoneinfo

OFFSET = re.compile(r"(?:UTC)?([+-])(\d\d):?(\d\d)", re.ASCII)


def zone_of(name: str) -> datetime.tzinfo | None:
    """The time zone of a name or an offset, such as ``Europe/Paris`` or ``+02:00``; None if this system has none.

    Example:
        >>> zone_of("-03:30"), zone_of("Nowhere/Else")
        (datetime.timezone(datetime.timedelta(days=-1, seconds=73800)), None)
    """
    try:
        if found := OFFSET.fullmatch(name):
            sign, hours, minutes = found.groups()
            east = datetime.timedelta(hours=int(hours), minutes=int(minutes))
            return datetime.timezone(-east if sign == "-" else east)
        return zoneinfo.ZoneInfo(name)
    except (KeyError, OSError, ValueError):
        return None
