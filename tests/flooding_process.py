"""A flooding broker as a process: `python flooding_process.py broker.toml`."""

from __future__ import annotations

import asyncio
import sys

from flooding import flooding
from pathcast.settings import read_settings
from pathcast.transport.process import run_broker
from pathcast.transport.settings import BrokerSettings

if __name__ == "__main__":
    settings = read_settings(BrokerSettings, sys.argv[1])
    kind = flooding(settings.broker.name, [each.name for each in settings.neighbours])
    asyncio.run(run_broker(settings, kind, is_new=None))
