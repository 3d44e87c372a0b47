"""The settings of the library, and of the products that are installed with it."""

from __future__ import annotations

import importlib.metadata

from peerway import _core


def settings() -> list[_core.Setting]:
    """Give all settings with their values in force. A product names a function that declares its own by an
    entry point of the group "peerway.settings".
    """
    for product in importlib.metadata.entry_points(group="peerway.settings"):
        product.load()()
    return _core.settings()
