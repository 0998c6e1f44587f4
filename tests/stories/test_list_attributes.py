"""KEP-5491: attributes that are lists, and includes()."""

from __future__ import annotations

import pytest

from tests.stories.tellers import explain, run, story, the_one

SLICES = "001-05-pcie-root-slices"


def test_lists_and_scalars_meet_in_a_common_root() -> None:
    told = the_one(*story("pcie-roots", seeds=[SLICES, "001-06-pcie-aligned-claim-count-1"]))
    assert told.node == "node-1"
    assert told.devices == {"gpu": "gpu-0", "nic": "nic-0", "cpu": "cpu-0"}


def test_two_cpus_whose_roots_do_not_meet_are_named_with_their_lists() -> None:
    text = explain(*story("pcie-roots", seeds=[SLICES, "001-06-pcie-aligned-claim"]))
    assert "cpu: [pci0000:01, pci0000:02] on cpu-0, [pci0000:03, pci0000:04] on cpu-1" in text
    assert "impossible together:\n      request cpu: 2 of class cpu.example.com\n" in text
    assert "ask for 1 instead of 2 in request cpu" in text


def test_lists_with_nothing_in_common_are_distinct() -> None:
    told = the_one(*story("pcie-roots", "distinct", seeds=[SLICES]))
    assert told.devices == {"cpus": "cpu-0 cpu-1"}


def test_distinct_is_every_pair_without_anything_in_common() -> None:
    """[a, b], [b, c], [c, a]: no value is in all of them, yet every two meet."""
    assert the_one(*story("distinct-lists", "two")).devices == {"devices": "device-ab device-cd"}
    text = explain(*story("distinct-lists", "three"))
    assert "constraint distinctAttribute lists.example.com/places" in text
    assert "ask for 2 instead of 3 in request devices" in text


def test_include_is_true_of_a_number_and_of_a_list_with_it() -> None:
    told = the_one(*story("include", seeds=["001-04-include"]))
    assert told.devices == {"scalar": "scalar", "list": "list"}


def test_lists_of_all_types_can_be_asked() -> None:
    told = the_one(*story("typed-lists", "claim", seeds=["001-03-typed-list-attributes"]))
    assert told.devices == {"device": "typed-list-attributes"}


def test_a_model_that_is_supported_is_found_and_another_is_not() -> None:
    told = the_one(*story("supported-models", "claim", seeds=["002-30-list-slice"]))
    assert (told.node, told.devices) == ("worker-1", {"gpu": "gpu-0"})
    text = explain(*story("supported-models", "other", seeds=["002-30-list-slice"]))
    assert 'is false: supported-models is ["model-a", "model-b"]\n' in text


def test_includes_says_of_each_expression_what_the_seed_does() -> None:
    text = explain(*story("supported-models", "assumed", seeds=["002-29-includes-index-form"]))
    assert "requests scalar-a, list-a: 1 wanted each\n      devices: 4 in the fleet → 4 on" in text
    assert 'model.includes("model-b") is false: model is "model-a"\n' in text
    assert '.includes("model-c") is false: supported-models is ["model-a", "model-b"]\n' in text


def test_without_the_feature_slices_with_lists_are_refused_and_nothing_matches() -> None:
    options = story("pcie-roots", seeds=[SLICES, "001-06-pcie-aligned-claim-count-1"])
    result = run("plan", *options, "--feature-gates", "DRAListTypeAttributes=false")
    assert result.exit_code == 1
    assert "must specify one of: `int`, `bool`, `string`, `version`" in result.stderr
    assert "1 cannot allocate all claims" in result.stdout


@pytest.mark.parametrize("seed", ["001-07-match-semantics", "001-08-distinct-semantics"])
def test_semantics_that_the_kep_rejected_are_said_to_be(seed: str) -> None:
    result = run("plan", *story("pcie-roots", seeds=[SLICES, seed]))
    assert "rejected" in result.stderr
