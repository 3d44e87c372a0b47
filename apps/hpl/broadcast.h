// How a panel gets from the process column that has factorized it to the others of each row.
#ifndef HPL_BROADCAST_H
#define HPL_BROADCAST_H

#include <string>
#include <vector>

#include "comm.h"
#include "device.h"
#include "grid.h"

namespace hpl {

/// The numbers are those of HPL.dat. `spread` cuts the panel, gives each process a part, and passes the parts
/// around a ring: HPL's long broadcast. "Modified" lets the next root, which needs the panel first, receive
/// it whole from the root and pass nothing on.
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

/// One of `of` parts of a panel, as equal as lines of 64 bytes allow.
struct Part {
  int index, of;
  [[nodiscard]] size_t begin(size_t bytes) const { return bytes / 64 * size_t(index) / size_t(of) * 64; }
  [[nodiscard]] size_t end(size_t bytes) const {
    return index + 1 == of ? bytes : Part{index + 1, of}.begin(bytes);
  }
};

/// A part that the process `place` behind the root (0: the root) of `count` receives, and passes on to
/// others, in this order. Parent -1: it is the root's.
struct Message {
  Part part;
  int parent;
  std::vector<int> children;
};
std::vector<Message> messages(Variant variant, int count, int place);

/// Whether the root sends panels whole; else parts of them.
constexpr bool sends_whole(Variant variant) {
  return variant != Variant::spread && variant != Variant::spread_modified;
}

/// How panels are sent: by which variant, and who starts the root's messages: a stream of the device, behind
/// the panel, or the host when it has seen that the panel is done. What others pass on is started by the
/// host.
struct Sending {
  Variant variant = Variant::ring;
  bool by_stream = false;
};

/// The panels of a run. Each lies in the pool in one of kSlots places, by turns.
class Broadcast {
 public:
  static constexpr int kSlots = 3;

  /// Panels that a stream starts need comm.prepare() for these slots.
  Broadcast(Comm& comm, Device& device, const Grid& grid, const Slots& slots, const Sending& sending)
      : comm_(comm), device_(device), grid_(grid), slots_(slots), sending_(sending) {}
  [[nodiscard]] static Slots slots(size_t first, size_t slot_bytes) { return {first, slot_bytes, kSlots}; }
  /// Offset in the pool.
  [[nodiscard]] size_t slot(int64_t panel) const {
    return slots_.first + slots_.bytes * static_cast<size_t>(panel % kSlots);
  }

  /// The slot of panel number `panel`, whose root is a column of the grid, is free for it.
  void expect(int64_t panel, int root, size_t bytes);
  /// At the root: `bytes` bytes of the slot go out when the queue `ahead` has done all that it has.
  void start(int64_t panel, size_t bytes);
  /// Passes on what has come of a panel, if the next ones have room.
  void poll();
  /// Returns once the panel is here, and has been passed on.
  void receive(int64_t panel);
  /// Returns once what start() and the passing on read may change.
  void settle();

 private:
  struct Expected {
    int64_t panel;
    int root;  // the rank
    size_t bytes;
    std::vector<Message> messages;
    size_t here;  // how many of the messages have come
  };
  /// The messages of a panel with this root; they name ranks instead of places in the row.
  [[nodiscard]] std::vector<Message> messages_of(int root) const;
  /// The channel of a message of a panel.
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
  std::vector<Expected> expected_;  // the next one first
  bool sent_ = false;               // since settle()
};

}  // namespace hpl

#endif
