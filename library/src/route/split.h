// Splits one large transfer over several paths: where it is cut, and what share each path gets.
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
  uint16_t share = 0;  ///< of kShares
  bool operator==(const SplitPart&) const = default;
};

/// The parts' shares sum to kShares; no path appears twice (two rails of a network are two paths).
struct Split {
  std::vector<SplitPart> parts;
  uint64_t minimum_part =
      65536;              ///< bytes; a part that would be smaller goes to the path with the largest share
  uint64_t align = 4096;  ///< bytes; parts start at multiples of this
  bool operator==(const Split&) const = default;
};

std::string name_of(const Split& split);   ///< "peer/copy+staged", as rules say it
std::string describe(const Split& split);  ///< "peer/copy 90 % + staged 10 %"

/// One piece of a transfer that was cut: bytes [offset, offset + bytes) go by the split's part number `part`.
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

/// Cuts `bytes` without allocating. The pieces are in order, touch, and sum to `bytes` exactly; every offset
/// is a multiple of `align` (for a strided shape: the bytes of one slice of its slowest dimension). There is
/// at least one.
SplitPieces divide(std::span<const uint16_t> shares, uint64_t minimum_part, uint64_t align,
                   uint64_t bytes) noexcept;

/// A path that may take part, with what it costs alone.
struct SplitLane {
  std::string path;
  CostLine line;
};

/// The shares with which all lanes would finish a transfer of `bytes` at the same time, if they did not
/// disturb each other: where `tune` starts from. Lanes worth less than 1/256 are left out; nothing when fewer
/// than two are left.
std::optional<Split> propose(std::span<const SplitLane> lanes, uint64_t bytes);

/// A split that was measured as a whole.
struct Trial {
  Split split;
  std::vector<Point> points;
};

/// The trials worth keeping: of each set of paths the one that is cheapest at the largest size measured, and
/// only if at some measured size it beats every lane alone by more than the spread. Indices into `trials`.
std::vector<size_t> worth_keeping(std::span<const Trial> trials, std::span<const SplitLane> lanes);

}  // namespace pw::route
