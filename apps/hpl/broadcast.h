// How a panel gets from the process column that has factorized it to the others of each row.
#ifndef HPL_BROADCAST_H
#define HPL_BROADCAST_H

#include <string>
#include <vector>

#include "comm.h"
#include "grid.h"

namespace hpl {

/// The numbers are those of HPL.dat. "Modified" rings let the next root, which needs the panel first, receive
/// from the root and pass nothing on.
enum class Variant { ring = 0, ring_modified = 1, two_rings = 2, two_rings_modified = 3, tree = 6, star = 7 };

Variant variant_of(const std::string& name);  // "1ring", "1ringM", "2ring", "2ringM", "tree", "star"
std::string to_string(Variant variant);
const std::vector<Variant>& all_variants();

/// Where the process `place` behind the root (0: the root) of `count` receives from, and sends to, in this
/// order. -1: the root.
struct Links {
  int parent;
  std::vector<int> children;
};
Links links(Variant variant, int count, int place);

/// The panels of a run. Each lies in the pool in one of kSlots places, by turns.
class Broadcast {
 public:
  static constexpr int kSlots = 3;

  Broadcast(Comm& comm, const Grid& grid, size_t first, size_t slot_bytes)
      : comm_(comm), grid_(grid), first_(first), slot_bytes_(slot_bytes) {}
  void choose(Variant variant) { variant_ = variant; }
  [[nodiscard]] Variant variant() const { return variant_; }
  /// Offset in the pool.
  [[nodiscard]] size_t slot(int64_t panel) const {
    return first_ + slot_bytes_ * static_cast<size_t>(panel % kSlots);
  }

  /// The slot of panel number `panel`, whose root is a column of the grid, is free for it.
  void expect(int64_t panel, int root, size_t bytes);
  /// At the root: `bytes` bytes of the slot go out.
  void start(int64_t panel, size_t bytes);
  /// Passes on a panel that has come, if the next ones have room.
  void poll();
  /// Returns once the panel is here, and has been passed on.
  void receive(int64_t panel);
  /// What start() and the passing on read may change.
  void settle() {
    comm_.settle(Channel::panel);
    passed_on_ = false;
  }

 private:
  struct Expected {
    int64_t panel;
    size_t bytes;
    int parent;
    std::vector<int> children;
    bool here;
  };
  [[nodiscard]] int rank_at(int root, int place) const {
    return grid_.rank(grid_.row, (root + place) % grid_.columns);
  }
  void pass_on(Expected& expected);

  Comm& comm_;
  Grid grid_;
  size_t first_, slot_bytes_;
  Variant variant_ = Variant::ring;
  std::vector<Expected> expected_;  // the next one first
  bool passed_on_ = false;          // since settle()
};

}  // namespace hpl

#endif
