// Posts for which the receiver's ring is full stay in the sender's memory, from which the receiver gets them.
#include <algorithm>
#include <cstddef>
#include <cstring>

#include "xacc/runtime/program/mail_peer.h"

namespace pwx {

using peerway::check;

namespace {

constexpr uint64_t kFirstCapacity = 256;

/// FNV-1a over 64-bit words: a notice that is partly old and partly new does not match its check.
uint64_t check_of(const Backlog& notice) {
  uint64_t sum = 0xcbf29ce484222325;
  const auto add = [&](uint64_t word) { sum = (sum ^ word) * 0x100000001b3; };
  add(notice.count);
  add(notice.capacity);
  add(notice.key_bytes);
  for (size_t at = 0; at < notice.key_bytes; at += sizeof(uint64_t)) {
    uint64_t word;
    std::memcpy(&word, notice.key.data() + at, sizeof word);
    add(word);
  }
  return sum;
}

}  // namespace

void Mail::add_to_backlog(Peer& to, uint64_t word) {
  const uint64_t read = to.signals[Peer::backlog_read].value();
  if (to.backlog_sent - read == to.backlog_capacity) grow_backlog(to, read);
  static_cast<uint64_t*>(to.backlogs.back().address())[to.backlog_sent++ % to.backlog_capacity] = word;
  publish_backlog(to);
}

/// Doubles the capacity, and keeps the words that are not read yet.
void Mail::grow_backlog(Peer& to, uint64_t read) {
  const uint64_t capacity = std::max(2 * to.backlog_capacity, kFirstCapacity);
  to.backlogs.push_back(context_.allocate(peerway::host, capacity * sizeof(uint64_t)));
  auto* words = static_cast<uint64_t*>(to.backlogs.back().address());
  if (to.backlogs.size() > 1) {
    const auto* before = static_cast<const uint64_t*>(to.backlogs[to.backlogs.size() - 2].address());
    for (uint64_t at = read; at < to.backlog_sent; ++at)
      words[at % capacity] = before[at % to.backlog_capacity];
  }
  to.backlog_capacity = capacity;
}

void Mail::publish_backlog(Peer& to) {
  Backlog notice{to.backlog_sent, to.backlog_capacity, 0, 0, {}};
  const peerway::Key key = to.backlogs.back().key();
  notice.key_bytes = key.size();
  std::ranges::copy(key, notice.key.begin());
  notice.check = check_of(notice);
  const size_t padded = (key.size() + sizeof(uint64_t) - 1) / sizeof(uint64_t) * sizeof(uint64_t);
  put_after_slots(to, kBacklogAt, &notice, offsetof(Backlog, key) + padded);
}

/// Reads new words of a peer's backlog. If the notice is just being replaced, it is read after the next post.
void Mail::read_backlog(Peer& from) {
  const auto count =
      __atomic_load_n(reinterpret_cast<const uint64_t*>(from.in + kBacklogAt), __ATOMIC_ACQUIRE);
  if (count == from.its_words_read) return;
  const auto notice = read_words<Backlog>(from.in + kBacklogAt);
  if (notice.key_bytes > notice.key.size() || notice.check != check_of(notice)) return;
  from.reach(context_);
  if (notice.capacity != from.its_capacity) {
    from.its_backlog = context_.import({notice.key.data(), notice.key_bytes});
    from.its_words = context_.allocate(peerway::host, notice.capacity * sizeof(uint64_t));
    from.its_capacity = notice.capacity;
  }
  const uint64_t first = from.its_words_read;
  for (uint64_t at = first; at < notice.count;) {  // the run may wrap around the ring's end
    const uint64_t place = at % notice.capacity;
    const uint64_t run = std::min(notice.count - at, notice.capacity - place);
    const size_t offset = place * sizeof(uint64_t), bytes = run * sizeof(uint64_t);
    check(context_.get(from.its_words->span(offset, bytes), from.its_backlog->span(offset, bytes)));
    at += run;
  }
  check(context_.flush(from.rank));
  const auto* words = static_cast<const uint64_t*>(from.its_words->address());
  for (uint64_t at = first; at < notice.count; ++at) from.words.push_back(words[at % notice.capacity]);
  from.its_words_read = notice.count;
  check(context_.notify(peerway::notify(from.far_signals[Peer::backlog_read], notice.count - first)));
}

}  // namespace pwx
