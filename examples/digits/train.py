r"""Trains the classifier of this folder and writes ``digits.mlir``; needs NumPy only.

Images are 28 x 28 pictures of digits in a 5 x 7 font, scaled, shifted, thickened and noisy, made here from a seed.
The network is a convolution of eight fixed 5 x 5 filters (edges and blobs), a rectifier, 4 x 4 max pooling and a
dense layer. Only the dense layer is trained: softmax regression by gradient descent in float64, rounded to float32 at
the end.

    python examples/digits/train.py
    iree-compile --iree-hal-target-device=vulkan --iree-hal-executable-debug-level=0 \
      --iree-vm-bytecode-module-strip-source-map=true - -o examples/digits/digits.vmfb < examples/digits/digits.mlir
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

FONT = {
    0: "01110 10001 10011 10101 11001 10001 01110", 1: "00100 01100 00100 00100 00100 00100 01110",
    2: "01110 10001 00001 00110 01000 10000 11111", 3: "11110 00001 00001 01110 00001 00001 11110",
    4: "00010 00110 01010 10010 11111 00010 00010", 5: "11111 10000 11110 00001 00001 10001 01110",
    6: "00110 01000 10000 11110 10001 10001 01110", 7: "11111 00001 00010 00100 01000 01000 01000",
    8: "01110 10001 10001 01110 10001 10001 01110", 9: "01110 10001 10001 01111 00001 00010 01100",
}  # fmt: skip
FOLDER = Path(__file__).parent


def image(digit: int, random: np.random.Generator) -> np.ndarray:
    """A 28 x 28 picture, float32 from 0 to 1."""
    glyph = np.array([[int(pixel) for pixel in row] for row in FONT[digit].split()], np.float32)
    scaled = np.kron(glyph, np.ones((3, 3), np.float32))
    picture = np.zeros((28, 28), np.float32)
    top, left = random.integers(1, 7), random.integers(3, 10)
    picture[top : top + 21, left : left + 15] = scaled
    if random.random() < 0.5:
        picture = np.maximum(picture, np.roll(picture, 1, axis=int(random.integers(0, 2))))
    return np.clip(picture * random.uniform(0.6, 1.0) + random.normal(0, 0.08, picture.shape), 0, 1).astype(np.float32)


def images(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """``count`` pictures (count, 28, 28, 1) and their digits."""
    random = np.random.default_rng(seed)
    digits = random.integers(0, 10, count)
    return np.stack([image(int(digit), random) for digit in digits])[..., None], digits


def filters() -> np.ndarray:
    """Eight 5 x 5 filters (5, 5, 1, 8): edges and lines in four directions."""
    y, x = np.mgrid[-2:3, -2:3] / 2.0
    bank = [y, -y, x, -x, 0.5 - np.abs(y), 0.5 - np.abs(x), 0.5 - np.abs(x - y) / 1.4, 0.5 - np.abs(x + y) / 1.4]
    stacked = np.stack([one / np.abs(one).sum() for one in bank], -1)
    return stacked[:, :, None, :].astype(np.float32)


def features(pictures: np.ndarray) -> np.ndarray:
    """Convolution, rectifier and pooling, as the program does them: (count, 288)."""
    windows = np.lib.stride_tricks.sliding_window_view(pictures[..., 0], (5, 5), axis=(1, 2))
    maps = np.maximum(np.einsum("nyxij,ijf->nyxf", windows, filters()[:, :, 0]), 0)
    return maps.reshape(len(pictures), 6, 4, 6, 4, 8).max((2, 4)).reshape(len(pictures), -1)


def train() -> tuple[np.ndarray, np.ndarray]:
    """Weights (288, 10) and bias (10,)."""
    pictures, digits = images(6000, seed=1)
    x = features(pictures).astype(np.float64)
    wanted = np.eye(10)[digits]
    weight, bias = np.zeros((x.shape[1], 10)), np.zeros(10)
    for _ in range(1500):
        logits = x @ weight + bias
        odds = np.exp(logits - logits.max(1, keepdims=True))
        gap = odds / odds.sum(1, keepdims=True) - wanted
        weight -= 2.0 * (x.T @ gap / len(x) + 1e-5 * weight)
        bias -= 2.0 * gap.mean(0)
    return weight.astype(np.float32), bias.astype(np.float32)


def constant(values: np.ndarray) -> str:
    """A tensor's elements as MLIR reads them: bytes in hexadecimal."""
    return f'dense<"0x{values.astype("<f4").tobytes().hex().upper()}"> : tensor<{"x".join(map(str, values.shape))}xf32>'


