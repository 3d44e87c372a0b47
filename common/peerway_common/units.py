"""Sizes, times and bandwidths as text, spelled the same in every table and plot."""

from __future__ import annotations

_BINARY = ((40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB"))
_DECIMAL = ((10**12, "TB"), (10**9, "GB"), (10**6, "MB"))
_LONGEST = 10_000  # the first number of a unit that is too long to read


def size_text(count: int) -> str:
    """8 -> "8 B", 65536 -> "64 KiB", 1536 -> "1.5 KiB"; other sizes stay exact, "1000 B" and "80 GB", as long
    as a short number can say them: 80000000001 -> "≈74.5 GiB".
    """
    for power, unit in _BINARY:
        if count >= 1 << power and count * 2 % (1 << power) == 0 and count >> power < _LONGEST:
            return f"{count / (1 << power):g} {unit}"
    for factor, unit in _DECIMAL:
        if count >= factor and count % factor == 0 and count // factor < _LONGEST:
            return f"{count // factor} {unit}"
    return f"{count} B" if count < 1000 * _LONGEST else f"≈{about_text(count)}"


def counted(number: int, noun: str) -> str:
    """1 -> "1 stream", 4 -> "4 streams"."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def about_text(count: float) -> str:
    """Three digits: 742392 -> "725 KiB", 25233264640 -> "23.5 GiB"."""
    for power, unit in _BINARY:
        value = count / (1 << power)
        if value >= 1:
            return f"{value:.0f} {unit}" if value >= 100 else f"{value:.3g} {unit}"
    return f"{count:.0f} B"


def time_text(microseconds: float) -> str:
    """Three significant digits in the unit that keeps them short: 0.317 -> "317 ns", 5.2 -> "5.2 µs"."""
    value = abs(microseconds)
    if value < 1:
        return f"{_digits(microseconds * 1e3)} ns"
    if value < 1e3:
        return f"{_digits(microseconds)} µs"
    return f"{_digits(microseconds / 1e3)} ms" if value < 1e6 else f"{_digits(microseconds / 1e6)} s"


def bandwidth_text(megabytes_per_s: float) -> str:
    """10630.0 -> "10.6 GB/s" (MB = 10^6 bytes)."""
    for factor, unit in ((1e3, "GB/s"), (1.0, "MB/s"), (1e-3, "kB/s")):
        if abs(megabytes_per_s) >= factor:
            return f"{_digits(megabytes_per_s / factor)} {unit}"
    return f"{_digits(megabytes_per_s * 1e6)} B/s"


def rate_text(per_second: float) -> str:
    """3150000.0 -> "3.15 M/s"."""
    for factor, unit in ((1e9, "G/s"), (1e6, "M/s"), (1e3, "k/s")):
        if abs(per_second) >= factor:
            return f"{_digits(per_second / factor)} {unit}"
    return f"{_digits(per_second)} /s"


def _digits(value: float) -> str:
    if abs(value) >= 100:
        return f"{value:.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"
