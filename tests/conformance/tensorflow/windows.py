"""Products, convolutions, pools and normalizations of TensorFlow to translate."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf
from conformance.tensorflow.inputs import Case, complexes, floats, positive, whole

R = tf.raw_ops

WINDOWS: dict[str, Case] = {}

for _a in (False, True):
    for _b in (False, True):
        WINDOWS[f"MatMul/{_a:d}{_b:d}"] = (
            lambda x, y, a=_a, b=_b: R.MatMul(a=x, b=y, transpose_a=a, transpose_b=b),
            [floats(5, 4) if _a else floats(4, 5), floats(3, 5) if _b else floats(5, 3)],
        )
WINDOWS["MatMul/int"] = (lambda x, y: R.MatMul(a=x, b=y), [whole(3, 4), whole(4, 2)])
WINDOWS["BatchMatMul"] = (lambda x, y: R.BatchMatMul(x=x, y=y, adj_y=True), [floats(2, 3, 4), floats(2, 5, 4)])
WINDOWS["BatchMatMulV2"] = (lambda x, y: R.BatchMatMulV2(x=x, y=y), [floats(2, 1, 3, 4), floats(5, 4, 2)])
WINDOWS["BatchMatMulV2/complex"] = (
    lambda x, y: R.BatchMatMulV2(x=x, y=y, adj_x=True),
    [complexes(2, 4, 3), complexes(2, 4, 2)],
)
WINDOWS["BatchMatMulV3"] = (lambda x, y: R.BatchMatMulV3(x=x, y=y, Tout=tf.float32), [floats(2, 3, 4), floats(4, 2)])
for _equation, _shapes in {
    "ij,jk->ik": ((3, 4), (4, 5)),
    "bij,bkj->bik": ((2, 3, 4), (2, 5, 4)),
    "...ij,jk->...ik": ((2, 3, 4), (4, 5)),
    "...i,...i->...": ((2, 1, 4), (3, 4)),
    "ij->ji": ((3, 4),),
    "ij->i": ((3, 4),),
    "ii->i": ((3, 3),),
    "abc,cd->abd": ((2, 3, 4), (4, 5)),
    "i,j->ij": ((3,), (4,)),
    "aecd,abcd->acbe": ((2, 3, 4, 5), (2, 6, 4, 5)),
}.items():
    WINDOWS[f"Einsum/{_equation}"] = (
        lambda *x, equation=_equation: R.Einsum(inputs=list(x), equation=equation),
        [floats(*shape) for shape in _shapes],
    )
WINDOWS["BiasAdd"] = (lambda x, b: R.BiasAdd(value=x, bias=b), [floats(2, 3, 4, 5), floats(5)])
WINDOWS["BiasAdd/NCHW"] = (lambda x, b: R.BiasAdd(value=x, bias=b, data_format="NCHW"), [floats(2, 5, 3, 4), floats(5)])
WINDOWS["BiasAddV1"] = (lambda x, b: R.BiasAddV1(value=x, bias=b), [floats(3, 5), floats(5)])


def _conv2d(stride: int = 1, padding: str = "SAME", dilation: int = 1, **others: Any) -> Callable[[Any, Any], Any]:
    return lambda x, k: R.Conv2D(
        input=x,
        filter=k,
        strides=[1, stride, stride, 1],
        padding=padding,
        dilations=[1, dilation, dilation, 1],
        **others,
    )


WINDOWS["Conv2D"] = (_conv2d(), [floats(2, 7, 6, 3), floats(3, 3, 3, 4)])
WINDOWS["Conv2D/stride"] = (_conv2d(2), [floats(1, 8, 7, 3), floats(3, 3, 3, 4)])
WINDOWS["Conv2D/valid"] = (_conv2d(2, "VALID"), [floats(1, 8, 7, 3), floats(3, 2, 3, 4)])
WINDOWS["Conv2D/dilated"] = (_conv2d(1, "SAME", 2), [floats(1, 8, 7, 3), floats(3, 3, 3, 2)])
WINDOWS["Conv2D/groups"] = (_conv2d(), [floats(1, 5, 5, 4), floats(3, 3, 2, 6)])
WINDOWS["Conv2D/explicit"] = (
    _conv2d(2, "EXPLICIT", explicit_paddings=[0, 0, 1, 2, 0, 1, 0, 0]),
    [floats(1, 8, 7, 3), floats(3, 3, 3, 2)],
)
WINDOWS["Conv3D"] = (
    lambda x, k: R.Conv3D(input=x, filter=k, strides=[1, 1, 2, 1, 1], padding="SAME"),
    [floats(1, 4, 5, 6, 2), floats(2, 3, 3, 2, 3)],
)
WINDOWS["Conv1D by expansion"] = (
    lambda x, k: tf.nn.conv1d(x, k, stride=2, padding="SAME"),
    [floats(2, 9, 3), floats(4, 3, 5)],
)
WINDOWS["Conv2D by batches"] = (
    lambda x, k: tf.nn.convolution(x, k, padding="SAME", dilations=[2, 3]),
    [floats(1, 9, 8, 2), floats(3, 3, 2, 3)],
)
for _stride, _padding in ((1, "SAME"), (2, "SAME"), (2, "VALID")):
    WINDOWS[f"DepthwiseConv2dNative/{_stride}{_padding}"] = (
        lambda x, k, stride=_stride, padding=_padding: R.DepthwiseConv2dNative(
            input=x, filter=k, strides=[1, stride, stride, 1], padding=padding
        ),
        [floats(1, 7, 6, 3), floats(3, 3, 3, 2)],
    )
for _stride, _padding, _size in ((1, "SAME", 5), (2, "SAME", 9), (2, "SAME", 10), (2, "VALID", 11), (3, "VALID", 16)):
    WINDOWS[f"Conv2DBackpropInput/{_stride}{_padding}{_size}"] = (
        lambda y, k, stride=_stride, padding=_padding, size=_size: R.Conv2DBackpropInput(
            input_sizes=[1, size, size, 3], filter=k, out_backprop=y, strides=[1, stride, stride, 1], padding=padding
        ),
        [floats(1, 5, 5, 4), floats(3, 3, 3, 4)],
    )
WINDOWS["Conv3DBackpropInputV2"] = (
    lambda y, k: R.Conv3DBackpropInputV2(
        input_sizes=[1, 4, 6, 6, 2], filter=k, out_backprop=y, strides=[1, 2, 2, 2, 1], padding="SAME"
    ),
    [floats(1, 2, 3, 3, 3), floats(2, 3, 3, 2, 3)],
)
WINDOWS["DepthwiseConv2dNativeBackpropInput"] = (
    lambda y, k: R.DepthwiseConv2dNativeBackpropInput(
        input_sizes=[1, 6, 6, 2], filter=k, out_backprop=y, strides=[1, 2, 2, 1], padding="SAME"
    ),
    [floats(1, 3, 3, 6), floats(3, 3, 2, 3)],
)

# -- pools and normalizations ----------------------------------------------------------------------------

for _pool in ("MaxPool", "AvgPool"):
    for _size, _stride, _padding in ((2, 2, "VALID"), (3, 2, "SAME"), (3, 1, "SAME"), (4, 3, "SAME")):
        WINDOWS[f"{_pool}/{_size}{_stride}{_padding}"] = (
            lambda x, pool=_pool, size=_size, stride=_stride, padding=_padding: getattr(R, pool)(
                **{"input" if pool == "MaxPool" else "value": x},
                ksize=[1, size, size, 1],
                strides=[1, stride, stride, 1],
                padding=padding,
            ),
            [floats(2, 7, 6, 3)],
        )
WINDOWS["MaxPool/explicit"] = (
    lambda x: R.MaxPool(
        input=x,
        ksize=[1, 3, 3, 1],
        strides=[1, 2, 2, 1],
        padding="EXPLICIT",
        explicit_paddings=[0, 0, 1, 0, 0, 1, 0, 0],
    ),
    [floats(2, 7, 6, 3)],
)
WINDOWS["MaxPoolV2"] = (
    lambda x: R.MaxPoolV2(input=x, ksize=[1, 2, 2, 1], strides=[1, 1, 2, 1], padding="VALID"),
    [floats(1, 5, 6, 2)],
)
for _pool in ("MaxPool3D", "AvgPool3D"):
    WINDOWS[_pool] = (
        lambda x, pool=_pool: getattr(R, pool)(input=x, ksize=[1, 2, 3, 2, 1], strides=[1, 2, 2, 1, 1], padding="SAME"),
        [floats(1, 4, 5, 6, 2)],
    )


def _batch_norm(name: str, training: bool, layout: str = "NHWC", **others: Any) -> Callable[..., Any]:
    def function(x: Any, scale: Any, offset: Any, mean: Any, variance: Any) -> Any:
        given = (tf.constant([]), tf.constant([])) if training and "exponential_avg_factor" not in others else ()
        found = getattr(R, name)(
            x=x,
            scale=scale,
            offset=offset,
            mean=given[0] if given else mean,
            variance=given[1] if given else variance,
            epsilon=0.01,
            is_training=training,
            data_format=layout,
            **others,
        )
        return list(found[:3]) if training else found[0]

    return function


_VECTORS = [positive(4), floats(4), floats(4) / 2, positive(4)]
for _name in ("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"):
    WINDOWS[_name] = (_batch_norm(_name, False), [floats(2, 3, 5, 4), *_VECTORS])
WINDOWS["FusedBatchNormV3/f16"] = (
    _batch_norm("FusedBatchNormV3", False),
    [floats(2, 3, 5, 4, dtype=np.float16), *_VECTORS],
)
WINDOWS["FusedBatchNormV3/training"] = (_batch_norm("FusedBatchNormV3", True), [floats(2, 3, 5, 4), *_VECTORS])
WINDOWS["FusedBatchNormV3/average"] = (
    _batch_norm("FusedBatchNormV3", True, exponential_avg_factor=0.25),
    [floats(2, 3, 5, 4), *_VECTORS],
)
WINDOWS["LRN"] = (lambda x: R.LRN(input=x, depth_radius=2, bias=1.5, alpha=0.1, beta=0.75), [floats(1, 3, 3, 9)])
WINDOWS["LRN/defaults"] = (lambda x: R.LRN(input=x), [floats(1, 2, 2, 14)])
WINDOWS["Softmax"] = (lambda x: R.Softmax(logits=x), [floats(3, 7) * 5])
WINDOWS["LogSoftmax"] = (lambda x: R.LogSoftmax(logits=x), [floats(3, 7) * 5])
WINDOWS["L2Loss"] = (lambda x: R.L2Loss(t=x), [floats(3, 7)])
