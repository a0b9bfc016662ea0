"""Samplers as text, and back."""

from __future__ import annotations

import pytest

from pumice.hal_vulkan.device import Device
from pumice.runtime.values.sampler_text import format_sampler, parse_sampler


@pytest.mark.vulkan
@pytest.mark.parametrize(
    "text",
    [
        "",
        "filter=nearest,address=repeat",
        "filter=linear,min_filter=nearest,mip_filter=linear,address=repeat/clamp_to_edge/mirrored_repeat",
        "lod_bias=0.5,min_lod=1,max_lod=3,border=opaque_white,address=clamp_to_border",
        "compare=less",
        "filter=nearest,mip_filter=nearest,unnormalized",
    ],
)
def test_a_sampler_is_made_again_from_its_text(device: Device, text: str) -> None:
    def settings(words: str) -> object:
        keywords = parse_sampler(words)
        if "address" in keywords:
            keywords["address"] = (
                tuple(keywords["address"]) if isinstance(keywords["address"], list) else keywords["address"]
            )
        with device.create_sampler(**keywords) as sampler:
            return sampler.settings

    first = settings(text)
    assert settings(format_sampler(first)) == first  # type: ignore[arg-type]
