"""The error function, its complement and its inverse as formulas in f32 or f64.

The coefficients are published ones: of erf and erfc from Cephes (S. Moshier), of erf_inv from M. Giles (*Approximating
the erfinv function*, 2010). Tests compare them with SciPy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from .expression import Expression

Values = Sequence[float]

_ERFC_P: Final = (
    2.46196981473530512524e-10,
    5.64189564831068821977e-1,
    7.46321056442269912687e0,
    4.86371970985681366614e1,
    1.96520832956077098242e2,
    5.26445194995477358631e2,
    9.34528527171957607540e2,
    1.02755188689515710272e3,
    5.57535335369399327526e2,
)
_ERFC_Q: Final = (
    1.0,
    1.32281951154744992508e1,
    8.67072140885989742329e1,
    3.54937778887819891062e2,
    9.75708501743205489753e2,
    1.82390916687909736289e3,
    2.24633760818710981792e3,
    1.65666309194161350182e3,
    5.57535340817727675546e2,
)
_ERFC_R: Final = (
    5.64189583547755073984e-1,
    1.27536670759978104416e0,
    5.01905042251180477414e0,
    6.16021097993053585195e0,
    7.40974269950448939160e0,
    2.97886665372100240670e0,
)
_ERFC_S: Final = (
    1.0,
    2.26052863220117276590e0,
    9.39603524938001434673e0,
    1.20489539808096656605e1,
    1.70814450747565897222e1,
    9.60896809063285878198e0,
    3.36907645100081516050e0,
)
_ERF_T: Final = (
    9.60497373987051638749e0,
    9.00260197203842689217e1,
    2.23200534594684319226e3,
    7.00332514112805075473e3,
    5.55923013010394962768e4,
)
_ERF_U: Final = (
    1.0,
    3.35617141647503099647e1,
    5.21357949780152679795e2,
    4.59432382970980127987e3,
    2.26290000613890934246e4,
    4.92673942608635921086e4,
)
_ERF_INV_F32: Final = (
    (
        2.81022636e-08,
        3.43273939e-07,
        -3.5233877e-06,
        -4.39150654e-06,
        0.00021858087,
        -0.00125372503,
        -0.00417768164,
        0.246640727,
        1.50140941,
    ),
    (
        -0.000200214257,
        0.000100950558,
        0.00134934322,
        -0.00367342844,
        0.00573950773,
        -0.0076224613,
        0.00943887047,
        1.00167406,
        2.83297682,
    ),
)
_ERF_INV_F64: Final = (
    (
        -3.6444120640178196996e-21,
        -1.685059138182016589e-19,
        1.2858480715256400167e-18,
        1.115787767802518096e-17,
        -1.333171662854620906e-16,
        2.0972767875968561637e-17,
        6.6376381343583238325e-15,
        -4.0545662729752068639e-14,
        -8.1519341976054721522e-14,
        2.6335093153082322977e-12,
        -1.2975133253453532498e-11,
        -5.4154120542946279317e-11,
        1.051212273321532285e-09,
        -4.1126339803469836976e-09,
        -2.9070369957882005086e-08,
        4.2347877827932403518e-07,
        -1.3654692000834678645e-06,
        -1.3882523362786468719e-05,
        0.0001867342080340571352,
        -0.00074070253416626697512,
        -0.0060336708714301490533,
        0.24015818242558961693,
        1.6536545626831027356,
    ),
    (
        2.2137376921775787049e-09,
        9.0756561938885390979e-08,
        -2.7517406297064545428e-07,
        1.8239629214389227755e-08,
        1.5027403968909827627e-06,
        -4.013867526981545969e-06,
        2.9234449089955446044e-06,
        1.2475304481671778723e-05,
        -4.7318229009055733981e-05,
        6.8284851459573175448e-05,
        2.4031110387097893999e-05,
        -0.0003550375203628474796,
        0.00095328937973738049703,
        -0.0016882755560235047313,
        0.0024914420961078508066,
        -0.0037512085075692412107,
        0.005370914553590063617,
        1.0052589676941592334,
        3.0838856104922207635,
    ),
    (
        -2.7109920616438573243e-11,
        -2.5556418169965252055e-10,
        1.5076572693500548083e-09,
        -3.7894654401267369937e-09,
        7.6157012080783393804e-09,
        -1.4960026627149240478e-08,
        2.9147953450901080826e-08,
        -6.7711997758452339498e-08,
        2.2900482228026654717e-07,
        -9.9298272942317002539e-07,
        4.5260625972231537039e-06,
        -1.9681778105531670567e-05,
        7.5995277030017761139e-05,
        -0.00021503011930044477347,
        -0.00013871931833623122026,
        1.0103004648645343977,
        4.8499064014085844221,
    ),
)


def _f64(value: Expression) -> bool:
    return value.element.bits == 64


def erf(x: Expression) -> Expression:
    """Returns the error function."""
    small = x * _ratio(x * x, _ERF_T, _ERF_U)
    large = 1.0 - _erfc_large(abs(x))
    signed = (x < 0.0).then(-large, large)
    result = (abs(x) < 1.0).then(small, signed)
    return x.differs(x).then(x, result)


def erfc(x: Expression) -> Expression:
    """Returns one minus the error function, accurate where that is small."""
    large = _erfc_large(abs(x))
    result = (abs(x) < 1.0).then(1.0 - x * _ratio(x * x, _ERF_T, _ERF_U), (x < 0.0).then(2.0 - large, large))
    return x.differs(x).then(x, result)


def _erfc_large(size: Expression) -> Expression:
    """Returns the complement for arguments of at least 1.

    The square is split, so that the exponential does not magnify its rounding error.
    """
    bits = 28 if _f64(size) else 12
    # The high part of Dekker's split has an exact square.
    scaled = size.call("minimum", 1e4) * float(2**bits + 1)
    high = scaled - (scaled - size.call("minimum", 1e4))
    low = size - high
    power = (-(high * high)).call("exponential") * (-(low * (size + high))).call("exponential")
    ratio = (size < 8.0).then(_ratio(size, _ERFC_P, _ERFC_Q), _ratio(size, _ERFC_R, _ERFC_S))
    limit = 27.3 if _f64(size) else 10.1
    return (size > limit).then(0.0, power * ratio)


def _ratio(x: Expression, numerator: Values, denominator: Values) -> Expression:
    return x.polynomial(numerator) / x.polynomial(denominator)


def erf_inv(x: Expression) -> Expression:
    """Returns the inverse of the error function; infinite at -1 and 1."""
    w = -(abs(x) < 0.7).then((-(x * x)).call("log_plus_one"), ((1.0 - x) * (1.0 + x)).call("log"))
    if _f64(x):
        first, second, third = _ERF_INV_F64
        root = w.call("sqrt")
        middle = (w < 16.0).then((root - 3.25).polynomial(second), (root - 5.0).polynomial(third))
        factor = (w < 6.25).then((w - 3.125).polynomial(first), middle)
    else:
        near, far = _ERF_INV_F32
        factor = (w < 5.0).then((w - 2.5).polynomial(near), (w.call("sqrt") - 3.0).polynomial(far))
    return abs(x).equals(1.0).then(x * math.inf, x * factor)
