"""Device URIs: the grammar, and that a request is answered with that device or not at all."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.profiles import recorded_profiles

from pumice.hal_vulkan.instance.profile import DeviceProfile, DeviceType
from pumice.hal_vulkan.instance.uri import (
    DEVICE_VARIABLE,
    list_devices,
    parse_device_uri,
    select_device,
)
from pumice.status import InvalidArgumentError, NotFoundError, UnavailableError

RECORDED = recorded_profiles()
LAVAPIPE = RECORDED["lavapipe_mesa_22_3_6"]
APU = RECORDED["amd_renoir_apu_radv"]
NVIDIA = RECORDED["nvidia_rtx_4060"]
LAPTOP = RECORDED["nvidia_rtx_3060_laptop"]
OLD = RECORDED["intel_hd_530_windows_vulkan_1_1"]
MACHINE = (LAVAPIPE, APU, NVIDIA, LAPTOP)


def select(text: str | None, profiles: tuple[DeviceProfile, ...] = MACHINE, **env: str) -> int:
    return select_device(parse_device_uri(text, env), profiles)


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("vulkan", "best"),
        (" VULKAN ", "best"),
        ("LavaPipe", "lavapipe"),
        ("vulkan://0", "index"),
        ("Vulkan://007", "index"),
        ("vulkan://GPU-17ECA27C-da6c-7f99-9f8e-fd30fb354b95", "uuid"),
        ("vulkan://17eca27cda6c7f999f8efd30fb354b95", "uuid"),
        ("vulkan://rtx 4060", "name"),
        ("vulkan://RTX%204060", "name"),
        ("vulkan://%34060", "name"),
        ("vulkan://lavapipe", "name"),
    ],
)
def test_forms(text: str, form: str) -> None:
    uri = parse_device_uri(text)
    assert uri.form == form
    assert text in uri.shown


def test_values() -> None:
    assert parse_device_uri("vulkan://007").value == "7"
    for text in ("GPU-17ECA27C-da6c-7f99-9f8e-fd30fb354b95", "17eca27cda6c7f999f8efd30fb354b95"):
        assert parse_device_uri("vulkan://" + text).value == "17eca27c-da6c-7f99-9f8e-fd30fb354b95"
    assert parse_device_uri("vulkan://%34060").value == "4060"
    assert parse_device_uri("vulkan://A%2fB%c3%a9").value == "A/Bé"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   ",
        "vulkan:",
        "vulkan:/",
        "vulkan://",
        "vulkan://  ",
        "vulkan://%20",
        "vulkan:0",
        "cuda",
        "cuda://0",
        "lavapipe://0",
        "vulkan://-1/",
        "vulkan://0/1",
        "vulkan://0?x=1",
        "vulkan://a#b",
        "vulkan://100%",
        "vulkan://%zz",
        "vulkan://%ff",
        "vulkan://a%00",
        "vulkan://a%0ab",
        "vulkan://\ud800",
        "vulkan://GPU-17eca27c",
        "vulkan://9999999999",
        "vulkan://" + "x" * 2000,
    ],
)
def test_anything_else_is_refused_with_the_grammar(text: str) -> None:
    with pytest.raises(InvalidArgumentError, match="vulkan://INDEX"):
        parse_device_uri(text)


@given(st.text(max_size=40) | st.text(max_size=40).map("vulkan://".__add__))
def test_any_text_gives_a_uri_or_a_refusal(text: str) -> None:
    try:
        uri = parse_device_uri(text)
        index = select_device(uri, MACHINE)
    except (InvalidArgumentError, NotFoundError):
        return
    chosen = MACHINE[index]
    match uri.form:
        case "index":
            assert index == int(uri.value)
        case "name":
            assert uri.value.casefold() in chosen.name.casefold()
        case "uuid":
            assert chosen.device_uuid == uri.value
        case _:
            assert text.strip().lower() in ("vulkan", "lavapipe")


def test_environment_names_the_device_where_the_program_does_not() -> None:
    assert select(None, PUMICE_DEVICE="lavapipe") == 0
    assert select("vulkan://1", PUMICE_DEVICE="lavapipe") == 1
    for environment in ({}, {DEVICE_VARIABLE: ""}):
        assert parse_device_uri(None, environment).form == "best"


def test_what_is_no_text_is_refused_with_the_grammar() -> None:
    with pytest.raises(InvalidArgumentError, match="got int; write vulkan .* vulkan://INDEX"):
        parse_device_uri(0)  # type: ignore[arg-type]


def test_an_error_of_the_environment_names_the_variable() -> None:
    with pytest.raises(InvalidArgumentError, match=DEVICE_VARIABLE):
        parse_device_uri(None, {DEVICE_VARIABLE: "cuda"})
    for text, profiles in (("vulkan://99", MACHINE), ("vulkan://nvidia", MACHINE), ("vulkan://0", ())):
        with pytest.raises((NotFoundError, InvalidArgumentError), match=DEVICE_VARIABLE):
            select(None, profiles, PUMICE_DEVICE=text)
        with pytest.raises((NotFoundError, InvalidArgumentError)) as caught:
            select(text, profiles, PUMICE_DEVICE=text)
        assert DEVICE_VARIABLE not in str(caught.value)


def test_best_is_discrete_then_integrated_then_virtual_then_cpu() -> None:
    virtual = replace(NVIDIA, device_type=DeviceType.VIRTUAL)
    other = replace(NVIDIA, device_type=DeviceType.OTHER)
    order = [other, LAVAPIPE, virtual, APU, NVIDIA, LAPTOP]
    assert select("vulkan", tuple(order)) == 4  # a tie goes to the first
    while len(order) > 1:
        best = order[select("vulkan", tuple(order))]
        assert best is order[-1] or best is NVIDIA
        order.remove(best)
    assert select("vulkan", (other,)) == 0


def test_best_passes_over_what_cannot_run_but_a_name_does_not() -> None:
    profiles = (replace(NVIDIA, api_version=(1, 1, 0)), LAVAPIPE)
    assert select("vulkan", profiles) == 1
    assert select("vulkan://4060", (*profiles, *[LAVAPIPE] * 4059, APU)) == 4060
    assert select("vulkan://RTX", profiles) == 0
    with pytest.raises(UnavailableError, match=r"1\.1\.120"):
        select("vulkan", (OLD,))


@pytest.mark.parametrize("index", range(len(MACHINE)))
def test_listed_uris_name_their_device(index: int) -> None:
    uri = list_devices(MACHINE).splitlines()[index].split()[-1]
    assert select(uri) == index


def test_listed_uris_of_twins_differ() -> None:
    twins = (LAVAPIPE, LAVAPIPE, replace(APU, device_uuid=""))
    uris = [line.split()[-1] for line in list_devices(twins).splitlines()]
    assert [select(uri, twins) for uri in uris] == [0, 1, 2]


def test_names() -> None:
    assert select("vulkan://renoir") == 1
    assert select("vulkan://RTX%204060") == 2
    assert select("vulkan://(LLVM 15") == 0
    with pytest.raises(InvalidArgumentError, match="several devices") as caught:
        select("vulkan://nvidia")
    for listed, profile in zip((False, False, True, True), MACHINE, strict=True):
        assert (profile.name in str(caught.value)) == listed
    longer = replace(NVIDIA, name=NVIDIA.name + " Ti", device_id=1)
    assert select(f"vulkan://{NVIDIA.name}", (longer, NVIDIA)) == 1
    assert select("vulkan://4060 Ti", (NVIDIA, longer)) == 1
    twin = replace(NVIDIA, device_uuid="00000000-0000-0000-0000-000000000001")
    assert select("vulkan://RTX", (LAVAPIPE, NVIDIA, twin)) == 1


def test_lavapipe_is_found_wherever_it_is_and_never_replaced() -> None:
    assert select("lavapipe") == 0
    assert select("lavapipe", (NVIDIA, LAVAPIPE)) == 1
    with pytest.raises(NotFoundError, match="mesa-vulkan-drivers"):
        select("lavapipe", (NVIDIA, APU))


@pytest.mark.parametrize(
    "text", ["vulkan://4", "vulkan://4060", "vulkan://GPU-00000000-0000-0000-0000-000000000000", "vulkan://Radeon VII"]
)
def test_what_is_not_there_is_refused_with_what_is(text: str) -> None:
    with pytest.raises(NotFoundError) as caught:
        select(text)
    for index, profile in enumerate(MACHINE):
        assert f"{index}: {profile.name} ({profile.device_type.name.lower()}, {profile.driver_name})" in str(
            caught.value
        )
    if text == "vulkan://4060":
        assert "vulkan://%34060" in str(caught.value)
        assert select("vulkan://%34060") == 2


@pytest.mark.parametrize("text", ["vulkan", "vulkan://0", "lavapipe", "vulkan://x"])
def test_no_device_at_all(text: str) -> None:
    with pytest.raises(NotFoundError, match="no Vulkan driver was found"):
        select(text, ())
