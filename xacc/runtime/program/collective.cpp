#include "xacc/runtime/program/collective.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <memory>
#include <vector>

#include "xacc/runtime/base/failure.h"

namespace pwx {
namespace {

constexpr size_t kRingBytes = 65536;  // bytes from which values go around a ring in parts, and not as a whole

/// Memory for what a partner sends; small messages need no allocation.
class PartnerBuffer {
 public:
  explicit PartnerBuffer(size_t bytes)
      : large_(bytes > small_.size() ? std::make_unique<std::byte[]>(bytes) : nullptr) {}
  [[nodiscard]] std::byte* get() { return large_ != nullptr ? large_.get() : small_.data(); }

 private:
  alignas(64) std::array<std::byte, 256> small_;
  std::unique_ptr<std::byte[]> large_;
};

/// One reduction. Ranks are given by their places in the set.
class Reduction {
 public:
  Reduction(Program& program, const Set& set, Combine combine, void* values, size_t count, size_t element)
      : mail_(program.mail),
        set_(set),
        combine_(combine),
        values_(static_cast<std::byte*>(values)),
        count_(count),
        element_(element) {}

  /// Recursive doubling: each step doubles the places whose sum each place knows. Places beyond a power of
  /// two send theirs first.
  void by_doubling() {
    const int me = set_.index, size = set_.size();
    const int even = static_cast<int>(std::bit_floor(static_cast<unsigned>(size)));
    PartnerBuffer theirs(bytes());
    if (me >= even) {
      mail_.send(rank(me - even), values_, bytes());
      return mail_.receive(rank(me - even), values_, bytes());
    }
    const bool extra = me + even < size;
    if (extra) {
      mail_.receive(rank(me + even), theirs.get(), bytes());
      combine_(values_, values_, theirs.get(), count_);
    }
    for (int distance = 1; distance < even; distance *= 2) {
      const int partner = me ^ distance;
      swap(partner, theirs.get());
      // Both combine in the same order, so that both get the same bits.
      combine_(values_, me < partner ? values_ : theirs.get(), me < partner ? theirs.get() : values_, count_);
    }
    if (extra) mail_.send(rank(me + even), values_, bytes());
  }

  /// Each place sums one part, which goes around the ring; then the sums go around.
  void by_ring() {
    const int me = set_.index, size = set_.size();
    const int next = rank((me + 1) % size), previous = rank((me + size - 1) % size);
    PartnerBuffer theirs(bytes_of(0));
    for (int step = 0; step < size - 1; ++step) {
      const int out = (me - step + size) % size, in = (me - step - 1 + size) % size;
      pass(next, at(out), bytes_of(out), previous, theirs.get(), bytes_of(in));
      combine_(at(in), theirs.get(), at(in), bytes_of(in) / element_);
    }
    for (int step = 0; step < size - 1; ++step) {
      const int out = (me + 1 - step + size) % size, in = (me - step + size) % size;
      pass(next, at(out), bytes_of(out), previous, at(in), bytes_of(in));
    }
  }

  [[nodiscard]] size_t bytes() const { return count_ * element_; }

 private:
  [[nodiscard]] int rank(int place) const { return set_.ranks[static_cast<size_t>(place)]; }

  // The parts of a ring; the first parts are one element longer.
  [[nodiscard]] size_t first_of(int part) const {
    const auto size = static_cast<size_t>(set_.size()), p = static_cast<size_t>(part);
    return p * (count_ / size) + std::min(p, count_ % size);
  }
  [[nodiscard]] std::byte* at(int part) const { return values_ + first_of(part) * element_; }
  [[nodiscard]] size_t bytes_of(int part) const { return (first_of(part + 1) - first_of(part)) * element_; }

  void swap(int partner, std::byte* theirs) {
    if (bytes() > Mail::kSlotBytes)
      return pass(rank(partner), values_, bytes(), rank(partner), theirs, bytes());
    mail_.send(rank(partner), values_, bytes());
    mail_.receive(rank(partner), theirs, bytes());
  }

  void pass(int to, const void* out, size_t out_bytes, int from, void* in, size_t in_bytes) {
    const Outgoing sent{to, out, out_bytes};
    const Incoming received{from, in, in_bytes};
    mail_.exchange({&sent, 1}, {&received, 1});
  }

  Mail& mail_;
  const Set& set_;
  Combine combine_;
  std::byte* values_;
  size_t count_, element_;
};

}  // namespace

void barrier(Program& program, const Set& set) {
  const int me = set.index, size = set.size();
  if (me < 0) return;
  for (int distance = 1; distance < size; distance *= 2) {
    program.mail.send(set.ranks[static_cast<size_t>((me + distance) % size)], nullptr, 0);
    program.mail.receive(set.ranks[static_cast<size_t>((me + size - distance) % size)], nullptr, 0);
  }
}

void broadcast(Program& program, const Set& set, int root, void* data, size_t bytes) {
  const int size = set.size();
  if (set.index < 0 || bytes == 0) return;
  const int me = (set.index + size - root) % size;
  const auto rank = [&](int place) { return set.ranks[static_cast<size_t>((place + root) % size)]; };
  int distance = 1;
  for (; distance < size; distance *= 2)
    if ((me & distance) != 0) {
      program.mail.receive(rank(me - distance), data, bytes);
      break;
    }
  for (distance /= 2; distance > 0; distance /= 2)
    if (me + distance < size) program.mail.send(rank(me + distance), data, bytes);
}

void reduce(Program& program, const Set& set, Combine combine, void* values, size_t count,
            size_t element_bytes) {
  if (set.index < 0 || set.size() == 1 || count == 0) return;
  Reduction reduction(program, set, combine, values, count, element_bytes);
  if (set.size() > 2 && reduction.bytes() >= kRingBytes)
    reduction.by_ring();
  else
    reduction.by_doubling();
}

bool agree(Program& program, const Set& set, long number) {
  long least[] = {number, -number};
  reduce(program, set, combine_of(PWX_MIN, PWX_LONG), least, 2, sizeof least[0]);
  return least[0] != 0 && least[0] == -least[1];
}

int root_of(const Set& set, const pwx_ref* from) {
  if (from == nullptr) return 0;
  const Set& source = program().sets.of(*from);
  if (source.size() != 1)
    refuse("bcast from ", text_of(*from), ", which is ", source.size(), " nodes; name one");
  const auto root = std::ranges::find(set.ranks, source.ranks[0]);
  if (root == set.ranks.end())
    refuse("bcast from ", text_of(*from), ", which is none of the nodes that take part; add it to `on`");
  return static_cast<int>(root - set.ranks.begin());
}

}  // namespace pwx
