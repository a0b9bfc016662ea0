"""The header of NumPy's ``.npy`` files, formats 1.0 and 2.0, checked.

NumPy's own parser evaluates literals and trusts them: a damaged header makes it raise nearly any exception, warn, or
return shapes that no array can have.
"""

from __future__ import annotations

import math
import warnings
from typing import BinaryIO, Final

import numpy as np

from ..status import InvalidArgumentError, shorten

NPY_MAGIC: Final = b"\x93NUMPY"
_MAX_AXES: Final = 64 if np.lib.NumpyVersion(np.__version__) >= "2.0.0" else 32


def read_npy_header(file: BinaryIO, where: str) -> tuple[tuple[int, ...], bool, np.dtype[np.generic]]:
    """Reads a file from its beginning up to the array's first byte; ``where`` names the array in messages.

    Returns:
        The shape, whose product, zeros left out, fits 63 bits in bytes; whether the first axis varies fastest; and the
        elements' dtype as stored.

    Raises:
        InvalidArgumentError: the file is not a ``.npy`` file of these formats, or its header describes no array.
        OSError: the file cannot be read.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about literals and aliases of dtypes
            version = np.lib.format.read_magic(file)
            if version not in ((1, 0), (2, 0)):
                raise ValueError(f"format version {version}")
            read = np.lib.format.read_array_header_1_0 if version[0] == 1 else np.lib.format.read_array_header_2_0
            shape, fortran_order, dtype = read(file)
        if any(type(length) is not int or length < 0 for length in shape):
            raise ValueError("its shape must be integers of 0 or more")
        if len(shape) > _MAX_AXES:
            raise ValueError(f"its shape has {len(shape)} axes, an array has at most {_MAX_AXES}")
        if math.prod(length for length in shape if length) * max(dtype.itemsize, 1) >= 1 << 63:
            raise ValueError("its shape is larger than memory can be")
    except OSError:
        raise
    except Exception as error:  # NumPy evaluates the header and raises whatever its code runs into
        reason = shorten(str(error))
        raise InvalidArgumentError(f"{where}: expected a NumPy array of format 1.0 or 2.0: {reason}") from None
    return shape, fortran_order, dtype
