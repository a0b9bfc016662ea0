"""Models and control flow to translate: built in TensorFlow 1's way and in 2's, and frozen Keras models."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from conformance.tensorflow.inputs import Array, Case, floats, truths, whole

V1 = tf.compat.v1


def _in_old_style(function: Callable[..., Any]) -> Callable[..., Any]:
    """Control flow by Switch, Merge, Enter, Exit and NextIteration."""

    def build(*arguments: Any) -> Any:
        V1.disable_control_flow_v2()
        try:
            return function(*arguments)
        finally:
            V1.enable_control_flow_v2()

    return build


# -- control flow ----------------------------------------------------------------------------------------


def _cond(p: Any, x: Any) -> Any:
    return tf.cond(p, lambda: x * 2 + 1, lambda: tf.exp(x))


def _cond_of_two(p: Any, x: Any, y: Any) -> Any:
    one, other = tf.cond(p, lambda: (x + y, x), lambda: (x - y, y * 3))
    return one * other, one


def _nested_cond(p: Any, q: Any, x: Any) -> Any:
    inner = tf.cond(p, lambda: tf.cond(q, lambda: x + 1, lambda: x * 5), lambda: tf.constant([7.0, 8.0, 9.0]))
    return tf.cond(q, lambda: inner - 1, lambda: inner * inner)


def _cond_with_loop(p: Any, x: Any) -> Any:
    def grow() -> Any:
        return tf.while_loop(lambda v: tf.reduce_sum(v) < 100.0, lambda v: [v * 2], [tf.abs(x) + 1])[0]

    return tf.cond(p, grow, lambda: x)


def _cond_of_constants(p: Any) -> Any:
    return tf.cond(p, lambda: tf.constant(3), lambda: tf.constant(4))


def _known_cond(x: Any) -> Any:
    return tf.cond(tf.constant(True), lambda: tf.reshape(x, [tf.size(x)]), lambda: tf.zeros([6]))


def _case(i: Any, x: Any) -> Any:
    return tf.switch_case(i, [lambda: x, lambda: x * 2, lambda: tf.sin(x)])


def _loop(n: Any, x: Any) -> Any:
    return tf.while_loop(lambda i, v: i < n, lambda i, v: (i + 1, v * 1.5 + 1), (0, x))


def _nested_loop(n: Any, x: Any) -> Any:
    def outer(i: Any, v: Any) -> Any:
        _, inner = tf.while_loop(lambda j, w: j < i, lambda j, w: (j + 1, w + tf.cast(i, tf.float32)), (0, v))
        return i + 1, inner * 0.5

    return tf.while_loop(lambda i, v: i < n, outer, (0, x))[1]


def _loop_with_cond(n: Any, x: Any) -> Any:
    def body(i: Any, v: Any) -> Any:
        return i + 1, tf.cond(tf.equal(i % 2, 0), lambda: v * 2, lambda: v - 3)

    return tf.while_loop(lambda i, v: i < n, body, (0, x))[1]


def _captured(n: Any, x: Any, w: Any) -> Any:
    """The loop takes what does not change from around it."""
    return tf.while_loop(lambda i, v: i < n, lambda i, v: (i + 1, tf.tanh(tf.matmul(v, w))), (0, x))[1]


def _arrays(x: Any) -> Any:
    """A TensorArray read and another written in a loop."""
    count = x.shape[0]
    source = tf.TensorArray(tf.float32, count).unstack(x)

    def body(i: Any, total: Any, out: Any) -> Any:
        total = total + source.read(i)
        return i + 1, total, out.write(i, total * 2)

    _, total, out = tf.while_loop(
        lambda i, *_: i < count, body, (0, tf.zeros(x.shape[1:]), tf.TensorArray(tf.float32, count))
    )
    return total, out.stack()


def _map(x: Any) -> Any:
    return tf.map_fn(lambda row: tf.reduce_max(row) - row, x)


def _lstm_cell(x: Any, hidden: Any, cell: Any, weights: Any, bias: Any) -> tuple[Any, Any]:
    gates = tf.nn.bias_add(tf.matmul(tf.concat([x, hidden], 1), weights), bias)
    i, j, f, o = tf.split(gates, 4, axis=1)
    cell = cell * tf.sigmoid(f + 1.0) + tf.sigmoid(i) * tf.tanh(j)
    return tf.tanh(cell) * tf.sigmoid(o), cell


def _lstm(x: Any) -> Any:
    """A recurrent network as ``dynamic_rnn`` builds it: time first, states in a loop, outputs in a TensorArray."""
    units, batch, (_, time, depth) = 5, tf.shape(x)[0], x.shape
    weights, bias = tf.constant(floats(depth + units, 4 * units) / 2), tf.constant(floats(4 * units))
    inputs = tf.TensorArray(tf.float32, time).unstack(tf.transpose(x, [1, 0, 2]))

    def body(step: Any, hidden: Any, cell: Any, outputs: Any) -> Any:
        hidden, cell = _lstm_cell(inputs.read(step), hidden, cell, weights, bias)
        return step + 1, hidden, cell, outputs.write(step, hidden)

    zeros = tf.zeros([batch, units])
    start = (0, zeros, zeros, tf.TensorArray(tf.float32, time))
    _, hidden, _, outputs = tf.while_loop(lambda step, *_: step < time, body, start)
    return tf.transpose(outputs.stack(), [1, 0, 2]), hidden


def _called(op: str) -> Callable[..., Any]:
    """Stateful forms of calls and conditionals, which TensorFlow makes where a body may have effects."""

    def build(i: Any, x: Any) -> Any:
        spec = tf.TensorSpec(x.shape, x.dtype)
        functions = [tf.function(f).get_concrete_function(spec) for f in (tf.sin, tf.exp, tf.abs)]
        for function in functions:
            function.add_to_graph()
        if op == "If":
            cond = tf.raw_ops.If(cond=i, input=[x], Tout=[x.dtype], then_branch=functions[0], else_branch=functions[1])
            return cond[0]
        if op == "Case":
            return tf.raw_ops.Case(branch_index=i, input=[x], Tout=[x.dtype], branches=functions)[0]
        return tf.raw_ops.StatefulPartitionedCall(args=[x], Tout=[x.dtype], f=functions[2])[0]

    return build


def _list_sizes(x: Any) -> Any:
    items = tf.raw_ops.TensorListFromTensor(tensor=x, element_shape=x.shape[1:])
    array = tf.raw_ops.TensorArrayV3(size=4, dtype=tf.float32)
    return tf.raw_ops.TensorListLength(input_handle=items), tf.raw_ops.TensorArraySizeV3(
        handle=array[0], flow_in=array[1]
    )


# -- networks --------------------------------------------------------------------------------------------


def _normalized(x: Any) -> Any:
    channels = x.shape[-1]
    return V1.nn.fused_batch_norm(
        x,
        tf.constant(np.abs(floats(channels)) + 0.5),
        tf.constant(floats(channels)),
        tf.constant(floats(channels) / 2),
        tf.constant(np.abs(floats(channels)) + 0.5),
        is_training=False,
    )[0]


def _weights(*shape: int) -> Any:
    return tf.constant(floats(*shape) / np.float32(np.sqrt(np.prod(shape[:-1]))))


def _mobile_block(x: Any, channels: int, stride: int) -> Any:
    depth = x.shape[-1]
    x = tf.nn.depthwise_conv2d(x, _weights(3, 3, depth, 1), [1, stride, stride, 1], "SAME")
    x = tf.nn.relu6(_normalized(x))
    return tf.nn.relu6(_normalized(tf.nn.conv2d(x, _weights(1, 1, depth, channels), 1, "SAME")))


def _mobile_net(x: Any) -> Any:
    x = tf.nn.relu6(_normalized(tf.nn.conv2d(x, _weights(3, 3, 3, 8), 2, "SAME")))
    for channels, stride in ((16, 1), (24, 2), (24, 1), (32, 2)):
        x = _mobile_block(x, channels, stride)
    x = tf.reduce_mean(x, [1, 2])
    return tf.nn.softmax(tf.nn.bias_add(tf.matmul(x, _weights(32, 10)), tf.constant(floats(10))))


def _residual_block(x: Any) -> Any:
    depth = x.shape[-1]
    y = tf.nn.relu(_normalized(tf.nn.conv2d(x, _weights(3, 3, depth, depth), 1, "SAME")))
    y = _normalized(tf.nn.conv2d(y, _weights(3, 3, depth, depth), 1, "SAME"))
    return tf.nn.relu(x + y)


def _residual_net(x: Any) -> Any:
    x = tf.pad(x, [[0, 0], [3, 3], [3, 3], [0, 0]])
    x = tf.nn.conv2d(x, _weights(7, 7, 3, 8), 2, "VALID")
    x = tf.nn.max_pool2d(tf.nn.relu(_normalized(x)), 3, 2, "SAME")
    for _ in range(3):
        x = _residual_block(x)
    weights = _weights(int(np.prod(x.shape[1:])), 7)
    return tf.nn.log_softmax(tf.matmul(tf.reshape(x, [tf.shape(x)[0], -1]), weights))


def _inception(x: Any) -> Any:
    one = tf.nn.conv2d(x, _weights(1, 1, 4, 3), 1, "SAME")
    three = tf.nn.conv2d(one, _weights(3, 3, 3, 5), 1, "SAME")
    pooled = tf.nn.avg_pool2d(x, 3, 1, "SAME")
    joined = tf.concat([one, three, pooled], 3)
    return tf.nn.local_response_normalization(joined, 2), tf.image.resize(joined, [9, 5])


def _u_net(x: Any) -> Any:
    down = tf.nn.relu(tf.nn.conv2d(x, _weights(3, 3, 2, 4), 1, "SAME"))
    low = tf.nn.relu(tf.nn.conv2d(tf.nn.max_pool2d(down, 2, 2, "VALID"), _weights(3, 3, 4, 8), 1, "SAME"))
    up = tf.nn.conv2d_transpose(low, _weights(2, 2, 4, 8), tf.shape(down), 2, "SAME")
    return tf.nn.conv2d(tf.concat([up, down], -1), _weights(1, 1, 8, 1), 1, "SAME")


def _attention(x: Any) -> Any:
    batch, (_, length, depth) = tf.shape(x)[0], x.shape
    heads = 2

    def split(name: Any) -> Any:
        y = tf.einsum("bld,de->ble", x, name)
        return tf.transpose(tf.reshape(y, [tf.shape(y)[0], length, heads, depth // heads]), [0, 2, 1, 3])

    q, k, v = (split(_weights(depth, depth) * scale) for scale in (1.0, 0.5, 2.0))
    scores = tf.nn.softmax(tf.matmul(q, k, transpose_b=True) / np.sqrt(depth / heads))
    y = tf.reshape(tf.transpose(tf.matmul(scores, v), [0, 2, 1, 3]), [batch, length, depth])
    mean, variance = tf.nn.moments(x + y, [-1], keepdims=True)
    return tf.nn.batch_normalization(x + y, mean, variance, None, None, 1e-5)


def _embedding(tokens: Any) -> Any:
    x = tf.nn.embedding_lookup(tf.constant(floats(11, 6)), tokens)
    mask = tf.cast(tf.not_equal(tokens, 0), tf.float32)[:, :, tf.newaxis]
    return tf.reduce_sum(x * mask, 1) / tf.maximum(tf.reduce_sum(mask, 1), 1.0)


_CONTROL: Mapping[str, Case] = {
    "cond": (_cond, [np.bool_(True), floats(3)]),
    "cond, the other side": (_cond, [np.bool_(False), floats(3)]),
    "cond of two": (_cond_of_two, [np.bool_(True), floats(3), floats(3) + 1]),
    "nested cond": (_nested_cond, [np.bool_(True), np.bool_(False), floats(3)]),
    "nested cond, outer": (_nested_cond, [np.bool_(False), np.bool_(True), floats(3)]),
    "cond with loop": (_cond_with_loop, [np.bool_(True), floats(3)]),
    "cond of constants": (_cond_of_constants, [np.bool_(False)]),
    "known cond": (_known_cond, [floats(2, 3)]),
    "loop": (_loop, [np.int32(5), floats(3)]),
    "nested loop": (_nested_loop, [np.int32(4), floats(3)]),
    "loop with cond": (_loop_with_cond, [np.int32(5), floats(3)]),
    "captured": (_captured, [np.int32(3), floats(2, 4), floats(4, 4)]),
    "arrays": (_arrays, [floats(5, 3)]),
    "map": (_map, [floats(4, 3)]),
    "lstm": (_lstm, [floats(2, 6, 3)]),
}

FUNCTIONS: Mapping[str, Case] = {
    **{f"{name}, functions": case for name, case in _CONTROL.items()},
    **{f"{name}, switches": (_in_old_style(function), given) for name, (function, given) in _CONTROL.items()},
    "case, functions": (_case, [np.int32(2), floats(3)]),
    "case beyond, functions": (_case, [np.int32(9), floats(3)]),
    **{op: (_called(op), [np.int32(1), floats(3)]) for op in ("If", "Case", "StatefulPartitionedCall")},
    "list sizes": (_list_sizes, [floats(3, 2)]),
    "calls": (tf.function(lambda x: tf.function(lambda y: (y * 2, y + 1))(x)[1] * 3), [floats(3)]),
    "mobile net": (_mobile_net, [floats(2, 32, 32, 3)]),
    "residual net": (_residual_net, [floats(1, 32, 32, 3)]),
    "inception": (_inception, [floats(1, 6, 7, 4)]),
    "u-net": (_u_net, [floats(1, 8, 8, 2)]),
    "attention": (_attention, [floats(2, 5, 8)]),
    "embedding": (_embedding, [whole(3, 4, low=0, high=11)]),
    "masked": (lambda p, x: tf.where(p, x, tf.zeros_like(x)), [truths(3, 4), floats(3, 4)]),
}


OPEN = (
    "lstm, functions", "lstm, switches", "mobile net", "residual net", "inception", "u-net", "attention",
    "embedding", "masked",
)  # fmt: skip
"""Models that are recorded a second time, with placeholders that leave the batch open."""


# -- Keras -----------------------------------------------------------------------------------------------


def keras_models() -> Mapping[str, tuple[Any, Sequence[Array]]]:
    """Models of Keras with random weights."""
    keras = tf.keras
    keras.utils.set_random_seed(7)
    layers = keras.layers
    return {
        "keras dense": (
            keras.Sequential([layers.Dense(16, "relu"), layers.Dropout(0.5), layers.Dense(4, "softmax")]),
            [floats(3, 8)],
        ),
        "keras convolutions": (
            keras.Sequential(
                [
                    layers.Conv2D(8, 3, padding="same"),
                    layers.BatchNormalization(),
                    layers.ReLU(6.0),
                    layers.SeparableConv2D(6, 3, strides=2),
                    layers.Conv2DTranspose(4, 3, strides=2, padding="same"),
                    layers.UpSampling2D(interpolation="bilinear"),
                    layers.GlobalAveragePooling2D(),
                    layers.LayerNormalization(),
                ]
            ),
            [floats(2, 12, 12, 3)],
        ),
        "keras lstm": (keras.Sequential([layers.LSTM(6, return_sequences=True), layers.LSTM(4)]), [floats(2, 7, 3)]),
        "keras gru": (keras.Sequential([layers.GRU(6)]), [floats(2, 7, 3)]),
        "keras embedding": (
            keras.Sequential([layers.Embedding(20, 8), layers.Bidirectional(layers.LSTM(3)), layers.Dense(2)]),
            [whole(2, 6, low=0, high=20)],
        ),
        "keras MobileNetV2": (
            keras.applications.MobileNetV2((32, 32, 3), 0.35, weights=None, classes=10),
            [floats(1, 32, 32, 3)],
        ),
    }
