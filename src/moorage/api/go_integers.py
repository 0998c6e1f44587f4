"""Whole numbers as Go's arithmetic leaves them: bounded by an int64, wrapped, rounded by its rules.

A scaled number is unscaled × 10^exponent. `surplus` is the requested exponent minus the exponent of
the number: dividing by 10^surplus gives the requested exponent.
"""

from __future__ import annotations

from typing import Final

INT64_MIN: Final = -(2**63)
INT64_MAX: Final = 2**63 - 1
INT64_DIGITS_MAX: Final = 19


def fits_int64(number: int) -> bool:
    """Return whether an int64 holds the number."""
    return INT64_MIN <= number <= INT64_MAX


def parse_int64(text: str) -> int | None:
    """int64 = [ "+" | "-" ] digit digit*

    Return the number, or None if the text is none or does not fit.
    """
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not (digits.isascii() and digits.isdigit()):
        return None
    if len(digits.lstrip("0")) > INT64_DIGITS_MAX:
        return None
    number = int(text)
    return number if fits_int64(number) else None


def wrapped(number: int, *, bits: int = 64) -> int:
    """Return the low bits of the number as a signed one."""
    half = 1 << bits - 1
    return (number + half) % (2 * half) - half


def aligned(
    unscaled: int, exponent: int, other_unscaled: int, other_exponent: int
) -> tuple[int, int]:
    """Return both numbers in units of the smaller exponent."""
    if exponent == other_exponent:
        return unscaled, other_unscaled
    if exponent > other_exponent:
        return unscaled * power_of_ten(exponent - other_exponent), other_unscaled
    return unscaled, other_unscaled * power_of_ten(other_exponent - exponent)


def power_of_ten(exponent: int) -> int:
    """Return 10^exponent; the exponent is not negative."""
    return _POWERS_OF_TEN[exponent] if exponent < len(_POWERS_OF_TEN) else int(10**exponent)


_POWERS_OF_TEN: Final = tuple(int(10**exponent) for exponent in range(64))


def trailing_zero_bits(number: int) -> int:
    """Return how many zero bits a number that is not zero ends with."""
    return (number & -number).bit_length() - 1


def narrow_scaled(unscaled: int, surplus: int) -> int:
    """Return unscaled / 10^surplus, rounded away from zero; on overflow what Kubernetes leaves."""
    if surplus > 0:
        size = -(-abs(unscaled) // power_of_ten(surplus))
        return -size if unscaled < 0 else size
    number = unscaled * power_of_ten(-surplus)
    if fits_int64(number):
        return number
    # Kubernetes multiplies by these powers at once and wraps; by others step by step, and stops.
    has_one_step = -surplus in (1, 2, 3, 6, 9) and unscaled != INT64_MIN
    return wrapped(number) if has_one_step else 0


def wide_scaled(unscaled: int, surplus: int) -> int:
    """Return unscaled / 10^surplus, rounded as Kubernetes does for wide numbers, as an int64."""
    low = wrapped(unscaled)
    if surplus == 0:
        return low
    if surplus < 0:
        # A power of ten above int64 becomes the smallest int64 when Go converts it from a float.
        return wrapped(low * (power_of_ten(-surplus) if surplus >= -18 else INT64_MIN))
    divisor = power_of_ten(surplus)
    if unscaled < INT64_MAX and surplus < 19:
        quotient = abs(low) // divisor
        has_rest = low % divisor != 0
        return (-quotient if low < 0 else quotient) + has_rest
    quotient, rest = divmod(unscaled, divisor)
    return wrapped(wrapped(quotient) + (rest != 0))


def float_power_of_ten(exponent: int) -> float:
    """Return 10^exponent as Go's math.Pow10: from two tables, so not always the nearest float."""
    if exponent > 308:
        return float("inf")
    if exponent < -323:
        return 0.0
    coarse, fine = divmod(abs(exponent), 32)
    if exponent < 0:
        return float(f"1e-{32 * coarse}") / float(f"1e{fine}")
    return float(f"1e{32 * coarse}") * float(f"1e{fine}")