PROGRAM = """// Which digit is on a 28 x 28 picture? Written by train.py, which has the story.
func.func @classify(%image: tensor<1x28x28x1xf32>) -> (tensor<1x10xf32>, tensor<1xi32>) {{
  %zero = arith.constant 0.0 : f32
  %lowest = arith.constant 0xFF800000 : f32
  %filters = arith.constant {filters}
  %weight = arith.constant {weight}
  %bias = arith.constant {bias}
  %maps_empty = tensor.empty() : tensor<1x24x24x8xf32>
  %maps_zero = linalg.fill ins(%zero : f32) outs(%maps_empty : tensor<1x24x24x8xf32>) -> tensor<1x24x24x8xf32>
  %maps = linalg.conv_2d_nhwc_hwcf {{dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}}
    ins(%image, %filters : tensor<1x28x28x1xf32>, tensor<5x5x1x8xf32>)
    outs(%maps_zero : tensor<1x24x24x8xf32>) -> tensor<1x24x24x8xf32>
  %zeros = arith.constant dense<0.0> : tensor<1x24x24x8xf32>
  %rectified = arith.maximumf %maps, %zeros : tensor<1x24x24x8xf32>
  %window = tensor.empty() : tensor<4x4xf32>
  %pool_empty = tensor.empty() : tensor<1x6x6x8xf32>
  %pool_lowest = linalg.fill ins(%lowest : f32) outs(%pool_empty : tensor<1x6x6x8xf32>) -> tensor<1x6x6x8xf32>
  %pooled = linalg.pooling_nhwc_max {{dilations = dense<1> : tensor<2xi64>, strides = dense<4> : tensor<2xi64>}}
    ins(%rectified, %window : tensor<1x24x24x8xf32>, tensor<4x4xf32>)
    outs(%pool_lowest : tensor<1x6x6x8xf32>) -> tensor<1x6x6x8xf32>
  %flat = tensor.collapse_shape %pooled [[0], [1, 2, 3]] : tensor<1x6x6x8xf32> into tensor<1x288xf32>
  %logits_empty = tensor.empty() : tensor<1x10xf32>
  %logits_bias = linalg.broadcast ins(%bias : tensor<10xf32>) outs(%logits_empty : tensor<1x10xf32>) dimensions = [0]
  %logits = linalg.matmul ins(%flat, %weight : tensor<1x288xf32>, tensor<288x10xf32>)
    outs(%logits_bias : tensor<1x10xf32>) -> tensor<1x10xf32>
  %odds_empty = tensor.empty() : tensor<1x10xf32>
  %odds = linalg.softmax dimension(1) ins(%logits : tensor<1x10xf32>)
    outs(%odds_empty : tensor<1x10xf32>) -> tensor<1x10xf32>
  %best_empty = tensor.empty() : tensor<1xf32>
  %best_lowest = linalg.fill ins(%lowest : f32) outs(%best_empty : tensor<1xf32>) -> tensor<1xf32>
  %index_empty = tensor.empty() : tensor<1xi32>
  %none = arith.constant 0 : i32
  %index_none = linalg.fill ins(%none : i32) outs(%index_empty : tensor<1xi32>) -> tensor<1xi32>
  %found:2 = linalg.generic {{
      indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0)>],
      iterator_types = ["parallel", "reduction"]}}
    ins(%logits : tensor<1x10xf32>) outs(%best_lowest, %index_none : tensor<1xf32>, tensor<1xi32>) {{
  ^bb0(%value: f32, %best: f32, %at: i32):
    %here = linalg.index 1 : index
    %here32 = arith.index_cast %here : index to i32
    %better = arith.cmpf ogt, %value, %best : f32
    %value_next = arith.select %better, %value, %best : f32
    %at_next = arith.select %better, %here32, %at : i32
    linalg.yield %value_next, %at_next : f32, i32
  }} -> (tensor<1xf32>, tensor<1xi32>)
  return %odds, %found#1 : tensor<1x10xf32>, tensor<1xi32>
}}
"""

if __name__ == "__main__":
    weight, bias = train()
    text = PROGRAM.format(filters=constant(filters()), weight=constant(weight), bias=constant(bias))
    (FOLDER / "digits.mlir").write_text(text)
    pictures, digits = images(1000, seed=2)
    right = (features(pictures) @ weight + bias).argmax(1) == digits
    print(f"wrote digits.mlir; {right.mean():.1%} of 1,000 other pictures are told right")
    for digit in (3, 7):
        np.save(
            FOLDER / f"{'three' if digit == 3 else 'seven'}.npy",
            image(digit, np.random.default_rng(digit))[None, ..., None],
        )
