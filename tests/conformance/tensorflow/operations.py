"""Operations of TensorFlow to translate, one or a few to a graph, each as TensorFlow's own raw operation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf
from conformance.tensorflow.inputs import Case, complexes, floats, nonzero, positive, truths, unit, whole

R = tf.raw_ops


def _unary(name: str, argument: str = "x", **attributes: Any) -> Callable[[Any], Any]:
    return lambda x: getattr(R, name)(**{argument: x}, **attributes)


def _binary(name: str) -> Callable[[Any, Any], Any]:
    return lambda x, y: getattr(R, name)(x=x, y=y)


OPERATIONS: dict[str, Case] = {}

_OF_ANY = (
    "Abs Atan Asinh Ceil Cos Cosh Erf Erfc Exp Expm1 Floor IsFinite IsInf IsNan Neg Rint Round Sigmoid "
    "Sign Sin Sinh Square Tan Tanh BesselI1e"
)
for _name in _OF_ANY.split():
    OPERATIONS[_name] = (_unary(_name), [floats(3, 5)])
for _name in ["Digamma", "Lgamma", "Log", "Log1p", "Reciprocal", "Rsqrt", "Sqrt", "Inv"]:
    OPERATIONS[_name] = (_unary(_name), [positive(3, 5)])
for _name in ["Acos", "Asin", "Atanh", "Erfinv"]:
    OPERATIONS[_name] = (_unary(_name), [unit(4, 3)])
OPERATIONS["Acosh"] = (_unary("Acosh"), [positive(4) + 1])
OPERATIONS["Ndtri"] = (_unary("Ndtri"), [np.abs(unit(7))])
for _name in ["Elu", "Relu", "Relu6", "Selu", "Softplus", "Softsign"]:
    OPERATIONS[_name] = (_unary(_name, "features"), [floats(4, 6) * 4])
OPERATIONS["LeakyRelu"] = (_unary("LeakyRelu", "features", alpha=0.3), [floats(4, 6)])
OPERATIONS["Abs/int"] = (_unary("Abs"), [whole(7)])
OPERATIONS["Invert"] = (_unary("Invert"), [whole(7)])
OPERATIONS["LogicalNot"] = (_unary("LogicalNot"), [truths(9)])
OPERATIONS["PopulationCount"] = (_unary("PopulationCount"), [whole(9, high=900)])
OPERATIONS["Round/half"] = (_unary("Round"), [np.array([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5], np.float32)])
OPERATIONS["Exp/f16"] = (_unary("Exp"), [floats(9, dtype=np.float16)])
OPERATIONS["Sigmoid/f64"] = (_unary("Sigmoid"), [floats(9, dtype=np.float64)])
for _name in ["Real", "Imag"]:
    OPERATIONS[_name] = (_unary(_name, "input"), [complexes(6)])
OPERATIONS["Conj"] = (_unary("Conj", "input"), [complexes(6)])
OPERATIONS["ComplexAbs"] = (_unary("ComplexAbs"), [complexes(6)])
OPERATIONS["Complex"] = (lambda x, y: R.Complex(real=x, imag=y), [floats(5), floats(5)])
OPERATIONS["Mul/complex"] = (_binary("Mul"), [complexes(4), complexes(4)])

_OF_TWO = "Add AddV2 Sub Mul RealDiv Div Maximum Minimum SquaredDifference Atan2 FloorDiv FloorMod Mod"
for _name in _OF_TWO.split():
    OPERATIONS[_name] = (_binary(_name), [floats(4, 1, 3), floats(5, 1)])
for _name in ["DivNoNan", "MulNoNan"]:
    OPERATIONS[_name] = (_binary(_name), [floats(2, 4), np.array([1, 0, -2, 0], np.float32)])
OPERATIONS["Pow"] = (_binary("Pow"), [positive(2, 3), floats(3)])
OPERATIONS["Pow/int"] = (_binary("Pow"), [whole(6), whole(6, low=0, high=4)])
OPERATIONS["NextAfter"] = (lambda x, y: R.NextAfter(x1=x, x2=y), [floats(6), floats(6)[::-1].copy()])
for _name in ["Xdivy", "Xlogy", "Xlog1py"]:
    OPERATIONS[_name] = (_binary(_name), [np.array([0, 1, 2.5, 0], np.float32), np.array([0.5, 2, 3, 1], np.float32)])
for _name in ["Add", "Sub", "Mul", "Maximum", "Minimum", "FloorDiv", "FloorMod", "TruncateDiv", "TruncateMod", "Mod"]:
    OPERATIONS[f"{_name}/int"] = (_binary(_name), [whole(4, 3), nonzero(3)])
OPERATIONS["FloorDiv/u8"] = (_binary("FloorDiv"), [whole(5, low=1, dtype=np.uint8), whole(5, low=1, dtype=np.uint8)])
OPERATIONS["Add/i64"] = (_binary("AddV2"), [whole(5, dtype=np.int64), whole(5, dtype=np.int64)])
OPERATIONS["Mul/i8"] = (_binary("Mul"), [whole(5, dtype=np.int8), whole(5, dtype=np.int8)])
for _name in ["BitwiseAnd", "BitwiseOr", "BitwiseXor"]:
    OPERATIONS[_name] = (_binary(_name), [whole(6), whole(6)[::-1].copy()])
for _name in ["LeftShift", "RightShift"]:
    OPERATIONS[_name] = (_binary(_name), [whole(6), whole(6, low=0, high=5)])
for _name in ["Equal", "NotEqual", "Greater", "GreaterEqual", "Less", "LessEqual"]:
    OPERATIONS[_name] = (_binary(_name), [whole(4, 1).astype(np.float32), whole(5).astype(np.float32)])
for _name in ["LogicalAnd", "LogicalOr"]:
    OPERATIONS[_name] = (_binary(_name), [truths(4, 1), truths(5)])
OPERATIONS["ApproximateEqual"] = (
    lambda x, y: R.ApproximateEqual(x=x, y=y, tolerance=0.5),
    [floats(8), floats(8)[::-1].copy()],
)
OPERATIONS["AddN"] = (lambda *x: R.AddN(inputs=list(x)), [floats(3, 2)] * 3)
OPERATIONS["Select"] = (lambda p, x, y: R.Select(condition=p, x=x, y=y), [truths(3), floats(3, 2), floats(3, 2) + 1])
OPERATIONS["SelectV2"] = (lambda p, t, e: R.SelectV2(condition=p, t=t, e=e), [truths(3, 1), floats(2), floats(1)])
OPERATIONS["ClipByValue"] = (lambda x: R.ClipByValue(t=x, clip_value_min=-0.5, clip_value_max=0.5), [floats(9)])
for _to in (tf.int32, tf.bool, tf.float16, tf.uint8, tf.float64, tf.int64, tf.bfloat16, tf.complex64):
    OPERATIONS[f"Cast/{_to.name}"] = (
        lambda x, to=_to: tf.cast(R.Cast(x=x, DstT=to), tf.float32) if to is tf.bfloat16 else R.Cast(x=x, DstT=to),
        [np.abs(floats(7)) * 9],
    )
OPERATIONS["Bitcast"] = (lambda x: R.Bitcast(input=x, type=tf.int32), [floats(5)])
OPERATIONS["Bitcast/narrow"] = (lambda x: R.Bitcast(input=x, type=tf.uint8), [floats(5)])

# -- reductions ------------------------------------------------------------------------------------------

for _name in ["Sum", "Mean", "Max", "Min", "Prod", "EuclideanNorm"]:
    for _axes, _keep in (([1], False), ([0, -1], True), ([], False)):
        OPERATIONS[f"{_name}/{_axes}"] = (
            lambda x, name=_name, axes=_axes, keep=_keep: getattr(R, name)(
                input=x, axis=np.array(axes, np.int32), keep_dims=keep
            ),
            [floats(2, 3, 4)],
        )
OPERATIONS["Sum/f16"] = (lambda x: R.Sum(input=x, axis=0), [floats(100, dtype=np.float16)])
for _name in ["Sum", "Max", "Prod"]:
    OPERATIONS[f"{_name}/int"] = (lambda x, name=_name: getattr(R, name)(input=x, axis=[0]), [whole(4, 3)])
for _name in ["All", "Any"]:
    OPERATIONS[_name] = (lambda x, name=_name: getattr(R, name)(input=x, axis=[1], keep_dims=True), [truths(4, 3)])
for _name in ["ArgMax", "ArgMin"]:
    OPERATIONS[_name] = (lambda x, name=_name: getattr(R, name)(input=x, dimension=1), [whole(4, 9, low=-3, high=3)])
    OPERATIONS[f"{_name}/i32"] = (
        lambda x, name=_name: getattr(R, name)(input=x, dimension=-2, output_type=tf.int32),
        [floats(2, 4, 9)],
    )
for _exclusive in (False, True):
    for _reverse in (False, True):
        OPERATIONS[f"Cumsum/{_exclusive:d}{_reverse:d}"] = (
            lambda x, e=_exclusive, r=_reverse: R.Cumsum(x=x, axis=1, exclusive=e, reverse=r),
            [floats(2, 11)],
        )
OPERATIONS["Cumprod"] = (lambda x: R.Cumprod(x=x, axis=-1), [unit(3, 6)])

# -- shapes ----------------------------------------------------------------------------------------------

OPERATIONS["Shape"] = (lambda x: R.Shape(input=x, out_type=tf.int64), [floats(2, 3)])
OPERATIONS["ShapeN"] = (lambda x, y: R.ShapeN(input=[x, y]), [floats(2, 3), floats(4, 5)])
OPERATIONS["Size"] = (_unary("Size", "input"), [floats(2, 3)])
OPERATIONS["Rank"] = (_unary("Rank", "input"), [floats(2, 3)])
OPERATIONS["Reshape"] = (lambda x: R.Reshape(tensor=x, shape=[4, -1]), [floats(2, 6)])
OPERATIONS["Reshape/computed"] = (
    lambda x: tf.reshape(x, tf.stack([tf.shape(x)[0], -1, tf.shape(x)[3]])),
    [floats(2, 3, 4, 5)],
)
OPERATIONS["Reshape/product"] = (
    lambda x: tf.reshape(x, [tf.reduce_prod(tf.shape(x)[:2]), tf.shape(x)[2] // 2, 2]),
    [floats(2, 3, 4)],
)
OPERATIONS["Squeeze"] = (lambda x: R.Squeeze(input=x, axis=[1]), [floats(2, 1, 3, 1)])
OPERATIONS["Squeeze/all"] = (lambda x: R.Squeeze(input=x), [floats(2, 1, 3, 1)])
OPERATIONS["ExpandDims"] = (lambda x: R.ExpandDims(input=x, axis=-1), [floats(2, 3)])
OPERATIONS["Transpose"] = (lambda x: R.Transpose(x=x, perm=[2, 0, 1]), [floats(2, 3, 4)])
OPERATIONS["ConjugateTranspose"] = (lambda x: R.ConjugateTranspose(x=x, perm=[1, 0]), [complexes(2, 3)])
OPERATIONS["Tile"] = (lambda x: R.Tile(input=x, multiples=[2, 3]), [floats(2, 3)])
OPERATIONS["Fill"] = (lambda x: R.Fill(dims=[2, 3], value=x), [np.float32(3.5)])
OPERATIONS["Range"] = (lambda x: x + R.Range(start=2, limit=14, delta=3), [whole(4)])
OPERATIONS["Range/float"] = (lambda x: x + R.Range(start=0.0, limit=1.0, delta=0.3), [floats(4)])
OPERATIONS["LinSpace"] = (lambda x: R.LinSpace(start=x, stop=7.0, num=5), [np.float32(1.5)])
OPERATIONS["ZerosLike"] = (_unary("ZerosLike"), [floats(2, 3)])
OPERATIONS["OnesLike"] = (_unary("OnesLike"), [floats(2, 3)])
OPERATIONS["BroadcastTo"] = (lambda x: R.BroadcastTo(input=x, shape=[4, 2, 3]), [floats(2, 1)])
OPERATIONS["BroadcastArgs"] = (lambda x: x + R.BroadcastArgs(s0=[2, 1, 3], s1=[4, 1]), [whole(3)])
OPERATIONS["Empty"] = (lambda x: x + R.Empty(shape=[2, 3], dtype=tf.float32, init=True), [floats(3)])
OPERATIONS["Pad"] = (lambda x: R.Pad(input=x, paddings=[[1, 2], [0, 3]]), [floats(2, 3)])
OPERATIONS["PadV2"] = (lambda x: R.PadV2(input=x, paddings=[[1, 2], [0, 3]], constant_values=2.5), [floats(2, 3)])
for _mode in ("REFLECT", "SYMMETRIC"):
    OPERATIONS[f"MirrorPad/{_mode}"] = (
        lambda x, mode=_mode: R.MirrorPad(input=x, paddings=[[1, 0], [2, 2], [0, 3]], mode=mode),
        [floats(3, 3, 4)],
    )
OPERATIONS["Concat"] = (lambda x, y: R.Concat(concat_dim=1, values=[x, y, x]), [floats(2, 3), floats(2, 4)])
OPERATIONS["ConcatV2"] = (lambda x, y: R.ConcatV2(values=[x, y], axis=-2), [floats(2, 3), floats(4, 3)])
OPERATIONS["Pack"] = (lambda x, y: R.Pack(values=[x, y], axis=1), [floats(2, 3), floats(2, 3) + 1])
OPERATIONS["Unpack"] = (lambda x: R.Unpack(value=x, num=3, axis=1), [floats(2, 3)])
OPERATIONS["Split"] = (lambda x: R.Split(axis=1, value=x, num_split=3), [floats(2, 6)])
OPERATIONS["SplitV"] = (lambda x: R.SplitV(value=x, size_splits=[1, -1, 2], axis=-1, num_split=3), [floats(2, 6)])
OPERATIONS["ReverseV2"] = (lambda x: R.ReverseV2(tensor=x, axis=[-1]), [floats(2, 6)])
OPERATIONS["Reverse"] = (lambda x: R.Reverse(tensor=x, dims=[True, False]), [floats(2, 6)])
OPERATIONS["InvertPermutation"] = (lambda x: R.InvertPermutation(x=[2, 0, 1]) + x, [whole(3)])
OPERATIONS["DepthToSpace"] = (lambda x: R.DepthToSpace(input=x, block_size=2), [floats(2, 4, 6, 8)])
OPERATIONS["SpaceToDepth"] = (lambda x: R.SpaceToDepth(input=x, block_size=2), [floats(2, 4, 6, 8)])
OPERATIONS["SpaceToBatchND"] = (
    lambda x: R.SpaceToBatchND(input=x, block_shape=[2, 3], paddings=[[1, 1], [0, 1]]),
    [floats(2, 4, 5, 3)],
)
OPERATIONS["BatchToSpaceND"] = (
    lambda x: R.BatchToSpaceND(input=x, block_shape=[2, 3], crops=[[1, 0], [0, 2]]),
    [floats(12, 3, 2, 2)],
)
OPERATIONS["SpaceToBatch"] = (
    lambda x: R.SpaceToBatch(input=x, paddings=[[0, 0], [1, 1]], block_size=2),
    [floats(1, 4, 2, 3)],
)
OPERATIONS["BatchToSpace"] = (
    lambda x: R.BatchToSpace(input=x, crops=[[0, 1], [0, 0]], block_size=2),
    [floats(4, 2, 3, 1)],
)
for _name in ["Identity", "StopGradient", "Snapshot", "PreventGradient"]:
    OPERATIONS[_name] = (_unary(_name, "input"), [floats(4)])
OPERATIONS["IdentityN"] = (lambda x, y: R.IdentityN(input=[x, y]), [floats(2, 3), whole(2)])
OPERATIONS["PlaceholderWithDefault"] = (
    lambda x: x + R.PlaceholderWithDefault(input=np.float32(2), shape=[]),
    [floats(2)],
)
OPERATIONS["CheckNumerics"] = (lambda x: R.CheckNumerics(tensor=x, message="m"), [floats(2)])
OPERATIONS["EnsureShape"] = (lambda x: R.EnsureShape(input=x, shape=[2, 3]), [floats(2, 3)])

# -- indexing --------------------------------------------------------------------------------------------

OPERATIONS["Slice"] = (lambda x: R.Slice(input=x, begin=[1, 0], size=[2, -1]), [floats(4, 3)])
OPERATIONS["Slice/dynamic"] = (lambda x, i: tf.slice(x, [i, 1], [2, 2]), [floats(5, 4), np.int32(2)])
for _key, _slices in {
    "simple": lambda x: x[1:3, ::2],
    "negative": lambda x: x[::-1, 3:0:-2],
    "shrink": lambda x: x[-1, :, 2],
    "ellipsis": lambda x: x[..., 1:],
    "newaxis": lambda x: x[:, tf.newaxis, 1, ..., tf.newaxis],
    "empty": lambda x: x[3:1],
    "beyond": lambda x: x[-99:99, 2:99],
}.items():
    OPERATIONS[f"StridedSlice/{_key}"] = (_slices, [floats(4, 5, 3)])
OPERATIONS["StridedSlice/dynamic"] = (lambda x, i: x[:, i, 1:], [floats(4, 5, 3), np.int32(3)])
OPERATIONS["StridedSlice/from the end"] = (lambda x, i: x[i], [floats(4, 5), np.int32(-2)])
OPERATIONS["Gather"] = (lambda x, i: R.Gather(params=x, indices=i), [floats(5, 3), whole(2, 2, low=0, high=5)])
OPERATIONS["GatherV2"] = (
    lambda x, i: R.GatherV2(params=x, indices=i, axis=1),
    [floats(2, 5, 3), whole(4, low=0, high=5)],
)
OPERATIONS["GatherV2/batch"] = (
    lambda x, i: R.GatherV2(params=x, indices=i, axis=2, batch_dims=1),
    [floats(2, 4, 5, 3), whole(2, 6, low=0, high=5)],
)
OPERATIONS["GatherNd"] = (lambda x, i: R.GatherNd(params=x, indices=i), [floats(4, 5, 3), whole(6, 2, low=0, high=4)])
OPERATIONS["ScatterNd"] = (
    lambda i, u: R.ScatterNd(indices=i, updates=u, shape=[5, 2]),
    [np.array([[1], [3], [1]], np.int32), floats(3, 2)],
)
for _name in ["TensorScatterUpdate", "TensorScatterAdd", "TensorScatterSub", "TensorScatterMax", "TensorScatterMin"]:
    OPERATIONS[_name] = (
        lambda x, i, u, name=_name: getattr(R, name)(tensor=x, indices=i, updates=u),
        [floats(5, 2), np.array([[1], [3]], np.int32), floats(2, 2)],
    )
OPERATIONS["OneHot"] = (
    lambda i: R.OneHot(indices=i, depth=4, on_value=2.0, off_value=-1.0),
    [np.array([[0, 3], [9, -1]], np.int32)],
)
OPERATIONS["OneHot/axis"] = (
    lambda i: R.OneHot(indices=i, depth=3, on_value=1, off_value=0, axis=0),
    [np.array([0, 2], np.int64)],
)
OPERATIONS["TopKV2"] = (lambda x: R.TopKV2(input=x, k=3), [floats(2, 9)])
OPERATIONS["TopKV2/ties"] = (lambda x: R.TopKV2(input=x, k=4), [whole(2, 9, low=0, high=3)])

OPERATIONS["ReverseSequence"] = (
    lambda x, n: R.ReverseSequence(input=x, seq_lengths=n, seq_dim=1, batch_dim=0),
    [floats(3, 5, 2), np.array([5, 1, 3], np.int32)],
)
OPERATIONS["ReverseSequence/time first"] = (
    lambda x, n: R.ReverseSequence(input=x, seq_lengths=n, seq_dim=0, batch_dim=2),
    [floats(5, 2, 3), np.array([4, 0, 3], np.int64)],
)
OPERATIONS["Roll"] = (lambda x: R.Roll(input=x, shift=[2, -9], axis=[0, -1]), [floats(3, 4)])
OPERATIONS["MatrixBandPart"] = (lambda x: R.MatrixBandPart(input=x, num_lower=1, num_upper=-1), [floats(2, 4, 5)])
OPERATIONS["MatrixBandPart/above"] = (lambda x: R.MatrixBandPart(input=x, num_lower=0, num_upper=2), [floats(4, 5)])
OPERATIONS["FakeQuantWithMinMaxArgs"] = (
    lambda x: R.FakeQuantWithMinMaxArgs(inputs=x, min=-1.3, max=0.9, num_bits=5),
    [floats(40)],
)
OPERATIONS["FakeQuantWithMinMaxVars"] = (
    lambda x: R.FakeQuantWithMinMaxVars(inputs=x, min=-1.7, max=2.9, narrow_range=True),
    [floats(40)],
)
OPERATIONS["FakeQuantWithMinMaxVarsPerChannel"] = (
    lambda x, low, high: R.FakeQuantWithMinMaxVarsPerChannel(inputs=x, min=low, max=high),
    [floats(9, 3), -positive(3), positive(3) * 2],
)

# -- images ----------------------------------------------------------------------------------------------

for _name in ("ResizeBilinear", "ResizeNearestNeighbor"):
    for _corners, _middles in ((False, False), (True, False), (False, True)):
        for _size in ([7, 11], [3, 2]):
            OPERATIONS[f"{_name}/{_corners:d}{_middles:d}{_size[0]}"] = (
                lambda x, name=_name, corners=_corners, middles=_middles, size=_size: getattr(R, name)(
                    images=x, size=size, align_corners=corners, half_pixel_centers=middles
                ),
                [floats(1, 4, 6, 3)],
            )
