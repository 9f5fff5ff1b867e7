"""The bridge between NumPy and torch: kinds, dtypes, devices, shapes, and pieces that cover an array once."""

import numpy as np
import pytest
import torch

from posviz import _arrays as arrays


class OwnArray(np.ndarray):
    pass


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (torch.zeros(2), True),
        (torch.nn.Parameter(torch.zeros(2)), True),
        (np.zeros(2), False),
        (np.zeros(2).view(OwnArray), False),
        ([1.0], False),
        (1.0, False),
        (torch, False),
    ],
)
def test_a_tensor_is_known_by_its_class(value, expected):
    assert arrays.is_tensor(value) is expected
    assert arrays.namespace(value).__name__ == f"array_api_compat.{'torch' if expected else 'numpy'}"


@pytest.mark.filterwarnings("error")  # why array_api_compat's own functions are not used: torch.compile warns of them
def test_torch_compile_says_nothing_about_the_bridge():
    torch._dynamo.reset()
    traced = torch.compile(lambda x: arrays.namespace(x).exp(x), fullgraph=True, backend="eager")
    assert torch.equal(traced(torch.zeros(2)), torch.ones(2))


@pytest.mark.parametrize("x", [np.zeros(1, np.float32), torch.zeros(1, dtype=torch.float16)])
@pytest.mark.parametrize("values", [np.arange(6)[::-2], torch.arange(5, -1, -2)])
def test_values_come_to_the_kind_of_an_array(values, x):
    own, wanted = arrays.convert_like(values, x), arrays.convert_like(values, x, x.dtype)
    assert type(own) is type(wanted) is type(x)
    assert own.tolist() == wanted.tolist() == [5, 3, 1]
    assert str(own.dtype).endswith("int64") and wanted.dtype == x.dtype


def test_values_keep_their_gradient_and_go_to_the_device():
    values = torch.ones(2, requires_grad=True)
    arrays.convert_like(values, torch.zeros(1, dtype=torch.float64)).sum().backward()
    assert values.grad.tolist() == [1, 1]
    assert arrays.convert_like(np.arange(2), torch.zeros(1, device="meta")).device.type == "meta"


def test_sixteen_bits_are_computed_in_thirty_two():
    for dtype in (torch.float16, torch.bfloat16, torch.float32):
        assert arrays.working_dtype(arrays.namespace(torch.zeros(1)), dtype) == torch.float32
    for given, expected in [(np.float16, np.float32), (np.float32, np.float32), (np.float64, np.float64)]:
        assert arrays.working_dtype(arrays.namespace(np.zeros(1)), given) == expected


def test_arrays_of_one_kind_take_the_wider_dtype():
    _, (a, b) = arrays.same_kind(a=np.zeros((2, 3), np.float32), b=[[1, 2, 3]])
    assert a.dtype == b.dtype == np.float64
    _, (a, b) = arrays.same_kind(a=torch.zeros(2, 3).half(), b=torch.zeros(2, 3))
    assert a.dtype == b.dtype == torch.float32


@pytest.mark.parametrize("shape", [(), (1,), (4,), (3, 1), (3, 4), (1, 1, 1), (2, 3, 4)])
def test_what_broadcasts_without_enlarging_fits(shape):
    array = np.zeros(shape)
    assert arrays.fitting(array, "bias", (2, 3, 4), "the scores") is array


@pytest.mark.parametrize("shape", [(3,), (2, 3), (4, 1), (1, 2, 3, 4), (0,)])
def test_what_does_not_fit_is_named_with_both_shapes(shape):
    with pytest.raises(ValueError) as caught:
        arrays.fitting(torch.zeros(shape), "bias", (2, 3, 4), "the scores")
    assert str(caught.value) == f"bias must broadcast to the scores, (2, 3, 4); got shape {shape}"


@pytest.mark.parametrize("shape", [(5, 8), (2, 3, 7, 4), (1, 0, 4), (3, 1, 2)])
@pytest.mark.parametrize("size", [1, 16, 60, 10**6])
def test_blocks_cover_an_array_once(shape, size, monkeypatch):
    monkeypatch.setattr(arrays, "BLOCK", size)
    seen = np.zeros(shape, int)
    for part, rows in arrays.blocks(shape, shape):
        assert (rows == part or shape[-2] == 1) and seen[part].size <= max(size, seen[..., :1, :].size)
        seen[part] += 1
    assert (seen == 1).all()
    assert all(rows is ... for table in [(4,), (1, 4)] for _, rows in arrays.blocks(shape, table))
