// SipHash-2-4 with 128 bits of output: the keyed hash with which the ranks of a job prove that they know its
// secret. Source: J.-P. Aumasson and D. J. Bernstein, "SipHash: a fast short-input PRF", 2012.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace pw {

using Secret = std::array<std::byte, 16>;
using Digest = std::array<std::byte, 16>;

Digest siphash(const Secret& secret, std::span<const std::byte> text);

/// Returns the first 64 bits, for uses that need no more.
uint64_t first_word(const Digest& digest);

/// Compares in a time that does not depend on where the two differ.
bool equal_digests(const Digest& a, const Digest& b);

}  // namespace pw
