// Splits one large transfer over several paths: where to cut it, and which share each path gets.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "route/cost_line.h"

namespace pw::route {

inline constexpr uint32_t kShares = 256;  ///< shares are whole numbers of 1/256
inline constexpr size_t kMaxParts = 8;

struct SplitPart {
  std::string path;
  uint16_t share = 0;  ///< in units of 1/kShares
  bool operator==(const SplitPart&) const = default;
};

/// The shares of the parts sum to kShares. No path appears twice (two rails of a network are two paths).
struct Split {
  std::vector<SplitPart> parts;
  uint64_t minimum_part =
      65536;              ///< bytes; a part that would be smaller goes to the path with the largest share
  uint64_t align = 4096;  ///< bytes; parts start at multiples of this
  bool operator==(const Split&) const = default;
};

std::string name_of(const Split& split);   ///< "peer/copy+staged", as in rules
std::string describe(const Split& split);  ///< "peer/copy 90 % + staged 10 %"

/// One piece of a cut transfer: the bytes [offset, offset + bytes) go to the split's part number `part`.
struct SplitPiece {
  uint32_t part = 0;
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

struct SplitPieces {
  std::array<SplitPiece, kMaxParts> piece{};
  uint32_t count = 0;
  [[nodiscard]] const SplitPiece* begin() const { return piece.data(); }
  [[nodiscard]] const SplitPiece* end() const { return piece.data() + count; }
};

/// Cuts `bytes` without allocating. The pieces are in order, adjacent, and sum to `bytes` exactly; every
/// offset is a multiple of `align` (for a strided shape: the bytes of one slice of its slowest dimension).
/// There is at least one piece.
SplitPieces divide(std::span<const uint16_t> shares, uint64_t minimum_part, uint64_t align,
                   uint64_t bytes) noexcept;

/// A path that may take part in a split, with its cost when used alone.
struct SplitCandidate {
  std::string path;
  CostLine line;
};

/// Returns the shares with which all candidates would finish a transfer of `bytes` at the same time, if they
/// did not slow each other down: `tune` starts from these. Lanes worth less than 1/256 are left out. Returns
/// nothing if fewer than two are left.
std::optional<Split> propose(std::span<const SplitCandidate> candidates, uint64_t bytes);

/// A split that was measured as a whole.
struct Trial {
  Split split;
  std::vector<Point> points;
};

/// Returns the indices of the trials worth keeping: for each set of paths the trial that is cheapest at the
/// largest measured size, and only if at some measured size it beats every candidate alone by more than the
/// spread.
std::vector<size_t> worth_keeping(std::span<const Trial> trials, std::span<const SplitCandidate> candidates);

}  // namespace pw::route
