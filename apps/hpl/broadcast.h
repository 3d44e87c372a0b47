// Sends a panel from the process column that has factorized it to the other processes of each row.
#ifndef HPL_BROADCAST_H
#define HPL_BROADCAST_H

#include <string>
#include <vector>

#include "comm.h"
#include "device.h"
#include "grid.h"

namespace hpl {

/// The variants of a broadcast, with the numbers of HPL.dat. `spread` cuts the panel, gives each process a
/// part, and passes the parts around a ring: HPL's long broadcast. In "modified" variants the next root,
/// which needs the panel first, receives the whole panel from the root and passes nothing on.
enum class Variant {
  ring = 0,
  ring_modified = 1,
  two_rings = 2,
  two_rings_modified = 3,
  spread = 4,
  spread_modified = 5,
  tree = 6,
  star = 7
};

Variant variant_of(const std::string& name);  // "1ring", "1ringM", "2ring", "2ringM", "long", "longM", ...
std::string to_string(Variant variant);
const std::vector<Variant>& all_variants();

/// Part number `index` of `of` parts of a panel, as equal as lines of 64 bytes allow.
struct Part {
  int index, of;
  [[nodiscard]] size_t begin(size_t bytes) const { return bytes / 64 * size_t(index) / size_t(of) * 64; }
  [[nodiscard]] size_t end(size_t bytes) const {
    return index + 1 == of ? bytes : Part{index + 1, of}.begin(bytes);
  }
};

/// A part that the process at distance `place` from the root (0: the root), among `count` processes, receives
/// and passes on to `children`, in this order. Parent -1: the process is the root.
struct Message {
  Part part;
  int parent;
  std::vector<int> children;
};
std::vector<Message> messages(Variant variant, int count, int place);

/// Whether the root sends panels as a whole, not in parts.
constexpr bool sends_whole(Variant variant) {
  return variant != Variant::spread && variant != Variant::spread_modified;
}

/// How panels are sent: with which variant, and who starts the root's messages: a stream of the device, after
/// the panel, or the host once it has seen that the panel is done. The host always starts the messages of
/// processes that pass a panel on.
struct Sending {
  Variant variant = Variant::ring;
  bool by_stream = false;
};

/// The broadcasts of the panels of a run. Each panel lies in the pool in one of kSlots slots, used in turn.
class Broadcast {
 public:
  static constexpr int kSlots = 3;

  /// If a stream starts broadcasts, call comm.prepare() for these slots first.
  Broadcast(Comm& comm, Device& device, const Grid& grid, const Slots& slots, const Sending& sending)
      : comm_(comm), device_(device), grid_(grid), slots_(slots), sending_(sending) {}
  [[nodiscard]] static Slots slots(size_t first, size_t slot_bytes) { return {first, slot_bytes, kSlots}; }
  /// Returns the offset in the pool.
  [[nodiscard]] size_t slot(int64_t panel) const {
    return slots_.first + slots_.bytes * static_cast<size_t>(panel % kSlots);
  }

  /// Tells the senders that the slot of panel number `panel` is free. `root` is a column of the grid.
  void expect(int64_t panel, int root, size_t bytes);
  /// At the root: sends `bytes` bytes of the slot once the present work in the queue `ahead` is done.
  void start(int64_t panel, size_t bytes);
  /// Passes on what has arrived of a panel, if the next processes have room.
  void poll();
  /// Returns once the panel has arrived and was passed on.
  void receive(int64_t panel);
  /// Returns once the memory that start() and passing on read may change.
  void settle();

 private:
  struct Expected {
    int64_t panel;
    int root;  // the rank
    size_t bytes;
    std::vector<Message> messages;
    size_t here;  // number of messages that have arrived
  };
  /// Returns the messages of a panel, with ranks instead of places.
  [[nodiscard]] std::vector<Message> messages_of(int root) const;
  /// Returns the channel of a message from this rank.
  [[nodiscard]] Channel channel(int from, int root) const {
    return sending_.by_stream && from == root ? Channel::prepared : Channel::panel;
  }
  void pass_on(Expected& expected);
  void send(int64_t panel, size_t bytes, const Message& message, Channel channel);

  Comm& comm_;
  Device& device_;
  Grid grid_;
  Slots slots_;
  Sending sending_;
  std::vector<Expected> expected_;  // the next panel first
  bool sent_ = false;               // something was sent since settle()
};

}  // namespace hpl

#endif
