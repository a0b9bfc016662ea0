"""Presentation: surfaces of windows, and swapchains that show images on them. Optional: nothing else imports it.

Read: surface, swapchain.
"""

from __future__ import annotations

from ..instance.driver import window_drivers
from .surface import Surface, loader_address
from .swapchain import Layer, Swapchain

__all__ = ["Layer", "Surface", "Swapchain", "loader_address", "window_drivers"]
